//! The flags of `cwebp` and `gif2webp` (libwebp 1.6): one table for each program. The reader of
//! arguments, the help texts and the test of `docs/cwebp.md` go by them.

use std::path::PathBuf;

/// A flag with the number of its values.
pub(super) struct Flag {
    pub(super) names: &'static [&'static str],
    pub(super) values: usize,
    /// The flag's effect here, in one line of Markdown.
    pub(super) meaning: &'static str,
    set: Set,
}

/// The effect of a flag.
#[derive(Clone, Copy)]
enum Set {
    /// None; its values are whole numbers.
    Whole,
    /// None; its value is one of these words, if there are any.
    Nothing(&'static [&'static str]),
    /// A parameter gets this value.
    To(&'static str, &'static str),
    /// A parameter gets this value, unless it has one.
    Unless(&'static str, &'static str),
    /// Parameters get values that depend on those of the flag.
    By(fn(&mut Call, &[&str]) -> Result<(), String>),
    Switch(Switch),
    Measure(Measure),
    Print(Print),
    Output,
}

/// A command line, read.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) input: Option<PathBuf>,
    pub(super) output: Option<PathBuf>,
    /// The parameters of the conversion, each once.
    pub(super) parameters: Vec<(&'static str, String)>,
    switches: Vec<Switch>,
    /// The measure that is printed.
    pub(super) measure: Option<Measure>,
    /// A text that is printed in place of a conversion.
    pub(super) prints: Option<Print>,
}

/// A switch of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    Quiet,
    Short,
    Verbose,
    Progress,
}

/// A measure of what coding has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Psnr,
    Ssim,
}

/// A text that ends the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Print {
    Help,
    LongHelp,
    Version,
}

impl Call {
    /// Sets a parameter, in place of an earlier value.
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.parameters.retain(|(other, _)| *other != name);
        self.parameters.push((name, value.into()));
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.parameters.iter().any(|(given, _)| *given == name)
    }

    pub(super) fn is(&self, switch: Switch) -> bool {
        self.switches.contains(&switch)
    }

    pub(super) fn is_lossless(&self) -> bool {
        self.parameters.contains(&("mode", "lossless".to_owned()))
    }
}

/// A row of a table: names, number of values, effect, and meaning; or a constant that is one.
macro_rules! row {
    (($($name:literal)|+, $values:literal, $set:ident $(($($value:tt)*))?, $meaning:expr)) => {
        Flag {
            names: &[$($name),+],
            values: $values,
            meaning: $meaning,
            set: Set::$set $(($($value)*))?,
        }
    };
    ($shared:ident) => {
        $shared
    };
}

macro_rules! flags {
    ($($row:tt)+) => {
        &[$(row!($row)),+]
    };
}

const NO_EFFECT: &str = "no effect: the encoder decides by the picture";

// The flags that both programs have, with the same effect.
const METHOD: Flag = row!((
    "-m",
    1,
    By(method),
    "`effort`: 0 to 3 `low`, 4 `medium`, 5 `high`, 6 `max`"
));
const THREADS: Flag = row!(("-mt", 0, Whole, "no effect: all cores are used"));
const QUIET: Flag = row!((
    "-quiet",
    0,
    Switch(Switch::Quiet),
    "prints nothing but errors"
));
const VERBOSE: Flag = row!(("-v", 0, Switch(Switch::Verbose), "prints times, too"));
const OUTPUT: Flag = row!((
    "-o",
    1,
    Output,
    "the output; `-` is standard output; without it nothing is written"
));
const FILTER: Flag = row!(("-f", 1, Whole, NO_EFFECT));

/// The flags of `cwebp`.
pub(super) const CWEBP: &[Flag] = flags! {
    ("-h" | "-help", 0, Print(Print::Help), "the short help")
    ("-H" | "-longhelp", 0, Print(Print::LongHelp), "all flags")
    ("-q", 1, By(quality), "`quality`, rounded; 75 without it; no effect beside `-lossless`")
    ("-alpha_q", 1, By(|call, values| whole(call, "alpha_quality", values, 0, 100)), "`alpha_quality`")
    ("-preset", 1, Nothing(&["default", "photo", "picture", "drawing", "icon", "text"]), NO_EFFECT)
    ("-z", 1, By(level), "`mode=lossless`, with `effort`: 0 to 2 `low`, 3 to 6 `medium`, 7 and 8 `high`, 9 `max`")
    METHOD
    ("-segments", 1, Whole, NO_EFFECT)
    ("-size", 1, By(size), "`max_bytes`, with `best_effort=true`")
    ("-psnr", 1, By(psnr), "`target`, a score of SSIMULACRA2: 80 for 42 dB, and 4 for each dB more or less")
    ("-s", 2, By(|_, _| Err("Error! Raw Y'CbCr samples (-s) are not read".to_owned())),
     "an error: raw samples are not read")
    ("-sns", 1, Whole, NO_EFFECT)
    FILTER
    ("-sharpness", 1, Whole, NO_EFFECT)
    ("-strong", 0, Whole, NO_EFFECT)
    ("-nostrong", 0, Whole, NO_EFFECT)
    ("-partition_limit", 1, Whole, "no effect: partitions always fit")
    ("-pass", 1, Whole, NO_EFFECT)
    ("-crop", 4, By(crop), "`crop`, in pixels of the upright picture")
    ("-resize", 2, By(resize), "`width` and `height` with `fit=fill` and `enlarge=true`; a 0 leaves a side open")
    THREADS
    ("-low_memory", 0, Whole, "no effect")
    ("-map", 1, Whole, "no effect: there is no such map")
    ("-print_psnr", 0, Measure(Measure::Psnr), "prints the PSNR of blue, green, red, alpha and all")
    ("-print_ssim", 0, Measure(Measure::Ssim), "prints the SSIM of these in dB, in blocks of 8 by 8")
    ("-print_lsim", 0, Measure(Measure::Ssim), "as `-print_ssim`")
    ("-d", 1, Nothing(&[]), "no effect: no PGM is written")
    ("-alpha_method", 1, Whole, NO_EFFECT)
    ("-alpha_filter", 1, Nothing(&["none", "fast", "best"]), NO_EFFECT)
    ("-alpha_cleanup", 0, Whole, "no effect: it is always done")
    ("-exact", 0, Whole, "no effect: colors under full transparency are not kept")
    ("-blend_alpha", 1, By(blend), "`background`")
    ("-noalpha", 0, Unless("background", "white"), "`background=white`: the colors under transparency are not kept")
    ("-lossless", 0, To("mode", "lossless"), "`mode=lossless`")
    ("-near_lossless", 1, By(near_lossless), "`near_lossless`, with `mode=lossless`")
    ("-hint", 1, Nothing(&["photo", "picture", "graph"]), NO_EFFECT)
    ("-metadata", 1, By(metadata),
     "`metadata`: `none` is `strip`, `icc` is `icc`; `all`, `exif` and `xmp` are `keep`")
    ("-short", 0, Switch(Switch::Short), "prints bytes and PSNR alone")
    QUIET
    ("-version", 0, Print(Print::Version), "prints `1.6.0`, the version whose flags these are")
    ("-noasm", 0, Whole, "no effect")
    VERBOSE
    ("-progress", 0, Switch(Switch::Progress), "prints 0 % and 100 %")
    ("-jpeg_like", 0, Whole, NO_EFFECT)
    ("-af", 0, Whole, NO_EFFECT)
    ("-pre", 1, Whole, NO_EFFECT)
    OUTPUT
};

/// The flags of `gif2webp`.
pub(super) const GIF2WEBP: &[Flag] = flags! {
    ("-h" | "-help", 0, Print(Print::LongHelp), "the help")
    ("-lossy", 0, To("mode", "lossy"), "`mode=lossy`; without it and `-mixed` it is `mode=lossless`")
    ("-mixed", 0, To("mode", "auto"), "`mode=auto`")
    ("-q", 1, By(quality), "`quality`, rounded; 75 without it")
    METHOD
    ("-min_size", 0, To("effort", "high"), "`effort=high`")
    ("-kmin", 1, Whole, "no effect: frames hold what changes")
    ("-kmax", 1, Whole, "no effect: frames hold what changes")
    FILTER
    ("-metadata", 1, By(metadata), "`metadata`: `none` is `strip`; `xmp`, the default, and `all` are `keep`")
    ("-loop_compatibility", 0, Whole, "no effect")
    THREADS
    ("-version", 0, Print(Print::Version), "prints the version whose flags these are")
    VERBOSE
    QUIET
    OUTPUT
};

/// Reads arguments as these programs do: flags and the input in any order, the last of several
/// inputs counts, and behind `--` stands the input alone.
///
/// # Errors
/// A line for standard error.
pub(super) fn read(flags: &[Flag], arguments: &[PathBuf]) -> Result<Call, String> {
    let mut call = Call::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_str().unwrap_or_default();
        if text == "--" {
            if let Some(input) = rest.next() {
                call.input = Some(input.clone());
            }
            break;
        }
        // Here the programs of libwebp take a single - for an unknown flag.
        if !text.starts_with('-') || text == "-" {
            call.input = Some(argument.clone());
            continue;
        }
        let known = flags.iter().find(|flag| flag.names.contains(&text));
        let Some(flag) = known.filter(|flag| rest.len() >= flag.values) else {
            return Err(format!("Error! Unknown option '{text}'"));
        };
        let values: Vec<&PathBuf> = rest.by_ref().take(flag.values).collect();
        let texts = values
            .iter()
            .map(|value| value.to_str().unwrap_or_default());
        let texts: Vec<&str> = texts.collect();
        match flag.set {
            Set::By(set) => set(&mut call, &texts)?,
            Set::To(name, value) => call.set(name, value),
            Set::Unless(name, value) if !call.has(name) => call.set(name, value),
            Set::Unless(..) => {}
            Set::Whole => texts.iter().try_for_each(|text| number(text).map(drop))?,
            Set::Nothing(words) if words.is_empty() || words.contains(&texts[0]) => {}
            Set::Nothing(words) => {
                return Err(format!(
                    "Error! Unrecognized value of {text}: {}; allowed are {}",
                    texts[0],
                    words.join(", ")
                ));
            }
            Set::Switch(switch) => call.switches.push(switch),
            Set::Measure(measure) => call.measure = Some(measure),
            Set::Print(print) => call.prints = Some(print),
            // A path may be no text.
            Set::Output => call.output = values.first().copied().cloned(),
        }
        if call.prints.is_some() {
            break;
        }
    }
    Ok(call)
}

/// A whole number as `strtol` reads it: decimal, octal behind 0, or hexadecimal behind 0x.
fn number(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let read = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16),
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8),
        None => digits.parse(),
    };
    let read = read.map_err(|_| format!("Error! '{text}' is not an integer."))?;
    Ok(if digits.len() < text.len() {
        -read
    } else {
        read
    })
}

fn float(text: &str) -> Result<f64, String> {
    let read = text.parse().ok().filter(|number: &f64| number.is_finite());
    read.ok_or_else(|| format!("Error! '{text}' is not a floating point number."))
}

fn invalid(text: &str, least: i64, most: i64) -> String {
    format!("Error! Invalid configuration: '{text}' was given; allowed is {least} to {most}.")
}

fn within(text: &str, least: i64, most: i64) -> Result<i64, String> {
    let read = number(text)?;
    let is_allowed = (least..=most).contains(&read);
    is_allowed
        .then_some(read)
        .ok_or_else(|| invalid(text, least, most))
}

fn whole(
    call: &mut Call,
    name: &'static str,
    values: &[&str],
    least: i64,
    most: i64,
) -> Result<(), String> {
    call.set(name, within(values[0], least, most)?.to_string());
    Ok(())
}

fn quality(call: &mut Call, values: &[&str]) -> Result<(), String> {
    let quality = float(values[0])?;
    if !(0.0..=100.0).contains(&quality) {
        return Err(invalid(values[0], 0, 100));
    }
    call.set("quality", format!("{quality:.0}"));
    Ok(())
}

fn effort(call: &mut Call, level: i64, [medium, high, max]: [i64; 3]) {
    let effort = match level {
        level if level >= max => "max",
        level if level >= high => "high",
        level if level >= medium => "medium",
        _ => "low",
    };
    call.set("effort", effort);
}

fn method(call: &mut Call, values: &[&str]) -> Result<(), String> {
    effort(call, within(values[0], 0, 6)?, [4, 5, 6]);
    Ok(())
}

fn level(call: &mut Call, values: &[&str]) -> Result<(), String> {
    effort(call, within(values[0], 0, 9)?, [3, 7, 9]);
    call.set("mode", "lossless");
    Ok(())
}

fn near_lossless(call: &mut Call, values: &[&str]) -> Result<(), String> {
    whole(call, "near_lossless", values, 0, 100)?;
    call.set("mode", "lossless");
    Ok(())
}

fn size(call: &mut Call, values: &[&str]) -> Result<(), String> {
    whole(call, "max_bytes", values, 1, i64::from(i32::MAX))?;
    call.set("best_effort", "true");
    Ok(())
}

fn psnr(call: &mut Call, values: &[&str]) -> Result<(), String> {
    let score = 80.0 + 4.0 * (float(values[0])? - 42.0);
    call.set("target", format!("{:.0}", score.clamp(30.0, 95.0)));
    Ok(())
}

fn crop(call: &mut Call, values: &[&str]) -> Result<(), String> {
    let sides: Result<Vec<String>, String> = values
        .iter()
        .map(|text| Ok(number(text)?.to_string()))
        .collect();
    call.set("crop", sides?.join(","));
    Ok(())
}

fn resize(call: &mut Call, values: &[&str]) -> Result<(), String> {
    for (name, text) in ["width", "height"].into_iter().zip(values) {
        call.set(name, within(text, 0, 16_383)?.to_string());
    }
    call.set("fit", "fill");
    call.set("enlarge", "true");
    Ok(())
}

fn blend(call: &mut Call, values: &[&str]) -> Result<(), String> {
    let text = values[0];
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let color = u32::from_str_radix(digits, 16);
    let color = color.map_err(|_| format!("Error! '{text}' is not an integer."))?;
    call.set("background", format!("#{:06x}", color & 0xff_ffff));
    Ok(())
}

fn metadata(call: &mut Call, values: &[&str]) -> Result<(), String> {
    let mut kept = "strip";
    for word in values[0].split(',') {
        kept = match word {
            "none" => "strip",
            "icc" if kept != "keep" => "icc",
            "icc" | "all" | "exif" | "xmp" => "keep",
            _ => return Err(format!("Error! Unknown metadata type '{word}'")),
        };
    }
    call.set("metadata", kept);
    Ok(())
}
