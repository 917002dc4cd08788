//! The page of the account's sessions: its owner sees where the account is signed in, and ends one
//! session or all of them.

use super::context::{Form, SignedIn};
use super::document::{Viewer, document};
use super::forms::{alert, csrf_field, notice};
use super::outcome::{Outcome, PageStatus};
use super::paths;
use super::units::{ago, time};
use crate::store::{ListedSession, MAX_SESSIONS, Session, StoreError};
use maud::{Markup, html};
use std::time::SystemTime;

/// The card of the account's page that leads to the page.
pub fn sessions_card(session: &Session) -> Markup {
    html! {
        section.card #sessions {
            h2 { "Sessions" }
            p {
                "A browser stays signed in for up to 30 days. "
                a href=(paths::SESSIONS) { "See where you are signed in" }
                ", and end one session, or all of them with this one:"
            }
            (everywhere_form(session))
        }
    }
}

/// The page of the sessions, with a notice if one was just ended.
pub fn sessions(context: &SignedIn<'_>, has_ended: bool) -> Result<Outcome, StoreError> {
    let done = has_ended.then_some("The session is ended: that browser is signed out.");
    Ok(Outcome::page(page(context, &notice(done))?))
}

/// Ends one session of the account.
pub fn end_session(context: &SignedIn<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let ended = match form.field("session").parse() {
        Ok(id) => context
            .store
            .end_session_of(context.session.account.id, id)?,
        Err(()) => false,
    };
    if !ended {
        let reason = "There is no such session of this account; it may have ended meanwhile.";
        let page = page(context, &alert(Some(reason)))?;
        return Ok(Outcome::page_with(page, PageStatus::Invalid));
    }
    Ok(if context.session()?.is_some() {
        Outcome::redirect(format!("{}?done=ended", paths::SESSIONS))
    } else {
        Outcome::signed_out()
    })
}

/// Ends all sessions of the account, this one included.
pub fn sign_out_everywhere(context: &SignedIn<'_>, _form: &Form) -> Result<Outcome, StoreError> {
    context.store.end_all_sessions(context.session.account.id)?;
    Ok(Outcome::signed_out())
}

fn page(context: &SignedIn<'_>, news: &Markup) -> Result<Markup, StoreError> {
    let cookie = context.session_cookie();
    let all = context.store.sessions(context.session.account.id, cookie)?;
    let content = html! {
        h1 { "Sessions" }
        (news)
        section.card {
            p {
                "The browsers that are signed in to this account. End what you do not know, and then change the \
                 password on the " a href={ (paths::ACCOUNT) "#password" } { "account's page" } "."
            }
            div.scroll tabindex="0" role="region" aria-label="Sessions" {
                table.labelled {
                    thead {
                        tr {
                            th { "Browser" } th { "Network" } th { "Last used" } th { "Signed in (UTC)" }
                            th { "End" }
                        }
                    }
                    tbody { @for listed in &all { (row(&context.session, listed, context.store.now())) } }
                }
            }
            p.hint {
                "Browser and network are those of the last use, which is noted at most once an hour; of an address \
                 only its network is kept. A session ends 7 days after its last use, or 30 days after the sign-in. \
                 Of more than " (MAX_SESSIONS) ", the one ends that was not used for the longest time."
            }
        }
        section.card {
            h2 { "All at once" }
            p { "This ends all sessions, with this one. API tokens go on." }
            (everywhere_form(&context.session))
        }
        p { a href=(paths::ACCOUNT) { "Back to the account" } }
    };
    Ok(document("Sessions", Viewer::of(&context.session), &content))
}

/// On narrow screens each cell shows its own label in place of the column's head.
fn row(session: &Session, listed: &ListedSession, now: SystemTime) -> Markup {
    let or = |text: &str, otherwise: &str| {
        let text = if text.is_empty() { otherwise } else { text };
        text.to_owned()
    };
    let name = or(&listed.browser.name, "Unknown browser");
    html! {
        tr {
            td.when data-label="Browser" { (name) }
            td data-label="Network" { (or(&listed.browser.network, "unknown")) }
            td data-label="Last used" { (ago(listed.used, now)) }
            td data-label="Signed in (UTC)" { (time(listed.created)) }
            td.reason data-label="End" {
                @if listed.is_own {
                    strong { "This browser" }
                } @else {
                    form method="post" action=(paths::END_SESSION) {
                        (csrf_field(&session.csrf))
                        input type="hidden" name="session" value=(listed.id);
                        button.secondary type="submit" aria-label={ "End the session of " (name) } { "End" }
                    }
                }
            }
        }
    }
}

fn everywhere_form(session: &Session) -> Markup {
    html! {
        form method="post" action=(paths::SIGN_OUT_EVERYWHERE) {
            (csrf_field(&session.csrf))
            button.secondary type="submit" { "Sign out everywhere" }
        }
    }
}
