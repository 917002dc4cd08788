//! Parameters that cannot be used.

use std::fmt;

/// A parameter that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// The parameter's name.
    pub name: &'static str,
    /// The kind of mistake, for callers that have other names for parameters.
    pub problem: ParamProblem,
    /// The given and the allowed values, as a sentence for the caller.
    pub detail: String,
    /// Machine-readable: `invalid_parameter`, `repeated_parameter` or `fixed_parameter`.
    pub code: &'static str,
}

/// The kind of mistake in a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamProblem {
    /// The value is not allowed.
    Value {
        /// The beginning of the value.
        given: String,
        /// The allowed values, in words.
        allowed: String,
    },
    /// Another parameter was given, beside which this one is not allowed.
    Conflict {
        /// The other one.
        other: &'static str,
        /// The reason, after "since".
        since: &'static str,
    },
    /// Something that has to do with requests alone.
    Request,
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for ParamError {}
