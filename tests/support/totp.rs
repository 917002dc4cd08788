//! An authenticator app (RFC 6238).

use hmac::{Hmac, Mac};
use sha1::Sha1;
use std::time::{SystemTime, UNIX_EPOCH};

/// The period of this moment.
pub fn period() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("it is after 1970").as_secs() / 30
}

/// The code of a period by a key as people type it: base 32, with blanks.
pub fn code(key: &str, period: u64) -> String {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for digit in key.bytes().filter(|it| *it != b' ') {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'2'..=b'7' => digit - b'2' + 26,
            _ => panic!("{:?} is no digit of base 32", char::from(digit)),
        };
        bits = bits << 5 | u32::from(value);
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    let mut mac = Hmac::<Sha1>::new_from_slice(&bytes).expect("any key is one");
    mac.update(&period.to_be_bytes());
    let mac = mac.finalize().into_bytes();
    let at = usize::from(mac[19] & 15);
    let number = u32::from_be_bytes(mac[at..at + 4].try_into().expect("four bytes"));
    format!("{:06}", (number & 0x7fff_ffff) % 1_000_000)
}
