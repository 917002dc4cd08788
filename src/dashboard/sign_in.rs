//! Sign-up, sign-in and sign-out.

use super::context::{Form, PageContext, Signup};
use super::document::{Viewer, card, document};
use super::forms::{
    alert, as_sentence, code_field, email_field, is_from_session, new_password_field, notice,
    sign_in_failure, stale_form,
};
use super::outcome::{Outcome, PageStatus, SessionChange};
use super::paths;
use super::way_back::after_sign_in;
use crate::store::{AccountId, CreateAccountError, SignIn, SignInError, StoreError};
use maud::{Markup, html};
use std::borrow::Cow;

/// The sign-up page. `invite` is the invitation code of the link that led here, or empty.
pub fn sign_up_form(context: &PageContext<'_>, invite: &str) -> Result<Outcome, StoreError> {
    if context.session()?.is_some() {
        return Ok(Outcome::redirect(paths::DASHBOARD));
    }
    if context.signup == Signup::Closed {
        return Ok(closed(PageStatus::Shown));
    }
    Ok(Outcome::page(sign_up_page(context, "", invite, None)))
}

/// Makes the account and signs in.
pub fn sign_up(context: &PageContext<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let (email, password, invite) = (
        form.field("email"),
        form.field("password"),
        form.field("invite"),
    );
    let made = match context.signup {
        Signup::Closed => return Ok(closed(PageStatus::Forbidden)),
        Signup::Open => context.store.create_account(email, Some(password)),
        Signup::Invite => context
            .store
            .create_invited_account(email, password, invite),
    };
    let reason = match made {
        Ok(account) => return start_session(context, account.id, paths::DASHBOARD.into()),
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
    Ok(Outcome::page_with(
        sign_up_page(context, email, invite, Some(&reason)),
        PageStatus::Invalid,
    ))
}

/// The sign-in page, with a notice if a form of a session that has ended led here, or if a recovery
/// code has just set the password. `next` is the page to go to after the sign-in.
pub fn sign_in_form(
    context: &PageContext<'_>,
    has_ended: bool,
    is_recovered: bool,
    next: &str,
) -> Result<Outcome, StoreError> {
    if context.session()?.is_some() {
        return Ok(Outcome::redirect(after_sign_in(next)));
    }
    let reason = has_ended.then_some(
        "You were signed out meanwhile, so nothing was changed. Sign in, and do it again.",
    );
    let done = is_recovered.then_some("The password is set. Sign in by it.");
    let content = html! { (notice(done)) (sign_in_card(context, "", next, reason)) };
    Ok(Outcome::page(document("Sign in", Viewer::Guest, &content)))
}

/// Signs in with a new session, and ends the one that the browser had, if any.
pub fn sign_in(context: &PageContext<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let email = form.field("email");
    let (password, next) = (form.field("password"), form.field("next"));
    match context
        .store
        .sign_in_from(context.device_cookie, email, password)
    {
        Ok(SignIn::Done(account)) => start_session(context, account.id, after_sign_in(next)),
        Ok(SignIn::NeedsCode { ticket }) => Ok(Outcome::page(code_page(&ticket, next, None))),
        Err(error) => {
            let (reason, status) = sign_in_failure(error, "The address or the password is wrong.")?;
            let page = sign_in_page(context, email, next, Some(&reason));
            Ok(Outcome::page_with(page, status))
        }
    }
}

/// Signs in with a code of the second factor, after the password.
pub fn sign_in_by_code(context: &PageContext<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let (ticket, next) = (form.field("ticket"), form.field("next"));
    let signed_in =
        context
            .store
            .sign_in_by_code(context.device_cookie, ticket, form.field("code"));
    match signed_in {
        Ok(account) => start_session(context, account.id, after_sign_in(next)),
        Err(error) => {
            let has_ended = matches!(error, SignInError::Ended);
            let wrong = "The code is wrong, or was used before. The app shows another one every 30 seconds.";
            let (reason, status) = sign_in_failure(error, wrong)?;
            let page = if has_ended {
                sign_in_page(context, "", next, Some(&reason))
            } else {
                code_page(ticket, next, Some(&reason))
            };
            Ok(Outcome::page_with(page, status))
        }
    }
}

/// Ends the session.
pub fn sign_out(context: &PageContext<'_>, form: &Form) -> Result<Outcome, StoreError> {
    if let Some(session) = context.session()? {
        if !is_from_session(form, &session) {
            return Ok(stale_form(&session));
        }
        context.store.end_session(context.session_cookie())?;
    }
    Ok(Outcome::signed_out())
}

fn start_session(
    context: &PageContext<'_>,
    id: AccountId,
    to: Cow<'static, str>,
) -> Result<Outcome, StoreError> {
    if let Some(old) = context.session_cookie {
        context.store.end_session(old)?;
    }
    let started = SessionChange::Start {
        session: context.store.start_session(id, &context.browser)?,
        device: context.store.device_cookie(id)?,
    };
    Ok(Outcome::redirect_with(to, started))
}

fn sign_up_page(
    context: &PageContext<'_>,
    email: &str,
    invite: &str,
    error: Option<&str>,
) -> Markup {
    let content = html! {
        (alert(error))
        @if context.signup == Signup::Invite {
            p { "Sign-up on this server is by invitation: its operator gives out codes, each good for one account." }
        }
        form method="post" action=(paths::SIGN_UP) {
            @if context.signup == Signup::Invite {
                label for="invite" { "Invitation code" }
                input #invite type="text" name="invite" value=(invite) required maxlength="100"
                    spellcheck="false" autocomplete="off";
            }
            (email_field(email))
            (new_password_field("Password"))
            button type="submit" { "Create account" }
        }
        p.hint { "You have one already? " a href=(paths::SIGN_IN) { "Sign in" } "." }
    };
    card("Create an account", Viewer::Guest, &content)
}

fn sign_in_page(context: &PageContext<'_>, email: &str, next: &str, error: Option<&str>) -> Markup {
    let content = sign_in_card(context, email, next, error);
    document("Sign in", Viewer::Guest, &content)
}

fn sign_in_card(context: &PageContext<'_>, email: &str, next: &str, error: Option<&str>) -> Markup {
    html! {
        section.card.narrow {
            h1 { "Sign in" }
            (alert(error))
            form method="post" action=(paths::SIGN_IN) {
                @if !next.is_empty() { input type="hidden" name="next" value=(after_sign_in(next)); }
                (email_field(email))
                label for="password" { "Password" }
                input #password type="password" name="password" required
                    autocomplete="current-password";
                button type="submit" { "Sign in" }
            }
            @match context.signup {
                Signup::Open => p.hint {
                    "No account yet? " a href=(paths::SIGN_UP) { "Create one" } "."
                },
                Signup::Invite => p.hint {
                    "Invited? " a href=(paths::SIGN_UP) { "Create an account" } "."
                },
                Signup::Closed => p.hint {
                    "Sign-up is closed: accounts on this server are made by its operator."
                },
            }
            p.hint {
                "Forgotten the password? " a href=(paths::RECOVER) { "Use a recovery code" } ". Without one, or for an \
                 account that was made on the command line, the server's operator sets a password by "
                code { "towebp account password" } "."
            }
        }
    }
}

/// The page after the password of an account with a second factor.
fn code_page(ticket: &str, next: &str, error: Option<&str>) -> Markup {
    let content = html! {
        (alert(error))
        form method="post" action=(paths::SIGN_IN_CODE) {
            input type="hidden" name="ticket" value=(ticket);
            @if !next.is_empty() { input type="hidden" name="next" value=(after_sign_in(next)); }
            (code_field("Code", "The six digits that the authenticator app shows, or a recovery code."))
            button type="submit" { "Sign in" }
        }
        p.hint {
            "Lost both? The server's operator turns the second factor off by "
            code { "towebp account second-factor-off" } "."
        }
    };
    card("Sign in", Viewer::Guest, &content)
}

fn closed(status: PageStatus) -> Outcome {
    let content = html! {
        p { "Accounts on this server are made by its operator." }
        p { a href=(paths::SIGN_IN) { "Sign in" } }
    };
    Outcome::page_with(card("Sign-up is closed", Viewer::Guest, &content), status)
}
