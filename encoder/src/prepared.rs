//! A picture that is encoded at several qualities, as a search for a size or a likeness does.

use crate::auto_mode::{self, CodingPlan};
use crate::bitstream::{self, Bitstream};
use crate::encoder::{Encoded, Encoder};
use crate::error::EncodeError;
use crate::lossy_estimate;
use crate::memory;
use crate::options::Mode;
use crate::picture::{ColorType, Picture};
use crate::ycbcr::{Activity, Planes};

/// A picture to be encoded several times, at other qualities: [`Encoder::prepare`] makes it of
/// pixels, [`Encoder::prepare_planes`] of `Y'CbCr`.
///
/// The results that do not depend on the quality are computed once, when they are first needed, and
/// kept: the choice of coding, the planes, alpha and the lossless file. Each file has the bytes of
/// a plain encoding at its quality, with one exception: with [`Mode::Auto`], pictures of up to
/// 64 x 64 pixels are the smaller one of both codings, even if lossy coding changes their colors.
/// The caller looks for bytes or a score, and could find no lossy file at any quality otherwise.
#[derive(Debug)]
pub struct Prepared<'a> {
    encoder: Encoder<'a>,
    size: (u32, u32),
    plan: CodingPlan,
    /// The pixels; `None` of a picture that came as planes.
    picture: Option<Picture<'a>>,
    planes: Option<Planes>,
    alpha: Alpha,
    lossless: Option<Bitstream>,
}

/// The coded alpha of a lossy file.
#[derive(Debug)]
enum Alpha {
    /// It was not coded yet.
    Unknown,
    /// All pixels are opaque.
    Opaque,
    /// The data of the `ALPH` chunk.
    Coded(Vec<u8>),
}

impl<'a> Encoder<'a> {
    /// Prepares `picture` to be encoded several times, at qualities that are not known yet: what
    /// does not depend on them is done once. The quality of this encoder has no effect.
    ///
    /// ```
    /// use towebp_encoder::{ColorType, Encoder, Picture};
    ///
    /// let pixels: Vec<u8> = (0..64 * 48 * 3u32).map(|at| (at * at >> 7) as u8).collect();
    /// let picture = Picture::new(64, 48, ColorType::Rgb8, &pixels)?;
    /// let mut prepared = Encoder::lossy(80).prepare(&picture)?;
    /// let small = prepared.encode_at(20)?;
    /// let large = prepared.encode_at(90)?;
    /// assert!(small.file.len() < large.file.len());
    /// assert_eq!(large, Encoder::lossy(90).encode(&picture)?);
    /// # Ok::<(), towebp_encoder::EncodeError>(())
    /// ```
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    pub fn prepare<'b>(&self, picture: &Picture<'b>) -> Result<Prepared<'b>, EncodeError>
    where
        Self: 'b,
    {
        Prepared::new(*self, *picture)
    }

    /// The most bytes that a [`Prepared`] picture of `width` x `height` pixels and its encodings
    /// take at a time, one file included.
    pub fn prepared_memory(&self, (width, height): (u32, u32), color: ColorType) -> u64 {
        memory::prepared_peak((width, height), color, &self.options)
    }

    /// Prepares a picture that is in `Y'CbCr` to be encoded several times, at qualities that are
    /// not known yet, lossy whatever the mode is, as by [`Encoder::encode_planes`]. The quality of
    /// this encoder has no effect.
    pub fn prepare_planes(&self, planes: Planes) -> Prepared<'a> {
        Prepared {
            encoder: self.mode(Mode::Lossy),
            size: (planes.width, planes.height),
            plan: CodingPlan::Lossy,
            picture: None,
            planes: Some(planes),
            alpha: Alpha::Opaque,
            lossless: None,
        }
    }
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(
        encoder: Encoder<'a>,
        picture: Picture<'a>,
    ) -> Result<Prepared<'a>, EncodeError> {
        Ok(Prepared {
            encoder,
            size: (picture.width(), picture.height()),
            plan: CodingPlan::choose(&picture, &encoder.options)?,
            picture: Some(picture),
            planes: None,
            alpha: Alpha::Unknown,
            lossless: None,
        })
    }

    /// Encodes the picture at `quality`, 0 to 100; higher values count as 100.
    ///
    /// # Errors
    /// Those of [`Encoder::encode`].
    pub fn encode_at(&mut self, quality: u8) -> Result<Encoded, EncodeError> {
        self.encoder.options.quality = quality;
        match self.plan {
            CodingPlan::Lossless => self.lossless_file(),
            CodingPlan::Lossy => self.lossy_up_to(usize::MAX),
            CodingPlan::LossyUpTo(most) => self.lossy_up_to(most),
            CodingPlan::Smaller => self.smaller(),
        }
    }

    /// Encodes the picture without loss, whatever its mode; `None` of one that came as planes.
    ///
    /// # Errors
    /// Those of [`Encoder::encode`].
    pub fn encode_lossless(&mut self) -> Result<Option<Encoded>, EncodeError> {
        let has_pixels = self.picture.is_some();
        has_pixels.then(|| self.lossless_file()).transpose()
    }

    /// How busy the picture is as it is coded lossy.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    pub fn activity(&mut self) -> Result<Activity, EncodeError> {
        Ok(Activity::of(self.planes()?))
    }

    /// Codes as [`CodingPlan::LossyUpTo`], with the kept analysis.
    fn lossy_up_to(&mut self, most: usize) -> Result<Encoded, EncodeError> {
        let mut lossy = self.lossy_without_alpha()?;
        lossy.alpha = self.alpha()?;
        if lossy.size() > most && self.lossless()?.size() <= lossy.size() {
            return self.lossless_file();
        }
        self.encoder.assemble(self.size, &lossy)
    }

    /// Codes as [`auto_mode::smaller`], with the kept analysis; small pictures may also change
    /// color.
    fn smaller(&mut self) -> Result<Encoded, EncodeError> {
        let (options, picture) = (&self.encoder.options, self.picture());
        let (quality, workers) = (options.quality, options.workers());
        let expected = lossy_estimate::expected_lossy_size(&picture, quality, workers)?;
        let reduced = bitstream::reduced(&picture, options)?;
        let exact = self.lossless()?.size();
        let reduced = reduced.filter(|reduced| reduced.size() < exact);
        let lossy = auto_mode::lossy_unless_larger(
            self,
            expected,
            || exact,
            Prepared::lossy_without_alpha,
            Prepared::alpha,
        )?;
        let lossless = reduced.as_ref().map_or(exact, Bitstream::size);
        match lossy.filter(|lossy| lossy.size() < lossless) {
            Some(lossy) => self.encoder.assemble(self.size, &lossy),
            None => match reduced {
                Some(reduced) => self.encoder.assemble(self.size, &reduced),
                None => self.lossless_file(),
            },
        }
    }

    /// The pixels of a picture that did not come as planes.
    fn picture(&self) -> Picture<'a> {
        self.picture
            .expect("planes are coded lossy, and have no alpha")
    }

    fn lossy_without_alpha(&mut self) -> Result<Bitstream, EncodeError> {
        let (size, options) = (self.size, self.encoder.options);
        let planes = self.planes()?;
        bitstream::lossy_planes(size, || Ok(planes), &options)
    }

    fn planes(&mut self) -> Result<&Planes, EncodeError> {
        let planes = match self.planes.take() {
            Some(planes) => planes,
            None => bitstream::planes(&self.picture(), &self.encoder.options)?,
        };
        Ok(self.planes.insert(planes))
    }

    fn alpha(&mut self) -> Result<Option<Vec<u8>>, EncodeError> {
        if let Alpha::Unknown = self.alpha {
            let coded = bitstream::lossy_alpha(&self.picture(), &self.encoder.options)?;
            self.alpha = coded.map_or(Alpha::Opaque, Alpha::Coded);
        }
        Ok(match &self.alpha {
            Alpha::Coded(data) => Some(data.clone()),
            Alpha::Unknown | Alpha::Opaque => None,
        })
    }

    fn lossless(&mut self) -> Result<&Bitstream, EncodeError> {
        let lossless = match self.lossless.take() {
            Some(lossless) => lossless,
            None => bitstream::lossless(&self.picture(), &self.encoder.options)?,
        };
        Ok(self.lossless.insert(lossless))
    }

    fn lossless_file(&mut self) -> Result<Encoded, EncodeError> {
        let (encoder, size) = (self.encoder, self.size);
        encoder.assemble(size, self.lossless()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Coding, Effort};
    use crate::testing::Random;

    /// A gradient, noise and flat squares, a part of it see-through.
    fn pixels(width: u32, height: u32, flat: u32) -> Vec<u8> {
        let mut random = Random::new(7);
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let pixel = |(x, y): (u32, u32)| {
            // Much noise is coded with loss; a little of it, on flat colors, without.
            let noise = random.byte() / if flat > 2 { 64 } else { 4 };
            let alpha = if y < height / 4 { (x * 2) as u8 } else { 255 };
            match (x / 16 + y / 16) % flat {
                0 => [(x * 3) as u8, (y * 2) as u8 ^ noise, noise, alpha],
                other => [(other * 40) as u8, 90, 200, alpha],
            }
        };
        places.flat_map(pixel).collect()
    }

    /// In each mode, in rising and falling order of qualities: what is kept between them
    /// has no effect.
    #[test]
    fn each_file_is_that_of_a_plain_encoding() {
        let (width, height) = (90, 61);
        let mut seen = Vec::new();
        for flat in [1, 30] {
            let rgba = pixels(width, height, flat);
            let rgb: Vec<u8> = rgba
                .chunks(4)
                .flat_map(|pixel| &pixel[..3])
                .copied()
                .collect();
            for (color, pixels) in [(ColorType::Rgb8, &rgb), (ColorType::Rgba8, &rgba)] {
                let picture = Picture::new(width, height, color, pixels).expect("good");
                for mode in [Mode::Auto, Mode::Lossy, Mode::Lossless] {
                    for effort in [Effort::Medium, Effort::High] {
                        let encoder = Encoder::lossy(50).mode(mode).effort(effort);
                        let encoder = encoder.alpha_quality(80).exif(b"exif");
                        let mut prepared = encoder.prepare(&picture).expect("good");
                        for quality in [80, 0, 100] {
                            let encoded = prepared.encode_at(quality).expect("good");
                            let plain = Encoder::auto(quality).mode(mode).effort(effort);
                            let plain = plain.alpha_quality(80).exif(b"exif");
                            let plain = plain.encode(&picture).expect("good");
                            assert!(encoded == plain, "{color:?} {mode:?} {effort:?} {quality}");
                            if mode == Mode::Auto {
                                seen.push(encoded.coding);
                            }
                        }
                        let lossless = prepared.encode_lossless().expect("good");
                        let plain = encoder.mode(Mode::Lossless).encode(&picture);
                        assert_eq!(lossless, plain.ok(), "{color:?} {mode:?} {effort:?}");
                    }
                }
            }
        }
        assert!(seen.contains(&Coding::Lossy) && seen.contains(&Coding::Lossless));
    }

    #[test]
    fn a_picture_that_is_larger_with_loss_than_was_expected_is_coded_without() {
        let [steep, fine] = [(12, 20), (16, 1)].map(|(values, step)| {
            let mut random = Random::new(7);
            let noise: Vec<u8> = (0..90 * 61)
                .map(|_| random.byte() % values * step)
                .collect();
            let picture = Picture::new(90, 61, ColorType::L8, &noise).expect("good");
            let mut prepared = Encoder::auto(50).prepare(&picture).expect("good");
            let plan = prepared.plan;
            assert!(matches!(plan, CodingPlan::LossyUpTo(_)), "{plan:?}");
            [0, 100].map(|quality| {
                let encoded = prepared.encode_at(quality).expect("good");
                let plain = Encoder::auto(quality).encode(&picture).expect("good");
                assert!(encoded == plain, "{values} values, quality {quality}");
                encoded.coding
            })
        });
        assert_eq!(steep, [Coding::Lossy, Coding::Lossless]);
        assert_eq!(fine, [Coding::Lossy; 2], "it is larger without loss");
    }

    #[test]
    fn a_tiny_picture_is_the_smaller_one_of_both_codings() {
        let mut random = Random::new(7);
        let noise: Vec<u8> = (0..48 * 48 * 3).map(|_| random.byte()).collect();
        let picture = Picture::new(48, 48, ColorType::Rgb8, &noise).expect("good");
        let mut prepared = Encoder::auto(50).prepare(&picture).expect("good");
        assert!(matches!(prepared.plan, CodingPlan::Smaller));
        let lossy = Encoder::lossy(20).encode(&picture).expect("good");
        assert!(prepared.encode_at(20).expect("good") == lossy);
    }

    #[test]
    fn planes_give_the_file_of_plain_planes() {
        let (luma, chroma) = (pixels(40, 20, 2), pixels(20, 10, 3));
        let size = (40, 80);
        let source = || Planes::copied_from(size, [&luma, &chroma, &chroma], [40, 20]);
        let mut prepared = Encoder::auto(3).prepare_planes(source().expect("good"));
        for quality in [90, 10, 200] {
            let plain = Encoder::lossy(quality).encode_planes(size, source);
            assert_eq!(prepared.encode_at(quality), plain, "quality {quality}");
        }
        assert_eq!(prepared.encode_lossless(), Ok(None));
    }
}
