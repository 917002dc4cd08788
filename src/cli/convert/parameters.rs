//! The parameters of the service as flags: [`PARAMETERS`] has their names, types, ranges, defaults
//! and meanings.

use crate::cli::settings::Words;
use crate::cli::suggest;
use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use std::ffi::{OsStr, OsString};
use towebp_pipeline::conversion::{
    DefaultValue, Mode, PARAMETERS, ParamError, ParamProblem, Parameter, Params, Value,
};

/// More words than these make no name of a value.
const MOST_WORDS: usize = 4;

/// The parameters that are given, with their values.
#[derive(Clone, Debug)]
pub(super) struct ParameterFlags(Vec<(&'static Parameter, OsString)>);

/// The rows that are flags.
fn rows() -> impl Iterator<Item = &'static Parameter> {
    const ROWS: &[Parameter] = &PARAMETERS;
    ROWS.iter().filter(|row| !matches!(row.value, Value::Token))
}

impl Args for ParameterFlags {
    fn augment_args(command: Command) -> Command {
        command.args(rows().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ParameterFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given =
            rows().filter(|row| matches.value_source(row.name) == Some(ValueSource::CommandLine));
        let value = |row: &Parameter| matches.get_raw(row.name)?.next_back().map(OsStr::to_owned);
        Ok(ParameterFlags(
            given.filter_map(|row| Some((row, value(row)?))).collect(),
        ))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flag of a parameter.
fn flag(row: &'static Parameter) -> Arg {
    let words = row.value.words();
    let is_switch = words == ["true", "false"];
    let arg = Arg::new(row.name)
        .long(long(row.name))
        .help(help(row, is_switch))
        .help_heading(heading(row.name))
        .value_parser(ValueParser::os_string());
    let arg = if row.name == "quality" {
        arg.short('q')
    } else {
        arg
    };
    if is_switch {
        return arg.action(ArgAction::SetTrue);
    }
    let arg = arg
        .value_name(value_name(row.value))
        .allow_hyphen_values(true);
    match row.value {
        Value::Url => arg.value_hint(ValueHint::FilePath),
        _ if words.is_empty() => arg.value_hint(ValueHint::Other),
        _ => arg.value_parser(Words(words)).hide_possible_values(true),
    }
}

fn long(name: &str) -> String {
    name.replace('_', "-")
}

fn heading(name: &str) -> &'static str {
    match name {
        "width" | "height" | "fit" | "gravity" | "enlarge" | "dpr" => "Size",
        name if name.starts_with("watermark") => "Watermarks",
        _ => "Quality and coding",
    }
}

fn help(row: &Parameter, is_switch: bool) -> String {
    let meaning = row.as_flag.map_or_else(|| plain(row), str::to_owned);
    match row.default {
        DefaultValue::Given(_) if is_switch => meaning,
        DefaultValue::Given(default) => format!("{meaning} (default {default})"),
        DefaultValue::Other("none") => meaning,
        DefaultValue::Other(default) => format!("{meaning} (default: {default})"),
    }
}

/// The meaning as plain text, where names of other parameters become those of flags.
fn plain(row: &Parameter) -> String {
    let words = row.value.words();
    let parts = row.meaning.split('`').enumerate();
    let parts = parts.map(|(index, part)| {
        let other = rows().find(|other| other.name == part && !words.contains(&part));
        match other {
            Some(other) if index % 2 == 1 => format!("--{}", long(other.name)),
            _ => part.to_owned(),
        }
    });
    parts.collect()
}

fn value_name(value: Value) -> String {
    match value {
        Value::Size(..) => "BYTES",
        Value::Percent(..) => "PERCENT",
        Value::Length { has_auto: true, .. } => "PIXELS|PERCENT|auto",
        Value::Length { .. } => "PIXELS|PERCENT",
        Value::Color(_) => "COLOR",
        Value::Rectangle => "X,Y,W,H",
        Value::Url => "FILE|URL",
        Value::Text => "TEXT",
        Value::Word(_) if value.words().len() <= MOST_WORDS => return value.words().join("|"),
        Value::Word(_) => "POSITION",
        _ => "NUMBER",
    }
    .to_owned()
}

impl ParameterFlags {
    /// The file of the watermark's picture, or its URL.
    pub(super) fn watermark_image(&self) -> Option<&OsStr> {
        self.value("watermark_image")
            .filter(|value| !value.is_empty())
    }

    /// Reads the values as the service does, but numbers have to be in their range: at a prompt
    /// there is somebody who can give another one.
    ///
    /// # Errors
    /// A sentence that names the flag.
    pub(super) fn params(&self) -> Result<Params, String> {
        let mut pairs = Vec::new();
        for (row, value) in &self.0 {
            // The name of a file is any bytes, and is read by itself.
            let value = match row.value {
                Value::Url => value.to_string_lossy(),
                _ => value
                    .to_str()
                    .ok_or_else(|| format!("--{}: its value is not UTF-8", long(row.name)))?
                    .into(),
            };
            let is_absent = ["width", "height"].contains(&row.name) && value == "0";
            if !is_absent && !row.value.is_in_range(&value) {
                return Err(not_allowed(row.name, &value, &row.value.allowed()));
            }
            if !is_absent {
                pairs.push((row.name, value));
            }
        }
        let pairs = pairs.iter().map(|(name, value)| (*name, value.as_ref()));
        Params::parse(pairs).map_err(sentence)
    }

    /// A line for each reason for which flags have no effect.
    pub(super) fn without_effect(&self, params: &Params, has_font: bool) -> Vec<String> {
        const QUALITY: [&str; 3] = ["quality", "max_bytes", "target"];
        const SIZE: [&str; 4] = ["fit", "gravity", "enlarge", "dpr"];
        const TEXT: [&str; 3] = ["watermark_size", "watermark_color", "watermark_outline"];
        const PLACE: [&str; 6] = [
            "watermark_position",
            "watermark_opacity",
            "watermark_margin",
            "watermark_scale",
            "watermark_rotate",
            "watermark_tile",
        ];
        let lossless = if self.value("lossless").is_some() {
            "with --lossless"
        } else {
            "with --mode lossless"
        };
        let is_cover = self.value("fit").is_some_and(|fit| fit == "cover");
        let has_size = params.sizing.width.or(params.sizing.height).is_some();
        let has_picture = params.picture_url.is_some();
        let is_named = QUALITY.iter().any(|name| self.value(name).is_some());
        let rules: [(bool, &[&str], &str); 8] = [
            (
                params.mode == Mode::Lossless,
                &["quality", "alpha_quality"],
                lossless,
            ),
            (
                params.mode == Mode::Lossy,
                &["near_lossless"],
                "with --mode lossy",
            ),
            (
                is_named,
                &["default_quality"],
                "with --quality, --max-bytes or --target",
            ),
            (
                self.value("max_bytes").is_none(),
                &["best_effort"],
                "without --max-bytes",
            ),
            (!has_size, &SIZE, "without --width or --height"),
            (has_size && !is_cover, &["gravity"], "without --fit cover"),
            (params.text.is_none(), &TEXT, "without --watermark"),
            (
                params.text.is_none() && !has_picture,
                &PLACE,
                "without --watermark or --watermark-image",
            ),
        ];
        let mut lines = Vec::new();
        for (holds, names, why) in rules {
            let given = names
                .iter()
                .filter(|name| holds && self.value(name).is_some());
            let mut flags: Vec<String> = given.map(|name| format!("--{}", long(name))).collect();
            if why == "without --watermark" && holds && has_font {
                flags.push("--font".to_owned());
            }
            match flags.as_slice() {
                [] => {}
                [flag] => lines.push(format!("{flag} has no effect {why}")),
                flags => lines.push(format!("{} have no effect {why}", flags.join(" and "))),
            }
        }
        lines
    }

    fn value(&self, name: &str) -> Option<&OsStr> {
        let found = self.0.iter().find(|(row, _)| row.name == name);
        found.map(|(_, value)| value.as_os_str())
    }
}

fn not_allowed(name: &str, given: &str, allowed: &str) -> String {
    let row = rows().find(|row| row.name == name);
    let words = row.map(|row| row.value.words()).unwrap_or_default();
    let meant = suggest::word(given, &words);
    format!(
        "--{}: {given:?} was given; allowed is {allowed}{meant}",
        long(name)
    )
}

/// The error of a parameter as one of its flag.
fn sentence(error: ParamError) -> String {
    match error.problem {
        ParamProblem::Value { given, allowed } => not_allowed(error.name, &given, &allowed),
        ParamProblem::Conflict { other, since } => format!(
            "--{} and --{} were given; allowed is one of the two, since {since}",
            long(error.name),
            long(other)
        ),
        ParamProblem::Request => error.detail,
    }
}
