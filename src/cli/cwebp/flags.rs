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

const fn flag(
    names: &'static [&'static str],
    values: usize,
    meaning: &'static str,
    set: Set,
) -> Flag {
    Flag {
        names,
        values,
        meaning,
        set,
    }
}

const NO_EFFECT: &str = "no effect: the encoder decides by the picture";

// The flags that both programs have, with the same effect.
const METHOD: Flag = flag(
    &["-m"],
    1,
    "`effort`: 0 to 3 `low`, 4 `medium`, 5 `high`, 6 `max`",
    Set::By(method),
);
const THREADS: Flag = flag(&["-mt"], 0, "no effect: all cores are used", Set::Whole);
const QUIET: Flag = flag(
    &["-quiet"],
    0,
    "prints nothing but errors",
    Set::Switch(Switch::Quiet),
);
const VERBOSE: Flag = flag(
    &["-v"],
    0,
    "prints times, too",
    Set::Switch(Switch::Verbose),
);
const OUTPUT: Flag = flag(
    &["-o"],
    1,
    "the output; `-` is standard output; without it nothing is written",
    Set::Output,
);
const FILTER: Flag = flag(&["-f"], 1, NO_EFFECT, Set::Whole);

/// The flags of `cwebp`.
pub(super) const CWEBP: &[Flag] = &[
    flag(
        &["-h", "-help"],
        0,
        "the short help",
        Set::Print(Print::Help),
    ),
    flag(
        &["-H", "-longhelp"],
        0,
        "all flags",
        Set::Print(Print::LongHelp),
    ),
    flag(
        &["-q"],
        1,
        "`quality`, rounded; 75 without it; no effect beside `-lossless`",
        Set::By(quality),
    ),
    flag(
        &["-alpha_q"],
        1,
        "`alpha_quality`",
        Set::By(|call, values| whole(call, "alpha_quality", values, 0, 100)),
    ),
    flag(
        &["-preset"],
        1,
        NO_EFFECT,
        Set::Nothing(&["default", "photo", "picture", "drawing", "icon", "text"]),
    ),
    flag(
        &["-z"],
        1,
        "`mode=lossless`, with `effort`: 0 to 2 `low`, 3 to 6 `medium`, 7 and 8 `high`, 9 `max`",
        Set::By(level),
    ),
    METHOD,
    flag(&["-segments"], 1, NO_EFFECT, Set::Whole),
    flag(
        &["-size"],
        1,
        "`max_bytes`, with `best_effort=true`",
        Set::By(size),
    ),
    flag(
        &["-psnr"],
        1,
        "`target`, a score of SSIMULACRA2: 80 for 42 dB, and 4 for each dB more or less",
        Set::By(psnr),
    ),
    flag(
        &["-s"],
        2,
        "an error: raw samples are not read",
        Set::By(|_, _| Err("Error! Raw Y'CbCr samples (-s) are not read".to_owned())),
    ),
    flag(&["-sns"], 1, NO_EFFECT, Set::Whole),
    FILTER,
    flag(&["-sharpness"], 1, NO_EFFECT, Set::Whole),
    flag(&["-strong"], 0, NO_EFFECT, Set::Whole),
    flag(&["-nostrong"], 0, NO_EFFECT, Set::Whole),
    flag(
        &["-partition_limit"],
        1,
        "no effect: partitions always fit",
        Set::Whole,
    ),
    flag(&["-pass"], 1, NO_EFFECT, Set::Whole),
    flag(
        &["-crop"],
        4,
        "`crop`, in pixels of the upright picture",
        Set::By(crop),
    ),
    flag(
        &["-resize"],
        2,
        "`width` and `height` with `fit=fill` and `enlarge=true`; a 0 leaves a side open",
        Set::By(resize),
    ),
    THREADS,
    flag(&["-low_memory"], 0, "no effect", Set::Whole),
    flag(&["-map"], 1, "no effect: there is no such map", Set::Whole),
    flag(
        &["-print_psnr"],
        0,
        "prints the PSNR of blue, green, red, alpha and all",
        Set::Measure(Measure::Psnr),
    ),
    flag(
        &["-print_ssim"],
        0,
        "prints the SSIM of these in dB, in blocks of 8 by 8",
        Set::Measure(Measure::Ssim),
    ),
    flag(
        &["-print_lsim"],
        0,
        "as `-print_ssim`",
        Set::Measure(Measure::Ssim),
    ),
    flag(
        &["-d"],
        1,
        "no effect: no PGM is written",
        Set::Nothing(&[]),
    ),
    flag(&["-alpha_method"], 1, NO_EFFECT, Set::Whole),
    flag(
        &["-alpha_filter"],
        1,
        NO_EFFECT,
        Set::Nothing(&["none", "fast", "best"]),
    ),
    flag(
        &["-alpha_cleanup"],
        0,
        "no effect: it is always done",
        Set::Whole,
    ),
    flag(
        &["-exact"],
        0,
        "no effect: colors under full transparency are not kept",
        Set::Whole,
    ),
    flag(&["-blend_alpha"], 1, "`background`", Set::By(blend)),
    flag(
        &["-noalpha"],
        0,
        "`background=white`: the colors under transparency are not kept",
        Set::Unless("background", "white"),
    ),
    flag(
        &["-lossless"],
        0,
        "`mode=lossless`",
        Set::To("mode", "lossless"),
    ),
    flag(
        &["-near_lossless"],
        1,
        "`near_lossless`, with `mode=lossless`",
        Set::By(near_lossless),
    ),
    flag(
        &["-hint"],
        1,
        NO_EFFECT,
        Set::Nothing(&["photo", "picture", "graph"]),
    ),
    flag(
        &["-metadata"],
        1,
        "`metadata`: `none` is `strip`, `icc` is `icc`; `all`, `exif` and `xmp` are `keep`",
        Set::By(metadata),
    ),
    flag(
        &["-short"],
        0,
        "prints bytes and PSNR alone",
        Set::Switch(Switch::Short),
    ),
    QUIET,
    flag(
        &["-version"],
        0,
        "prints `1.6.0`, the version whose flags these are",
        Set::Print(Print::Version),
    ),
    flag(&["-noasm"], 0, "no effect", Set::Whole),
    VERBOSE,
    flag(
        &["-progress"],
        0,
        "prints 0 % and 100 %",
        Set::Switch(Switch::Progress),
    ),
    flag(&["-jpeg_like"], 0, NO_EFFECT, Set::Whole),
    flag(&["-af"], 0, NO_EFFECT, Set::Whole),
    flag(&["-pre"], 1, NO_EFFECT, Set::Whole),
    OUTPUT,
];

/// The flags of `gif2webp`.
pub(super) const GIF2WEBP: &[Flag] = &[
    flag(&["-h", "-help"], 0, "the help", Set::Print(Print::LongHelp)),
    flag(
        &["-lossy"],
        0,
        "`mode=lossy`; without it and `-mixed` it is `mode=lossless`",
        Set::To("mode", "lossy"),
    ),
    flag(&["-mixed"], 0, "`mode=auto`", Set::To("mode", "auto")),
    flag(
        &["-q"],
        1,
        "`quality`, rounded; 75 without it",
        Set::By(quality),
    ),
    METHOD,
    flag(
        &["-min_size"],
        0,
        "`effort=high`",
        Set::To("effort", "high"),
    ),
    flag(
        &["-kmin"],
        1,
        "no effect: frames hold what changes",
        Set::Whole,
    ),
    flag(
        &["-kmax"],
        1,
        "no effect: frames hold what changes",
        Set::Whole,
    ),
    FILTER,
    flag(
        &["-metadata"],
        1,
        "`metadata`: `none` is `strip`; `xmp`, the default, and `all` are `keep`",
        Set::By(metadata),
    ),
    flag(&["-loop_compatibility"], 0, "no effect", Set::Whole),
    THREADS,
    flag(
        &["-version"],
        0,
        "prints the version whose flags these are",
        Set::Print(Print::Version),
    ),
    VERBOSE,
    QUIET,
    OUTPUT,
];

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
