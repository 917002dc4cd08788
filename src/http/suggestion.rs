//! Names of parameters that are near to a known one, for a header that says so.
//!
//! Unknown parameters are ignored, so that clients may send more than this version knows. A mistyped one would then be
//! ignored without a word: the answer, be it a success or an error, names it and the one that was probably meant. It
//! never repeats a value, which may be a token.

use super::request::Request;
use crate::conversion::KNOWN_NAMES;

/// Most names in the header.
const MOST: usize = 3;

/// Parameters that are looked at. The comparison runs on the event loop, and a head may hold thousands.
const LOOKED_AT: usize = 64;

/// Longer names are near to none.
const LONGEST: usize = 32;

/// What `X-Towebp-Warning` says of this request, in printable ASCII; `None` if there is nothing to say.
pub fn warning(request: &Request) -> Option<String> {
    let known = |candidate: &&str| match request.path.as_str() {
        "/convert" => *candidate != "before" && *candidate != "limit",
        "/api/usage" => ["token", "before", "limit"].contains(candidate),
        "/api/usage.csv" => *candidate == "token",
        _ => false,
    };
    let known: Vec<&str> = KNOWN_NAMES
        .into_iter()
        .chain(["download", "before", "limit"])
        .filter(known)
        .collect();
    let mut said: Vec<&str> = Vec::new();
    let mut sentences = Vec::new();
    for (name, _) in request.query.iter().take(LOOKED_AT) {
        if sentences.len() == MOST
            || known.contains(&name.as_str())
            || said.contains(&name.as_str())
        {
            continue;
        }
        if let Some(meant) = nearest(name, &known) {
            said.push(name);
            let shown = name.chars().map(|c| if is_plain(c) { c } else { '?' });
            let shown: String = shown.collect();
            sentences.push(format!(
                "unknown parameter \"{shown}\", did you mean \"{meant}\"?"
            ));
        }
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.".contains(c)
}

/// The known name that was probably meant: the same but for letters' case and hyphens, or without `watermark_`, or the
/// one with the fewest edits, of which short names bear one and longer ones two.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let fold = |text: &str| text.to_ascii_lowercase().replace(['-', '_'], "");
    if name.len() > LONGEST {
        return None;
    }
    let folded = fold(name);
    let same = |known: &&&str| {
        let short = known.strip_prefix("watermark_");
        fold(known) == folded || short.is_some_and(|short| fold(short) == folded)
    };
    if let Some(known) = known.iter().find(same) {
        return Some(known);
    }
    let borne = |known: &str| if known.len() <= 5 { 1 } else { 2 };
    let near = known
        .iter()
        .filter(|known| known.len().abs_diff(folded.len()) <= 4)
        .map(|known| (edits(folded.as_bytes(), fold(known).as_bytes()), *known))
        .filter(|(edits, known)| *edits <= borne(known));
    near.min_by_key(|(edits, _)| *edits).map(|(_, known)| known)
}

/// How many bytes have to be added, left out, replaced or swapped with the next one to come from one text to the other
/// (the optimal string alignment distance).
fn edits(from: &[u8], to: &[u8]) -> usize {
    let mut before_last = vec![0; to.len() + 1];
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (i, &a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &b) in to.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            let mut fewest = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == to[j - 1] && from[i - 1] == b {
                fewest = fewest.min(before_last[j - 1] + 1);
            }
            row.push(fewest);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn said(target: &str) -> Option<String> {
        let client = Ipv4Addr::LOCALHOST.into();
        warning(&Request::new("POST", target, client, std::iter::empty()))
    }

    #[test]
    fn mistyped_names_are_told_what_was_meant() {
        for (given, meant) in [
            ("qualty", "quality"),
            ("quailty", "quality"),
            ("Quality", "quality"),
            ("qualiti", "quality"),
            ("tokn", "token"),
            ("efort", "effort"),
            ("mod", "mode"),
            ("loseless", "lossless"),
            ("watermark-color", "watermark_color"),
            ("watermarkColor", "watermark_color"),
            ("watermark_colour", "watermark_color"),
            ("watermrk", "watermark"),
            ("waterark_opacty", "watermark_opacity"),
            ("position", "watermark_position"),
            ("downlod", "download"),
        ] {
            let expected = format!("unknown parameter \"{given}\", did you mean \"{meant}\"?");
            assert_eq!(
                said(&format!("/convert?{given}=1")),
                Some(expected),
                "{given}"
            );
        }
        for other in [
            "",
            "width",
            "q",
            "v",
            "utm_source",
            "cache",
            "_",
            "x-id",
            "modern",
        ] {
            assert_eq!(said(&format!("/convert?{other}=1")), None, "{other}");
        }
        for known in KNOWN_NAMES.into_iter().chain(["download"]) {
            assert_eq!(said(&format!("/convert?{known}=1")), None, "{known}");
        }
    }

    #[test]
    fn values_are_not_repeated_and_the_header_is_short_and_plain() {
        let text = said("/convert?tokn=twp_secret&quali%0d%0aty=1&qual\u{e9}ty=2").expect("near");
        assert!(!text.contains("secret"), "{text}");
        assert!(
            text.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
            "{text}"
        );
        let many = "&qualty1=1&qualty2=1&qualty3=1&qualty4=1&qualty5=1".repeat(1000);
        let text = said(&format!("/convert?a=b{many}")).expect("near");
        assert_eq!(text.matches("did you mean").count(), MOST, "{text}");
        assert!(text.len() < 300, "{text}");
        assert_eq!(
            said(&format!("/convert?{}=1", "quality".repeat(1000))),
            None
        );
        let twice = said("/convert?qualty=1&qualty=2").expect("near");
        assert_eq!(twice.matches("did you mean").count(), 1, "{twice}");
    }

    #[test]
    fn each_path_has_its_own_parameters() {
        let limit = "unknown parameter \"limt\", did you mean \"limit\"?";
        assert_eq!(said("/api/usage?limt=1").as_deref(), Some(limit));
        assert_eq!(said("/api/usage?qualty=1"), None);
        assert_eq!(said("/convert?limt=1"), None);
        assert_eq!(said("/dashboard?tokn=1"), None);
    }

    #[test]
    fn edits_are_counted() {
        for (from, to, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("ab", "ba", 1),
            ("abc", "ca", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(
                edits(from.as_bytes(), to.as_bytes()),
                expected,
                "{from} {to}"
            );
        }
    }
}
