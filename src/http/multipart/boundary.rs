//! The boundary that `Content-Type` names (RFC 2046, section 5.1.1).

use super::error::FormError;
use super::part::Parameters;

/// The most characters of a boundary.
const LONGEST: usize = 70;

/// The boundary of a form of this `Content-Type`; `None` if it is no form with parts.
///
/// # Errors
/// [`FormError`], if the boundary is missing or cannot be used.
pub fn of_content_type(content_type: &str) -> Result<Option<String>, FormError> {
    let (media_type, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    if !media_type
        .trim()
        .eq_ignore_ascii_case("multipart/form-data")
    {
        return Ok(None);
    }
    let parameters = Parameters::parse(parameters)
        .map_err(|()| FormError::BoundaryInvalid(parameters.trim().to_owned()))?;
    let mut given = parameters.values("boundary");
    let boundary = given.next().ok_or(FormError::BoundaryMissing)?.to_owned();
    let is_once = given.next().is_none();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte);
    let is_boundary = (1..=LONGEST).contains(&boundary.len())
        && boundary.bytes().all(is_plain)
        && !boundary.ends_with(' ');
    if is_once && is_boundary {
        Ok(Some(boundary))
    } else {
        Err(FormError::BoundaryInvalid(boundary))
    }
}
