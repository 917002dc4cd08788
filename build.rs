//! Renders the files of `docs/` that are pages of the service, from Markdown to HTML, and compresses
//! them. At build time, because a Markdown parser would add 390 kB to the program, and the texts
//! themselves 100 kB: compressed HTML takes 45 kB in all. Stylesheets and scripts are compressed,
//! too: most browsers get them as they stand in the program.
//!
//! What the pages could not show stops the build with a sentence: raw HTML, an image, a link to a
//! file that is not known.

#[path = "src/dashboard/asset_list.rs"]
#[allow(dead_code, reason = "the program has the rest")]
mod asset_list;

#[path = "src/dashboard/paths.rs"]
#[allow(dead_code, reason = "the program has the rest")]
mod paths;

#[path = "src/dashboard/highlight.rs"]
mod highlight;

#[path = "src/dashboard/markdown.rs"]
mod markdown;

#[path = "src/dashboard/docs_list.rs"]
#[allow(dead_code, reason = "the program has the rest")]
mod docs_list;

use docs_list::{DOC_PAGES, Reader};
use markdown::Target;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Files of `docs/` that are no pages: they are about the source, which readers of pages may not
/// have.
const LEFT_OUT: &[&str] = &[
    "contributing",
    "architecture",
    "assurance",
    "encoder",
    "upstream",
];

/// The strongest of zlib's levels that `miniz_oxide` has.
const COMPRESSION: u8 = 10;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=docs");
    println!("cargo::rerun-if-changed=src/dashboard");
    println!("cargo::rerun-if-changed=wasm/npm");
    println!("cargo::rerun-if-changed=testdata/chelsea.jpg");
    println!("cargo::rerun-if-changed=testdata/chelsea.webp");
    every_file_is_known();
    let mut all = String::new();
    for page in DOC_PAGES {
        let file = format!("docs/{}.md", page.name);
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let rendered = markdown::render(&text, &page_of_link)
            .unwrap_or_else(|fault| panic!("{file}: {fault}"));
        // `src/dashboard/docs.rs` divides what this joins.
        for part in [rendered.contents, rendered.article] {
            all += &match page.reader {
                Reader::User => with_places(&part),
                Reader::Operator => part,
            };
            all.push('\0');
        }
    }
    compress("docs", all.as_bytes());
    let mut included = String::new();
    for (index, asset) in asset_list::ASSETS.iter().enumerate() {
        let bytes = |file: &&str| {
            let path = format!("src/dashboard/{file}");
            fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
        };
        let name = format!("asset-{index}");
        let all: Vec<u8> = asset.sources.iter().flat_map(bytes).collect();
        compress(&name, &all);
        included += "include_bytes!(\"";
        included += &name;
        included += ".zlib\"),";
    }
    // `src/dashboard/mod.rs` includes this array.
    fs::write(out_file("assets.rs"), format!("[{included}]")).expect("cargo made the folder");
    include_module();
}

/// Takes the module that scripts/wasm has made and compressed, by which browsers convert. Without it
/// the program is built as well, and its pages leave the conversions to the server.
fn include_module() {
    println!("cargo::rerun-if-changed={MODULES}");
    let module = match fs::copy(format!("{MODULES}/module.zlib"), out_file("module.zlib")) {
        Ok(_) => "Some(include_bytes!(\"module.zlib\"))",
        Err(_) => "None",
    };
    fs::write(out_file("module.rs"), module).expect("cargo made the folder");
}

/// The folder that scripts/wasm writes. It is always there, since Cargo runs a build script again
/// each time if what it watches is missing.
const MODULES: &str = "wasm/built";

/// Writes the bytes as `NAME.zlib` to where the program includes them from.
fn compress(name: &str, bytes: &[u8]) {
    let compressed = miniz_oxide::deflate::compress_to_vec_zlib(bytes, COMPRESSION);
    fs::write(out_file(&format!("{name}.zlib")), compressed).expect("cargo made the folder");
}

fn out_file(name: &str) -> PathBuf {
    Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join(name)
}

/// Stops if a file of `docs/` is neither a page nor left out.
fn every_file_is_known() {
    for file in fs::read_dir("docs").expect("the package has docs/") {
        let name = file.expect("docs/ can be read").file_name();
        if let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".md")) {
            assert!(
                DOC_PAGES.iter().any(|page| page.name == name) || LEFT_OUT.contains(&name),
                "docs/{name}.md is new: list it in src/dashboard/docs_list.rs, or leave it out in build.rs"
            );
        }
    }
}

/// Where a link of `docs/` to this file leads: to a page, or, as its text alone, to a file that only
/// the repository has.
fn page_of_link(target: &str) -> Result<Option<Target>, String> {
    let name = target.strip_suffix(".md").unwrap_or(target);
    if let Some(page) = DOC_PAGES.iter().find(|page| page.name == name) {
        return Ok(Some(Target {
            path: format!("/docs/{name}"),
            title: page.title,
        }));
    }
    if target.starts_with("../") || LEFT_OUT.contains(&name) {
        return Ok(None);
    }
    Err(format!(
        "a link leads to {target}, which is neither a page nor left out"
    ))
}

/// Puts places to fill in where examples have a token and the address of a server.
fn with_places(html: &str) -> String {
    assert!(!html.contains("{{"), "a page has a place to fill in");
    assert!(
        !html.contains("token=$(cat token)"),
        "an example has the token in its URL, where histories and logs keep it"
    );
    html.replace("$(cat token)", "{{token}}")
        .replace("http://127.0.0.1:8080", "{{server}}")
}
