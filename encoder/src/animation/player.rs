//! Plays animations as a viewer does (RFC 9649, section 2.7.1.1), for tests and fuzz targets.

use crate::reference;

/// Canvases, and the milliseconds for which each is shown. Transparent pixels are 0.
pub type Playback = Vec<(Vec<u8>, u32)>;

/// The canvases that a viewer sees. image-webp decodes each frame; what it makes of several is not
/// exact.
///
/// # Panics
/// If the file is not in order, or half transparent pixels are to be blended: libwebp rounds their
/// color even over nothing.
pub fn play(file: &[u8]) -> Playback {
    let chunks = chunks(&file[12..]);
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rfold(0, |value, &byte| value << 8 | usize::from(byte))
    };
    let (_, canvas) = chunks[0];
    let [width, height] = [4, 7].map(|at| 1 + number(&canvas[at..at + 3]));
    let mut canvas = vec![[0; 4]; width * height];
    let mut playback = Playback::new();
    let mut cleared = None;
    for (_, frame) in chunks.iter().filter(|(name, _)| *name == b"ANMF") {
        let [left, top, columns, rows, time] =
            [0, 3, 6, 9, 12].map(|at| number(&frame[at..at + 3]));
        let (left, top, columns, rows) = (2 * left, 2 * top, columns + 1, rows + 1);
        let places = |(left, top, columns, rows): (usize, usize, usize, usize)| {
            (top..top + rows).flat_map(move |y| (left..left + columns).map(move |x| y * width + x))
        };
        for place in cleared.take().into_iter().flat_map(places) {
            canvas[place] = [0; 4];
        }
        let is_drawn_over = frame[15] & 2 == 0;
        let rect = (left, top, columns, rows);
        let (_, drawn) = reference::decode(&still(columns, rows, &frame[16..]));
        for (place, pixel) in places(rect).zip(drawn) {
            let below = canvas[place];
            canvas[place] = match pixel {
                _ if !is_drawn_over => pixel,
                [.., 0] => below,
                [.., 255] => pixel,
                _ => panic!("half transparent pixels are blended, which is not exact"),
            };
        }
        cleared = (frame[15] & 1 != 0).then_some(rect);
        let seen = canvas
            .iter()
            .map(|&pixel| if pixel[3] == 0 { [0; 4] } else { pixel });
        playback.push((seen.flatten().collect(), time as u32));
    }
    playback
}

/// The canvases, with equal ones that follow each other as one.
pub fn merged(playback: &Playback) -> Playback {
    let mut states: Playback = Vec::new();
    for (canvas, milliseconds) in playback {
        match states.last_mut() {
            Some((last, time)) if last == canvas => *time += milliseconds,
            _ => states.push((canvas.clone(), *milliseconds)),
        }
    }
    states
}

/// The names and data of chunks that follow each other.
fn chunks(mut bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut chunks = Vec::new();
    while let Some((header, rest)) = bytes.split_first_chunk::<8>() {
        let size = u32::from_le_bytes([4, 5, 6, 7].map(|at| header[at])) as usize;
        chunks.push((&bytes[..4], &rest[..size]));
        bytes = &rest[size.next_multiple_of(2)..];
    }
    chunks
}

/// The file of a still picture for the chunks of a frame.
fn still(width: usize, height: usize, frame: &[u8]) -> Vec<u8> {
    let mut data = b"WEBP".to_vec();
    if frame.starts_with(b"ALPH") {
        data.extend(b"VP8X\x0A\0\0\0\x10\0\0\0");
        data.extend(&(width as u32 - 1).to_le_bytes()[..3]);
        data.extend(&(height as u32 - 1).to_le_bytes()[..3]);
    }
    data.extend_from_slice(frame);
    [&b"RIFF"[..], &(data.len() as u32).to_le_bytes(), &data].concat()
}
