//! Parts that forms share: the session's secret, and reasons why a form was not taken.

use super::context::Form;
use super::document::{Viewer, card};
use super::duration::duration;
use super::outcome::{Outcome, PageStatus};
use super::paths;
use crate::store::{OwnerError, Session, SignInError, StoreError};
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
        p { "The form was not made for this session, so nothing was changed." }
        p { a href=(paths::DASHBOARD) { "Back to the dashboard" } }
    };
    Outcome::page_with(
        card("Please try again", Viewer::of(session), &content),
        PageStatus::Forbidden,
    )
}

/// The session's secret, and, for password managers, the address that the password belongs to.
pub fn hidden_fields(session: &Session) -> Markup {
    html! {
        (csrf_field(&session.csrf))
        input type="text" name="email" value=(session.account.email) autocomplete="username"
            readonly hidden;
    }
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

/// The field for the address of an account.
pub fn email_field(email: &str) -> Markup {
    html! {
        label for="email" { "E-mail address" }
        input #email type="email" name="email" value=(email) required maxlength="254"
            autocomplete="username";
    }
}

/// The field for the password of a new account, or for another one.
pub fn new_password_field(name: &str) -> Markup {
    html! {
        label for="password" { (name) }
        input #password type="password" name="password" required minlength="8"
            maxlength="1024" autocomplete="new-password" aria-describedby="password-hint";
        p.hint #password-hint { "At least 8 characters, and none that many people have." }
    }
}

/// The field for a code of an authenticator app, or a recovery code.
pub fn code_field(name: &str, hint: &str) -> Markup {
    html! {
        label for="code" { (name) }
        input #code type="text" name="code" required maxlength="40" spellcheck="false" autocapitalize="off"
            autocomplete="one-time-code" aria-describedby="code-hint";
        p.hint #code-hint { (hint) }
    }
}

/// Why somebody was not signed in. `wrong` is the sentence about what was given.
///
/// # Errors
/// The store failed.
pub fn sign_in_failure(
    error: SignInError,
    wrong: &str,
) -> Result<(String, PageStatus), StoreError> {
    let reason = match error {
        SignInError::Wrong => wrong.to_owned(),
        SignInError::Ended => "The sign-in took too long. Begin again.".to_owned(),
        SignInError::NewPassword(reason) => as_sentence(&reason),
        SignInError::TooMany(wait) => return Ok(too_many(wait.seconds)),
        SignInError::Store(error) => return Err(error),
    };
    Ok((reason, PageStatus::Invalid))
}

/// Why an account was not changed; `None` if its owner is signed out.
///
/// # Errors
/// The store failed.
pub fn owner_failure(error: OwnerError) -> Result<Option<(String, PageStatus)>, StoreError> {
    let reason = match error {
        OwnerError::SignedOut | OwnerError::NoAccount => return Ok(None),
        OwnerError::Wrong => "The present password is wrong.".to_owned(),
        OwnerError::WrongCode => {
            "The code is wrong. If the app's clock is right, scan the picture again.".to_owned()
        }
        OwnerError::NewPassword(reason) | OwnerError::NewEmail(reason) => as_sentence(&reason),
        OwnerError::EmailTaken => "Another account has this address already.".to_owned(),
        OwnerError::TooMany(wait) => return Ok(Some(too_many(wait.seconds))),
        OwnerError::Store(error) => return Err(error),
    };
    Ok(Some((reason, PageStatus::Invalid)))
}

fn too_many(retry_after: u64) -> (String, PageStatus) {
    (
        format!("Too many attempts. Try again in {}.", duration(retry_after)),
        PageStatus::TooManyAttempts { retry_after },
    )
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
            has_second_factor: false,
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
