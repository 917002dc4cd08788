//! Names of parameters that are near to a known one, or that other services have for it, for a
//! header with a suggestion.
//!
//! Unknown parameters are ignored, so that clients may send more than this version knows. A
//! mistyped one would then be ignored without a word: the response, be it a success or an error,
//! names it and the one that was probably meant. It never repeats a value, which may be a token.

/// Most names in the header.
const MAX_SUGGESTIONS: usize = 3;

/// How many parameters are compared. The comparison runs on the event loop, and a head may hold
/// thousands.
const MAX_COMPARED: usize = 64;

/// Longer names, in bytes, are near to none.
const MAX_NAME_LENGTH: usize = 32;

/// Names in URLs of other services (Cloudflare, Cloudinary, imgix, imgproxy)
/// and in the options of cwebp, and the parameter that does the same here.
const FOREIGN: [(&str, &str); 21] = [
    ("w", "width"),
    ("h", "height"),
    ("q", "quality"),
    ("c", "fit"),
    ("resize", "width"),
    ("g", "gravity"),
    ("upscale", "enlarge"),
    ("m", "effort"),
    ("method", "effort"),
    ("speed", "effort"),
    ("mb", "max_bytes"),
    ("maxsize", "max_bytes"),
    ("strip", "metadata"),
    ("anim", "animation"),
    ("txt", "watermark"),
    ("text", "watermark"),
    ("mark", "watermark_image"),
    ("logo", "watermark_image"),
    ("key", "token"),
    ("apikey", "token"),
    ("accesstoken", "token"),
];

/// Names by which other services choose the format of the answer. On a path with `quality`,
/// nothing does.
const FORMATS: [&str; 7] = ["f", "fm", "format", "output", "type", "ext", "to"];

/// The value of `X-Towebp-Warning` for the parameters `names` of a path that knows the parameters
/// `known`, in printable ASCII; `None` without a suggestion.
pub fn warning(names: impl Iterator<Item = String>, known: &[&str]) -> Option<String> {
    if known.is_empty() {
        return None;
    }
    let mut named: Vec<String> = Vec::new();
    let mut sentences = Vec::new();
    for name in names.take(MAX_COMPARED) {
        if sentences.len() == MAX_SUGGESTIONS
            || known.contains(&name.as_str())
            || named.contains(&name)
        {
            continue;
        }
        let hint = if known.contains(&"quality") && FORMATS.contains(&fold(&name).as_str()) {
            ": the answer is always WebP.".to_owned()
        } else if let Some(meant) = foreign(&name, known).or_else(|| nearest(&name, known)) {
            format!(", did you mean \"{meant}\"?")
        } else {
            continue;
        };
        let shown = name.chars().map(|c| if is_plain(c) { c } else { '?' });
        let shown: String = shown.collect();
        sentences.push(format!("unknown parameter \"{shown}\"{hint}"));
        named.push(name);
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// The known name of another service's parameter.
fn foreign(name: &str, known: &[&str]) -> Option<&'static str> {
    let folded = fold(name);
    let row = FOREIGN.iter().find(|(foreign, _)| *foreign == folded)?;
    known.contains(&row.1).then_some(row.1)
}

/// A name without differences in the case of letters and in hyphens.
fn fold(name: &str) -> String {
    name.to_ascii_lowercase().replace(['-', '_'], "")
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.".contains(c)
}

/// The known name that was probably meant: one that differs in the case of letters and in hyphens
/// only, or is the same without `watermark_`; else the one with the fewest edits, at most one for
/// names of up to 5 bytes and two for longer ones.
pub fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if name.len() > MAX_NAME_LENGTH {
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
    let most_edits = |known: &str| if known.len() <= 5 { 1 } else { 2 };
    let near = known
        .iter()
        .filter(|known| known.len().abs_diff(folded.len()) <= 4)
        .map(|known| (edits(folded.as_bytes(), fold(known).as_bytes()), *known))
        .filter(|(edits, known)| *edits <= most_edits(known));
    near.min_by_key(|(edits, _)| *edits).map(|(_, known)| known)
}

/// The optimal string alignment distance: how many bytes have to be added, left out, replaced or
/// swapped with the next one to turn one text into the other.
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
    use towebp_pipeline::conversion::PARAMETERS;

    const KNOWN: [&str; 13] = [
        "token",
        "quality",
        "width",
        "height",
        "fit",
        "effort",
        "mode",
        "lossless",
        "watermark",
        "watermark_color",
        "watermark_position",
        "watermark_opacity",
        "download",
    ];

    fn warned(names: &[&str]) -> Option<String> {
        warning(names.iter().map(|name| (*name).to_owned()), &KNOWN)
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
            assert_eq!(warned(&[given]), Some(expected), "{given}");
        }
        for other in [
            "",
            // Of a parameter that the path does not have.
            "strip",
            "mb",
            "v",
            "utm_source",
            "cache",
            "_",
            "x-id",
            "modern",
        ] {
            assert_eq!(warned(&[other]), None, "{other}");
        }
        for known in KNOWN {
            assert_eq!(warned(&[known]), None, "{known}");
        }
    }

    #[test]
    fn names_of_other_services_are_told_ours() {
        for (given, meant) in [
            ("w", "width"),
            ("W", "width"),
            ("h", "height"),
            ("q", "quality"),
            ("api_key", "token"),
            ("text", "watermark"),
        ] {
            let expected = format!("unknown parameter \"{given}\", did you mean \"{meant}\"?");
            assert_eq!(warned(&[given]), Some(expected), "{given}");
        }
        let expected = "unknown parameter \"format\": the answer is always WebP.";
        assert_eq!(warned(&["format"]).as_deref(), Some(expected));
        // Where there is no picture in the answer, nothing is said of its format.
        let names = ["f", "output"].map(str::to_owned);
        assert_eq!(warning(names.into_iter(), &["token", "limit"]), None);
    }

    /// Each means a parameter that conversions have, and is none itself.
    #[test]
    fn names_of_other_services_lead_somewhere() {
        let known: Vec<&str> = PARAMETERS.iter().map(|row| row.name).collect();
        for (foreign, meant) in FOREIGN {
            assert!(known.contains(&meant), "{meant}");
            assert!(!known.contains(&foreign), "{foreign}");
            assert_eq!(fold(foreign), foreign);
        }
        for format in FORMATS {
            assert!(!known.contains(&format), "{format}");
        }
    }

    #[test]
    fn the_header_is_short_and_plain() {
        let text = warned(&["quali\r\nty", "qual\u{e9}ty"]).expect("near");
        assert!(
            text.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
            "{text}"
        );
        let many = ["qualty1", "qualty2", "qualty3", "qualty4", "qualty5"].repeat(1000);
        let text = warned(&many).expect("near");
        let sentences = text.matches("did you mean").count();
        assert_eq!(sentences, MAX_SUGGESTIONS, "{text}");
        assert!(text.len() < 300, "{text}");
        assert_eq!(warned(&["quality".repeat(1000).as_str()]), None);
        let twice = warned(&["qualty", "qualty"]).expect("near");
        assert_eq!(twice.matches("did you mean").count(), 1, "{twice}");
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
