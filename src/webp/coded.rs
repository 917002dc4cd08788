//! A picture as the chunks that hold its pixels: RFC 9649, sections 2.5 to 2.7. With loss or without, as the caller asks, or
//! whichever takes fewer bytes.

use super::drawn;
use super::{Coding, EncodeError, Layout, Mode, Options, Picture, alpha, vp8, vp8l, yuv};

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

    fn bytes(&self) -> usize {
        self.chunks().map(|(_, data)| data.len()).sum()
    }
}

/// Codes a picture.
///
/// # Errors
/// See [`EncodeError`].
pub fn code(picture: &Picture<'_>, options: &Options<'_>) -> Result<Coded, EncodeError> {
    picture.check()?;
    match options.mode {
        Mode::Lossless => lossless(picture, options),
        Mode::Auto if drawn::is_likely(picture) => {
            let lossless = lossless(picture, options)?;
            let lossy = lossy(picture, options)?;
            Ok(if lossless.bytes() <= lossy.bytes() {
                lossless
            } else {
                lossy
            })
        }
        Mode::Auto | Mode::Lossy => lossy(picture, options),
    }
}

fn lossy(picture: &Picture<'_>, options: &Options<'_>) -> Result<Coded, EncodeError> {
    if options.log2_partitions.is_some_and(|log2| log2 > 3) {
        return Err(EncodeError::PartitionCount);
    }
    let (width, height) = (picture.width, picture.height);
    let settings = options.settings();
    let planes = || yuv::Planes::from_picture(picture, settings.simd, settings.crew);
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

fn lossless(picture: &Picture<'_>, options: &Options<'_>) -> Result<Coded, EncodeError> {
    let settings = options.lossless_settings();
    let pixels = vp8l::from_picture(picture, options.exact, settings.crew)?;
    Ok(Coded {
        alpha: None,
        frame: vp8l::encode(pixels, picture.width as usize, &settings)?,
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
