//! Holds the source to its layout: which module may import which, that no two files import each
//! other, where `unsafe` may stand, how long a file and a line may be. A failure names the file and
//! what is allowed.

#[path = "layout/source.rs"]
mod source;

use source::{Crate, Import, Source, has_word, sources};
use std::collections::BTreeSet;
use std::path::Path;

/// Each module of [`PROGRAM`] and the modules that it may import. Nothing points back up this list.
const MODULES: &[(&str, &[&str])] = &[
    ("main", EVERYTHING),
    ("lib", EVERYTHING),
    ("cli", EVERYTHING),
    // It puts the modules' own settings together.
    (
        "config",
        &[
            "admission",
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
            "auth",
            "conversion",
            "dashboard",
            "fetch",
            "front",
            "image",
            "store",
            "watermark",
        ],
    ),
    ("admin", &["store"]),
    ("dashboard", &["auth", "conversion", "store"]),
    ("conversion", &["image", "watermark"]),
    ("watermark", &["image"]),
    ("image", &[]),
    ("fetch", &["admission", "tls"]),
    ("admission", &["auth", "store"]),
    ("store", &["auth", "tls"]),
    ("auth", &[]),
    ("tls", &[]),
];

/// May import every module.
const EVERYTHING: &[&str] = &["*"];

/// Files that may hold `unsafe`; each says why beside it.
const UNSAFE: &[&str] = &[
    "src/process/allocator.rs",
    "memory/src/block_cache.rs",
    "memory/src/memory_functions.rs",
    "memory/src/system_memory.rs",
    // The attribute that exports a name, and the promise of an import's signature.
    "wasm/module/src/lib.rs",
];

/// The name of files with kernels of vector instructions.
const VECTORS: &str = "vector.rs";

/// A file that is longer is divided by subject.
const MAX_LINES: usize = 800;

/// Columns of a line with a comment.
const MAX_COLUMNS: usize = 100;

/// The folders of the workspace with Rust code.
const FOLDERS: [&str; 8] = [
    "src", "pipeline", "memory", "wasm", "encoder", "tests", "benches", "fuzz",
];

/// The program's own modules and those of the pipeline's crate, in one table of imports.
const PROGRAM: &[&str] = &["src", "pipeline/src"];

/// The folders of what is looked at as one crate.
const CRATES: [&[&str]; 2] = [PROGRAM, &["encoder/src"]];

#[test]
fn modules_import_only_what_the_table_allows() {
    let mut faults = BTreeSet::new();
    for Import {
        from,
        written,
        resolved,
        ..
    } in Crate::read(PROGRAM, true).imports()
    {
        let module = top_module(&from);
        let Some((_, allowed)) = MODULES.iter().find(|(name, _)| *name == module) else {
            faults.insert(format!("{module}: is not in the table of tests/layout.rs"));
            continue;
        };
        // Both the path by which the item comes and the place where it is defined have to be
        // allowed.
        for path in [&written, &resolved] {
            let imported = path.first().map_or("lib", String::as_str);
            if imported != module && *allowed != EVERYTHING && !allowed.contains(&imported) {
                faults.insert(format!(
                    "{}: imports crate::{}, which is of `{imported}`; `{module}` may import {}",
                    from.display(),
                    written.join("::"),
                    match allowed {
                        [] => "no other module".to_owned(),
                        _ => allowed.join(", "),
                    }
                ));
            }
        }
    }
    assert_none(faults);
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut faults = BTreeSet::new();
    for folders in CRATES {
        let code = Crate::read(folders, false);
        let imports = code.imports();
        for circle in code.circles() {
            let inside = imports
                .iter()
                .filter(|import| circle.contains(&import.from) && circle.contains(&import.to))
                .map(|import| {
                    format!(
                        "\n  {} imports {} of {}",
                        import.from.display(),
                        import.written.join("::"),
                        import.to.display()
                    )
                });
            faults.insert(format!(
                "{} files import each other; move what they share to a file of its own:{}",
                circle.len(),
                inside.collect::<String>()
            ));
        }
    }
    assert_none(faults);
}

#[test]
fn unsafe_stands_only_in_the_files_of_a_list() {
    let faults = sources("src")
        .into_iter()
        .chain(sources("pipeline"))
        .chain(sources("memory"))
        .chain(sources("wasm"))
        .chain(sources("encoder"))
        .filter(|file| has_word(&file.code, "unsafe"))
        .filter(|file| !UNSAFE.iter().any(|allowed| file.path == Path::new(allowed)))
        .map(|file| {
            format!(
                "{}: `unsafe` is allowed only in {}",
                file.path.display(),
                UNSAFE.join(" and ")
            )
        });
    assert_none(faults.collect());
}

/// A function or a closure that is not inlined is compiled without the instructions of the region
/// that calls it, and each of its vector operations becomes a call.
#[test]
fn kernels_are_inlined_functions_without_closures() {
    let mut faults = BTreeSet::new();
    for file in sources("encoder") {
        if !file.path.ends_with(VECTORS) {
            continue;
        }
        let mut attribute = "";
        for (number, line) in (1..).zip(file.code.lines().map(str::trim)) {
            let is_function = line.starts_with("fn ") || line.starts_with("pub fn ");
            if is_function && attribute != "#[inline(always)]" {
                faults.insert(format!(
                    "{}:{number}: `#[inline(always)]` is missing above this function",
                    file.path.display()
                ));
            }
            if line.contains("from_fn(") || line.contains(".map(") || has_closure(line) {
                faults.insert(format!(
                    "{}:{number}: a kernel has no closures",
                    file.path.display()
                ));
            }
            attribute = line;
        }
    }
    assert_none(faults);
}

/// Whether a line has a closure, and not only bitwise or.
fn has_closure(line: &str) -> bool {
    let after_opening = |at: usize| line[at + 1..].trim_start().starts_with('|');
    line.contains("||")
        || line
            .match_indices(['(', '=', ','])
            .any(|(at, _)| after_opening(at) && !line[at..].starts_with("=="))
}

#[test]
fn every_simd_kernel_has_its_scalar_definition() {
    let faults = sources("src")
        .into_iter()
        .chain(sources("pipeline"))
        .chain(sources("encoder"))
        .filter(|file| file.path.ends_with(VECTORS) && !has_scalar_twin(&file.path))
        .map(|file| {
            format!(
                "{}: there is no scalar.rs beside it, which says what it computes",
                file.path.display()
            )
        });
    assert_none(faults.collect());
}

#[test]
fn files_are_at_most_800_lines() {
    let faults = all_sources().filter_map(|file| {
        let lines = file.text.lines().count();
        (lines > MAX_LINES).then(|| {
            format!(
                "{}: {lines} lines; at most {MAX_LINES} are allowed, so divide it by subject",
                file.path.display()
            )
        })
    });
    assert_none(faults.collect());
}

/// Code is rustfmt's, which leaves alone what it is told to. A comment may have the row of a table,
/// or a word that no line could hold, as a link.
#[test]
fn lines_with_comments_are_at_most_100_columns() {
    let mut faults = BTreeSet::new();
    for file in all_sources() {
        for (number, line) in (1..).zip(file.text.lines()) {
            let columns = line.chars().count();
            let is_table = line
                .trim_start()
                .trim_start_matches(['/', '!'])
                .starts_with(" |");
            let has_long_word = line
                .split_whitespace()
                .any(|word| word.chars().count() > 80);
            if columns > MAX_COLUMNS && line.contains("//") && !is_table && !has_long_word {
                faults.insert(format!(
                    "{}:{number}: {columns} columns",
                    file.path.display()
                ));
            }
        }
    }
    assert_none(faults);
}

#[test]
fn files_of_the_codec_name_their_rfc() {
    let codecs = [
        ("encoder/src/vp8", "RFC 6386"),
        ("encoder/src/vp8l", "RFC 9649"),
    ];
    let faults = codecs
        .into_iter()
        .flat_map(|(folder, rfc)| sources(folder).into_iter().map(move |file| (file, rfc)))
        .filter(|(file, rfc)| !file.path.ends_with("tests.rs") && !file.head.contains(rfc))
        .map(|(file, rfc)| {
            format!(
                "{}: its opening `//!` lines name no section of {rfc}, as those of every file there do",
                file.path.display()
            )
        });
    assert_none(faults.collect());
}

/// The map of docs/architecture.md, a block that begins with `modules`. `scripts/bless` writes it.
#[test]
fn the_map_of_the_documentation_is_this_table() {
    const BEGIN: &str = "```text\nmodules\n";
    let rows = MODULES
        .iter()
        .filter(|(name, _)| !["main", "lib"].contains(name))
        .map(|(name, allowed)| match *allowed {
            EVERYTHING => format!("{name} -> every module\n"),
            [] => format!("{name} -> none\n"),
            _ => format!("{name} -> {}\n", allowed.join(", ")),
        });
    let map: String = rows.collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md");
    let text = std::fs::read_to_string(&path).expect("the documentation has this file");
    let begin = text
        .find(BEGIN)
        .expect("a block that begins with `modules`")
        + BEGIN.len();
    let end = begin + text[begin..].find("```").expect("the block ends");
    if std::env::var_os("TOWEBP_BLESS").is_some() {
        let blessed = [&text[..begin], &map, &text[end..]].concat();
        return std::fs::write(path, blessed).expect("docs is writable");
    }
    assert!(
        text[begin..end] == map,
        "docs/architecture.md has another map of the modules than tests/layout.rs; run scripts/bless"
    );
}

/// Cargo has no list of packages that two profiles share.
#[test]
fn two_profiles_optimize_the_same_packages_for_speed() {
    let manifest = include_str!("../Cargo.toml");
    let packages = |profile: &str, level: u8| -> BTreeSet<&str> {
        let (prefix, level) = (
            format!("[profile.{profile}.package."),
            format!("opt-level = {level}"),
        );
        let lines = manifest.lines().zip(manifest.lines().skip(1));
        lines
            .filter(|(_, next)| *next == level)
            .filter_map(|(head, _)| head.strip_prefix(&prefix)?.strip_suffix(']'))
            .collect()
    };
    let mut tests = packages("dev", 2);
    // Of the workspace, the profile `dev` optimizes the encoder alone.
    assert!(tests.len() > 20, "{tests:?}");
    tests.extend(["towebp-memory", "towebp-pipeline"]);
    assert_eq!(tests, packages("release", 3));
}

fn all_sources() -> impl Iterator<Item = Source> {
    FOLDERS.into_iter().flat_map(sources)
}

#[track_caller]
fn assert_none(faults: BTreeSet<String>) {
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// `src/http/error.rs` is of the module `http`, `src/lib.rs` of `lib`.
fn top_module(path: &Path) -> String {
    let first = path
        .iter()
        .skip_while(|name| *name != "src")
        .nth(1)
        .expect("a file is somewhere in src");
    let name = first.to_string_lossy();
    name.strip_suffix(".rs").unwrap_or(&name).to_owned()
}

fn has_scalar_twin(path: &Path) -> bool {
    let scalar = path.with_file_name("scalar.rs");
    path != scalar && Path::new(env!("CARGO_MANIFEST_DIR")).join(scalar).is_file()
}
