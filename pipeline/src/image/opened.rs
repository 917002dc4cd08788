//! A file whose header was read, and from which a picture can be decoded.

use super::color::{self, Space};
use super::decoded::{Decoded, PlanesOfRgb};
use super::error::DecodeError;
use super::footprint::Footprint;
use super::format::Format;
use super::formats::jpeg::Luma;
use super::formats::{bmp, gif, jpeg, png, tiff, webp};
use super::frames::Frames;
use super::guard::{decode_guarded, read_guarded};
use super::limits::Limits;
use super::metadata::orientation::{self, Orientation};
use super::metadata::{Described, Descriptions, Keep, Metadata};
use super::pixels::Image;
use super::planes::{Planes, PlanesPath};
use super::resize::Resize;
use towebp_encoder::{Cancel, Cancelled, LosslessEstimate, Workers};

/// A file whose header was read. Nothing of the picture's size is allocated yet.
///
/// The header is walked once, by [`open`]: memory, metadata and decoding all use the values that
/// were found there. (The libraries that decode the pixels parse the parts that they are given on
/// their own.)
#[derive(Debug)]
pub struct Opened<'a> {
    bytes: &'a [u8],
    limits: Limits,
    header: Header<'a>,
    footprint: Footprint,
}

/// A picture whose rows became the encoder's planes as they came.
#[derive(Debug)]
pub struct EstimatedPlanes {
    /// The planes.
    pub planes: towebp_encoder::Planes,
    /// The estimate of the lossless size, if graphics are not taken.
    pub estimate: Option<LosslessEstimate>,
    /// The part of the metadata that is kept.
    pub metadata: Metadata,
}

/// The memory that decoding to planes takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanesMemory {
    /// Most bytes that it holds at a time, the planes included.
    pub peak: u64,
    /// The bytes of the planes.
    pub bytes: u64,
    /// Whether there are planes by the header alone, which leaves open whether the color space that
    /// the file names is sRGB.
    pub is_certain: bool,
}

/// The header of a file by its format.
#[derive(Debug)]
enum Header<'a> {
    Png(png::Header<'a>),
    Jpeg(jpeg::Header<'a>),
    Gif(gif::Header<'a>),
    Bmp(bmp::Header<'a>),
    Webp(webp::Header<'a>),
    Tiff(tiff::Header<'a>),
}

/// Reads the header of a file, and holds it to the limits.
///
/// # Errors
/// The file is not of the declared format, its header is damaged, or the picture is beyond the
/// limits. Damage behind the header is found when the picture is decoded.
pub fn open<'a>(
    bytes: &'a [u8],
    format: Format,
    limits: &Limits,
) -> Result<Opened<'a>, DecodeError> {
    check_format(bytes, format)?;
    read_guarded(|| {
        let (header, footprint) = match format {
            Format::Png => {
                let header = png::Header::read(bytes, limits)?;
                let footprint = header.footprint(limits)?;
                (Header::Png(header), footprint)
            }
            Format::Jpeg => {
                let header = jpeg::Header::read(bytes)?;
                let footprint = header.footprint(limits)?;
                (Header::Jpeg(header), footprint)
            }
            Format::Gif => {
                let header = gif::Header::read(bytes, limits)?;
                let footprint = header.footprint(limits)?;
                (Header::Gif(header), footprint)
            }
            Format::Bmp => {
                let header = bmp::Header::read(bytes)?;
                let footprint = header.footprint(limits)?;
                (Header::Bmp(header), footprint)
            }
            Format::Webp => {
                let header = webp::Header::read(bytes, limits)?;
                let footprint = header.footprint(limits)?;
                (Header::Webp(header), footprint)
            }
            Format::Tiff => {
                let header = tiff::Header::read(bytes, limits)?;
                let footprint = tiff::footprint(&header, limits)?;
                (Header::Tiff(header), footprint)
            }
        };
        Ok(Opened {
            bytes,
            limits: *limits,
            header,
            footprint,
        })
    })
}

impl<'a> Opened<'a> {
    /// The file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The file's format.
    pub fn format(&self) -> Format {
        match self.header {
            Header::Png(_) => Format::Png,
            Header::Jpeg(_) => Format::Jpeg,
            Header::Gif(_) => Format::Gif,
            Header::Bmp(_) => Format::Bmp,
            Header::Webp(_) => Format::Webp,
            Header::Tiff(_) => Format::Tiff,
        }
    }

    /// The bounds that the picture is held to.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The memory that [`Opened::decode`] takes.
    pub fn footprint(&self) -> &Footprint {
        &self.footprint
    }

    /// Width and height of the picture once it is oriented; `None` if the header leaves the
    /// orientation open.
    pub fn upright_size(&self) -> Option<(u32, u32)> {
        let Footprint { width, height, .. } = self.footprint;
        let orientation = self.orientation()?;
        Some(if orientation::swaps_sides(orientation) {
            (height, width)
        } else {
            (width, height)
        })
    }

    /// Most bytes that the metadata may have.
    pub fn metadata_bytes(&self) -> u64 {
        match &self.header {
            Header::Png(header) => header.metadata_bytes(),
            Header::Jpeg(header) => header.metadata_bytes(),
            Header::Gif(header) => header.metadata_bytes(),
            Header::Bmp(header) => header.metadata_bytes(),
            Header::Webp(header) => header.metadata_bytes(),
            Header::Tiff(header) => header.metadata_bytes(),
        }
    }

    /// The quantizers of a JPEG's luma, row by row.
    pub fn luma_quantizers(&self) -> Option<[u16; 64]> {
        match &self.header {
            Header::Jpeg(header) => header.luma_quantizers(),
            Header::Png(_)
            | Header::Gif(_)
            | Header::Bmp(_)
            | Header::Webp(_)
            | Header::Tiff(_) => None,
        }
    }

    /// Whether the pixels have the errors of an earlier lossy coding.
    pub fn is_lossy(&self) -> bool {
        match &self.header {
            Header::Jpeg(_) => true,
            Header::Webp(header) => header.is_lossy(),
            Header::Png(_) | Header::Gif(_) | Header::Bmp(_) | Header::Tiff(_) => false,
        }
    }

    /// Whether [`Opened::decode_planes`] or [`Opened::convert_to_planes`] may give planes.
    pub fn planes(&self) -> Option<PlanesMemory> {
        let Footprint { width, height, .. } = self.footprint;
        let bytes = Planes::bytes(width, height);
        let (path, peak) = match &self.header {
            Header::Png(header) => (header.planes(), self.footprint.planes_peak(bytes)),
            Header::Jpeg(header) => (header.planes(), header.planes_peak()),
            Header::Gif(_) | Header::Bmp(_) | Header::Webp(_) | Header::Tiff(_) => return None,
        };
        let is_certain = match path {
            PlanesPath::Never => return None,
            PlanesPath::Always => true,
            PlanesPath::IfSpaceIsSrgb => false,
        };
        Some(PlanesMemory {
            peak,
            bytes,
            is_certain,
        })
    }

    /// The file as an animation, whose frames can be drawn, if its format has any.
    pub fn animation(&self) -> Option<Animation<'_>> {
        match &self.header {
            Header::Gif(_) | Header::Png(_) | Header::Webp(_) => Some(Animation { opened: self }),
            Header::Jpeg(_) | Header::Bmp(_) | Header::Tiff(_) => None,
        }
    }

    /// Decodes the picture (the first frame of a GIF), oriented by its Exif, in sRGB or in the
    /// color space of a profile that is kept. A picture whose alpha channel is opaque throughout
    /// becomes [`super::Layout::Rgb`].
    ///
    /// # Errors
    /// See [`DecodeError`]. Damaged metadata is no error, and is not kept.
    pub fn decode(
        &self,
        keep: Keep,
        workers: Workers<'_>,
    ) -> Result<(Image, Metadata), DecodeError> {
        let cancel = workers.cancel();
        let described = self.described(keep)?;
        decode_guarded(cancel, || {
            let Decoded {
                image,
                is_gray,
                space,
            } = self.decode_stored(keep, workers)?;
            let image = image.drop_opaque_alpha(cancel)?;
            let (image, icc) = convert_color(image, space, is_gray, keep, cancel)?;
            let image = orient(image, self.exif(), workers)?;
            Ok((image, Metadata::kept(keep, icc, described)))
        })
    }

    /// Decodes the picture as [`Opened::decode`] and resizes it, if [`Opened::upright_size`] is
    /// known. A JPEG that becomes much smaller is not decoded in its full size.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn decode_resized(
        &self,
        keep: Keep,
        resize: Resize,
        workers: Workers<'_>,
    ) -> Result<(Image, Metadata), DecodeError> {
        let cancel = workers.cancel();
        let described = self.described(keep)?;
        decode_guarded(cancel, || {
            let orientation = self.orientation().unwrap_or(Orientation::NoTransforms);
            let Footprint { width, height, .. } = self.footprint;
            let resize = resize.before(orientation, (width, height));
            let (decoded, eighths) = self.decode_near(keep, resize.least_eighths(), workers)?;
            let image = decoded.image.drop_opaque_alpha(cancel)?;
            let (image, icc) = convert_color(image, decoded.space, decoded.is_gray, keep, cancel)?;
            let resized = resize.at(eighths).apply(&image, workers)?;
            drop(image);
            let image = orientation::apply(resized, orientation, workers)?;
            Ok((image, Metadata::kept(keep, icc, described)))
        })
    }

    /// Most bytes that [`Opened::decode_resized`] holds at a time, the picture included, by some
    /// threads.
    pub fn resized_peak(&self, resize: Resize, threads: usize) -> u64 {
        let Footprint { width, height, .. } = self.footprint;
        let orientation = self.orientation().unwrap_or(Orientation::NoTransforms);
        let resize = resize.before(orientation, (width, height));
        let (source, resize) = match (self.scalable(), resize.least_eighths()) {
            (Some(header), eighths @ 1..8) => {
                (header.scaled_footprint(eighths), resize.at(eighths))
            }
            _ => (self.footprint, resize),
        };
        let resized = resize.pixel_count() * source.layout.channels() as u64;
        let resizing = source.pixel_bytes() + 2 * resized + resize.bytes(source.width, threads);
        source.peak().max(resizing).max(2 * resized)
    }

    /// Decodes the picture as its file has it in `Y'CbCr`, oriented by its Exif; `None` if it has
    /// to be decoded to RGB.
    ///
    /// # Errors
    /// As [`Opened::decode`].
    pub fn decode_planes(
        &self,
        keep: Keep,
        luma: Luma,
        workers: Workers<'_>,
    ) -> Result<Option<(Planes, Metadata)>, DecodeError> {
        let cancel = workers.cancel();
        let Header::Jpeg(header) = &self.header else {
            return Ok(None);
        };
        let described = self.described(keep)?;
        decode_guarded(cancel, || {
            if !header.stays_in_planes() {
                return Ok(None);
            }
            let decoded = jpeg::decode_planes(self.bytes, header, luma, &self.limits, workers)?;
            let metadata = Metadata::kept(keep, decoded.icc, described);
            Ok(Some((decoded.planes, metadata)))
        })
    }

    /// Decodes the picture, and converts its rows to the encoder's planes as they come, so that it
    /// is never RGB as a whole; `None` if it has to be. Unless it `takes_graphics`, it is also
    /// `None` if the file is as small as a graphic's.
    ///
    /// # Errors
    /// As [`Opened::decode`].
    pub fn convert_to_planes(
        &self,
        keep: Keep,
        takes_graphics: bool,
        workers: Workers<'_>,
    ) -> Result<Option<EstimatedPlanes>, DecodeError> {
        let Header::Png(header) = &self.header else {
            return Ok(None);
        };
        let described = self.described(keep)?;
        decode_guarded(workers.cancel(), || {
            let (bytes, limits) = (self.bytes, &self.limits);
            let decoded = png::decode_planes(bytes, keep, takes_graphics, header, limits, workers)?;
            Ok(decoded.map(|decoded| {
                let PlanesOfRgb {
                    planes,
                    estimate,
                    icc,
                } = decoded;
                let metadata = Metadata::kept(keep, icc, described);
                EstimatedPlanes {
                    planes,
                    estimate,
                    metadata,
                }
            }))
        })
    }

    /// Decodes the picture as stored, with `eighths` pixels in place of 8 on each side if the
    /// format can, and returns the number that it has.
    fn decode_near(
        &self,
        keep: Keep,
        eighths: u32,
        workers: Workers<'_>,
    ) -> Result<(Decoded, u32), DecodeError> {
        if let Some(header) = self.scalable()
            && eighths < 8
        {
            let (limits, cancel) = (&self.limits, workers.cancel());
            let scaled = jpeg::decode_scaled(self.bytes, header, eighths, limits, cancel)?;
            return Ok((scaled, eighths));
        }
        Ok((self.decode_stored(keep, workers)?, 8))
    }

    /// The header of a JPEG that can be decoded at a smaller scale.
    fn scalable(&self) -> Option<&jpeg::Header<'a>> {
        match &self.header {
            Header::Jpeg(header) if header.can_be_scaled() => Some(header),
            _ => None,
        }
    }

    /// The orientation of the picture; `None` if the header leaves it open.
    fn orientation(&self) -> Option<Orientation> {
        match &self.header {
            Header::Jpeg(header) => Some(header.orientation()),
            Header::Webp(header) => Some(header.orientation()),
            Header::Tiff(header) => Some(header.orientation()),
            // Exif may stand behind the pixels.
            Header::Png(header) if header.has_exif() => None,
            Header::Png(_) | Header::Gif(_) | Header::Bmp(_) => Some(Orientation::NoTransforms),
        }
    }

    fn decode_stored(&self, keep: Keep, workers: Workers<'_>) -> Result<Decoded, DecodeError> {
        let cancel = workers.cancel();
        match &self.header {
            Header::Png(header) => png::decode(self.bytes, keep, header, &self.limits, workers),
            Header::Jpeg(header) => jpeg::decode(self.bytes, header, &self.limits, cancel),
            Header::Gif(header) => header.decode_first(&self.limits, cancel),
            Header::Bmp(header) => bmp::decode(self.bytes, header, &self.limits, cancel),
            Header::Webp(header) => webp::decode(header, &self.limits, cancel),
            Header::Tiff(header) => tiff::decode(header, &self.limits, cancel),
        }
    }

    /// Exif, from its TIFF header on. A TIFF file has the tags of Exif's first directory itself.
    fn exif(&self) -> Option<&'a [u8]> {
        match &self.header {
            Header::Png(header) => header.exif(),
            Header::Jpeg(header) => header.exif(),
            Header::Webp(header) => header.exif(),
            Header::Tiff(header) => Some(header.directory()),
            Header::Gif(_) | Header::Bmp(_) => None,
        }
    }

    /// The descriptions of which `keep` selects a part.
    ///
    /// # Errors
    /// A part is selected of descriptions that are larger than any of use.
    fn described(&self, keep: Keep) -> Result<Described<'a>, DecodeError> {
        const MOST: usize = 8 << 20;
        let (mut exif, xmp) = (self.exif(), self.xmp());
        if keep.descriptions == Descriptions::All && self.format() == Format::Tiff {
            // The picture would be in it.
            exif = None;
        }
        let (name, bytes, word) = match keep.descriptions {
            Descriptions::Nothing => return Ok(Described::default()),
            Descriptions::Copyright => ("XMP", xmp.map_or(0, <[u8]>::len), "copyright"),
            Descriptions::All => ("Exif", exif.map_or(0, <[u8]>::len), "keep"),
        };
        if bytes > MOST {
            return Err(DecodeError::Invalid(format!(
                "its {name} has {bytes} bytes, and metadata={word} takes at most {MOST}; metadata=strip leaves it out"
            )));
        }
        let iptc = match &self.header {
            Header::Jpeg(header) => header.iptc(),
            Header::Tiff(header) => header.iptc(),
            _ => None,
        };
        Ok(Described { exif, xmp, iptc })
    }

    fn xmp(&self) -> Option<&'a [u8]> {
        match &self.header {
            Header::Png(header) => header.xmp(),
            Header::Jpeg(header) => header.xmp(),
            Header::Gif(header) => header.xmp(),
            Header::Webp(header) => header.xmp(),
            Header::Tiff(header) => header.xmp(),
            Header::Bmp(_) => None,
        }
    }
}

/// A file whose frames can be drawn.
#[derive(Clone, Copy, Debug)]
pub struct Animation<'a> {
    opened: &'a Opened<'a>,
}

impl<'a> Animation<'a> {
    /// Whether there is more than one whole frame.
    pub fn is_animated(&self) -> bool {
        match &self.opened.header {
            Header::Gif(header) => header.is_animated(),
            Header::Png(header) => header.is_animated(),
            Header::Webp(header) => header.is_animated(),
            Header::Jpeg(_) | Header::Bmp(_) | Header::Tiff(_) => false,
        }
    }

    /// The memory that [`Animation::frames`] takes.
    ///
    /// # Errors
    /// A frame is beyond the limits, or all frames together are.
    pub fn footprint(&self) -> Result<Footprint, DecodeError> {
        let Opened {
            footprint, limits, ..
        } = self.opened;
        match &self.opened.header {
            Header::Gif(header) => header.animation_footprint(footprint, limits),
            Header::Png(header) => header.animation_footprint(footprint, limits),
            Header::Webp(header) => header.animation_footprint(footprint, limits),
            Header::Jpeg(_) | Header::Bmp(_) | Header::Tiff(_) => Ok(*footprint),
        }
    }

    /// Checks the pixels of all frames together if each is shown on a canvas of so many pixels, as
    /// it is once the animation is resized.
    ///
    /// # Errors
    /// [`DecodeError::TooManyFrames`] or [`DecodeError::AnimationTooLarge`].
    pub fn check_pixels(&self, canvas: u64) -> Result<(), DecodeError> {
        let limits = &self.opened.limits;
        match &self.opened.header {
            Header::Gif(header) => header.check_animation(canvas, limits),
            Header::Png(header) => header.check_animation(canvas, limits),
            Header::Webp(header) => header.check_animation(canvas, limits),
            Header::Jpeg(_) | Header::Bmp(_) | Header::Tiff(_) => Ok(()),
        }
    }

    /// The frames, of which none is drawn yet.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn frames(&self, keep: Keep, cancel: &'a Cancel<'a>) -> Result<Frames<'a>, DecodeError> {
        let limits = &self.opened.limits;
        match &self.opened.header {
            Header::Gif(header) => Ok(Frames::Gif(Box::new(header.frames(limits, cancel)?))),
            Header::Png(header) => Ok(Frames::Png(png::frames(header, keep, limits, cancel)?)),
            Header::Webp(header) => Ok(Frames::Webp(webp::frames(header, keep, limits, cancel))),
            Header::Jpeg(_) | Header::Bmp(_) | Header::Tiff(_) => {
                unreachable!("these have no frames")
            }
        }
    }

    /// The metadata that is kept: XMP alone of a GIF, since browsers apply no profile of it.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn metadata(&self, keep: Keep, cancel: &Cancel<'_>) -> Result<Metadata, DecodeError> {
        let icc = match &self.opened.header {
            Header::Png(header) if keep.profile => {
                decode_guarded(cancel, || png::kept_profile(header, keep, cancel))?
            }
            Header::Webp(header) => decode_guarded(cancel, || Ok(header.kept_profile(keep)))?,
            _ => None,
        };
        let described = self.opened.described(keep)?;
        Ok(Metadata::kept(keep, icc, described))
    }
}

/// Converts the samples to sRGB, unless they are in the space of a profile that is kept, which is
/// then returned.
fn convert_color(
    mut image: Image,
    space: Option<Space>,
    is_gray: bool,
    keep: Keep,
    cancel: &Cancel<'_>,
) -> Result<(Image, Option<Vec<u8>>), Cancelled> {
    match space {
        Some(Space::Icc(profile)) if keep.profile && color::is_rgb(&profile) => {
            return Ok((image, Some(profile)));
        }
        Some(space) => color::convert_to_srgb(&mut image, &space, is_gray, cancel)?,
        None => {}
    }
    Ok((image, None))
}

/// Rotates and mirrors the picture by its Exif.
fn orient(image: Image, exif: Option<&[u8]>, workers: Workers<'_>) -> Result<Image, Cancelled> {
    match exif.and_then(orientation::read) {
        Some(orientation) => orientation::apply(image, orientation, workers),
        None => Ok(image),
    }
}

fn check_format(bytes: &[u8], declared: Format) -> Result<(), DecodeError> {
    let found = Format::sniff(bytes);
    if found == Some(declared) {
        return Ok(());
    }
    Err(DecodeError::WrongFormat { declared, found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::formats::{jpeg, png};
    use crate::image::pixels::Layout;

    fn decode(bytes: &[u8], format: Format) -> Result<Image, DecodeError> {
        let opened = open(bytes, format, &Limits::default())?;
        let (image, _) = opened.decode(Keep::NOTHING, Workers::new(1, None, &Cancel::never()))?;
        Ok(image)
    }

    fn xmp(bytes: &[u8], format: Format) -> Option<Vec<u8>> {
        let opened = open(bytes, format, &Limits::default()).ok()?;
        assert!(opened.metadata_bytes() >= opened.xmp().map_or(0, <[u8]>::len) as u64);
        opened.xmp().map(<[u8]>::to_vec)
    }

    #[test]
    fn bytes_of_another_format_are_named() {
        let gif = b"GIF89a\x01\x00\x01\x00\x00\x00\x00";
        assert_eq!(
            decode(gif, Format::Png),
            Err(DecodeError::WrongFormat {
                declared: Format::Png,
                found: Some(Format::Gif)
            })
        );
        assert_eq!(
            decode(b"", Format::Bmp),
            Err(DecodeError::WrongFormat {
                declared: Format::Bmp,
                found: None
            })
        );
    }

    #[test]
    fn orientation_and_profile_are_applied_in_every_format() {
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

        let image = decode(&jpeg, Format::Jpeg).expect("a valid picture");
        assert_eq!((image.width, image.height), (8, 16));
        assert_eq!(
            (&image.pixels[..3], &image.pixels[15 * 24..][..3]),
            (&[0; 3][..], &[255; 3][..])
        );

        let image = decode(&png, Format::Png).expect("a valid picture");
        // Linear 55 is sRGB 127.95. The opaque alpha channel is gone.
        let expected = Image {
            width: 1,
            height: 2,
            layout: Layout::Rgb,
            pixels: vec![128, 128, 128, 255, 255, 255],
        };
        assert_eq!(image, expected);
    }

    /// A PNG with these chunks behind its header. Only the header's checksum is looked at.
    fn png_with(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
        const HEADER: usize = 8 + 25;
        let info = png::tests::info(1, 1, ::png::ColorType::Rgb, ::png::BitDepth::Eight);
        let plain = png::tests::png(info, &[1, 2, 3]);
        let mut file = plain[..HEADER].to_vec();
        for (name, data) in chunks {
            file.extend((data.len() as u32).to_be_bytes());
            file.extend([&name[..], data, &[0; 4]].concat());
        }
        [&file, &plain[HEADER..]].concat()
    }

    fn jpeg_with(segments: &[u8]) -> Vec<u8> {
        jpeg::tests::jpeg(8, 8, &[&[0]], segments)
    }

    const GIF_FRAME: &[u8] = b",\0\0\0\0\x01\0\x01\0\x80abcdef\x02\x02\x44\x01\0";

    /// A GIF of these blocks, with a table of four colors.
    fn gif_with(blocks: &[u8]) -> Vec<u8> {
        let screen = [2, 0, 2, 0, 0x81, 0, 0];
        [b"GIF89a", &screen[..], &[7; 12], blocks, b";"].concat()
    }

    fn gif_xmp(packet: &[u8]) -> Vec<u8> {
        let mut block = [b"!\xff\x0bXMP DataXMP", packet, &[1]].concat();
        block.extend((0..=255).rev());
        block.push(0);
        block
    }

    #[test]
    fn a_packet_is_found_in_each_format() {
        let text = b"XML:com.adobe.xmp\0\0\0en\0word\0<x/>";
        let png = png_with(&[(b"iTXt", b"Comment\0\0\0\0\0x"), (b"iTXt", text)]);
        assert_eq!(xmp(&png, Format::Png).as_deref(), Some(&b"<x/>"[..]));

        let packet = jpeg::tests::segment(0xe1, b"http://ns.adobe.com/xap/1.0/\0<x/>");
        let exif = jpeg::tests::segment(0xe1, b"Exif\0\0MM");
        let jpeg = jpeg_with(&[&exif[..], &[0xff], &packet].concat());
        assert_eq!(xmp(&jpeg, Format::Jpeg).as_deref(), Some(&b"<x/>"[..]));
        let plain = jpeg_with(&exif);
        let (front, end) = plain.split_at(plain.len() - 2);
        let behind = [front, &packet, end].concat();
        let found = xmp(&behind, Format::Jpeg);
        assert_eq!(found, None, "behind the scan is no place for it");

        let long = [b"<".repeat(1000), b"/>".to_vec()].concat();
        let pause = b"!\xf9\x04\0\0\0\0\0";
        let gif = gif_with(&[GIF_FRAME, pause, &gif_xmp(&long)].concat());
        assert_eq!(xmp(&gif, Format::Gif), Some(long));
        assert_eq!(xmp(&gif_with(GIF_FRAME), Format::Gif), None);
    }

    #[test]
    fn files_that_are_cut_anywhere_have_a_whole_packet_or_none() {
        let packet = b"<x:xmpmeta/>";
        let text = [b"XML:com.adobe.xmp\0\0\0\0\0", &packet[..]].concat();
        let png = png_with(&[(b"iTXt", &text)]);
        let app1 = [b"http://ns.adobe.com/xap/1.0/\0", &packet[..]].concat();
        let jpeg = jpeg_with(&jpeg::tests::segment(0xe1, &app1));
        let gif = gif_with(&[GIF_FRAME, &gif_xmp(packet)].concat());
        for (file, format) in [(png, Format::Png), (jpeg, Format::Jpeg), (gif, Format::Gif)] {
            for length in 0..file.len() {
                let found = xmp(&file[..length], format);
                assert!(
                    found.as_deref().is_none_or(|found| found == packet),
                    "{format} of {length} bytes: {found:?}"
                );
            }
            assert_eq!(xmp(&file, format).as_deref(), Some(&packet[..]));
        }
    }
}
