//! Runs a plan.

use super::animation;
use super::error::ConversionError;
use super::growth::MayHold;
use super::outcome::{Conversion, FoundQuality, Timing};
use super::params::{IfLarger, Params};
use super::plan::{Path, Plan, Resources};
use super::still;
use crate::image::{self, Format, Keep, Limits};
use crate::watermark::Fonts;
use towebp_encoder::{Cancel, Coding, CpuBudget};

impl Plan<'_> {
    /// Converts the picture in [`Plan::most_memory`].
    ///
    /// # Errors
    /// See [`ConversionError`].
    pub fn run(&self, cancel: &Cancel<'_>) -> Result<Conversion, ConversionError> {
        self.run_within(cancel, &|_| true)
    }

    /// Converts the picture in [`Plan::memory`]. If its pixels call for more, or the file of an
    /// animation grows beyond the estimate, `may_hold` decides whether the conversion may.
    ///
    /// # Errors
    /// If it may not: [`ConversionError::Memory`], if a still picture has to be converted again
    /// with so many bytes, or [`ConversionError::GrowthDenied`]. See [`ConversionError`].
    pub fn run_within(
        &self,
        cancel: &Cancel<'_>,
        may_hold: &MayHold<'_>,
    ) -> Result<Conversion, ConversionError> {
        let mut conversion = match self.path {
            Path::Planes => still::in_planes(self, cancel, may_hold),
            Path::Rgb => still::by_way_of_rgb(self, cancel, may_hold, Timing::default()),
            Path::Animation(animation) => animation::convert(self, animation, cancel, may_hold),
        }?;
        if self.params.follows_source && conversion.found.is_none() {
            let is_lossless = conversion.coding == Coding::Lossless;
            conversion.found = Some(FoundQuality {
                quality: (!is_lossless).then_some(self.quality),
                score: None,
                encodings: 1,
            });
        }
        conversion.prefers_original =
            self.may_give_original() && conversion.webp.len() >= self.opened.bytes().len();
        Ok(conversion)
    }

    /// Whether the input may stand in for its WebP: a parameter allows it, or it is a WebP that
    /// nothing changes, and the request is not for the first frame of an animation.
    fn may_give_original(&self) -> bool {
        let is_first_frame = !matches!(self.path, Path::Animation(_))
            && self
                .opened
                .animation()
                .is_some_and(|animation| animation.is_animated());
        let is_allowed = self.params.if_larger == IfLarger::Original || self.keeps_a_webp();
        is_allowed && !is_first_frame
    }

    /// Whether the input is a WebP with all that its conversion would have, and nothing more.
    fn keeps_a_webp(&self) -> bool {
        self.opened.format() == Format::Webp
            && self.resize.is_none()
            && !self.is_watermarked()
            && self.params.background.is_none()
            && self.params.crop.is_none()
            && (self.params.metadata == Keep::ALL || self.opened.metadata_bytes() == 0)
    }
}

/// A conversion whose memory need not be known before it is done.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The file as it came.
    pub bytes: &'a [u8],
    /// The declared format of the file.
    pub format: Format,
    /// The parameters.
    pub params: &'a Params,
    /// The bytes of the watermark's picture (PNG or JPEG), if there is one.
    pub watermark_picture: Option<&'a [u8]>,
    /// The fonts that text watermarks are drawn with.
    pub fonts: &'a Fonts,
    /// The bounds that the picture is held to.
    pub limits: &'a Limits,
    /// The largest number of threads to encode with, at least 1. The file is the same with any
    /// number.
    pub threads: usize,
    /// The budget that gives cores to all threads but the first; without one they start freely.
    pub cpu_budget: Option<&'a CpuBudget>,
    /// The means to stop the conversion.
    pub cancel: &'a Cancel<'a>,
}

/// Opens, plans and runs a conversion in one call.
///
/// # Errors
/// See [`ConversionError`].
pub fn run(job: &Job<'_>) -> Result<Conversion, ConversionError> {
    planned(job, |plan| plan.run(job.cancel))?
}

/// The memory that [`run`] takes: [`Plan::most_memory`].
///
/// # Errors
/// See [`ConversionError`]; nothing is decoded.
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method's path is not general enough over the plan's lifetime"
)]
pub fn memory(job: &Job<'_>) -> Result<u64, ConversionError> {
    planned(job, |plan| plan.most_memory())
}

fn planned<T>(job: &Job<'_>, then: impl FnOnce(&Plan<'_>) -> T) -> Result<T, ConversionError> {
    let opened = image::open(job.bytes, job.format, job.limits)?;
    let resources = Resources {
        fonts: job.fonts,
        threads: job.threads,
        cpu_budget: job.cpu_budget,
    };
    let plan = Plan::new(&opened, job.params, job.watermark_picture, resources)?;
    Ok(then(&plan))
}
