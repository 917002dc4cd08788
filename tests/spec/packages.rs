//! What is handed out beside the program (image, compose files, package, units) names only flags,
//! variables and versions that the program has.

use crate::support::command::{run, towebp};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The files that set variables of `towebp serve`, or start it.
const FILES: [&str; 8] = [
    "Dockerfile",
    "compose.yaml",
    "compose.caddy.yaml",
    "scripts/cluster/compose.yaml",
    "scripts/towebp.service",
    "scripts/towebp.socket",
    "scripts/towebp@.service",
    "packaging/deb/default",
];

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The flags of `towebp serve`, by its own help.
fn flags() -> BTreeSet<String> {
    let help = run(towebp().args(["serve", "--help"]), b"");
    let help = String::from_utf8(help.stdout).expect("the help is UTF-8");
    let flags: BTreeSet<String> = words(&help, "--", |c| c.is_ascii_lowercase() || c == '-')
        .into_iter()
        .collect();
    assert!(flags.contains("--listen") && flags.len() > 40, "{flags:?}");
    flags
}

/// The words that begin with `start` and go on with what `belongs` to them.
fn words(text: &str, start: &str, belongs: fn(char) -> bool) -> Vec<String> {
    text.match_indices(start)
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '-'))
        .map(|(at, _)| {
            let rest = &text[at + start.len()..];
            let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
            format!("{start}{}", &rest[..end])
        })
        .filter(|word| word.len() > start.len())
        .collect()
}

#[test]
fn every_variable_is_a_flag_of_the_program() {
    let flags = flags();
    let mut found = 0;
    for file in FILES {
        let text = read(file);
        for name in words(&text, "TOWEBP_", |c| c.is_ascii_uppercase() || c == '_') {
            let flag = name["TOWEBP_".len()..]
                .to_ascii_lowercase()
                .replace('_', "-");
            found += 1;
            assert!(
                flags.contains(&format!("--{flag}")),
                "{file}: {name} would be --{flag}, which `towebp serve` does not have"
            );
        }
    }
    assert!(found > 30, "only {found} variables were found in {FILES:?}");
}

#[test]
fn every_flag_that_starts_the_program_exists() {
    let flags = flags();
    for file in FILES {
        let text = read(file).replace("\\\n", " ");
        for line in text.lines().filter(|line| line.contains("towebp serve --")) {
            let (_, given) = line.split_once("towebp serve").expect("it was found");
            for flag in words(given, "--", |c| c.is_ascii_lowercase() || c == '-') {
                assert!(flags.contains(&flag), "{file}: {flag} is no flag: {line}");
            }
        }
    }
}

#[test]
fn the_image_has_the_versions_of_the_manifest() {
    let (image, manifest) = (read("Dockerfile"), read("Cargo.toml"));
    let stated = |key: &str| {
        let line = manifest.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split('"').nth(1))
            .expect("the manifest states it")
            .to_owned()
    };
    for line in [
        format!("ARG VERSION={}\n", stated("version")),
        format!("ARG RUST={}\n", stated("rust-version")),
    ] {
        assert!(image.contains(&line), "Dockerfile has no line {line:?}");
    }
}
