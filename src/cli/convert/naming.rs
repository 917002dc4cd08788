//! `--name`: the names of the WebP files.

use crate::cli::suggest;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What may stand in braces.
const PLACEHOLDERS: [&str; 2] = ["stem", "ext"];

/// How a WebP is named after its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// `{stem}`: the input's name without its ending.
    Stem,
    /// `{ext}`: the ending.
    Ending,
}

impl Name {
    /// Parses a text such as `{stem}.{ext}.webp`.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(super) fn parse(text: &str) -> Result<Name, String> {
        let wrong = |reason: &str| {
            format!("--name {text:?}: {reason}; allowed is a name such as {{stem}}.{{ext}}.webp")
        };
        if text.is_empty() || text.contains('/') || text == "." || text == ".." {
            return Err(wrong("that is no name of a file"));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let (placeholder, after) = after
                .split_once('}')
                .ok_or_else(|| wrong("a brace is not closed"))?;
            parts.push(match placeholder {
                "stem" => Part::Stem,
                "ext" => Part::Ending,
                other => {
                    let meant = suggest::word(other, &PLACEHOLDERS);
                    return Err(wrong(&format!("{{{other}}} is unknown{meant}")));
                }
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Name(parts))
    }

    /// The name for the WebP of this input.
    pub(super) fn of(&self, input: &Path) -> OsString {
        let mut name = OsString::new();
        for part in &self.0 {
            name.push(match part {
                Part::Text(text) => OsStr::new(text),
                Part::Stem => input.file_stem().unwrap_or_default(),
                Part::Ending => input.extension().unwrap_or_default(),
            });
        }
        name
    }
}

/// The input's name with the ending `.webp`.
impl Default for Name {
    fn default() -> Name {
        Name(vec![Part::Stem, Part::Text(".webp".to_owned())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_the_inputs() {
        for (name, expected) in [
            ("{stem}.webp", "a.b.webp"),
            ("{stem}.{ext}.webp", "a.b.PNG.webp"),
            ("small-{stem}-{stem}", "small-a.b-a.b"),
            ("x}", "x}"),
        ] {
            let name = Name::parse(name).expect("valid");
            assert_eq!(name.of(Path::new("x/a.b.PNG")), *expected);
        }
        assert_eq!(Name::default().of(Path::new("x/a")), *"a.webp");
        for (wrong, reason) in [
            ("", "no name"),
            ("../{stem}", "no name"),
            ("{stem", "not closed"),
            ("{stm}.webp", "did you mean stem?"),
        ] {
            let error = Name::parse(wrong).expect_err(wrong);
            assert!(error.contains(reason), "{error}");
        }
    }
}
