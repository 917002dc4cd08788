//! Sign-up, sign-in and sign-out.

use super::duration::duration;
use super::layout::{Viewer, document};
use super::overview::{is_from_session, stale_form};
use super::{Form, Outcome, Page, SessionChange, Signup, Verdict, Visit, go, page};
use crate::store::{AccountId, CreateAccountError, SignInError, StoreError};
use maud::{Markup, html};

/// The sign-up page, with an invitation's code filled in if a link brought one.
///
/// # Errors
/// When the store fails.
pub fn sign_up_form(visit: &Visit<'_>, invite: &str) -> Result<Outcome, StoreError> {
    if visit.session()?.is_some() {
        return Ok(go("/dashboard"));
    }
    if visit.signup == Signup::Closed {
        return Ok(closed(Verdict::Fine));
    }
    Ok(page(sign_up_page(visit, "", invite, None)))
}

/// Makes the account and signs in.
///
/// # Errors
/// When the store fails.
pub fn sign_up(visit: &Visit<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let (email, password, invite) = (
        form.field("email"),
        form.field("password"),
        form.field("invite"),
    );
    let made = match visit.signup {
        Signup::Closed => return Ok(closed(Verdict::Forbidden)),
        Signup::Open => visit.store.create_account(email, Some(password)),
        Signup::Invite => visit.store.create_invited_account(email, password, invite),
    };
    let reason = match made {
        Ok(account) => return start_session(visit, account.id),
        Err(CreateAccountError::Email(reason) | CreateAccountError::Password(reason)) => {
            as_sentence(&reason)
        }
        Err(CreateAccountError::Exists) => {
            "There is an account with this address already. Sign in instead.".to_owned()
        }
        Err(CreateAccountError::Invite) => {
            "The invitation is mistyped, used or expired. Ask the server's operator for another."
                .to_owned()
        }
        Err(CreateAccountError::Store(error)) => return Err(error),
    };
    Ok(Outcome::Page(Page {
        markup: sign_up_page(visit, email, invite, Some(&reason)),
        verdict: Verdict::Rejected,
    }))
}

/// The sign-in page.
///
/// # Errors
/// When the store fails.
pub fn sign_in_form(visit: &Visit<'_>) -> Result<Outcome, StoreError> {
    if visit.session()?.is_some() {
        return Ok(go("/dashboard"));
    }
    Ok(page(sign_in_page(visit, "", None)))
}

/// Signs in, under a new session; the one that the browser had, if any, ends.
///
/// # Errors
/// When the store fails.
pub fn sign_in(visit: &Visit<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let email = form.field("email");
    let (reason, verdict) =
        match visit
            .store
            .sign_in_from(visit.device_cookie, email, form.field("password"))
        {
            Ok(account) => return start_session(visit, account.id),
            Err(SignInError::Wrong) => (
                "The address or the password is wrong.".to_owned(),
                Verdict::Rejected,
            ),
            Err(SignInError::TooMany { retry_after }) => (
                format!("Too many attempts. Try again in {}.", duration(retry_after)),
                Verdict::TooMany { retry_after },
            ),
            Err(SignInError::Store(error)) => return Err(error),
        };
    Ok(Outcome::Page(Page {
        markup: sign_in_page(visit, email, Some(&reason)),
        verdict,
    }))
}

/// Ends the session.
///
/// # Errors
/// When the store fails.
pub fn sign_out(visit: &Visit<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let (Some(cookie), Some(session)) = (visit.session_cookie, visit.session()?) else {
        return Ok(Outcome::Redirect {
            to: "/",
            session: SessionChange::End,
        });
    };
    if !is_from_session(form, &session) {
        return Ok(stale_form(&session));
    }
    visit.store.end_session(cookie)?;
    Ok(Outcome::Redirect {
        to: "/",
        session: SessionChange::End,
    })
}

/// Ends all sessions of the account, this one too: for whoever left a browser signed in somewhere.
///
/// # Errors
/// When the store fails.
pub fn sign_out_everywhere(visit: &Visit<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let Some(session) = visit.session()? else {
        return Ok(go("/signin"));
    };
    if !is_from_session(form, &session) {
        return Ok(stale_form(&session));
    }
    visit.store.end_all_sessions(session.account.id)?;
    Ok(Outcome::Redirect {
        to: "/",
        session: SessionChange::End,
    })
}

fn start_session(visit: &Visit<'_>, id: AccountId) -> Result<Outcome, StoreError> {
    if let Some(old) = visit.session_cookie {
        visit.store.end_session(old)?;
    }
    Ok(Outcome::Redirect {
        to: "/dashboard",
        session: SessionChange::Start {
            session: visit.store.start_session(id)?,
            device: visit.store.device_cookie(id)?,
        },
    })
}

/// The store's reasons are made to stand after a colon, as on the command line.
pub fn as_sentence(reason: &str) -> String {
    let mut rest = reason.chars();
    let first = rest.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(rest).chain(['.']).collect()
}

fn sign_up_page(visit: &Visit<'_>, email: &str, invite: &str, error: Option<&str>) -> Markup {
    let content = html! {
        section.card.narrow {
            h1 { "Create an account" }
            (alert(error))
            @if visit.signup == Signup::Invite {
                p { "Sign-up on this server is by invitation: its operator gives out codes, each good for one account." }
            }
            form method="post" action="/signup" {
                @if visit.signup == Signup::Invite {
                    label for="invite" { "Invitation code" }
                    input #invite type="text" name="invite" value=(invite) required maxlength="100"
                        spellcheck="false" autocomplete="off";
                }
                (email_field(email))
                label for="password" { "Password" }
                input #password type="password" name="password" required minlength="8" maxlength="1024"
                    autocomplete="new-password" aria-describedby="password-hint";
                p.hint #password-hint { "At least 8 characters." }
                button type="submit" { "Create account" }
            }
            p.hint { "You have one already? " a href="/signin" { "Sign in" } "." }
        }
    };
    document("Create an account", Viewer::Guest, &content)
}

fn sign_in_page(visit: &Visit<'_>, email: &str, error: Option<&str>) -> Markup {
    let content = html! {
        section.card.narrow {
            h1 { "Sign in" }
            (alert(error))
            form method="post" action="/signin" {
                (email_field(email))
                label for="password" { "Password" }
                input #password type="password" name="password" required autocomplete="current-password";
                button type="submit" { "Sign in" }
            }
            @match visit.signup {
                Signup::Open => p.hint { "No account yet? " a href="/signup" { "Create one" } "." },
                Signup::Invite => p.hint { "Invited? " a href="/signup" { "Create an account" } "." },
                Signup::Closed => p.hint { "Sign-up is closed: accounts on this server are made by its operator." },
            }
            p.hint {
                "No password yet, since the account was made on the command line, or forgotten? The server's operator                  sets one by " code { "towebp account password" } "."
            }
        }
    };
    document("Sign in", Viewer::Guest, &content)
}

fn email_field(email: &str) -> Markup {
    html! {
        label for="email" { "E-mail address" }
        input #email type="email" name="email" value=(email) required maxlength="254" autocomplete="username";
    }
}

/// What is wrong with what was sent, read out by screen readers at once.
pub fn alert(error: Option<&str>) -> Markup {
    html! {
        @if let Some(error) = error { p.alert role="alert" { (error) } }
    }
}

fn closed(verdict: Verdict) -> Outcome {
    let content = html! {
        section.card.narrow {
            h1 { "Sign-up is closed" }
            p { "Accounts on this server are made by its operator." }
            p { a href="/signin" { "Sign in" } }
        }
    };
    Outcome::Page(Page {
        markup: document("Sign-up is closed", Viewer::Guest, &content),
        verdict,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_become_sentences() {
        assert_eq!(
            as_sentence("the e-mail address has no @"),
            "The e-mail address has no @."
        );
    }
}
