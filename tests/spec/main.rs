//! The specification, line by line, against the built server over a real socket.

#[path = "../support/mod.rs"]
mod support;

mod docs;
mod goals;
mod limits;
mod npm;
mod packages;
mod parameters;
mod rules;
mod silent;
mod sizes;
mod success;
mod watermarks;
