//! The decisions of a conversion, made once, before anything is decoded.

use super::error::ConversionError;
use super::framing::check_crop;
use super::goal::Goal;
use super::params::{self, Params};
use super::source_quality;
use crate::image::{
    self, Animation, DecodeError, Footprint, Format, Keep, Layout, Limits, Opened, Resize,
};
use crate::watermark::Fonts;
use towebp_encoder::{Cancel, ColorType, CpuBudget, Encoder, Mode, Workers};

/// The most pixels of a small picture ([`Plan::is_small`]): 512 x 512, some 10 ms as a JPEG.
pub(super) const SMALL_PIXELS: u64 = 1 << 18;

/// The resources of a conversion, beside the picture and the parameters.
#[derive(Clone, Copy, Debug)]
pub struct Resources<'a> {
    /// The fonts that text watermarks are drawn with.
    pub fonts: &'a Fonts,
    /// The largest number of threads to work with, at least 1. The file is the same with any
    /// number.
    pub threads: usize,
    /// The budget that gives cores to all threads but the first; without one they start freely.
    pub cpu_budget: Option<&'a CpuBudget>,
}

/// The plan of one conversion: every decision that the header and the parameters allow.
#[derive(Debug)]
pub struct Plan<'a> {
    pub(super) opened: &'a Opened<'a>,
    pub(super) params: &'a Params,
    pub(super) resources: Resources<'a>,
    /// The picture that is drawn as a watermark.
    pub(super) watermark_picture: Option<Opened<'a>>,
    /// The path of the samples from the file to the encoder.
    pub(super) path: Path<'a>,
    /// The memory that decoding takes on the path by way of RGB, or of all frames of an animation.
    pub(super) footprint: Footprint,
    /// The WebP's width and height, and the layout of its pixels; an upper bound if the header
    /// leaves open whether the picture is turned.
    pub(super) output: Footprint,
    /// How the picture is resized, if it is.
    pub(super) resize: Option<Resize>,
    /// How the pixels are coded.
    pub(super) mode: Mode,
    /// The quality of lossy pixels, if no search finds another.
    pub(super) quality: u8,
    /// Whether the memory for lossless coding is reserved only once the pixels make it the better
    /// choice.
    pub(super) grows_for_lossless: bool,
    /// The metadata that is kept.
    pub(super) keep: Keep,
}

/// The path of the samples from the file to the encoder.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'a> {
    /// In the `Y'CbCr` of a JPEG, if that allows it: RGB in between would take twice the memory,
    /// and round and blur. Watermarks are drawn in RGB on the macroblocks under them. Rows of a
    /// PNG that is coded lossy become planes one after the other, which takes a third of the
    /// memory of RGB for all of them; if they turn out to be those of a graphic, the picture takes
    /// the other path.
    Planes,
    /// Through RGB or RGBA.
    Rgb,
    /// Frame by frame, each through RGBA.
    Animation(Animation<'a>),
}

impl<'a> Plan<'a> {
    /// Plans the conversion of an opened picture. `watermark_picture` has the bytes of a PNG or
    /// JPEG.
    ///
    /// # Errors
    /// The watermark's picture cannot be used by its header, or an animation or the WebP is beyond
    /// the limits.
    pub fn new(
        opened: &'a Opened<'a>,
        params: &'a Params,
        watermark_picture: Option<&'a [u8]>,
        resources: Resources<'a>,
    ) -> Result<Plan<'a>, ConversionError> {
        let animation = match params.animation {
            params::Animation::All => opened.animation().filter(Animation::is_animated),
            params::Animation::First => None,
        };
        let is_watermarked = params.text.is_some() || watermark_picture.is_some();
        let footprint = match animation {
            Some(animation) => animation.footprint()?,
            None => *opened.footprint(),
        };
        let upright = match animation {
            // Frames come upright.
            Some(_) => Some((footprint.width, footprint.height)),
            None => opened.upright_size(),
        };
        let Footprint { width, height, .. } = footprint;
        let sizes = match upright {
            Some(size) => [size; 2],
            None => [(width, height), (height, width)],
        };
        let sizes = match params.crop {
            Some(part) => {
                check_crop(part, &sizes)?;
                [(part.width as u32, part.height as u32); 2]
            }
            None => sizes,
        };
        let resize = largest_resize(opened, sizes, params)?;
        let (width, height) =
            resize.map_or(sizes[0], |resize| (resize.across.size, resize.down.size));
        let output = Footprint {
            width,
            height,
            ..footprint
        };
        if let Some(animation) = animation {
            animation.check_pixels(output.pixel_count())?;
        }
        let watermark_picture = watermark_picture
            .map(|bytes| open_watermark(bytes, opened.limits()))
            .transpose()
            .map_err(ConversionError::WatermarkPicture)?;
        let is_jpeg = opened.format() == Format::Jpeg;
        let mode = match params.mode {
            // The errors of an earlier lossy coding are noise to lossless coding.
            Mode::Auto if opened.is_lossy() => Mode::Lossy,
            requested => requested,
        };
        // GIFs are graphics as a rule.
        let grows_for_lossless = mode == Mode::Auto
            && params.goal.is_none()
            && opened.format() != Format::Gif
            && animation.is_none()
            && output.pixel_count() > SMALL_PIXELS;
        let stays_in_planes = mode != Mode::Lossless
            && opened.planes().is_some()
            && resize.is_none()
            && params.crop.is_none()
            // Several encodings need the pixels of the file in memory. A PNG's pixels are RGB.
            && (params.goal.is_none() || is_jpeg)
            && match (is_watermarked, params.goal) {
                (false, _) => true,
                // A score is measured on RGB with its watermarks.
                (true, Some(Goal::Score(_))) => false,
                // Tiles are everywhere.
                (true, _) => {
                    let scale = params.placement.scale;
                    let mark = watermark_picture.as_ref().map(Opened::footprint);
                    let is_large = mark.is_some_and(|mark| covers_half(mark, scale, &output));
                    is_jpeg && !params.placement.is_tiled && !is_large
                }
            };
        Ok(Plan {
            opened,
            params,
            resources,
            watermark_picture,
            path: match animation {
                Some(animation) => Path::Animation(animation),
                None if stays_in_planes => Path::Planes,
                None => Path::Rgb,
            },
            footprint,
            output,
            resize,
            mode,
            quality: default_quality(opened, params, resize.is_some()),
            grows_for_lossless,
            keep: Keep {
                // Colors that are given are sRGB.
                profile: params.metadata.profile && !is_watermarked && params.background.is_none(),
                ..params.metadata
            },
        })
    }

    /// Whether a text or a picture is drawn.
    pub(super) fn is_watermarked(&self) -> bool {
        self.params.text.is_some() || self.watermark_picture.is_some()
    }

    /// The threads that decode.
    pub(super) fn workers<'b>(&'b self, cancel: &'b Cancel<'b>) -> Workers<'b> {
        Workers::new(self.resources.threads, self.resources.cpu_budget, cancel)
    }

    /// The encoder with its options, but for metadata.
    pub(super) fn encoder<'b>(&'b self, cancel: &'b Cancel<'b>) -> Encoder<'b> {
        self.encoder_at(self.quality, cancel)
    }

    /// Returns the lossless encoder if the mode of the request allows a choice.
    pub(super) fn lossless_encoder<'b>(&'b self, cancel: &'b Cancel<'b>) -> Option<Encoder<'b>> {
        let encoder = || self.encoder(cancel).mode(Mode::Lossless);
        (self.params.mode == Mode::Auto).then(encoder)
    }

    /// [`Plan::encoder`] at another quality.
    pub(super) fn encoder_at<'b>(&'b self, quality: u8, cancel: &'b Cancel<'b>) -> Encoder<'b> {
        let encoder = Encoder::lossy(quality)
            .mode(self.mode)
            .alpha_quality(self.params.alpha_quality)
            .near_lossless(self.params.near_lossless)
            .effort(self.params.effort)
            .threads(self.resources.threads)
            .cancel(cancel);
        match self.resources.cpu_budget {
            Some(budget) => encoder.cpu_budget(budget),
            None => encoder,
        }
    }
}

/// The quality of a request without a goal. A JPEG that is resized is not as coarse any more as its
/// quantizers are.
fn default_quality(opened: &Opened<'_>, params: &Params, is_resized: bool) -> u8 {
    let follows = params.follows_source && !is_resized;
    let quantizers = opened.luma_quantizers().filter(|_| follows);
    let left = quantizers.map(|quantizers| source_quality::of_quantizers(&quantizers));
    left.map_or(params.quality, |left| left.min(params.quality))
}

/// Whether a watermark's picture has at least half of the pixels of `picture`, by its own size or
/// at this percentage of the width. Where it covers all, RGB for the whole picture takes 7 % less
/// time.
fn covers_half(mark: &Footprint, scale: Option<u8>, picture: &Footprint) -> bool {
    let pixels = match scale {
        None => mark.pixel_count(),
        Some(percent) => {
            let width = u64::from(picture.width) * u64::from(percent) / 100;
            width * width * u64::from(mark.height) / u64::from(mark.width.max(1))
        }
    };
    2 * pixels >= picture.pixel_count()
}

/// The resize of a picture of one of two sizes; the one to more pixels, if the header leaves open
/// how it is turned.
fn largest_resize(
    opened: &Opened<'_>,
    sizes: [(u32, u32); 2],
    params: &Params,
) -> Result<Option<Resize>, ConversionError> {
    let resizes = sizes.map(|size| params.sizing.resize(size));
    let resize = resizes
        .into_iter()
        .flatten()
        .max_by_key(Resize::pixel_count);
    let limits = opened.limits();
    match resize {
        Some(resize) if resize.pixel_count() > limits.max_pixels => {
            Err(ConversionError::ResizedTooLarge {
                width: resize.across.size,
                height: resize.down.size,
                max_pixels: limits.max_pixels,
            })
        }
        resize => Ok(resize),
    }
}

/// The encoder's name for a layout.
pub(super) fn color_type(layout: Layout) -> ColorType {
    match layout {
        Layout::Rgb => ColorType::Rgb8,
        Layout::Rgba => ColorType::Rgba8,
    }
}

/// The largest number of pixels of a watermark's picture: 4096 by 4096. It is drawn scaled down to
/// the image, and its memory should not outweigh the image's own.
pub(super) const MAX_WATERMARK_PIXELS: u64 = 1 << 24;

fn open_watermark<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Opened<'a>, DecodeError> {
    let limits = Limits {
        max_pixels: limits.max_pixels.min(MAX_WATERMARK_PIXELS),
        ..*limits
    };
    match Format::sniff(bytes) {
        Some(format @ (Format::Png | Format::Jpeg)) => image::open(bytes, format, &limits),
        Some(other) => Err(DecodeError::Invalid(format!(
            "it looks like {other}, and only PNG and JPEG are accepted"
        ))),
        None => Err(DecodeError::Invalid(
            "it is neither PNG nor JPEG".to_owned(),
        )),
    }
}
