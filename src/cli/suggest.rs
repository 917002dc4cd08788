//! "Did you mean ...?": flags, commands and values that are near to what was typed.

use crate::http::nearest;

/// The end of a sentence about an unknown flag: `; did you mean --quality?`, or nothing.
pub fn flag(name: &str, known: &[&str]) -> String {
    // As the parameters of the service are named, which `nearest` knows.
    let plain = |flag: &str| flag.trim_start_matches('-').replace('-', "_");
    let names: Vec<String> = known.iter().map(|flag| plain(flag)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match near(&plain(name), &names) {
        Some(meant) => format!("; did you mean --{}?", meant.replace('_', "-")),
        None => String::new(),
    }
}

/// The end of a sentence about an unknown word: `; did you mean convert?`, or nothing.
pub fn word(word: &str, known: &[&str]) -> String {
    match near(word, known) {
        Some(meant) => format!("; did you mean {meant}?"),
        None => String::new(),
    }
}

/// The known name that is near, or the only one that begins like this.
fn near<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let begun = || {
        let mut longer = known.iter().filter(|known| known.starts_with(name));
        let only = longer.next().filter(|_| longer.next().is_none());
        only.filter(|_| name.len() > 1).copied()
    };
    nearest(name, known).or_else(begun)
}
