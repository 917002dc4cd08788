//! What is handed out beside the program (image, compose files, package, units) names only flags,
//! variables and versions that the program has.

use crate::support::command::{run, towebp};
use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
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
    "deploy/packages/deb/default",
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
        format!("/rust:{}-slim@sha256:", stated("rust-version")),
    ] {
        assert!(image.contains(&line), "Dockerfile has no {line:?}");
    }
}

/// `scripts/release` puts these into an archive: documents and examples, but no source.
const ARCHIVED: [&str; 8] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "docs",
    "examples",
    "benches/README.md",
    "benches/plots",
];

#[test]
fn documents_link_only_to_what_archives_have() {
    let root = fs::canonicalize(env!("CARGO_MANIFEST_DIR")).expect("it is there");
    let mut found = 0;
    for folder in ["", "docs", "examples", "benches"].map(|folder| root.join(folder)) {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let document = entry.expect("a file").path();
            if document.extension().is_none_or(|ending| ending != "md") {
                continue;
            }
            let text = fs::read_to_string(&document).expect("it is UTF-8");
            for (at, _) in text.match_indices("](") {
                let target = text[at + 2..].split([')', '#', ' ']).next();
                let target = target.expect("there is always a first part");
                if target.is_empty() || target.contains(':') {
                    continue;
                }
                found += 1;
                let linked = fs::canonicalize(folder.join(target))
                    .unwrap_or_else(|error| panic!("{}: {target}: {error}", document.display()));
                assert!(
                    ARCHIVED
                        .iter()
                        .any(|part| linked.starts_with(root.join(part))),
                    "{} links to {target}, which is in no archive",
                    document.display()
                );
            }
        }
    }
    assert!(found > 20, "only {found} links were found");
}

/// A tag may be another image tomorrow; a digest never is.
#[test]
fn images_of_others_are_named_by_digest() {
    let files = [
        "Dockerfile",
        "compose.yaml",
        "compose.caddy.yaml",
        "scripts/cluster/compose.yaml",
    ];
    let mut found = 0;
    for file in files {
        for line in read(file).lines() {
            let line = line.trim();
            let from = line.strip_prefix("FROM ").map(|rest| {
                let mut words = rest.split(' ').filter(|word| !word.starts_with("--"));
                words.next().expect("an image")
            });
            let Some(image) = from.or_else(|| line.strip_prefix("image: ")) else {
                continue;
            };
            // Our own, and nothing.
            if ["towebp", "scratch"].contains(&image) {
                continue;
            }
            let (_, digest) = image.split_once("@sha256:").unwrap_or_default();
            let is_digest = digest.len() == 64 && digest.bytes().all(|it| it.is_ascii_hexdigit());
            assert!(is_digest, "{file}: {image} has no digest");
            found += 1;
        }
    }
    assert!(found >= 4, "only {found} images were found in {files:?}");
}

/// Whoever else is in a network of containers could write any address into `X-Forwarded-For`.
#[test]
fn compose_files_believe_one_proxy_of_a_fixed_address() {
    for file in ["compose.caddy.yaml", "scripts/cluster/compose.yaml"] {
        let text = read(file);
        let values = |key: &str| -> Vec<String> {
            let parts = text.split(key).skip(1);
            let value = |part: &str| {
                let end = part.find([' ', '\n', ',', '}']).unwrap_or(part.len());
                part[..end].to_owned()
            };
            parts.map(value).collect()
        };
        let trusted = values("TOWEBP_TRUSTED_PROXY: ");
        assert_eq!(trusted, values("ipv4_address: "), "{file}");
        assert_eq!(trusted.len(), 1, "{file}");
        trusted[0]
            .parse::<Ipv4Addr>()
            .expect("one address, no network");
        // No other container is given it.
        let dynamic = values("ip_range: ");
        assert!(
            dynamic.iter().all(|range| range.ends_with(".128/25")),
            "{file}: {dynamic:?}"
        );
        assert_eq!(dynamic.len(), 1, "{file}");
    }
}

#[test]
fn files_that_documents_name_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = vec![root.join("README.md")];
    for entry in fs::read_dir(root.join("docs")).expect("it is there") {
        let path = entry.expect("it is readable").path();
        documents.extend(
            path.extension()
                .is_some_and(|it| it == "md")
                .then_some(path),
        );
    }
    let folders = [
        "src/",
        "pipeline/",
        "encoder/",
        "memory/",
        "tests/",
        "scripts/",
        "deploy/",
    ];
    let mut found = 0;
    for document in documents {
        let text = fs::read_to_string(&document).expect("it is text");
        for word in text.split('`').skip(1).step_by(2) {
            let is_path = word
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"/_.@-".contains(&it));
            if is_path && folders.iter().any(|folder| word.starts_with(folder)) {
                let name = document.display();
                assert!(root.join(word).exists(), "{name}: {word} is not there");
                found += 1;
            }
        }
    }
    assert!(found > 50, "only {found} paths were found");
}
