//! The script of fish.

use super::{Entry, Offer, offer, offer_of_positionals, short};
use crate::cli::table;
use std::fmt::Write as _;

/// The script for these commands.
pub(super) fn script(all: &[Entry]) -> String {
    let paths = all.iter().filter(|(path, _)| !path.is_empty());
    let paths: Vec<String> = paths
        .map(|(path, _)| format!("'{}'", path.join(" ")))
        .collect();
    let mut script = format!(
        "# Completes towebp in fish. Made by `towebp completions fish`.

# Whether this command was typed, and none below it.
function __towebp_is
    set -l words (commandline -opc)
    set -e words[1]
    set -l path
    for word in $words
        set -l longer (string trim -- \"$path $word\")
        if contains -- \"$longer\" {}
            set path $longer
        end
    end
    test \"$path\" = \"$argv[1]\"
end

complete -c towebp -f
complete -c towebp -s h -l help -d 'print this help'
",
        paths.join(" ")
    );
    for (path, command) in all {
        let at = format!("complete -c towebp -n \"__towebp_is '{}'\"", path.join(" "));
        let mut line = |text: String| {
            writeln!(script, "{at} {text}").expect("a String takes everything");
        };
        for sub in &command.commands {
            let meaning = quoted(&short(sub.command.description));
            line(format!("-a {} -d {meaning}", sub.name));
        }
        if command.commands.is_empty() {
            let offered = offered(&offer_of_positionals(path, command));
            if !offered.is_empty() {
                line(offered);
            }
        }
        for flag in table::flags(command) {
            let short_name = flag.short.map(|letter| format!("-s {letter} "));
            let value = offer(path, flag).map(|offer| format!("-r {} ", offered(&offer)));
            line(format!(
                "{}-l {} {}-d {}",
                short_name.unwrap_or_default(),
                flag.long.trim_start_matches('-'),
                value.unwrap_or_default(),
                quoted(&short(flag.description))
            ));
        }
    }
    script
}

fn offered(offer: &Offer) -> String {
    match offer {
        Offer::Words(words) => format!("-f -a '{}'", words.join(" ")),
        Offer::Files => "-F".to_owned(),
        Offer::Folders => "-f -a '(__fish_complete_directories)'".to_owned(),
        Offer::Unknown => String::new(),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
