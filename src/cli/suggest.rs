//! "Did you mean ...?": flags, commands and values that are similar to a typed one.

use crate::http::nearest;

/// The end of a sentence about an unknown word: `; did you mean convert?`, or nothing.
pub(super) fn word(word: &str, known: &[&str]) -> String {
    let meant = near(word, known);
    meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"))
}

/// The known name that is similar, or the only one with this beginning.
pub(super) fn near<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let begun = || {
        let mut longer = known.iter().filter(|known| known.starts_with(name));
        let only = longer.next().filter(|_| longer.next().is_none());
        only.filter(|_| name.len() > 1).copied()
    };
    nearest(name, known).or_else(begun)
}
