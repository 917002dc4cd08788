//! The command line.

mod account;
mod backup;
mod check;
mod convert;
mod demo;
mod logging;
mod malloc;
mod memory;
mod serve;
mod signals;
mod systemd;

use crate::config::LogFormat;
use crate::conversion::Fonts;
use argh::FromArgs;
use std::ffi::OsString;
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::{fs, thread};

/// Turns PNG, JPEG, GIF and BMP pictures into WebP: as an HTTP service, or right here.
#[derive(FromArgs)]
#[argh(help_triggers("-h", "--help", "help"))]
struct Towebp {
    /// print the version and end
    #[argh(switch, short = 'V')]
    version: bool,
    #[argh(subcommand)]
    command: Option<Command>,
}

#[derive(FromArgs)]
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
    let towebp = read(process_arguments());
    let log_format = match &towebp.command {
        Some(Command::Serve(command)) => command.log_format,
        _ => LogFormat::Text,
    };
    logging::start(log_format);
    let outcome = match towebp.command {
        _ if towebp.version => {
            println!("towebp {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        None => Err("nothing to do: towebp serve, convert, account, backup or check; towebp --help tells more".to_owned()),
        Some(Command::Serve(command)) => {
            malloc::return_large_blocks();
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
            eprintln!("towebp: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// What `argh::from_env` does, after giving a lone `-` a name that argh does not take for an option.
fn read(mut arguments: Vec<String>) -> Towebp {
    convert::name_standard_input(&mut arguments);
    let arguments: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    Towebp::from_args(&["towebp"], &arguments).unwrap_or_else(|early| {
        if early.status.is_ok() {
            println!("{}", early.output);
            process::exit(0);
        }
        eprintln!(
            "{}\nRun towebp --help for more information.",
            early.output.trim_end()
        );
        process::exit(1)
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

fn process_arguments() -> Vec<String> {
    let arguments: Result<Vec<String>, _> =
        std::env::args_os().map(OsString::into_string).collect();
    arguments.unwrap_or_else(|argument| {
        eprintln!("towebp: not UTF-8: {}", argument.display());
        process::exit(1)
    })
}
