//! The options of the encoder.

use crate::cancel::{Cancel, NEVER};
use crate::cpu::Simd;
use crate::threads::{CpuBudget, Workers};
use crate::vp8::Constants;

/// How much work goes into a file. The more, the fewer bytes at equal quality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effort {
    /// The quickest.
    Low,
    /// The default, which suits most uses.
    #[default]
    Medium,
    /// Several times the work of [`Effort::Medium`], for files that are sent often.
    High,
    /// Several times the work of [`Effort::High`], for files that are made once and sent for years.
    Max,
}

impl Effort {
    /// The constants of the lossy decisions that measured best at this effort.
    #[doc(hidden)]
    pub const fn constants(self) -> &'static Constants {
        match self {
            Effort::Low => &Constants::LOW,
            Effort::Medium => &Constants::DEFAULT,
            Effort::High => &Constants::HIGH,
            Effort::Max => &Constants::MAX,
        }
    }

    /// The names that [`Effort::parse`] accepts, for messages.
    pub const ALLOWED: &str = "low, medium, high or max";

    /// Reads an effort's exact name.
    pub fn parse(text: &str) -> Option<Effort> {
        match text {
            "low" => Some(Effort::Low),
            "medium" => Some(Effort::Medium),
            "high" => Some(Effort::High),
            "max" => Some(Effort::Max),
            _ => None,
        }
    }
}

/// Whether the file may differ from the pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Lossy, or lossless where that takes no more bytes. The colors of graphics may be reduced to
    /// a palette where that does not show.
    #[default]
    Auto,
    /// Lossy.
    Lossy,
    /// Lossless.
    Lossless,
}

impl Mode {
    /// The names that [`Mode::parse`] accepts, for messages.
    pub const ALLOWED: &str = "auto, lossy or lossless";

    /// Reads a mode's exact name.
    pub fn parse(text: &str) -> Option<Mode> {
        match text {
            "auto" => Some(Mode::Auto),
            "lossy" => Some(Mode::Lossy),
            "lossless" => Some(Mode::Lossless),
            _ => None,
        }
    }
}

/// How the pixels of a file are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Pixels may differ from the picture's: by lossy coding, or since its colors were reduced to a
    /// palette.
    Lossy,
    /// All of them lossless.
    Lossless,
    /// Some frames of an animation lossy, some lossless.
    Mixed,
}

impl Coding {
    /// The coding's name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Lossy => "lossy",
            Coding::Lossless => "lossless",
            Coding::Mixed => "mixed",
        }
    }
}

/// The choices of an [`Encoder`](crate::Encoder), which documents each.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Quality, 0 (smallest) to 100 (best); higher values count as 100.
    pub quality: u8,
    /// Whether pixels may change.
    pub mode: Mode,
    /// Quality of alpha beside lossy pixels, 0 to 100; higher values count as 100, which is exact.
    pub alpha_quality: u8,
    /// How close lossless pictures stay to the original, 0 to 100; higher values count as 100,
    /// which is exact.
    pub near_lossless: u8,
    /// Whether fully transparent pixels of lossless pictures keep their color.
    pub exact: bool,
    /// How much work goes into it.
    pub effort: Effort,
    /// The number of token partitions as a power of two, 0 to 3; chosen by the amount of data if
    /// `None`.
    pub log2_partitions: Option<u8>,
    /// Vector instructions to use. The file is the same with all of them.
    pub simd: Simd,
    /// The most threads that work on the picture, at least 1. The file is the same with any number.
    pub threads: usize,
    /// The budget that gives cores to all threads but the first; without one they start freely.
    pub cpu_budget: Option<&'a CpuBudget>,
    /// The flag by which the caller stops the work.
    pub cancel: &'a Cancel<'a>,
    /// The constants of the lossy decisions; the constants of the effort if `None`.
    pub(crate) constants: Option<&'a Constants>,
}

impl<'a> Options<'a> {
    /// Lossy coding at `quality` on one thread, and the defaults of everything else.
    pub fn lossy(quality: u8) -> Options<'a> {
        Options {
            quality,
            mode: Mode::Lossy,
            alpha_quality: 100,
            near_lossless: 100,
            exact: false,
            effort: Effort::default(),
            log2_partitions: None,
            simd: Simd::detect(),
            threads: 1,
            cpu_budget: None,
            cancel: &NEVER,
            constants: None,
        }
    }

    /// The threads that may work on the picture.
    pub(crate) fn workers(&self) -> Workers<'a> {
        Workers::new(self.threads, self.cpu_budget, self.cancel)
    }
}

/// The metadata chunks of a file (RFC 9649, section 2.7.1.5).
#[derive(Clone, Copy, Debug, Default)]
pub struct Metadata<'a> {
    /// The ICC profile of the colors; without one they are sRGB.
    pub icc: Option<&'a [u8]>,
    /// Exif, from its TIFF header on.
    pub exif: Option<&'a [u8]>,
    /// XMP, as UTF-8.
    pub xmp: Option<&'a [u8]>,
}

impl Metadata<'_> {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.icc.is_none() && self.exif.is_none() && self.xmp.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_exactly() {
        let efforts = ["low", "medium", "high", "max", "Low", " low", ""].map(Effort::parse);
        let expected = [Effort::Low, Effort::Medium, Effort::High, Effort::Max];
        assert_eq!(efforts[..4], expected.map(Some));
        assert_eq!(efforts[4..], [None; 3]);
        let modes = ["auto", "lossy", "lossless", "Auto", ""].map(Mode::parse);
        assert_eq!(
            modes[..3],
            [Mode::Auto, Mode::Lossy, Mode::Lossless].map(Some)
        );
        assert_eq!(modes[3..], [None; 2]);
        let names = [Coding::Lossy, Coding::Lossless, Coding::Mixed].map(Coding::name);
        assert_eq!(names, ["lossy", "lossless", "mixed"]);
    }
}
