//! Conversions of files: the parameters and errors of the HTTP API.

use crate::buffers::{Input, Inputs, with_inputs};
use crate::problem::{Problem, check_memory};
use crate::{Made, checkpoint};
use std::cell::RefCell;
use towebp_pipeline::conversion::{
    Cancel, Conversion, ConversionError, Fonts, ParamError, Params, Plan, Preset, Resources,
};
use towebp_pipeline::image::{self, Format, Limits};

thread_local! {
    static FONTS: RefCell<Fonts> = RefCell::default();
}

/// Adds the font of the input, and returns whether it is one.
pub(crate) fn add_font() -> bool {
    let compressed = with_inputs(|inputs| std::mem::take(&mut inputs[Input::Font as usize]));
    let Ok(font) = fdeflate::decompress_to_vec(&compressed) else {
        return false;
    };
    FONTS.with_borrow_mut(|fonts| fonts.add(font).is_ok())
}

/// Converts the input within these bounds.
pub(crate) fn convert(max_pixels: u64, max_memory: u64) -> Result<Made, Problem> {
    with_inputs(|inputs| {
        let params = parameters(&inputs[Input::Parameters as usize])?;
        FONTS.with_borrow(|fonts| convert_by(&params, inputs, fonts, max_pixels, max_memory))
    })
}

fn convert_by(
    params: &Params,
    inputs: &Inputs,
    fonts: &Fonts,
    max_pixels: u64,
    max_memory: u64,
) -> Result<Made, Problem> {
    let bytes = &inputs[Input::Picture as usize];
    let mark = &inputs[Input::Watermark as usize];
    let limits = Limits {
        max_pixels,
        ..Limits::DEFAULT
    };
    if bytes.is_empty() {
        return Err(Problem::new("body_empty", "The picture has no bytes."));
    }
    let format = Format::sniff(bytes).ok_or_else(|| {
        let detail = "The body begins like none of PNG, JPEG, GIF, BMP and WebP.";
        Problem::new("wrong_format", detail)
    })?;
    let opened = image::open(bytes, format, &limits).map_err(ConversionError::from)?;
    let resources = Resources {
        fonts,
        threads: 1,
        cpu_budget: None,
    };
    let mark = params.picture_url.as_ref().map(|_| &mark[..]);
    let plan = Plan::new(&opened, params, mark, resources)?;
    let inputs = (bytes.len() + mark.map_or(0, <[u8]>::len)) as u64;
    check_memory(plan.memory() + inputs, max_memory)?;
    let expected = plan.seconds() * 1000.0;
    let is_unwanted = || checkpoint(expected) != 0;
    let may_hold = |needed: u64| needed + inputs <= max_memory;
    let converted = plan.run_within(&Cancel::when(&is_unwanted), &may_hold);
    match converted {
        Ok(conversion) => Ok(made(conversion, format)),
        Err(ConversionError::Memory { needed }) => Err(check_memory(needed + inputs, max_memory)
            .err()
            .unwrap_or_else(|| Problem::new("internal_error", "Memory was refused."))),
        Err(error) => Err(error.into()),
    }
}

/// The name before the text of a preset, which completes the parameters as that of a token does.
const PRESET: &str = "preset";

/// Reads what [`Input::Parameters`] has.
fn parameters(bytes: &[u8]) -> Result<Params, Problem> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Problem::new("invalid_parameter", "A parameter is not UTF-8."))?;
    let mut parts = text.split_terminator('\0');
    let pairs = std::iter::from_fn(|| Some((parts.next()?, parts.next()?)));
    let (presets, given): (Vec<_>, Vec<_>) = pairs.partition(|(name, _)| *name == PRESET);
    let preset = presets.first().map_or("", |(_, text)| text);
    Ok(Preset::parse(preset)?.complete(given.into_iter())?)
}

/// The file, with its lines: width, height, coding, media type, quality, score and placeholder. A
/// line without a value is empty.
fn made(conversion: Conversion, format: Format) -> Made {
    let Conversion {
        webp,
        width,
        height,
        coding,
        found,
        placeholder,
        prefers_original,
        ..
    } = conversion;
    let found = found.filter(|_| !prefers_original);
    let quality = found.and_then(|found| found.quality);
    let score = found.and_then(|found| found.score);
    let (file, coding, media_type) = if prefers_original {
        (Vec::new(), "", format.media_type())
    } else {
        (webp, coding.name(), "image/webp")
    };
    let lines = [
        width.to_string(),
        height.to_string(),
        coding.to_owned(),
        media_type.to_owned(),
        quality.map_or_else(String::new, |quality| quality.to_string()),
        score.map_or_else(String::new, |score| format!("{score:.2}")),
        placeholder.unwrap_or_default(),
    ];
    Made {
        file,
        notes: lines.join("\n"),
    }
}

impl From<ParamError> for Problem {
    fn from(error: ParamError) -> Problem {
        Problem::new(error.code, error.detail)
    }
}

impl From<ConversionError> for Problem {
    fn from(error: ConversionError) -> Problem {
        Problem::new(error.code(), error.detail())
    }
}
