//! E-mail addresses. towebp uses them only as names of accounts and sends no mail, so the check is
//! loose.

/// The most bytes of an address. RFC 3696 erratum 1690: a path of 256 bytes less its two angle
/// brackets.
const MAX_BYTES: usize = 254;

/// A normalized address: trimmed and in lower case, at most 254 bytes, with exactly one `@`,
/// something on both sides of it, and no blanks or control characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Email(String);

impl Email {
    /// Reads an address as a person typed it.
    ///
    /// # Errors
    /// A sentence that names the mistake in the text.
    pub fn parse(text: &str) -> Result<Email, String> {
        let email = text.trim().to_lowercase();
        if email.is_empty() {
            return Err("the e-mail address is empty".into());
        }
        if email.len() > MAX_BYTES {
            return Err(format!(
                "the e-mail address is {} bytes long; at most {MAX_BYTES} are allowed",
                email.len()
            ));
        }
        if email.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err("the e-mail address has a blank or a control character in it".into());
        }
        match email.split_once('@') {
            None => Err("the e-mail address has no @".into()),
            Some((_, domain)) if domain.contains('@') => {
                Err("the e-mail address has more than one @".into())
            }
            Some(("", _)) => Err("the e-mail address has nothing before the @".into()),
            Some((_, "")) => Err("the e-mail address has nothing after the @".into()),
            Some(_) => Ok(Email(email)),
        }
    }

    /// The normalized address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trims_and_lowers_case() {
        assert_eq!(
            Email::parse("  Owner@Example.ORG\n").unwrap().as_str(),
            "owner@example.org"
        );
    }

    #[test]
    fn says_why_a_text_is_no_address() {
        let long = format!("{}@example.org", "a".repeat(243));
        for (text, reason) in [
            ("", "empty"),
            ("owner", "no @"),
            ("a@b@example.org", "more than one @"),
            ("@example.org", "nothing before"),
            ("owner@", "nothing after"),
            ("an owner@example.org", "blank"),
            ("owner\u{7}@example.org", "control"),
            ("owner\u{a0}x@example.org", "blank"),
            (long.as_str(), "255 bytes"),
        ] {
            let error = Email::parse(text).expect_err(text);
            assert!(
                error.contains(reason),
                "{text:?} is rejected with {error:?}, which does not say {reason:?}"
            );
        }
    }

    #[test]
    fn accepts_the_longest_address() {
        let text = format!("{}@example.org", "a".repeat(242));
        assert_eq!(text.len(), 254);
        assert!(Email::parse(&text).is_ok());
    }
}
