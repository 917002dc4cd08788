//! The command line.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "these macros panic when the stream is closed; `say` does not"
)]

mod account;
mod arguments;
mod backup;
mod check;
mod convert;
mod demo;
mod output;
mod say;
mod serve;
mod terminal;

use crate::conversion::Fonts;
use crate::process::allocator;
use crate::process::logging::{self, LogFormat};
use argh::{ArgsInfo, FromArgs};
use std::ffi::OsString;
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::{fs, thread};

/// Turns PNG, JPEG, GIF and BMP pictures into WebP: as an HTTP service, or right here.
#[derive(FromArgs, ArgsInfo)]
#[argh(help_triggers("-h", "--help", "help"))]
struct Towebp {
    /// print the version and end
    #[argh(switch, short = 'V')]
    version: bool,
    #[argh(subcommand)]
    command: Option<Command>,
}

#[derive(FromArgs, ArgsInfo)]
#[argh(subcommand)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one, for as long as the program runs"
)]
enum Command {
    Serve(serve::ServeCommand),
    Convert(convert::ConvertCommand),
    Account(account::AccountCommand),
    Backup(backup::BackupCommand),
    Check(check::CheckCommand),
}

/// Runs the program with the process's arguments. Errors go to standard error as one line, with exit code 1.
pub fn run() -> ExitCode {
    let towebp = read(&process_arguments());
    let log_format = match &towebp.command {
        Some(Command::Serve(command)) => command.log_format,
        _ => LogFormat::Text,
    };
    logging::start(log_format);
    let outcome = match towebp.command {
        _ if towebp.version => {
            say::print(&format!("towebp {}", env!("CARGO_PKG_VERSION")));
            Ok(())
        }
        None => Err("nothing to do: towebp serve, convert, account, backup or check; towebp --help tells more".to_owned()),
        Some(Command::Serve(command)) => {
            allocator::return_large_blocks();
            serve::run(command)
        }
        Some(Command::Convert(command)) => convert::run(command),
        Some(Command::Account(command)) => account::run(command),
        Some(Command::Backup(command)) => backup::run(&command),
        Some(Command::Check(command)) => check::run(&command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            say::note(&format!("towebp: {sentence}"));
            ExitCode::FAILURE
        }
    }
}

/// Reads the arguments, or ends the process: after a help text with exit code 0, after a mistake with 1.
fn read(arguments: &[String]) -> Towebp {
    let program = Towebp::get_args_info();
    let refuse = |mistake: &str| -> ! {
        let command = arguments::command(arguments, &program);
        say::note(&format!(
            "{mistake}\nRun {command} -h for more information."
        ));
        process::exit(1)
    };
    let prepared =
        arguments::prepare(arguments, &program).unwrap_or_else(|sentence| refuse(&sentence));
    let prepared: Vec<&str> = prepared.iter().map(String::as_str).collect();
    Towebp::from_args(&["towebp"], &prepared).unwrap_or_else(|early| {
        if early.status.is_ok() {
            say::print(&early.output);
            process::exit(0);
        }
        refuse(early.output.trim_end())
    })
}

/// How many cores this process may use.
fn cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

fn default_data() -> PathBuf {
    PathBuf::from("towebp-data")
}

/// A mistyped folder or file is not made anew: nothing could be found in it.
fn must_exist(database: &Path, named: &Path) -> Result<(), String> {
    if database.exists() {
        return Ok(());
    }
    let flag = if database == named { "" } else { " (--data)" };
    Err(format!(
        "there are no accounts in {}{flag}",
        named.display()
    ))
}

/// The fonts of `--font`, before the bundled ones.
fn fonts(files: &[PathBuf]) -> Result<Fonts, String> {
    let mut fonts = Fonts::default();
    for file in files {
        let refused = |reason: &dyn Display| format!("--font {}: {reason}", file.display());
        let bytes = fs::read(file).map_err(|error| refused(&error))?;
        fonts.add(bytes).map_err(|error| refused(&error))?;
    }
    Ok(fonts)
}

/// The arguments behind the program's name.
fn process_arguments() -> Vec<String> {
    let arguments: Result<Vec<String>, _> = std::env::args_os()
        .skip(1)
        .map(OsString::into_string)
        .collect();
    arguments.unwrap_or_else(|argument| {
        say::note(&format!("towebp: not UTF-8: {}", argument.display()));
        process::exit(1)
    })
}
