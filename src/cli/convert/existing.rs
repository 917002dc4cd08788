//! What `towebp convert` does if a regular file is where it should write.

use crate::cli::names::shown;
use crate::cli::output::IfCreated;
use std::path::Path;

/// What to do with a regular file at the place of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    /// Replace it.
    Replace,
    /// Replace it if its name ends in `.webp`; otherwise the picture fails.
    ReplaceWebp,
    /// Keep it, skip the picture, and say so.
    Skip,
    /// Keep it, and skip the picture in silence.
    SkipSilently,
}

/// What a file that exists means for its picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The picture is converted, and the file replaced.
    Replace,
    /// The picture is skipped.
    Skip {
        /// Whether a line says so.
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
            (false, _, true) => Ok(Existing::Skip),
            (false, true, false) => Ok(Existing::SkipSilently),
            (false, false, false) => Ok(Existing::ReplaceWebp),
        }
    }

    /// Decides about the picture whose output would replace `file`.
    ///
    /// # Errors
    /// A sentence for the user: the file must not be replaced, and the picture fails.
    pub(super) fn decide(self, file: &Path) -> Result<Decision, String> {
        let is_webp = file
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("webp"));
        match self {
            Existing::Skip => Ok(Decision::Skip { silently: false }),
            Existing::SkipSilently => Ok(Decision::Skip { silently: true }),
            Existing::ReplaceWebp if !is_webp => Err(format!(
                "{} exists, and its name does not end in .webp: give --force to replace it, or another -o",
                shown(file)
            )),
            Existing::Replace | Existing::ReplaceWebp => Ok(Decision::Replace),
        }
    }

    /// What to do with a file that is created while the picture is converted.
    pub(super) fn if_created(self) -> IfCreated {
        match self {
            Existing::Replace | Existing::ReplaceWebp => IfCreated::Replace,
            Existing::Skip | Existing::SkipSilently => IfCreated::Fail,
        }
    }
}
