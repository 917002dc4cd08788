//! The command line: reads the arguments and runs a command.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "these macros panic when the stream is closed; `say` does not"
)]
#![allow(
    clippy::doc_markdown,
    reason = "the comments of commands and flags are help texts, which are printed as they are"
)]

mod account;
mod backup;
mod check;
mod command_line;
mod completions;
mod convert;
mod cwebp;
mod demo;
mod examples;
mod failure;
mod health;
mod man;
mod mistake;
mod names;
mod output;
mod say;
mod secret;
mod serve;
mod settings;
mod shared;
#[cfg(feature = "postgres")]
mod store;
mod suggest;
mod terminal;

use crate::process::allocator;
use crate::process::logging::{self, LogFormat};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;
use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

/// Turns PNG, JPEG, GIF and BMP pictures into WebP: as an HTTP service, or right here.
#[derive(Parser)]
#[command(
    name = "towebp",
    version,
    disable_version_flag = true,
    subcommand_value_name = "COMMAND"
)]
struct Towebp {
    /// print the version
    #[arg(short = 'V', long, action = clap::ArgAction::Version, help_heading = "Help")]
    version: Option<bool>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[allow(
    clippy::large_enum_variant,
    reason = "the program has one value of this type"
)]
enum Command {
    Serve(serve::Serve),
    Convert(convert::Convert),
    /// Convert a picture by the flags of libwebp's cwebp (towebp cwebp -H lists them).
    #[command(mut_arg("_arguments", |it| it.help("the arguments of cwebp")))]
    Cwebp(cwebp::Arguments),
    /// Convert a GIF by the flags of libwebp's gif2webp (towebp gif2webp -h lists them).
    #[command(mut_arg("_arguments", |it| it.help("the arguments of gif2webp")))]
    Gif2webp(cwebp::Arguments),
    Account(account::Account),
    Backup(backup::BackupCommand),
    Check(check::Check),
    #[cfg(feature = "postgres")]
    Store(store::StoreCommand),
    Secret(secret::SecretCommand),
    Health(health::Health),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Runs the program with the arguments of the process. An error goes to standard error as one line,
/// with the exit code of its [`Failure`].
pub fn run() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if let Some(code) = cwebp::run_by_name(&arguments) {
        return code;
    }
    let mut program = program();
    let command = match read(&mut program, &arguments) {
        Ok(towebp) => towebp.command,
        Err(error) => return end(&error, &program, &arguments),
    };
    let Err(failure) = run_command(command, &arguments) else {
        return ExitCode::SUCCESS;
    };
    if let Failure::Usage(sentence) = &failure {
        let meant = mistake::single_hyphen(&program, &arguments);
        report_mistake(&meant.unwrap_or(sentence.clone()), &program, &arguments);
    } else {
        say::note(&format!("towebp: {}", failure.sentence()));
    }
    ExitCode::from(failure.exit_code())
}

/// The description of the command line.
fn program() -> clap::Command {
    let mut program = command_line::complete(Towebp::command(), &[]);
    program.build();
    program
}

/// Reads the arguments that follow the name of the program.
fn read(program: &mut clap::Command, arguments: &[OsString]) -> Result<Towebp, clap::Error> {
    let name = OsString::from("towebp");
    let arguments = std::iter::once(&name).chain(arguments);
    let matches = program.try_get_matches_from_mut(arguments)?;
    Towebp::from_arg_matches(&matches)
}

/// Prints a help text or the version, or reports a mistake.
fn end(error: &clap::Error, program: &clap::Command, arguments: &[OsString]) -> ExitCode {
    let text = || error.to_string().trim_end().to_owned();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match say::print(&text()) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(sentence) => {
                say::note(&format!("towebp: {sentence}"));
                return ExitCode::FAILURE;
            }
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            say::note(&text());
        }
        _ => {
            let sentence = mistake::single_hyphen(program, arguments);
            let sentence = sentence.unwrap_or_else(|| mistake::sentence(error, program, arguments));
            report_mistake(&sentence, program, arguments);
        }
    }
    ExitCode::from(2)
}

fn report_mistake(sentence: &str, program: &clap::Command, arguments: &[OsString]) {
    let (_, path) = command_line::named(program, arguments);
    let command = command_line::typed(&path);
    say::note(&format!(
        "towebp: {sentence}\nRun {command} -h for more information."
    ));
}

fn run_command(command: Command, arguments: &[OsString]) -> Result<(), Failure> {
    logging::start(match &command {
        Command::Serve(serve) => serve.settings.0.log_format,
        _ => LogFormat::Text,
    });
    let path: Vec<String> = arguments
        .iter()
        .take(1)
        .map(|it| it.to_string_lossy().into())
        .collect();
    if examples::reads_variables(&path) {
        for warning in settings::unknown_variables() {
            log::warn!("{warning}");
        }
    }
    match command {
        Command::Serve(command) => {
            allocator::return_large_blocks();
            serve::run(&command)
        }
        Command::Convert(command) => convert::run(&command),
        Command::Cwebp(_) | Command::Gif2webp(_) => unreachable!("these run by their names"),
        Command::Account(command) => account::run(&command),
        Command::Backup(command) => backup::run(&command),
        Command::Check(command) => check::run(&command),
        #[cfg(feature = "postgres")]
        Command::Store(command) => store::run(&command),
        Command::Secret(_) => secret::run().map_err(Failure::from),
        Command::Health(command) => health::run(&command),
        Command::Completions(command) => completions::run(&command),
        Command::Man(command) => man::run(&command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SETTINGS;
    use towebp_pipeline::conversion::PARAMETERS;

    /// All commands, the program first.
    fn all(command: &clap::Command) -> Vec<clap::Command> {
        let below = command.get_subcommands().flat_map(all);
        std::iter::once(command.clone()).chain(below).collect()
    }

    #[test]
    fn every_command_and_flag_has_help_within_80_columns() {
        let commands = all(&program());
        assert!(commands.len() > 20, "only {} commands", commands.len());
        for mut command in commands.into_iter().filter(|it| it.get_name() != "help") {
            let text = command.render_help().to_string();
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let long = arg.get_long().unwrap_or_default();
                assert!(
                    text.contains(long) && arg.get_help().is_some(),
                    "{long}: {text}"
                );
            }
            // Lines that are typed are not broken.
            for line in text.lines().filter(|line| !line.starts_with("  TOWEBP_")) {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }

    #[test]
    fn every_setting_and_parameter_is_a_flag() {
        let program = program();
        let has = |command: &str, name: &str| {
            let command = program.find_subcommand(command).expect("a command");
            let mut args = command.get_arguments();
            args.any(|arg| arg.get_long() == Some(name))
        };
        for row in SETTINGS {
            assert!(has("serve", row.name), "{}", row.name);
        }
        for row in PARAMETERS.iter().filter(|row| row.name != "token") {
            assert!(has("convert", &row.name.replace('_', "-")), "{}", row.name);
        }
    }

    #[test]
    fn examples_are_valid() {
        let commands = ["", "convert", "serve", "health", "completions", "man"];
        let paths = commands.map(|name| name.split_whitespace().map(str::to_owned).collect());
        let all: Vec<_> = paths
            .iter()
            .flat_map(|path: &Vec<String>| examples::examples(path))
            .collect();
        assert!(all.len() > 15, "{all:?}");
        for (_, typed) in all {
            // Up to where the shell leads its streams.
            let (_, typed) = typed.split_once("towebp ").expect("it is an example");
            let typed = typed.split(['<', '>', '|', ')']).next().unwrap_or_default();
            let words: Vec<OsString> = typed.split_whitespace().map(OsString::from).collect();
            match read(&mut program(), &words) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind(), ErrorKind::DisplayHelp, "{typed}"),
            }
        }
    }
}
