//! Passwords: argon2id, stored as PHC strings, a bounded number of computations at a time.

use std::sync::{Condvar, Mutex, PoisonError};

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};

use super::error::StoreError;
use super::secret::random_bytes;

/// The second of the equivalent settings in the OWASP Password Storage Cheat Sheet: 19 MiB, 2 passes, 1 lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// Computations at a time: 38 MiB at most, whoever knocks.
const AT_ONCE: usize = 2;

/// Most bytes that they take together.
pub const MEMORY: usize = AT_ONCE * MEMORY_KIB as usize * 1024;

/// Fewest characters, by NIST SP 800-63B section 5.1.1.2.
const SHORTEST: usize = 8;
/// Most bytes: argon2 reads them all, so somebody must say stop.
const LONGEST: usize = 1024;

/// A password that is acceptable for a new account.
pub struct Password(String);

impl Password {
    /// Takes 8 characters to 1024 bytes of anything.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Password, String> {
        let characters = text.chars().count();
        if characters < SHORTEST {
            return Err(format!(
                "the password has {characters} characters; at least {SHORTEST} are needed"
            ));
        }
        if text.len() > LONGEST {
            return Err(format!(
                "the password is {} bytes long; at most {LONGEST} are allowed",
                text.len()
            ));
        }
        Ok(Password(text.to_owned()))
    }
}

/// Hashes and verifies passwords.
pub struct Passwords {
    argon2: Argon2<'static>,
    running: Mutex<usize>,
    ended: Condvar,
}

impl Passwords {
    /// With the settings above.
    pub fn new() -> Passwords {
        let params = Params::new(MEMORY_KIB, PASSES, LANES, None)
            .expect("the constants are within argon2's bounds");
        Passwords {
            argon2: Argon2::new(Algorithm::Argon2id, Version::V0x13, params),
            running: Mutex::new(0),
            ended: Condvar::new(),
        }
    }

    /// The PHC string to store.
    ///
    /// # Errors
    /// The system gives no random salt.
    pub fn hash(&self, password: &Password) -> Result<String, StoreError> {
        let salt = random_bytes::<16>().map_err(|error| StoreError::Failed(error.to_string()))?;
        let salt =
            SaltString::encode_b64(&salt).expect("16 bytes are a salt of the recommended length");
        let _turn = self.wait_for_turn();
        let hash = self
            .argon2
            .hash_password(password.0.as_bytes(), &salt)
            .map_err(|error| failed(&error))?;
        Ok(hash.to_string())
    }

    /// Whether the password belongs to the stored string. Without one the answer is no, after the same
    /// time. It is no at once for a password that no account can have.
    ///
    /// # Errors
    /// The stored string is damaged.
    pub fn verify(&self, password: &str, stored: Option<&str>) -> Result<bool, StoreError> {
        if password.len() > LONGEST {
            return Ok(false);
        }
        let hash = PasswordHash::new(stored.unwrap_or(NOBODY)).map_err(|error| failed(&error))?;
        let _turn = self.wait_for_turn();
        match self.argon2.verify_password(password.as_bytes(), &hash) {
            Ok(()) => Ok(stored.is_some()),
            Err(argon2::password_hash::Error::Password) => Ok(false),
            Err(error) => Err(failed(&error)),
        }
    }

    fn wait_for_turn(&self) -> Turn<'_> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = self
            .ended
            .wait_while(running, |running| *running >= AT_ONCE)
            .unwrap_or_else(PoisonError::into_inner);
        *running += 1;
        Turn(self)
    }
}

/// What the password of an unknown account is compared with, so that the answer takes as long: the settings above,
/// a salt of zeros, and a hash that is no password's.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// One of the `AT_ONCE` computations; ends when dropped.
struct Turn<'a>(&'a Passwords);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self
            .0
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.ended.notify_one();
    }
}

fn failed(error: &argon2::password_hash::Error) -> StoreError {
    StoreError::Failed(format!("argon2 failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_one_is_told_from_a_wrong_one() {
        let passwords = Passwords::new();
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
        let passwords = Passwords::new();
        let password = Password::parse("correct horse").unwrap();
        assert_ne!(
            passwords.hash(&password).unwrap(),
            passwords.hash(&password).unwrap()
        );
    }

    #[test]
    fn nobody_has_no_password_and_costs_as_much_to_refuse() {
        let passwords = Passwords::new();
        let hash = passwords
            .hash(&Password::parse("correct horse").unwrap())
            .unwrap();
        let (known, nobody) = (
            PasswordHash::new(&hash).unwrap(),
            PasswordHash::new(NOBODY).unwrap(),
        );
        assert_eq!(nobody.algorithm, known.algorithm);
        assert_eq!(nobody.version, known.version);
        assert_eq!(nobody.params, known.params);
        assert_eq!(nobody.salt.unwrap().len(), known.salt.unwrap().len());
        assert_eq!(nobody.hash.unwrap().len(), known.hash.unwrap().len());
        for password in ["", "correct horse", &"x".repeat(2000)] {
            assert!(
                !passwords.verify(password, None).unwrap(),
                "{password:?} is nobody's password"
            );
        }
    }

    #[test]
    fn bounds() {
        assert!(
            Password::parse("1234567")
                .err()
                .unwrap()
                .contains("7 characters")
        );
        assert!(Password::parse("12345678").is_ok());
        assert!(
            Password::parse("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}").is_err(),
            "14 bytes are 7 characters"
        );
        assert!(Password::parse(&"x".repeat(1024)).is_ok());
        assert!(
            Password::parse(&"x".repeat(1025))
                .err()
                .unwrap()
                .contains("1025 bytes")
        );
    }

    #[test]
    fn more_than_two_at_a_time_wait_their_turn_and_all_end() {
        let passwords = Passwords::new();
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| assert!(!passwords.verify("wrong horse", None).unwrap()));
            }
        });
        assert_eq!(*passwords.running.lock().unwrap(), 0);
    }
}
