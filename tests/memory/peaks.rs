//! No conversion holds more bytes than was estimated before it began, over all formats and
//! parameters, counted by the allocator. `tests/codec/estimate.rs` holds the same for larger
//! pictures, by what the system says of a process.

use crate::counting::peak_of_process;
use crate::is_alone;
use crate::support::animation::{animated_png, animated_rgba};
use crate::support::hostile;
use crate::support::jpeg::{self as jpegs, Kind};
use crate::support::picture::Picture;
use crate::support::tiff::{self, Samples, Tiff};
use gif::{DisposalMethod, Frame};
use png::{BlendOp, DisposeOp};
use std::num::NonZeroUsize;
use towebp_pipeline::conversion::{self, Cancel, ConversionError, CpuBudget, Fonts, Job, Params};
use towebp_pipeline::image::{Format, Limits};

/// The most bytes that an estimate may hold itself.
const ESTIMATING: u64 = 256 << 10;

/// What was estimated for a conversion, and what it held.
pub struct Measured {
    /// Bytes; `None` if there is no estimate.
    pub estimated: Option<u64>,
    /// The most bytes while it was estimated.
    estimating: u64,
    /// The most bytes of the conversion.
    pub held: u64,
    /// What became of it.
    pub outcome: Result<(), ConversionError>,
}

impl Measured {
    /// What is wrong, as a few words.
    pub fn fault(&self) -> Option<String> {
        let Measured {
            estimating, held, ..
        } = *self;
        if estimating > ESTIMATING {
            return Some(format!("{estimating} bytes to estimate"));
        }
        let estimated = self.estimated.filter(|&estimated| held > estimated)?;
        let ratio = held as f64 / estimated as f64;
        Some(format!(
            "{held} bytes held, {estimated} estimated, {ratio:.3}"
        ))
    }
}

/// Estimates a conversion by so many threads, and runs it.
pub fn measure(bytes: &[u8], query: &str, mark: Option<&[u8]>, threads: usize) -> Measured {
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let pairs = pairs
        .iter()
        .map(|(name, value)| (name.as_ref(), value.as_ref()));
    let params = Params::parse(pairs).expect("valid parameters");
    let cpu_budget = CpuBudget::new(NonZeroUsize::new(threads).expect("not zero"));
    let job = Job {
        bytes,
        format: Format::sniff(bytes).expect("one of the four formats"),
        params: &params,
        watermark_picture: mark,
        limits: &Limits::default(),
        fonts: Fonts::bundled(),
        threads,
        cpu_budget: Some(&cpu_budget),
        cancel: &Cancel::never(),
    };
    let (estimated, estimating) = peak_of_process(|| conversion::memory(&job));
    match estimated {
        Err(error) => Measured {
            estimated: None,
            estimating,
            held: 0,
            outcome: Err(error),
        },
        Ok(estimated) => {
            let (converted, held) = peak_of_process(|| conversion::run(&job).map(drop));
            Measured {
                estimated: Some(estimated),
                estimating,
                held,
                outcome: converted,
            }
        }
    }
}

/// Conversions whose estimates did not hold.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    /// Converts with one thread and with several, and returns the outcome, or that of the estimate.
    fn look_for(
        &mut self,
        name: &str,
        bytes: &[u8],
        query: &str,
        mark: Option<&[u8]>,
    ) -> Result<(), ConversionError> {
        let mut outcome = Ok(());
        for threads in [1, 4] {
            let shown: String = query.chars().take(100).collect();
            let case = format!("{name} {shown}, {threads} threads");
            let measured = measure(bytes, query, mark, threads);
            if let Some(fault) = measured.fault() {
                self.0.push(format!("{case}: {fault}"));
            }
            outcome = measured.outcome;
            if measured.estimated.is_none() {
                break;
            }
        }
        outcome
    }

    /// As [`Faults::look_for`], of a file whose conversion has to succeed.
    #[track_caller]
    fn convert(&mut self, name: &str, bytes: &[u8], query: &str, mark: Option<&[u8]>) {
        if let Err(error) = self.look_for(name, bytes, query, mark) {
            panic!("{name} {query}: {error}");
        }
    }

    /// Converts all files with all parameters.
    #[track_caller]
    fn convert_in_all_ways(&mut self, files: &[(&str, Vec<u8>)]) {
        let mark = clear().png();
        for (name, bytes) in files {
            for query in QUERIES {
                self.convert(name, bytes, query, None);
            }
            for query in MARKED {
                self.convert(name, bytes, query, Some(&mark));
            }
        }
    }

    #[track_caller]
    fn assert_none(self) {
        assert!(self.0.is_empty(), "\n{}", self.0.join("\n"));
    }
}

/// Parameters that change the work done on any picture.
const QUERIES: &[&str] = &[
    "",
    "quality=0",
    "quality=100&effort=low",
    "effort=high",
    "effort=max",
    "mode=auto&effort=high",
    "mode=lossless",
    "mode=lossless&effort=low",
    "mode=lossless&effort=high",
    "mode=lossless&near_lossless=40&effort=high",
    "mode=lossy&alpha_quality=30",
    "metadata=keep",
    "width=50",
    "width=300&mode=lossy",
    "height=11&metadata=keep",
    "width=400&height=60&fit=fill&mode=lossless",
    "width=90&height=300&fit=cover&gravity=left&watermark=towebp&watermark_size=200",
    "width=700&enlarge=true&watermark=M&watermark_scale=100&watermark_outline=shadow",
    "width=80&height=50&dpr=8&enlarge=true&fit=cover&effort=high",
    "max_bytes=1&best_effort=true",
    "max_bytes=20k&best_effort=true",
    "target=95",
    "target=30&mode=lossy&effort=high",
    "watermark=towebp&watermark_size=200&watermark_position=center",
    "watermark=M&watermark_scale=100&watermark_rotate=30&watermark_outline=shadow",
    "watermark=tile&watermark_tile=true&watermark_rotate=20&watermark_outline=outline",
    "watermark=towebp+and+more&watermark_size=100%25&watermark_margin=0%25&watermark_outline=shadow",
];

/// Parameters that change the work done on a watermark's picture.
const MARKED: &[&str] = &[
    "",
    "watermark_scale=100",
    "watermark_rotate=45&watermark_tile=true",
    "watermark_scale=90&watermark_rotate=45&mode=lossless&watermark=x",
];

const SIZE: (u32, u32) = (421, 307);

/// A picture whose colors and alpha are noise.
fn clear() -> Picture {
    let noise = Picture::noise(SIZE.0, SIZE.1);
    Picture::of(SIZE.0, SIZE.1, |x, y| {
        let [red, green, blue, _] = noise.at(x, y);
        [red, green, blue, green ^ blue]
    })
}

#[test]
fn pngs_hold_no_more_than_was_estimated() {
    if !is_alone() {
        return;
    }
    let mut faults = Faults::default();
    faults.convert_in_all_ways(&[
        ("noise.png", Picture::noise(SIZE.0, SIZE.1).png()),
        ("clear.png", clear().png()),
        ("waves.png", Picture::waves(SIZE.0, SIZE.1).png()),
        ("flat.png", Picture::flat(SIZE.0, SIZE.1, [9, 8, 7]).png()),
        ("small.png", Picture::noise(190, 140).png()),
        ("pixel.png", Picture::noise(1, 1).png()),
        ("described.png", described_png(&Picture::waves(90, 70))),
    ]);
    faults.assert_none();
}

#[test]
fn long_texts_hold_no_more_than_was_estimated() {
    if !is_alone() {
        return;
    }
    let mut faults = Faults::default();
    let file = Picture::flat(200, 90, [9, 8, 7]).png();
    for text in ["a", "word ", "%D7%A9%20x%20", "a%0A"] {
        // Lists of so many glyphs have just grown to twice the length.
        let letters = text.len() - 2 * text.matches('%').count();
        let text = text.repeat(8200 / letters);
        for size in ["24", "auto"] {
            let query = format!("watermark={text}&watermark_size={size}");
            let name = &format!("{} of {}", &text[..5], text.len());
            if let Err(error) = faults.look_for(name, &file, &query, None) {
                panic!("{name}: {error}");
            }
        }
    }
    faults.assert_none();
}

/// A PNG of 16 bits per sample, with a profile, Exif data that turns it, and XMP.
pub fn described_png(picture: &Picture) -> Vec<u8> {
    let mut info = png::Info::with_size(picture.width, picture.height);
    info.color_type = png::ColorType::Rgb;
    info.bit_depth = png::BitDepth::Sixteen;
    let profile = moxcms::ColorProfile::new_display_p3().encode();
    info.icc_profile = Some(profile.expect("a valid profile").into());
    let mut exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0".to_vec();
    exif.resize(1 << 20, 7);
    info.exif_metadata = Some(exif.into());
    let samples: Vec<u8> = picture
        .pixels
        .iter()
        .flat_map(|pixel| &pixel[..3])
        .flat_map(|&sample| [sample, 0])
        .collect();
    let mut bytes = Vec::new();
    png::Encoder::with_info(&mut bytes, info)
        .and_then(png::Encoder::write_header)
        .and_then(|mut writer| {
            let packet = [&b"XML:com.adobe.xmp\0\0\0\0\0"[..], &vec![b' '; 1 << 20]].concat();
            writer.write_chunk(png::chunk::iTXt, &packet)?;
            writer.write_image_data(&samples)
        })
        .expect("a valid picture");
    bytes
}

#[test]
fn jpegs_hold_no_more_than_was_estimated() {
    if !is_alone() {
        return;
    }
    let mut faults = Faults::default();
    let noise = Picture::noise(SIZE.0, SIZE.1);
    let sequential = jpegs::jpeg(&noise, Kind::Sequential);
    faults.convert_in_all_ways(&[
        ("described.jpg", described_jpeg(&sequential)),
        ("padded.jpg", padded_jpeg(&sequential)),
        ("sequential.jpg", sequential),
        ("progressive.jpg", jpegs::jpeg(&noise, Kind::Progressive)),
        ("full.jpg", jpegs::jpeg(&noise, Kind::ProgressiveFull)),
    ]);
    let size = (SIZE.0 as u16, SIZE.1 as u16);
    let one: &[&[u8]] = &[&[0]];
    let three: &[&[u8]] = &[&[0, 1, 2]];
    let each: &[&[u8]] = &[&[0], &[1], &[2]];
    let cases: [(&[u8], &[&[u8]]); 12] = [
        (&[0x11], one),
        (&[0x22], one),
        (&[0x22, 0x11, 0x11], each),
        (&[0x22, 0x11, 0x11], &[&[0], &[1, 2]]),
        (&[0x11, 0x11, 0x11], each),
        (&[0x21, 0x11, 0x11], three),
        (&[0x12, 0x11, 0x11], three),
        (&[0x41, 0x11, 0x11], three),
        (&[0x14, 0x11, 0x11], three),
        (&[0x42, 0x11, 0x11], three),
        (&[0x11; 4], &[&[0, 1, 2, 3]]),
        (&[0x11; 4], &[&[0], &[1], &[2], &[3]]),
    ];
    for (factors, scans) in cases {
        let file = hostile::flat_jpeg(size, factors, scans);
        let name = format!("{factors:x?} in {scans:?}");
        for query in ["", "mode=lossless", "watermark=x"] {
            // The decoder may refuse strange factors.
            let _ = faults.look_for(&name, &file, query, None);
        }
    }
    faults.assert_none();
}

/// The JPEG with a byte behind the data of its scan.
fn padded_jpeg(jpeg: &[u8]) -> Vec<u8> {
    let (front, end) = jpeg.split_at(jpeg.len() - 2);
    [front, &[0], end].concat()
}

/// A large JPEG is decoded at a smaller scale, or its pixels are averaged as they come.
#[test]
fn jpegs_that_become_small_take_the_memory_of_a_fraction() {
    if !is_alone() {
        return;
    }
    let mut faults = Faults::default();
    let whole = jpegs::jpeg(&Picture::waves(2400, 1800), Kind::Sequential);
    for (name, file) in [("padded.jpg", padded_jpeg(&whole)), ("whole.jpg", whole)] {
        for width in [100, 280, 580] {
            faults.convert(name, &file, &format!("width={width}"), None);
            let params = Params::parse([("width", width.to_string().as_str())].into_iter());
            let params = params.expect("valid parameters");
            let job = Job {
                bytes: &file,
                format: Format::Jpeg,
                params: &params,
                watermark_picture: None,
                limits: &Limits::default(),
                fonts: Fonts::bundled(),
                threads: 1,
                cpu_budget: None,
                cancel: &Cancel::never(),
            };
            let estimated = conversion::memory(&job).expect("a valid picture");
            let pixels = 2400 * 1800 * 3;
            assert!(estimated < pixels * 3 / 4, "{name} {width}: {estimated}");
        }
    }
    faults.assert_none();
}

/// The JPEG with Exif data that turns it, and with a profile in several segments whose table is as
/// large as can be, and named as often as can be.
pub fn described_jpeg(jpeg: &[u8]) -> Vec<u8> {
    let exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let profile = profile_of_tables(3, 101);
    let chunks: Vec<&[u8]> = profile.chunks(65_000).collect();
    let count = chunks.len() as u8;
    let segments = (1..).zip(chunks).map(|(number, chunk)| {
        let data = [&b"ICC_PROFILE\0"[..], &[number, count], chunk].concat();
        hostile::segment(0xe2, &data)
    });
    let segments: Vec<u8> = segments.flatten().collect();
    [
        &jpeg[..2],
        &hostile::segment(0xe1, exif),
        &segments,
        &jpeg[2..],
    ]
    .concat()
}

/// An ICC profile of RGB or CMYK (ICC.1, 7) whose tags all name one `mft1` of 3 or 4 inputs, 3
/// outputs and so many grid points: 3 MB if they are 101 of 3 inputs.
fn profile_of_tables(inputs: u8, grid: u8) -> Vec<u8> {
    let mut table = b"mft1\0\0\0\0".to_vec();
    table.extend([inputs, 3, grid, 0]);
    for element in 0..9 {
        table.extend(if element % 4 == 0 {
            [0, 1, 0, 0]
        } else {
            [0; 4]
        });
    }
    let ramp: Vec<u8> = (0..=255).collect();
    table.extend(ramp.repeat(usize::from(inputs)));
    let level = |step: u32| (step * 255 / (u32::from(grid) - 1)) as u8;
    let steps = || 0..u32::from(grid);
    let points = steps().flat_map(|r| steps().flat_map(move |g| steps().map(move |b| [r, g, b])));
    let points: Vec<u8> = points.flat_map(|point| point.map(level)).collect();
    let inks = if inputs == 4 { usize::from(grid) } else { 1 };
    table.extend(points.repeat(inks));
    table.extend(ramp.repeat(3));
    let tags = [
        b"A2B0", b"A2B1", b"A2B2", b"B2A0", b"B2A1", b"B2A2", b"gamt",
    ];
    let begin = 132 + 12 * tags.len();
    let mut profile = ((begin + table.len()) as u32).to_be_bytes().to_vec();
    profile.extend(*b"none\x04\x20\0\0");
    profile.extend(if inputs == 4 {
        b"prtrCMYKLab "
    } else {
        b"mntrRGB Lab "
    });
    profile.extend([0x07, 0xe8, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
    profile.extend(b"acsp");
    profile.resize(68, 0);
    profile.extend([0, 0, 0xf6, 0xd6, 0, 1, 0, 0, 0, 0, 0xd3, 0x2d]);
    profile.resize(128, 0);
    profile.extend((tags.len() as u32).to_be_bytes());
    for tag in tags {
        profile.extend(tag);
        profile.extend(
            [begin, table.len()]
                .map(|n| (n as u32).to_be_bytes())
                .concat(),
        );
    }
    profile.extend(table);
    let parsed = moxcms::ColorProfile::new_from_slice(&profile).expect("a valid profile");
    assert!(
        parsed.lut_a_to_b_saturation.is_some(),
        "all tables are read"
    );
    profile
}

#[test]
fn gifs_hold_no_more_than_was_estimated() {
    if !is_alone() {
        return;
    }
    let mut faults = Faults::default();
    let noise = || Picture::noise(SIZE.0, SIZE.1);
    let waves = || Picture::waves(SIZE.0, SIZE.1);
    faults.convert_in_all_ways(&[
        ("still.gif", waves().gif()),
        (
            "kept.gif",
            animation(&[noise(), waves(), noise()], DisposalMethod::Keep),
        ),
        (
            "cleared.gif",
            animation(&[noise(), clear(), noise()], DisposalMethod::Background),
        ),
        (
            "restored.gif",
            animation(&[clear(), waves(), clear()], DisposalMethod::Previous),
        ),
        ("beyond.gif", hostile::gif_beyond_its_screen(1700, 900)),
    ]);
    faults.assert_none();
}

#[test]
fn animated_pngs_hold_no_more_than_was_estimated() {
    if !is_alone() {
        return;
    }
    let mut faults = Faults::default();
    let noise = || Picture::noise(SIZE.0, SIZE.1);
    let waves = || Picture::waves(SIZE.0, SIZE.1);
    let turned = [noise(), waves(), noise()];
    faults.convert_in_all_ways(&[
        (
            "kept.png",
            animated_rgba(
                &[noise(), waves(), noise()],
                DisposeOp::None,
                BlendOp::Source,
            ),
        ),
        (
            "cleared.png",
            animated_rgba(
                &[clear(), noise(), clear()],
                DisposeOp::Background,
                BlendOp::Over,
            ),
        ),
        (
            "restored.png",
            animated_rgba(
                &[noise(), clear(), clear(), waves()],
                DisposeOp::Previous,
                BlendOp::Over,
            ),
        ),
        (
            "small.png",
            animated_rgba(
                &[Picture::noise(1, 1), Picture::flat(1, 1, [1, 2, 3])],
                DisposeOp::None,
                BlendOp::Source,
            ),
        ),
        (
            "described.png",
            described_animation(&turned, DisposeOp::Previous),
        ),
    ]);
    faults.assert_none();
}

/// An animated PNG of 16 bits per sample, with a profile, and Exif data that turns it.
fn described_animation(pictures: &[Picture], dispose: DisposeOp) -> Vec<u8> {
    let mut info = png::Info::with_size(pictures[0].width, pictures[0].height);
    info.color_type = png::ColorType::Rgb;
    info.bit_depth = png::BitDepth::Sixteen;
    let profile = moxcms::ColorProfile::new_display_p3().encode();
    info.icc_profile = Some(profile.expect("a valid profile").into());
    let exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    info.exif_metadata = Some(exif[..].into());
    let samples = |picture: &Picture| {
        let colors = picture.pixels.iter().flat_map(|pixel| &pixel[..3]);
        colors.flat_map(|&sample| [sample, 0]).collect()
    };
    let frames: Vec<Vec<u8>> = pictures.iter().map(samples).collect();
    animated_png(info, &frames, dispose, BlendOp::Source)
}

fn animation(pictures: &[Picture], dispose: DisposalMethod) -> Vec<u8> {
    let (width, height) = (pictures[0].width as u16, pictures[0].height as u16);
    let mut file = Vec::new();
    let mut encoder = gif::Encoder::new(&mut file, width, height, &[]).expect("a Vec takes all");
    for picture in pictures {
        let mut samples = picture.pixels.as_flattened().to_vec();
        let frame = Frame {
            dispose,
            ..Frame::from_rgba_speed(width, height, &mut samples, 30)
        };
        encoder.write_frame(&frame).expect("a valid frame");
    }
    drop(encoder);
    file
}

#[test]
fn bmps_hold_no_more_than_was_estimated() {
    if !is_alone() {
        return;
    }
    let mut faults = Faults::default();
    let row = (0..SIZE.0).flat_map(|x| [1, x as u8]).chain([0, 0]);
    let mut runs: Vec<u8> = (0..SIZE.1).flat_map(|_| row.clone()).collect();
    runs.extend([0, 1]);
    faults.convert_in_all_ways(&[
        ("noise.bmp", Picture::noise(SIZE.0, SIZE.1).bmp()),
        (
            "runs.bmp",
            hostile::run_length_bmp(SIZE.0 as i32, SIZE.1 as i32, &runs),
        ),
    ]);
    faults.assert_none();
}

#[test]
fn tiffs_hold_no_more_than_was_estimated() {
    if !is_alone() {
        return;
    }
    let mut faults = Faults::default();
    let noise = Picture::noise(SIZE.0, SIZE.1);
    let deep = Tiff {
        is_deep: true,
        samples: Samples::Rgba,
        is_compressed: true,
        orientation: 6,
        ..Tiff::default()
    };
    let inks = Tiff {
        samples: Samples::Cmyk,
        tile: 256,
        ..Tiff::default()
    };
    let jpegs = |tile, rows| Tiff {
        samples: Samples::Jpeg,
        tile,
        rows,
        ..Tiff::default()
    };
    faults.convert_in_all_ways(&[
        ("deep.tif", deep.file(&noise)),
        ("inks.tif", inks.file(&noise)),
        ("tiles of jpegs.tif", jpegs(256, 0).file(&noise)),
        ("a jpeg.tif", jpegs(0, 0).file(&noise)),
    ]);
    let error = faults.look_for("runs.tif", &tiff::fax_of_empty_runs(1 << 20), "", None);
    let error = error.expect_err("it has no row").to_string();
    assert!(error.contains("fax codes"), "{error}");
    faults.assert_none();
}

/// Files that once took more than was estimated.
#[test]
fn files_that_conceal_their_size_hold_no_more_than_was_estimated() {
    if !is_alone() {
        return;
    }
    let mut faults = Faults::default();
    let beyond = hostile::gif_beyond_its_screen(16383, 6103);
    for query in ["", "animation=first", "watermark=x"] {
        faults.convert("beyond.gif", &beyond, query, None);
    }
    for query in ["", "metadata=keep", "metadata=copyright", "metadata=icc"] {
        faults.convert(
            "profile.bmp",
            &hostile::bmp_with_profile(30 << 20),
            query,
            None,
        );
        faults.convert(
            "extensions.gif",
            &hostile::gif_with_extensions(15 << 20),
            query,
            None,
        );
    }
    let concealed = hostile::jpeg_with_concealed_scans(3000, 2000);
    let refused = faults.look_for("concealed.jpg", &concealed, "", None);
    assert!(
        matches!(refused, Err(ConversionError::Picture(_))),
        "{refused:?}"
    );
    faults.assert_none();
}

/// Metadata that is not kept is not held.
#[test]
fn a_png_with_much_exif_takes_no_more_memory_than_one_without() {
    if !is_alone() {
        return;
    }
    let plain = Picture::waves(90, 70).png();
    let mut exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0".to_vec();
    exif.resize(20 << 20, 7);
    let chunk = hostile::chunk(*b"eXIf", &exif);
    // In front of the pixels, and behind them.
    for place in [8 + 25, plain.len() - 12] {
        let file = [&plain[..place], &chunk, &plain[place..]].concat();
        for query in ["", "mode=lossless", "width=20", "watermark=x"] {
            let measured = measure(&file, query, None, 4);
            assert_eq!(measured.outcome, Ok(()), "{query}");
            assert_eq!(measured.fault(), None, "{query}");
            let estimated = measured.estimated.expect("it was estimated");
            assert!(estimated < 16 << 20, "{query}: {estimated}");
        }
        let kept = measure(&file, "metadata=keep", None, 1);
        let Err(ConversionError::Picture(error)) = kept.outcome else {
            panic!("{:?}", kept.outcome);
        };
        assert!(error.to_string().contains("Exif"), "{error}");
    }
    let mut small = Picture::waves(90, 70).png();
    let turning = hostile::chunk(*b"eXIf", &exif[..1000]);
    small.splice(33..33, turning);
    assert_eq!(measure(&small, "metadata=keep", None, 1).outcome, Ok(()));
}

/// Packets of tags, of attributes, of namespaces, of references, and of one long text.
#[test]
fn hostile_descriptions_hold_no_more_than_was_estimated_and_give_little() {
    const HEAD: &str = "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' \
        xmlns:d='http://purl.org/dc/elements/1.1/'><r:Description><d:creator>";
    if !is_alone() {
        return;
    }
    let plain = Picture::waves(90, 70).png();
    for part in [
        "<a>",
        "<a/>",
        "<r:li>x</r:li>",
        "<r:li>&amp;</r:li>",
        "<a xmlns:b='c'>",
        "&amp;",
        "x",
        "</a>",
    ] {
        let packet = format!("XML:com.adobe.xmp\0\0\0\0\0{HEAD}{}", part.repeat(1 << 19));
        let attributes = format!(
            "XML:com.adobe.xmp\0\0\0\0\0<a {}>",
            format!("r:{part}=''").repeat(1 << 17)
        );
        for packet in [packet, attributes] {
            let chunk = hostile::chunk(*b"iTXt", packet.as_bytes());
            let file = [&plain[..33], &chunk, &plain[33..]].concat();
            let measured = measure(&file, "metadata=copyright&mode=lossy", None, 1);
            assert_eq!(measured.fault(), None, "{part}");
            match measured.outcome {
                Ok(()) => {}
                Err(ConversionError::Picture(error)) => {
                    assert!(error.to_string().contains("XMP"), "{error}");
                }
                Err(error) => panic!("{part}: {error}"),
            }
        }
    }
}

/// A profile of a few KB makes tables whose size does not depend on its own.
#[test]
fn small_pictures_with_small_profiles_hold_no_more_than_was_estimated() {
    if !is_alone() {
        return;
    }
    let mut faults = Faults::default();
    for (inputs, factors) in [(3, &[0x11; 3][..]), (4, &[0x11; 4])] {
        let profile = profile_of_tables(inputs, 2);
        let data = [&b"ICC_PROFILE\0\x01\x01"[..], &profile].concat();
        let segment = hostile::segment(0xe2, &data);
        let scan: Vec<u8> = (0..inputs).collect();
        for size in [(1, 1), (16, 16), (90, 40)] {
            let plain = hostile::flat_jpeg(size, factors, &[&scan]);
            let file = [&plain[..2], &segment, &plain[2..]].concat();
            for query in ["", "effort=low&mode=lossy", "metadata=keep", "metadata=icc"] {
                faults.convert(&format!("{inputs} inputs, {size:?}"), &file, query, None);
            }
        }
    }
    faults.assert_none();
}
