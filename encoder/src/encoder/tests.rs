use super::*;
use crate::cancel::tests::Checks;
use crate::picture::{Layout, MAX_SIDE, RgbPicture};
use crate::reference;
use crate::threads::Workers;
use crate::ycbcr::PlanesBuilder;

fn with_threads() -> impl Iterator<Item = (Simd, usize)> {
    let supported = Simd::supported().into_iter();
    supported.flat_map(|simd| [(simd, 1), (simd, 3)])
}

/// `count` bytes without much order.
fn bytes(count: u32) -> Vec<u8> {
    (0..count).map(|i| (i.wrapping_mul(i) >> 6) as u8).collect()
}

fn file(encoder: &Encoder<'_>, picture: &Picture<'_>) -> Vec<u8> {
    encoder.encode(picture).expect("a good picture").file
}

#[test]
fn encoders_say_by_their_name_whether_pixels_change() {
    let pixels = bytes(48 * 48 * 3);
    let picture = Picture::new(48, 48, ColorType::Rgb8, &pixels).expect("good");
    for (encoder, coding) in [
        (Encoder::lossy(75), Coding::Lossy),
        (Encoder::lossy(100), Coding::Lossy),
        (Encoder::lossless(), Coding::Lossless),
    ] {
        let encoded = encoder.encode(&picture).expect("a good picture");
        assert_eq!(encoded.coding, coding);
        let (_, decoded) = reference::decode(&encoded.file);
        let decoded = decoded.iter().flat_map(|pixel| &pixel[..3]);
        let is_same = decoded.eq(&pixels);
        assert_eq!(is_same, coding == Coding::Lossless, "{coding:?}");
    }
}

#[test]
fn gray_and_padded_pictures_give_the_file_of_the_same_colors() {
    let (width, height) = (70, 53);
    // Noise and flat parts, a third of it transparent and a third half so.
    let pixel = |at: u32| {
        let noise = (at.wrapping_mul(at) >> 6) as u8;
        let gray = if at / 70 < 20 { 40 } else { noise };
        [gray, gray, gray, [255, 0, 90][at as usize / 90 % 3]]
    };
    let rgba: Vec<[u8; 4]> = (0..width * height).map(pixel).collect();
    let channels = |kept: &[usize]| -> Vec<u8> {
        let pixels = rgba.iter();
        pixels
            .flat_map(|pixel| kept.iter().map(|channel| pixel[*channel]))
            .collect()
    };
    for encoder in [Encoder::lossy(60), Encoder::lossless(), Encoder::auto(60)] {
        for (kept, color, gray, gray_color) in [
            (&[0, 1, 2][..], ColorType::Rgb8, &[0][..], ColorType::L8),
            (&[0, 1, 2, 3], ColorType::Rgba8, &[0, 3], ColorType::La8),
        ] {
            let (pixels, gray) = (channels(kept), channels(gray));
            let picture = Picture::new(width, height, color, &pixels).expect("good");
            let expected = file(&encoder, &picture);
            let picture = Picture::new(width, height, gray_color, &gray).expect("good");
            assert!(file(&encoder, &picture) == expected, "{gray_color:?}");
            let stride = width as usize * color.bytes_per_pixel() + 11;
            let rows = pixels.chunks(stride - 11);
            let padded: Vec<u8> = rows.flat_map(|row| [row, &[1; 11]].concat()).collect();
            let picture = Picture::with_stride(width, height, color, stride, &padded);
            let picture = picture.expect("good");
            assert!(file(&encoder, &picture) == expected, "{color:?}, padded");
        }
    }
}

#[test]
fn transparent_pixels_have_no_halo_and_exact_ones_keep_their_color() {
    // A white disk on transparent black.
    let pixel = |at: usize| {
        let (x, y) = (at % 64, at / 64);
        let is_inside = x.abs_diff(32).pow(2) + y.abs_diff(32).pow(2) < 600;
        if is_inside { [255; 4] } else { [0, 0, 0, 0] }
    };
    let mut pixels: Vec<[u8; 4]> = (0..64 * 64).map(pixel).collect();
    let encode = |encoder: Encoder<'_>, pixels: &[[u8; 4]]| {
        let picture = Picture::new(64, 64, ColorType::Rgba8, pixels.as_flattened());
        reference::decode(&file(&encoder, &picture.expect("good"))).1
    };
    for pixel in encode(Encoder::lossy(50), &pixels) {
        assert!(pixel[3] == 0 || pixel[0] > 250, "{pixel:?}");
    }
    pixels[0] = [9, 8, 7, 0];
    assert!(encode(Encoder::lossless().exact(true), &pixels) == pixels);
    assert_eq!(encode(Encoder::lossless(), &pixels)[0], [0; 4]);
}

#[test]
fn a_file_is_written_whole() {
    let picture = Picture::new(1, 1, ColorType::L8, &[200]).expect("good");
    let encoder = Encoder::auto(80).exif(b"II").xmp(b"x").icc_profile(b"icc");
    let mut written = Vec::new();
    let coding = encoder.write(&picture, &mut written).expect("a Vec");
    assert_eq!(coding, Coding::Lossless);
    assert_eq!(written, file(&encoder, &picture));
    let mut short = [0; 20];
    let outcome = encoder.write(&picture, &mut short[..]);
    assert!(outcome.is_err(), "the writer is full");
}

#[test]
fn planes_give_the_file_of_the_picture_that_they_were() {
    for (width, height) in [(1, 1), (17, 33), (95, 160)] {
        let pixels = bytes(width * height * 3);
        let rgb = RgbPicture {
            width,
            height,
            layout: Layout::Rgb,
            pixels: &pixels,
        };
        for (simd, threads) in with_threads() {
            let encoder = Encoder::lossy(75).simd(simd).threads(threads);
            let planes = Planes::from_picture(&rgb, simd, Workers::unlimited(1));
            let planes = planes.expect("it is not cancelled");
            let source = || {
                let mut planes = planes.clone();
                // The samples beyond the picture belong to the encoder.
                let (stride, rows) = (planes.luma_stride(), height as usize);
                for row in planes.luma.chunks_mut(stride).take(rows) {
                    row[width as usize..].fill(99);
                }
                planes.luma[rows * stride..].fill(77);
                Planes::from_samples((width, height), planes.luma, planes.chroma)
            };
            let size = (width, height);
            let encoded = encoder.encode_planes(size, source);
            let encoded = encoded.expect("a good picture");
            assert_eq!(encoded.coding, Coding::Lossy);
            let what = format!("{width} x {height}, {simd:?}, {threads} threads");
            let picture = Picture::from(&rgb);
            let expected = file(&encoder, &picture);
            assert!(encoded.file == expected, "{what}");
            let copied = || {
                let [u, v] = &planes.chroma;
                let strides = [planes.luma_stride(), planes.chroma_stride()];
                Planes::copied_from(size, [&planes.luma, u, v], strides)
            };
            let encoded = encoder.encode_planes(size, copied);
            assert!(encoded.expect("good").file == expected, "copied, {what}");
        }
    }
}

#[test]
fn planes_of_other_sizes_are_refused() {
    let planes = |size, luma, chroma| {
        Planes::from_samples(size, vec![0; luma], [vec![0; 64], vec![0; chroma]])
    };
    assert!(planes((16, 1), 256, 64).is_ok());
    assert_eq!(planes((0, 1), 256, 64), Err(EncodeError::Dimensions));
    assert_eq!(
        planes((1, MAX_SIDE + 1), 256, 64),
        Err(EncodeError::Dimensions)
    );
    assert_eq!(planes((17, 1), 256, 64), Err(EncodeError::PixelCount));
    assert_eq!(planes((16, 1), 255, 64), Err(EncodeError::PixelCount));
    assert_eq!(planes((16, 1), 256, 65), Err(EncodeError::PixelCount));
    let source = || planes((16, 1), 256, 64);
    let outcome = Encoder::lossy(75).encode_planes((1, 16), source);
    assert_eq!(outcome, Err(EncodeError::PixelCount));
    let copied = |luma: usize, chroma: usize| {
        let (luma, chroma) = (vec![0; luma], vec![0; chroma]);
        Planes::copied_from((5, 3), [&luma, &chroma, &chroma], [7, 4]).map(|_| ())
    };
    assert_eq!(copied(19, 7), Ok(()));
    assert_eq!(copied(18, 7), Err(EncodeError::PixelCount));
    assert_eq!(copied(19, 6), Err(EncodeError::PixelCount));
}

#[test]
fn a_cancelled_picture_ends_at_the_next_row() {
    let (width, height) = (160, 320);
    let pixels: Vec<u8> = (0..width * height * 4)
        .map(|i: u32| (i.wrapping_mul(i) >> 7) as u8)
        .collect();
    let picture = Picture::new(width, height, ColorType::Rgba8, &pixels).expect("good");
    let encode_for = |allowed: usize, threads: usize| {
        let checks = Checks::new(allowed);
        let is_unwanted = || checks.are_used_up();
        let cancel = Cancel::when(&is_unwanted);
        let encoder = Encoder::lossy(75).threads(threads).cancel(&cancel);
        let outcome = encoder.encode(&picture).map(|_| ());
        (outcome, checks.calls.into_inner())
    };
    let (outcome, calls) = encode_for(usize::MAX, 1);
    assert_eq!(outcome, Ok(()));
    let rows = height as usize / 16;
    assert!(
        calls >= rows,
        "{calls} checks for {rows} rows of macroblocks"
    );
    for threads in [1, 2, 8] {
        for allowed in 0..calls {
            let (outcome, calls) = encode_for(allowed, threads);
            let what = format!("{threads} threads, cancelled after {allowed} checks");
            assert_eq!(outcome, Err(EncodeError::Cancelled), "{what}");
            // Each thread may be about to check when one of them hears the answer.
            assert!(calls <= allowed + threads, "{what}: {calls} checks");
        }
    }
}

/// The pictures of all ways to come to a coding give the same file, or none if lossless coding is
/// to be tried.
#[test]
fn rows_and_pictures_are_decided_alike() {
    let (width, height) = (160, 130);
    let noise = bytes(width * height * 3);
    let grain: Vec<u8> = (0..width * height * 3)
        .map(|at| (at / 3 % width) as u8 + noise[at as usize] / 16)
        .collect();
    let colors: Vec<u8> = (0..width * height)
        .flat_map(|at| [[9, 200, 7], [250, 0, 90]][usize::from(noise[at as usize] > 127)])
        .collect();
    let flat = vec![90; noise.len()];
    let mut codings = Vec::new();
    for pixels in [&noise, &grain, &colors, &flat] {
        let picture = Picture::new(width, height, ColorType::Rgb8, pixels).expect("good");
        for encoder in [Encoder::auto(30), Encoder::auto(100), Encoder::lossy(80)] {
            let mut builder = PlanesBuilder::with_estimate((width, height)).expect("a size");
            for row in pixels.chunks(width as usize * 3) {
                builder.push_row(row).expect("a good row");
            }
            let (planes, estimate) = builder.finish_estimated().expect("all rows");
            let estimate = estimate.expect("it was wanted");
            let source = || Ok(planes.clone());
            let of_rows = encoder.encode_planes_if_lossy((width, height), source, &estimate);
            let of_picture = encoder.encode_if_lossy(&picture).expect("a good picture");
            assert_eq!(of_rows.as_ref(), Ok(&of_picture));
            let encoded = encoder.encode(&picture).expect("a good picture");
            assert!(of_picture.is_none_or(|lossy| lossy == encoded));
            codings.push((of_rows.is_ok_and(|lossy| lossy.is_some()), encoded.coding));
        }
    }
    let lossy = (true, Coding::Lossy);
    let lossless = (false, Coding::Lossless);
    assert_eq!(codings[3..6], [lossy; 3], "grain");
    assert_eq!(codings[6..9], [lossless, lossless, lossy], "two colors");
    assert_eq!(codings[9..12], [lossless, lossless, lossy], "flat");
}
