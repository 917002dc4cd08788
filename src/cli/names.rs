//! Names of files as people and programs read them: any bytes are a name.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The name for people: control characters and bytes that are not UTF-8 are escaped as `\n` and
/// `\xE9`.
pub(super) fn shown(path: &Path) -> String {
    let mut shown = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            push(&mut shown, c, false);
        }
        for byte in chunk.invalid() {
            write!(shown, "\\x{byte:02X}").expect("a String takes everything");
        }
    }
    shown
}

/// The text with its control characters escaped, but for ends of lines and tabs.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut escaped, c, true);
    }
    escaped
}

fn push(text: &mut String, c: char, is_text: bool) {
    // Unicode does not count those that change the direction of the text as control characters.
    let turns =
        matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    if (c.is_control() || turns) && !(is_text && matches!(c, '\n' | '\t')) {
        text.extend(c.escape_default());
    } else {
        text.push(c);
    }
}

/// The bytes of a name that is not UTF-8, for programs: those that are not, and the percent sign,
/// as `%E9`.
pub(super) fn percent_encoded(name: &OsStr) -> Option<String> {
    if name.to_str().is_some() {
        return None;
    }
    let mut encoded = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        encoded.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            write!(encoded, "%{byte:02X}").expect("a String takes everything");
        }
    }
    Some(encoded)
}
