//! The time that a conversion takes, estimated before anything is decoded.

use super::goal::Goal;
use super::plan::{Path, Plan, SMALL_PIXELS};
use crate::image::Footprint;
use towebp_encoder::{Effort, Mode};

/// The most bytes of a text on a small picture: each takes up to 60 microseconds, where scripts
/// alternate.
const SMALL_TEXT: usize = 200;

/// Seconds for a pixel that is decoded or resized.
const DECODING: f64 = 15e-9;

/// Seconds for a pixel that is encoded with loss at medium effort.
const ENCODING: f64 = 60e-9;

/// Seconds for a byte of a text.
const TEXT: f64 = 60e-6;

/// Encodings of a search for a size, and of one for a score, each of which is decoded and scored.
const SEARCH: [f64; 2] = [6.0, 15.0];

impl Plan<'_> {
    /// Whether the conversion is a matter of milliseconds, so that it should not wait for others: a
    /// still picture of up to [`SMALL_PIXELS`] with no long text, and with watermarks of pictures
    /// as small.
    pub fn is_small(&self) -> bool {
        let is_small = |footprint: &Footprint| footprint.pixel_count() <= SMALL_PIXELS;
        let mark = self.watermark_picture.as_ref();
        let text = self.params.text.as_ref();
        !matches!(self.path, Path::Animation(_))
            && self.params.goal.is_none()
            && is_small(&self.footprint)
            && is_small(&self.output)
            && mark.is_none_or(|mark| is_small(mark.footprint()))
            && text.is_none_or(|text| text.text.len() <= SMALL_TEXT)
    }

    /// Seconds on one core, within a factor of three or so. Of an animation it is the time of one
    /// frame for each of its 10 KB.
    pub fn seconds(&self) -> f64 {
        let effort = match self.params.effort {
            Effort::Low => 0.6,
            Effort::Medium => 1.0,
            Effort::High => 3.0,
            Effort::Max => 8.0,
        };
        let mode = match self.mode {
            Mode::Lossy => 1.0,
            Mode::Auto => 2.0,
            Mode::Lossless => 4.0,
        };
        let encodings = match self.params.goal {
            None => 1.0,
            Some(Goal::MaxBytes { .. }) => SEARCH[0],
            Some(Goal::Score(_)) => SEARCH[1],
        };
        let frames = match self.path {
            Path::Animation(_) => (self.opened.bytes().len() as f64 / 10e3).max(2.0),
            Path::Planes | Path::Rgb => 1.0,
        };
        let mark = self.watermark_picture.as_ref();
        let mark = mark.map_or(0, |mark| mark.footprint().pixel_count());
        let text = self.params.text.as_ref().map_or(0, |text| text.text.len());
        let (source, output) = (self.footprint.pixel_count(), self.output.pixel_count());
        let frame = (source + output) as f64 * DECODING
            + output as f64 * ENCODING * effort * mode * encodings;
        frames * frame + mark as f64 * DECODING + text as f64 * TEXT
    }

    /// The width and height of a picture that is enlarged, if the steps after it take many times as
    /// long as an encoding: a search, or the highest effort. A request of a few bytes can cause it.
    pub fn laborious_enlargement(&self) -> Option<(u32, u32)> {
        let is_laborious = self.params.goal.is_some() || self.params.effort == Effort::Max;
        let is_enlarged = self.output.pixel_count() > self.footprint.pixel_count();
        let Footprint { width, height, .. } = self.output;
        (is_laborious && is_enlarged).then_some((width, height))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Params, Resources};
    use super::*;
    use crate::image::{self, Format, Limits};
    use crate::watermark::Fonts;

    /// A BMP of one pixel.
    const PIXEL: &[u8] = b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\
        \x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \xff\x00\x00\0";

    /// Whether it is small, its seconds, and its size if it is a laborious enlargement.
    fn estimate(parameters: &[(&str, &str)]) -> (bool, f64, Option<(u32, u32)>) {
        let params = Params::parse(parameters.iter().copied()).expect("they are allowed");
        let opened = image::open(PIXEL, Format::Bmp, &Limits::default()).expect("it is good");
        let resources = Resources {
            fonts: Fonts::bundled(),
            threads: 1,
            cpu_budget: None,
        };
        let plan = Plan::new(&opened, &params, None, resources).expect("it is within the limits");
        (
            plan.is_small(),
            plan.seconds(),
            plan.laborious_enlargement(),
        )
    }

    #[test]
    fn a_long_text_is_no_small_conversion() {
        assert!(estimate(&[]).0 && estimate(&[("watermark", "\u{a9} 2026 somebody")]).0);
        let long = "a\u{915}".repeat(4096);
        let (is_small, seconds, _) = estimate(&[("watermark", &long)]);
        assert!(!is_small && (0.5..5.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn what_takes_longer_is_estimated_higher() {
        let large = [
            ("width", "3000"),
            ("height", "2000"),
            ("fit", "fill"),
            ("enlarge", "true"),
            ("mode", "lossy"),
        ];
        let rows: [&[(&str, &str)]; 5] = [
            &[("effort", "low")],
            &[],
            &[("effort", "max")],
            &[("target", "60")],
            &[("target", "60"), ("effort", "max")],
        ];
        let estimates = rows.map(|more| estimate(&[&large[..], more].concat()));
        assert!(estimates.is_sorted_by(|a, b| a.1 < b.1), "{estimates:?}");
        let laborious = estimates.map(|(_, _, size)| size.is_some());
        assert_eq!(laborious, [false, false, true, true, true]);
        assert_eq!(estimates[2].2, Some((3000, 2000)));
    }
}
