//! Copies the files of the product that share memory between threads, and names shuttle's locks,
//! atomics, channels and threads in them in place of the standard library's, and a clock that the
//! schedule drives. Nothing else is changed but what
//! may be seen from where.

use std::path::Path;
use std::{env, fs};

/// The files, from the root of the repository.
const FILES: [&str; 16] = [
    "encoder/src/cancel.rs",
    "encoder/src/error.rs",
    "encoder/src/threads.rs",
    "encoder/src/threads/budget.rs",
    "src/admission/account_shares.rs",
    "src/admission/fair_queue.rs",
    "src/admission/memory_budget/mod.rs",
    "src/fetch/cache.rs",
    "src/fetch/download_budget.rs",
    "src/fetch/error.rs",
    "src/fetch/settings.rs",
    "src/fetch/single_flight.rs",
    "src/front/workers.rs",
    "src/store/availability.rs",
    "src/store/monotonic.rs",
    "src/store/writer.rs",
];

/// Paths, and those that take their places.
const REPLACED: [(&str, &str); 6] = [
    ("std::sync", "crate::instrumented::sync"),
    ("std::thread", "crate::instrumented::thread"),
    ("std::time", "crate::instrumented::time"),
    ("ureq::http", "http"),
    ("pub(super)", "pub(crate)"),
    // The heads of files stand in modules that have their own.
    ("//!", "//"),
];

fn main() {
    let out = env::var("OUT_DIR").expect("Cargo sets it");
    for file in FILES {
        let from = Path::new("../..").join(file);
        println!("cargo::rerun-if-changed={}", from.display());
        let text = fs::read_to_string(&from).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut text = REPLACED
            .iter()
            .fold(text, |text, (old, new)| text.replace(old, new));
        // The file's own module stands beside it here.
        text = text.replace("\nmod budget;\n", "\nuse super::budget;\n");
        let to = Path::new(&out).join(file);
        fs::create_dir_all(to.parent().expect("a file has a folder")).expect("OUT_DIR is writable");
        fs::write(to, text).expect("OUT_DIR is writable");
    }
}
