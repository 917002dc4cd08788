//! Device cookies: by them a browser is known that has signed in to an account before, so that strangers who guess at the
//! account's password do not make its owner wait ([`super::attempts`]). The OWASP calls the scheme by this name
//! ("Slow Down Online Guessing Attacks with Device Cookies").
//!
//! The value is a 256-bit number as 43 base-62 digits, most significant byte first:
//!
//! ```text
//! byte  0..16  random: names the browser in the count of attempts
//! byte 16..32  the first 128 bits of HMAC-SHA256(secret, "towebp device" 0x00 account device SHA-256(password hash))
//! ```
//!
//! Nothing of it is stored. It holds for one account and until that account's password is changed, since the stored
//! hash changes with it; a stolen one opens nothing, and has the attempts of one browser. Every sign-in gives a new one,
//! so that a stolen one and its owner's do not share a count for long.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::accounts::AccountId;
use super::base62;
use super::error::StoreError;
use super::secret::{Secret, random_bytes};

/// Names a browser that has signed in.
pub type Device = [u8; 16];

/// The cookie of another browser that has just signed in.
///
/// # Errors
/// The system gives no random bytes.
pub fn cookie(
    secret: &Secret,
    account: AccountId,
    password_hash: &str,
) -> Result<String, StoreError> {
    let device = random_bytes().map_err(|error| StoreError::Failed(error.to_string()))?;
    let mut number = [0; 32];
    number[..16].copy_from_slice(&device);
    number[16..].copy_from_slice(&mac(secret, account, password_hash, &device));
    Ok(base62::encode_256(&number))
}

/// The browser that sent this cookie; `None` unless it was made for this account, with this password and this secret.
/// Compares in constant time.
pub fn verify(
    cookie: &str,
    secret: &Secret,
    account: AccountId,
    password_hash: &str,
) -> Option<Device> {
    let number = base62::decode_256(cookie)?;
    let (device, given) = number.split_first_chunk()?;
    let mac = mac(secret, account, password_hash, device);
    bool::from(given.ct_eq(&mac)).then_some(*device)
}

fn mac(secret: &Secret, account: AccountId, password_hash: &str, device: &Device) -> [u8; 16] {
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
    use crate::store::tests::Folder;

    const OWNER: AccountId = AccountId(7);

    #[test]
    fn holds_for_its_account_password_and_secret_alone() {
        let folder = Folder::new();
        let secret = |name: &str| Secret::open(&folder.path().join(name), false).unwrap();
        let own = secret("own");
        let cookie = cookie(&own, OWNER, "$hash").unwrap();
        let device = verify(&cookie, &own, OWNER, "$hash").expect("it is genuine");
        assert!(verify(&cookie, &own, AccountId(8), "$hash").is_none());
        assert!(verify(&cookie, &own, OWNER, "$hasi").is_none());
        assert!(verify(&cookie, &secret("other"), OWNER, "$hash").is_none());

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
        let another = super::cookie(&own, OWNER, "$hash").unwrap();
        assert_ne!(
            verify(&another, &own, OWNER, "$hash"),
            Some(device),
            "two browsers share a count"
        );
    }
}
