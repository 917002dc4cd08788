//! The parameters of a conversion: one table of them, and how a request's values are read by it.

mod error;
mod value;
mod words;

#[doc(hidden)]
pub use error::{ParamError, ParamProblem};
pub use value::{Value, size};
pub use words::{Animation, IfLarger};

use super::goal::Goal;
use super::sizing::{Fit, Sizing};
use crate::image::{Keep, Rectangle};
use crate::watermark::{Color, Length, Outline, Placement, Position, TextSize, TextWatermark};
use towebp_encoder::{Effort, Mode};

/// The parameters of a conversion, checked and capped.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Quality of lossy pixels, 0 to 100. It has no effect beside a goal.
    pub quality: u8,
    /// Whether a JPEG's own quality, if it is below [`Params::quality`], takes its place. An
    /// addition to the specification.
    pub follows_source: bool,
    /// The goal of a search that takes the place of `quality` (`max_bytes` with `best_effort`, or
    /// `target`), if there is one. An addition to the specification.
    pub goal: Option<Goal>,
    /// How much work goes into the file. An addition to the specification, as are the next five.
    pub effort: Effort,
    /// How pixels are coded (`mode`, or `lossless=true`).
    pub mode: Mode,
    /// Quality of alpha beside lossy pixels (`alpha_quality`), 0 to 100; 100 is lossless.
    pub alpha_quality: u8,
    /// How near losslessly coded pixels stay to the original ones (`near_lossless`), 0 to 100; 100
    /// is exactly.
    pub near_lossless: u8,
    /// The frames of a GIF that are converted (`animation`).
    pub animation: Animation,
    /// The parts of Exif, XMP and the ICC profile that are kept (`metadata`).
    pub metadata: Keep,
    /// Whether the conversion also gives a placeholder (`placeholder`).
    pub placeholder: bool,
    /// The file that is sent if the WebP is not smaller than the input (`if_larger`).
    pub if_larger: IfLarger,
    /// The color that transparency is laid on (`background`), if any.
    pub background: Option<Color>,
    /// The part of the upright picture that is converted (`crop`), if not all of it.
    pub crop: Option<Rectangle>,
    /// The size of the WebP (`width`, `height`, `fit`, `gravity`, `enlarge`, `dpr`).
    pub sizing: Sizing,
    /// Text watermark (`watermark`, `watermark_size`, `watermark_color`, `watermark_outline`), if
    /// any.
    pub text: Option<TextWatermark>,
    /// The URL of the watermark's picture (`watermark_image`), if any. It is not fetched here.
    pub picture_url: Option<String>,
    /// How watermarks are placed on the picture (`watermark_position`, `watermark_opacity`,
    /// `watermark_margin`, `watermark_scale`, `watermark_rotate`, `watermark_tile`).
    pub placement: Placement,
}

/// A row of [`PARAMETERS`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The name.
    pub name: &'static str,
    /// The type of the value, with its allowed range.
    pub value: Value,
    /// A value that is allowed, for the description of the API.
    pub example: &'static str,
    /// The value if the parameter is not given.
    pub default: DefaultValue,
    /// The meaning of its values, in one line of Markdown.
    pub meaning: &'static str,
    /// Its meaning as a flag of the command line, if that is another one.
    pub as_flag: Option<&'static str>,
    /// The treatment of values that are not allowed, in one line of Markdown.
    pub otherwise: &'static str,
}

/// The value of a parameter that is not given.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum DefaultValue {
    /// The default is this value.
    Given(&'static str),
    /// Something that no value stands for, in a few words.
    Other(&'static str),
}

/// The treatment of values that are not allowed in most rows of [`PARAMETERS`].
#[doc(hidden)]
pub const CAPPED: &str = "capped into the range";

/// The treatment of other values of a side: 0 leaves it open, as elsewhere.
#[doc(hidden)]
pub const OR_ABSENT: &str = "capped into the range, but 0 is as if absent";

const TRUE_OR_FALSE: &str = "true or false";

/// The table of all parameters: parsing, error texts and documentation come from it. `token` is
/// among them, although it is read elsewhere.
#[doc(hidden)]
pub const PARAMETERS: [Parameter; 34] = [
    TOKEN,
    number(
        "quality",
        "80",
        (0, 100),
        DefaultValue::Given("85"),
        "0 (smallest) to 100 (best)",
    ),
    Parameter {
        name: "max_bytes",
        value: Value::Size(1, i32::MAX),
        example: "100k",
        default: DefaultValue::Other("none"),
        meaning: "the best quality whose file has at most so many bytes; `100k` is 100000, `2M` is 2000000",
        as_flag: Some(
            "most bytes of each file, with the best quality that fits: 100k is 100000, 2MB is 2000000, 1MiB is 1048576",
        ),
        otherwise: "capped into the range; 400 beside `quality` or `target`",
    },
    word(
        "default_quality",
        "source",
        "fixed or source",
        "fixed",
        "the quality if none is named: `fixed`: 85; `source`: of a JPEG, at most one whose file is no larger than it",
    ),
    Parameter {
        as_flag: Some("write the smallest file if none has as few bytes as --max-bytes allows"),
        ..word(
            "best_effort",
            "true",
            TRUE_OR_FALSE,
            "false",
            "`true`: if no file has as few bytes as `max_bytes`, the smallest one; `false`: a 400 that names its size",
        )
    },
    Parameter {
        otherwise: "capped into the range; 400 beside `quality`",
        ..number(
            "target",
            "70",
            (30, 95),
            DefaultValue::Other("none"),
            "30 to 95, the least score of SSIMULACRA2: the smallest file that looks at least so good",
        )
    },
    word(
        "effort",
        "high",
        Effort::ALLOWED,
        "medium",
        "`low`, `medium`, `high`, `max`: how much work goes into the file",
    ),
    word(
        "mode",
        "lossless",
        Mode::ALLOWED,
        "auto",
        "`auto`, `lossy`, `lossless`: how pixels are coded",
    ),
    Parameter {
        as_flag: Some("the same as --mode lossless"),
        ..word(
            "lossless",
            "true",
            TRUE_OR_FALSE,
            "false",
            "`true`: as `mode=lossless`, and a 400 beside `mode=lossy`; `false`: as if absent",
        )
    },
    number(
        "alpha_quality",
        "90",
        (0, 100),
        DefaultValue::Given("100"),
        "0 to 100, of transparency beside lossy pixels; 100 is without loss",
    ),
    number(
        "near_lossless",
        "60",
        (0, 100),
        DefaultValue::Given("100"),
        "0 to 100, of pixels coded without loss; 100 is exactly",
    ),
    word(
        "animation",
        "first",
        Animation::ALLOWED,
        "all",
        "`all`, `first`: whether an animated GIF or PNG keeps moving",
    ),
    word(
        "metadata",
        "copyright",
        Keep::ALLOWED,
        "strip",
        "what is kept: `strip`: nothing; `copyright`: creator, copyright and license; `icc`: the ICC profile; `keep`: it, \
         Exif and XMP",
    ),
    Parameter {
        as_flag: Some("report a placeholder (ThumbHash) for each picture"),
        ..word(
            "placeholder",
            "true",
            TRUE_OR_FALSE,
            "false",
            "`true`: `X-Towebp-Thumbhash` has a placeholder of some 25 bytes, from which pages draw a blurred picture",
        )
    },
    Parameter {
        name: "background",
        value: Value::Color(Color::ALLOWED),
        example: "#ffffff",
        default: DefaultValue::Other("none"),
        meaning: "the color that transparency is laid on, as of `watermark_color`",
        as_flag: Some("color that transparency is laid on, as of --watermark-color"),
        otherwise: "400",
    },
    Parameter {
        name: "crop",
        value: Value::Rectangle,
        example: "0,0,20,15",
        default: DefaultValue::Other("all of the picture"),
        meaning: "`x,y,width,height` in pixels of the upright picture: the part that is converted, and then resized",
        as_flag: None,
        otherwise: "400, also if it is not within the picture",
    },
    Parameter {
        otherwise: OR_ABSENT,
        ..number(
            "width",
            "800",
            (1, 16383),
            DefaultValue::Other("that of the picture"),
            "1 to 16383 pixels, the width of the box that the picture is resized to",
        )
    },
    Parameter {
        otherwise: OR_ABSENT,
        ..number(
            "height",
            "600",
            (1, 16383),
            DefaultValue::Other("that of the picture"),
            "1 to 16383 pixels, the height of that box",
        )
    },
    word(
        "fit",
        "cover",
        Fit::ALLOWED,
        "contain",
        "`contain` and `inside` (all of the picture, within the box), `cover` (the box is filled, what goes beyond it is \
         cut off), `fill` (the box is filled, by stretching)",
    ),
    Parameter {
        as_flag: Some("the part that stays with --fit cover: a name as of --watermark-position"),
        ..word(
            "gravity",
            "top",
            Position::ALLOWED,
            "center",
            "with `fit=cover`, the part that stays: the names of `watermark_position`",
        )
    },
    Parameter {
        as_flag: Some("let pictures become larger than they are"),
        ..word(
            "enlarge",
            "true",
            TRUE_OR_FALSE,
            "false",
            "`true`: the picture may become larger than it is",
        )
    },
    Parameter {
        name: "dpr",
        value: Value::Decimal(100, 8000),
        example: "2",
        default: DefaultValue::Given("1"),
        meaning: "0.1 to 8, pixels of the device for each of `width` and `height`, such as 2 or 1.5",
        as_flag: None,
        otherwise: CAPPED,
    },
    Parameter {
        otherwise: "400, and beside a watermark or another size",
        ..word(
            "if_larger",
            "original",
            IfLarger::ALLOWED,
            "webp",
            "`webp`, `original`: what is sent if the WebP is not smaller than the input",
        )
    },
    Parameter {
        name: "watermark",
        value: Value::Text,
        example: "© example.org",
        default: DefaultValue::Other("none"),
        meaning: "any characters that the fonts have; `%0A` begins a new line",
        as_flag: Some("text to draw onto each picture"),
        otherwise: "400, naming the characters",
    },
    Parameter {
        name: "watermark_size",
        value: Value::Length {
            pixels: (8, 200),
            percent: (100, 100_000),
            has_auto: true,
        },
        example: "3%",
        default: DefaultValue::Given("24"),
        meaning: "the height of the em: 8 to 200 pixels; or `0.1%` to `100%` of the shorter side, such as `3%`, which a URL \
                  needs as `3%25`, at least 8 pixels; or `auto`, 2.5 % of that side, at least 12 pixels. The range of \
                  pixels does not bound the latter two, whose lines are broken to fit",
        as_flag: Some(
            "height of the text's em: 8 to 200 pixels; or 0.1% to 100% of each picture's shorter side, such as 3%; or auto, 2.5 % of it and at least 12 pixels. Of the latter two, long lines are broken",
        ),
        otherwise: CAPPED,
    },
    Parameter {
        as_flag: Some("color of the text: white, black, red, blue, yellow, gray, #RRGGBB or #RGB"),
        value: Value::Color(Color::ALLOWED),
        ..word(
            "watermark_color",
            "#ffcc00",
            Color::ALLOWED,
            "white",
            "`white`, `black`, `red`, `blue`, `yellow`, `gray`, `#RRGGBB`, `#RGB`, in any case of letters and with or \
             without the `#`, which a URL needs as `%23`",
        )
    },
    word(
        "watermark_outline",
        "shadow",
        Outline::ALLOWED,
        "none",
        "`none`, `outline` (a line around the letters), `shadow` (a soft one)",
    ),
    Parameter {
        name: "watermark_image",
        value: Value::Url,
        example: "https://example.org/logo.png",
        default: DefaultValue::Other("none"),
        meaning: "an http or https URL of a PNG or JPEG",
        as_flag: Some(
            "picture to draw onto each picture: a PNG or JPEG file, or its http or https URL",
        ),
        otherwise: "400, with a code that tells why",
    },
    word(
        "watermark_position",
        "topLeft",
        Position::ALLOWED,
        "bottomRight",
        "`topLeft`, `top`, `topRight`, `left`, `center`, `right`, `bottomLeft`, `bottom`, `bottomRight`, in any case of \
         letters, or as `bottom-right`",
    ),
    number(
        "watermark_opacity",
        "80",
        (0, 100),
        DefaultValue::Given("50"),
        "0 (invisible) to 100 (solid)",
    ),
    Parameter {
        otherwise: "capped into the range, and to a quarter of the picture's shorter side",
        name: "watermark_margin",
        value: Value::Length {
            pixels: (0, 16383),
            percent: (0, 25_000),
            has_auto: false,
        },
        example: "2.5%",
        default: DefaultValue::Other("2 % of the shorter side"),
        meaning: "what is kept free beside it, or between tiles: 0 to 16383 pixels, or `0%` to `25%` of the shorter side, \
                  such as `2.5%`, which a URL needs as `2.5%25`",
        as_flag: Some(
            "what is kept free beside watermarks, or between tiles: 0 to 16383 pixels, or 0% to 25% of each picture's shorter side, such as 2.5%",
        ),
    },
    Parameter {
        name: "watermark_scale",
        value: Value::Percent(1, 100),
        example: "25",
        default: DefaultValue::Other("its own size"),
        meaning: "1 to 100, percent of the picture's width; a `%` may follow, which a URL needs as `%25`",
        as_flag: Some("percent of each picture's width that watermarks take, 1 to 100"),
        otherwise: CAPPED,
    },
    number(
        "watermark_rotate",
        "-30",
        (-360, 360),
        DefaultValue::Given("0"),
        "-360 to 360 degrees, clockwise",
    ),
    Parameter {
        as_flag: Some("repeat watermarks over the whole picture"),
        ..word(
            "watermark_tile",
            "true",
            TRUE_OR_FALSE,
            "false",
            "`true`, `false`: repeated over the whole picture",
        )
    },
];

/// The row of the API token, which other paths than the conversion have, too.
#[doc(hidden)]
pub const TOKEN: Parameter = Parameter {
    name: "token",
    value: Value::Token,
    example: "twp_...",
    default: DefaultValue::Other("none"),
    meaning: "your API token; needed unless it is in the header",
    as_flag: None,
    otherwise: "401",
};

impl Params {
    /// Reads the parameters from decoded name and value pairs. Unknown names are ignored; numbers
    /// out of range are capped. A known name that is given twice, a number that is not whole, and a
    /// word that is not allowed are errors.
    ///
    /// A number is written in decimal digits, with a minus sign if it is negative. A plus sign is
    /// rejected: in a query a bare one means a space, so that `+5` would work or not by how it was
    /// encoded.
    ///
    /// # Errors
    /// [`ParamError`], for the first parameter at fault.
    pub fn parse<'a>(
        pairs: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Params, ParamError> {
        let mut values = Values::defaults();
        let mut seen = Vec::new();
        for (name, value) in pairs {
            let Some(parameter) = PARAMETERS.iter().find(|parameter| parameter.name == name) else {
                continue;
            };
            if seen.contains(&parameter.name) {
                return Err(repeated(parameter.name));
            }
            seen.push(parameter.name);
            values.set(parameter, value)?;
        }
        check_exclusive(&seen)?;
        if QUALITY_SETTERS.iter().any(|name| seen.contains(name)) {
            values.params.follows_source = false;
        }
        values.into_params()
    }

    /// The parameter by which the result is another picture than the input, if there is one: the
    /// input itself cannot stand in for it.
    fn changes_picture(&self) -> Option<&'static str> {
        if self.text.is_some() {
            Some("watermark")
        } else if self.picture_url.is_some() {
            Some("watermark_image")
        } else if self.background.is_some() {
            Some("background")
        } else if self.crop.is_some() {
            Some("crop")
        } else if self.sizing.width.is_some() {
            Some("width")
        } else {
            self.sizing.height.map(|_| "height")
        }
    }
}

const fn number(
    name: &'static str,
    example: &'static str,
    (min, max): (i32, i32),
    default: DefaultValue,
    meaning: &'static str,
) -> Parameter {
    Parameter {
        name,
        value: Value::Number(min, max),
        example,
        default,
        meaning,
        as_flag: None,
        otherwise: CAPPED,
    }
}

const fn word(
    name: &'static str,
    example: &'static str,
    allowed: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Parameter {
    Parameter {
        name,
        value: Value::Word(allowed),
        example,
        default: DefaultValue::Given(default),
        meaning,
        as_flag: None,
        otherwise: "400",
    }
}

/// The values of all parameters while they are read.
struct Values {
    params: Params,
    is_lossless: bool,
    max_bytes: Option<u64>,
    is_best_effort: bool,
    target: Option<u8>,
    text: TextWatermark,
}

impl Values {
    /// The values of a request without parameters.
    fn defaults() -> Values {
        let mut values = Values {
            // The table's defaults replace the values here for numbers and words.
            params: Params {
                quality: 0,
                follows_source: false,
                goal: None,
                effort: Effort::default(),
                mode: Mode::default(),
                alpha_quality: 0,
                near_lossless: 0,
                animation: Animation::default(),
                metadata: Keep::NOTHING,
                placeholder: false,
                if_larger: IfLarger::default(),
                background: None,
                crop: None,
                sizing: Sizing::default(),
                text: None,
                picture_url: None,
                placement: Placement::default(),
            },
            is_lossless: false,
            max_bytes: None,
            is_best_effort: false,
            target: None,
            text: TextWatermark {
                text: String::new(),
                size: TextSize::Auto,
                color: Color::WHITE,
                outline: Outline::default(),
            },
        };
        for parameter in &PARAMETERS {
            if let DefaultValue::Given(value) = parameter.default {
                let set = values.set(parameter, value);
                set.expect("the table's defaults are allowed");
            }
        }
        values
    }

    fn set(&mut self, parameter: &Parameter, value: &str) -> Result<(), ParamError> {
        let Values {
            params,
            is_lossless,
            max_bytes,
            is_best_effort,
            target,
            text,
        } = self;
        let (placement, sizing) = (&mut params.placement, &mut params.sizing);
        match parameter.name {
            "quality" => params.quality = parameter.number(value)? as u8,
            "default_quality" => {
                params.follows_source = parameter.word(value, parse_default_quality)?;
            }
            "max_bytes" => *max_bytes = Some(parameter.number(value)? as u64),
            "best_effort" => *is_best_effort = parameter.word(value, parse_bool)?,
            "target" => *target = Some(parameter.number(value)? as u8),
            "effort" => params.effort = parameter.word(value, Effort::parse)?,
            "mode" => params.mode = parameter.word(value, Mode::parse)?,
            "lossless" => *is_lossless = parameter.word(value, parse_bool)?,
            "alpha_quality" => params.alpha_quality = parameter.number(value)? as u8,
            "near_lossless" => params.near_lossless = parameter.number(value)? as u8,
            "animation" => params.animation = parameter.word(value, Animation::parse)?,
            "metadata" => params.metadata = parameter.word(value, Keep::parse)?,
            "placeholder" => params.placeholder = parameter.word(value, parse_bool)?,
            "if_larger" => params.if_larger = parameter.word(value, IfLarger::parse)?,
            "background" => params.background = Some(parameter.color(value)?),
            "crop" => params.crop = Some(parameter.rectangle(value)?),
            "width" => sizing.width = parameter.side(value)?,
            "height" => sizing.height = parameter.side(value)?,
            "fit" => sizing.fit = parameter.word(value, Fit::parse)?,
            "gravity" => sizing.gravity = parameter.word(value, Position::parse)?,
            "enlarge" => sizing.enlarges = parameter.word(value, parse_bool)?,
            "dpr" => sizing.dpr = parameter.decimal(value)? as u16,
            "watermark" => value.clone_into(&mut text.text),
            "watermark_size" => text.size = parameter.text_size(value)?,
            "watermark_color" => text.color = parameter.color(value)?,
            "watermark_outline" => text.outline = parameter.word(value, Outline::parse)?,
            "watermark_image" => {
                params.picture_url = (!value.is_empty()).then(|| value.to_owned());
            }
            "watermark_position" => placement.position = parameter.word(value, Position::parse)?,
            "watermark_opacity" => placement.opacity = parameter.number(value)? as u8,
            "watermark_margin" => placement.margin = Some(parameter.length(value)?),
            "watermark_scale" => placement.scale = Some(parameter.number(value)? as u8),
            "watermark_rotate" => placement.rotate = parameter.number(value)? as i16,
            "watermark_tile" => placement.is_tiled = parameter.word(value, parse_bool)?,
            _ => {} // token
        }
        Ok(())
    }

    fn into_params(self) -> Result<Params, ParamError> {
        let Values {
            params,
            is_lossless,
            max_bytes,
            is_best_effort,
            target,
            text,
        } = self;
        if is_lossless && params.mode == Mode::Lossy {
            return Err(ParamError {
                name: "lossless",
                problem: ParamProblem::Conflict {
                    other: "mode",
                    since: "they contradict each other",
                },
                detail: "Parameters lossless and mode: \"true\" and \"lossy\" were given; allowed is one of the two.".to_owned(),
                code: "invalid_parameter",
            });
        }
        let bytes = max_bytes.map(|bytes| Goal::MaxBytes {
            bytes,
            is_best_effort,
        });
        let params = Params {
            goal: bytes.or(target.map(Goal::Score)),
            mode: if is_lossless {
                Mode::Lossless
            } else {
                params.mode
            },
            text: Some(text).filter(|watermark| !watermark.text.is_empty()),
            ..params
        };
        if params.if_larger == IfLarger::Original
            && let Some(other) = params.changes_picture()
        {
            return Err(ParamError {
                name: "if_larger",
                problem: ParamProblem::Conflict {
                    other,
                    since: "the original is without what the other one asks for",
                },
                detail: format!(
                    "Parameters if_larger and {other}: \"original\" was given, but the original is without what {other} asks for; allowed is one of the two."
                ),
                code: "invalid_parameter",
            });
        }
        Ok(params)
    }
}

impl Parameter {
    /// Reads one of a few words.
    fn word<T>(&self, value: &str, parse: fn(&str) -> Option<T>) -> Result<T, ParamError> {
        parse(value).ok_or_else(|| self.invalid(value))
    }

    /// Reads a color. An empty one is probably due to a plain `#`, which ends the query: it begins
    /// the fragment, which clients do not send.
    fn color(&self, value: &str) -> Result<Color, ParamError> {
        self.word(value, Color::parse).map_err(|mut error| {
            if value.is_empty() {
                let name = self.name;
                let hint = format!(" In a URL, # is written as %23: {name}=%23ffcc00.");
                error.detail.push_str(&hint);
            }
            error
        })
    }

    /// Reads a whole number, a size or a percentage, and caps it into the range.
    fn number(&self, value: &str) -> Result<i32, ParamError> {
        self.value.number(value).ok_or_else(|| self.invalid(value))
    }

    /// Reads a whole number of pixels, and caps it into the range; `None` for 0.
    fn side(&self, value: &str) -> Result<Option<u16>, ParamError> {
        let number = self.number(value)?;
        let digits = value.strip_prefix('-').unwrap_or(value);
        let is_zero = digits.bytes().all(|digit| digit == b'0');
        Ok((!is_zero).then_some(number as u16))
    }

    /// Reads a number, and caps it into the range. It is returned in thousandths.
    fn decimal(&self, value: &str) -> Result<i32, ParamError> {
        self.value.decimal(value).ok_or_else(|| self.invalid(value))
    }

    /// Reads a length, and caps it into the range.
    fn length(&self, value: &str) -> Result<Length, ParamError> {
        self.value.length(value).ok_or_else(|| self.invalid(value))
    }

    /// Reads a part of a picture.
    fn rectangle(&self, value: &str) -> Result<Rectangle, ParamError> {
        value::rectangle(value).ok_or_else(|| self.invalid(value))
    }

    fn text_size(&self, value: &str) -> Result<TextSize, ParamError> {
        match value {
            "auto" => Ok(TextSize::Auto),
            _ => self.length(value).map(TextSize::Given),
        }
    }

    fn invalid(&self, value: &str) -> ParamError {
        /// The number of characters by which a value can be recognized.
        const SHOWN: usize = 60;
        let mut shown: String = value.chars().take(SHOWN).collect();
        if value.chars().nth(SHOWN).is_some() {
            shown.push('…');
        }
        let (allowed, in_url) = (self.value.allowed(), self.value.in_url());
        let name = self.name;
        ParamError {
            name,
            detail: format!("Parameter {name}: {shown:?} was given; allowed is {allowed}{in_url}."),
            problem: ParamProblem::Value {
                given: shown,
                allowed,
            },
            code: "invalid_parameter",
        }
    }
}

/// The parameters that set the quality. They exclude each other.
const QUALITY_SETTERS: [&str; 3] = ["max_bytes", "target", "quality"];

/// Checks that at most one of the parameters that set the quality is given.
fn check_exclusive(given: &[&'static str]) -> Result<(), ParamError> {
    let mut setters = QUALITY_SETTERS.iter().filter(|name| given.contains(name));
    match (setters.next(), setters.next()) {
        (Some(name), Some(other)) => Err(ParamError {
            name,
            problem: ParamProblem::Conflict {
                other,
                since: "each sets the quality",
            },
            detail: format!(
                "Parameters {name} and {other}: both were given; allowed is one of the two, since each sets the \
                 quality."
            ),
            code: "invalid_parameter",
        }),
        _ => Ok(()),
    }
}

fn repeated(name: &'static str) -> ParamError {
    ParamError {
        name,
        problem: ParamProblem::Request,
        detail: format!("Parameter {name} was given more than once; it is allowed once."),
        code: "repeated_parameter",
    }
}

fn parse_default_quality(text: &str) -> Option<bool> {
    ["fixed", "source"]
        .contains(&text)
        .then_some(text == "source")
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
