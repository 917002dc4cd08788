//! The encoder of still pictures, and the options that animations share with it.

use crate::auto_mode::{self, CodingPlan};
use crate::bitstream;
use crate::cancel::Cancel;
use crate::container;
use crate::cpu::Simd;
use crate::error::EncodeError;
use crate::lossless_estimate::LosslessEstimate;
use crate::memory;
use crate::options::{Coding, Effort, Metadata, Mode, Options};
use crate::picture::{ColorType, Picture};
use crate::threads::CpuBudget;
use crate::ycbcr::Planes;
use std::io;

/// Encodes pictures as WebP files. It is a list of options, cheap to copy, and can be used for any
/// number of pictures, from several threads at a time.
///
/// ```
/// use towebp_encoder::{ColorType, Effort, Encoder, Picture};
///
/// let pixels = [255, 128, 0].repeat(64 * 48);
/// let picture = Picture::new(64, 48, ColorType::Rgb8, &pixels)?;
/// let encoder = Encoder::lossy(80).effort(Effort::High);
/// let encoded = encoder.encode(&picture)?;
/// assert!(encoded.file.starts_with(b"RIFF"));
/// # Ok::<(), towebp_encoder::EncodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Encoder<'a> {
    pub(crate) options: Options<'a>,
    pub(crate) metadata: Metadata<'a>,
}

/// A file, and the choices for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Encoded {
    /// The WebP file.
    pub file: Vec<u8>,
    /// How its pixels are coded.
    pub coding: Coding,
}

impl Encoded {
    pub(crate) fn new(file: Vec<u8>, coding: Coding) -> Encoded {
        Encoded { file, coding }
    }
}

/// Beginnings: the rest of the options follow by the methods below, and have defaults.
impl<'a> Encoder<'a> {
    /// Lossy coding at `quality`, 0 (smallest) to 100 (best); higher values count as 100. Alpha is
    /// kept exactly unless [`Encoder::alpha_quality`] is below 100.
    pub fn lossy(quality: u8) -> Encoder<'a> {
        Encoder {
            options: Options::lossy(quality),
            metadata: Metadata::default(),
        }
    }

    /// Lossless coding: every visible pixel is kept exactly.
    pub fn lossless() -> Encoder<'a> {
        Encoder::lossy(100).mode(Mode::Lossless)
    }

    /// Lossy coding at `quality`, 0 to 100, or lossless coding where that takes no more bytes, as
    /// it often does for screenshots, charts and logos, and where lossy coding would change the
    /// colors of an icon for few bytes. The colors of a graphic are reduced to a palette if that is
    /// smaller and does not show. The pixels decide; a file is not larger than a lossless one.
    /// [`Encoded::coding`] is the one that was taken.
    ///
    /// ```
    /// use towebp_encoder::{Coding, ColorType, Encoder, Picture};
    ///
    /// let flat = [30; 100 * 100];
    /// let picture = Picture::new(100, 100, ColorType::L8, &flat)?;
    /// assert_eq!(Encoder::auto(80).encode(&picture)?.coding, Coding::Lossless);
    /// # Ok::<(), towebp_encoder::EncodeError>(())
    /// ```
    pub fn auto(quality: u8) -> Encoder<'a> {
        Encoder::lossy(quality).mode(Mode::Auto)
    }
}

/// Options.
impl<'a> Encoder<'a> {
    /// Chooses whether pixels may change; [`Encoder::lossy`], [`Encoder::lossless`] and
    /// [`Encoder::auto`] begin with one of the three.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Encoder<'a> {
        self.options.mode = mode;
        self
    }

    /// Sets how much work goes into a file: [`Effort::Medium`] unless this is called.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Encoder<'a> {
        self.options.effort = effort;
        self
    }

    /// Sets the quality of alpha beside lossy pixels, 0 to 100: 100, which is exact, unless this is
    /// called. Below that it is rounded to fewer values.
    #[must_use]
    pub fn alpha_quality(mut self, quality: u8) -> Encoder<'a> {
        self.options.alpha_quality = quality;
        self
    }

    /// Sets how close lossless pictures stay to the original, 0 to 100: 100, which is exact, unless
    /// this is called. Where the picture is busy, samples of color are off by up to 1 from 80 on, 2
    /// from 60 on, 3 from 40 on, 4 from 20 on, and 5 below.
    #[must_use]
    pub fn near_lossless(mut self, quality: u8) -> Encoder<'a> {
        self.options.near_lossless = quality;
        self
    }

    /// Sets whether fully transparent pixels of lossless pictures keep their color, which nobody
    /// sees and which takes bytes: they do not unless this is called.
    #[must_use]
    pub fn exact(mut self, is_exact: bool) -> Encoder<'a> {
        self.options.exact = is_exact;
        self
    }

    /// Stores an ICC profile in the file. The pixels are not converted: they are in the profile's
    /// color space already.
    #[must_use]
    pub fn icc_profile(mut self, profile: &'a [u8]) -> Encoder<'a> {
        self.metadata.icc = Some(profile);
        self
    }

    /// Stores Exif metadata in the file, from the TIFF header on.
    #[must_use]
    pub fn exif(mut self, exif: &'a [u8]) -> Encoder<'a> {
        self.metadata.exif = Some(exif);
        self
    }

    /// Stores XMP metadata, UTF-8, in the file.
    #[must_use]
    pub fn xmp(mut self, xmp: &'a [u8]) -> Encoder<'a> {
        self.metadata.xmp = Some(xmp);
        self
    }

    /// Sets the [`Cancel`] that may stop the work. Encoding then ends with
    /// [`EncodeError::Cancelled`].
    ///
    /// ```
    /// use towebp_encoder::{Cancel, ColorType, EncodeError, Encoder, Picture};
    ///
    /// let cancel = Cancel::new();
    /// cancel.cancel(); // from another thread, as a rule
    /// let picture = Picture::new(1, 1, ColorType::L8, &[7])?;
    /// let outcome = Encoder::lossy(80).cancel(&cancel).encode(&picture);
    /// assert_eq!(outcome, Err(EncodeError::Cancelled));
    /// # Ok::<(), EncodeError>(())
    /// ```
    #[must_use]
    pub fn cancel(mut self, cancel: &'a Cancel<'a>) -> Encoder<'a> {
        self.options.cancel = cancel;
        self
    }

    /// Sets the most threads that work on a picture, the calling one included: 1 unless this is
    /// called, and 0 counts as 1. The file is the same bytes with any number.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Encoder<'a> {
        self.options.threads = threads;
        self
    }

    /// Lets several encoders of a process share its cores: each thread but the calling one starts
    /// only while the budget has a core for it.
    ///
    /// ```
    /// use std::num::NonZeroUsize;
    /// use towebp_encoder::{ColorType, CpuBudget, Encoder, Picture};
    ///
    /// let budget = CpuBudget::new(NonZeroUsize::new(4).unwrap());
    /// let picture = Picture::new(1, 1, ColorType::L8, &[7])?;
    /// let own_core = budget.occupy();
    /// let encoder = Encoder::lossy(80).threads(budget.total()).cpu_budget(&budget);
    /// let encoded = encoder.encode(&picture)?;
    /// drop(own_core);
    /// # Ok::<(), towebp_encoder::EncodeError>(())
    /// ```
    #[must_use]
    pub fn cpu_budget(mut self, budget: &'a CpuBudget) -> Encoder<'a> {
        self.options.cpu_budget = Some(budget);
        self
    }

    /// Sets the constants of the lossy decisions, in place of those of the effort.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    #[must_use]
    pub fn constants(mut self, constants: &'a crate::Constants) -> Encoder<'a> {
        self.options.constants = Some(constants);
        self
    }

    /// Sets the vector instructions to use, which do not change the file.
    #[doc(hidden)]
    #[must_use]
    pub fn simd(mut self, simd: Simd) -> Encoder<'a> {
        self.options.simd = simd;
        self
    }

    /// Sets the number of token partitions of lossy pictures as a power of two, 0 to 3; higher
    /// values count as 3.
    #[doc(hidden)]
    #[must_use]
    pub fn log2_partitions(mut self, log2: u8) -> Encoder<'a> {
        self.options.log2_partitions = Some(log2.min(3));
        self
    }
}

/// Work.
impl Encoder<'_> {
    /// Encodes `picture`.
    ///
    /// The colors of its fully transparent pixels are replaced by those of visible ones close by
    /// wherever it is coded with loss: whatever lies there would bleed into visible edges.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`] if the file does not fit the format's size fields;
    /// [`EncodeError::Cancelled`].
    pub fn encode(&self, picture: &Picture<'_>) -> Result<Encoded, EncodeError> {
        let bitstream = auto_mode::encode(picture, &self.options)?;
        self.assemble((picture.width(), picture.height()), &bitstream)
    }

    /// As [`Encoder::encode`], if that comes to lossy coding without lossless coding being tried,
    /// as for photographs; `None` otherwise. It takes no more memory than [`Mode::Lossy`].
    ///
    /// # Errors
    /// Those of [`Encoder::encode`].
    pub fn encode_if_lossy(&self, picture: &Picture<'_>) -> Result<Option<Encoded>, EncodeError> {
        let plan = CodingPlan::choose(picture, &self.options)?;
        let lossy = || bitstream::lossy(picture, &self.options);
        let bitstream = auto_mode::encode_if_lossy(plan, lossy)?;
        let assemble = |lossy| self.assemble((picture.width(), picture.height()), &lossy);
        bitstream.map(assemble).transpose()
    }

    /// Encodes `picture` and writes the file to `writer`, which is not flushed.
    ///
    /// ```
    /// use towebp_encoder::{ColorType, Encoder, Picture};
    ///
    /// let picture = Picture::new(1, 1, ColorType::L8, &[7]).expect("one pixel");
    /// let mut file = Vec::new();
    /// Encoder::lossless().write(&picture, &mut file)?;
    /// assert!(file.starts_with(b"RIFF"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `writer`, and those of [`Encoder::encode`] as the inner error of [`io::Error`].
    pub fn write(&self, picture: &Picture<'_>, mut writer: impl io::Write) -> io::Result<Coding> {
        let encoded = self.encode(picture).map_err(io::Error::other)?;
        writer.write_all(&encoded.file)?;
        Ok(encoded.coding)
    }

    /// Encodes a picture of `width` x `height` pixels that `source` gives in `Y'CbCr`, lossy
    /// whatever the mode is. It is for pictures that come in `Y'CbCr`, such as JPEGs: RGB in
    /// between would take twice the memory, round and blur. Nothing is sharpened: the chroma
    /// samples are taken to be the values that a decoder interpolates.
    ///
    /// The planes are freed as soon as all is decided. In the rare case that the picture has to be
    /// coded a second time, which takes noise of 130 megapixels, `source` is called again.
    ///
    /// ```
    /// use towebp_encoder::{Encoder, Planes};
    ///
    /// let (luma, chroma) = ([90; 32 * 20], [128; 16 * 10]);
    /// let source = || Planes::copied_from((32, 20), [&luma, &chroma, &chroma], [32, 16]);
    /// let encoded = Encoder::lossy(80).encode_planes((32, 20), source)?;
    /// # Ok::<(), towebp_encoder::EncodeError>(())
    /// ```
    ///
    /// # Errors
    /// Those of `source`; [`EncodeError::PixelCount`] if it gives planes of another size; those of
    /// [`Encoder::encode`].
    pub fn encode_planes(
        &self,
        (width, height): (u32, u32),
        source: impl Fn() -> Result<Planes, EncodeError>,
    ) -> Result<Encoded, EncodeError> {
        let bitstream = bitstream::lossy_planes((width, height), source, &self.options)?;
        self.assemble((width, height), &bitstream)
    }

    /// As [`Encoder::encode_planes`], of planes that a [`PlanesBuilder`](crate::PlanesBuilder) made
    /// with this estimate; `None` if [`Encoder::encode`] of the picture would try lossless coding.
    /// The file is the same as for the picture.
    ///
    /// # Errors
    /// Those of [`Encoder::encode_planes`].
    pub fn encode_planes_if_lossy(
        &self,
        (width, height): (u32, u32),
        source: impl Fn() -> Result<Planes, EncodeError>,
        estimate: &LosslessEstimate,
    ) -> Result<Option<Encoded>, EncodeError> {
        let plan = CodingPlan::by(estimate, &self.options);
        let lossy = || bitstream::lossy_planes((width, height), source, &self.options);
        let bitstream = auto_mode::encode_if_lossy(plan, lossy)?;
        let assemble = |lossy| self.assemble((width, height), &lossy);
        bitstream.map(assemble).transpose()
    }

    /// The most bytes that [`Encoder::encode`] allocates at a time, the file included, for a
    /// picture of `width` x `height` pixels. Never less than the truth, which noise comes near;
    /// photographs take half of it.
    pub fn memory(&self, (width, height): (u32, u32), color: ColorType) -> u64 {
        memory::peak((width, height), color, &self.options)
    }

    /// Encodes `picture` lossy and compares each sample that an independent decoder makes of the
    /// frame, which is returned, to what the encoder reconstructed.
    ///
    /// # Panics
    /// If a sample differs, or `picture` cannot be encoded or decoded.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn assert_decoders_agree(&self, picture: &Picture<'_>) -> Vec<u8> {
        use crate::pixel_source::PixelSource;
        let settings = bitstream::lossy_settings(&self.options);
        let frame = picture.with_rgb(self.options.workers(), |rgb| {
            Ok(crate::vp8::assert_decoders_agree(rgb, &settings))
        });
        frame.expect("it is not cancelled")
    }

    pub(crate) fn assemble(
        &self,
        size: (u32, u32),
        bitstream: &bitstream::Bitstream,
    ) -> Result<Encoded, EncodeError> {
        let workers = self.options.workers();
        let file = container::still(size, bitstream, &self.metadata, workers)?;
        Ok(Encoded::new(file, bitstream.coding()))
    }
}

#[cfg(test)]
mod tests;
