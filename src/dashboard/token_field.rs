//! Tokens on pages: masked until their owner reveals one. A token then comes with a page of its
//! own, or, by the script, into the field or onto the clipboard. It stands in no other page, so
//! that nobody reads it over a shoulder, from paper, or out of a saved page.

use super::context::{Form, SignedIn};
use super::document::{Viewer, document};
use super::forms::csrf_field;
use super::outcome::Outcome;
use super::paths;
use crate::store::{Session, StoreError, TokenNumber};
use maud::{Markup, html};

/// The placeholder for the characters of a token that are not shown. The script knows it.
const MASK: &str = "••••••••";

/// The characters at the end that are shown. They belong to the checksum, and so give nothing away.
const SHOWN: usize = 4;

/// A token as pages show it: `twp_••••••••9Zb3`.
pub fn masked(token: &str) -> String {
    let (start, _) = token.split_at(token.find('_').map_or(0, |at| at + 1));
    let (_, end) = token.split_at(token.len().saturating_sub(SHOWN));
    format!("{start}{MASK}{end}")
}

/// A token behind its mask, with buttons that reveal and copy it. `label` is the field's name: a
/// sentence above it, or words that only screen readers read.
pub fn token_field(
    session: &Session,
    number: TokenNumber,
    token: &str,
    id: &str,
    label: &Label<'_>,
) -> Markup {
    let number = number.0;
    html! {
        form.reveal method="post" action=(paths::REVEAL_TOKEN) {
            (csrf_field(&session.csrf))
            input type="hidden" name="token" value=(number);
            @if let Label::Above(text) = label { label for=(id) { (text) } }
            div.field {
                input id=(id) type="text" value=(masked(token)) data-token=(number) readonly spellcheck="false"
                    autocomplete="off" aria-label=[label.hidden()];
                button.secondary type="submit" { "Reveal" }
                button.copy type="button" data-copy=(id) hidden { "Copy" }
            }
        }
    }
}

/// The label of a token's field.
pub enum Label<'t> {
    /// A sentence above it.
    Above(&'t str),
    /// Words that are not visible.
    Hidden(&'t str),
}

impl Label<'_> {
    fn hidden(&self) -> Option<&str> {
        match self {
            Label::Above(_) => None,
            Label::Hidden(text) => Some(text),
        }
    }
}

/// The token that a form is about, if its field is a number.
pub fn token_number(form: &Form) -> Option<TokenNumber> {
    form.field("token").parse().ok().map(TokenNumber)
}

/// The page with the text of one token.
pub fn reveal_token(context: &SignedIn<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let number = token_number(form);
    let tokens = context.store.tokens(context.session.account.id)?;
    let mut living = tokens.iter().filter(|usage| usage.deleted.is_none());
    let Some(usage) = living.find(|usage| Some(usage.token.number) == number) else {
        return Ok(Outcome::redirect(paths::TOKENS));
    };
    let text = context
        .store
        .token_text(context.session.account.id, &usage.token);
    let content = html! {
        section.card.narrow {
            h1 { "The token " (usage.token.settings.name) }
            label for="token" { "Keep it to yourself: whoever has it converts in your name." }
            textarea #token readonly rows="2" spellcheck="false" autocomplete="off" { (text) }
            p {
                a href=(paths::DASHBOARD) { "To the dashboard" } " · " a href=(paths::TOKENS) { "To the tokens" }
            }
        }
    };
    let page = document("Token", Viewer::of(&context.session), &content);
    Ok(Outcome::page(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_leaves_what_tells_tokens_apart() {
        assert_eq!(masked("twp_0123456789abcdef"), "twp_••••••••cdef");
        assert_eq!(masked(""), "••••••••");
    }
}
