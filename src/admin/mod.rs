//! Administration of the store from the command line, with or without a running server.
//!
//! Only one process can have the database open. So a running server listens on a socket in its data
//! folder ([`serve`]), and the command line sends its requests there; if no server listens, it
//! opens the store itself ([`AdminClient`]). Both ways end in the same function,
//! [`protocol::answer`].

mod address;
mod client;
mod protocol;
mod server;

pub use client::{AdminClient, backup, check, unexpected};
pub use protocol::{AccountUsage, AdminRequest, Answer, LimitChange};
pub use server::{AdminSocket, serve};

#[cfg(test)]
mod tests;
