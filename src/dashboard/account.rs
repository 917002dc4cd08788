//! Changes of an account by its owner: of the e-mail address and the password, and its deletion.
//! All of them need the present password, and count wrong ones as sign-in does.

use super::context::{Form, SignedIn};
use super::document::{Viewer, card, document, message};
use super::forms::{alert, hidden_fields, owner_failure};
use super::outcome::{Outcome, PageStatus, SessionChange};
use super::paths;
use super::second_factor::second_factor_card;
use super::sessions::sessions_card;
use super::way_back::signed_out;
use crate::store::{OwnerError, Session, StoreError, UsageTotals};
use maud::{Markup, html};

/// The page of the account.
pub fn account(context: &SignedIn<'_>) -> Result<Outcome, StoreError> {
    let totals = context.store.usage_totals(context.session.account.id)?;
    let content = html! {
        h1 { "Account" }
        @if context.session.account.has_password {
            section.card #email {
                h2 { "E-mail address" }
                (email_form(&context.session, ""))
            }
            section.card #password {
                h2 { "Password" }
                (password_form(&context.session))
            }
            (second_factor_card(&context.session))
        } @else {
            section.card #password {
                h2 { "Password" }
                p {
                    "This account has no password. The server's operator sets one by "
                    code { "towebp account password" } "."
                }
            }
        }
        (sessions_card(&context.session))
        @if context.session.account.has_password {
            section.card #delete {
                h2 { "Delete the account" }
                details {
                    summary { "Delete account…" }
                    (deletion_form(&context.session, &totals))
                }
            }
        }
    };
    Ok(Outcome::page(document(
        "Account",
        Viewer::of(&context.session),
        &content,
    )))
}

/// Replaces the e-mail address.
pub fn change_email(context: &SignedIn<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let (cookie, new) = (context.session_cookie(), form.field("new"));
    let changed = context
        .store
        .change_email(cookie, form.field("password"), new);
    match changed {
        Ok(_) => Ok(Outcome::redirect(paths::EMAIL_CHANGED)),
        Err(error) => {
            let form = email_form(&context.session, new);
            rejected(&context.session, "Change the e-mail address", &form, error)
        }
    }
}

/// Replaces the password, and ends all other sessions.
pub fn change_password(context: &SignedIn<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let (cookie, present) = (context.session_cookie(), form.field("present"));
    let changed = context
        .store
        .change_password(cookie, present, form.field("new"));
    match changed {
        Ok(account) => {
            let device = context.store.device_cookie(account.id)?;
            let renewed = SessionChange::Renew { device };
            Ok(Outcome::redirect_with(paths::PASSWORD_CHANGED, renewed))
        }
        Err(error) => {
            let form = password_form(&context.session);
            rejected(&context.session, "Change the password", &form, error)
        }
    }
}

/// Deletes the account with its sessions and its history.
pub fn delete_account(context: &SignedIn<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let is_confirmed = form.field("confirmed") == "yes";
    let deletion = is_confirmed.then(|| {
        let (cookie, password) = (context.session_cookie(), form.field("password"));
        context.store.delete_own_account(cookie, password)
    });
    if let Some(Ok(())) = deletion {
        let to = paths::ACCOUNT_DELETED;
        return Ok(Outcome::redirect_with(to, SessionChange::Forget));
    }
    let totals = context.store.usage_totals(context.session.account.id)?;
    let (title, form) = (
        "Delete the account",
        deletion_form(&context.session, &totals),
    );
    if let Some(Err(error)) = deletion {
        return rejected(&context.session, title, &form, error);
    }
    let reason = "Nothing was deleted: tick the box to confirm that you have understood.";
    Ok(form_again(
        &context.session,
        title,
        &form,
        reason,
        PageStatus::Invalid,
    ))
}

/// The page after a change of the e-mail address.
pub fn email_changed(session: &Session) -> Outcome {
    let text = html! {
        "From now on you sign in as " strong { (session.account.email) } ". The password, the API tokens and \
         all sessions are the same as before."
    };
    changed(session, "The e-mail address is changed", &text)
}

/// The page after a change of the password.
pub fn password_changed(session: &Session) -> Outcome {
    let text = html! { "All other browsers are signed out. The API token is the same as before." };
    changed(session, "The password is changed", &text)
}

/// The page after the deletion of an account.
pub fn account_deleted() -> Outcome {
    Outcome::page(message(
        "The account is deleted",
        "Its API token is refused from now on, and its usage history is gone.",
    ))
}

fn changed(session: &Session, title: &str, text: &Markup) -> Outcome {
    let content = html! {
        p { (text) }
        p { a href=(paths::ACCOUNT) { "Back to the account" } }
    };
    Outcome::page(card(title, Viewer::of(session), &content))
}

/// `new` is the address that was typed before.
fn email_form(session: &Session, new: &str) -> Markup {
    html! {
        form method="post" action=(paths::CHANGE_EMAIL) {
            (hidden_fields(session))
            p { "The account's address is " strong { (session.account.email) } "." }
            label for="new-email" { "New e-mail address" }
            input #new-email type="email" name="new" value=(new) required maxlength="254" autocomplete="email"
                aria-describedby="new-email-hint";
            p.hint #new-email-hint {
                "You sign in by it. No e-mail is sent to find out whether it is right. Sessions and API tokens stay \
                 as they are."
            }
            label for="email-password" { "Password" }
            input #email-password type="password" name="password" required maxlength="1024"
                autocomplete="current-password";
            button type="submit" { "Change the e-mail address" }
        }
    }
}

fn password_form(session: &Session) -> Markup {
    html! {
        form method="post" action=(paths::CHANGE_PASSWORD) {
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
        form method="post" action=(paths::DELETE_ACCOUNT) {
            (hidden_fields(session))
            p {
                "This deletes the account " strong { (session.account.email) } " with its API tokens, its sessions \
                 and its usage history (conversions: " (totals.conversions) "), at once. There is no way back."
            }
            @if totals.conversions > 0 {
                p {
                    "First get the history, if you want to keep it: all of it as "
                    a href=(paths::USAGE_CSV) { "CSV" } ", or as " a href=(paths::USAGE_LINES) { "JSON" }
                    ", one object a line."
                }
            }
            label for="delete-password" { "Password" }
            input #delete-password type="password" name="password" required maxlength="1024"
                autocomplete="current-password";
            label.check {
                input type="checkbox" name="confirmed" value="yes" required;
                "I have understood that all of it is lost"
            }
            button.danger type="submit" { "Delete account" }
        }
    }
}

fn rejected(
    session: &Session,
    title: &str,
    form: &Markup,
    error: OwnerError,
) -> Result<Outcome, StoreError> {
    let Some((reason, status)) = owner_failure(error)? else {
        return Ok(signed_out(paths::ACCOUNT));
    };
    Ok(form_again(session, title, form, &reason, status))
}

fn form_again(
    session: &Session,
    title: &str,
    form: &Markup,
    reason: &str,
    status: PageStatus,
) -> Outcome {
    let content = html! {
        (alert(Some(reason)))
        (form)
        p.hint { a href=(paths::ACCOUNT) { "Back to the account" } }
    };
    Outcome::page_with(card(title, Viewer::of(session), &content), status)
}
