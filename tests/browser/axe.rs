//! axe-core, which looks in a page for what people with assistive technology stumble over.
//!
//! `.ci/run` puts it into `target/axe-core/`; `TOWEBP_AXE` names another file.

use crate::page::Browser;
use crate::support::skip::skipped;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Runs it on the page, and makes a line of each element that it complains about.
const RUN: &str = "
const { violations } = await axe.run(document, { resultTypes: ['violations'] });
return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, any }) => `${id}: ${help}: ${html.slice(0, 200)} ${any[0]?.message ?? ''}`));";

/// Its text; `None` where it is not.
pub fn script() -> Option<&'static str> {
    static SCRIPT: OnceLock<Option<String>> = OnceLock::new();
    let script = SCRIPT.get_or_init(|| {
        let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/axe-core/axe.min.js");
        let file = std::env::var_os("TOWEBP_AXE").map_or(installed, PathBuf::from);
        let text = fs::read_to_string(file).ok();
        if text.is_none() {
            skipped("axe-core is not installed, so nothing looked at accessibility (scripts/install-tools)");
        }
        text
    });
    script.as_deref()
}

/// What it complains about on the page that is shown; nothing where it is not installed.
#[track_caller]
pub fn complaints(browser: &Browser) -> Vec<String> {
    let Some(script) = script() else {
        return Vec::new();
    };
    if browser.run("return typeof axe", &[]) == "undefined" {
        browser.run(script, &[]);
    }
    let found = browser.run_async(RUN, &[]);
    let found = found.as_array().expect("a list").iter();
    found
        .map(|line| line.as_str().expect("a text").to_owned())
        .collect()
}
