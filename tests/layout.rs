//! Holds the source to the layout of the house: which room may import which, where `unsafe` may stand, how long a file
//! may be. A failure says which file, and what is allowed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each room of `src/` and the rooms that it may import. Data flows down this list; nothing points back up.
const ROOMS: &[(&str, &[&str])] = &[
    ("main", EVERYTHING),
    ("lib", EVERYTHING),
    ("cli", EVERYTHING),
    // The rooms' own settings, which it puts together.
    (
        "config",
        &[
            "conversion",
            "dashboard",
            "fetch",
            "front",
            "http",
            "image",
            "process",
            "store",
        ],
    ),
    ("process", &[]),
    ("front", &["admission"]),
    (
        "http",
        &[
            "admission",
            "conversion",
            "dashboard",
            "fetch",
            "front",
            "image",
            "store",
        ],
    ),
    ("admin", &["store"]),
    ("dashboard", &["store"]),
    ("conversion", &["image", "watermark"]),
    ("watermark", &["image"]),
    ("image", &[]),
    ("fetch", &["admission"]),
    ("admission", &[]),
    ("store", &["auth"]),
    ("auth", &[]),
];

const EVERYTHING: &[&str] = &["*"];

/// Longer files do not fit a head.
const MAX_LINES: usize = 800;

#[test]
fn rooms_import_only_what_the_table_allows() {
    let mut faults = Vec::new();
    for file in sources("src") {
        let room = room(&file.path);
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            faults.push(format!(
                "{}: the room `{room}` is not in the table of tests/layout.rs",
                file.path.display()
            ));
            continue;
        };
        for imported in imports(&file.code) {
            if imported != room && *allowed != EVERYTHING && !allowed.contains(&imported.as_str()) {
                faults.push(format!(
                    "{}: imports `crate::{imported}`; `{room}` may import {}",
                    file.path.display(),
                    if allowed.is_empty() {
                        "no other room".to_owned()
                    } else {
                        allowed.join(", ")
                    }
                ));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn unsafe_stands_only_in_kernels() {
    let faults: Vec<String> = ["src", "encoder"]
        .into_iter()
        .flat_map(sources)
        .filter(|file| has_word(&file.code, "unsafe") && !is_kernel_twin(&file.path))
        .map(|file| {
            format!(
                "{}: `unsafe` is allowed only beside a scalar.rs, and not in scalar.rs itself",
                file.path.display()
            )
        })
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_simd_kernel_has_its_scalar_definition() {
    let simd = ["sse2.rs", "sse41.rs", "avx2.rs", "avx512.rs", "neon.rs"];
    let faults: Vec<String> = ["src", "encoder"]
        .into_iter()
        .flat_map(sources)
        .filter(|file| {
            let name = file.path.file_name().unwrap_or_default();
            simd.iter().any(|known| name == *known) && !is_kernel_twin(&file.path)
        })
        .map(|file| {
            format!(
                "{}: there is no scalar.rs beside it, which says what it computes",
                file.path.display()
            )
        })
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn files_are_at_most_800_lines() {
    let faults: Vec<String> = ["src", "encoder", "tests", "benches"]
        .iter()
        .flat_map(|folder| sources(folder))
        .filter(|file| file.lines > MAX_LINES)
        .map(|file| {
            format!(
                "{}: {} lines; at most {MAX_LINES} are allowed, so divide it by subject",
                file.path.display(),
                file.lines
            )
        })
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn files_of_the_codec_name_their_rfc() {
    let codecs = [
        ("encoder/src/vp8", "RFC 6386"),
        ("encoder/src/vp8l", "RFC 9649"),
    ];
    let faults: Vec<String> = codecs
        .into_iter()
        .flat_map(|(folder, rfc)| sources(folder).into_iter().map(move |file| (file, rfc)))
        .filter(|(file, _)| file.path.file_name().is_none_or(|name| name != "tests.rs"))
        .filter(|(file, rfc)| !file.head.contains(rfc))
        .map(|(file, rfc)| {
            format!(
                "{}: its opening `//!` lines name no section of {rfc}, as those of every file there do",
                file.path.display()
            )
        })
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// A Rust file.
struct Source {
    /// From the root of the package.
    path: PathBuf,
    /// Without what follows `//` in a line.
    code: String,
    /// The opening `//!` lines.
    head: String,
    lines: usize,
}

/// Every Rust file under `folder`, none if the folder is missing.
fn sources(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("the folder can be read to its end").path();
            if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(read(root, &path));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn read(root: &Path, path: &Path) -> Source {
    let text = fs::read_to_string(path).expect("a source file is UTF-8");
    let without_comment = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    Source {
        path: path
            .strip_prefix(root)
            .expect("it was found under the root")
            .to_owned(),
        code: text
            .lines()
            .map(without_comment)
            .collect::<Vec<_>>()
            .join("\n"),
        head: text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .collect::<Vec<_>>()
            .join("\n"),
        lines: text.lines().count(),
    }
}

/// `src/http/error.rs` is of the room `http`, `src/cli.rs` of `cli`.
fn room(path: &Path) -> String {
    let first = path
        .components()
        .nth(1)
        .expect("a file of src has two components");
    let name = first.as_os_str().to_string_lossy();
    name.strip_suffix(".rs").unwrap_or(&name).to_owned()
}

/// The names that follow `crate::` or stand at the top of `crate::{...}`.
fn imports(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(first_name(rest));
            continue;
        };
        let mut depth = 0;
        let mut item = String::new();
        for character in group.chars() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    names.insert(first_name(&std::mem::take(&mut item)));
                    continue;
                }
                _ => {}
            }
            item.push(character);
        }
        names.insert(first_name(&item));
    }
    names.remove("");
    names
}

fn first_name(path: &str) -> String {
    path.trim_start()
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|found| found == word)
}

fn is_kernel_twin(path: &Path) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scalar = path.with_file_name("scalar.rs");
    path != scalar && root.join(scalar).is_file()
}

#[test]
fn the_reader_of_imports_sees_through_groups() {
    let code = "use crate::{image, store::{self, Store}, webp};\nuse crate::fetch::Fetcher;\npub(crate) fn f() {}";
    let found: Vec<String> = imports(code).into_iter().collect();
    assert_eq!(found, ["fetch", "image", "store", "webp"]);
    assert!(!has_word("#![expect(unsafe_code)]", "unsafe"));
    assert!(has_word("unsafe { f() }", "unsafe"));
}
