//! Half of each folder's pictures is for finding constants, and the other half says whether they
//! are accepted.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::picture;

/// Which pictures of each folder are taken.
///
/// The rule is fixed: in the order of the names in their folder, the first, third, fifth, ... are
/// for tuning, the others for acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// On these, constants are found.
    Tuning,
    /// On these, what was found is judged. No constant may be chosen by them.
    Acceptance,
    /// Both.
    All,
}

impl Half {
    /// The files of this half. A file that was named by itself is in the half that its folder puts
    /// it in.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn of(self, files: Vec<PathBuf>) -> Result<Vec<PathBuf>, String> {
        let mut kept = Vec::with_capacity(files.len());
        for path in files {
            if self == Self::All || self == half(&path)? {
                kept.push(path);
            }
        }
        Ok(kept)
    }
}

impl FromStr for Half {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "tuning" => Ok(Self::Tuning),
            "acceptance" => Ok(Self::Acceptance),
            "all" => Ok(Self::All),
            _ => Err(format!(
                "no half is called {name:?}: tuning, acceptance, all"
            )),
        }
    }
}

fn half(path: &Path) -> Result<Half, String> {
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(format!("{}: no file", path.display())),
    };
    let beside = picture::find(&[folder.to_path_buf()], picture::STILL)?;
    let position = beside
        .iter()
        .position(|other| other.file_name() == path.file_name())
        .ok_or_else(|| format!("{}: no PNG or JPEG file of its folder", path.display()))?;
    Ok(if position % 2 == 0 {
        Half::Tuning
    } else {
        Half::Acceptance
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_picture_is_in_one_half_and_names_decide() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata"));
        let files = picture::find(&[folder.to_path_buf()], picture::STILL).expect("a folder");
        assert!(files.len() > 2, "{files:?}");
        let tuning = Half::Tuning.of(files.clone()).expect("files");
        let acceptance = Half::Acceptance.of(files.clone()).expect("files");
        assert_eq!(tuning, files.iter().step_by(2).cloned().collect::<Vec<_>>());
        assert_eq!(tuning.len() + acceptance.len(), files.len());
        let alone = vec![files[1].clone()];
        assert_eq!(Half::Acceptance.of(alone.clone()), Ok(alone.clone()));
        assert_eq!(Half::Tuning.of(alone), Ok(Vec::new()));
    }
}
