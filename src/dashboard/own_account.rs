//! What owners do with their accounts: change the password, delete it all. Both ask for the present password, and count
//! wrong ones as sign-in does.

use super::account::{alert, as_sentence};
use super::duration::duration;
use super::layout::{Viewer, document, message};
use super::overview::{is_from_session, stale_form};
use super::{Form, Outcome, Page, SessionChange, Verdict, Visit, go, page};
use crate::store::{OwnerError, Session, StoreError, UsageTotals};
use maud::{Markup, html};

/// Both forms, folded away.
pub fn account_card(session: &Session, totals: &UsageTotals) -> Markup {
    html! {
        section.card #account {
            h2 { "Account" }
            @if session.account.has_password {
                details {
                    summary { "Change the password" }
                    (password_form(session))
                }
                details {
                    summary { "Delete the account" }
                    (deletion_form(session, totals))
                }
            } @else {
                p {
                    "This account has no password. The server's operator sets one by "
                    code { "towebp account password" } "."
                }
            }
        }
    }
}

/// Replaces the password, and ends all other sessions.
///
/// # Errors
/// When the store fails.
pub fn change_password(visit: &Visit<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let (Some(cookie), Some(session)) = (visit.session_cookie, visit.session()?) else {
        return Ok(go("/signin"));
    };
    if !is_from_session(form, &session) {
        return Ok(stale_form(&session));
    }
    let changed = visit
        .store
        .change_password(cookie, form.field("present"), form.field("new"));
    match changed {
        Ok(account) => Ok(Outcome::Redirect {
            to: "/account/changed",
            session: SessionChange::Renew {
                device: visit.store.device_cookie(account.id)?,
            },
        }),
        Err(error) => {
            let form = password_form(&session);
            rejected(&session, "Change the password", &form, error)
        }
    }
}

/// Deletes the account with its sessions and its history.
///
/// # Errors
/// When the store fails.
pub fn delete_account(visit: &Visit<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let (Some(cookie), Some(session)) = (visit.session_cookie, visit.session()?) else {
        return Ok(go("/signin"));
    };
    if !is_from_session(form, &session) {
        return Ok(stale_form(&session));
    }
    let deletion = if form.field("confirmed") == "yes" {
        visit
            .store
            .delete_own_account(cookie, form.field("password"))
            .map_err(Some)
    } else {
        Err(None)
    };
    let error = match deletion {
        Ok(()) => {
            return Ok(Outcome::Redirect {
                to: "/account/deleted",
                session: SessionChange::Forget,
            });
        }
        Err(error) => error,
    };
    let totals = visit.store.usage_totals(session.account.id)?;
    let (title, form) = ("Delete the account", deletion_form(&session, &totals));
    if let Some(error) = error {
        return rejected(&session, title, &form, error);
    }
    let reason = "Nothing was deleted: tick the box to confirm that you have understood.";
    Ok(form_again(
        &session,
        title,
        &form,
        reason,
        Verdict::Rejected,
    ))
}

/// The page after a change of the password.
///
/// # Errors
/// When the store fails.
pub fn password_changed(visit: &Visit<'_>) -> Result<Outcome, StoreError> {
    let Some(session) = visit.session()? else {
        return Ok(go("/signin"));
    };
    let content = html! {
        section.card.narrow {
            h1 { "The password is changed" }
            p { "All other browsers are signed out. The API token is the same as before." }
            p { a href="/dashboard" { "Back to the dashboard" } }
        }
    };
    Ok(page(document(
        "The password is changed",
        viewer(&session),
        &content,
    )))
}

/// The page after a deletion.
pub fn deleted() -> Outcome {
    page(message(
        "The account is deleted",
        "Its API token is refused from now on, and its usage history is gone.",
    ))
}

fn password_form(session: &Session) -> Markup {
    html! {
        form method="post" action="/account/password" {
            (hidden_fields(session))
            label for="present-password" { "Present password" }
            input #present-password type="password" name="present" required maxlength="1024"
                autocomplete="current-password";
            label for="new-password" { "New password" }
            input #new-password type="password" name="new" required minlength="8" maxlength="1024"
                autocomplete="new-password" aria-describedby="new-password-hint";
            p.hint #new-password-hint {
                "At least 8 characters. All other browsers are signed out; the API token stays as it is."
            }
            button type="submit" { "Change the password" }
        }
    }
}

fn deletion_form(session: &Session, totals: &UsageTotals) -> Markup {
    html! {
        form method="post" action="/account/delete" {
            (hidden_fields(session))
            p {
                "This deletes the account " strong { (session.account.email) } " with its API token, its sessions and \
                 its usage history (conversions: " (totals.conversions) "), at once. There is no way back; the \
                 history can be kept as " a href="/api/usage.csv" { "CSV" } " before."
            }
            label for="delete-password" { "Password" }
            input #delete-password type="password" name="password" required maxlength="1024"
                autocomplete="current-password";
            label.check {
                input type="checkbox" name="confirmed" value="yes" required;
                "I have understood that all of it is lost"
            }
            button.danger type="submit" { "Delete the account now" }
        }
    }
}

/// The session's secret, and, for programs that keep passwords, whose password it is.
fn hidden_fields(session: &Session) -> Markup {
    html! {
        input type="hidden" name="csrf" value=(session.csrf);
        input type="text" name="email" value=(session.account.email) autocomplete="username" readonly hidden;
    }
}

fn rejected(
    session: &Session,
    title: &str,
    form: &Markup,
    error: OwnerError,
) -> Result<Outcome, StoreError> {
    let (reason, verdict) = match error {
        OwnerError::SignedOut => return Ok(go("/signin")),
        OwnerError::Wrong => (
            "The present password is wrong.".to_owned(),
            Verdict::Rejected,
        ),
        OwnerError::NewPassword(reason) => (as_sentence(&reason), Verdict::Rejected),
        OwnerError::TooMany { retry_after } => (
            format!("Too many attempts. Try again in {}.", duration(retry_after)),
            Verdict::TooMany { retry_after },
        ),
        OwnerError::Store(error) => return Err(error),
    };
    Ok(form_again(session, title, form, &reason, verdict))
}

fn form_again(
    session: &Session,
    title: &str,
    form: &Markup,
    reason: &str,
    verdict: Verdict,
) -> Outcome {
    let content = html! {
        section.card.narrow {
            h1 { (title) }
            (alert(Some(reason)))
            (form)
            p.hint { a href="/dashboard" { "Back to the dashboard" } }
        }
    };
    Outcome::Page(Page {
        markup: document(title, viewer(session), &content),
        verdict,
    })
}

fn viewer(session: &Session) -> Viewer<'_> {
    Viewer::Account {
        email: &session.account.email,
        csrf: &session.csrf,
    }
}
