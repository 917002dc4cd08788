//! The script of zsh.

use super::{Entry, Offer, function, offer, offer_of_positionals, short};
use crate::cli::table;
use argh::{CommandInfoWithArgs, FlagInfo, Optionality};
use std::fmt::Write as _;

/// The script for these commands.
pub(super) fn script(all: &[Entry]) -> String {
    let mut script =
        "#compdef towebp\n# Completes towebp in zsh. Made by `towebp completions zsh`.\n"
            .to_owned();
    for (path, command) in all {
        push_function(&mut script, path, command);
    }
    // Found in a folder of $fpath, the file is the function itself; else it is read as a script.
    script.push_str(
        "\nif [[ $funcstack[1] == _towebp ]]; then\n    _towebp \"$@\"\nelse\n    compdef _towebp towebp\nfi\n",
    );
    script
}

fn push_function(script: &mut String, path: &[String], command: &CommandInfoWithArgs) {
    let name = function(path);
    let mut line = |text: String| {
        writeln!(script, "{text}").expect("a String takes everything");
    };
    line(format!("\n_{name}() {{"));
    if !command.commands.is_empty() {
        line("    local curcontext=\"$curcontext\" state line\n    typeset -A opt_args".to_owned());
    }
    let context = if command.commands.is_empty() {
        ""
    } else {
        " -C"
    };
    line(format!("    _arguments -s{context} \\"));
    for flag in table::flags(command) {
        line(format!("        {} \\", flag_spec(path, flag)));
    }
    line("        '(- *)'{-h,--help}'[print this help]' \\".to_owned());
    if command.commands.is_empty() {
        let offered = offered(&offer_of_positionals(path, command));
        line(format!(
            "        '*:argument:{}'",
            offered.unwrap_or(" ".to_owned())
        ));
        line("}".to_owned());
        return;
    }
    line("        '1: :->command' \\\n        '*:: :->rest'".to_owned());
    line("    case $state in\n        command)\n            local -a commands=(".to_owned());
    for sub in &command.commands {
        let meaning = short(sub.command.description).replace(':', "\\:");
        line(format!(
            "                {}",
            quoted(&format!("{}:{meaning}", sub.name))
        ));
    }
    line("            )\n            _describe command commands ;;".to_owned());
    line("        rest)\n            case $words[1] in".to_owned());
    for sub in &command.commands {
        let below = [path, &[sub.name.to_owned()]].concat();
        line(format!(
            "                {}) _{} ;;",
            sub.name,
            function(&below)
        ));
    }
    line("            esac ;;\n    esac\n}".to_owned());
}

/// A flag as `_arguments` reads it: `'(-o --output)'{-o,--output=}'[meaning]:value:_files'`.
fn flag_spec(path: &[String], flag: &FlagInfo<'static>) -> String {
    let meaning = short(flag.description);
    let meaning = meaning
        .replace('[', "\\[")
        .replace(']', "\\]")
        .replace(':', "\\:");
    let value = offer(path, flag).map(|offer| {
        let offered = offered(&offer).unwrap_or(" ".to_owned());
        format!(":value:{offered}")
    });
    let equals = if value.is_some() { "=" } else { "" };
    let repeats = flag.optionality == Optionality::Repeating;
    let rest = quoted(&format!("[{meaning}]{}", value.unwrap_or_default()));
    match flag.short {
        Some(short) => {
            let plus = if equals.is_empty() { "" } else { "+" };
            let long = flag.long;
            format!("'(-{short} {long})'{{-{short}{plus},{long}{equals}}}{rest}")
        }
        None if repeats => format!("'*'{}{equals}{rest}", flag.long),
        None => format!("{}{equals}{rest}", flag.long),
    }
}

fn offered(offer: &Offer) -> Option<String> {
    match offer {
        Offer::Words(words) => Some(format!("({})", words.join(" "))),
        Offer::Files => Some("_files".to_owned()),
        Offer::Folders => Some("_files -/".to_owned()),
        Offer::Unknown => None,
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
