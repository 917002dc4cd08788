//! The server's secret: what tokens and form tokens are computed from. It lies outside the database, so that a
//! stolen copy of the database alone gives no working token.
//!
//! The file holds 32 random bytes as 64 hexadecimal digits and a line end, mode 0600. Replacing it makes every
//! token issued so far invalid.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::folder;

/// 32 random bytes. Neither printed nor compared.
pub struct Secret([u8; 32]);

impl Secret {
    /// Reads the secret; makes it if the file is missing and `has_accounts` is false.
    ///
    /// # Errors
    /// A sentence: the file is missing although there are accounts, cannot be read, holds something else, or
    /// cannot be made.
    pub fn open(path: &Path, has_accounts: bool) -> Result<Secret, String> {
        match fs::read_to_string(path) {
            Ok(text) => {
                warn_if_open_to_others(path);
                Secret::parse(&text).ok_or_else(|| {
                    format!(
                        "the secret file {} must hold 64 hexadecimal digits and nothing else",
                        path.display()
                    )
                })
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(format!(
                "the secret file {} cannot be read: {error}",
                path.display()
            )),
            Err(_) if has_accounts => Err(format!(
                "the secret file {} is missing, and a new one would make the token of every account invalid; put the \
                 old one back, or write 64 hexadecimal digits into it to issue new tokens to all",
                path.display()
            )),
            Err(_) => Secret::create(path).map_err(|error| {
                format!("the secret file {} cannot be made: {error}", path.display())
            }),
        }
    }

    /// HMAC-SHA256 under this secret. `purpose` keeps what is computed for one use from serving another; `parts`
    /// are of fixed size, or the last of them is the only one that is not.
    pub fn mac(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any size");
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// Tells this secret from others without giving it away: 64 bits of an HMAC under it.
    pub fn mark(&self) -> u64 {
        let mac = self.mac("towebp mark", &[]);
        u64::from_be_bytes(*mac.first_chunk().expect("an HMAC-SHA256 has 32 bytes"))
    }

    fn parse(text: &str) -> Option<Secret> {
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

    /// The file appears whole or not at all, and never replaces another: written under a name of its own, synced,
    /// then linked.
    fn create(path: &Path) -> io::Result<Secret> {
        let secret = Secret(random_bytes()?);
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}", std::process::id()));
        let draft = Path::new(&draft);
        let linked = write_private(draft, &secret.hex()).and_then(|()| fs::hard_link(draft, path));
        let removed = fs::remove_file(draft);
        linked?;
        removed?;
        folder::sync(folder::of(path))?;
        Ok(secret)
    }

    fn hex(&self) -> String {
        use std::fmt::Write;
        let mut text = String::with_capacity(65);
        for byte in self.0 {
            write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        }
        text.push('\n');
        text
    }
}

/// Bytes from the system's random generator.
///
/// # Errors
/// The system has none to give.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| io::Error::other(format!("the system gives no random bytes: {error}")))?;
    Ok(bytes)
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = folder::create_new_private(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn warn_if_open_to_others(path: &Path) {
    let Ok(metadata) = fs::metadata(path) else {
        return;
    };
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        log::warn!(
            "the secret file {} is open to other users (mode {mode:03o}); 600 is safe",
            path.display()
        );
    }
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Folder;

    #[test]
    fn is_made_once_readable_by_its_owner_only() {
        let folder = Folder::new();
        let path = folder.path().join("secret");
        let made = Secret::open(&path, false).unwrap();
        let read = Secret::open(&path, true).unwrap();
        assert_eq!(made.0, read.0, "reading it back gave another secret");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_to_string(&path).unwrap().len(), 65);
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "the draft was left behind"
        );
    }

    #[test]
    fn is_not_made_anew_when_there_are_accounts() {
        let folder = Folder::new();
        let path = folder.path().join("secret");
        let error = Secret::open(&path, true)
            .err()
            .expect("a missing secret was accepted");
        assert!(
            error.contains("is missing") && error.contains(path.to_str().unwrap()),
            "{error}"
        );
        assert!(!path.exists(), "a new secret was made");
    }

    #[test]
    fn refuses_a_file_that_holds_something_else() {
        let folder = Folder::new();
        let path = folder.path().join("secret");
        for text in [
            "",
            "hunter2",
            &"a".repeat(63),
            &"a".repeat(65),
            &"g".repeat(64),
        ] {
            fs::write(&path, text).unwrap();
            let error = Secret::open(&path, false)
                .err()
                .expect("a malformed secret was accepted");
            assert!(error.contains("64 hexadecimal digits"), "{error}");
            assert!(
                text.is_empty() || !error.contains(text),
                "the error shows what the file holds"
            );
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
