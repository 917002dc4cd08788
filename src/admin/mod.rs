//! Looking after the store from the command line, beside a running server too.
//!
//! The database opens in one process only. So a running server listens on a socket in its data folder
//! ([`serve`]), and the command line asks there, or opens the store itself if nobody listens ([`Session`]).
//! Both ways end in the same function: [`protocol`] holds it with the requests and answers.

mod address;
mod client;
mod protocol;
mod server;

pub use client::{Session, backup, check};
pub use protocol::{AccountLine, Checked};
pub use server::{AdminSocket, serve};

#[cfg(test)]
mod tests;
