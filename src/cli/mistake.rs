//! The sentences about mistakes on the command line that clap finds.

use super::command_line::{named, typed};
use super::convert::hint;
use super::suggest;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::error::Error as _;
use std::ffi::OsString;

/// The sentence about a mistake in the arguments that follow the name of the program.
pub(super) fn sentence(error: &Error, program: &Command, arguments: &[OsString]) -> String {
    let (command, path) = named(program, arguments);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let texts = |kind| match error.get(kind) {
        Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
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
        ErrorKind::InvalidValue if value.is_empty() => {
            format!("{} needs a value: {arg}", name(arg))
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let words = texts(ContextKind::ValidValue);
            let reason = match error.source() {
                Some(reason) => reason.to_string(),
                None => format!(
                    "allowed are {}{}",
                    words.join(", "),
                    suggest::word(value, &words)
                ),
            };
            match name(arg) {
                flag if flag.starts_with('-') => format!("{flag} {value:?}: {reason}"),
                _ => format!("{value:?}: {reason}"),
            }
        }
        ErrorKind::TooManyValues => {
            let flag = name(arg);
            format!("{flag} takes no value, but {value:?} was given; write {flag} alone")
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = texts(ContextKind::InvalidArg);
            let names: Vec<&str> = missing.into_iter().map(name).collect();
            let are = if names.len() == 1 { "is" } else { "are" };
            format!("{} {are} missing", names.join(" and "))
        }
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
    // `near` compares names of parameters, which have underscores.
    let plain = |flag: &str| flag.trim_start_matches('-').replace('-', "_");
    let known = command.get_arguments().filter(|known| !known.is_hide_set());
    let known: Vec<String> = known
        .filter_map(|known| known.get_long().map(plain))
        .collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    // The whole argument, since `-lossles` is meant as a long flag.
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

/// The name in clap's notation of an argument: `--quality` of `--quality <NUMBER>`, `FILE` of
/// `<FILE>`.
fn name(shown: &str) -> &str {
    match shown.strip_prefix(['<', '[']) {
        Some(value) => value.split(['>', ']']).next().unwrap_or(value),
        None => shown.split([' ', '=', '[']).next().unwrap_or(shown),
    }
}
