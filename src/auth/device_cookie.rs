//! Device cookies mark a browser that has signed in to an account before. Strangers who guess at
//! the account's password then do not make its owner wait (see [`super::throttle`]). OWASP
//! describes the scheme under this name ("Slow Down Online Guessing Attacks with Device Cookies").
//!
//! The value is a 256-bit number as 43 base-62 digits, most significant byte first:
//!
//! ```text
//! byte  0..16  random: the device's number, under which its attempts are counted
//! byte 16..32  the first 128 bits of
//!              HMAC-SHA256(secret, "towebp device" 0x00 account device SHA-256(password hash))
//! ```
//!
//! The server stores nothing of it. A device cookie is valid for one account and until that
//! account's password changes, since the stored password hash changes with it. A stolen one opens
//! nothing: it only gives the thief the attempts of one browser. Every sign-in issues a new one, so
//! that a thief and the owner do not share a count for long.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::account_id::AccountId;
use super::base62;
use super::error::AuthError;
use super::random::random_bytes;
use super::secret::Secret;

/// The number of a browser that has signed in before.
pub type DeviceId = [u8; 16];

/// A cookie for a browser that has just signed in, with a new random number.
///
/// # Errors
/// [`AuthError::Random`] if the system gives no random bytes.
pub fn issue(
    secret: &Secret,
    account: AccountId,
    password_hash: &str,
) -> Result<String, AuthError> {
    let device = random_bytes()?;
    let mut number = [0; 32];
    number[..16].copy_from_slice(&device);
    number[16..].copy_from_slice(&mac(secret, account, password_hash, &device));
    Ok(base62::encode_256(&number))
}

/// The number of the browser that sent this cookie; `None` unless the cookie was made for this
/// account, with this password hash and this secret. The comparison takes constant time.
pub fn verify(
    cookie: &str,
    secret: &Secret,
    account: AccountId,
    password_hash: &str,
) -> Option<DeviceId> {
    let number = base62::decode_256(cookie)?;
    let (device, given) = number.split_first_chunk()?;
    let mac = mac(secret, account, password_hash, device);
    bool::from(given.ct_eq(&mac)).then_some(*device)
}

fn mac(secret: &Secret, account: AccountId, password_hash: &str, device: &DeviceId) -> [u8; 16] {
    let password = Sha256::digest(password_hash);
    let parts = [&account.0.to_be_bytes()[..], device, &password];
    let whole = secret.mac("towebp device", &parts);
    *whole
        .first_chunk()
        .expect("an HMAC-SHA256 has 32 bytes, of which 16 are kept")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: AccountId = AccountId(7);

    #[test]
    fn is_valid_for_its_account_password_and_secret_only() {
        let (own, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        let cookie = issue(&own, OWNER, "$hash").unwrap();
        let device = verify(&cookie, &own, OWNER, "$hash").expect("it was issued for this account");
        assert!(verify(&cookie, &own, AccountId(8), "$hash").is_none());
        assert!(verify(&cookie, &own, OWNER, "$hasi").is_none());
        assert!(verify(&cookie, &other, OWNER, "$hash").is_none());

        let mut number = base62::decode_256(&cookie).unwrap();
        for at in 0..number.len() {
            number[at] ^= 1;
            let forged = base62::encode_256(&number);
            assert!(verify(&forged, &own, OWNER, "$hash").is_none(), "byte {at}");
            number[at] ^= 1;
        }
        for other in ["", "x", &cookie[1..], &format!("{cookie}0")] {
            assert!(verify(other, &own, OWNER, "$hash").is_none(), "{other:?}");
        }
        let another = issue(&own, OWNER, "$hash").unwrap();
        assert_ne!(
            verify(&another, &own, OWNER, "$hash"),
            Some(device),
            "two browsers share a count"
        );
    }
}
