//! Random bytes for keys, codes and salts.

use super::error::AuthError;

/// `N` bytes from the system's cryptographic random generator.
///
/// # Errors
/// [`AuthError::Random`] if the system gives none.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], AuthError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| AuthError::Random(error.to_string()))?;
    Ok(bytes)
}
