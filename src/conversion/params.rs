//! The specification's parameter table as code.

use crate::watermark::{Color, Outline, Placement, Position, TextWatermark};
use std::fmt;
use std::ops::RangeInclusive;
use towebp_encoder::{Effort, Mode};

/// What a caller may ask for, already checked and capped.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// 0 to 100, default 85.
    pub quality: u8,
    /// How much work goes into the file, default medium. An addition to the specification.
    pub effort: Effort,
    /// How pixels are coded (`mode`, or `lossless=true`), default auto. An addition to the specification.
    pub mode: Mode,
    /// Quality of alpha beside lossy pixels, 0 to 100 (`alpha_quality`), default 100: without loss. An addition, too.
    pub alpha_quality: u8,
    /// How near pixels coded without loss stay to what they were, 0 to 100 (`near_lossless`), default 100: exactly. An addition, too.
    pub near_lossless: u8,
    /// Whether a GIF keeps moving (`animation`), default all. An addition, too.
    pub animation: Animation,
    /// Whether Exif, XMP and the ICC profile are kept (`metadata`), default no. An addition, too.
    pub keeps_metadata: bool,
    /// Text watermark (`watermark`, `watermark_size`, `watermark_color`, `watermark_outline`), if any.
    pub text: Option<TextWatermark>,
    /// Where the picture watermark is to be had from (`watermark_image`), if any: not fetched here.
    pub picture_url: Option<String>,
    /// How watermarks are laid onto the picture (`watermark_position`, `watermark_opacity`, `watermark_margin`,
    /// `watermark_scale`, `watermark_rotate`, `watermark_tile`).
    pub placement: Placement,
}

/// The names that may be given once each. `token` is among them, although it is read elsewhere.
pub const KNOWN_NAMES: [&str; 20] = [
    "token",
    "quality",
    "effort",
    "mode",
    "lossless",
    "alpha_quality",
    "near_lossless",
    "animation",
    "metadata",
    "watermark",
    "watermark_size",
    "watermark_color",
    "watermark_outline",
    "watermark_image",
    "watermark_position",
    "watermark_opacity",
    "watermark_margin",
    "watermark_scale",
    "watermark_rotate",
    "watermark_tile",
];

/// What becomes of a GIF's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Animation {
    /// All of them, as an animation.
    #[default]
    All,
    /// The first one, as a still picture.
    First,
}

impl Animation {
    /// What [`Animation::parse`] accepts, for messages.
    pub const ALLOWED: &str = "all or first";

    /// Reads its exact name.
    pub fn parse(text: &str) -> Option<Animation> {
        match text {
            "all" => Some(Animation::All),
            "first" => Some(Animation::First),
            _ => None,
        }
    }
}

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
        let mut mode = None;
        let mut is_lossless = false;
        let mut alpha_quality = 100;
        let mut near_lossless = 100;
        let mut animation = Animation::default();
        let mut keeps_metadata = false;
        let mut text = "";
        let mut size = 24;
        let mut color = Color::WHITE;
        let mut outline = Outline::default();
        let mut picture_url = "";
        let mut placement = Placement {
            opacity: 50,
            ..Placement::default()
        };

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
                "effort" => effort = word(name, value, Effort::parse, Effort::ALLOWED)?,
                "mode" => mode = Some(word(name, value, Mode::parse, Mode::ALLOWED)?),
                "lossless" => is_lossless = word(name, value, truth, "true or false")?,
                "alpha_quality" => alpha_quality = capped(name, value, 0..=100)? as u8,
                "near_lossless" => near_lossless = capped(name, value, 0..=100)? as u8,
                "animation" => {
                    animation = word(name, value, Animation::parse, Animation::ALLOWED)?;
                }
                "metadata" => keeps_metadata = word(name, value, keeping, "strip or keep")?,
                "watermark" => text = value,
                "watermark_size" => size = capped(name, value, 8..=200)? as u16,
                "watermark_color" => color = read_color(name, value)?,
                "watermark_outline" => {
                    outline = word(name, value, Outline::parse, Outline::ALLOWED)?;
                }
                "watermark_image" => picture_url = value,
                _ => read_placement(&mut placement, name, value)?,
            }
        }
        Ok(Params {
            quality,
            effort,
            mode: with_lossless(mode, is_lossless)?,
            alpha_quality,
            near_lossless,
            animation,
            keeps_metadata,
            text: (!text.is_empty()).then(|| TextWatermark {
                text: text.to_owned(),
                size,
                color,
                outline,
            }),
            picture_url: (!picture_url.is_empty()).then(|| picture_url.to_owned()),
            placement,
        })
    }
}

/// What `mode` and `lossless` come to together.
fn with_lossless(mode: Option<Mode>, is_lossless: bool) -> Result<Mode, ParamError> {
    match mode {
        Some(Mode::Lossy) if is_lossless => Err(ParamError {
            name: "lossless",
            detail: "Parameters lossless and mode: \"true\" and \"lossy\" were given; allowed is one of the two.".to_owned(),
            code: "invalid_parameter",
        }),
        _ if is_lossless => Ok(Mode::Lossless),
        _ => Ok(mode.unwrap_or_default()),
    }
}

fn read_placement(
    placement: &mut Placement,
    name: &'static str,
    value: &str,
) -> Result<(), ParamError> {
    match name {
        "watermark_position" => {
            placement.position = word(name, value, Position::parse, Position::ALLOWED)?;
        }
        "watermark_opacity" => placement.opacity = capped(name, value, 0..=100)? as u8,
        "watermark_margin" => placement.margin = Some(capped(name, value, 0..=16383)? as u16),
        "watermark_scale" => placement.scale = Some(capped(name, value, 1..=100)? as u8),
        "watermark_rotate" => placement.rotate = capped(name, value, -360..=360)? as i16,
        "watermark_tile" => placement.is_tiled = word(name, value, truth, "true or false")?,
        _ => {} // token
    }
    Ok(())
}

fn read_color(name: &'static str, value: &str) -> Result<Color, ParamError> {
    word(name, value, Color::parse, Color::ALLOWED).map_err(|mut error| {
        // A plain # ends the query: it begins the fragment, which clients keep to themselves.
        if value.is_empty() {
            error
                .detail
                .push_str(" In a URL, # is written as %23: watermark_color=%23ffcc00.");
        }
        error
    })
}

fn keeping(text: &str) -> Option<bool> {
    match text {
        "keep" => Some(true),
        "strip" => Some(false),
        _ => None,
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// One of a few words.
fn word<T>(
    name: &'static str,
    value: &str,
    parse: fn(&str) -> Option<T>,
    allowed: &str,
) -> Result<T, ParamError> {
    parse(value).ok_or_else(|| invalid(name, value, allowed))
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for ParamError {}

/// A whole number, capped into `range`.
fn capped(name: &'static str, value: &str, range: RangeInclusive<i32>) -> Result<i32, ParamError> {
    let (sign, digits) = match value.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, value),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(invalid(
            name,
            value,
            &format!("a whole number from {} to {}", range.start(), range.end()),
        ));
    }
    // Digits alone: only a number beyond 32 bits is left to fail.
    let number = sign * digits.parse().unwrap_or(i32::MAX);
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
            mode: Mode::Auto,
            alpha_quality: 100,
            near_lossless: 100,
            animation: Animation::All,
            keeps_metadata: false,
            text: None,
            picture_url: None,
            placement: Placement {
                position: Position::BottomRight,
                margin: None,
                scale: None,
                rotate: 0,
                is_tiled: false,
                opacity: 50,
            },
        };
        assert_eq!(parsed(&[]), expected);
        assert_eq!(
            parsed(&[("watermark", "©")]).text,
            Some(TextWatermark {
                text: "©".to_owned(),
                size: 24,
                color: Color::WHITE,
                outline: Outline::None,
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
            ("watermark_outline", "shadow"),
            ("watermark_margin", "33"),
            ("watermark_scale", "44"),
            ("watermark_rotate", "-55"),
            ("watermark_tile", "true"),
            ("mode", "lossless"),
            ("alpha_quality", "66"),
            ("near_lossless", "55"),
            ("animation", "first"),
            ("metadata", "keep"),
        ]);
        let expected = Params {
            quality: 70,
            effort: Effort::High,
            mode: Mode::Lossless,
            alpha_quality: 66,
            near_lossless: 55,
            animation: Animation::First,
            keeps_metadata: true,
            text: Some(TextWatermark {
                text: "© me".to_owned(),
                size: 32,
                color: Color::new(10, 11, 12),
                outline: Outline::Shadow,
            }),
            picture_url: Some("https://example.org/logo.png".to_owned()),
            placement: Placement {
                position: Position::TopLeft,
                margin: Some(33),
                scale: Some(44),
                rotate: -55,
                is_tiled: true,
                opacity: 25,
            },
        };
        assert_eq!(params, expected);
    }

    #[test]
    fn lossless_is_a_mode_and_contradicts_another() {
        for (pairs, expected) in [
            (&[("lossless", "true")][..], Mode::Lossless),
            (&[("lossless", "false")], Mode::Auto),
            (&[("lossless", "false"), ("mode", "lossy")], Mode::Lossy),
            (
                &[("lossless", "false"), ("mode", "lossless")],
                Mode::Lossless,
            ),
            (
                &[("mode", "lossless"), ("lossless", "true")],
                Mode::Lossless,
            ),
            (&[("mode", "auto"), ("lossless", "true")], Mode::Lossless),
        ] {
            assert_eq!(parsed(pairs).mode, expected, "{pairs:?}");
        }
        for pairs in [
            [("lossless", "true"), ("mode", "lossy")],
            [("mode", "lossy"), ("lossless", "true")],
        ] {
            let error = parse(&pairs).expect_err("they contradict each other");
            assert_eq!((error.name, error.code), ("lossless", "invalid_parameter"));
            for word in ["lossless", "mode", "true", "lossy"] {
                assert!(error.detail.contains(word), "{error}");
            }
        }
        let error = parse(&[("lossless", "yes")]).expect_err("no such word");
        assert!(error.detail.contains("true or false"), "{error}");
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
                parsed(&[("watermark_opacity", value)]).placement.opacity,
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
    fn margins_scales_and_turns_out_of_range_are_capped() {
        for (value, margin, scale, rotate) in [
            ("-99999999999999999999", 0, 1, -360),
            ("-361", 0, 1, -360),
            ("-360", 0, 1, -360),
            ("-45", 0, 1, -45),
            ("0", 0, 1, 0),
            ("1", 1, 1, 1),
            ("100", 100, 100, 100),
            ("101", 101, 100, 101),
            ("360", 360, 100, 360),
            ("361", 361, 100, 360),
            ("16383", 16383, 100, 360),
            ("16384", 16383, 100, 360),
            ("99999999999999999999", 16383, 100, 360),
        ] {
            let placement = parsed(&[
                ("watermark_margin", value),
                ("watermark_scale", value),
                ("watermark_rotate", value),
            ])
            .placement;
            assert_eq!(
                (placement.margin, placement.scale, placement.rotate),
                (Some(margin), Some(scale), rotate),
                "{value}"
            );
        }
    }

    #[test]
    fn what_is_no_whole_number_is_refused_by_name() {
        for name in [
            "quality",
            "watermark_size",
            "watermark_opacity",
            "watermark_margin",
            "watermark_scale",
            "watermark_rotate",
        ] {
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
             allowed is topLeft, top, topRight, left, center, right, bottomLeft, bottom or bottomRight."
        );
        let error = parse(&[("watermark_color", "pink")]).expect_err("unknown");
        assert_eq!(
            error.detail,
            "Parameter watermark_color: \"pink\" was given; allowed is white, black, red, blue, yellow, gray, #RRGGBB or #RGB."
        );
        let error = parse(&[("watermark_color", "")]).expect_err("a plain # cut it off");
        assert!(
            error.detail.contains("watermark_color=%23ffcc00"),
            "{error}"
        );
        let error = parse(&[("watermark_outline", "glow")]).expect_err("unknown");
        assert_eq!(
            error.detail,
            "Parameter watermark_outline: \"glow\" was given; allowed is none, outline or shadow."
        );
        for value in ["", "1", "True", "yes"] {
            let error = parse(&[("watermark_tile", value)]).expect_err(value);
            assert_eq!(
                error.detail,
                format!("Parameter watermark_tile: {value:?} was given; allowed is true or false.")
            );
        }
        let error = parse(&[("metadata", "yes")]).expect_err("unknown");
        assert_eq!(
            error.detail,
            "Parameter metadata: \"yes\" was given; allowed is strip or keep."
        );
        for value in ["", "Low", " low"] {
            assert!(parse(&[("effort", value)]).is_err(), "{value:?}");
        }
        assert!(parse(&[("watermark_position", "")]).is_err());
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
                "mode" => "lossy",
                "animation" => "first",
                "metadata" => "strip",
                "watermark_color" => "red",
                "watermark_position" => "center",
                "watermark_outline" => "none",
                "watermark_tile" | "lossless" => "true",
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
