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
mod completions;
mod convert;
mod demo;
mod environment;
mod failure;
#[allow(clippy::doc_markdown, reason = "a help text is printed as it is")]
mod health;
mod help;
mod man;
mod mistake;
mod output;
mod say;
mod secret;
mod serve;
mod shared;
#[allow(clippy::doc_markdown, reason = "a help text is printed as it is")]
#[cfg(feature = "postgres")]
mod store;
mod store_flags;
mod suggest;
mod table;
mod terminal;

use crate::process::allocator;
use crate::process::logging::{self, LogFormat};
use argh::{ArgsInfo, CommandInfoWithArgs, FromArgs};
use arguments::{Prepared, Request};
use environment::Environment;
use failure::Failure;
use std::ffi::OsString;
use std::process::{self, ExitCode};

/// Turns PNG, JPEG, GIF and BMP pictures into WebP: as an HTTP service, or right here.
#[derive(FromArgs, ArgsInfo)]
#[argh(help_triggers("-h", "--help"))]
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
    Completions(completions::CompletionsCommand),
    Man(man::ManCommand),
}

/// Runs the program with the arguments of the process. An error goes to standard error as one line,
/// with the exit code of its [`Failure`].
pub fn run() -> ExitCode {
    let program = Towebp::get_args_info();
    let arguments = process_arguments();
    let mut prepared = Prepared::default();
    let Err(failure) = carry_out(&arguments, &program, &mut prepared) else {
        return ExitCode::SUCCESS;
    };
    let sentence = failure.sentence();
    let sentence = environment::with_variables(sentence, &prepared.from_environment);
    if let Failure::Usage(told) = &failure {
        let command = arguments::command(&arguments, &program);
        let meant = meant_value(told, &prepared, &command, program);
        // The sentences of parameters have a point, which stands before no semicolon.
        let sentence = if meant.is_empty() {
            sentence
        } else {
            sentence.trim_end_matches('.').to_owned() + &meant
        };
        say::note(&format!(
            "towebp: {sentence}\nRun {command} -h for more information."
        ));
    } else {
        say::note(&format!("towebp: {sentence}"));
    }
    ExitCode::from(failure.exit_code())
}

/// Reads the arguments, and does what they ask for. `prepared` is what they are read as.
fn carry_out(
    arguments: &[String],
    program: &CommandInfoWithArgs,
    prepared: &mut Prepared,
) -> Result<(), Failure> {
    match arguments::read(arguments, program).map_err(Failure::Usage)? {
        Request::Help(path) => {
            say::print(&help_of(program, &path));
            return Ok(());
        }
        Request::CommandMissing(path) => {
            say::note(&help_of(program, &path));
            process::exit(2)
        }
        Request::Run(read) => {
            let environment = Environment::of_process(program);
            *prepared = environment.complete(read).map_err(Failure::Usage)?;
        }
    }
    let words: Vec<&str> = prepared.arguments.iter().map(String::as_str).collect();
    let towebp = Towebp::from_args(&["towebp"], &words)
        .map_err(|early| Failure::Usage(mistake::plain(&early.output)))?;
    let log_format = match &towebp.command {
        Some(Command::Serve(command)) => command.log_format,
        _ => LogFormat::Text,
    };
    logging::start(log_format);
    for warning in &prepared.warnings {
        log::warn!("{warning}");
    }
    run_command(towebp)
}

fn run_command(towebp: Towebp) -> Result<(), Failure> {
    match towebp.command {
        _ if towebp.version => {
            say::print(&format!("towebp {}", env!("CARGO_PKG_VERSION")));
            Ok(())
        }
        None => unreachable!("a command that is missing was told before"),
        Some(Command::Serve(command)) => {
            allocator::return_large_blocks();
            serve::run(command)
        }
        Some(Command::Convert(command)) => convert::run(command),
        Some(Command::Account(command)) => account::run(command),
        Some(Command::Backup(command)) => backup::run(&command),
        Some(Command::Check(command)) => check::run(&command),
        #[cfg(feature = "postgres")]
        Some(Command::Store(command)) => store::run(&command),
        Some(Command::Secret(_)) => secret::run().map_err(Failure::from),
        Some(Command::Health(command)) => health::run(&command),
        Some(Command::Completions(command)) => completions::run(&command),
        Some(Command::Man(command)) => man::run(&command),
    }
}

/// The help text of the command with this path.
fn help_of(program: &CommandInfoWithArgs, path: &[String]) -> String {
    let mut commands = table::all(program.clone()).into_iter();
    let found = commands.find(|(own, _)| own == path);
    let (_, command) = found.expect("the path was read by the same description");
    help::text(&command, path)
}

/// What was meant by a value that is near to a word that its flag takes, as the end of a sentence.
fn meant_value(
    told: &str,
    prepared: &Prepared,
    command: &str,
    program: CommandInfoWithArgs,
) -> String {
    let mut commands = table::all(program).into_iter();
    let Some((path, command)) = commands.find(|(path, _)| arguments::typed(path) == command) else {
        return String::new();
    };
    let meant = prepared.values.iter().find_map(|(name, value)| {
        let flag = command.flags.iter().find(|flag| flag.long == *name)?;
        let words = table::words(&path, flag);
        let is_told = told.contains(name) && !words.contains(&value.as_str());
        is_told
            .then(|| suggest::word(value, &words))
            .filter(|meant| !meant.is_empty())
    });
    meant.unwrap_or_default()
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
