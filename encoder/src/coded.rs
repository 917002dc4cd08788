//! A picture as the chunks that hold its pixels: RFC 9649, sections 2.5 to 2.7. With loss or without, as the caller asks, or
//! whichever takes fewer bytes.

use super::drawn;
use super::source::Source;
use super::{Coding, EncodeError, Mode, Options, Planes, RgbPicture, alpha, vp8, vp8l};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A picture without its container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coded {
    /// The `ALPH` chunk's data, where a lossy picture has alpha.
    pub alpha: Option<Vec<u8>>,
    /// The data of the `VP8 ` or `VP8L` chunk.
    pub frame: Vec<u8>,
    /// It is a `VP8L` chunk.
    pub is_lossless: bool,
}

impl Coded {
    /// Names and data of the chunks, in the order of the file.
    pub fn chunks(&self) -> impl Iterator<Item = ([u8; 4], &[u8])> {
        let name = if self.is_lossless { *b"VP8L" } else { *b"VP8 " };
        let alpha = self.alpha.as_deref().map(|alpha| (*b"ALPH", alpha));
        alpha.into_iter().chain([(name, self.frame.as_slice())])
    }

    /// Whether a pixel may be other than opaque.
    pub fn has_alpha(&self) -> bool {
        /// Its bit of the header of a lossless frame, behind the signature and two sides of 14 bits (section 3.4).
        const LOSSLESS_ALPHA: u8 = 1 << 4;
        self.alpha.is_some() || self.is_lossless && self.frame[4] & LOSSLESS_ALPHA != 0
    }

    /// Which of the two codings it has.
    pub fn coding(&self) -> Coding {
        if self.is_lossless {
            Coding::Lossless
        } else {
            Coding::Lossy
        }
    }

    /// Of its chunks' data.
    pub fn bytes(&self) -> usize {
        self.chunks().map(|(_, data)| data.len()).sum()
    }
}

/// Codes a picture.
///
/// # Errors
/// See [`EncodeError`].
pub fn code(picture: &RgbPicture<'_>, options: &Options<'_>) -> Result<Coded, EncodeError> {
    picture.check()?;
    match Way::of(picture, options)? {
        Way::Lossless => lossless(picture, options),
        Way::Lossy => lossy(picture, options),
        Way::Either => Ok(either(picture, options)?.0),
    }
}

/// How a picture is to be coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Lossless,
    Lossy,
    /// Whichever takes fewer bytes.
    Either,
}

impl Way {
    /// What the mode comes to for a picture.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`] if the file is no longer waited for.
    pub fn of(source: &impl Source, options: &Options<'_>) -> Result<Way, EncodeError> {
        Ok(match options.mode {
            Mode::Lossless => Way::Lossless,
            Mode::Auto if is_tiny(source) || drawn::is_likely(source, options.workers())? => {
                Way::Either
            }
            Mode::Auto | Mode::Lossy => Way::Lossy,
        })
    }
}

/// Whether a picture has so few pixels, up to 64 x 64, that coding it both ways costs next to nothing, and an estimate by some of
/// its rows tells little.
fn is_tiny(source: &impl Source) -> bool {
    const PIXELS: usize = 1 << 12;
    let (width, height) = source.size();
    width * height <= PIXELS
}

/// Most pixels that are worked on beside other pictures. More take longer than a conversion that arrives should wait for its core
/// to come back, and have rows enough for several threads.
pub const SIDE_BY_SIDE: usize = 1 << 19;

/// Bytes without loss that make it idle to look for fewer with loss.
const NEXT_TO_NOTHING: usize = 256;

/// Codes a picture without loss and with, and gives what takes fewer bytes, and how many the other takes at least. Where the first
/// takes no more than the other is expected to, that is what is given. Where it takes next to nothing, there is no other.
///
/// # Errors
/// See [`EncodeError`].
pub fn either(
    source: &impl Source,
    options: &Options<'_>,
) -> Result<(Coded, Option<usize>), EncodeError> {
    options.check()?;
    let (width, height) = source.size();
    let workers = options.workers();
    let workers = workers.at_most(if width * height <= SIDE_BY_SIDE { 2 } else { 1 });
    let expected = drawn::bytes_with_loss(source, options.quality, workers)?;
    let enough = expected.max(NEXT_TO_NOTHING);
    let exact_bytes = AtomicUsize::new(usize::MAX);
    let mut coded = workers.run_checked(2, |index| {
        if index == 0 {
            let exact = lossless(source, options)?;
            exact_bytes.store(exact.bytes(), Ordering::Relaxed);
            return Ok(Some(exact));
        }
        if exact_bytes.load(Ordering::Relaxed) <= enough {
            return Ok(None);
        }
        let mut lossy = lossy_frame(source, options)?;
        // Of what is larger already, alpha need not be coded.
        if lossy.bytes() < exact_bytes.load(Ordering::Relaxed) {
            lossy.alpha = coded_alpha(source, options)?;
        }
        Ok(Some(lossy))
    })?;
    let (lossy, exact) = (coded.pop().flatten(), coded.pop().flatten());
    let exact = exact.expect("it is always coded");
    if exact.bytes() <= enough {
        let larger = Some(expected).filter(|expected| exact.bytes() <= *expected);
        return Ok((exact, larger)); // the other may have been coded side by side
    }
    let lossy = lossy.expect("it is coded where this is not enough");
    Ok(if lossy.bytes() < exact.bytes() {
        (lossy, Some(exact.bytes()))
    } else {
        (exact, Some(lossy.frame.len()))
    })
}

/// Codes what `source` gives, with loss.
///
/// # Errors
/// See [`EncodeError`], and those of `source`.
pub fn code_planes(
    (width, height): (u32, u32),
    source: impl Fn() -> Result<Planes, EncodeError>,
    options: &Options<'_>,
) -> Result<Coded, EncodeError> {
    options.check()?;
    let source = || {
        let planes = source()?;
        if (planes.width, planes.height) != (width, height) {
            return Err(EncodeError::PixelCount);
        }
        Ok(planes)
    };
    Ok(Coded {
        alpha: None,
        frame: vp8::encode(source, width, height, &options.settings())?,
        is_lossless: false,
    })
}

/// Codes a picture with loss.
///
/// # Errors
/// See [`EncodeError`].
pub fn lossy(source: &impl Source, options: &Options<'_>) -> Result<Coded, EncodeError> {
    options.check()?;
    let mut coded = lossy_frame(source, options)?;
    coded.alpha = coded_alpha(source, options)?;
    Ok(coded)
}

/// [`lossy`] but for alpha.
fn lossy_frame(source: &impl Source, options: &Options<'_>) -> Result<Coded, EncodeError> {
    let settings = options.settings();
    let (width, height) = source.size();
    // The encoder needs no more of the picture than this.
    let planes = || {
        source.with_loss(settings.workers, |picture| {
            Planes::from_picture(picture, settings.simd, settings.workers)
        })
    };
    Ok(Coded {
        alpha: None,
        frame: vp8::encode(planes, width as u32, height as u32, &settings)?,
        is_lossless: false,
    })
}

/// The alpha of a picture that is coded with loss, unless all of it is opaque.
fn coded_alpha(
    source: &impl Source,
    options: &Options<'_>,
) -> Result<Option<Vec<u8>>, EncodeError> {
    let (width, _) = source.size();
    let coded = source.alpha(options.workers())?.map(|plane| {
        alpha::encode(
            plane,
            width,
            options.alpha_quality,
            &options.lossless_settings(),
        )
    });
    coded.transpose()
}

/// Codes a picture without loss.
///
/// # Errors
/// See [`EncodeError`].
pub fn lossless(source: &impl Source, options: &Options<'_>) -> Result<Coded, EncodeError> {
    let settings = options.lossless_settings();
    let (width, _) = source.size();
    let pixels = || source.argb(options.exact, settings.workers);
    let mut frame = vp8l::encode(pixels()?, width, &settings)?;
    let max_error = vp8l::max_error(options.near_lossless);
    if max_error > 0 {
        let mut near = pixels()?;
        vp8l::round(&mut near, width, max_error, settings.workers)?;
        let near = vp8l::encode(near, width, &settings)?;
        // What repeats exactly may do so no more once it is rounded.
        if near.len() < frame.len() {
            frame = near;
        }
    }
    Ok(Coded {
        alpha: None,
        frame,
        is_lossless: true,
    })
}
