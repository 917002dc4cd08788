//! The headers of a JPEG: the frame header and the first scan's (ITU-T T.81, B.2.2 and B.2.3), and
//! the other segments. They determine the picture's kind, the memory that decoding takes, whether
//! it can stay in `Y'CbCr`, and its metadata.

use super::profile::{self, Chunks};
use super::segments::{Parts, Segment, Segments, damaged, has_too_many_tables};
use super::skim;
use crate::image::color::{is_srgb, profile_bytes};
use crate::image::error::DecodeError;
use crate::image::footprint::Footprint;
use crate::image::limits::Limits;
use crate::image::metadata::IPTC_NAME;
use crate::image::metadata::orientation::{self, Orientation};
use crate::image::pixels::Layout;
use crate::image::planes::{self, Planes, PlanesPath};

/// The headers in front of the first scan's data.
#[derive(Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Width in pixels.
    width: u16,
    /// Height in pixels.
    height: u16,
    /// Whether the frame is SOF2, in which each scan adds to all coefficients.
    is_progressive: bool,
    /// Horizontal and vertical sampling factors of each component, 0 to 15.
    sampling: Vec<[u8; 2]>,
    /// Whether the components are named R, G and B.
    is_named_rgb: bool,
    /// The number of components in the first scan.
    scan_components: usize,
    /// The number of MCUs of that scan from one restart marker to the next; 0 if it has none.
    restart_interval: usize,
    applications: Applications<'a>,
    /// The bytes of all segments' data: an upper bound of the metadata.
    segment_bytes: u64,
    /// The segments that the decoder needs; the last one is the scan header.
    pub segments: Vec<Segment<'a>>,
    /// The parts of the file in which they are, the start-of-image marker in front of them.
    pub parts: Parts<'a>,
    /// The offset in the file at which that scan's data begins.
    pub scan_begin: usize,
    /// The bytes from there to the end of the file.
    scan_bytes: usize,
}

/// The contents of the application segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Applications<'a> {
    /// The last Exif, from its TIFF header on.
    exif: Option<&'a [u8]>,
    /// The XMP packet (XMP specification, part 3, 1.1.3); of a packet in several segments the first
    /// one, which makes sense without the others.
    xmp: Option<&'a [u8]>,
    /// The first image resources of Photoshop.
    iptc: Option<&'a [u8]>,
    /// The segments of ICC profiles.
    profile: Chunks<'a>,
    /// The color transform that Adobe's segment names.
    transform: Option<u8>,
}

/// The largest number of segments that the decoder needs: real files have a dozen.
const MOST_SEGMENTS: usize = 1024;

/// The least length of Adobe's segment: its last byte is the transform, and more may follow.
const ADOBE_BYTES: usize = 12;

impl<'a> Applications<'a> {
    fn orientation(&self) -> Orientation {
        let orientation = self.exif.and_then(orientation::read);
        orientation.unwrap_or(Orientation::NoTransforms)
    }

    fn add(&mut self, marker: u8, segment: &'a [u8]) {
        let exif = segment.strip_prefix(orientation::JPEG_PREFIX);
        if let Some(exif) = exif.filter(|exif| marker == 0xe1 && !exif.is_empty()) {
            self.exif = Some(exif);
        }
        let xmp = segment.strip_prefix(b"http://ns.adobe.com/xap/1.0/\0");
        if let Some(xmp) = xmp.filter(|_| marker == 0xe1) {
            self.xmp.get_or_insert(xmp);
        }
        let iptc = segment.strip_prefix(IPTC_NAME);
        if let Some(iptc) = iptc.filter(|_| marker == 0xed) {
            self.iptc.get_or_insert(iptc);
        }
        let profile = segment.strip_prefix(profile::NAME);
        if let Some(profile) = profile.filter(|_| marker == 0xe2) {
            self.profile.add(profile);
        }
        if is_adobe(marker, segment) {
            self.transform = Some(segment[ADOBE_BYTES - 1]);
        }
    }
}

fn is_adobe(marker: u8, segment: &[u8]) -> bool {
    marker == 0xee && segment.starts_with(b"Adobe") && segment.len() >= ADOBE_BYTES
}

/// Whether the decoder needs a segment to decode the samples. Of the application segments it needs
/// Adobe's color transform, and the mark of files whose tables are those of T.81, K.3.
fn is_needed(marker: u8, segment: &[u8]) -> bool {
    match marker {
        0xe0 => segment.starts_with(b"AVI1\0"),
        0xee => is_adobe(marker, segment),
        // Metadata, comments, and segments that are reserved or of the hierarchical kinds.
        0xe1..=0xfe | 0xc8 | 0xde | 0xdf => false,
        _ => true,
    }
}

impl<'a> Header<'a> {
    /// Reads the segments up to the first scan.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] if they are damaged or have no frame header, or if it is of a kind
    /// that hardly any program reads.
    pub fn read(bytes: &'a [u8]) -> Result<Header<'a>, DecodeError> {
        let mut frame: Option<Header<'a>> = None;
        let mut applications = Applications::default();
        let mut restart_interval = 0;
        let mut segment_bytes = 0;
        let mut parts = Parts::default();
        let mut segments = Vec::new();
        // The range of needed segments that follow each other without a gap.
        let mut needed = 0..2.min(bytes.len());
        for segment in Segments::of(bytes) {
            let Segment {
                marker,
                data,
                ref place,
            } = segment;
            if has_too_many_tables(marker, data) {
                return Err(damaged());
            }
            if marker != 0xda {
                segment_bytes += data.len() as u64;
            }
            if is_needed(marker, data) {
                if place.start != needed.end {
                    parts.push(&bytes[needed]).ok_or_else(damaged)?;
                    needed = place.clone();
                }
                needed.end = place.end;
                if segments.len() == MOST_SEGMENTS {
                    return Err(damaged());
                }
                segments.push(segment.clone());
            }
            match marker {
                0xc4 | 0xc8 | 0xcc => {} // tables, and a reserved marker
                // The decoder rejects a second one.
                0xc0..=0xcf if frame.is_none() => frame = Some(Header::of_frame(marker, data)?),
                0xdd => {
                    let interval = data.first_chunk().copied().ok_or_else(damaged)?;
                    restart_interval = usize::from(u16::from_be_bytes(interval));
                }
                0xe0..=0xef => applications.add(marker, data),
                0xda => {
                    let frame = frame.ok_or_else(damaged)?;
                    parts.push(&bytes[needed]).ok_or_else(damaged)?;
                    return Ok(Header {
                        scan_components: usize::from(*data.first().ok_or_else(damaged)?),
                        restart_interval,
                        applications,
                        segment_bytes,
                        segments,
                        parts,
                        scan_begin: place.end,
                        scan_bytes: bytes.len() - place.end,
                        ..frame
                    });
                }
                _ => {}
            }
        }
        Err(damaged())
    }

    /// The memory that [`super::decode`] takes.
    ///
    /// # Errors
    /// The picture's size is not within `limits`.
    pub fn footprint(&self, limits: &Limits) -> Result<Footprint, DecodeError> {
        let (width, height) = (u32::from(self.width), u32::from(self.height));
        limits.check(width, height)?;
        Ok(Footprint {
            width,
            height,
            layout: Layout::Rgb,
            decoder: self.decoder_bytes(),
        })
    }

    /// Most bytes that the metadata may have.
    pub fn metadata_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// The geometry that the decoder has to find, too: width, height, whether the frame is
    /// progressive, and the sampling factors of each component.
    pub fn geometry(&self) -> (u16, u16, bool, Vec<[usize; 2]>) {
        let sampling = self.sampling.iter().map(|pair| pair.map(usize::from));
        (
            self.width,
            self.height,
            self.is_progressive,
            sampling.collect(),
        )
    }

    /// The least number of restart markers in the first scan, if that holds all components.
    pub fn restarts(&self) -> usize {
        if self.restart_interval == 0 || self.scan_components != self.components() {
            return 0;
        }
        let mcus = match self.components() {
            1 => u64::from(self.width.div_ceil(8)) * u64::from(self.height.div_ceil(8)),
            _ => self.mcu_count(),
        };
        (mcus as usize)
            .div_ceil(self.restart_interval)
            .saturating_sub(1)
    }

    /// The ICC profile, put together; `None` if there is none that can be used.
    pub fn profile(&self) -> Option<Vec<u8>> {
        self.applications.profile.whole()
    }

    /// Exif from its TIFF header on.
    pub fn exif(&self) -> Option<&'a [u8]> {
        self.applications.exif
    }

    /// The XMP packet.
    pub fn xmp(&self) -> Option<&'a [u8]> {
        self.applications.xmp
    }

    /// The image resources of Photoshop, which may have IPTC.
    pub fn iptc(&self) -> Option<&'a [u8]> {
        self.applications.iptc
    }

    /// Whether the picture can stay in `Y'CbCr` 4:2:0. Its samples have to be that or gray, their
    /// colors those of sRGB, and each chroma sample still has to be the mean of 2x2 pixels once the
    /// picture is oriented. A progressive file in 4:2:0 is decoded to RGB: its planes save neither
    /// time nor memory, since the decoder holds the coefficients twice for them, and take 0.7 and 2
    /// % more bytes at equal SSIMULACRA2 (nine photographs, qualities 75 and 90).
    pub fn planes(&self) -> PlanesPath {
        let is_gray = self.is_gray();
        let is_ycbcr = self.sampling == [[2, 2], [1, 1], [1, 1]]
            && match self.applications.transform {
                None => !self.is_named_rgb,
                transform => transform == Some(1),
            };
        let can_orient = || planes::can_orient(self.width, self.height, self.orientation());
        let can_stay = is_gray || (is_ycbcr && !self.is_progressive && can_orient());
        match (can_stay, self.applications.profile.is_empty()) {
            (false, _) => PlanesPath::Never,
            (true, true) => PlanesPath::Always,
            (true, false) if self.applications.profile.single().is_none() => PlanesPath::Never,
            (true, false) => PlanesPath::IfSpaceIsSrgb,
        }
    }

    /// Whether the samples are gray, by the headers.
    pub fn is_gray(&self) -> bool {
        self.components() == 1 && matches!(self.applications.transform, None | Some(0))
    }

    /// Whether [`super::decode_scaled`] may give the picture: the samples are gray or `Y'CbCr` of
    /// common sampling, in a sequential file whose first scan has all of them.
    pub fn can_be_scaled(&self) -> bool {
        let is_ycbcr = self.components() == 3
            && match self.applications.transform {
                None => !self.is_named_rgb,
                transform => transform == Some(1),
            };
        let is_usual = |axis: usize| {
            let factors = || self.sampling.iter().map(|pair| pair[axis]);
            factors().all(|factor| matches!(factor, 1 | 2)) && factors().max() == factors().next()
        };
        (is_ycbcr || self.is_gray())
            && !self.is_progressive
            && self.scan_components == self.components()
            && is_usual(0)
            && is_usual(1)
    }

    /// The memory that [`super::decode_scaled`] takes, with `size` pixels in place of 8 on each
    /// side.
    pub fn scaled_footprint(&self, size: u32) -> Footprint {
        /// Bytes per pixel of the width for blocks and samples of a row of MCUs, and those of
        /// tables and of bits.
        const ROWS: u64 = 128;
        const TABLES: u64 = 256 << 10;
        let [width, height] = [self.width, self.height].map(u32::from);
        Footprint {
            width: (width * size).div_ceil(8),
            height: (height * size).div_ceil(8),
            layout: Layout::Rgb,
            decoder: self.decoder_bytes() + u64::from(width + 64) * ROWS + TABLES,
        }
    }

    /// The number of pixels of a row.
    pub fn width(&self) -> usize {
        usize::from(self.width)
    }

    /// Whether the picture stays in `Y'CbCr`, by its profile, too.
    pub fn stays_in_planes(&self) -> bool {
        match self.planes() {
            PlanesPath::Never => false,
            PlanesPath::Always => true,
            PlanesPath::IfSpaceIsSrgb => self.applications.profile.single().is_some_and(is_srgb),
        }
    }

    /// Whether two threads may decode to planes: the picture is in 4:2:0, in one scan, and so large
    /// that it pays, which takes some milliseconds of work.
    pub fn pays_two_threads(&self) -> bool {
        const LEAST_PIXELS: u64 = 1 << 20;
        let pixels = u64::from(self.width) * u64::from(self.height);
        let is_420 = self.sampling == [[2, 2], [1, 1], [1, 1]] && !self.is_progressive;
        is_420 && self.scan_components == self.components() && pixels >= LEAST_PIXELS
    }

    /// The height in pixels.
    pub fn height(&self) -> usize {
        usize::from(self.height)
    }

    /// The number of MCUs in a row of a picture in 4:2:0, and the number of rows.
    pub fn mcus(&self) -> (usize, usize) {
        let [width, height] = [self.width, self.height].map(|side| usize::from(side).div_ceil(16));
        (width, height)
    }

    /// The number of MCUs from one restart marker to the next; 0 if there are no such markers.
    pub fn restart_interval(&self) -> usize {
        self.restart_interval
    }

    /// The orientation that Exif requests.
    pub fn orientation(&self) -> Orientation {
        self.applications.orientation()
    }

    /// The quantizers of the first component, luma, row by row (T.81, B.2.4.1); `None` if they do
    /// not stand in front of the first scan.
    pub fn luma_quantizers(&self) -> Option<[u16; 64]> {
        /// The offset of the first component's table in the frame header's data.
        const SELECTOR: usize = 8;
        let mut tables = [None; 4];
        let mut selector = None;
        for Segment { marker, data, .. } in &self.segments {
            match marker {
                0xdb => read_quantizers(data, &mut tables)?,
                0xc0..=0xc2 => selector = data.get(SELECTOR),
                _ => {}
            }
        }
        *tables.get(usize::from(*selector?))?
    }

    /// Whether each scan adds to all coefficients.
    pub fn is_progressive(&self) -> bool {
        self.is_progressive
    }

    /// Most bytes that decoding to planes holds at a time, in the end the planes among them.
    pub fn planes_peak(&self) -> u64 {
        let planes = Planes::bytes(u32::from(self.width), u32::from(self.height));
        // One plane after the other is oriented.
        let orienting = planes + planes * 2 / 3;
        // Progressive coefficients are there twice before the planes are.
        let collecting = if self.is_progressive {
            self.coefficient_bytes()
        } else {
            0
        };
        (self.decoder_bytes() + planes.max(collecting)).max(orienting)
    }

    /// The offset of the frame header's data in the parts.
    pub fn frame_offset(&self) -> Option<usize> {
        let frame = |segment: &Segment<'_>| matches!(segment.marker, 0xc0..=0xc2);
        let before = self.segments.iter().take_while(|segment| !frame(segment));
        // Behind the start-of-image marker, and marker and length of its own.
        let offset = 2 + before.map(|segment| segment.place.len()).sum::<usize>() + 4;
        self.segments.iter().any(frame).then_some(offset)
    }

    /// The number of components.
    fn components(&self) -> usize {
        self.sampling.len()
    }

    /// Most bytes that the decoder holds beside the pixels.
    fn decoder_bytes(&self) -> u64 {
        /// Bytes per component and per pixel of the width, for rows of blocks and of samples on
        /// their way to pixels.
        const ROWS: u64 = 256;
        /// Bytes of the tables of codes and of quantizers.
        const TABLES: u64 = 128 << 10;
        let rows = u64::from(self.width) * ROWS * self.components() as u64;
        let applications = &self.applications;
        let profile = profile_bytes(applications.profile.length(), self.components());
        // CMYK has four samples per pixel before it is converted to three.
        let black = match self.components() {
            4 => u64::from(self.width) * u64::from(self.height),
            _ => 0,
        };
        self.coefficient_bytes() + black + rows + TABLES + profile + self.second_decoder_bytes(rows)
    }

    /// Most bytes of the decoder of the lower part, and of its data, if there is one.
    fn second_decoder_bytes(&self, rows: u64) -> u64 {
        /// Its tables, and its thread.
        const TABLES: u64 = 256 << 10;
        match self.planes() {
            PlanesPath::Never => 0,
            _ if !self.pays_two_threads() => 0,
            _ if self.restart_interval > 0 => rows + TABLES,
            _ => rows + TABLES + skim::most_bytes(self.scan_bytes) as u64,
        }
    }

    /// The bytes of all coefficients, two each, if the decoder keeps them to the end: it does
    /// unless the file is sequential and has all components in one scan.
    fn coefficient_bytes(&self) -> u64 {
        if !self.is_progressive && self.scan_components == self.components() {
            return 0;
        }
        let factors = self.sampling.iter().map(|pair| pair.map(u64::from));
        let blocks: u64 = factors.map(|[h, v]| h * v).sum();
        self.mcu_count() * blocks * 64 * 2
    }

    /// The number of MCUs in a scan of several components.
    fn mcu_count(&self) -> u64 {
        let most = |axis: usize| {
            let factors = self.sampling.iter().map(|pair| u64::from(pair[axis]));
            factors.max().unwrap_or(1).max(1)
        };
        u64::from(self.width).div_ceil(8 * most(0)) * u64::from(self.height).div_ceil(8 * most(1))
    }

    /// Reads the frame header; the fields of other segments are left empty.
    fn of_frame(marker: u8, segment: &[u8]) -> Result<Header<'a>, DecodeError> {
        let &[precision, h1, h0, w1, w0, count, ref components @ ..] = segment else {
            return Err(damaged());
        };
        check_kind(marker, precision)?;
        let components = components.as_chunks::<3>().0;
        if components.len() != usize::from(count) {
            return Err(damaged());
        }
        Ok(Header {
            width: u16::from_be_bytes([w1, w0]),
            height: u16::from_be_bytes([h1, h0]),
            is_progressive: marker == 0xc2,
            sampling: components
                .iter()
                .map(|[_, factors, _]| [factors >> 4, factors & 15])
                .collect(),
            is_named_rgb: components
                .iter()
                .zip(b"RGB")
                .all(|([id, ..], name)| id == name),
            scan_components: 0,
            restart_interval: 0,
            applications: Applications::default(),
            segment_bytes: 0,
            segments: Vec::new(),
            parts: Parts::default(),
            scan_begin: 0,
            scan_bytes: 0,
        })
    }
}

/// Rejects, by name, the kinds of T.81, table B.1, that hardly any program reads.
fn check_kind(marker: u8, precision: u8) -> Result<(), DecodeError> {
    let kind = match marker {
        0xc3 => "it is coded without loss",
        0xc5..=0xc7 => "it is coded in a hierarchy",
        0xc9..=0xcf => "its entropy coding is arithmetic",
        _ if precision != 8 => "its samples do not have 8 bits",
        _ => return Ok(()),
    };
    Err(DecodeError::Invalid(format!(
        "the JPEG is of a rare kind: {kind}"
    )))
}

/// Reads the tables of quantizers of a segment; `None` if it is damaged.
fn read_quantizers(mut data: &[u8], tables: &mut [Option<[u16; 64]>; 4]) -> Option<()> {
    while let [precision_and_number, rest @ ..] = data {
        let bytes = match precision_and_number >> 4 {
            0 => 1,
            _ => 2,
        };
        let (quantizers, behind) = rest.split_at_checked(64 * bytes)?;
        let mut table = [0; 64];
        for (quantizer, place) in quantizers.chunks_exact(bytes).zip(ZIGZAG) {
            table[usize::from(place)] = quantizer
                .iter()
                .fold(0, |value, byte| value << 8 | u16::from(*byte));
        }
        *tables.get_mut(usize::from(precision_and_number & 15))? = Some(table);
        data = behind;
    }
    Some(())
}

/// The places, row by row, of coefficients in their order in the file (T.81, figure A.6).
const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::formats::jpeg::tests::{jpeg, segment};
    use std::iter;

    /// The headers of a file whose first scan has `scanned` of the components.
    fn headers(kind: u8, (width, height): (u16, u16), factors: &[u8], scanned: u8) -> Vec<u8> {
        let [w, h] = [width, height].map(u16::to_be_bytes);
        let mut frame = vec![8, h[0], h[1], w[0], w[1], factors.len() as u8];
        frame.extend((1..).zip(factors).flat_map(|(id, &pair)| [id, pair, 0]));
        let scan: Vec<u8> = iter::once(scanned).chain([0; 7]).collect();
        [
            vec![0xff, 0xd8],
            segment(kind, &frame),
            segment(0xda, &scan),
        ]
        .concat()
    }

    #[test]
    fn a_marker_without_a_segment_is_rejected() {
        let whole = headers(0xc0, (20, 7), &[0x11; 3], 3);
        let frame = whole.len() - segment(0xda, &[0; 8]).len();
        for marker in [0x02, 0xbf, 0xd8, 0xd9] {
            // The bytes behind it look like a length that leads to the scan header.
            let strange = [&whole[..frame], &[0xff, marker, 0, 2], &whole[frame..]].concat();
            assert_eq!(Header::read(&strange), Err(damaged()), "{marker:x}");
        }
    }

    #[test]
    fn the_decoder_gets_only_the_segments_that_it_needs() {
        let whole = headers(0xc0, (20, 7), &[0x11; 3], 3);
        let adobe = segment(0xee, b"Adobe\0\x64\0\0\0\0\x01");
        let strange = [
            segment(0xe0, b"JFIF\0"),
            segment(0xe2, b"ICC_PROFILE\0\x07\x01abc"),
            segment(0xee, b"Adobe"),
            segment(0xfe, b"words"),
            vec![1, 2, 3],
            adobe.clone(),
            segment(0xe1, b"http://ns.adobe.com/xap/1.0/\0<x/>"),
        ];
        let file = [&whole[..2], &strange.concat(), &whole[2..], b"data"].concat();
        let frame = Header::read(&file).expect("valid headers");
        let kept = [&whole[..2], &adobe, &whole[2..]].concat();
        assert_eq!(frame.parts.as_slice().concat(), kept);
        assert_eq!(&file[frame.scan_begin..], b"data");
        assert_eq!(frame.profile(), None);
    }

    fn coefficients(kind: u8, size: (u16, u16), factors: &[u8], scanned: u8) -> u64 {
        let file = headers(kind, size, factors, scanned);
        let frame = Header::read(&file).expect("valid headers");
        assert_eq!((frame.width, frame.height), size);
        frame.coefficient_bytes()
    }

    #[test]
    fn coefficients_are_kept_of_progressive_files_and_of_several_scans() {
        let size = (160, 96);
        assert_eq!(coefficients(0xc0, size, &[0x22, 0x11, 0x11], 3), 0);
        assert_eq!(coefficients(0xc1, size, &[0x11], 1), 0);
        let samples = 160 * 96;
        let subsampled = 2 * samples * 3 / 2;
        assert_eq!(coefficients(0xc2, size, &[0x22, 0x11, 0x11], 3), subsampled);
        assert_eq!(coefficients(0xc0, size, &[0x22, 0x11, 0x11], 1), subsampled);
        assert_eq!(coefficients(0xc2, size, &[0x11; 4], 4), 2 * 4 * samples);
        // Up to whole units of 16 by 16.
        assert_eq!(
            coefficients(0xc2, (161, 81), &[0x22, 0x11, 0x11], 3),
            2 * 176 * 96 * 3 / 2
        );
    }

    #[test]
    fn restarts_are_counted_from_the_units_of_a_scan() {
        let restarts = |size, factors: &[u8], scanned, interval: u8| {
            let headers = headers(0xc0, size, factors, scanned);
            let (start, rest) = headers.split_at(2);
            let file = [start, &segment(0xdd, &[0, interval]), rest].concat();
            Header::read(&file).expect("valid headers").restarts()
        };
        let factors = [0x22, 0x11, 0x11];
        assert_eq!(restarts((64, 32), &factors, 3, 1), 7);
        assert_eq!(restarts((65, 32), &factors, 3, 5), 1);
        assert_eq!(restarts((65, 32), &factors, 3, 9), 1);
        assert_eq!(restarts((65, 32), &factors, 3, 10), 0);
        assert_eq!(restarts((65, 32), &factors, 3, 0), 0);
        assert_eq!(restarts((65, 32), &factors, 1, 1), 0, "one scan of several");
        assert_eq!(restarts((65, 32), &[0x22], 1, 4), 8, "blocks");
    }

    #[test]
    fn metadata_and_fill_bytes_before_the_frame_are_passed_over() {
        let exif = segment(0xe1, &[&b"Exif\0\0"[..], &[7; 1000]].concat());
        let twice = [&exif[..], &[0xff, 0xff], &exif[..]].concat();
        let [without, with] =
            [&[][..], &twice].map(|segments| jpeg(20, 7, &[&[0; 3][..]; 3], segments));
        let plain = Header::read(&without).expect("valid");
        let frame = Header::read(&with).expect("valid");
        assert_eq!((frame.width, frame.height, frame.components()), (20, 7, 3));
        assert_eq!(frame.exif(), Some(&[7; 1000][..]), "the last one");
        let (more, less) = (frame.decoder_bytes(), plain.decoder_bytes());
        assert_eq!(more, less, "Exif is not copied to be decoded");
        let shown = |frame: &Header<'_>| frame.parts.as_slice().concat();
        assert_eq!(shown(&frame), shown(&plain), "the decoder sees none");
    }

    #[test]
    fn no_part_of_the_headers_is_enough() {
        let whole = headers(0xc0, (20, 7), &[0x11; 3], 3);
        assert!(Header::read(&whole).is_ok());
        for length in 0..whole.len() {
            let part = Header::read(&whole[..length]);
            assert_eq!(part, Err(damaged()), "{length} bytes");
        }
        let mut lying = whole;
        lying[11] = 4;
        assert_eq!(
            Header::read(&lying),
            Err(damaged()),
            "four components in three"
        );
    }
}
