//! How near a decoded picture is to its original.

use butteraugli::{ButteraugliParams, ButteraugliReference};
use dssim_core::{Dssim, DssimImage};
use fast_ssim2::{PixelDescriptor, PixelSlice, Ssimulacra2Reference};
use rgb::FromSlice;

use crate::blocks::{self, Blocks};
use crate::drift::{Drift, drift};
use crate::ms_ssim;
use crate::picture::Picture;

/// The scores of one decoded picture. SSIMULACRA2 and PSNR grow with quality, the others fall.
#[derive(Clone, Copy, Debug)]
pub struct Scores {
    /// 100 = identical, 90 = visually lossless, 70 = high, 50 = medium quality.
    pub ssimulacra2: f64,
    /// 0 = identical; `None` if it was not asked for.
    pub dssim: Option<f64>,
    /// The 3-norm: 0 = identical; `None` if it was not asked for.
    pub butteraugli: Option<f64>,
    /// 1 less MS-SSIM of BT.601 luma: 0 = identical; `None` if the picture is too small.
    pub ms_ssim: Option<f64>,
    /// In dB, of BT.601 luma in floating point; 99 if identical.
    pub psnr_y: f64,
    /// Steps at macroblock edges: 0 = none; seen from about 30 on.
    pub blocks: Blocks,
    /// How far the color of whole macroblocks is off; `None` in points that were kept before it was
    /// measured.
    pub drift: Option<Drift>,
}

/// An original, prepared once for many comparisons.
pub struct Original<'a> {
    picture: &'a Picture,
    ssimulacra2: Ssimulacra2Reference,
    dssim: Option<(Dssim, DssimImage<f32>)>,
    butteraugli: Option<ButteraugliReference>,
    blocks: blocks::Original,
}

impl<'a> Original<'a> {
    /// `with_slow`: DSSIM and Butteraugli take longer than all else together.
    ///
    /// # Errors
    /// When a metric refuses the picture's size.
    pub fn new(picture: &'a Picture, with_slow: bool) -> Result<Self, String> {
        let ssimulacra2 =
            Ssimulacra2Reference::new(&slice(picture)?).map_err(|error| error.to_string())?;
        let dssim = if with_slow {
            let dssim = Dssim::new();
            let image = dssim_image(&dssim, picture)?;
            Some((dssim, image))
        } else {
            None
        };
        let butteraugli = with_slow
            .then(|| {
                let (width, height) = (picture.width as usize, picture.height as usize);
                let parameters = ButteraugliParams::default();
                ButteraugliReference::new(&picture.pixels, width, height, parameters)
            })
            .transpose()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            picture,
            ssimulacra2,
            dssim,
            butteraugli,
            blocks: blocks::Original::new(picture),
        })
    }

    /// Compares `decoded`, which has the original's size.
    ///
    /// # Errors
    /// When it has not.
    pub fn compare(&self, decoded: &Picture) -> Result<Scores, String> {
        let ssimulacra2 = self
            .ssimulacra2
            .compare(&slice(decoded)?)
            .map_err(|error| error.to_string())?;
        let dssim = match &self.dssim {
            Some((dssim, original)) => Some(
                dssim
                    .compare(original, dssim_image(dssim, decoded)?)
                    .0
                    .into(),
            ),
            None => None,
        };
        let butteraugli = match &self.butteraugli {
            Some(original) => {
                let result = original
                    .compare(&decoded.pixels)
                    .map_err(|error| error.to_string())?;
                Some(result.pnorm_3)
            }
            None => None,
        };
        let [luma, ..] = self.blocks.planes();
        let [decoded_luma, ..] = &blocks::planes(decoded);
        Ok(Scores {
            ssimulacra2,
            dssim,
            butteraugli,
            ms_ssim: ms_ssim::dissimilarity(luma, decoded_luma, decoded.width),
            psnr_y: psnr_y(&self.picture.pixels, &decoded.pixels),
            blocks: self.blocks.compare(decoded),
            drift: Some(drift(self.blocks.planes(), decoded)),
        })
    }
}

fn slice(picture: &Picture) -> Result<PixelSlice<'_>, String> {
    let stride = 3 * picture.width as usize;
    PixelSlice::new(
        &picture.pixels,
        picture.width,
        picture.height,
        stride,
        PixelDescriptor::RGB8_SRGB,
    )
    .map_err(|error| error.to_string())
}

fn dssim_image(dssim: &Dssim, picture: &Picture) -> Result<DssimImage<f32>, String> {
    dssim
        .create_image_rgb(
            picture.pixels.as_rgb(),
            picture.width as usize,
            picture.height as usize,
        )
        .ok_or_else(|| "DSSIM refuses the picture".to_owned())
}

fn psnr_y(a: &[u8], b: &[u8]) -> f64 {
    let luma =
        |p: &[u8]| 0.299 * f64::from(p[0]) + 0.587 * f64::from(p[1]) + 0.114 * f64::from(p[2]);
    let squares: f64 = a
        .chunks_exact(3)
        .zip(b.chunks_exact(3))
        .map(|(a, b)| (luma(a) - luma(b)).powi(2))
        .sum();
    let mean = squares / (a.len() / 3) as f64;
    if mean == 0.0 {
        99.0
    } else {
        (10.0 * (255.0 * 255.0 / mean).log10()).min(99.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psnr_of_an_error_of_one_everywhere_is_48_13_db() {
        let (a, b) = ([100u8; 12], [101u8; 12]);
        assert!(
            (psnr_y(&a, &b) - 48.1308).abs() < 1e-3,
            "{}",
            psnr_y(&a, &b)
        );
        assert!((psnr_y(&a, &a) - 99.0).abs() < f64::EPSILON);
    }
}
