//! The server's secret: the key from which tokens, device cookies and form values are computed.
//!
//! It is kept outside the database (see `store/secret_file.rs`), so that a stolen copy of the
//! database alone yields no working token. Replacing it makes every token issued so far invalid.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::error::AuthError;
use super::random::random_bytes;

/// 32 random bytes. It has neither `Debug` nor `PartialEq`: it is not to be printed or compared.
pub struct Secret([u8; 32]);

impl Secret {
    /// A new random secret.
    ///
    /// # Errors
    /// [`AuthError::Random`] if the system gives no random bytes.
    pub fn random() -> Result<Secret, AuthError> {
        Ok(Secret(random_bytes()?))
    }

    /// Reads 64 hexadecimal digits with ASCII blanks around them; `None` for anything else.
    pub fn parse(text: &str) -> Option<Secret> {
        let digits = text.trim_ascii().as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = hex_value(pair[0])? << 4 | hex_value(pair[1])?;
        }
        Some(Secret(bytes))
    }

    /// 64 hexadecimal digits and a line feed: what the secret file holds.
    pub fn to_text(&self) -> String {
        use std::fmt::Write;
        let mut text = String::with_capacity(65);
        for byte in self.0 {
            write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        }
        text.push('\n');
        text
    }

    /// HMAC-SHA256 under this secret of `purpose`, a zero byte and the concatenated `parts`.
    ///
    /// `purpose` keeps a value computed for one use from serving another. Every part has a fixed
    /// size, except that the last one may vary, so that two lists of parts never give the same
    /// bytes.
    pub fn mac(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any size");
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// 64 bits of an HMAC under this secret: distinguishes it from other secrets without revealing
    /// it.
    pub fn mark(&self) -> u64 {
        let mac = self.mac("towebp mark", &[]);
        u64::from_be_bytes(*mac.first_chunk().expect("an HMAC-SHA256 has 32 bytes"))
    }
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_from_its_text() {
        let secret = Secret::random().unwrap();
        let text = secret.to_text();
        assert_eq!(text.len(), 65);
        assert_eq!(Secret::parse(&text).unwrap().0, secret.0);
        assert_eq!(Secret::parse(&text.to_uppercase()).unwrap().0, secret.0);
    }

    #[test]
    fn other_texts_are_no_secret() {
        let digits = |digit: &str, count| digit.repeat(count);
        for text in [
            "",
            "hunter2",
            &digits("a", 63),
            &digits("a", 65),
            &digits("g", 64),
        ] {
            assert!(Secret::parse(text).is_none(), "{text:?} was accepted");
        }
    }

    #[test]
    fn purposes_do_not_serve_each_other() {
        let secret = Secret([7; 32]);
        assert_ne!(secret.mac("a", &[b"x"]), secret.mac("b", &[b"x"]));
        assert_ne!(secret.mac("a", &[b"x"]), Secret([8; 32]).mac("a", &[b"x"]));
        assert_ne!(secret.mark(), Secret([8; 32]).mark());
    }
}
