//! The specification's parameter table as code.

use crate::watermark::{Color, Position, TextWatermark};
use crate::webp::Effort;
use std::fmt;
use std::ops::RangeInclusive;

/// What a caller may ask for, already checked and capped.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// 0 to 100, default 85.
    pub quality: u8,
    /// How much work goes into the file, default medium. An addition to the specification.
    pub effort: Effort,
    /// Text watermark (`watermark`, `watermark_size`, `watermark_color`), if any.
    pub text: Option<TextWatermark>,
    /// Where the picture watermark is to be had from (`watermark_image`), if any: not fetched here.
    pub picture_url: Option<String>,
    /// Where watermarks go.
    pub position: Position,
    /// 0 (invisible) to 100 (solid), default 50.
    pub opacity: u8,
}

/// The names that may be given once each. `token` is among them, although it is read elsewhere.
pub const KNOWN_NAMES: [&str; 9] = [
    "token",
    "quality",
    "effort",
    "watermark",
    "watermark_size",
    "watermark_color",
    "watermark_image",
    "watermark_position",
    "watermark_opacity",
];

/// A parameter that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// The parameter's name.
    pub name: &'static str,
    /// What was given and what is allowed, as a sentence for the caller.
    pub detail: String,
    /// Machine-readable: `invalid_parameter` or `repeated_parameter`.
    pub code: &'static str,
}

impl Params {
    /// Reads the parameters from decoded name and value pairs. Unknown names are ignored; numbers out of
    /// range are capped; a known name given twice, a number that is not whole, an unknown effort, position or colour is an
    /// error.
    ///
    /// A number is written in decimal digits, with a minus sign if it is negative. A plus sign is refused: in a query a bare
    /// one means a space, so that `+5` would work or not by how it was encoded.
    ///
    /// # Errors
    /// [`ParamError`], for the first parameter at fault.
    pub fn parse<'a>(
        pairs: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Params, ParamError> {
        let mut quality = 85;
        let mut effort = Effort::default();
        let mut text = "";
        let mut size = 24;
        let mut color = Color::WHITE;
        let mut picture_url = "";
        let mut position = Position::default();
        let mut opacity = 50;

        let mut seen = Vec::new();
        for (name, value) in pairs {
            let Some(name) = KNOWN_NAMES.into_iter().find(|known| *known == name) else {
                continue;
            };
            if seen.contains(&name) {
                return Err(repeated(name));
            }
            seen.push(name);
            match name {
                "quality" => quality = capped(name, value, 0..=100)? as u8,
                "effort" => {
                    effort = Effort::parse(value)
                        .ok_or_else(|| invalid(name, value, Effort::ALLOWED))?;
                }
                "watermark" => text = value,
                "watermark_size" => size = capped(name, value, 8..=200)?,
                "watermark_color" => {
                    color =
                        Color::parse(value).ok_or_else(|| invalid(name, value, Color::ALLOWED))?;
                }
                "watermark_image" => picture_url = value,
                "watermark_position" => {
                    position = Position::parse(value)
                        .ok_or_else(|| invalid(name, value, Position::ALLOWED))?;
                }
                "watermark_opacity" => opacity = capped(name, value, 0..=100)? as u8,
                _ => {} // token
            }
        }
        Ok(Params {
            quality,
            effort,
            text: (!text.is_empty()).then(|| TextWatermark {
                text: text.to_owned(),
                size,
                color,
            }),
            picture_url: (!picture_url.is_empty()).then(|| picture_url.to_owned()),
            position,
            opacity,
        })
    }
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for ParamError {}

/// A whole number, capped into `range`.
fn capped(name: &'static str, value: &str, range: RangeInclusive<u16>) -> Result<u16, ParamError> {
    let (negative, digits) = match value.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, value),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(invalid(
            name,
            value,
            &format!("a whole number from {} to {}", range.start(), range.end()),
        ));
    }
    if negative {
        return Ok(*range.start());
    }
    // Digits alone: only a number beyond 16 bits is left to fail.
    let number = digits.parse().unwrap_or(u16::MAX);
    Ok(number.clamp(*range.start(), *range.end()))
}

fn invalid(name: &'static str, value: &str, allowed: &str) -> ParamError {
    /// Enough of a value to recognise it by.
    const SHOWN: usize = 60;
    let mut shown: String = value.chars().take(SHOWN).collect();
    if value.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    let detail = format!("Parameter {name}: {shown:?} was given; allowed is {allowed}.");
    ParamError {
        name,
        detail,
        code: "invalid_parameter",
    }
}

fn repeated(name: &'static str) -> ParamError {
    let detail = format!("Parameter {name} was given more than once; it is allowed once.");
    ParamError {
        name,
        detail,
        code: "repeated_parameter",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Params, ParamError> {
        Params::parse(pairs.iter().copied())
    }

    fn parsed(pairs: &[(&str, &str)]) -> Params {
        parse(pairs).unwrap_or_else(|error| panic!("{pairs:?}: {error}"))
    }

    #[test]
    fn defaults_are_those_of_the_specification() {
        let expected = Params {
            quality: 85,
            effort: Effort::Medium,
            text: None,
            picture_url: None,
            position: Position::BottomRight,
            opacity: 50,
        };
        assert_eq!(parsed(&[]), expected);
        assert_eq!(
            parsed(&[("watermark", "©")]).text,
            Some(TextWatermark {
                text: "©".to_owned(),
                size: 24,
                color: Color::WHITE
            })
        );
    }

    #[test]
    fn every_parameter_is_read() {
        let params = parsed(&[
            ("token", "secret"),
            ("quality", "70"),
            ("effort", "high"),
            ("watermark", "© me"),
            ("watermark_size", "32"),
            ("watermark_color", "#0a0B0c"),
            ("watermark_image", "https://example.org/logo.png"),
            ("watermark_position", "topLeft"),
            ("watermark_opacity", "25"),
        ]);
        let expected = Params {
            quality: 70,
            effort: Effort::High,
            text: Some(TextWatermark {
                text: "© me".to_owned(),
                size: 32,
                color: Color::new(10, 11, 12),
            }),
            picture_url: Some("https://example.org/logo.png".to_owned()),
            position: Position::TopLeft,
            opacity: 25,
        };
        assert_eq!(params, expected);
    }

    #[test]
    fn numbers_out_of_range_are_capped() {
        for (value, quality, size) in [
            ("0", 0, 8),
            ("-0", 0, 8),
            ("-1", 0, 8),
            ("-99999999999999999999", 0, 8),
            ("007", 7, 8),
            ("8", 8, 8),
            ("100", 100, 100),
            ("101", 100, 101),
            ("200", 100, 200),
            ("201", 100, 200),
            ("65536", 100, 200),
            ("99999999999999999999", 100, 200),
        ] {
            assert_eq!(
                parsed(&[("quality", value)]).quality,
                quality,
                "quality={value}"
            );
            assert_eq!(
                parsed(&[("watermark_opacity", value)]).opacity,
                quality,
                "watermark_opacity={value}"
            );
            let text = parsed(&[("watermark", "x"), ("watermark_size", value)])
                .text
                .expect("a text was given");
            assert_eq!(text.size, size, "watermark_size={value}");
        }
    }

    #[test]
    fn what_is_no_whole_number_is_refused_by_name() {
        for name in ["quality", "watermark_size", "watermark_opacity"] {
            for value in [
                "", " ", "-", "+5", " 5", "5 ", "8.5", "1e2", "0x10", "many", "٣", "--5", "5%",
            ] {
                let error = parse(&[(name, value)]).expect_err(value);
                assert_eq!(
                    (error.name, error.code),
                    (name, "invalid_parameter"),
                    "{value:?}"
                );
            }
        }
        let error = parse(&[("watermark_size", "8.5")]).expect_err("not whole");
        assert_eq!(
            error.to_string(),
            "Parameter watermark_size: \"8.5\" was given; allowed is a whole number from 8 to 200."
        );
    }

    #[test]
    fn unknown_efforts_positions_and_colours_are_refused_with_what_is_allowed() {
        let error = parse(&[("effort", "6")]).expect_err("unknown");
        assert_eq!(
            error.detail,
            "Parameter effort: \"6\" was given; allowed is low, medium or high."
        );
        let error = parse(&[("watermark_position", "middle")]).expect_err("unknown");
        assert_eq!(
            error.detail,
            "Parameter watermark_position: \"middle\" was given; \
             allowed is topLeft, topRight, bottomLeft, bottomRight or center."
        );
        let error = parse(&[("watermark_color", "pink")]).expect_err("unknown");
        assert_eq!(
            error.detail,
            "Parameter watermark_color: \"pink\" was given; allowed is white, black, red, blue, yellow, gray or #RRGGBB."
        );
        for value in ["", "Low", " low"] {
            assert!(parse(&[("effort", value)]).is_err(), "{value:?}");
        }
        assert!(parse(&[("watermark_position", "")]).is_err());
        assert!(parse(&[("watermark_color", "")]).is_err());
    }

    #[test]
    fn every_effort_has_its_name() {
        for (value, effort) in [
            ("low", Effort::Low),
            ("medium", Effort::Medium),
            ("high", Effort::High),
        ] {
            assert_eq!(parsed(&[("effort", value)]).effort, effort, "{value}");
        }
    }

    #[test]
    fn names_of_colours_are_read_in_any_case() {
        let text = parsed(&[("watermark", "x"), ("watermark_color", "YELLOW")])
            .text
            .expect("a text was given");
        assert_eq!(text.color, Color::new(255, 255, 0));
    }

    #[test]
    fn an_empty_watermark_is_none() {
        assert_eq!(
            parsed(&[("watermark", ""), ("watermark_size", "30")]).text,
            None
        );
        assert_eq!(parsed(&[("watermark_image", "")]).picture_url, None);
    }

    #[test]
    fn a_known_parameter_given_twice_is_refused_and_unknown_ones_are_ignored() {
        for name in KNOWN_NAMES {
            let value = match name {
                "effort" => "low",
                "watermark_color" => "red",
                "watermark_position" => "center",
                _ => "9",
            };
            let error = parse(&[(name, value), (name, value)]).expect_err(name);
            assert_eq!((error.name, error.code), (name, "repeated_parameter"));
        }
        assert_eq!(
            parsed(&[("width", "1"), ("width", "2"), ("Quality", "3")]),
            parsed(&[])
        );
    }

    #[test]
    fn long_values_are_shown_in_part() {
        let error = parse(&[("quality", &"é".repeat(5000))]).expect_err("not a number");
        assert!(error.detail.len() < 300, "{} bytes", error.detail.len());
    }
}
