//! Compares the encoder with an independent decoder: the decoder's samples must equal the encoder's
//! reconstruction, loop filter included (RFC 6386, sections 5 and 15). Only tests and `fuzz/` use
//! it.

use super::{
    LossyOptions, MAX_TOKEN_PARTITION, choose_segmentation, decide_macroblocks, partition,
    quantizer_index, write_partitions,
};
use crate::picture::RgbPicture;
use crate::vp8::loop_filter::{FilterParameters, decoder};
use crate::ycbcr::Planes;

/// Encodes `picture`, decodes it with an independent decoder, and returns the frame.
///
/// # Panics
/// If encoding or decoding fails, or a sample differs. The message shows the first macroblock that
/// differs.
pub fn assert_decoders_agree(picture: &RgbPicture<'_>, options: &LossyOptions<'_>) -> Vec<u8> {
    assert_filtered_the_same(picture, options, None)
}

/// [`assert_decoders_agree`] with the loop filter `filter`, or with the encoder's choice if `None`.
pub(super) fn assert_filtered_the_same(
    picture: &RgbPicture<'_>,
    options: &LossyOptions<'_>,
    filter: Option<FilterParameters>,
) -> Vec<u8> {
    let (width, height) = (picture.width, picture.height);
    let source =
        Planes::from_picture(picture, options.simd, options.workers).expect("nothing cancels it");
    let (frame, expected) = encode_and_reconstruct(&source, width, height, options, filter);
    let decoded = image_webp::vp8::Vp8Decoder::decode_frame(frame.as_slice())
        .unwrap_or_else(|e| panic!("{width}x{height} {options:?} does not decode: {e}"));
    assert_eq!(
        (u32::from(decoded.width), u32::from(decoded.height)),
        (width, height)
    );
    let planes = [
        ("Y", &expected.luma, &decoded.ybuf, 16),
        ("U", &expected.chroma[0], &decoded.ubuf, 8),
        ("V", &expected.chroma[1], &decoded.vbuf, 8),
    ];
    for (name, ours, theirs, size) in planes {
        let stride = source.mb_width * size;
        if let Some(at) = (0..ours.len()).find(|&i| ours[i] != theirs[i]) {
            let (x, y) = (at % stride, at / stride);
            let (mb_x, mb_y) = (x / size, y / size);
            let rows = |plane: &[u8]| {
                let row = |r: usize| {
                    format!(
                        "{:3?}\n",
                        &plane[(mb_y * size + r) * stride + mb_x * size..][..size]
                    )
                };
                (0..size).map(row).collect::<String>()
            };
            panic!(
                "{width}x{height} {options:?}: {name} first differs at {x}, {y}, in macroblock {mb_x}, {mb_y}\n\
                 the encoder reconstructed\n{}the decoder has\n{}",
                rows(ours),
                rows(theirs)
            );
        }
    }
    frame
}

/// Encodes `source` with the loop filter `filter`, or with the encoder's choice if `None`. Returns
/// the frame, and the samples that a decoder must output for it.
fn encode_and_reconstruct(
    source: &Planes,
    width: u32,
    height: u32,
    options: &LossyOptions<'_>,
    filter: Option<FilterParameters>,
) -> (Vec<u8>, Planes) {
    let segmentation = choose_segmentation(source, quantizer_index(options.quality), options)
        .expect("nothing cancels it");
    let filter =
        filter.unwrap_or_else(|| FilterParameters::choose(&segmentation, options.constants));
    let mut planes = Planes::new(width as usize, height as usize);
    let decisions = decide_macroblocks(source, &segmentation, options, Some(&mut planes))
        .expect("nothing cancels it");
    let partitions = write_partitions(&decisions, &segmentation, filter, options).expect("encodes");
    let frame = partition::assemble(width, height, &partitions, MAX_TOKEN_PARTITION)
        .expect("small partitions");
    for (mb_y, row) in decisions.rows.iter().enumerate() {
        decoder::filter_row(&mut planes, mb_y, &row.records, &filter);
    }
    (frame, planes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Layout;
    use crate::threads::Workers;
    use crate::vp8::constants::Constants;
    use crate::vp8::encoder::encode;
    use crate::{Effort, Simd};
    use std::path::{Path, PathBuf};

    /// The qualities that differ in what they exercise, at the default effort, and every effort.
    const CHOICES: [(u8, Effort); 10] = [
        (0, Effort::Medium),
        (1, Effort::Medium),
        (25, Effort::Medium),
        (50, Effort::Medium),
        (75, Effort::Low),
        (75, Effort::Medium),
        (75, Effort::High),
        (75, Effort::Max),
        (85, Effort::Medium),
        (100, Effort::Medium),
    ];

    #[test]
    fn shipped_pictures_are_reconstructed_the_same() {
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
        for name in ["astronaut.png", "graphic.png"] {
            let picture = OwnedPicture::read(&testdata.join(name)).expect("a good picture");
            for (quality, effort) in CHOICES {
                check(&picture.borrow(), quality, effort, &[2]);
            }
        }
    }

    #[test]
    #[ignore = "takes minutes: set TOWEBP_PICTURES to folders of PNG and JPEG, divided by colons, and run with --ignored"]
    fn pictures_of_folders_are_reconstructed_the_same() {
        let folders = std::env::var_os("TOWEBP_PICTURES")
            .expect("TOWEBP_PICTURES names folders of PNG and JPEG files, divided by colons");
        let mut encodes = 0;
        let files: Vec<PathBuf> = std::env::split_paths(&folders)
            .flat_map(|folder| pictures_in(&folder))
            .collect();
        for (index, file) in files.iter().enumerate() {
            let picture =
                OwnedPicture::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let started = std::time::Instant::now();
            for (quality, effort) in CHOICES {
                encodes += check(&picture.borrow(), quality, effort, &[1, 2, 8]);
            }
            eprintln!(
                "{:3} of {}: {} agrees, {} x {}, {:.0} s",
                index + 1,
                files.len(),
                file.display(),
                picture.width,
                picture.height,
                started.elapsed().as_secs_f64()
            );
        }
        assert!(!files.is_empty(), "no PNG or JPEG file in {folders:?}");
        eprintln!(
            "{} pictures with {} choices of quality and effort, {encodes} encodes: all agree",
            files.len(),
            CHOICES.len()
        );
    }

    /// Asserts decoder agreement, and that all instruction sets and numbers of threads give the
    /// same bytes. Returns the number of encodes.
    fn check(picture: &RgbPicture<'_>, quality: u8, effort: Effort, threads: &[usize]) -> usize {
        let options = LossyOptions {
            quality,
            effort,
            log2_partitions: None,
            constants: &Constants::DEFAULT,
            simd: Simd::detect(),
            workers: Workers::unlimited(2),
        };
        let expected = assert_decoders_agree(picture, &options);
        let mut encodes = 1;
        let source = Planes::from_picture(picture, options.simd, options.workers)
            .expect("nothing cancels it");
        for simd in Simd::supported() {
            for &threads in threads {
                let options = LossyOptions {
                    simd,
                    workers: Workers::unlimited(threads),
                    ..options
                };
                let frame = encode(
                    || Ok(source.clone()),
                    picture.width,
                    picture.height,
                    &options,
                )
                .expect("encodes");
                assert!(frame == expected, "other bytes with {options:?}");
                encodes += 1;
            }
        }
        encodes
    }

    struct OwnedPicture {
        width: u32,
        height: u32,
        rgb: Vec<u8>,
    }

    impl OwnedPicture {
        /// Reads a PNG or JPEG file as RGB; alpha is dropped.
        fn read(path: &Path) -> Result<OwnedPicture, String> {
            let file = std::fs::read(path).map_err(|e| e.to_string())?;
            if file.starts_with(&[0xFF, 0xD8]) {
                read_jpeg(&file)
            } else {
                read_png(&file).map_err(|e| e.to_string())
            }
        }

        fn borrow(&self) -> RgbPicture<'_> {
            RgbPicture {
                width: self.width,
                height: self.height,
                layout: Layout::Rgb,
                pixels: &self.rgb,
            }
        }
    }

    fn read_jpeg(file: &[u8]) -> Result<OwnedPicture, String> {
        use zune_jpeg::zune_core::{
            bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions,
        };
        let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
        let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(file), options);
        let rgb = decoder.decode().map_err(|e| e.to_string())?;
        let (width, height) = decoder.dimensions().expect("it is decoded");
        Ok(OwnedPicture {
            width: width as u32,
            height: height as u32,
            rgb,
        })
    }

    fn read_png(file: &[u8]) -> Result<OwnedPicture, png::DecodingError> {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info()?;
        let mut samples = vec![
            0;
            reader
                .output_buffer_size()
                .expect("a picture of this machine")
        ];
        let info = reader.next_frame(&mut samples)?;
        let pixels = samples.chunks_exact(info.color_type.samples());
        let rgb = match info.color_type {
            png::ColorType::Rgb | png::ColorType::Rgba => {
                pixels.flat_map(|p| [p[0], p[1], p[2]]).collect()
            }
            _ => pixels.flat_map(|p| [p[0]; 3]).collect(),
        };
        Ok(OwnedPicture {
            width: info.width,
            height: info.height,
            rgb,
        })
    }

    /// Lists the PNG and JPEG files of `folder`, sorted by name.
    fn pictures_in(folder: &Path) -> Vec<PathBuf> {
        let entries = folder
            .read_dir()
            .unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.expect("the folder can be read to its end").path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|e| ["png", "jpg", "jpeg"].iter().any(|known| e == *known))
            })
            .collect();
        files.sort();
        files
    }
}
