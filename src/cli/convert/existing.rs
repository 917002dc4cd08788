//! The rule of `towebp convert` for a regular file at the path of an output.

use super::report::Outcome;
use super::tasks::Target;
use crate::cli::names::shown;
use std::path::Path;

/// The rule for a regular file at the path of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    /// Replace it.
    Replace,
    /// Replace it if its name ends in `.webp`; otherwise the picture fails.
    ReplaceWebp,
    /// Keep it, and skip the picture.
    Skip {
        /// Whether no line reports the picture.
        silently: bool,
    },
}

impl Existing {
    /// Chooses by the three flags of the command line.
    ///
    /// # Errors
    /// A sentence for the user: the flags contradict each other.
    pub(super) fn new(
        force: bool,
        no_clobber: bool,
        skip_existing: bool,
    ) -> Result<Existing, String> {
        match (force, no_clobber, skip_existing) {
            (true, false, false) => Ok(Existing::Replace),
            (true, ..) => Err(
                "--force replaces files and --no-clobber and --skip-existing keep them: \
                 give only one of these"
                    .to_owned(),
            ),
            (false, _, true) => Ok(Existing::Skip { silently: false }),
            (false, true, false) => Ok(Existing::Skip { silently: true }),
            (false, false, false) => Ok(Existing::ReplaceWebp),
        }
    }

    /// The outcome of a picture whose output would replace `file`; `None` if the picture is
    /// converted and the file replaced.
    ///
    /// # Errors
    /// A sentence for the user: the file must not be replaced, and the picture fails.
    pub(super) fn outcome(self, file: &Path, target: &Target) -> Result<Option<Outcome>, String> {
        let is_webp = file
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("webp"));
        match self {
            Existing::Skip { silently } => Ok(Some(Outcome::Skipped {
                reason: format!("{target} exists"),
                silently,
            })),
            Existing::ReplaceWebp if !is_webp => Err(format!(
                "{} exists, and its name does not end in .webp: give --force to replace it, or another -o",
                shown(file)
            )),
            Existing::Replace | Existing::ReplaceWebp => Ok(None),
        }
    }

    /// Whether a file that is created while the picture is converted is replaced.
    pub(super) fn replaces(self) -> bool {
        !matches!(self, Existing::Skip { .. })
    }
}
