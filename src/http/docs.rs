//! The pages of the documentation.

use super::pages::{Answer, show};
use super::request::{Body, Request};
use super::state::AppState;
use crate::dashboard;

/// The index of the documentation.
pub fn index(state: &AppState, request: &Request, _body: &mut Body) -> Answer {
    show(state, request, |context, _| {
        Ok(dashboard::docs_index(context)?)
    })
}

/// The page at the path of the request.
pub fn page(state: &AppState, request: &Request, _body: &mut Body) -> Answer {
    show(state, request, |context, _| {
        Ok(dashboard::docs_page(context, &request.path)?)
    })
}
