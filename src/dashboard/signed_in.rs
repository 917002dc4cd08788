//! The pages and forms of visitors who are signed in.

use super::context::{Form, PageContext, SignedIn};
use super::forms::{is_from_session, stale_form};
use super::outcome::Outcome;
use super::way_back::{sign_in_first, signed_out};
use crate::store::StoreError;

/// The action of a form of a visitor who is signed in.
pub type SessionAction = fn(&SignedIn<'_>, &Form) -> Result<Outcome, StoreError>;

/// Shows a page to a visitor who is signed in; others sign in first.
pub fn show_signed_in<E: From<StoreError>>(
    context: &PageContext<'_>,
    show: impl FnOnce(&SignedIn<'_>) -> Result<Outcome, E>,
) -> Result<Outcome, E> {
    match context.session()? {
        Some(session) => show(&SignedIn { context, session }),
        None => Ok(sign_in_first(context)),
    }
}

/// Carries out a form that has the secret of its session. If the session has ended, the visitor
/// signs in again and comes back to `page`.
pub fn act_signed_in(
    context: &PageContext<'_>,
    form: &Form,
    page: &'static str,
    act: SessionAction,
) -> Result<Outcome, StoreError> {
    match context.session()? {
        Some(session) if is_from_session(form, &session) => {
            act(&SignedIn { context, session }, form)
        }
        Some(session) => Ok(stale_form(&session)),
        None => Ok(signed_out(page)),
    }
}
