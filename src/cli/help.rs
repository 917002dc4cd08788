//! The help texts, in 80 columns.

use super::{environment, table};
use argh::CommandInfoWithArgs;
use std::fmt::Write as _;

/// The widest line.
const WIDTH: usize = 80;

/// Where the meaning of a flag begins.
const MEANING: usize = 26;

/// The help text of the command with this path.
pub fn text(command: &CommandInfoWithArgs, path: &[String]) -> String {
    let mut text = format!("Usage: {}\n\n", table::usage(command, path));
    push_wrapped(&mut text, 0, &table::line(command.description));
    if !command.positionals.is_empty() {
        text.push_str("\nArguments:\n");
        for positional in command.positionals {
            let name = table::positional_synopsis(positional);
            push_row(&mut text, &name, positional.description);
        }
    }
    if !command.commands.is_empty() {
        text.push_str("\nCommands:\n");
        for sub in &command.commands {
            push_row(
                &mut text,
                sub.name,
                &table::first_sentence(sub.command.description),
            );
        }
    }
    for group in table::groups(command, path) {
        writeln!(text, "\n{}:", group.heading).expect("a String takes everything");
        for flag in group.flags {
            push_row(&mut text, &flag_row(flag), flag.description);
        }
    }
    text.push('\n');
    push_row(&mut text, "-h, --help", "print this help");
    let examples = table::examples(path);
    if !examples.is_empty() {
        text.push_str("\nExamples:\n");
        for (meaning, typed) in examples {
            push_wrapped(&mut text, 2, &format!("# {meaning}"));
            writeln!(text, "  {typed}").expect("a String takes everything");
        }
    }
    if let Some(note) = environment_note(path) {
        text.push_str("\nEnvironment:\n");
        push_wrapped(&mut text, 2, note);
    }
    if path.is_empty() {
        text.push_str("\nExit codes:\n");
        push_wrapped(
            &mut text,
            2,
            "0 if all went well, 1 if something failed, 2 if the command line is wrong, 130 after Ctrl+C \
             and 143 after SIGTERM (but 0 for towebp serve, which ends properly).",
        );
    }
    text.truncate(text.trim_end().len());
    text
}

/// What the command with this path reads of the environment.
pub(super) fn environment_note(path: &[String]) -> Option<&'static str> {
    if path == ["serve"] {
        return Some(
            "Each flag may be given by a variable, too: TOWEBP_MAX_BODY=64MiB is --max-body 64MiB. Several \
             values are separated by commas or spaces; a switch is 1 or true, and 0 or false. A flag beats \
             its variable, and an empty variable counts as none.",
        );
    }
    let is_read = environment::is_read_by(path);
    is_read.then_some(
        "Flags that towebp serve has too may be given by its variables: TOWEBP_DATA=/data is --data \
         /data.",
    )
}

/// A flag in two columns: those without a short name are moved to the right, below the others.
fn flag_row(flag: &argh::FlagInfo<'_>) -> String {
    let synopsis = table::flag_synopsis(flag);
    match flag.short {
        Some(_) => synopsis,
        None => format!("    {synopsis}"),
    }
}

fn push_row(text: &mut String, name: &str, meaning: &str) {
    let name = format!("  {name}");
    text.push_str(&name);
    let at = name.chars().count();
    if at + 2 > MEANING {
        text.push('\n');
        text.push_str(&" ".repeat(MEANING));
    } else {
        text.push_str(&" ".repeat(MEANING - at));
    }
    let mut wrapped = String::new();
    push_wrapped(&mut wrapped, MEANING, &table::line(meaning));
    text.push_str(wrapped.trim_start());
}

/// Adds lines of at most 80 columns, each with this indentation.
fn push_wrapped(text: &mut String, indent: usize, line: &str) {
    let mut column = 0;
    for word in line.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            text.push('\n');
            column = 0;
        }
        if column == 0 {
            text.push_str(&" ".repeat(indent));
            column = indent;
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Towebp;
    use argh::ArgsInfo;

    #[test]
    fn every_command_and_flag_has_help_within_80_columns() {
        for (path, command) in table::all(Towebp::get_args_info()) {
            let text = text(&command, &path);
            let usage = format!("Usage: towebp {}", path.join(" "));
            assert!(text.starts_with(usage.trim_end()), "{text}");
            assert!(text.contains("-h, --help"), "{text}");
            for flag in command.flags {
                assert!(text.contains(flag.long), "{} is not in {text}", flag.long);
            }
            for line in text.lines().filter(|line| !line.starts_with("  TOWEBP_")) {
                let columns = line.chars().count();
                assert!(columns <= WIDTH, "{columns}: {line}");
            }
        }
    }
}
