//! The file that holds the server's secret, outside the database.
//!
//! The file holds the 32 bytes as 64 hexadecimal digits and a line feed, and has mode 0600.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::folder;
use crate::auth::Secret;

/// Reads the secret. If the file is missing and `has_accounts` is false, makes one.
///
/// # Errors
/// A sentence for the operator: the file is missing although there are accounts, cannot be read,
/// holds something else, or cannot be made.
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
            "the secret file {} is missing, and a new one would make the token of every account \
             invalid; put the old one back, or write 64 hexadecimal digits into it to issue new \
             tokens to all",
            path.display()
        )),
        Err(_) => create(path)
            .map_err(|error| format!("the secret file {} cannot be made: {error}", path.display())),
    }
}

/// Reads the secret of several servers, which is never made.
///
/// # Errors
/// A sentence for the operator: the file is missing, cannot be read, or holds something else.
#[cfg(feature = "postgres")]
pub fn read(path: &Path) -> Result<Secret, String> {
    if !path.exists() {
        return Err(format!(
            "the secret file {} is missing: towebp secret >FILE makes one, for all servers the same",
            path.display()
        ));
    }
    open(path, true)
}

/// Makes the file so that it appears whole or not at all and never replaces another: it is written
/// under a name of its own, synced, and then linked.
fn create(path: &Path) -> io::Result<Secret> {
    let secret = Secret::random().map_err(io::Error::other)?;
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let draft = Path::new(&draft);
    let linked = write_private(draft, &secret.to_text()).and_then(|()| fs::hard_link(draft, path));
    let removed = fs::remove_file(draft);
    linked?;
    removed?;
    folder::sync(folder::of(path))?;
    Ok(secret)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Folder;

    #[test]
    fn is_made_once_and_readable_by_its_owner_only() {
        let folder = Folder::new();
        let path = folder.path().join("secret");
        let made = open(&path, false).unwrap();
        let read = open(&path, true).unwrap();
        assert_eq!(
            made.mark(),
            read.mark(),
            "reading it back gave another secret"
        );
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
        let error = open(&path, true)
            .err()
            .expect("a missing secret was accepted");
        assert!(
            error.contains("is missing") && error.contains(path.to_str().unwrap()),
            "{error}"
        );
        assert!(!path.exists(), "a new secret was made");
    }

    #[test]
    fn a_file_that_holds_something_else_is_an_error_that_does_not_quote_it() {
        let folder = Folder::new();
        let path = folder.path().join("secret");
        for text in ["", "hunter2", &"a".repeat(63)] {
            fs::write(&path, text).unwrap();
            let error = open(&path, false)
                .err()
                .expect("a malformed secret was accepted");
            assert!(error.contains("64 hexadecimal digits"), "{error}");
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
    }
}
