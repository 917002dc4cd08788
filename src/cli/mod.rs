//! The command line.

pub mod account;
pub mod convert;
