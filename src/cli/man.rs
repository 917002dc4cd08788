//! `towebp man`: pages of the manual in roff, made of the same table as the help texts.

use super::failure::Failure;
use super::{Towebp, arguments, help, say, suggest, table};
use argh::{ArgsInfo, CommandInfoWithArgs, FromArgs};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Print a page of the manual, of towebp or of one of its commands.
#[derive(FromArgs, ArgsInfo)]
#[argh(subcommand, name = "man", help_triggers("-h", "--help"))]
pub struct ManCommand {
    /// the command, such as convert or account create (default: towebp itself)
    #[argh(positional, arg_name = "command")]
    command: Vec<String>,

    /// write the pages of all commands into this folder (made if missing), as towebp-convert.1 and
    /// so on
    #[argh(option, arg_name = "folder")]
    into: Option<PathBuf>,
}

/// Carries out the command.
///
/// # Errors
/// There is no such command, or the folder cannot be written.
pub fn run(command: &ManCommand) -> Result<(), Failure> {
    let all = table::all(Towebp::get_args_info());
    if let Some(folder) = &command.into {
        if !command.command.is_empty() {
            let sentence = "--into writes the pages of all commands; give no command beside it";
            return Err(Failure::Usage(sentence.to_owned()));
        }
        return Ok(write_all(&all, folder)?);
    }
    let found = all.iter().find(|(path, _)| *path == command.command);
    let Some((path, found)) = found else {
        let name = command.command.join(" ");
        let names: Vec<String> = all.iter().map(|(path, _)| path.join(" ")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let meant = suggest::word(&name, &names);
        return Err(Failure::Usage(format!("{name:?} is no command{meant}")));
    };
    say::print(page(found, path).trim_end());
    Ok(())
}

fn write_all(all: &[(Vec<String>, CommandInfoWithArgs)], folder: &Path) -> Result<(), String> {
    let failed = |path: &Path, error| format!("{}: {error}", path.display());
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (path, command) in all {
        let file = folder.join(format!("{}.1", name(path)));
        fs::write(&file, page(command, path)).map_err(|error| failed(&file, error))?;
    }
    Ok(())
}

/// The name of a page: `towebp-account-create`.
fn name(path: &[String]) -> String {
    arguments::typed(path).replace(' ', "-")
}

/// The page of the command with this path.
fn page(command: &CommandInfoWithArgs, path: &[String]) -> String {
    let name = name(path);
    let description = table::line(command.description);
    let mut page = Page(String::new());
    page.request(&format!(
        ".TH {} 1 \"\" \"towebp {}\" \"towebp\"",
        name.to_uppercase(),
        env!("CARGO_PKG_VERSION")
    ));
    page.request(".SH NAME");
    let first = table::first_sentence(command.description);
    page.text(&format!("{name} - {first}"));
    page.request(".SH SYNOPSIS");
    page.text(&table::usage(command, path));
    page.request(".SH DESCRIPTION");
    page.text(&description);
    if !command.positionals.is_empty() {
        page.request(".SH ARGUMENTS");
        for positional in command.positionals {
            page.item(
                &table::positional_synopsis(positional),
                positional.description,
            );
        }
    }
    if !command.commands.is_empty() {
        page.request(".SH COMMANDS");
        for sub in &command.commands {
            page.item(sub.name, &table::first_sentence(sub.command.description));
        }
    }
    page.request(".SH OPTIONS");
    for group in table::groups(command, path) {
        page.request(&format!(".SS {}", group.heading));
        for flag in group.flags {
            page.item(&table::flag_synopsis(flag), flag.description);
        }
    }
    page.request(".SS Help");
    page.item("-h, --help", "print a help text");
    if let Some(note) = help::environment_note(path) {
        page.request(".SH ENVIRONMENT");
        page.text(note);
    }
    page.request(".SH EXIT STATUS");
    page.text("0 if all went well, 1 if something failed, 2 if the command line is wrong.");
    let examples = table::examples(path);
    if !examples.is_empty() {
        page.request(".SH EXAMPLES");
        for (meaning, typed) in examples {
            page.request(".PP");
            page.text(&format!("{meaning}:"));
            page.request(".PP");
            page.request(".nf");
            page.text(typed);
            page.request(".fi");
        }
    }
    page.see_also(command, path);
    page.0
}

/// A page in roff.
struct Page(String);

impl Page {
    fn request(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// A line of text, whose characters mean themselves.
    fn text(&mut self, text: &str) {
        if text.starts_with(['.', '\'']) {
            self.0.push_str("\\&");
        }
        self.0.push_str(&escaped(text));
        self.0.push('\n');
    }

    /// What is described, in bold, and its description.
    fn item(&mut self, name: &str, description: &str) {
        self.request(".TP");
        writeln!(self.0, "\\fB{}\\fR", escaped(name)).expect("a String takes everything");
        self.text(&table::line(description));
    }

    /// The pages of the commands above and below.
    fn see_also(&mut self, command: &CommandInfoWithArgs, path: &[String]) {
        let above = path.split_last().map(|(_, above)| name(above));
        let below = command.commands.iter();
        let below = below.map(|sub| name(&[path, &[sub.name.to_owned()]].concat()));
        let pages: Vec<String> = above.into_iter().chain(below).collect();
        if pages.is_empty() {
            return;
        }
        self.request(".SH SEE ALSO");
        let pages: Vec<String> = pages.iter().map(|page| format!("{page}(1)")).collect();
        self.text(&pages.join(", "));
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
        .replace('~', "\\(ti")
}
