//! A forgotten password, which a recovery code replaces.

use super::context::{Form, PageContext};
use super::document::{Viewer, card};
use super::forms::{alert, code_field, email_field, new_password_field, sign_in_failure};
use super::outcome::{Outcome, PageStatus};
use super::paths;
use crate::store::StoreError;
use maud::{Markup, html};

/// The page of a forgotten password.
pub fn recovery_form() -> Outcome {
    Outcome::page(recovery_page("", None))
}

/// Replaces the password, and leads to the sign-in.
pub fn recover(context: &PageContext<'_>, form: &Form) -> Result<Outcome, StoreError> {
    let (email, code) = (form.field("email"), form.field("code"));
    let reset =
        context
            .store
            .reset_password(context.device_cookie, email, code, form.field("password"));
    let Err(error) = reset else {
        return Ok(Outcome::redirect(format!(
            "{}?recovered=yes",
            paths::SIGN_IN
        )));
    };
    let (reason, status): (String, PageStatus) =
        sign_in_failure(error, "The address or the recovery code is wrong.")?;
    let page = recovery_page(email, Some(&reason));
    Ok(Outcome::page_with(page, status))
}

fn recovery_page(email: &str, reason: Option<&str>) -> Markup {
    let content = html! {
        (alert(reason))
        p { "A recovery code, which you got with the second factor, sets another password. All browsers are signed out." }
        form method="post" action=(paths::RECOVER) {
            (email_field(email))
            (code_field("Recovery code", "It has 16 letters and digits, and is used up."))
            (new_password_field("New password"))
            button type="submit" { "Set the password" }
        }
        p.hint {
            "Without a code, the server's operator sets a password by " code { "towebp account password" } "."
        }
        p.hint { a href=(paths::SIGN_IN) { "Back to the sign-in" } }
    };
    card("Forgotten password", Viewer::Guest, &content)
}
