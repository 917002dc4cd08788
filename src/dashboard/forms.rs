//! Parts that forms share: the session's secret, and reasons why a form was not taken.

use super::context::Form;
use super::document::{Viewer, document};
use super::outcome::{Outcome, PageStatus};
use super::paths;
use crate::store::Session;
use maud::{Markup, html};

/// The hidden field with the session's secret.
pub fn csrf_field(csrf: &str) -> Markup {
    html! { input type="hidden" name="csrf" value=(csrf); }
}

/// Whether the form carries the session's secret, and so comes from a page that was made for this
/// session.
pub fn is_from_session(form: &Form, session: &Session) -> bool {
    session.csrf_matches(form.field("csrf"))
}

/// The page for a form without the session's secret.
pub fn stale_form(session: &Session) -> Outcome {
    let content = html! {
        section.card.narrow {
            h1 { "Please try again" }
            p { "The form was not made for this session, so nothing was changed." }
            p { a href=(paths::DASHBOARD) { "Back to the dashboard" } }
        }
    };
    Outcome::page_with(
        document("Please try again", Viewer::of(session), &content),
        PageStatus::Forbidden,
    )
}

/// The notice of the last action.
pub fn notice(done: Option<&str>) -> Markup {
    html! {
        @if let Some(done) = done { p.notice role="status" { (done) } }
    }
}

/// Why a form was not taken. Screen readers read it out at once.
pub fn alert(reason: Option<&str>) -> Markup {
    html! {
        @if let Some(reason) = reason { p.alert role="alert" { (reason) } }
    }
}

/// A reason of the store as a sentence: the store's reasons are made to stand after a colon, as on
/// the command line.
pub fn as_sentence(reason: &str) -> String {
    let mut rest = reason.chars();
    let first = rest.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(rest).chain(['.']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Account, AccountId};
    use std::time::SystemTime;

    #[test]
    fn reasons_become_sentences() {
        assert_eq!(
            as_sentence("the e-mail address has no @"),
            "The e-mail address has no @."
        );
    }

    #[test]
    fn a_form_must_carry_the_session_s_own_secret() {
        let account = Account {
            id: AccountId(1),
            email: "owner@example.org".to_owned(),
            created: SystemTime::UNIX_EPOCH,
            has_password: true,
        };
        let session = Session {
            account,
            csrf: "secret".to_owned(),
        };
        let form = |value: &str| Form::new(vec![("csrf".to_owned(), value.to_owned())]);
        assert!(is_from_session(&form("secret"), &session));
        assert!(!is_from_session(&form("secre"), &session));
        assert!(!is_from_session(&form(""), &session));
        assert!(!is_from_session(&Form::new(Vec::new()), &session));
    }
}
