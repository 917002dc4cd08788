//! Tests that need a program that is not installed: they report that they are skipped.

use std::fs::OpenOptions;
use std::io::{self, Write};

/// Reports that a test was skipped. Where nothing may be skipped (`TOWEBP_SKIP_NOTHING` or `CI`
/// is set) it fails instead.
#[track_caller]
pub fn skipped(what: &str) {
    report(what);
    for name in ["TOWEBP_SKIP_NOTHING", "CI"] {
        let is_set = std::env::var_os(name).is_some_and(|value| !value.is_empty());
        assert!(!is_set, "{name} is set, and {what}");
    }
}

/// Reports that an optional test was skipped, which may happen everywhere.
///
/// The line goes to standard error past the test runner, which shows no output of tests that pass,
/// and is added to the file that `TOWEBP_TEST_SKIPPED` names, from which `scripts/test` makes its
/// last lines.
pub fn report(what: &str) {
    writeln!(io::stderr(), "!!! SKIPPED: {what}").ok();
    if let Some(path) = std::env::var_os("TOWEBP_TEST_SKIPPED") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(format!("{what}\n").as_bytes()))
            .expect("the file that TOWEBP_TEST_SKIPPED names can be written");
    }
}

/// Whether this command succeeds.
pub fn succeeds(probe: &[&str]) -> bool {
    let mut command = std::process::Command::new(probe[0]);
    let output = command.args(&probe[1..]).output();
    output.is_ok_and(|output| output.status.success())
}
