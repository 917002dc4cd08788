//! Pictures of any color space: ICC profiles in TIFFs and PNGs, code points, exponents and
//! chromaticities in PNGs. Whatever the space is, the picture is read, alpha stays as it was, and
//! gray stays gray unless the profile is one of colors.

#![cfg_attr(fuzzing, no_main)]

use fuzz::tiff::Order;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use png::chunk::ChunkType;
use towebp_encoder::Workers;
use towebp_pipeline::conversion::Cancel;
use towebp_pipeline::image::{self, Format, Image, Keep, Layout, Limits};

fuzz_target!(|input: Input| input.check());

const WIDTH: u32 = 8;
const HEIGHT: u32 = 2;

#[derive(Arbitrary, Debug)]
struct Input {
    colors: Colors,
    has_alpha: bool,
    /// Whether samples have 16 bits.
    is_deep: bool,
    /// Whether the file is a PNG though a TIFF could be one with that space, too.
    prefers_png: bool,
    space: Space,
    /// The samples of 16 bits, again and again.
    samples: Vec<u16>,
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Colors {
    Gray,
    Rgb,
    Cmyk,
}

#[derive(Arbitrary, Debug)]
enum Space {
    Profile(Profile),
    /// Any bytes in place of a profile.
    Bytes(Vec<u8>),
    /// The data of `cICP`: primaries, transfer, and the matrix and the range if they are not RGB's.
    CodePoints(u8, u8, Option<[u8; 2]>),
    /// The data of `gAMA` and `cHRM`, in 1/100,000.
    Calibrated {
        exponent: Option<u32>,
        chromaticities: Option<[u32; 8]>,
    },
}

/// A profile whose header and offsets are as they should be (ICC.1, 7).
#[derive(Arbitrary, Debug)]
struct Profile {
    version: u8,
    class: u8,
    /// The color space, if it is not the picture's.
    colors: Option<Colors>,
    is_lab: bool,
    intent: u8,
    tags: Vec<(u8, Element)>,
}

/// The data of a tag (ICC.1, 10). Fixed numbers have 13 bits behind the point here.
#[derive(Arbitrary, Debug)]
enum Element {
    Curve(Vec<u16>),
    Parametric(u8, Vec<i16>),
    Xyz([i16; 3]),
    Numbers(Vec<i16>),
    CodePoints([u8; 4]),
    Text(Vec<u8>),
    /// `lut8Type` and `lut16Type`.
    Table {
        is_deep: bool,
        matrix: [i16; 9],
        entries: u8,
        grid: u8,
        values: Vec<u8>,
    },
    /// `lutAToBType` and `lutBToAType`.
    Stages {
        is_backward: bool,
        matrix: Option<[i16; 12]>,
        curve: Vec<u16>,
        grid: Option<u8>,
        is_deep: bool,
        values: Vec<u8>,
    },
    Bytes([u8; 4], Vec<u8>),
    /// The data of the tag before.
    Shared,
}

impl Input {
    fn check(&self) {
        let has_profile = matches!(self.space, Space::Profile(_) | Space::Bytes(_));
        let colors = match self.colors {
            Colors::Cmyk if !has_profile => Colors::Rgb,
            colors => colors,
        };
        let is_png = !has_profile || self.prefers_png && colors != Colors::Cmyk;
        let has_alpha = self.has_alpha && colors != Colors::Cmyk;
        let channels = colors.count() + usize::from(has_alpha);
        let mut samples = self.samples.iter().copied().cycle();
        let samples: Vec<u16> = (0..(WIDTH * HEIGHT) as usize * channels)
            .map(|_| samples.next().unwrap_or(0x8123))
            .collect();
        let profile = match &self.space {
            Space::Profile(profile) => profile.bytes(colors),
            Space::Bytes(bytes) => bytes.clone(),
            Space::CodePoints(..) | Space::Calibrated { .. } => Vec::new(),
        };
        let (format, file) = if is_png {
            let file = self.png(colors, has_alpha, &samples, &profile);
            (Format::Png, file)
        } else {
            let file = self.tiff(colors, has_alpha, &samples, &profile);
            (Format::Tiff, file)
        };

        let is_of_gray = profile.get(16..20).is_none_or(|space| space == b"GRAY");
        let stays_gray = colors == Colors::Gray && has_profile && is_of_gray;
        let image = decode(&file, format);
        assert_eq!((image.width, image.height), (WIDTH, HEIGHT));
        let pixels = image.pixels.chunks_exact(image.layout.channels());
        for (pixel, samples) in pixels.zip(samples.chunks_exact(channels)) {
            if has_alpha {
                let sample = samples[channels - 1];
                let alpha = if self.is_deep {
                    ((u32::from(sample) + 128) / 257) as u8
                } else {
                    (sample >> 8) as u8
                };
                let is_opaque = image.layout == Layout::Rgb;
                let found = if is_opaque { 255 } else { pixel[3] };
                assert_eq!(found, alpha, "alpha has changed");
            }
            if stays_gray {
                assert_eq!(pixel[..3], [pixel[0]; 3], "gray has become a color");
            }
        }
    }

    /// The samples as a file stores them.
    fn stored(&self, samples: &[u16], bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        if self.is_deep {
            return samples.iter().copied().flat_map(bytes).collect();
        }
        samples.iter().map(|sample| (sample >> 8) as u8).collect()
    }

    fn png(&self, colors: Colors, has_alpha: bool, samples: &[u16], profile: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut info = png::Info::with_size(WIDTH, HEIGHT);
        info.icc_profile = (!profile.is_empty()).then(|| profile.into());
        let mut encoder = png::Encoder::with_info(&mut file, info).expect("a good size");
        encoder.set_color(match (colors, has_alpha) {
            (Colors::Gray, false) => png::ColorType::Grayscale,
            (Colors::Gray, true) => png::ColorType::GrayscaleAlpha,
            (_, false) => png::ColorType::Rgb,
            (_, true) => png::ColorType::Rgba,
        });
        encoder.set_depth(if self.is_deep {
            png::BitDepth::Sixteen
        } else {
            png::BitDepth::Eight
        });
        let mut writer = encoder.write_header().expect("a good header");
        let mut chunk = |name, data: &[u8]| {
            let written = writer.write_chunk(ChunkType(name), data);
            written.expect("it is written to memory");
        };
        match &self.space {
            Space::CodePoints(primaries, transfer, others) => {
                let [matrix, range] = others.unwrap_or([0, 1]);
                chunk(*b"cICP", &[primaries % 24, transfer % 24, matrix, range]);
            }
            Space::Calibrated {
                exponent,
                chromaticities,
            } => {
                if let Some(exponent) = exponent {
                    chunk(*b"gAMA", &exponent.to_be_bytes());
                }
                if let Some(points) = chromaticities {
                    chunk(*b"cHRM", points.map(u32::to_be_bytes).as_flattened());
                }
            }
            Space::Profile(_) | Space::Bytes(_) => {}
        }
        let stored = self.stored(samples, u16::to_be_bytes);
        writer.write_image_data(&stored).expect("as many samples");
        writer.finish().expect("it is written to memory");
        file
    }

    /// One strip without compression, little-endian.
    fn tiff(&self, colors: Colors, has_alpha: bool, samples: &[u16], profile: &[u8]) -> Vec<u8> {
        let channels = samples.len() / (WIDTH * HEIGHT) as usize;
        let strip = self.stored(samples, u16::to_le_bytes);
        let bits = if self.is_deep { 16u16 } else { 8 };
        let bits = bits.to_le_bytes().repeat(channels);
        let photometric = match colors {
            Colors::Gray => 1,
            Colors::Rgb => 2,
            Colors::Cmyk => 5,
        };
        let order = Order::Little;
        let mut fields = vec![
            order.short(256, WIDTH),
            order.short(257, HEIGHT),
            (258, 3, channels as u32, bits),
            order.short(259, 1),
            order.short(262, photometric),
            order.long(273, 8),
            order.short(277, channels as u32),
            order.short(278, HEIGHT),
            order.short(279, strip.len() as u32),
        ];
        fields.extend(has_alpha.then(|| order.short(338, 2)));
        let profile = (!profile.is_empty()).then(|| profile.to_vec());
        fields.extend(profile.map(|bytes| (34_675, 1, bytes.len() as u32, bytes)));
        order.tiff(&strip, &fields)
    }
}

fn decode(file: &[u8], format: Format) -> Image {
    let never = Cancel::never();
    let opened = image::open(file, format, &Limits::DEFAULT);
    let decoded = opened.and_then(|opened| {
        let workers = Workers::new(1, None, &never);
        opened.decode(Keep::NOTHING, workers)
    });
    let (image, _) = decoded.expect("a color space that is of no use is ignored");
    image
}

impl Colors {
    fn count(self) -> usize {
        match self {
            Colors::Gray => 1,
            Colors::Rgb => 3,
            Colors::Cmyk => 4,
        }
    }
}

impl Profile {
    fn bytes(&self, of_picture: Colors) -> Vec<u8> {
        const TAGS: [&[u8; 4]; 18] = [
            b"rXYZ", b"gXYZ", b"bXYZ", b"rTRC", b"gTRC", b"bTRC", b"kTRC", b"A2B0", b"A2B1",
            b"A2B2", b"B2A0", b"B2A1", b"wtpt", b"bkpt", b"chad", b"cicp", b"desc", b"lumi",
        ];
        let colors = self.colors.unwrap_or(of_picture);
        let mut table = (self.tags.len() as u32).to_be_bytes().to_vec();
        let mut data = Vec::new();
        let data_at = 132 + 12 * self.tags.len();
        let mut place = [0u32; 2];
        for (tag, element) in &self.tags {
            let bytes = element.bytes(colors.count() as u8);
            if !matches!(element, Element::Shared) {
                place = [data_at + data.len(), bytes.len()].map(|number| number as u32);
                data.extend(bytes);
                data.resize(data.len().next_multiple_of(4), 0);
            }
            table.extend(TAGS[usize::from(*tag) % TAGS.len()]);
            table.extend(place.map(u32::to_be_bytes).as_flattened());
        }
        let mut profile = vec![0; 128];
        let length = (128 + table.len() + data.len()) as u32;
        profile[..4].copy_from_slice(&length.to_be_bytes());
        profile[8] = 2 + self.version % 3;
        let classes = [b"mntr", b"scnr", b"prtr", b"spac", b"abst", b"link"];
        profile[12..16].copy_from_slice(classes[usize::from(self.class) % classes.len()]);
        profile[16..20].copy_from_slice(match colors {
            Colors::Gray => b"GRAY",
            Colors::Rgb => b"RGB ",
            Colors::Cmyk => b"CMYK",
        });
        profile[20..24].copy_from_slice(if self.is_lab { b"Lab " } else { b"XYZ " });
        profile[36..40].copy_from_slice(b"acsp");
        profile[67] = self.intent % 4;
        let white = [0xF6D6u32, 0x1_0000, 0xD32D].map(u32::to_be_bytes);
        profile[68..80].copy_from_slice(white.as_flattened());
        profile.extend(table);
        profile.extend(data);
        profile
    }
}

/// Numbers of 16 bits behind the point.
fn fixed(numbers: &[i16]) -> Vec<u8> {
    let numbers = numbers.iter().map(|number| i32::from(*number) << 3);
    numbers.flat_map(i32::to_be_bytes).collect()
}

fn curve(values: &[u16]) -> Vec<u8> {
    let mut bytes = b"curv\0\0\0\0".to_vec();
    bytes.extend((values.len() as u32).to_be_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_be_bytes()));
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// So many of these bytes, again and again.
fn repeated(values: &[u8], count: usize) -> Vec<u8> {
    let values = values.iter().copied().cycle().chain(std::iter::repeat(99));
    values.take(count).collect()
}

/// The number of points along a side of a table, few where it has many sides.
fn points(grid: u8, inputs: u8) -> u8 {
    match inputs {
        1 => grid,
        3 => 1 + grid % 18,
        _ => 1 + grid % 9,
    }
}

impl Element {
    /// The bytes of the data for so many components.
    fn bytes(&self, components: u8) -> Vec<u8> {
        let begin = |name: &[u8; 4]| [*name, [0; 4]].concat();
        match self {
            Element::Curve(values) => curve(values),
            Element::Parametric(function, numbers) => {
                let function = vec![0, function % 6, 0, 0];
                [begin(b"para"), function, fixed(numbers)].concat()
            }
            Element::Xyz(numbers) => [begin(b"XYZ "), fixed(numbers)].concat(),
            Element::Numbers(numbers) => [begin(b"sf32"), fixed(numbers)].concat(),
            Element::CodePoints(points) => [begin(b"cicp").as_slice(), points].concat(),
            Element::Text(text) => {
                let mut bytes = begin(b"mluc");
                let place = [1, 12, 0x656e_5553, text.len() as u32, 28];
                bytes.extend(place.map(u32::to_be_bytes).as_flattened());
                bytes.extend(text);
                bytes
            }
            Element::Table {
                is_deep,
                matrix,
                entries,
                grid,
                values,
            } => {
                let grid = points(*grid, components);
                let (entries, size) = if *is_deep {
                    (2 + usize::from(*entries), 2)
                } else {
                    (256, 1)
                };
                let mut bytes = begin(if *is_deep { b"mft2" } else { b"mft1" });
                bytes.extend([components, 3, grid, 0]);
                bytes.extend(fixed(matrix));
                if *is_deep {
                    bytes.extend([entries as u16; 2].map(u16::to_be_bytes).as_flattened());
                }
                let colors = usize::from(grid).pow(components.into()) * 3;
                let count = entries * usize::from(components + 3) + colors;
                bytes.extend(repeated(values, count * size));
                bytes
            }
            Element::Stages {
                is_backward,
                matrix,
                curve: samples,
                grid,
                is_deep,
                values,
            } => {
                let inputs = if *is_backward { 3 } else { components };
                let outputs = if *is_backward { components } else { 3 };
                let curves = |count: u8| curve(samples).repeat(count.into());
                let mut bytes = begin(if *is_backward { b"mBA " } else { b"mAB " });
                bytes.extend([inputs, outputs, 0, 0]);
                bytes.resize(32, 0);
                // Of curves B, the matrix, curves M, the table and curves A.
                let mut offsets = [0; 5];
                let mut stage = |index: usize, data: Vec<u8>| {
                    offsets[index] = bytes.len() as u32;
                    bytes.extend(data);
                    bytes.resize(bytes.len().next_multiple_of(4), 0);
                };
                stage(0, curves(3));
                if let Some(matrix) = matrix {
                    stage(1, fixed(matrix));
                    stage(2, curves(3));
                }
                if let Some(grid) = grid {
                    let grid = points(*grid, inputs);
                    let size = if *is_deep { 2 } else { 1 };
                    let colors = usize::from(grid).pow(inputs.into()) * usize::from(outputs);
                    let mut table = repeated(&[grid], inputs.into());
                    table.resize(16, 0);
                    table.extend([size as u8, 0, 0, 0]);
                    table.extend(repeated(values, colors * size));
                    stage(3, table);
                    stage(4, curves(components));
                }
                bytes[12..32].copy_from_slice(offsets.map(u32::to_be_bytes).as_flattened());
                bytes
            }
            Element::Bytes(name, bytes) => [begin(name), bytes.clone()].concat(),
            Element::Shared => Vec::new(),
        }
    }
}
