//! API tokens. None is stored: a token is computed from the server's secret, the account's number
//! and a serial number, of which each token that is issued to an account gets another. So the
//! dashboard can show it again, while the database alone gives none away.
//!
//! ```text
//! twp_ 3xKq0c...43 digits...9Zb Xy12ab
//! |    |                        |
//! |    |                        checksum: CRC-32 (IEEE 802.3) of all before it, 6 base-62 digits
//! |    a 256-bit number, most significant byte first, 43 base-62 digits:
//! |      byte  0..20   the first 160 bits of
//! |                    HMAC-SHA256(secret, "towebp token" 0x00 account serial)
//! |      byte 20..28   account, u64, most significant byte first
//! |      byte 28..32   serial, u32, most significant byte first
//! prefix, by which people and leak scanners recognize a token
//! ```
//!
//! A CRC-32 finds every error within 32 neighboring bits, and so every single mistyped character
//! and every swap of two neighbors inside the number. The checksum does not protect against
//! forgery; the HMAC does.
//!
//! An old copy of the database that is put back has the old serial numbers, so tokens that were
//! replaced or deleted since then work again. The remedy is to replace each token once more, or to
//! replace the secret. No serial number is given twice even then, because new ones follow the
//! clock.

use subtle::ConstantTimeEq;

use super::account_id::AccountId;
use super::base62;
use super::secret::Secret;

const PREFIX: &str = "twp_";
const LENGTH: usize = PREFIX.len() + base62::WIDTH_256 + base62::WIDTH_32;
/// How many bytes of the HMAC a token holds: 160 bits, above the 128 that RFC 2104 section 5
/// recommends.
const MAC_LENGTH: usize = 20;

/// The contents of a genuine token: its account, and its number among all tokens that were ever
/// issued to that account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The account.
    pub account: AccountId,
    /// The serial number, which no other token of the account has.
    pub serial: u32,
}

impl Token {
    /// The token as users see it: 53 characters out of `0-9A-Za-z_`.
    pub fn text(self, secret: &Secret) -> String {
        let mut number = [0; 32];
        number[..MAC_LENGTH].copy_from_slice(&self.mac(secret));
        number[20..28].copy_from_slice(&self.account.0.to_be_bytes());
        number[28..].copy_from_slice(&self.serial.to_be_bytes());
        let mut text = format!("{PREFIX}{}", base62::encode_256(&number));
        let checksum = base62::encode_32(crc32fast::hash(text.as_bytes()));
        text.push_str(&checksum);
        text
    }

    /// Reads a token; `None` unless it was made with this secret. It is valid only if a
    /// token of the account has its serial number, which the caller has to check.
    pub fn parse(text: &str, secret: &Secret) -> Option<Token> {
        if text.len() != LENGTH {
            return None;
        }
        let (body, checksum) = text.split_at_checked(LENGTH - base62::WIDTH_32)?;
        if checksum != base62::encode_32(crc32fast::hash(body.as_bytes())) {
            return None;
        }
        let number = base62::decode_256(body.strip_prefix(PREFIX)?)?;
        let (mac, rest) = number.split_at(MAC_LENGTH);
        let (account, serial) = rest.split_at(8);
        let token = Token {
            account: AccountId(u64::from_be_bytes(account.try_into().ok()?)),
            serial: u32::from_be_bytes(serial.try_into().ok()?),
        };
        bool::from(mac.ct_eq(&token.mac(secret))).then_some(token)
    }

    fn mac(self, secret: &Secret) -> [u8; MAC_LENGTH] {
        let whole = secret.mac(
            "towebp token",
            &[&self.account.0.to_be_bytes(), &self.serial.to_be_bytes()],
        );
        let mut part = [0; MAC_LENGTH];
        part.copy_from_slice(&whole[..MAC_LENGTH]);
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token {
        account: AccountId(1_795_000_000_123),
        serial: 7,
    };

    #[test]
    fn comes_back_from_its_text() {
        let secret = secret();
        for token in [
            TOKEN,
            Token {
                account: AccountId(0),
                serial: 0,
            },
            Token {
                account: AccountId(u64::MAX),
                serial: u32::MAX,
            },
        ] {
            let text = token.text(&secret);
            assert_eq!(text.len(), 53);
            assert!(text.starts_with("twp_"), "{text}");
            assert!(
                text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_'),
                "{text} needs escaping"
            );
            assert_eq!(Token::parse(&text, &secret), Some(token));
        }
    }

    #[test]
    fn every_changed_character_fails_the_checksum() {
        let text = TOKEN.text(&secret());
        for at in 0..text.len() {
            for other in b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_- %" {
                let mut mistyped = text.clone().into_bytes();
                if mistyped[at] == *other {
                    continue;
                }
                mistyped[at] = *other;
                let mistyped = String::from_utf8(mistyped).unwrap();
                assert!(
                    !checksum_holds(&mistyped),
                    "{mistyped} for {text} passed the checksum"
                );
            }
        }
    }

    #[test]
    fn every_swap_of_neighbors_fails_the_checksum() {
        let text = TOKEN.text(&secret());
        for at in 1..text.len() {
            let mut mistyped = text.clone().into_bytes();
            if mistyped[at] == mistyped[at - 1] {
                continue;
            }
            mistyped.swap(at, at - 1);
            let mistyped = String::from_utf8(mistyped).unwrap();
            assert!(
                !checksum_holds(&mistyped),
                "{mistyped} for {text} passed the checksum"
            );
        }
    }

    #[test]
    fn texts_of_another_form_are_no_token() {
        let secret = secret();
        let text = TOKEN.text(&secret);
        for other in [
            "",
            "twp_",
            &text[..52],
            &format!("{text}0"),
            &format!(" {}", &text[1..]),
            &"é".repeat(27),
        ] {
            assert_eq!(Token::parse(other, &secret), None, "{other:?} was accepted");
        }
    }

    #[test]
    fn a_forged_token_with_a_right_checksum_is_no_token() {
        let secret = secret();
        for byte in 0..32 {
            let text = TOKEN.text(&secret);
            let mut number = base62::decode_256(&text[4..47]).unwrap();
            number[byte] ^= 1;
            let mut forged = format!("{PREFIX}{}", base62::encode_256(&number));
            forged.push_str(&base62::encode_32(crc32fast::hash(forged.as_bytes())));
            assert!(checksum_holds(&forged), "the test forges badly");
            assert_eq!(
                Token::parse(&forged, &secret),
                None,
                "byte {byte} is not protected"
            );
        }
    }

    #[test]
    fn a_token_of_another_secret_is_no_token() {
        assert_eq!(Token::parse(&TOKEN.text(&secret()), &secret()), None);
    }

    #[test]
    fn texts_stay_the_same_from_release_to_release() {
        // Computed by the first release that issued tokens: users keep theirs.
        let secret = Secret::parse(&"5".repeat(64)).unwrap();
        assert_eq!(
            crc32fast::hash(b"123456789"),
            0xCBF4_3926,
            "not CRC-32 (IEEE 802.3)"
        );
        assert_eq!(
            TOKEN.text(&secret),
            "twp_RJnlv7kKc9Z4yxRoD1xtrE2rzmbKQWVB4Drge64ogMR3uZpaw"
        );
    }

    fn checksum_holds(text: &str) -> bool {
        let (body, checksum) = text.split_at(LENGTH - base62::WIDTH_32);
        checksum == base62::encode_32(crc32fast::hash(body.as_bytes()))
    }

    fn secret() -> Secret {
        Secret::random().unwrap()
    }
}
