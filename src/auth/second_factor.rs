//! The second factor beside a password: codes by time (TOTP, RFC 6238), and recovery codes for when
//! the device that computes them is lost.
//!
//! The key of the codes by time is not stored. It is the first 160 bits of
//! HMAC-SHA256(secret, "towebp totp" 0x00 account nonce), so a stolen copy of the database alone
//! gives no code. Recovery codes are stored by their SHA-256. The stored text of a second factor is
//! its nonce in 22 base-62 digits, the last period whose code was used, and the hashes in 43 digits
//! each, with a blank between them.

use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::account_id::AccountId;
use super::base62;
use super::code::CodeHash;
use super::error::AuthError;
use super::random::random_bytes;
use super::secret::Secret;

/// The length of the period of a code, in milliseconds: what all authenticator apps use.
const PERIOD: u64 = 30_000;

/// The digits of base 32 (RFC 4648, section 6), in which apps and people take keys and codes.
const BASE_32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// How many recovery codes a second factor begins with.
const RECOVERY_CODES: usize = 10;

/// The number from which the key of an account's codes is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce(u128);

impl Nonce {
    /// A new random one.
    ///
    /// # Errors
    /// [`AuthError::Random`] if the system gives no random bytes.
    pub fn random() -> Result<Nonce, AuthError> {
        random_bytes().map(u128::from_be_bytes).map(Nonce)
    }

    /// Reads 22 base-62 digits.
    pub fn parse(text: &str) -> Option<Nonce> {
        base62::decode_128(text).map(Nonce)
    }

    /// The 22 digits.
    pub fn to_text(self) -> String {
        base62::encode_128(self.0)
    }
}

/// The key of an account's codes by time. It has no `Debug`, so that it cannot reach a log.
pub struct TotpKey([u8; 20]);

impl TotpKey {
    /// The key by this nonce.
    pub fn new(secret: &Secret, account: AccountId, nonce: Nonce) -> TotpKey {
        let parts = [&account.0.to_be_bytes()[..], &nonce.0.to_be_bytes()];
        let whole = secret.mac("towebp totp", &parts);
        TotpKey(*whole.first_chunk().expect("an HMAC-SHA256 has 32 bytes"))
    }

    /// The 32 digits that an app takes.
    pub fn base_32(&self) -> String {
        base_32(&self.0)
    }

    /// The period that this code belongs to: the present one, or the one before or after it, since
    /// clocks differ. It is `None` if the code belongs to none of them.
    pub fn period(&self, code: &str, now: u64) -> Option<u64> {
        let code: String = code.chars().filter(|it| !it.is_whitespace()).collect();
        let present = now / PERIOD;
        (present.saturating_sub(1)..=present + 1)
            .find(|period| bool::from(self.code(*period).as_bytes().ct_eq(code.as_bytes())))
    }

    /// The six digits of a period (RFC 4226, section 5.3).
    fn code(&self, period: u64) -> String {
        let mut mac = Hmac::<Sha1>::new_from_slice(&self.0).expect("HMAC takes keys of any size");
        mac.update(&period.to_be_bytes());
        let mac = mac.finalize().into_bytes();
        let at = usize::from(mac[19] & 15);
        let part = mac[at..].first_chunk().expect("at most 15 of 20 bytes");
        format!(
            "{:06}",
            (u32::from_be_bytes(*part) & 0x7fff_ffff) % 1_000_000
        )
    }
}

/// A code that proves the second factor. Each can be spent once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The code by time of this period.
    Period(u64),
    /// The recovery code with this hash.
    Recovery(CodeHash),
}

impl Proof {
    /// The recovery code that somebody has typed, in whatever case and with blanks and hyphens;
    /// `None` if the text cannot be one.
    pub fn recovery(text: &str) -> Option<Proof> {
        let is_digit = |it: &char| !it.is_whitespace() && *it != '-';
        let code: String = text.chars().filter(is_digit).collect();
        let code = code.to_ascii_uppercase();
        let is_code = code.len() == 16 && code.bytes().all(|it| BASE_32.contains(&it));
        is_code.then(|| Proof::Recovery(Sha256::digest(code).into()))
    }
}

/// The stored state of an account's second factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondFactor {
    /// The number from which the key is computed.
    pub nonce: Nonce,
    last_period: u64,
    recovery: Vec<CodeHash>,
}

impl SecondFactor {
    /// A second factor whose code of this period was used, and its recovery codes, which are shown
    /// once.
    ///
    /// # Errors
    /// [`AuthError::Random`] if the system gives no random bytes.
    pub fn new(nonce: Nonce, period: u64) -> Result<(SecondFactor, Vec<String>), AuthError> {
        let mut factor = SecondFactor {
            nonce,
            last_period: period,
            recovery: Vec::new(),
        };
        let mut codes = Vec::new();
        for _ in 0..RECOVERY_CODES {
            let code = base_32(&random_bytes::<10>()?);
            factor.recovery.push(Sha256::digest(&code).into());
            let parts = [&code[..4], &code[4..8], &code[8..12], &code[12..]];
            codes.push(parts.join("-"));
        }
        Ok((factor, codes))
    }

    /// Reads the stored text; `None` if it is damaged.
    pub fn parse(text: &str) -> Option<SecondFactor> {
        let mut words = text.split(' ');
        Some(SecondFactor {
            nonce: Nonce::parse(words.next()?)?,
            last_period: words.next()?.parse().ok()?,
            recovery: words.map(base62::decode_256).collect::<Option<_>>()?,
        })
    }

    /// The text to store.
    pub fn to_text(&self) -> String {
        let hashes = self.recovery.iter().map(base62::encode_256);
        let words = [self.nonce.to_text(), self.last_period.to_string()];
        words
            .into_iter()
            .chain(hashes)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Spends a code. Returns false if it is unknown or was spent before; periods before one whose
    /// code was spent are over.
    pub fn spend(&mut self, proof: Proof) -> bool {
        match proof {
            Proof::Period(period) => {
                let is_new = period > self.last_period;
                self.last_period = self.last_period.max(period);
                is_new
            }
            Proof::Recovery(hash) => {
                let before = self.recovery.len();
                self.recovery.retain(|other| *other != hash);
                self.recovery.len() < before
            }
        }
    }

    /// How many recovery codes are left.
    pub fn recovery_codes(&self) -> usize {
        self.recovery.len()
    }
}

/// The digits of bytes whose bits are a multiple of 5.
fn base_32(bytes: &[u8]) -> String {
    let digit = |at: usize| {
        let pair = [
            bytes[at * 5 / 8],
            bytes.get(at * 5 / 8 + 1).copied().unwrap_or(0),
        ];
        let shift = 11 - at * 5 % 8;
        char::from(BASE_32[usize::from(u16::from_be_bytes(pair) >> shift & 31)])
    };
    (0..bytes.len() * 8 / 5).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6238, appendix B, whose codes have two digits more in front.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let key = TotpKey(*b"12345678901234567890");
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(key.code(seconds * 1000 / PERIOD), code, "{seconds}");
        }
        assert_eq!(key.base_32(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    }

    /// RFC 4648, section 6. Five bits lie in up to two bytes, whose upper halves differ here.
    #[test]
    fn digits_of_base_32_have_five_bits_each() {
        let bytes = [0x00, 0xff, 0x0f, 0xf0, 0x55, 0xaa, 0x81, 0x7e, 0x10, 0xef];
        assert_eq!(base_32(&bytes), "AD7Q74CVVKAX4EHP");
    }

    #[test]
    fn a_code_holds_for_its_period_and_those_beside_it() {
        let key = TotpKey(*b"12345678901234567890");
        for (seconds, found) in [(0, Some(1)), (30, Some(1)), (89, Some(1)), (90, None)] {
            assert_eq!(key.period(" 287 082", seconds * 1000), found, "{seconds}");
        }
        for wrong in ["", "287083", "87082", "0287082", "\u{0662}87082"] {
            assert_eq!(key.period(wrong, 59_000), None, "{wrong}");
        }
    }

    #[test]
    fn each_code_is_spent_once_and_the_text_keeps_it_so() {
        let nonce = Nonce::random().unwrap();
        let (mut factor, codes) = SecondFactor::new(nonce, 7).unwrap();
        assert_eq!(codes.len(), 10);
        assert!(!factor.spend(Proof::Period(7)) && factor.spend(Proof::Period(9)));
        assert!(!factor.spend(Proof::Period(8)), "an earlier period");
        let typed = codes[3].to_lowercase().replace('-', " ");
        let proof = Proof::recovery(&typed).unwrap();
        assert!(factor.spend(proof) && !factor.spend(proof));
        let mut read = SecondFactor::parse(&factor.to_text()).unwrap();
        assert_eq!(read, factor);
        assert_eq!(read.recovery_codes(), 9);
        assert!(!read.spend(proof) && !read.spend(Proof::Period(9)));
        assert!(!factor.to_text().contains(&codes[0].replace('-', "")));
        for damaged in [
            "",
            "x",
            &factor.to_text()[1..],
            &format!("{} ", factor.to_text()),
        ] {
            assert_eq!(SecondFactor::parse(damaged), None, "{damaged:?}");
        }
        for other in ["", "123456", "AAAA-AAAA-AAAA-AAA1", "AAAA-AAAA-AAAA-AAAAA"] {
            assert_eq!(Proof::recovery(other), None, "{other:?}");
        }
    }

    #[test]
    fn keys_differ_by_secret_account_and_nonce() {
        let (one, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        let key = |secret, id, nonce| TotpKey::new(secret, AccountId(id), Nonce(nonce)).base_32();
        let first = key(&one, 1, 1);
        assert_eq!(first.len(), 32);
        assert!(
            [key(&other, 1, 1), key(&one, 2, 1), key(&one, 1, 2)]
                .iter()
                .all(|it| *it != first)
        );
    }
}
