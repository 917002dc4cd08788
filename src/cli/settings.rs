//! The rows of [`SETTINGS`] as flags, and as variables of commands that manage a server.

use super::suggest;
use crate::config::{Given, Has, Kind, PREFIX, SETTINGS, Setting};
use clap::builder::{PossibleValue, TypedValueParser, ValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use std::env;
use std::ffi::{OsStr, OsString};

/// Variables that are no flags but are used: for the store's password, in the examples, and in the
/// program's own tests.
const OTHERS: [&str; 10] = [
    "TOWEBP_STORE_PASSWORD",
    "TOWEBP_TOKEN",
    "TOWEBP_URL",
    "TOWEBP_AXE",
    "TOWEBP_BLESS",
    "TOWEBP_CHAOS_",
    "TOWEBP_PROFILE",
    "TOWEBP_SKIP_NOTHING",
    "TOWEBP_TEST_",
    "TOWEBP_BENCH_",
];

/// All settings, as `towebp serve` has them.
pub(super) type AllFlags = Flags<{ Has::All as u8 }>;
/// The settings of the store.
pub(super) type AccountFlags = Flags<{ Has::Accounts as u8 }>;
/// The settings of the store, for commands that need no secret.
pub(super) type DataFlags = Flags<{ Has::Data as u8 }>;
/// The secret, and how PostgreSQL is reached.
#[cfg(feature = "postgres")]
pub(super) type CopyFlags = Flags<{ Has::Copy as u8 }>;
/// The settings of `towebp convert`, which reads no variables.
pub(super) type ConvertFlags = Flags<{ Has::Convert as u8 }>;
/// How a server is reached.
pub(super) type AddressFlags = Flags<{ Has::Address as u8 }>;

/// The settings that a command has as flags: the rows of a [`Has`].
#[derive(Clone, Debug)]
pub(super) struct Flags<const HAS: u8>(pub(super) Given);

fn rows(has: u8) -> impl Iterator<Item = &'static Setting> {
    Has::ALL[usize::from(has)].rows()
}

impl<const HAS: u8> Args for Flags<HAS> {
    fn augment_args(command: Command) -> Command {
        let is_global = HAS == Has::Accounts as u8;
        command.args(rows(HAS).map(|row| flag(row, HAS != Has::Convert as u8).global(is_global)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const HAS: u8> FromArgMatches for Flags<HAS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut given = Given::default();
        for row in rows(HAS) {
            read(row, matches, &mut given).map_err(wrong)?;
        }
        Ok(Flags(given))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Reads a setting from its flag or its variable, if one of them is given.
fn read(row: &'static Setting, matches: &ArgMatches, given: &mut Given) -> Result<(), String> {
    let negated = format!("no-{}", row.name);
    if matches.try_get_one(&negated).ok().flatten() == Some(&true) {
        return given.set(row, &[OsStr::new("false")], false);
    }
    let by_variable = match matches.value_source(row.name) {
        Some(ValueSource::CommandLine) => false,
        Some(ValueSource::EnvVariable) => true,
        _ if matches!(row.kind, Kind::Switch) => {
            let value = variable(row);
            return value.map_or(Ok(()), |value| given.set(row, &[&value], true));
        }
        _ => return Ok(()),
    };
    let values = matches.get_raw(row.name).into_iter().flatten();
    let values: Vec<&OsStr> = match row.kind {
        // A variable has all values, with commas or spaces in between.
        Kind::Files if by_variable => {
            let files = values.flat_map(|value| match value.to_str() {
                Some(text) => text.split([',', ' ', '\t', '\n']).map(OsStr::new).collect(),
                None => vec![value],
            });
            files.filter(|file| !file.is_empty()).collect()
        }
        _ => values.collect(),
    };
    if values.is_empty() {
        return Ok(());
    }
    given.set(row, &values, by_variable)
}

/// The flag of a setting, and its variable, unless that is empty.
fn flag(row: &'static Setting, has_variable: bool) -> Arg {
    let default = row.default_text();
    // In words or as it would be given.
    let colon = if row.default.is_some() { ":" } else { "" };
    let default = match (row.kind, row.reason) {
        (Kind::Switch, _) => String::new(),
        _ if default == "none" => String::new(),
        (_, "") => format!(" (default{colon} {default})"),
        (_, reason) => format!(" (default{colon} {default}: {reason})"),
    };
    let arg = Arg::new(row.name)
        .long(row.name)
        .help(format!("{}{default}", row.meaning))
        .help_heading(row.heading);
    let arg = match row.kind.value_name() {
        None => arg
            .action(ArgAction::SetTrue)
            .value_parser(ValueParser::os_string()),
        Some(name) => arg
            .value_name(name)
            .value_parser(ValueParser::os_string())
            .allow_hyphen_values(true),
    };
    let arg = match row.kind {
        Kind::List(_) | Kind::Files => arg.action(ArgAction::Append),
        Kind::Words(words) => arg
            .value_parser(Words(words.to_vec()))
            .hide_possible_values(true),
        _ => arg,
    };
    let arg = match row.kind {
        Kind::Switch => arg,
        Kind::File | Kind::Files => arg.value_hint(ValueHint::FilePath),
        Kind::Folder => arg.value_hint(ValueHint::DirPath),
        _ => arg.value_hint(ValueHint::Other),
    };
    // The variable of a switch is read separately, since it would contradict `--no-x` for clap.
    let is_read = has_variable && !matches!(row.kind, Kind::Switch);
    if is_read && variable(row).is_some() {
        arg.env(row.variable()).hide_env(true)
    } else {
        arg
    }
}

/// The value of a setting's variable. An empty one counts as none.
fn variable(row: &Setting) -> Option<OsString> {
    env::var_os(row.variable()).filter(|value| !value.is_empty())
}

/// A sentence about the command line as an error of clap.
pub(super) fn wrong(sentence: String) -> Error {
    let mut error = Error::new(ErrorKind::ValueValidation);
    error.insert(ContextKind::Custom, ContextValue::String(sentence));
    error
}

/// Takes any text, and lets shells complete these words.
#[derive(Clone)]
pub(super) struct Words(pub(super) Vec<&'static str>);

impl TypedValueParser for Words {
    type Value = OsString;

    fn parse_ref(&self, _: &Command, _: Option<&Arg>, value: &OsStr) -> Result<OsString, Error> {
        Ok(value.to_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// A sentence for each variable that begins with [`PREFIX`] and is unknown.
pub(super) fn unknown_variables() -> Vec<String> {
    let variables = env::vars_os();
    let named = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let mut own: Vec<_> = named.filter(|(name, _)| name.starts_with(PREFIX)).collect();
    own.sort();
    unknown(&own)
}

fn unknown(variables: &[(String, OsString)]) -> Vec<String> {
    let known: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
    // Without what all have in common, which would count as near.
    let short = |name: &str| name.trim_start_matches(PREFIX).to_owned();
    let names: Vec<String> = known.iter().map(|name| short(name)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let unknown = variables.iter().filter(|(name, value)| {
        !known.contains(name)
            && !OTHERS.iter().any(|other| name.starts_with(other))
            && !is_of_kubernetes(name, value)
    });
    let sentence = |(name, _): &(String, OsString)| {
        let meant = suggest::near(&short(name), &names);
        let meant = meant.map(|meant| format!("; did you mean {PREFIX}{meant}?"));
        let meant = meant.unwrap_or_default();
        format!("the variable {name} is ignored, since no flag has that name{meant}")
    };
    unknown.map(sentence).collect()
}

/// Whether Kubernetes sets the variable in each container, as the address of a service whose name
/// begins with towebp: `TOWEBP_PORT=tcp://10.0.0.1:80`, `TOWEBP_SERVICE_HOST`.
fn is_of_kubernetes(name: &str, value: &OsStr) -> bool {
    let is_address = || value.to_string_lossy().contains("://");
    name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.contains("_PORT_")
        || (name.ends_with("_PORT") && is_address())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_variables_are_told_unless_they_are_somebody_elses() {
        let told = |name: &str, value: &str| {
            let variables = [(name.to_owned(), OsString::from(value))];
            unknown(&variables).concat()
        };
        let warning = told("TOWEBP_LISTN", "x");
        assert!(
            warning.ends_with("did you mean TOWEBP_LISTEN?"),
            "{warning}"
        );
        let warning = told("TOWEBP_PORT", "8080");
        assert!(warning.contains("TOWEBP_PORT is ignored"), "{warning}");
        for (name, value) in [
            ("TOWEBP_PORT", "tcp://10.0.0.1:80"),
            ("TOWEBP_PORT_80_TCP_ADDR", "10.0.0.1"),
            ("TOWEBP_SERVICE_HOST", "10.0.0.1"),
            ("TOWEBP_METRICS_SERVICE_PORT_HTTP", "9090"),
            ("TOWEBP_STORE_PASSWORD", "x"),
            ("TOWEBP_TEST_STORE", "redb"),
            ("TOWEBP_MAX_BODY", "1MiB"),
        ] {
            assert_eq!(told(name, value), "", "{name}");
        }
    }
}
