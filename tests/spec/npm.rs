//! The npm package of `wasm/npm` is as the tables of the code: its types are those of the
//! parameters, and its problems those of the API. `scripts/docs` writes both.

use crate::docs::WRITE;
use std::fmt::Write as _;
use std::path::Path;
use towebp::http::{Kind, PROBLEMS};
use towebp_pipeline::conversion::{DefaultValue, PARAMETERS, Parameter, Value};

/// The problems that a conversion without a server can have.
const CODES: [&str; 13] = [
    "body_empty",
    "image_too_wide",
    "internal_error",
    "invalid_image",
    "invalid_parameter",
    "max_bytes_unreachable",
    "missing_characters",
    "too_many_frames",
    "too_many_pixels",
    "too_much_memory",
    "watermark_not_png_or_jpeg",
    "watermark_too_large",
    "wrong_format",
];

/// What stands before the parameters in the file of types.
const BEFORE: &str = include_str!("npm/before.d.ts");

/// What stands after them.
const AFTER: &str = include_str!("npm/after.d.ts");

#[test]
fn the_types_are_those_of_the_table_of_parameters() {
    let mut text = BEFORE.to_owned();
    for row in &PARAMETERS {
        if row.name == "token" {
            continue;
        }
        let (meaning, default) = (meaning(row), default(row));
        writeln!(
            text,
            "  /** {meaning}{default} */\n  {}?: {};",
            row.name,
            kind(row)
        )
        .expect("a String takes all");
    }
    hold("index.d.ts", &(text + AFTER));
}

#[test]
fn the_problems_are_those_of_the_api() {
    let mut text = concat!(
        "// Status, title and name of the status of each problem, by its code. ",
        "Written by scripts/docs.\n\nexport const PROBLEMS = {\n"
    )
    .to_owned();
    for code in CODES {
        let row = PROBLEMS.iter().find(|row| row.code == code).expect(code);
        let name = Kind::of_code(code).status_name();
        writeln!(
            text,
            "  {code}: [{}, {:?}, {name:?}],",
            row.status, row.title
        )
        .expect("a String takes all");
    }
    hold("problems.js", &(text + "};\n"));
}

#[test]
fn the_package_has_the_version_of_the_program() {
    let package = std::fs::read_to_string(path("package.json")).expect("the package has it");
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(package.contains(&version), "{version} in {package}");
}

fn kind(row: &Parameter) -> String {
    match row.value {
        Value::Number(..) | Value::Decimal(..) => "number".to_owned(),
        Value::Word("true or false") => "boolean | \"true\" | \"false\"".to_owned(),
        Value::Word(allowed) => {
            let words = allowed.split(", ").flat_map(|part| part.split(" or "));
            let words: Vec<String> = words.map(|word| format!("{word:?}")).collect();
            words.join(" | ")
        }
        Value::Url => "Bytes".to_owned(),
        Value::Size(..) | Value::Percent(..) | Value::Length { .. } => "number | string".to_owned(),
        _ => "string".to_owned(),
    }
}

/// The meaning as text; what is about URLs is not about this package.
fn meaning(row: &Parameter) -> String {
    if let Value::Url = row.value {
        return "The bytes of a PNG or JPEG that is drawn onto the picture.".to_owned();
    }
    let bare = row.meaning.replace("`%0A` begins", "a line feed begins");
    let mut text = bare.replace('`', "");
    while let Some(at) = text.find(", which a URL needs as ") {
        let end = text[at + 2..]
            .find([',', ';'])
            .map_or(text.len(), |end| at + 2 + end);
        text.replace_range(at..end, "");
    }
    if bare.starts_with('`') {
        return format!("{text}.");
    }
    let (first, rest) = text.split_at(1);
    format!("{}{rest}.", first.to_uppercase())
}

fn default(row: &Parameter) -> String {
    let (DefaultValue::Given(text) | DefaultValue::Other(text)) = row.default;
    match text {
        "none" => String::new(),
        text => format!(" Default: {text}."),
    }
}

fn path(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("wasm/npm")
        .join(name)
}

#[track_caller]
fn hold(name: &str, expected: &str) {
    if std::env::var_os(WRITE).is_some() {
        return std::fs::write(path(name), expected).expect("wasm/npm is writable");
    }
    let is = std::fs::read_to_string(path(name)).unwrap_or_default();
    assert!(
        is == expected,
        "wasm/npm/{name} is not as the code; run scripts/docs"
    );
}
