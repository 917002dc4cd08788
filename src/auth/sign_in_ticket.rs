//! Tickets prove that a browser has just given an account's right password, until it gives a code
//! of the second factor. A ticket alone opens nothing.
//!
//! The value is the account's number, the end in milliseconds since the epoch, and 43 base-62
//! digits of HMAC-SHA256(secret, "towebp ticket" 0x00 account end SHA-256(password hash)), with
//! points between them. So a ticket becomes void with the password.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::account_id::AccountId;
use super::base62;
use super::secret::Secret;

/// How long a ticket holds, in milliseconds: time enough to find a telephone.
const LIFETIME: u64 = 10 * 60 * 1000;

/// A ticket as a browser sends it, unchecked.
pub struct Ticket {
    /// The account that it was issued for.
    pub account: AccountId,
    end: u64,
    mac: [u8; 32],
}

impl Ticket {
    /// The text of a new ticket.
    pub fn issue(secret: &Secret, account: AccountId, password_hash: &str, now: u64) -> String {
        let end = now + LIFETIME;
        let mac = mac(secret, account, end, password_hash);
        format!("{}.{end}.{}", account.0, base62::encode_256(&mac))
    }

    /// Reads a ticket; `None` if the text cannot be one.
    pub fn parse(text: &str) -> Option<Ticket> {
        let mut parts = text.splitn(3, '.');
        Some(Ticket {
            account: AccountId(parts.next()?.parse().ok()?),
            end: parts.next()?.parse().ok()?,
            mac: base62::decode_256(parts.next()?)?,
        })
    }

    /// Whether the ticket was issued for its account with this password hash, and has not ended.
    pub fn is_valid(&self, secret: &Secret, password_hash: &str, now: u64) -> bool {
        let expected = mac(secret, self.account, self.end, password_hash);
        now < self.end && bool::from(self.mac.ct_eq(&expected))
    }
}

fn mac(secret: &Secret, account: AccountId, end: u64, password_hash: &str) -> [u8; 32] {
    let password = Sha256::digest(password_hash);
    let parts = [&account.0.to_be_bytes()[..], &end.to_be_bytes(), &password];
    secret.mac("towebp ticket", &parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_valid_for_its_account_password_secret_and_time_only() {
        let (own, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        let text = Ticket::issue(&own, AccountId(7), "$hash", 1000);
        let ticket = Ticket::parse(&text).unwrap();
        assert_eq!(ticket.account, AccountId(7));
        assert!(ticket.is_valid(&own, "$hash", 1000 + LIFETIME - 1));
        assert!(!ticket.is_valid(&own, "$hash", 1000 + LIFETIME));
        assert!(!ticket.is_valid(&own, "$hasi", 1000));
        assert!(!ticket.is_valid(&other, "$hash", 1000));
        let later = text.replace(&format!(".{}.", 1000 + LIFETIME), ".9999999999999.");
        for forged in [later, text.replacen('7', "8", 1)] {
            let forged = Ticket::parse(&forged).unwrap();
            assert!(!forged.is_valid(&own, "$hash", 1000));
        }
        for other in ["", "7", "7.1", "7.1.x", &text[..text.len() - 1]] {
            assert!(Ticket::parse(other).is_none(), "{other:?}");
        }
    }
}
