//! The tables of the documentation are those of the code. `scripts/docs` writes them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use towebp::config::SETTINGS;
use towebp::http::{DOWNLOAD, PROBLEMS, RESPONSE_HEADERS};
use towebp_pipeline::conversion::{DefaultValue, PARAMETERS, Value};

/// Set by `scripts/docs`: tables are written instead of compared.
pub const WRITE: &str = "TOWEBP_WRITE_DOCS";

#[test]
fn the_table_of_problems_is_that_of_the_code() {
    let mut rows: Vec<_> = PROBLEMS.iter().collect();
    rows.sort_by_key(|row| row.status);
    let mut table = "| status | code | title | when |\n|---|---|---|---|\n".to_owned();
    for row in rows {
        writeln!(
            table,
            "| {} | `{}` | {} | {} |",
            row.status, row.code, row.title, row.when
        )
        .expect("a String takes all");
    }
    hold("docs/api.md", "problems", &table);
}

#[test]
fn the_table_of_parameters_is_that_of_the_code() {
    let mut table =
        "| name | type | default | allowed | otherwise |\n|---|---|---|---|---|\n".to_owned();
    for row in PARAMETERS.iter().chain([&DOWNLOAD]) {
        let kind = match row.value {
            Value::Number(..) | Value::Count(..) => "whole number",
            Value::Decimal(..) => "number",
            Value::Size(..) => "bytes",
            Value::Percent(..) => "percent",
            Value::Rectangle => "four numbers",
            Value::Length { has_auto: true, .. } => "pixels, percent or `auto`",
            Value::Length { .. } => "pixels or percent",
            Value::Word(_)
            | Value::Color(_)
            | Value::Cursor(_)
            | Value::Text
            | Value::Token
            | Value::Day
            | Value::Status => "text",
            Value::Url => "URL",
        };
        let default = match (row.default, row.value) {
            (
                DefaultValue::Given(value),
                Value::Number(..) | Value::Decimal(..) | Value::Length { .. },
            ) => value.to_owned(),
            (DefaultValue::Given(value), _) => format!("`{value}`"),
            (DefaultValue::Other(words), _) => words.to_owned(),
        };
        let (name, meaning, otherwise) = (row.name, row.meaning, row.otherwise);
        writeln!(
            table,
            "| `{name}` | {kind} | {default} | {meaning} | {otherwise} |"
        )
        .expect("a String takes all");
    }
    hold("docs/api.md", "parameters", &table);
}

#[test]
fn the_table_of_headers_is_that_of_the_code() {
    let mut table = "| header | what it says |\n|---|---|\n".to_owned();
    for row in RESPONSE_HEADERS {
        writeln!(table, "| `{}` | {} |", row.name, row.meaning).expect("a String takes all");
    }
    hold("docs/api.md", "headers", &table);
}

#[test]
fn the_table_of_settings_is_that_of_the_code() {
    let mut table = String::new();
    let mut heading = "";
    for row in SETTINGS {
        if row.heading != heading {
            heading = row.heading;
            let head = "| flag | default | allowed | meaning |\n|---|---|---|---|";
            writeln!(table, "\n### {heading}\n\n{head}").expect("a String takes all");
        }
        let value = row.kind.value_name().map(|name| format!(" {name}"));
        // A bar would end the cell.
        let value = value.unwrap_or_default().replace('|', "\\|");
        let default = match row.default {
            Some(words) => words.to_owned(),
            None => format!("`{}`", row.default_text()),
        };
        let reason = match row.reason {
            "" => String::new(),
            reason => format!(". The default: {reason}"),
        };
        writeln!(
            table,
            "| `--{}{value}` | {default} | {} | {}{reason} |",
            row.name,
            row.kind.range(),
            row.meaning
        )
        .expect("a String takes all");
    }
    hold("docs/command-line.md", "settings", &table);
}

#[test]
fn the_guides_have_the_files_that_are_tried() {
    for (name, language) in [
        ("nginx.conf", "nginx"),
        ("Caddyfile", "caddy"),
        ("haproxy.cfg", "haproxy"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("deploy")
            .join(name);
        let text = fs::read_to_string(path).expect(name);
        let block = format!("```{language}\n{text}```\n");
        hold("docs/deploy.md", name, &block);
    }
}

/// Compares what stands between the marks of `name` with `table`, or writes it there.
fn hold(file: &str, name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(&path).expect(file);
    let begin = format!("<!-- {name}: written by scripts/docs -->\n");
    let end = format!("<!-- end of {name} -->\n");
    let mark = |mark: &str| {
        text.find(mark)
            .unwrap_or_else(|| panic!("{file} has no line {mark}"))
    };
    let (from, to) = (mark(&begin) + begin.len(), mark(&end));
    if std::env::var_os(WRITE).is_some() {
        let written = [&text[..from], table, &text[to..]].concat();
        fs::write(&path, written).expect(file);
        return;
    }
    assert!(
        &text[from..to] == table,
        "{file}: {name} is not that of the code; scripts/docs writes it"
    );
}
