//! What the help texts, the manual and the completions say of the commands beyond argh's own
//! description of them: groups of flags, examples, and the words that a flag takes.

use crate::conversion::PARAMETERS;
use argh::{CommandInfoWithArgs, FlagInfo, FlagInfoKind, Optionality, PositionalInfo};

/// The headings of groups of flags: the command, or none for all others; the flag that a group
/// begins with; and the heading.
const HEADINGS: [(&str, &str, &str); 16] = [
    ("convert", "--output", "Files"),
    ("convert", "--quality", "Quality and coding"),
    ("convert", "--width", "Size"),
    ("convert", "--watermark", "Watermarks"),
    ("convert", "--quiet", "Messages and resources"),
    ("serve", "--listen", "Address and data"),
    ("serve", "--store", "A database for several servers"),
    ("serve", "--threads", "Limits of conversions"),
    ("serve", "--allow-private-watermark-hosts", "Watermarks"),
    ("serve", "--public-url", "Accounts and requests"),
    ("serve", "--trusted-proxy", "Connections"),
    ("serve", "--memory", "Memory"),
    ("serve", "--metrics", "Observation"),
    ("", "--data", "Where the accounts are"),
    ("store", "--store-password-file", "The PostgreSQL"),
    ("store", "--store", "The PostgreSQL"),
];

/// Examples of a command: what each does, and how it is typed.
const EXAMPLES: [(&str, &[(&str, &str)]); 6] = [
    (
        "",
        &[
            ("a picture beside itself", "towebp convert photo.jpg"),
            (
                "a service with a dashboard and an example",
                "towebp serve --demo",
            ),
            ("what a command can do", "towebp convert -h"),
        ],
    ),
    (
        "convert",
        &[
            ("photo.webp beside it", "towebp convert photo.jpg"),
            (
                "many, into a folder",
                "towebp convert *.jpg -o web/ --quality 75",
            ),
            (
                "a folder with all below it",
                "towebp convert -r photos -o web/",
            ),
            (
                "only what has changed since",
                "towebp convert -r photos -o web/ --newer",
            ),
            (
                "the best of at most 100 kB each",
                "towebp convert *.jpg -o web/ --max-bytes 100k",
            ),
            (
                "squares of 400 pixels",
                "towebp convert *.jpg -o thumbs/ --width 400 --height 400 --fit cover",
            ),
            ("in a pipe", "towebp convert - <photo.jpg >photo.webp"),
        ],
    ),
    (
        "serve",
        &[
            (
                "on this machine, with an account and an example",
                "towebp serve --demo",
            ),
            (
                "behind a proxy that speaks TLS",
                "towebp serve --public-url https://webp.example.org --trusted-proxy 127.0.0.1",
            ),
            (
                "the same by the environment",
                "TOWEBP_PUBLIC_URL=https://webp.example.org TOWEBP_TRUSTED_PROXY=127.0.0.1 towebp serve",
            ),
        ],
    ),
    (
        "health",
        &[
            ("the server on this machine", "towebp health"),
            ("another one", "towebp health https://webp.example.org"),
        ],
    ),
    (
        "completions",
        &[
            (
                "for the bash that is running",
                "source <(towebp completions bash)",
            ),
            (
                "for every fish from now on",
                "towebp completions fish >~/.config/fish/completions/towebp.fish",
            ),
        ],
    ),
    (
        "man",
        &[
            (
                "reads the page of a command",
                "towebp man convert | man -l -",
            ),
            (
                "installs one",
                "towebp man serve >/usr/local/share/man/man1/towebp-serve.1",
            ),
        ],
    ),
];

/// What stands for a kind of value in the name of an argument, rather than for a word.
const KINDS: [&str; 8] = [
    "dir",
    "file",
    "file-or-url",
    "folder",
    "number",
    "percent",
    "pixels",
    "url",
];

/// Flags under a heading.
pub(super) struct Group<'c> {
    pub(super) heading: &'static str,
    pub(super) flags: Vec<&'c FlagInfo<'static>>,
}

/// The flags of a command but `--help`, which all have.
pub(super) fn flags(command: &CommandInfoWithArgs) -> impl Iterator<Item = &FlagInfo<'static>> {
    let flags = command.flags.iter();
    flags.filter(|flag| !flag.hidden && flag.long != "--help")
}

/// The flags of the command with this path, in groups.
pub(super) fn groups<'c>(command: &'c CommandInfoWithArgs, path: &[String]) -> Vec<Group<'c>> {
    let name = path.first().map_or("", String::as_str);
    let of_name = |row: &&(&str, &str, &str)| row.0 == name;
    let mut own: Vec<_> = HEADINGS.iter().filter(of_name).collect();
    if own.is_empty() {
        own = HEADINGS.iter().filter(|row| row.0.is_empty()).collect();
    }
    let mut groups: Vec<Group<'c>> = Vec::new();
    for flag in flags(command) {
        let heading = own.iter().find(|row| row.1 == flag.long);
        let heading = heading.map(|row| row.2);
        match (heading, groups.last_mut()) {
            (None, Some(group)) => group.flags.push(flag),
            // Of `store migrate` both flags that may begin the group are there.
            (Some(heading), Some(group)) if group.heading == heading => group.flags.push(flag),
            (heading, _) => groups.push(Group {
                heading: heading.unwrap_or("Options"),
                flags: vec![flag],
            }),
        }
    }
    groups
}

/// The examples of the command with this path.
pub(super) fn examples(path: &[String]) -> &'static [(&'static str, &'static str)] {
    let name = path.join(" ");
    let found = EXAMPLES.iter().find(|(own, _)| *own == name);
    found.map_or(&[], |(_, examples)| examples)
}

/// A flag as it is typed: `-o, --output OUT`, `--fit contain|cover|fill`.
pub(super) fn flag_synopsis(flag: &FlagInfo<'_>) -> String {
    let short = flag.short.map(|short| format!("-{short}, "));
    let value = value_name(flag).map(|value| format!(" {value}"));
    short.unwrap_or_default() + flag.long + &value.unwrap_or_default()
}

/// What stands for the value of a flag: `NUMBER`, or the words that are allowed.
pub(super) fn value_name(flag: &FlagInfo<'_>) -> Option<String> {
    let FlagInfoKind::Option { arg_name } = flag.kind else {
        return None;
    };
    let parts = arg_name.split('|');
    let shown = parts.map(|part| {
        if arg_name.contains('|') && !KINDS.contains(&part) {
            part.to_owned()
        } else {
            part.to_uppercase()
        }
    });
    Some(shown.collect::<Vec<_>>().join("|"))
}

/// How the command with this path is typed.
pub(super) fn usage(command: &CommandInfoWithArgs, path: &[String]) -> String {
    let mut usage = super::arguments::typed(path);
    if flags(command).next().is_some() {
        usage.push_str(" [OPTIONS]");
    }
    for flag in command.flags {
        if flag.optionality == Optionality::Required && flag.kind != FlagInfoKind::Switch {
            usage = format!("{usage} {}", flag_synopsis(flag));
        }
    }
    for positional in command.positionals {
        usage = format!("{usage} {}", positional_synopsis(positional));
    }
    if !command.commands.is_empty() {
        usage.push_str(" COMMAND");
    }
    usage
}

/// A positional argument as it is typed: `FILE`, `[URL]`, `IN...`.
pub(super) fn positional_synopsis(positional: &PositionalInfo<'_>) -> String {
    let name = positional.name.to_uppercase();
    match positional.optionality {
        Optionality::Required => name,
        Optionality::Optional => format!("[{name}]"),
        Optionality::Repeating | Optionality::Greedy => format!("{name}..."),
    }
}

/// The words that a flag of the command with this path takes; none if it takes anything else.
pub(super) fn words(path: &[String], flag: &FlagInfo<'static>) -> Vec<&'static str> {
    let FlagInfoKind::Option { arg_name } = flag.kind else {
        return Vec::new();
    };
    if path == ["convert"] {
        let name = flag.long.trim_start_matches('-').replace('-', "_");
        let row = PARAMETERS.iter().find(|row| row.name == name);
        let words = row.map_or_else(Vec::new, |row| row.value.words());
        if !words.is_empty() {
            return words;
        }
    }
    if !arg_name.contains('|') {
        return Vec::new();
    }
    let parts = arg_name.split('|');
    parts.filter(|part| !KINDS.contains(part)).collect()
}

/// What a shell completes for an argument of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paths {
    None,
    Files,
    Folders,
}

/// Which paths an argument of this name takes.
pub(super) fn paths(arg_name: &str) -> Paths {
    match arg_name {
        "folder" => Paths::Folders,
        "in" | "out" | "file" | "file-or-url" | "dir|url" | "url|dir" => Paths::Files,
        _ => Paths::None,
    }
}

/// The first sentence of a description, without its point.
pub(super) fn first_sentence(description: &str) -> String {
    let line = line(description);
    let first = line.split(". ").next().unwrap_or_default();
    first.trim_end_matches('.').to_owned()
}

/// A description in one line.
pub(super) fn line(description: &str) -> String {
    let words: Vec<&str> = description.split_whitespace().collect();
    // argh doubles braces, as format strings have them.
    words.join(" ").replace("{{", "{").replace("}}", "}")
}

/// All commands with their paths, the program first.
pub(super) fn all(program: CommandInfoWithArgs) -> Vec<(Vec<String>, CommandInfoWithArgs)> {
    let mut found = vec![(Vec::new(), program)];
    let mut next = 0;
    while let Some((path, command)) = found.get(next) {
        let below = command.commands.iter().map(|sub| {
            let path = [&path[..], &[sub.name.to_owned()]].concat();
            (path, sub.command.clone())
        });
        let below: Vec<_> = below.collect();
        found.extend(below);
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Towebp;
    use crate::cli::arguments::read;
    use argh::ArgsInfo;

    fn commands() -> Vec<(Vec<String>, CommandInfoWithArgs)> {
        all(Towebp::get_args_info())
    }

    #[test]
    fn every_row_is_of_a_flag_and_a_command_that_exist() {
        let commands = commands();
        assert!(commands.len() > 20, "only {} commands", commands.len());
        for (name, flag, _) in HEADINGS {
            let of_name =
                |path: &[String]| name.is_empty() || path.first().is_some_and(|it| it == name);
            let mut own = commands.iter().filter(|(path, _)| of_name(path));
            let has = own.any(|(_, command)| command.flags.iter().any(|it| it.long == flag));
            assert!(has, "{name} {flag}");
        }
        for (name, _) in EXAMPLES {
            assert!(
                commands.iter().any(|(path, _)| path.join(" ") == name),
                "{name}"
            );
        }
    }

    #[test]
    fn examples_are_valid() {
        for (_, command) in EXAMPLES.iter().flat_map(|(_, examples)| *examples) {
            let words = command.split([' ', '<', '>', '(', ')']);
            let words = words.skip_while(|word| *word != "towebp").skip(1);
            let words = words.take_while(|word| *word != "|");
            let words: Vec<String> = words
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect();
            let program = Towebp::get_args_info();
            let read = read(&words, &program);
            assert!(read.is_ok(), "{command}: {read:?}");
        }
    }

    #[test]
    fn the_words_of_a_flag_are_those_of_its_parameter() {
        let mut with_words = 0;
        for (path, command) in commands() {
            for flag in command.flags {
                let words = words(&path, flag);
                with_words += usize::from(!words.is_empty());
                let FlagInfoKind::Option { arg_name } = flag.kind else {
                    continue;
                };
                let shown = arg_name.split('|').filter(|_| arg_name.contains('|'));
                for word in shown.filter(|word| !KINDS.contains(word)) {
                    assert!(words.contains(&word), "{path:?} {}: {word}", flag.long);
                }
            }
        }
        assert!(with_words > 15, "only {with_words} flags have words");
    }
}
