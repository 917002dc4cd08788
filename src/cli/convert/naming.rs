//! `--name`: the names of the WebP files.

use crate::cli::suggest;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The names in braces.
const PLACEHOLDERS: [&str; 3] = ["stem", "ext", "dir"];

/// How a WebP is named after its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// `{stem}`: the input's name without its ending.
    Stem,
    /// `{ext}`: the ending. Without one, a point before it goes, too.
    Ending,
    /// `{dir}`: the input's folder, as it was given but below the folder of `--output`.
    Folder,
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
        let (folder, file) = text.rsplit_once('/').unwrap_or(("{dir}", text));
        let is_name = !["", ".", ".."].contains(&file) && file != "{dir}";
        let is_below = !folder.starts_with('/') && !folder.split('/').any(|part| part == "..");
        if !is_name || !is_below || !folder.contains("{dir}") {
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
                "dir" => Part::Folder,
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

    /// Whether it has the input's folder.
    pub(super) fn has_folder(&self) -> bool {
        self.0.contains(&Part::Folder)
    }

    /// The name for the WebP of this input, with folders if it has that of the input.
    pub(super) fn of(&self, input: &Path) -> PathBuf {
        let mut name = OsString::new();
        for part in &self.0 {
            match (part, input.extension()) {
                (Part::Text(text), _) => name.push(text),
                (Part::Stem, _) => name.push(input.file_stem().unwrap_or_default()),
                (Part::Ending, Some(ending)) => name.push(ending),
                (Part::Ending, None) => {
                    let bytes = name.as_bytes();
                    name = OsStr::from_bytes(bytes.strip_suffix(b".").unwrap_or(bytes)).to_owned();
                }
                (Part::Folder, _) => name.push(below(input)),
            }
        }
        // An input of the present folder has none.
        let bytes = name.as_bytes();
        PathBuf::from(OsStr::from_bytes(bytes.strip_prefix(b"/").unwrap_or(bytes)))
    }
}

/// The folder of an input without what leads out of another one.
fn below(input: &Path) -> PathBuf {
    let folder = input.parent().unwrap_or(Path::new(""));
    let names = folder.components();
    names
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect()
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
            assert_eq!(name.of(Path::new("x/a.b.PNG")), Path::new(expected));
        }
        assert_eq!(Name::default().of(Path::new("x/a")), Path::new("a.webp"));
        let both = Name::parse("{stem}.{ext}.webp").expect("valid");
        assert_eq!(both.of(Path::new("x/a")), Path::new("a.webp"));
        let folders = Name::parse("{dir}/{stem}.webp").expect("valid");
        for (input, expected) in [
            ("x/a.png", "x/a.webp"),
            ("a.png", "a.webp"),
            ("./a.png", "a.webp"),
            ("../x/a.png", "x/a.webp"),
            ("/x/y/a.png", "x/y/a.webp"),
        ] {
            assert_eq!(folders.of(Path::new(input)), Path::new(expected));
        }
        for (wrong, reason) in [
            ("", "no name"),
            ("../{stem}", "no name"),
            ("x/{stem}", "no name"),
            ("{dir}/../{stem}", "no name"),
            ("/{dir}/{stem}", "no name"),
            ("{dir}", "no name"),
            ("{dir}/", "no name"),
            ("{stem", "not closed"),
            ("{stm}.webp", "did you mean stem?"),
        ] {
            let error = Name::parse(wrong).expect_err(wrong);
            assert!(error.contains(reason), "{error}");
        }
    }
}
