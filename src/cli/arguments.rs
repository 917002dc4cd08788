//! Brings the arguments into the form that argh reads.
//!
//! These things are done here, for all commands alike:
//!
//! - `--name=value` becomes two arguments, and so does `-oFILE`; `-rq` becomes `-r -q`;
//! - `-h` and `--help` count wherever they stand, and `towebp help COMMAND` is the same;
//! - unknown flags and commands are told, with the one that was probably meant;
//! - a lone `-` that is an input of `convert` gets a name that argh does not take for an option;
//! - a flag's former name becomes its present one.
//!
//! Which argument is an option's value is known from argh's own description of the commands.

use super::convert::STANDARD_INPUT;
use super::suggest;
use argh::{CommandInfoWithArgs, FlagInfo, FlagInfoKind};
use std::iter::Peekable;
use std::slice::Iter;

/// Former names of flags, which keep working but are in no help text, and their present names.
const RENAMED: [(&str, &str); 1] = [("--max-film-pixels", "--max-animation-pixels")];

/// What the arguments ask for.
#[derive(Debug)]
pub enum Request<'p> {
    /// The help text of the command with this path; the program itself has an empty one.
    Help(Vec<String>),
    /// To run a command.
    Run(Read<'p>),
    /// Nothing: the command with this path needs another one behind it.
    CommandMissing(Vec<String>),
}

/// Arguments in the form that argh reads, and where they come from.
#[derive(Debug, Default)]
pub struct Prepared {
    pub arguments: Vec<String>,
    /// The flags that have a value, with it, in the order in which they are given.
    pub values: Vec<(&'static str, String)>,
    /// The flags that come from the environment, each with its variable.
    pub from_environment: Vec<(&'static str, String)>,
    /// Sentences about variables that are ignored.
    pub warnings: Vec<String>,
}

/// Reads the arguments that follow the name of the program. Those after `--` stay as they are.
///
/// # Errors
/// A sentence for the user.
pub fn read<'p>(
    arguments: &[String],
    program: &'p CommandInfoWithArgs,
) -> Result<Request<'p>, String> {
    let mut read = Read {
        command: program,
        path: Vec::new(),
        flags_at: 0,
        given: Vec::new(),
        positionals: 0,
        prepared: Prepared::default(),
    };
    let mut rest = arguments.iter().peekable();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            read.prepared.arguments.push(argument.clone());
            read.positionals += rest.len();
            read.prepared.arguments.extend(rest.cloned());
            break;
        }
        if argument == "-h" || argument == "--help" {
            return Ok(Request::Help(read.path));
        }
        if argument == "help" && !read.command.commands.is_empty() {
            return read.help_of(rest);
        }
        if argument.starts_with("--") {
            read.read_long(argument, &mut rest)?;
        } else if argument.len() > 1 && argument.starts_with('-') {
            read.read_short(argument, &mut rest)?;
        } else {
            read.read_word(argument)?;
        }
    }
    if !read.command.commands.is_empty() && !read.given.contains(&"--version") {
        return Ok(Request::CommandMissing(read.path));
    }
    Ok(Request::Run(read))
}

/// The arguments, as far as they are read.
#[derive(Debug)]
pub struct Read<'p> {
    /// The command that was named so far, and the words that name it.
    pub(super) command: &'p CommandInfoWithArgs,
    pub(super) path: Vec<String>,
    /// Where flags of the command may be added: after its name.
    pub(super) flags_at: usize,
    /// The flags that were given, by their long names.
    pub(super) given: Vec<&'static str>,
    /// The number of arguments that are neither flags nor commands.
    pub(super) positionals: usize,
    pub(super) prepared: Prepared,
}

impl<'p> Read<'p> {
    /// `towebp help COMMAND...`
    fn help_of(mut self, words: Peekable<Iter<'_, String>>) -> Result<Request<'p>, String> {
        for word in words {
            self.enter(word)?;
        }
        Ok(Request::Help(self.path))
    }

    fn read_long(
        &mut self,
        argument: &str,
        rest: &mut Peekable<Iter<'_, String>>,
    ) -> Result<(), String> {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument, None),
        };
        let name = present_name(name);
        let flag = find(self.command, name).ok_or_else(|| self.unknown_flag(name))?;
        match (&flag.kind, value) {
            (FlagInfoKind::Switch, Some(value)) => Err(format!(
                "{name} takes no value, but {value:?} was given; write {name} alone"
            )),
            (FlagInfoKind::Switch, None) => {
                self.add(flag, None);
                Ok(())
            }
            (FlagInfoKind::Option { .. }, Some(value)) => {
                self.add(flag, Some(value.to_owned()));
                Ok(())
            }
            (FlagInfoKind::Option { arg_name }, None) => {
                let value = rest.next().cloned();
                let value = value.ok_or_else(|| missing_value(name, arg_name))?;
                self.add(flag, Some(value));
                Ok(())
            }
        }
    }

    /// `-o FILE`, `-oFILE`, `-o=FILE` and `-rq`.
    fn read_short(
        &mut self,
        argument: &str,
        rest: &mut Peekable<Iter<'_, String>>,
    ) -> Result<(), String> {
        let letters = argument.char_indices().skip(1);
        for (at, letter) in letters {
            let name = format!("-{letter}");
            let Some(flag) = find(self.command, &name) else {
                // All of it, since what is meant by `-quality` is a long flag.
                return Err(self.unknown_flag(argument));
            };
            let FlagInfoKind::Option { arg_name } = flag.kind else {
                self.add(flag, None);
                continue;
            };
            let own = &argument[at + letter.len_utf8()..];
            let value = match own.strip_prefix('=').unwrap_or(own) {
                "" if own.is_empty() => {
                    let next = rest.next().cloned();
                    next.ok_or_else(|| missing_value(&name, arg_name))?
                }
                own => own.to_owned(),
            };
            self.add(flag, Some(value));
            break;
        }
        Ok(())
    }

    /// A command, or an argument of one.
    fn read_word(&mut self, word: &str) -> Result<(), String> {
        if !self.command.commands.is_empty() {
            self.enter(word)?;
            self.prepared.arguments.push(word.to_owned());
            self.flags_at = self.prepared.arguments.len();
            return Ok(());
        }
        self.positionals += 1;
        let is_standard_input = word == "-" && self.path == ["convert"];
        let word = if is_standard_input {
            STANDARD_INPUT
        } else {
            word
        };
        self.prepared.arguments.push(word.to_owned());
        Ok(())
    }

    fn enter(&mut self, word: &str) -> Result<(), String> {
        let mut commands = self.command.commands.iter();
        let Some(found) = commands.find(|sub| sub.name == word) else {
            return Err(unknown_command(word, self.command));
        };
        self.command = &found.command;
        self.path.push(word.to_owned());
        Ok(())
    }

    fn add(&mut self, flag: &FlagInfo<'static>, value: Option<String>) {
        self.given.push(flag.long);
        self.prepared.arguments.push(flag.long.to_owned());
        if let Some(value) = value {
            self.prepared.values.push((flag.long, value.clone()));
            self.prepared.arguments.push(value);
        }
    }

    fn unknown_flag(&self, name: &str) -> String {
        let known = self.command.flags.iter().map(|flag| flag.long);
        let known: Vec<&str> = known.chain(["--help"]).collect();
        let meant = suggest::flag(name, &known);
        format!("{name} is no flag of {}{meant}", typed(&self.path))
    }
}

fn unknown_command(word: &str, command: &CommandInfoWithArgs) -> String {
    let known: Vec<&str> = command.commands.iter().map(|sub| sub.name).collect();
    let meant = suggest::word(word, &known);
    if meant.is_empty() {
        return format!("{word:?} is no command; allowed are {}", known.join(", "));
    }
    format!("{word:?} is no command{meant}")
}

fn missing_value(name: &str, arg_name: &str) -> String {
    format!("{name} needs a value: {name} {}", arg_name.to_uppercase())
}

/// The command with this path, as it is typed: `towebp account list`.
pub fn typed(path: &[String]) -> String {
    let words = ["towebp"]
        .into_iter()
        .chain(path.iter().map(String::as_str));
    words.collect::<Vec<_>>().join(" ")
}

/// The command at the beginning of the arguments, as it is typed.
pub fn command(arguments: &[String], program: &CommandInfoWithArgs) -> String {
    let mut path = Vec::new();
    let mut command = program;
    for argument in arguments {
        let Some(sub) = command.commands.iter().find(|sub| sub.name == argument) else {
            break;
        };
        command = &sub.command;
        path.push(argument.clone());
    }
    typed(&path)
}

fn present_name(name: &str) -> &str {
    RENAMED
        .iter()
        .find(|(former, _)| *former == name)
        .map_or(name, |(_, present)| present)
}

/// The flag of this name, such as `--output` or `-o`.
fn find<'a>(command: &'a CommandInfoWithArgs, name: &str) -> Option<&'a FlagInfo<'static>> {
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
    use argh::ArgsInfo;

    fn prepared(arguments: &[&str]) -> Result<Vec<String>, String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        match read(&arguments, &Towebp::get_args_info())? {
            Request::Run(read) => Ok(read.prepared.arguments),
            Request::Help(path) => Ok([path, vec!["--help".to_owned()]].concat()),
            Request::CommandMissing(path) => panic!("{path:?} needs a command"),
        }
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
        assert_becomes(
            &["convert", "a.png", "-ob.webp"],
            &["convert", "a.png", "--output", "b.webp"],
        );
        let error = prepared(&["convert", "--lossless=yes"]).expect_err("it is a switch");
        assert!(error.starts_with("--lossless takes no value"), "{error}");
    }

    #[test]
    fn help_counts_everywhere_except_as_a_value() {
        assert_becomes(&["-h"], &["--help"]);
        assert_becomes(&["convert", "-h", "--quality", "3"], &["convert", "--help"]);
        assert_becomes(&["account", "list", "-h"], &["account", "list", "--help"]);
        assert_becomes(&["account", "-h", "list"], &["account", "--help"]);
        assert_becomes(&["help", "account", "list"], &["account", "list", "--help"]);
        assert_becomes(
            &["convert", "--watermark", "-h", "-o", "-h", "--", "-h"],
            &["convert", "--watermark", "-h", "--output", "-h", "--", "-h"],
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
                "--output",
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
    fn mistakes_are_told_with_what_was_meant() {
        for (arguments, expected) in [
            (
                &["convert", "--qualty=3"][..],
                "--qualty is no flag of towebp convert; did you mean --quality?",
            ),
            (
                &["convert", "-quality", "3"],
                "-quality is no flag of towebp convert; did you mean --quality?",
            ),
            (
                &["convert", "--position", "top"],
                "--position is no flag of towebp convert; did you mean --watermark-position?",
            ),
            (
                &["conver"],
                "\"conver\" is no command; did you mean convert?",
            ),
            (
                &["account", "lst"],
                "\"lst\" is no command; did you mean list?",
            ),
            (
                &["convert", "--quality"],
                "--quality needs a value: --quality NUMBER",
            ),
        ] {
            assert_eq!(prepared(arguments), Err(expected.to_owned()));
        }
        let other = prepared(&["frobnicate"]).expect_err("there is none");
        assert!(other.contains("allowed are serve, convert"), "{other}");
    }
}
