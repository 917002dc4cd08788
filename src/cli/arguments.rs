//! Brings the arguments into the form that argh reads.
//!
//! Four things are done here, for all commands alike:
//!
//! - `--name=value` becomes two arguments;
//! - `-h` and `--help` count wherever they stand;
//! - a lone `-` that is an input of `convert` gets a name that argh does not take for an option;
//! - a flag's former name becomes its present one.
//!
//! Which argument is an option's value is known from argh's own description of the commands.

use super::convert::STANDARD_INPUT;
use argh::{CommandInfoWithArgs, FlagInfo, FlagInfoKind};

/// Former names of flags, which keep working but are in no help text, and their present names.
const RENAMED: [(&str, &str); 1] = [("--max-film-pixels", "--max-animation-pixels")];

/// Rewrites the arguments that follow the name of the program. Those after `--` stay as they are.
///
/// # Errors
/// A sentence: a switch was given a value.
pub fn prepare(arguments: &[String], program: &CommandInfoWithArgs) -> Result<Vec<String>, String> {
    let mut command = program;
    let mut path = Vec::new();
    let mut prepared = Vec::with_capacity(arguments.len());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            prepared.push(argument.clone());
            prepared.extend(rest.cloned());
            break;
        }
        if argument == "-h" || argument == "--help" {
            path.push("--help".to_owned());
            return Ok(path);
        }
        if let Some((name, value)) = name_and_value(argument) {
            let name = present_name(name);
            match find(command, name).map(|flag| &flag.kind) {
                Some(FlagInfoKind::Switch) => {
                    return Err(format!(
                        "{name} takes no value, but {value:?} was given; write {name} alone"
                    ));
                }
                Some(FlagInfoKind::Option { .. }) => {
                    prepared.extend([name.to_owned(), value.to_owned()]);
                }
                // argh reports the unknown flag.
                None => prepared.push(name.to_owned()),
            }
            continue;
        }
        if argument == "-" && path == ["convert"] {
            prepared.push(STANDARD_INPUT.to_owned());
            continue;
        }
        let argument = present_name(argument);
        prepared.push(argument.to_owned());
        let flag = find(command, argument);
        if flag.is_some_and(|flag| flag.kind != FlagInfoKind::Switch) {
            prepared.extend(rest.next().cloned());
        } else if let Some(sub) = command.commands.iter().find(|sub| sub.name == argument) {
            command = &sub.command;
            path.push(argument.to_owned());
        }
    }
    Ok(prepared)
}

/// The command at the beginning of the arguments, as it is typed: `towebp account list`.
pub fn command(arguments: &[String], program: &CommandInfoWithArgs) -> String {
    let mut typed = "towebp".to_owned();
    let mut command = program;
    for argument in arguments {
        let Some(sub) = command.commands.iter().find(|sub| sub.name == argument) else {
            break;
        };
        command = &sub.command;
        typed = format!("{typed} {argument}");
    }
    typed
}

/// The two parts of `--name=value`.
fn name_and_value(argument: &str) -> Option<(&str, &str)> {
    argument
        .split_once('=')
        .filter(|(name, _)| name.starts_with("--"))
}

fn present_name(name: &str) -> &str {
    RENAMED
        .iter()
        .find(|(former, _)| *former == name)
        .map_or(name, |(_, present)| present)
}

/// The flag of this name, such as `--output` or `-o`.
fn find<'a>(command: &'a CommandInfoWithArgs, name: &str) -> Option<&'a FlagInfo<'a>> {
    let short = name.strip_prefix('-').filter(|short| !short.is_empty());
    command.flags.iter().find(|flag| {
        let own = flag.short.map(String::from);
        flag.long == name || (own.is_some() && own.as_deref() == short)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Towebp;
    use argh::{ArgsInfo, FromArgs};

    fn prepared(arguments: &[&str]) -> Result<Vec<String>, String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        prepare(&arguments, &Towebp::get_args_info())
    }

    #[track_caller]
    fn assert_becomes(arguments: &[&str], expected: &[&str]) {
        let expected = expected.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(prepared(arguments), Ok(expected), "{arguments:?}");
    }

    #[test]
    fn values_may_follow_an_equals_sign() {
        assert_becomes(
            &["convert", "a.png", "--quality=75", "--watermark=a=b"],
            &["convert", "a.png", "--quality", "75", "--watermark", "a=b"],
        );
        assert_becomes(
            &["account", "create", "a@example.org", "--data="],
            &["account", "create", "a@example.org", "--data", ""],
        );
        // A value, a file after the end of the options, and the name of a file with the sign in it.
        assert_becomes(
            &["convert", "--watermark", "--a=b", "c=d.png", "--", "--e=f"],
            &["convert", "--watermark", "--a=b", "c=d.png", "--", "--e=f"],
        );
        assert_becomes(&["serve", "--qualty=3"], &["serve", "--qualty"]);
        let error = prepared(&["convert", "--lossless=yes"]).expect_err("it is a switch");
        assert!(error.starts_with("--lossless takes no value"), "{error}");
    }

    #[test]
    fn help_counts_everywhere_except_as_a_value() {
        assert_becomes(&["-h"], &["--help"]);
        assert_becomes(&["convert", "-h", "--quality", "3"], &["convert", "--help"]);
        assert_becomes(&["account", "list", "-h"], &["account", "list", "--help"]);
        assert_becomes(&["account", "-h", "list"], &["account", "--help"]);
        assert_becomes(
            &["convert", "--watermark", "-h", "-o", "-h", "--", "-h"],
            &["convert", "--watermark", "-h", "-o", "-h", "--", "-h"],
        );
    }

    #[test]
    fn a_lone_dash_is_an_input_unless_it_is_a_value() {
        assert_becomes(
            &[
                "convert",
                "--lossless",
                "-",
                "-o",
                "-",
                "--quality",
                "5",
                "-",
            ],
            &[
                "convert",
                "--lossless",
                "/dev/stdin",
                "-o",
                "-",
                "--quality",
                "5",
                "/dev/stdin",
            ],
        );
    }

    #[test]
    fn former_names_of_flags_become_the_present_ones() {
        assert_becomes(
            &["serve", "--max-film-pixels", "5", "--max-film-pixels=5"],
            &[
                "serve",
                "--max-animation-pixels",
                "5",
                "--max-animation-pixels",
                "5",
            ],
        );
        assert_becomes(
            &["convert", "--watermark", "--max-film-pixels"],
            &["convert", "--watermark", "--max-film-pixels"],
        );
        let program = Towebp::get_args_info();
        for (former, present) in RENAMED {
            let has = |name| {
                let mut commands = program.commands.iter();
                commands.any(|sub| find(&sub.command, name).is_some())
            };
            assert!(has(present) && !has(former), "{former} -> {present}");
        }
    }

    #[test]
    fn the_command_of_a_mistake_is_known() {
        for (arguments, expected) in [
            (&["convert", "list", "--no"][..], "towebp convert"),
            (&["account", "list", "--no"], "towebp account list"),
            (&["no", "convert"], "towebp"),
            (&[], "towebp"),
        ] {
            let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
            assert_eq!(command(&arguments, &Towebp::get_args_info()), expected);
        }
    }

    #[test]
    fn every_command_has_help_by_both_names() {
        let mut paths = vec![(Vec::new(), Towebp::get_args_info())];
        let mut asked = 0;
        while let Some((path, command)) = paths.pop() {
            for name in ["-h", "--help"] {
                let typed: Vec<String> = [&path[..], &[name.to_owned()]].concat();
                let read = prepare(&typed, &Towebp::get_args_info()).expect("valid arguments");
                let read: Vec<&str> = read.iter().map(String::as_str).collect();
                let early = Towebp::from_args(&["towebp"], &read).err();
                let early = early.unwrap_or_else(|| panic!("{typed:?} was carried out"));
                assert!(early.status.is_ok(), "{typed:?}: {}", early.output);
                let usage = format!("Usage: towebp {}", path.join(" "));
                assert!(
                    early.output.starts_with(usage.trim_end()),
                    "{}",
                    early.output
                );
                assert!(early.output.contains("-h, --help"), "{}", early.output);
            }
            asked += 1;
            for sub in command.commands {
                paths.push(([&path[..], &[sub.name.to_owned()]].concat(), sub.command));
            }
        }
        assert!(asked >= 12, "only {asked} commands were found");
    }
}
