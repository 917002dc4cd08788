//! The description of the command line: the declarations of the commands, and their common parts.

use super::examples::{environment_note, examples};
use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;
use std::fmt::Write as _;

/// The parts of a help text.
const TEMPLATE: &str = "{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// The widest line of a help text.
const COLUMNS: usize = 80;

/// Completes a command, and all below it: a flag `--no-x` for each switch `--x`, help in the same
/// words by `-h` and `--help`, examples.
pub(super) fn complete(command: Command, path: &[String]) -> Command {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let names: Vec<String> = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    let mut command = with_negations(command)
        .help_template(TEMPLATE)
        .max_term_width(COLUMNS)
        .args_override_self(true)
        .disable_help_flag(true)
        .arg(
            Arg::new("help")
                .short('h')
                .long("help")
                .help("print this help")
                .help_heading("Help")
                .action(ArgAction::HelpShort),
        )
        // The first sentence, for lists of commands; the text of the command itself has all.
        .long_about(None)
        .before_help(about)
        .after_help(after_help(path));
    for name in names {
        let path = [path, std::slice::from_ref(&name)].concat();
        command = command.mut_subcommand(name, |sub| complete(sub, &path));
    }
    command
}

/// Adds `--no-x` for each switch `--x`; the last of the two counts.
fn with_negations(mut command: Command) -> Command {
    let is_switch = |arg: &&Arg| matches!(arg.get_action(), ArgAction::SetTrue);
    let switches = command.get_arguments().filter(is_switch);
    let switches: Vec<Arg> = switches.cloned().collect();
    for switch in switches {
        let long = switch.get_long().unwrap_or("no-");
        if long.starts_with("no-") {
            continue;
        }
        let (id, negated) = (switch.get_id(), format!("no-{long}"));
        command = command.mut_arg(id, |arg| arg.overrides_with(&negated)).arg(
            Arg::new(&negated)
                .long(&negated)
                .action(ArgAction::SetTrue)
                .overrides_with(id)
                .global(switch.is_global_set())
                .hide(true),
        );
    }
    command
}

/// The text below the flags.
fn after_help(path: &[String]) -> String {
    let mut text = String::new();
    for (index, (meaning, typed)) in examples(path).into_iter().enumerate() {
        let heading = if index == 0 { "Examples:\n" } else { "" };
        writeln!(text, "{heading}  # {meaning}\n  {typed}").expect("a String takes everything");
    }
    if let Some(note) = environment_note(path) {
        writeln!(text, "\nEnvironment:\n  {note}").expect("a String takes everything");
    }
    if path.is_empty() {
        text += "\nExit codes:\n  0 if all went well, 1 if something failed, 2 if the command line is wrong, 130 after \
                 Ctrl+C and 143 after SIGTERM (but 0 for towebp serve, which ends properly).\n";
    }
    text.trim().to_owned()
}

/// The command at the beginning of the arguments that follow the name of the program.
pub(super) fn named<'c>(
    mut command: &'c Command,
    arguments: &[OsString],
) -> (&'c Command, Vec<&'c str>) {
    let mut path = Vec::new();
    for argument in arguments {
        let Some(sub) = argument
            .to_str()
            .and_then(|word| command.find_subcommand(word))
        else {
            break;
        };
        command = sub;
        path.push(sub.get_name());
    }
    (command, path)
}

/// A command with this path, as it is typed: `towebp account list`.
pub(super) fn typed(path: &[&str]) -> String {
    [&["towebp"], path].concat().join(" ")
}
