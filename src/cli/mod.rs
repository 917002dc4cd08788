//! The command line: reads the arguments and runs a command.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "these macros panic when the stream is closed; `say` does not"
)]

mod account;
mod arguments;
#[allow(clippy::doc_markdown, reason = "a help text is printed as it is")]
mod backup;
#[allow(clippy::doc_markdown, reason = "a help text is printed as it is")]
mod check;
mod convert;
mod demo;
mod failure;
#[allow(clippy::doc_markdown, reason = "a help text is printed as it is")]
mod health;
mod output;
mod say;
mod secret;
mod serve;
mod shared;
#[allow(clippy::doc_markdown, reason = "a help text is printed as it is")]
#[cfg(feature = "postgres")]
mod store;
mod store_flags;
mod terminal;

use crate::process::allocator;
use crate::process::logging::{self, LogFormat};
use argh::{ArgsInfo, FromArgs};
use failure::Failure;
use std::ffi::OsString;
use std::process::{self, ExitCode};

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
    reason = "the program has one value of this type"
)]
enum Command {
    Serve(serve::ServeCommand),
    Convert(convert::ConvertCommand),
    Account(account::AccountCommand),
    Backup(backup::BackupCommand),
    Check(check::CheckCommand),
    #[cfg(feature = "postgres")]
    Store(store::StoreCommand),
    Secret(secret::SecretCommand),
    Health(health::HealthCommand),
}

/// Runs the program with the arguments of the process. An error goes to standard error as one line,
/// with the exit code of its [`Failure`].
pub fn run() -> ExitCode {
    let towebp = parse(&process_arguments());
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
        None => Err(Failure::Usage("nothing to do: towebp serve, convert, account, backup, check, store, secret or health; towebp --help tells more".to_owned())),
        Some(Command::Serve(command)) => {
            allocator::return_large_blocks();
            serve::run(command).map_err(Failure::from)
        }
        Some(Command::Convert(command)) => convert::run(command).map_err(Failure::from),
        Some(Command::Account(command)) => account::run(command).map_err(Failure::from),
        Some(Command::Backup(command)) => backup::run(&command).map_err(Failure::from),
        Some(Command::Check(command)) => check::run(&command).map_err(Failure::from),
        #[cfg(feature = "postgres")]
        Some(Command::Store(command)) => store::run(&command).map_err(Failure::from),
        Some(Command::Health(command)) => health::run(&command),
        Some(Command::Secret(_)) => secret::run().map_err(Failure::from),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say::note(&format!("towebp: {}", failure.sentence()));
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Parses the arguments, or ends the process: after a help text with exit code 0, after a mistake
/// with 2.
fn parse(arguments: &[String]) -> Towebp {
    let program = Towebp::get_args_info();
    let reject = |mistake: &str| -> ! {
        let command = arguments::command(arguments, &program);
        say::note(&format!(
            "{mistake}\nRun {command} -h for more information."
        ));
        process::exit(2)
    };
    let prepared =
        arguments::prepare(arguments, &program).unwrap_or_else(|sentence| reject(&sentence));
    let prepared: Vec<&str> = prepared.iter().map(String::as_str).collect();
    Towebp::from_args(&["towebp"], &prepared).unwrap_or_else(|early| {
        if early.status.is_ok() {
            say::print(&early.output);
            process::exit(0);
        }
        reject(early.output.trim_end())
    })
}

/// The arguments after the name of the program.
fn process_arguments() -> Vec<String> {
    let arguments: Result<Vec<String>, _> = std::env::args_os()
        .skip(1)
        .map(OsString::into_string)
        .collect();
    arguments.unwrap_or_else(|argument| {
        say::note(&format!("towebp: not UTF-8: {}", argument.display()));
        process::exit(2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_commands_say_the_same_of_the_flags_of_the_store() {
        let program = Towebp::get_args_info();
        let mut commands: Vec<_> = program.commands.iter().map(|it| &it.command).collect();
        let mut of_first = None;
        let mut count = 0;
        while let Some(command) = commands.pop() {
            commands.extend(command.commands.iter().map(|it| &it.command));
            let flags = command.flags.iter();
            let of_store = flags.filter(|flag| flag.long.starts_with("--store-"));
            let of_store: Vec<_> = of_store.map(|flag| (flag.long, flag.description)).collect();
            if of_store.is_empty() {
                continue;
            }
            count += 1;
            let first = of_first.get_or_insert_with(|| of_store.clone());
            assert_eq!(*first, of_store, "{}", command.name);
        }
        assert!(count > 15, "{count}");
    }
}
