//! A picture as the chunks that hold its pixels: RFC 9649, sections 2.5 to 2.7. With loss or without, as the caller asks, or
//! whichever takes fewer bytes.

use super::drawn;
use super::vp8l::Omitted;
use super::{Coding, EncodeError, Layout, Mode, Options, Picture, Planes, alpha, vp8, vp8l};
use std::sync::atomic::{AtomicBool, Ordering};

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
pub fn code(picture: &Picture<'_>, options: &Options<'_>) -> Result<Coded, EncodeError> {
    picture.check()?;
    match Way::of(picture, options)? {
        Way::Lossless => lossless(picture, &Omitted::NONE, options),
        Way::Lossy => lossy(picture, options),
        Way::Either => Ok(either(picture, &Omitted::NONE, options)?.0),
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
    pub fn of(picture: &Picture<'_>, options: &Options<'_>) -> Result<Way, EncodeError> {
        Ok(match options.mode {
            Mode::Lossless => Way::Lossless,
            Mode::Auto if drawn::is_likely(picture, options.crew())? => Way::Either,
            Mode::Auto | Mode::Lossy => Way::Lossy,
        })
    }
}

/// Most pixels that are worked on beside other pictures. More take longer than a conversion that arrives should wait for its core
/// to come back, and have rows enough for several threads.
pub const SIDE_BY_SIDE: usize = 1 << 19;

/// Bytes without loss that make it idle to look for fewer with loss.
const NEXT_TO_NOTHING: usize = 256;

/// Codes a picture without loss, but for what is `omitted` then, and with, and gives what takes fewer bytes, and how many the other
/// takes. Where the first takes no more than the other is expected to, that is what is given. Where it takes next to nothing, there
/// is no other.
///
/// # Errors
/// See [`EncodeError`].
pub fn either(
    picture: &Picture<'_>,
    omitted: &Omitted,
    options: &Options<'_>,
) -> Result<(Coded, Option<usize>), EncodeError> {
    let pixels = picture.width as usize * picture.height as usize;
    let crew = options.crew();
    let crew = crew.at_most(if pixels <= SIDE_BY_SIDE { 2 } else { 1 });
    let expected = drawn::bytes_with_loss(picture, options.quality, crew)?;
    let is_enough = AtomicBool::new(false);
    let mut coded = crew.run_checked(2, |index| match index {
        0 => {
            let exact = lossless(picture, omitted, options)?;
            let enough = expected.max(NEXT_TO_NOTHING);
            is_enough.store(exact.bytes() <= enough, Ordering::Relaxed);
            Ok(Some(exact))
        }
        _ if is_enough.load(Ordering::Relaxed) => Ok(None),
        _ => lossy(picture, options).map(Some),
    })?;
    let is_enough = is_enough.into_inner();
    if is_enough {
        coded[1] = None; // it may have been coded side by side
    }
    let mut coded: Vec<_> = coded.into_iter().flatten().collect();
    coded.sort_by_key(Coded::bytes); // the lossless one is first if both take as many
    let smaller = coded.swap_remove(0);
    let larger = match coded.first() {
        Some(larger) => Some(larger.bytes()),
        None => Some(expected).filter(|expected| smaller.bytes() <= *expected),
    };
    Ok((smaller, larger))
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
pub fn lossy(picture: &Picture<'_>, options: &Options<'_>) -> Result<Coded, EncodeError> {
    options.check()?;
    let (width, height) = (picture.width, picture.height);
    let settings = options.settings();
    let planes = || Planes::from_picture(picture, settings.simd, settings.crew);
    let frame = vp8::encode(planes, width, height, &settings)?;
    settings.crew.check()?;
    let alpha = alpha_plane(picture);
    let alpha = alpha.map(|plane| {
        alpha::encode(
            plane,
            width as usize,
            options.alpha_quality,
            &options.lossless_settings(),
        )
    });
    Ok(Coded {
        alpha: alpha.transpose()?,
        frame,
        is_lossless: false,
    })
}

/// Codes a picture without loss, but for what is `omitted`.
///
/// # Errors
/// See [`EncodeError`].
pub fn lossless(
    picture: &Picture<'_>,
    omitted: &Omitted,
    options: &Options<'_>,
) -> Result<Coded, EncodeError> {
    let settings = options.lossless_settings();
    let width = picture.width as usize;
    let pixels = || vp8l::from_picture(picture, omitted, options.exact, settings.crew);
    let mut frame = vp8l::encode(pixels()?, width, &settings)?;
    let max_error = vp8l::max_error(options.near_lossless);
    if max_error > 0 {
        let mut near = pixels()?;
        vp8l::round(&mut near, width, max_error, settings.crew)?;
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

/// The alpha of each pixel, unless all are opaque.
fn alpha_plane(picture: &Picture<'_>) -> Option<Vec<u8>> {
    match picture.layout {
        Layout::Rgb => None,
        Layout::Rgba => {
            let alpha = picture.pixels.chunks_exact(4).map(|pixel| pixel[3]);
            alpha.clone().any(|a| a != 255).then(|| alpha.collect())
        }
    }
}
