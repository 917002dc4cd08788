//! Pixels in memory, and one reader per input format.
//!
//! Each reader holds the header to the [`Limits`] before anything is allocated, decodes into one buffer, and hands
//! over what the file says about colour and orientation; [`decode`] then applies both. All the while somebody's
//! [`Cancel`] may end it.

mod color;
mod error;
mod format;
mod formats;
mod metadata;
mod planes;
mod probe;
mod source;

pub use error::DecodeError;
pub use format::Format;
pub use formats::gif::{Drawn, Frames, Place, is_animated};
pub use metadata::{Keep, Metadata, metadata_bytes};
pub use planes::Planes;
pub use probe::{Footprint, probe, probe_animation};

use color::Space;
use formats::{bmp, gif, jpeg, png};
use metadata::orientation;
use source::PORTION_PIXELS;
use std::panic::{AssertUnwindSafe, catch_unwind};
use towebp_encoder::{Cancel, Cancelled};

/// How samples lie: 8 bits each, interleaved, rows without padding, sRGB, alpha not premultiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Three bytes a pixel.
    Rgb,
    /// Four bytes a pixel.
    Rgba,
}

impl Layout {
    /// Bytes of one pixel.
    pub fn channels(self) -> usize {
        match self {
            Layout::Rgb => 3,
            Layout::Rgba => 4,
        }
    }
}

/// A picture: `width * height` pixels, top row first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Width in pixels, at least 1.
    pub width: u32,
    /// Height in pixels, at least 1.
    pub height: u32,
    /// What `pixels` holds.
    pub layout: Layout,
    /// The samples.
    pub pixels: Vec<u8>,
}

impl Image {
    /// Gives up an alpha channel in which every pixel is opaque, in place.
    fn drop_opaque_alpha(&mut self, cancel: &Cancel<'_>) -> Result<(), Cancelled> {
        if self.layout == Layout::Rgb {
            return Ok(());
        }
        for portion in self.pixels.chunks(PORTION_PIXELS * 4) {
            cancel.check()?;
            if portion.iter().skip(3).step_by(4).any(|&alpha| alpha != 255) {
                return Ok(());
            }
        }
        let count = self.pixels.len() / 4;
        for start in (0..count).step_by(PORTION_PIXELS) {
            cancel.check()?;
            for pixel in start..count.min(start + PORTION_PIXELS) {
                self.pixels.copy_within(pixel * 4..pixel * 4 + 3, pixel * 3);
            }
        }
        self.pixels.truncate(count * 3);
        self.pixels.shrink_to_fit();
        self.layout = Layout::Rgb;
        Ok(())
    }
}

/// Bounds that a picture's header is held to before anything is allocated.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest side, in pixels. 16383 is WebP's own bound (RFC 9649, 14 bits).
    pub max_side: u32,
    /// Most pixels in all.
    pub max_pixels: u64,
    /// Most frames of an animation.
    pub max_frames: u32,
    /// Most pixels of all frames of an animation, each counted as the whole screen, or as itself if it is larger.
    pub max_film_pixels: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

impl Limits {
    /// 100 megapixels are above today's cameras. Of an animation, 5000 frames last minutes, and a thousand frames of a megapixel take
    /// about as long as a conversion may.
    pub const DEFAULT: Limits = Limits {
        max_side: 16383,
        max_pixels: 100_000_000,
        max_frames: 5000,
        max_film_pixels: 1_000_000_000,
    };

    /// Holds an animation of `frames` frames so far to the bounds, which have so many pixels together.
    ///
    /// # Errors
    /// [`DecodeError::TooManyFrames`] or [`DecodeError::FilmTooLarge`].
    pub fn check_film(&self, frames: u32, pixels: u64) -> Result<(), DecodeError> {
        if frames > self.max_frames {
            let max_frames = self.max_frames;
            return Err(DecodeError::TooManyFrames { max_frames });
        }
        if pixels > self.max_film_pixels {
            let max_pixels = self.max_film_pixels;
            return Err(DecodeError::FilmTooLarge { max_pixels });
        }
        Ok(())
    }

    /// The number of pixels of a picture of `width` by `height`, if it is within bounds.
    fn check(&self, width: u32, height: u32) -> Result<usize, DecodeError> {
        if width == 0 || height == 0 {
            return Err(DecodeError::Invalid(format!(
                "the picture is {width} x {height} pixels, which is empty"
            )));
        }
        if width > self.max_side || height > self.max_side {
            return Err(DecodeError::TooWide {
                width,
                height,
                max_side: self.max_side,
            });
        }
        let pixels = u64::from(width) * u64::from(height);
        if pixels > self.max_pixels {
            return Err(DecodeError::TooManyPixels {
                width,
                height,
                max_pixels: self.max_pixels,
            });
        }
        usize::try_from(pixels)
            .ok()
            .filter(|pixels| *pixels <= isize::MAX as usize / 8) // room for every buffer of a few bytes a pixel
            .ok_or(DecodeError::TooManyPixels {
                width,
                height,
                max_pixels: self.max_pixels,
            })
    }
}

/// Decodes one picture (the first frame of a GIF), turned as its Exif orientation says, in sRGB.
///
/// A picture with an alpha channel that is opaque throughout comes out as [`Layout::Rgb`].
///
/// # Errors
/// See [`DecodeError`]. A decoder that panics gives [`DecodeError::Invalid`].
pub fn decode(
    bytes: &[u8],
    format: Format,
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Image, DecodeError> {
    decode_keeping(Keep::Nothing, bytes, format, limits, cancel).map(|(image, _)| image)
}

/// [`decode`], which keeps metadata.
///
/// # Errors
/// As [`decode`]. Metadata that makes no sense is none.
pub fn decode_keeping(
    keep: Keep,
    bytes: &[u8],
    format: Format,
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<(Image, Metadata), DecodeError> {
    check_format(bytes, format)?;
    let read = match format {
        Format::Png if keep == Keep::All => png::read_beside_profile,
        Format::Png => png::read,
        Format::Jpeg => jpeg::read,
        Format::Gif => gif::read,
        Format::Bmp => bmp::read,
    };
    let decode = || {
        let raw = read(bytes, limits, cancel)?;
        let mut image = raw.image;
        image.drop_opaque_alpha(cancel)?;
        let mut metadata = Metadata::default();
        match raw.space {
            Some(Space::Icc(profile)) if keep == Keep::All && color::is_of_rgb(&profile) => {
                metadata.icc = Some(profile);
            }
            Some(space) => color::convert_to_srgb(&mut image, &space, raw.grey, cancel)?,
            None => {}
        }
        if let Some(orientation) = raw.exif.as_deref().and_then(orientation::read) {
            image = orientation::apply(image, orientation, cancel)?;
        }
        if keep != Keep::Nothing {
            metadata = Metadata {
                icc: metadata.icc,
                ..Metadata::descriptions(raw.exif, bytes, format)
            };
        }
        Ok((image, metadata))
    };
    guarded(cancel, decode)
}

/// Decodes one picture as its file has it in YUV, turned as its Exif orientation says, and keeps metadata; `None` if that
/// cannot be done, so that it takes [`decode_keeping`].
///
/// # Errors
/// As [`decode_keeping`].
pub fn decode_planes(
    keep: Keep,
    bytes: &[u8],
    format: Format,
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Option<(Planes, Metadata)>, DecodeError> {
    check_format(bytes, format)?;
    if format != Format::Jpeg {
        return Ok(None);
    }
    let decoded = guarded(cancel, || jpeg::read_planes(bytes, limits, cancel))?;
    Ok(decoded.map(|RawPlanes { planes, icc, exif }| {
        let descriptions = || Metadata::descriptions(exif, bytes, format);
        let metadata = match keep {
            Keep::Nothing => Metadata::default(),
            Keep::Descriptions => descriptions(),
            Keep::All => Metadata {
                icc,
                ..descriptions()
            },
        };
        (planes, metadata)
    }))
}

/// Does what a library may panic at, and takes a client who left for what else may have gone wrong then.
fn guarded<T>(
    cancel: &Cancel<'_>,
    decode: impl FnOnce() -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    // What is left behind by a panic is not used, but the answer that `cancel` keeps, which is whole at all times.
    let decoded = catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(DecodeError::Invalid("the decoder failed on it".to_owned())));
    if cancel.is_set() {
        // Whatever a decoder made of a file that broke off.
        return Err(DecodeError::Cancelled);
    }
    decoded
}

fn check_format(bytes: &[u8], declared: Format) -> Result<(), DecodeError> {
    let found = Format::sniff(bytes);
    if found == Some(declared) {
        return Ok(());
    }
    Err(DecodeError::WrongFormat { declared, found })
}

/// For `fuzz/`: turns a picture as Exif data says.
#[cfg(fuzzing)]
pub fn turn_upright(image: Image, exif: &[u8]) -> Image {
    match orientation::read(exif) {
        Some(orientation) => {
            orientation::apply(image, orientation, &Cancel::never()).expect("it is not cancelled")
        }
        None => image,
    }
}

/// For `fuzz/`: converts a picture from a profile's space to sRGB; `grey` says that its samples were grey in the file.
#[cfg(fuzzing)]
pub fn convert_to_srgb(image: &mut Image, profile: &[u8], grey: bool) {
    let space = Space::Icc(profile.to_vec());
    color::convert_to_srgb(image, &space, grey, &Cancel::never()).expect("it is not cancelled");
}

/// [`Raw`] of a picture that stays in YUV.
struct RawPlanes {
    /// Upright.
    planes: Planes,
    /// That of sRGB, if there is one.
    icc: Option<Vec<u8>>,
    exif: Option<Vec<u8>>,
}

/// What a reader hands over: pixels as stored, and what the file says about them.
struct Raw {
    image: Image,
    /// The samples were grey in the file, so every pixel has red = green = blue.
    grey: bool,
    /// What its colours are, where it says so.
    space: Option<Space>,
    /// Exif from its TIFF header on.
    exif: Option<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    /// What the readers are tried with.
    pub(super) const LIMITS: Limits = Limits {
        max_side: 1000,
        max_pixels: 10_000,
        ..Limits::DEFAULT
    };

    /// A file that ends after any of `lengths` bytes is refused.
    pub(super) fn assert_parts_are_refused(
        read: fn(&[u8], &Limits, &Cancel<'_>) -> Result<Raw, DecodeError>,
        file: &[u8],
        lengths: Range<usize>,
    ) {
        for length in lengths {
            assert!(
                read(&file[..length], &LIMITS, &Cancel::never()).is_err(),
                "{length} of {} bytes were enough",
                file.len()
            );
        }
    }

    #[test]
    fn an_opaque_alpha_channel_is_dropped() {
        let mut image = Image {
            width: 2,
            height: 1,
            layout: Layout::Rgba,
            pixels: vec![1, 2, 3, 255, 4, 5, 6, 255],
        };
        image
            .drop_opaque_alpha(&Cancel::never())
            .expect("it is not cancelled");
        assert_eq!(
            (image.layout, image.pixels),
            (Layout::Rgb, vec![1, 2, 3, 4, 5, 6])
        );
    }

    #[test]
    fn one_pixel_that_is_not_opaque_keeps_the_alpha_channel() {
        let before = Image {
            width: 2,
            height: 1,
            layout: Layout::Rgba,
            pixels: vec![1, 2, 3, 255, 4, 5, 6, 254],
        };
        let mut image = before.clone();
        image
            .drop_opaque_alpha(&Cancel::never())
            .expect("it is not cancelled");
        assert_eq!(image, before);
    }

    #[test]
    fn limits_hold_from_both_sides() {
        let limits = Limits {
            max_side: 100,
            max_pixels: 5000,
            ..Limits::DEFAULT
        };
        assert_eq!(limits.check(100, 50), Ok(5000));
        assert_eq!(limits.check(50, 100), Ok(5000));
        assert_eq!(
            limits.check(101, 1),
            Err(DecodeError::TooWide {
                width: 101,
                height: 1,
                max_side: 100
            })
        );
        assert_eq!(
            limits.check(1, 101),
            Err(DecodeError::TooWide {
                width: 1,
                height: 101,
                max_side: 100
            })
        );
        assert_eq!(
            limits.check(51, 99),
            Err(DecodeError::TooManyPixels {
                width: 51,
                height: 99,
                max_pixels: 5000
            })
        );
        assert!(matches!(limits.check(0, 5), Err(DecodeError::Invalid(_))));
        let wide = Limits {
            max_side: u32::MAX,
            max_pixels: u64::MAX,
            ..Limits::DEFAULT
        };
        assert!(
            wide.check(u32::MAX, u32::MAX).is_err(),
            "a size that no buffer can have is refused"
        );
    }

    #[test]
    fn bytes_of_another_format_are_named() {
        let gif = b"GIF89a\x01\x00\x01\x00\x00\x00\x00";
        assert_eq!(
            decode(gif, Format::Png, &Limits::default(), &Cancel::never()),
            Err(DecodeError::WrongFormat {
                declared: Format::Png,
                found: Some(Format::Gif)
            })
        );
        assert_eq!(
            decode(b"", Format::Bmp, &Limits::default(), &Cancel::never()),
            Err(DecodeError::WrongFormat {
                declared: Format::Bmp,
                found: None
            })
        );
    }

    #[test]
    fn orientation_and_profile_are_applied_whatever_the_format() {
        let exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"; // 6: turn to the right
        let profile = moxcms::ColorProfile::new_gray_with_gamma(1.0)
            .encode()
            .expect("a valid profile");

        let segments = [
            jpeg::tests::segment(0xe1, &[b"Exif\0\0", &exif[..]].concat()),
            jpeg::tests::segment(
                0xe2,
                &[b"ICC_PROFILE\0\x01\x01", profile.as_slice()].concat(),
            ),
        ];
        let jpeg = jpeg::tests::jpeg(16, 8, &[&[0], &[255]], &segments.concat());
        let mut info = png::tests::info(
            2,
            1,
            ::png::ColorType::GrayscaleAlpha,
            ::png::BitDepth::Eight,
        );
        info.exif_metadata = Some(exif.as_slice().into());
        info.icc_profile = Some(profile.into());
        let png = png::tests::png(info, &[55, 255, 255, 255]);

        let image = decode(&jpeg, Format::Jpeg, &Limits::default(), &Cancel::never())
            .expect("a valid picture");
        assert_eq!((image.width, image.height), (8, 16));
        assert_eq!(
            (&image.pixels[..3], &image.pixels[15 * 24..][..3]),
            (&[0; 3][..], &[255; 3][..])
        );

        let image = decode(&png, Format::Png, &Limits::default(), &Cancel::never())
            .expect("a valid picture");
        // Linear 55 is sRGB 127.95. The opaque alpha channel is gone.
        let expected = Image {
            width: 1,
            height: 2,
            layout: Layout::Rgb,
            pixels: vec![128, 128, 128, 255, 255, 255],
        };
        assert_eq!(image, expected);
    }
}
