//! The types of parameters' values, and how each is read.

use crate::image::Rectangle;
use crate::watermark::Length;

/// The type of a parameter's value.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// A whole number, which is capped into this range.
    Number(i32, i32),
    /// A number, which is capped into this range of thousandths.
    Decimal(i32, i32),
    /// A number of bytes, perhaps with a unit such as `k`, `kB` (1000) or `KiB` (1024), which is
    /// capped into this range.
    Size(i32, i32),
    /// A whole number of percent, perhaps with the sign `%`, which is capped into this range.
    Percent(i32, i32),
    /// A whole number of pixels, or a number of percent with the sign `%`, each capped into its
    /// range.
    Length {
        /// The range of pixels.
        pixels: (i32, i32),
        /// The range of percent, in thousandths.
        percent: (i32, i32),
        /// Whether the word `auto` is allowed, too.
        has_auto: bool,
    },
    /// One of a few words, listed as error texts name them.
    Word(&'static str),
    /// A color: one of a few words or hexadecimal digits, listed as error texts name them.
    Color(&'static str),
    /// A part of a picture: `x,y,width,height` in pixels.
    Rectangle,
    /// A whole number that is not negative, and is capped into this range.
    Count(u64, u64),
    /// A day, such as `2026-11-01`.
    Day,
    /// A status code of an error, or all of a class, such as `4xx`.
    Status,
    /// A text of this pattern that an answer has given.
    Cursor(&'static str),
    /// Any text.
    Text,
    /// An API token.
    Token,
    /// A URL, which is checked where it is fetched.
    Url,
}

impl Value {
    /// Reads a whole number, a size or a percentage, and caps it into the range.
    ///
    /// # Panics
    /// If it is of another type.
    pub(super) fn number(self, text: &str) -> Option<i32> {
        match self {
            Value::Number(min, max) => whole(text, 1, (min, max)),
            Value::Size(min, max) => {
                let (unit, number) = without_unit(text);
                whole(number, unit, (min, max))
            }
            Value::Percent(min, max) => {
                whole(text.strip_suffix('%').unwrap_or(text), 1, (min, max))
            }
            _ => unreachable!("{self:?} is no number"),
        }
    }

    /// Reads a number with a point, in thousandths, and caps it into the range.
    ///
    /// # Panics
    /// If it is of another type.
    pub(super) fn decimal(self, text: &str) -> Option<i32> {
        match self {
            Value::Decimal(min, max) => decimal(text, (min, max)),
            _ => unreachable!("{self:?} is no decimal"),
        }
    }

    /// Reads a length other than `auto`, and caps it into the range.
    ///
    /// # Panics
    /// If it is of another type.
    pub(super) fn length(self, text: &str) -> Option<Length> {
        match self {
            Value::Length {
                pixels, percent, ..
            } => match text.strip_suffix('%') {
                Some(number) => Some(Length::Share(decimal(number, percent)? as u32)),
                None => Some(Length::Pixels(whole(text, 1, pixels)? as u16)),
            },
            _ => unreachable!("{self:?} is no length"),
        }
    }

    /// The words that are allowed, if it is one of a few.
    pub fn words(self) -> Vec<&'static str> {
        let (Value::Word(allowed) | Value::Color(allowed)) = self else {
            return Vec::new();
        };
        let words = allowed.split(", ").flat_map(|part| part.split(" or "));
        // `#RRGGBB` stands for digits.
        words.filter(|word| !word.starts_with('#')).collect()
    }

    /// Whether a number of this type lies within the range, into which it would be capped else.
    pub fn is_in_range(self, text: &str) -> bool {
        const ANY: (i32, i32) = (i32::MIN, i32::MAX);
        let wide = match self {
            Value::Number(..) => Value::Number(ANY.0, ANY.1),
            Value::Size(..) => Value::Size(ANY.0, ANY.1),
            Value::Percent(..) => Value::Percent(ANY.0, ANY.1),
            Value::Decimal(..) => return self.decimal(text) == decimal(text, ANY),
            Value::Length {
                pixels, percent, ..
            } => {
                return match text.strip_suffix('%') {
                    Some(number) => decimal(number, percent) == decimal(number, ANY),
                    None => whole(text, 1, pixels) == whole(text, 1, ANY),
                };
            }
            _ => return true,
        };
        self.number(text) == wide.number(text)
    }

    /// The end of a sentence about allowed values, for values in a URL.
    pub(super) fn in_url(self) -> &'static str {
        match self {
            Value::Percent(..) => ", which a URL needs as %25",
            Value::Length { .. } => ", whose % a URL needs as %25",
            _ => "",
        }
    }

    /// Returns the allowed values in words, for error texts.
    pub fn allowed(self) -> String {
        let thousandths = |number: i32| f64::from(number) / 1000.0;
        match self {
            Value::Number(min, max) => format!("a whole number from {min} to {max}"),
            Value::Decimal(min, max) => {
                format!("a number from {} to {}", thousandths(min), thousandths(max))
            }
            Value::Size(min, max) => {
                format!(
                    "a whole number from {min} to {max}, perhaps followed by k or M, by kB or MB, or by KiB or MiB"
                )
            }
            Value::Percent(min, max) => {
                format!("a whole number from {min} to {max}, perhaps followed by %")
            }
            Value::Length {
                pixels: (min, max),
                percent: (least, most),
                has_auto,
            } => {
                let auto = if has_auto { ", auto" } else { "" };
                let (least, most) = (thousandths(least), thousandths(most));
                format!(
                    "a whole number from {min} to {max}{auto}, or a percentage from {least}% to {most}%"
                )
            }
            Value::Count(0, u64::MAX) => "a whole number, 0 or more".to_owned(),
            Value::Count(min, max) => format!("a whole number from {min} to {max}"),
            Value::Word(allowed) | Value::Color(allowed) => allowed.to_owned(),
            Value::Rectangle => {
                "x,y,width,height in pixels, width and height at least 1, such as 10,20,300,200"
                    .to_owned()
            }
            Value::Day => "a day (UTC), such as 2026-11-01".to_owned(),
            Value::Status => "a status code from 400 to 599, 4xx or 5xx".to_owned(),
            Value::Cursor(_) => "what an answer has given".to_owned(),
            Value::Text | Value::Token | Value::Url => "any text".to_owned(),
        }
    }
}

/// Reads `x,y,width,height`, of which the latter two are at least 1.
pub(super) fn rectangle(text: &str) -> Option<Rectangle> {
    let number = |text: &str| text.parse::<u16>().ok().filter(|_| are_digits(text));
    let numbers = text.split(',').map(|text| number(text).map(usize::from));
    let numbers: Option<Vec<usize>> = numbers.collect();
    let &[left, top, width, height] = numbers?.as_slice() else {
        return None;
    };
    (width > 0 && height > 0).then_some(Rectangle {
        left,
        top,
        width,
        height,
    })
}

/// Reads a whole number of units, and caps it into a range.
fn whole(text: &str, unit: i32, (min, max): (i32, i32)) -> Option<i32> {
    let (sign, digits) = without_sign(text);
    // These are digits: parsing only fails for a number beyond 32 bits.
    let number = || digits.parse().unwrap_or(i32::MAX).saturating_mul(unit);
    are_digits(digits).then(|| (sign * number()).clamp(min, max))
}

/// Reads a number in decimal digits, perhaps with a point among them, and caps it into a range. It
/// is in thousandths, and further digits are cut off.
fn decimal(text: &str, (min, max): (i32, i32)) -> Option<i32> {
    let (sign, unsigned) = without_sign(text);
    let (whole, part) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    if !are_digits(whole) || !are_digits(part) {
        return None;
    }
    // These are digits: parsing only fails for a number beyond 32 bits.
    let whole = whole.parse().unwrap_or(i32::MAX).saturating_mul(1000);
    let part = part.bytes().chain(*b"00").take(3);
    let part = part.fold(0, |part, digit| part * 10 + i32::from(digit - b'0'));
    Some((sign * whole.saturating_add(part)).clamp(min, max))
}

fn without_sign(number: &str) -> (i32, &str) {
    match number.strip_prefix('-') {
        Some(unsigned) => (-1, unsigned),
        None => (1, number),
    }
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads a number of bytes or pixels: `33554432`, `100k`, `500kB`, `32MiB`, in any case of letters.
/// `k`, `M` and `G` mean powers of 1000, alone or with `B`, and with `iB` powers of 1024.
#[doc(hidden)]
pub fn size(text: &str) -> Option<u64> {
    let (unit, digits) = without_unit(text);
    let number: Option<u64> = digits.parse().ok().filter(|_| are_digits(digits));
    number?.checked_mul(unit as u64)
}

/// Splits the unit off a size: its factor, and the number before it.
fn without_unit(size: &str) -> (i32, &str) {
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match size[digits.len()..].to_ascii_lowercase().as_str() {
        "k" | "kb" => 1000,
        "kib" => 1 << 10,
        "m" | "mb" => 1_000_000,
        "mib" => 1 << 20,
        "g" | "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        "b" => 1,
        // None, or one that makes it no number.
        _ => return (1, size),
    };
    (unit, digits)
}
