//! What is said of mistakes on the command line: clap knows what is wrong, and these are the
//! sentences.

use super::command_line::{named, typed};
use super::convert::hint;
use super::suggest;
use clap::builder::PossibleValue;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use std::error::Error as _;
use std::ffi::OsString;

/// The sentence about a mistake in the arguments that follow the name of the program.
pub(super) fn sentence(error: &Error, program: &Command, arguments: &[OsString]) -> String {
    let (command, path) = named(program, arguments);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let (arg, value) = (
        text(ContextKind::InvalidArg),
        text(ContextKind::InvalidValue),
    );
    match error.kind() {
        _ if !text(ContextKind::Custom).is_empty() => text(ContextKind::Custom).to_owned(),
        ErrorKind::UnknownArgument if arg.starts_with('-') => {
            unknown_flag(arg, command, &path, arguments)
        }
        ErrorKind::UnknownArgument => format!("{arg:?} is one argument too many"),
        ErrorKind::InvalidSubcommand => {
            unknown_command(text(ContextKind::InvalidSubcommand), command)
        }
        ErrorKind::InvalidValue if value.is_empty() => match find(command, arg) {
            Some(flag) => format!("{} needs a value: {flag}", name(flag)),
            None => format!("{arg} needs a value"),
        },
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let flag = find(command, arg);
            let name = flag
                .filter(|flag| !flag.is_positional())
                .map(|flag| name(flag) + " ");
            let words = flag.map(Arg::get_possible_values).unwrap_or_default();
            let words: Vec<&str> = words.iter().map(PossibleValue::get_name).collect();
            let reason = match error.source() {
                Some(reason) => reason.to_string(),
                None => format!(
                    "allowed are {}{}",
                    words.join(", "),
                    suggest::word(value, &words)
                ),
            };
            format!("{}{value:?}: {reason}", name.unwrap_or_default())
        }
        ErrorKind::TooManyValues => {
            let flag = find(command, arg).map_or(arg.to_owned(), name);
            format!("{flag} takes no value, but {value:?} was given; write {flag} alone")
        }
        ErrorKind::MissingRequiredArgument => missing(error, command),
        ErrorKind::InvalidUtf8 => "an argument that is no file is not UTF-8".to_owned(),
        other => other.to_string(),
    }
}

fn unknown_flag(arg: &str, command: &Command, path: &[&str], arguments: &[OsString]) -> String {
    let of = typed(path);
    if path == ["convert"]
        && let Some(hint) = hint(arg)
    {
        return format!("{arg} is no flag of {of}; {hint}");
    }
    // As the parameters of the service are named, which `near` knows.
    let plain = |flag: &str| flag.trim_start_matches('-').replace('-', "_");
    let known = command.get_arguments().filter(|known| !known.is_hide_set());
    let known: Vec<String> = known
        .filter_map(|known| known.get_long().map(plain))
        .collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    // All of it, since what is meant by `-lossles` is a long flag.
    let whole = arguments.iter().filter_map(|whole| whole.to_str());
    let mut whole = whole.filter(|whole| whole.starts_with(arg) && !whole.starts_with("--"));
    let arg = whole.next().unwrap_or(arg);
    let meant = suggest::near(&plain(arg), &known);
    let meant = meant.map(|meant| format!("; did you mean --{}?", meant.replace('_', "-")));
    format!("{arg} is no flag of {of}{}", meant.unwrap_or_default())
}

/// The sentence about a long flag that was given with one hyphen, as other programs have them:
/// `-lossless`, which clap takes for several letters.
pub(super) fn single_hyphen(program: &Command, arguments: &[OsString]) -> Option<String> {
    let (command, path) = named(program, arguments);
    let mut texts = arguments.iter().filter_map(|argument| argument.to_str());
    let found = texts.find(|text| {
        let name = text.strip_prefix('-').unwrap_or_default();
        name.len() > 1
            && command
                .get_arguments()
                .any(|known| known.get_long() == Some(name))
    })?;
    let of = typed(&path);
    Some(format!(
        "{found} is no flag of {of}; did you mean -{found}?"
    ))
}

fn unknown_command(word: &str, command: &Command) -> String {
    let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let is_file = word.contains(['.', '/']) && command.find_subcommand("convert").is_some();
    if is_file {
        return format!("{word:?} is no command; did you mean towebp convert {word}?");
    }
    match suggest::word(word, &known) {
        none if none.is_empty() => {
            format!("{word:?} is no command; allowed are {}", known.join(", "))
        }
        meant => format!("{word:?} is no command{meant}"),
    }
}

/// `--to is missing`
fn missing(error: &Error, command: &Command) -> String {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return "an argument is missing".to_owned();
    };
    let names = missing
        .iter()
        .map(|arg| find(command, arg).map_or(arg.clone(), name));
    let names: Vec<String> = names.collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    format!("{} {are} missing", names.join(" and "))
}

/// The flag or the argument that clap shows like this.
fn find<'c>(command: &'c Command, shown: &str) -> Option<&'c Arg> {
    let mut all = command.get_arguments();
    all.find(|arg| arg.to_string() == shown)
}

/// `--quality`, or `FILE`.
fn name(arg: &Arg) -> String {
    let value = || arg.get_value_names().into_iter().flatten().next();
    match (arg.get_long(), value()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(value)) => value.to_string(),
        (None, None) => arg.get_id().to_string().to_uppercase(),
    }
}
