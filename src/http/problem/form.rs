//! Forms with parts that cannot be read.

use super::{Kind, Problem};
use crate::http::multipart::FormError;

impl From<FormError> for Problem {
    fn from(error: FormError) -> Problem {
        let kind = match error {
            // The same code as for a query.
            FormError::NotUtf8(_) => Kind::InvalidParameter,
            _ => Kind::InvalidForm,
        };
        Problem::new(kind, error.to_string())
    }
}
