//! Codes that open something to whoever has them: session cookies and invitation codes.
//!
//! A code is 256 random bits, written as 43 base-62 digits. The database holds only its SHA-256, so
//! a stolen copy of the database opens no session and makes no account.

use sha2::{Digest, Sha256};

use super::base62;
use super::error::AuthError;
use super::random::random_bytes;
use super::secret::Secret;

/// SHA-256 of a code's 43 digits: the key under which the store keeps what the code opens.
pub type CodeHash = [u8; 32];

/// A session cookie's value or an invitation code. It has no `Debug`, so that it cannot reach a
/// log.
pub struct Code(String);

impl Code {
    /// A new random code.
    ///
    /// # Errors
    /// [`AuthError::Random`] if the system gives no random bytes.
    pub fn random() -> Result<Code, AuthError> {
        Ok(Code(base62::encode_256(&random_bytes()?)))
    }

    /// Reads a code that somebody sent; `None` if the text cannot be one of ours.
    pub fn parse(text: &str) -> Option<Code> {
        base62::decode_256(text).map(|_| Code(text.to_owned()))
    }

    /// The key under which the store keeps what this code opens.
    pub fn hash(&self) -> CodeHash {
        Sha256::digest(&self.0).into()
    }

    /// The value that forms of the session with this cookie must carry. It can be computed neither
    /// from the database nor by another site.
    pub fn csrf(&self, secret: &Secret) -> String {
        base62::encode_256(&secret.mac("towebp csrf", &[self.0.as_bytes()]))
    }

    /// The 43 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_from_other_texts() {
        let code = Code::random().unwrap();
        let text = code.as_str();
        assert_eq!(text.len(), 43);
        assert!(Code::parse(text).is_some());
        assert!(Code::parse(&text[1..]).is_none());
        assert!(Code::parse("").is_none());
        assert_ne!(text, Code::random().unwrap().as_str());
    }
}
