//! The second factor of an account: its page, and its forms.

use super::context::{Form, SignedIn};
use super::document::{Viewer, card, document};
use super::forms::{alert, code_field, hidden_fields, owner_failure};
use super::outcome::{Outcome, PageStatus};
use super::paths;
use super::qr_code::qr_code;
use super::way_back::signed_out;
use crate::store::{NewSecondFactor, OwnerError, Session, StoreError};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

const TITLE: &str = "Second factor";

/// The page on which the second factor is turned on or off.
pub fn second_factor(context: &SignedIn<'_>) -> Result<Outcome, StoreError> {
    show(context, "", None, PageStatus::Shown)
}

/// Turns the second factor on, and shows its recovery codes.
pub fn turn_on_second_factor(context: &SignedIn<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let nonce = form.field("nonce");
    let turned_on = context.store.turn_on_second_factor(
        context.session_cookie(),
        form.field("password"),
        nonce,
        form.field("code"),
    );
    match turned_on {
        Ok(codes) => Ok(Outcome::page(codes_page(&context.session, &codes))),
        Err(error) => rejected(context, nonce, error),
    }
}

/// Turns the second factor off.
pub fn turn_off_second_factor(context: &SignedIn<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let (cookie, password) = (context.session_cookie(), form.field("password"));
    match context.store.turn_off_second_factor(cookie, password) {
        Ok(()) => Ok(Outcome::redirect(paths::ACCOUNT)),
        Err(error) => rejected(context, "", error),
    }
}

/// The card on the page of the account.
pub fn second_factor_card(session: &Session) -> Markup {
    html! {
        section.card #second-factor {
            h2 { (TITLE) }
            @if session.account.has_second_factor {
                p { "It is on: signing in needs a code beside the password." }
                p { a.button.secondary href=(paths::SECOND_FACTOR) { "Recovery codes, or turn it off" } }
            } @else {
                p {
                    "It is off: the password alone signs in. With it, signing in also needs a code of an authenticator \
                     app, and recovery codes replace a forgotten password."
                }
                p { a.button.secondary href=(paths::SECOND_FACTOR) { "Set up a second factor" } }
            }
        }
    }
}

fn rejected(context: &SignedIn<'_>, nonce: &str, error: OwnerError) -> Result<Outcome, StoreError> {
    match owner_failure(error)? {
        Some((reason, status)) => show(context, nonce, Some(&reason), status),
        None => Ok(signed_out(paths::SECOND_FACTOR)),
    }
}

/// `nonce` is the one of a form that was sent; empty for a new one.
fn show(
    context: &SignedIn<'_>,
    nonce: &str,
    reason: Option<&str>,
    status: PageStatus,
) -> Result<Outcome, StoreError> {
    let (session, account) = (&context.session, &context.session.account);
    let form = match context.store.recovery_codes(account.id)? {
        Some(left) => off_form(session, left),
        None => on_form(
            session,
            &context.store.new_second_factor(account.id, nonce)?,
        ),
    };
    let content = html! {
        (alert(reason))
        @if account.has_password { (form) } @else { p { "This account has no password to sign in by." } }
        p.hint { a href=(paths::ACCOUNT) { "Back to the account" } }
    };
    let page = card(TITLE, Viewer::of(session), &content);
    Ok(Outcome::page_with(page, status))
}

fn on_form(session: &Session, new: &NewSecondFactor) -> Markup {
    let email = utf8_percent_encode(&session.account.email, NON_ALPHANUMERIC);
    let url = format!(
        "otpauth://totp/towebp:{email}?secret={}&issuer=towebp",
        new.key
    );
    let groups: Vec<&str> = (0..new.key.len())
        .step_by(4)
        .map(|at| &new.key[at..at + 4])
        .collect();
    html! {
        form method="post" action=(paths::SECOND_FACTOR) {
            (hidden_fields(session))
            input type="hidden" name="nonce" value=(new.nonce);
            p { "Scan this with an authenticator app on your telephone, or type the key into it." }
            (qr_code(&url, "QR code of the key"))
            p { "Key: " code #key { (groups.join(" ")) } }
            (code_field("Code that the app shows", "It has six digits, and confirms that the app has the key."))
            (password_field())
            button type="submit" { "Turn it on" }
        }
    }
}

fn off_form(session: &Session, left: usize) -> Markup {
    html! {
        p { "It is on. Recovery codes left: " strong { (left) } "." }
        p.hint {
            "For new codes, or for another telephone, turn it off and on again. That makes the old codes void."
        }
        form method="post" action=(paths::SECOND_FACTOR_OFF) {
            (hidden_fields(session))
            (password_field())
            button.danger type="submit" { "Turn it off" }
        }
    }
}

fn password_field() -> Markup {
    html! {
        label for="password" { "Password" }
        input #password type="password" name="password" required maxlength="1024" autocomplete="current-password";
    }
}

fn codes_page(session: &Session, codes: &[String]) -> Markup {
    let content = html! {
        section.card.narrow {
            h1 { "The second factor is on" }
            p {
                "Keep these recovery codes where you find them without your telephone. Each signs in once in place of a \
                 code of the app, or replaces a forgotten password. "
                strong { "They are not shown again." }
            }
            div.title {
                h2 { "Recovery codes" }
                button.copy.secondary type="button" data-copy="codes" hidden { "Copy" }
            }
            pre tabindex="0" { code #codes { (codes.join("\n")) } }
            p { a.button href=(paths::ACCOUNT) { "I have kept them" } }
        }
    };
    document(TITLE, Viewer::of(session), &content)
}
