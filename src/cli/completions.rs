//! `towebp completions`: scripts by which shells complete commands, flags and values, made of the
//! same table as the help texts.

mod bash;
mod fish;
mod zsh;

use super::failure::Failure;
use super::{Towebp, say, table};
use argh::{ArgsInfo, CommandInfoWithArgs, FlagInfo, FlagInfoKind, FromArgs};

/// The most characters of a description beside a flag.
const LONGEST: usize = 70;

/// Print a script by which a shell completes commands, flags and values.
#[derive(FromArgs, ArgsInfo)]
#[argh(subcommand, name = "completions", help_triggers("-h", "--help"))]
pub struct CompletionsCommand {
    /// the shell: bash, zsh or fish
    #[argh(positional, arg_name = "shell")]
    shell: Shell,
}

#[derive(Clone, Copy)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// What [`CompletionsCommand`] takes.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

impl argh::FromArgValue for Shell {
    fn from_arg_value(text: &str) -> Result<Shell, String> {
        match text {
            "bash" => Ok(Shell::Bash),
            "zsh" => Ok(Shell::Zsh),
            "fish" => Ok(Shell::Fish),
            _ => Err(format!(
                "allowed are bash, zsh and fish{}",
                super::suggest::word(text, &SHELLS)
            )),
        }
    }
}

/// Carries out the command.
///
/// # Errors
/// None.
#[expect(clippy::unnecessary_wraps, reason = "all commands return the same")]
pub fn run(command: &CompletionsCommand) -> Result<(), Failure> {
    let all = table::all(Towebp::get_args_info());
    let script = match command.shell {
        Shell::Bash => bash::script(&all),
        Shell::Zsh => zsh::script(&all),
        Shell::Fish => fish::script(&all),
    };
    say::print(script.trim_end());
    Ok(())
}

/// A command with its path.
type Entry = (Vec<String>, CommandInfoWithArgs);

/// What a shell offers for a value.
enum Offer {
    /// One of these words.
    Words(Vec<&'static str>),
    Files,
    Folders,
    /// Something that cannot be known.
    Unknown,
}

/// What is offered for the value of a flag; `None` if it is a switch.
fn offer(path: &[String], flag: &FlagInfo<'static>) -> Option<Offer> {
    let FlagInfoKind::Option { arg_name } = flag.kind else {
        return None;
    };
    let words = table::words(path, flag);
    if !words.is_empty() {
        return Some(Offer::Words(words));
    }
    // These have no name of an argument but their own.
    let arg_name = match flag.long {
        "--data" => "folder",
        "--secret-file" => "file",
        _ => arg_name,
    };
    Some(offer_of_paths(arg_name))
}

/// What is offered for the arguments of a command that are neither flags nor commands.
fn offer_of_positionals(path: &[String], command: &CommandInfoWithArgs) -> Offer {
    match path {
        [only] if only == "completions" => return Offer::Words(SHELLS.to_vec()),
        [only] if only == "man" => {
            let program = Towebp::get_args_info();
            return Offer::Words(program.commands.iter().map(|sub| sub.name).collect());
        }
        _ => {}
    }
    let first = command.positionals.first();
    first.map_or(Offer::Unknown, |first| offer_of_paths(first.name))
}

fn offer_of_paths(arg_name: &str) -> Offer {
    match table::paths(arg_name) {
        table::Paths::Files => Offer::Files,
        table::Paths::Folders => Offer::Folders,
        table::Paths::None => Offer::Unknown,
    }
}

/// A description in few words.
fn short(description: &str) -> String {
    let line = table::line(description);
    if line.chars().count() <= LONGEST {
        return line;
    }
    let mut short = String::new();
    for word in line.split(' ') {
        if short.chars().count() + word.chars().count() + 2 > LONGEST {
            break;
        }
        short.push_str(word);
        short.push(' ');
    }
    short.trim_end_matches([' ', ',', ';', ':']).to_owned() + "…"
}

/// A command's own name for functions and tables of scripts: `towebp_account_create`.
fn function(path: &[String]) -> String {
    let words = ["towebp"]
        .into_iter()
        .chain(path.iter().map(String::as_str));
    words.collect::<Vec<_>>().join("_").replace('-', "_")
}
