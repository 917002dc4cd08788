//! `towebp man`: pages of the manual in roff.

use super::examples::{environment_note, examples};
use super::failure::Failure;
use super::{command_line, say, suggest};
use clap::{Args, Command, ValueHint};
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Print a page of the manual, of towebp or of one of its commands.
#[derive(Args)]
pub(super) struct Man {
    /// the command, such as convert or account create (default: towebp itself)
    #[arg(value_name = "COMMAND", value_hint = ValueHint::Other)]
    command: Vec<String>,

    /// write the pages of all commands into this folder (made if missing), as towebp-convert.1 and
    /// so on
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    into: Option<PathBuf>,
}

/// Carries out the command.
///
/// # Errors
/// There is no such command, or the folder cannot be written.
pub(super) fn run(command: &Man) -> Result<(), Failure> {
    let program = super::program();
    let mut all = Vec::new();
    add(&program, &[], &mut all);
    if let Some(folder) = &command.into {
        if !command.command.is_empty() {
            let sentence = "--into writes the pages of all commands; give no command beside it";
            return Err(Failure::Usage(sentence.to_owned()));
        }
        return Ok(write_all(&all, folder)?);
    }
    let Some((path, found)) = all.iter().find(|(path, _)| *path == command.command) else {
        let name = command.command.join(" ");
        let names: Vec<String> = all.iter().map(|(path, _)| path.join(" ")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let meant = suggest::word(&name, &names);
        return Err(Failure::Usage(format!("{name:?} is no command{meant}")));
    };
    let page = page(found, path).expect("a Vec takes everything");
    Ok(say::write(&page)?)
}

/// Adds a command with its path, and all below it.
fn add<'c>(command: &'c Command, path: &[String], all: &mut Vec<(Vec<String>, &'c Command)>) {
    all.push((path.to_vec(), command));
    for sub in command
        .get_subcommands()
        .filter(|sub| sub.get_name() != "help")
    {
        add(sub, &[path, &[sub.get_name().to_owned()]].concat(), all);
    }
}

fn write_all(all: &[(Vec<String>, &Command)], folder: &Path) -> Result<(), String> {
    let failed = |path: &Path, error| format!("{}: {error}", path.display());
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (path, command) in all {
        let file = folder.join(format!("{}.1", name(path)));
        let page = page(command, path).expect("a Vec takes everything");
        fs::write(&file, page).map_err(|error| failed(&file, error))?;
    }
    Ok(())
}

/// The name of a page: `towebp-account-create`.
fn name(path: &[String]) -> String {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    command_line::typed(&path).replace(' ', "-")
}

/// The page of the command with this path.
fn page(command: &Command, path: &[String]) -> io::Result<Vec<u8>> {
    let description = command
        .get_before_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let name = name(path);
    let command = command
        .clone()
        .display_name(&name)
        .long_about(description)
        .disable_help_subcommand(true);
    let has_commands = command.has_subcommands();
    let command = command.mut_subcommands(|sub| {
        let is_help = sub.get_name() == "help";
        sub.hide(is_help)
    });
    let man = clap_mangen::Man::new(command)
        .title(name.to_uppercase())
        .source(format!("towebp {}", env!("CARGO_PKG_VERSION")))
        .manual("towebp");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_commands {
        man.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    if let Some(note) = environment_note(path) {
        rest.control("SH", ["ENVIRONMENT"]).text([roman(note)]);
    }
    rest.control("SH", ["EXIT STATUS"]).text([roman(
        "0 if all went well, 1 if something failed, 2 if the command line is wrong.",
    )]);
    for (index, (meaning, typed)) in examples(path).into_iter().enumerate() {
        if index == 0 {
            rest.control("SH", ["EXAMPLES"]);
        }
        rest.control("PP", []).text([roman(format!("{meaning}:"))]);
        rest.control("PP", [])
            .control("nf", [])
            .text([roman(typed)])
            .control("fi", []);
    }
    rest.to_writer(&mut page)?;
    page.flush()?;
    Ok(page)
}
