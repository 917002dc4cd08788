//! Base 62: numbers as digits and letters, which need no escaping in URLs, cookies and shells.
//!
//! The digits are `0-9A-Za-z` in this order, the most significant first, with a fixed width, so
//! that each number has exactly one text.

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// How many digits a 256-bit number has: 62^43 is the first power of 62 above 2^256.
pub const WIDTH_256: usize = 43;

/// How many digits a 128-bit number has: 62^22 is the first power of 62 above 2^128.
pub const WIDTH_128: usize = 22;

/// How many digits a 32-bit number has: 62^6 is the first power of 62 above 2^32.
pub const WIDTH_32: usize = 6;

/// The 43 digits of a 256-bit number, which is given with its most significant byte first.
pub fn encode_256(number: &[u8; 32]) -> String {
    let mut rest = *number;
    let mut digits = [0; WIDTH_256];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[divide_by_62(&mut rest)];
    }
    digits.map(char::from).iter().collect()
}

/// The inverse; `None` if the text is not 43 digits, or if the number is 2^256 or above.
pub fn decode_256(text: &str) -> Option<[u8; 32]> {
    if text.len() != WIDTH_256 {
        return None;
    }
    let mut number = [0; 32];
    for digit in text.bytes() {
        multiply_by_62_and_add(&mut number, value(digit)?)?;
    }
    Some(number)
}

/// The 22 digits of a 128-bit number.
pub fn encode_128(mut number: u128) -> String {
    let mut digits = [0; WIDTH_128];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(number % 62) as usize];
        number /= 62;
    }
    digits.map(char::from).iter().collect()
}

/// The inverse; `None` if the text is not 22 digits, or if the number is 2^128 or above.
pub fn decode_128(text: &str) -> Option<u128> {
    if text.len() != WIDTH_128 {
        return None;
    }
    text.bytes().try_fold(0_u128, |number, digit| {
        number.checked_mul(62)?.checked_add(value(digit)?.into())
    })
}

/// The 6 digits of a 32-bit number.
pub fn encode_32(mut number: u32) -> String {
    let mut digits = [0; WIDTH_32];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(number % 62) as usize];
        number /= 62;
    }
    digits.map(char::from).iter().collect()
}

fn divide_by_62(number: &mut [u8; 32]) -> usize {
    let mut remainder = 0;
    for byte in number {
        let part = remainder << 8 | usize::from(*byte);
        *byte = (part / 62) as u8;
        remainder = part % 62;
    }
    remainder
}

fn multiply_by_62_and_add(number: &mut [u8; 32], digit: u8) -> Option<()> {
    let mut carry = u32::from(digit);
    for byte in number.iter_mut().rev() {
        carry += u32::from(*byte) * 62;
        *byte = carry as u8;
        carry >>= 8;
    }
    (carry == 0).then_some(())
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'Z' => Some(digit - b'A' + 10),
        b'a'..=b'z' => Some(digit - b'a' + 36),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_the_extremes() {
        assert_eq!(encode_256(&[0; 32]), "0".repeat(43));
        assert_eq!(decode_256(&encode_256(&[255; 32])), Some([255; 32]));
        assert_eq!(encode_128(0), "0".repeat(22));
        assert_eq!(decode_128(&encode_128(u128::MAX)), Some(u128::MAX));
        assert_eq!(encode_32(0), "000000");
        assert_eq!(u32_value("4gfFC3"), u64::from(u32::MAX));
        assert_eq!(encode_32(u32::MAX), "4gfFC3");
    }

    #[test]
    fn every_single_bit_comes_back() {
        for bit in 0..256 {
            let mut number = [0; 32];
            number[bit / 8] = 1 << (bit % 8);
            assert_eq!(decode_256(&encode_256(&number)), Some(number), "bit {bit}");
        }
    }

    #[test]
    fn rejects_texts_that_are_no_256_bit_number() {
        assert_eq!(decode_256(&"z".repeat(43)), None, "above 2^256");
        assert_eq!(decode_256(&"0".repeat(42)), None, "too short");
        assert_eq!(decode_256(&"0".repeat(44)), None, "too long");
        assert_eq!(
            decode_256(&format!("-{}", "0".repeat(42))),
            None,
            "not a digit"
        );
        assert_eq!(
            decode_256(&format!("é{}", "0".repeat(41))),
            None,
            "not ASCII"
        );
    }

    #[test]
    fn rejects_texts_that_are_no_128_bit_number() {
        assert_eq!(decode_128("7n42DGM5Tflk9n8mt7Fhc8"), None, "2^128");
        assert_eq!(decode_128(&"0".repeat(21)), None, "too short");
        assert_eq!(decode_128(&"0".repeat(23)), None, "too long");
        assert_eq!(
            decode_128(&format!("_{}", "0".repeat(21))),
            None,
            "no digit"
        );
    }

    fn u32_value(text: &str) -> u64 {
        text.bytes()
            .fold(0, |sum, digit| sum * 62 + u64::from(value(digit).unwrap()))
    }
}
