//! The HTTP service: requests in, responses out. It alone knows status codes.
//!
//! [`serve`] runs the [`front`](crate::front) with its worker threads, some for conversions
//! and some for pages. By a request's head alone, [`admitted`] decides on the front's event loop
//! whether the body is wanted; a worker then takes the whole request and answers it.
//! One table ([`routes`]) has the handler of each path. Handlers give a [`response`] or a
//! [`problem`], for which there is one table, too. [`openapi`] makes the description of the API of
//! these tables.

mod admitted;
mod asset;
mod convert;
mod converted;
mod cors;
mod credentials;
mod csv;
mod exchange;
mod failures;
mod health;
mod metrics;
mod metrics_listener;
mod multipart;
mod openapi;
mod pages;
mod pairs;
mod problem;
mod rate_limit_headers;
mod readiness;
mod request;
mod response;
mod response_headers;
mod routes;
mod same_site;
mod server;
mod settings;
mod state;
mod suggestion;
mod usage;
mod watermark_fetch;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use crate::dashboard::Signup;
pub use cors::AllowedOrigin;
pub use metrics::{Gauges, Metrics};
pub use metrics_listener::serve_metrics;
pub use openapi::describe;
pub use readiness::Readiness;
pub use server::serve;
pub use settings::{LONGEST_BODY, SIGNIN_WINDOW, SIGNUP_WINDOW, Settings};
pub use state::{AppState, Limiters};
pub use suggestion::nearest;

/// Forms, for a fuzz target.
#[doc(hidden)]
pub use multipart::FormReader;

/// The tables, for the script that writes them into the documentation.
#[doc(hidden)]
pub use convert::DOWNLOAD;
#[doc(hidden)]
pub use problem::{Kind, PROBLEMS, ProblemRow};
#[doc(hidden)]
pub use response_headers::{RESPONSE_HEADERS, ResponseHeader};
