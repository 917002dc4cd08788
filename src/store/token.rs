//! API tokens. None is stored: a token is computed from the server's secret, the account and the number of its
//! rotations, so the dashboard can show it again while the database alone gives none away.
//!
//! ```text
//! twp_ 3xKq0c...43 digits...9Zb Xy12ab
//! |    |                        |
//! |    |                        checksum: CRC-32 (IEEE) of all characters before it, 6 base-62 digits
//! |    a 256-bit number, most significant byte first, 43 base-62 digits:
//! |      byte  0..20   the first 160 bits of HMAC-SHA256(secret, "towebp token" 0x00 account generation)
//! |      byte 20..28   account, u64, most significant byte first
//! |      byte 28..32   generation, u32, most significant byte first
//! prefix, by which people and leak scanners recognise it
//! ```
//!
//! A CRC-32 finds every error within 32 neighbouring bits, so every single mistyped character and every swap of two
//! neighbours inside the number. The checksum is no protection against forgery: the HMAC is.
//!
//! An old copy of the database put back has the old generations: rotate once more, or replace the secret.

use subtle::ConstantTimeEq;

use super::accounts::AccountId;
use super::base62;
use super::secret::Secret;

const PREFIX: &str = "twp_";
const LENGTH: usize = PREFIX.len() + base62::WIDTH_256 + base62::WIDTH_32;
/// Bytes of the HMAC that are kept: 160 bits, above the 128 that RFC 2104 section 5 asks for.
const MAC_LENGTH: usize = 20;

/// What a genuine token says: whose it is, and which of that account's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Whose.
    pub account: AccountId,
    /// The account's count of rotations when it was issued.
    pub generation: u32,
}

impl Token {
    /// The token as it is handed out: 53 characters out of `0-9A-Za-z_`.
    pub fn text(self, secret: &Secret) -> String {
        let mut number = [0; 32];
        number[..MAC_LENGTH].copy_from_slice(&self.mac(secret));
        number[20..28].copy_from_slice(&self.account.0.to_be_bytes());
        number[28..].copy_from_slice(&self.generation.to_be_bytes());
        let mut text = format!("{PREFIX}{}", base62::encode_256(&number));
        let checksum = base62::encode_32(crc32(text.as_bytes()));
        text.push_str(&checksum);
        text
    }

    /// Reads a token; `None` unless it was made with this secret. Whether it still holds, the account's present
    /// generation says.
    pub fn parse(text: &str, secret: &Secret) -> Option<Token> {
        if text.len() != LENGTH {
            return None;
        }
        let (body, checksum) = text.split_at_checked(LENGTH - base62::WIDTH_32)?;
        if checksum != base62::encode_32(crc32(body.as_bytes())) {
            return None;
        }
        let number = base62::decode_256(body.strip_prefix(PREFIX)?)?;
        let (mac, rest) = number.split_at(MAC_LENGTH);
        let (account, generation) = rest.split_at(8);
        let token = Token {
            account: AccountId(u64::from_be_bytes(account.try_into().ok()?)),
            generation: u32::from_be_bytes(generation.try_into().ok()?),
        };
        bool::from(mac.ct_eq(&token.mac(secret))).then_some(token)
    }

    fn mac(self, secret: &Secret) -> [u8; MAC_LENGTH] {
        let whole = secret.mac(
            "towebp token",
            &[
                &self.account.0.to_be_bytes(),
                &self.generation.to_be_bytes(),
            ],
        );
        let mut part = [0; MAC_LENGTH];
        part.copy_from_slice(&whole[..MAC_LENGTH]);
        part
    }
}

/// CRC-32 of IEEE 802.3, reflected, bit by bit: 47 bytes a request do not need a table.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0xEDB8_8320
            } else {
                crc >> 1
            };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Folder;

    const TOKEN: Token = Token {
        account: AccountId(1_795_000_000_123),
        generation: 7,
    };

    #[test]
    fn comes_back_from_its_text() {
        let secret = secret();
        for token in [
            TOKEN,
            Token {
                account: AccountId(0),
                generation: 0,
            },
            Token {
                account: AccountId(u64::MAX),
                generation: u32::MAX,
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
    fn every_changed_character_is_refused_by_the_checksum() {
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
    fn every_swap_of_neighbours_is_refused_by_the_checksum() {
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
    fn refuses_other_shapes() {
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
    fn refuses_a_forged_one_with_a_right_checksum() {
        let secret = secret();
        for byte in 0..32 {
            let text = TOKEN.text(&secret);
            let mut number = base62::decode_256(&text[4..47]).unwrap();
            number[byte] ^= 1;
            let mut forged = format!("{PREFIX}{}", base62::encode_256(&number));
            forged.push_str(&base62::encode_32(crc32(forged.as_bytes())));
            assert!(checksum_holds(&forged), "the test forges badly");
            assert_eq!(
                Token::parse(&forged, &secret),
                None,
                "byte {byte} is not protected"
            );
        }
    }

    #[test]
    fn refuses_one_of_another_secret() {
        assert_eq!(Token::parse(&TOKEN.text(&secret()), &secret()), None);
    }

    #[test]
    fn crc32_has_the_published_check_value() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    fn checksum_holds(text: &str) -> bool {
        let (body, checksum) = text.split_at(LENGTH - base62::WIDTH_32);
        checksum == base62::encode_32(crc32(body.as_bytes()))
    }

    fn secret() -> Secret {
        let folder = Folder::new();
        Secret::open(&folder.path().join("secret"), false).unwrap()
    }
}
