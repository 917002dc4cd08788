//! The script of bash, 3.2 and later.

use super::{Entry, Offer, function, offer, offer_of_positionals};
use crate::cli::table;
use std::fmt::Write as _;

const HEAD: &str = r#"# Completes towebp in bash. Made by `towebp completions bash`.

_towebp_words() {
    COMPREPLY=($(compgen -W "$1" -- "$2"))
}

_towebp_paths() {
    local IFS=$'\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen "$1" -- "$2"))
}

_towebp() {
    local current="${COMP_WORDS[COMP_CWORD]}"
    local before="${COMP_WORDS[COMP_CWORD - 1]}"
    # bash divides --effort=high into three words.
    if [[ $current == "=" ]]; then
        current=""
    elif [[ $before == "=" ]]; then
        before="${COMP_WORDS[COMP_CWORD - 2]}"
    fi
    COMPREPLY=()
    local command=towebp word
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$command $word" in
"#;

/// The script for these commands.
pub(super) fn script(all: &[Entry]) -> String {
    let mut script = HEAD.to_owned();
    let mut line = |text: String| {
        script.push_str(&text);
        script.push('\n');
    };
    for (path, _) in all {
        if let Some((name, above)) = path.split_last() {
            line(format!(
                "            '{} {name}') command={} ;;",
                function(above),
                function(path)
            ));
        }
    }
    line("        esac\n    done\n    case \"$command $before\" in".to_owned());
    for (path, command) in all {
        for flag in table::flags(command) {
            let Some(offer) = offer(path, flag) else {
                continue;
            };
            let name = function(path);
            let mut patterns = format!("'{name} {}'", flag.long);
            if let Some(short) = flag.short {
                write!(patterns, " | '{name} -{short}'").expect("a String takes everything");
            }
            let action = action(&offer);
            line(format!("        {patterns}) {action}return ;;"));
        }
    }
    line("    esac\n    case \"$command\" in".to_owned());
    for (path, command) in all {
        let flags = table::flags(command).map(|flag| flag.long);
        let flags: Vec<&str> = flags.chain(["--help"]).collect();
        let others = if command.commands.is_empty() {
            action(&offer_of_positionals(path, command))
        } else {
            let names = command.commands.iter().map(|sub| sub.name);
            let names: Vec<&str> = names.chain(["help"]).collect();
            format!("_towebp_words '{}' \"$current\"; ", names.join(" "))
        };
        let others = others.trim_end_matches("; ");
        let others = if others.is_empty() { ":" } else { others };
        line(format!("        {})", function(path)));
        line("            if [[ $current == -* ]]; then".to_owned());
        line(format!(
            "                _towebp_words '{}' \"$current\"",
            flags.join(" ")
        ));
        line(format!(
            "            else\n                {others}\n            fi ;;"
        ));
    }
    line("    esac\n}\n\ncomplete -F _towebp towebp".to_owned());
    script
}

/// What is carried out for an offer, with `; ` behind it; empty if nothing is known.
fn action(offer: &Offer) -> String {
    match offer {
        Offer::Words(words) => format!("_towebp_words '{}' \"$current\"; ", words.join(" ")),
        Offer::Files => "_towebp_paths -f \"$current\"; ".to_owned(),
        Offer::Folders => "_towebp_paths -d \"$current\"; ".to_owned(),
        Offer::Unknown => String::new(),
    }
}
