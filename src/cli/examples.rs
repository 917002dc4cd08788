//! Examples of commands, and the notes on environment variables, for help texts and the manual.

/// The examples of each command: a line with the meaning, and a line to type.
const EXAMPLES: [(&str, &str); 6] = [
    (
        "",
        "a picture beside itself
towebp convert photo.jpg
a service with a dashboard and an example
towebp serve --demo
what a command can do
towebp convert -h",
    ),
    (
        "convert",
        "photo.webp beside it
towebp convert photo.jpg
many, into a folder
towebp convert *.jpg -o web/ -q 75
a folder with all below it
towebp convert -r photos -o web/
only what has changed since
towebp convert -r photos -o web/ --newer
the best of at most 100 kB each
towebp convert *.jpg -o web/ --max-bytes 100k
squares of 400 pixels
towebp convert *.jpg -o thumbs/ --width 400 --height 400 --fit cover
in a pipe
towebp convert - <photo.jpg >photo.webp",
    ),
    (
        "serve",
        "on this machine, with an account and an example
towebp serve --demo
behind a proxy that speaks TLS
towebp serve --public-url https://webp.example.org --trusted-proxy 127.0.0.1
the same by the environment
TOWEBP_PUBLIC_URL=https://webp.example.org TOWEBP_TRUSTED_PROXY=127.0.0.1 towebp serve",
    ),
    (
        "health",
        "the server on this machine
towebp health
another one
towebp health https://webp.example.org",
    ),
    (
        "completions",
        "for the bash that is running
source <(towebp completions bash)
for every fish from now on
towebp completions fish >~/.config/fish/completions/towebp.fish",
    ),
    (
        "man",
        "reads the page of a command
towebp man convert | man -l -
installs one
towebp man serve >/usr/local/share/man/man1/towebp-serve.1",
    ),
];

/// The examples of the command with this path: the meaning of each, and the line to type.
pub(super) fn examples(path: &[String]) -> Vec<(&'static str, &'static str)> {
    let name = path.join(" ");
    let own = EXAMPLES.iter().find(|(command, _)| *command == name);
    let lines: Vec<_> = own.map_or("", |(_, text)| text).lines().collect();
    lines
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect()
}

/// Commands that read no variables.
const WITHOUT_VARIABLES: [&str; 4] = ["convert", "secret", "completions", "man"];

/// Whether the command with this path reads the variables of settings.
pub(super) fn reads_variables(path: &[String]) -> bool {
    path.first()
        .is_some_and(|name| !WITHOUT_VARIABLES.contains(&name.as_str()))
}

/// The note on the environment variables of the command with this path.
pub(super) fn environment_note(path: &[String]) -> Option<&'static str> {
    if path == ["serve"] {
        return Some(
            "Each flag may be given by a variable, too: TOWEBP_MAX_BODY=64MiB is --max-body 64MiB. Several values are \
             separated by commas or spaces; a switch is 1 or true, and 0 or false. A flag beats its variable, and an \
             empty variable counts as none.",
        );
    }
    reads_variables(path).then_some(
        "Flags that towebp serve has too may be given by its variables: TOWEBP_DATA=/data is --data /data.",
    )
}
