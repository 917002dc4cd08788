//! Passwords: hashed by argon2id and stored as PHC strings, with a bounded number of computations
//! at a time.

use std::sync::{Condvar, Mutex, PoisonError};

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};

use super::error::AuthError;
use super::random::random_bytes;

/// Memory of one computation, in KiB. This, the passes and the lanes are the second of the
/// equivalent settings in the OWASP Password Storage Cheat Sheet: 19 MiB, 2 passes, 1 lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// How many computations run at a time; further ones wait. It bounds their memory to 38 MiB,
/// however many sign in at once.
const MAX_CONCURRENT: usize = 2;

/// The most bytes that all computations take together.
pub const MEMORY: usize = MAX_CONCURRENT * MEMORY_KIB as usize * 1024;

/// The fewest characters of a password, by NIST SP 800-63B section 5.1.1.2.
const MIN_CHARACTERS: usize = 8;
/// The most bytes of a password. argon2 would hash any number, at a cost that grows with it.
const MAX_BYTES: usize = 1024;

/// The 3,000 most common passwords of at least 8 characters in lower case, the most common first,
/// one a line; NIST SP 800-63B section 5.1.1.2 rules them out. They are the first ones of the
/// list of 30,000 in the crate zxcvbn 3.1.1 (MIT license, Copyright (c) 2016 Joshua Holmer, after
/// Dropbox's zxcvbn, MIT license, Copyright (c) 2012-2016 Dan Wheeler and Dropbox, Inc.). The crate
/// itself makes a small program 2.4 MB larger, by its lists and the crate regex; the crate
/// passwords brings 1.0 MB.
const COMMON: &str = include_str!("common_passwords.txt");

/// A password that a new account may have. It has no `Debug`, so that it cannot reach a log.
pub struct Password(String);

impl Password {
    /// Accepts any text of at least 8 characters and at most 1024 bytes that is not one of the most
    /// common passwords in whatever case.
    ///
    /// # Errors
    /// A sentence that names the mistake in the text.
    pub fn parse(text: &str) -> Result<Password, String> {
        let characters = text.chars().count();
        if characters < MIN_CHARACTERS {
            return Err(format!(
                "the password has {characters} characters; at least {MIN_CHARACTERS} are needed"
            ));
        }
        if text.len() > MAX_BYTES {
            return Err(format!(
                "the password is {} bytes long; at most {MAX_BYTES} are allowed",
                text.len()
            ));
        }
        let lower = text.to_lowercase();
        if COMMON.lines().any(|common| common == lower) {
            return Err(
                "the password is one of the most common ones, which are tried first; choose another"
                    .to_owned(),
            );
        }
        Ok(Password(text.to_owned()))
    }
}

/// Hashes and verifies passwords, a few at a time.
pub struct Passwords {
    argon2: Argon2<'static>,
    running: Mutex<usize>,
    ended: Condvar,
}

impl Default for Passwords {
    /// A hasher with the settings above.
    fn default() -> Passwords {
        let params = Params::new(MEMORY_KIB, PASSES, LANES, None)
            .expect("the constants are within argon2's bounds");
        Passwords {
            argon2: Argon2::new(Algorithm::Argon2id, Version::V0x13, params),
            running: Mutex::new(0),
            ended: Condvar::new(),
        }
    }
}

impl Passwords {
    /// The PHC string to store for this password, with a new random salt.
    ///
    /// # Errors
    /// [`AuthError::Random`] if the system gives no salt.
    pub fn hash(&self, password: &Password) -> Result<String, AuthError> {
        let salt = random_bytes::<16>()?;
        let salt =
            SaltString::encode_b64(&salt).expect("16 bytes are a salt of the recommended length");
        let _permit = self.acquire();
        let hash = self
            .argon2
            .hash_password(password.0.as_bytes(), &salt)
            .map_err(|error| failed(&error))?;
        Ok(hash.to_string())
    }

    /// Whether the password belongs to the stored PHC string.
    ///
    /// Without a stored string the result is false after the same time, so that the time does not
    /// show whether there is such an account. For a password that is too long for any account it is
    /// false at once.
    ///
    /// # Errors
    /// [`AuthError::Argon2`] if the stored string is damaged.
    pub fn verify(&self, password: &str, stored: Option<&str>) -> Result<bool, AuthError> {
        if password.len() > MAX_BYTES {
            return Ok(false);
        }
        let hash =
            PasswordHash::new(stored.unwrap_or(DUMMY_HASH)).map_err(|error| failed(&error))?;
        let _permit = self.acquire();
        match self.argon2.verify_password(password.as_bytes(), &hash) {
            Ok(()) => Ok(stored.is_some()),
            Err(argon2::password_hash::Error::Password) => Ok(false),
            Err(error) => Err(failed(&error)),
        }
    }

    fn acquire(&self) -> Permit<'_> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = self
            .ended
            .wait_while(running, |running| *running >= MAX_CONCURRENT)
            .unwrap_or_else(PoisonError::into_inner);
        *running += 1;
        Permit(self)
    }
}

/// The PHC string with which the password for an unknown account is compared, so that the answer
/// takes as long as for a known one: the settings above, a salt of zeros, and a hash of zeros.
const DUMMY_HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$\
                          AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The right to one of the `MAX_CONCURRENT` computations, given back when dropped.
struct Permit<'a>(&'a Passwords);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self
            .0
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.ended.notify_one();
    }
}

fn failed(error: &argon2::password_hash::Error) -> AuthError {
    AuthError::Argon2(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_password_is_told_from_a_wrong_one() {
        let passwords = Passwords::default();
        let hash = passwords
            .hash(&Password::parse("correct horse").unwrap())
            .unwrap();
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        assert!(passwords.verify("correct horse", Some(&hash)).unwrap());
        assert!(!passwords.verify("correct horsf", Some(&hash)).unwrap());
        assert!(!passwords.verify("", Some(&hash)).unwrap());
    }

    #[test]
    fn the_same_password_is_stored_differently_each_time() {
        let passwords = Passwords::default();
        let password = Password::parse("correct horse").unwrap();
        assert_ne!(
            passwords.hash(&password).unwrap(),
            passwords.hash(&password).unwrap()
        );
    }

    #[test]
    fn an_unknown_account_has_no_password_and_takes_as_long_to_deny() {
        let passwords = Passwords::default();
        let hash = passwords
            .hash(&Password::parse("correct horse").unwrap())
            .unwrap();
        let (known, dummy) = (
            PasswordHash::new(&hash).unwrap(),
            PasswordHash::new(DUMMY_HASH).unwrap(),
        );
        assert_eq!(dummy.algorithm, known.algorithm);
        assert_eq!(dummy.version, known.version);
        assert_eq!(dummy.params, known.params);
        assert_eq!(dummy.salt.unwrap().len(), known.salt.unwrap().len());
        assert_eq!(dummy.hash.unwrap().len(), known.hash.unwrap().len());
        for password in ["", "correct horse", &"x".repeat(2000)] {
            assert!(
                !passwords.verify(password, None).unwrap(),
                "{password:?} is accepted for an unknown account"
            );
        }
    }

    #[test]
    fn passwords_have_bounds() {
        assert!(
            Password::parse("1234567")
                .err()
                .unwrap()
                .contains("7 characters")
        );
        assert!(Password::parse("8 signs!").is_ok());
        assert!(
            Password::parse("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}").is_err(),
            "14 bytes are 7 characters"
        );
        let longest = "x".repeat(1024);
        let hash = Passwords::default().hash(&Password::parse(&longest).unwrap());
        let verified = Passwords::default().verify(&longest, Some(&hash.unwrap()));
        assert!(verified.unwrap(), "the longest one opens its account");
        assert!(
            Password::parse(&"x".repeat(1025))
                .err()
                .unwrap()
                .contains("1025 bytes")
        );
    }

    #[test]
    fn common_passwords_are_rejected_in_every_case() {
        for common in [
            "password",
            "PassWord",
            "12345678",
            "iloveyou",
            "Password123",
        ] {
            let reason = Password::parse(common).err().expect(common);
            assert!(reason.contains("most common"), "{reason}");
        }
        assert!(Password::parse("password of mine").is_ok());
        assert_eq!(COMMON.lines().count(), 3000);
        for common in COMMON.lines() {
            let is_reached = common.chars().count() >= MIN_CHARACTERS && common == common.trim();
            assert!(is_reached && common == common.to_lowercase(), "{common:?}");
        }
    }

    #[test]
    fn more_than_two_computations_at_a_time_wait_and_all_end() {
        let passwords = Passwords::default();
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| assert!(!passwords.verify("wrong horse", None).unwrap()));
            }
        });
        assert_eq!(*passwords.running.lock().unwrap(), 0);
    }
}
