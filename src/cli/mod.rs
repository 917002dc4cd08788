//! The command line.

pub mod convert;
