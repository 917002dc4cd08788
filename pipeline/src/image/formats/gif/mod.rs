//! GIF, by the crate `gif`: frames on the logical screen, transparent where no frame has drawn, as
//! browsers show them.

mod decoder;
mod frames;
mod outline;

pub use frames::Frames;

use crate::image::decoded::Decoded;
use crate::image::error::DecodeError;
use crate::image::footprint::Footprint;
use crate::image::guard::decode_guarded;
use crate::image::limits::Limits;
use crate::image::pixels::Layout;
use crate::image::reader::CancellableReader;
use ::gif::DecodeOptions;
use decoder::{invalid, no_frame};
use outline::Outline;
use towebp_encoder::Cancel;

/// Bytes of the decoder's tables and of its window.
const TABLES: u64 = 1 << 20;

/// A GIF whose outline was walked.
#[derive(Debug)]
pub struct Header<'a> {
    outline: Outline<'a>,
}

impl<'a> Header<'a> {
    /// Walks the outline of a file. Of an animation it keeps at most as many frames as `limits`
    /// allow, and one more.
    ///
    /// # Errors
    /// There are more extensions than any writer has use for.
    pub fn read(bytes: &'a [u8], limits: &Limits) -> Result<Header<'a>, DecodeError> {
        let outline = Outline::walk(bytes, limits.max_frames)?;
        Ok(Header { outline })
    }

    /// Whether there is more than one frame.
    pub fn is_animated(&self) -> bool {
        self.outline.is_animated()
    }

    /// The memory that [`Header::decode_first`] takes.
    ///
    /// # Errors
    /// Canvas or first frame are damaged or not within `limits`.
    pub fn footprint(&self, limits: &Limits) -> Result<Footprint, DecodeError> {
        let cancel = Cancel::never();
        let reader = CancellableReader::of_parts(&self.outline.parts, usize::MAX, &cancel);
        let mut decoder = DecodeOptions::new()
            .read_info(reader)
            .map_err(|error| invalid(&error))?;
        let canvas = (u32::from(decoder.width()), u32::from(decoder.height()));
        let frame = decoder.next_frame_info().map_err(|error| invalid(&error))?;
        let frame = frame.ok_or_else(no_frame)?.clone();
        let size = (u32::from(frame.width), u32::from(frame.height));
        let indices = limits.check(size.0, size.1)? as u64;
        let (width, height) = if canvas.0 == 0 || canvas.1 == 0 {
            size
        } else {
            canvas
        };
        let count = limits.check(width, height)? as u64;
        let colors = decoder.palette().map_err(|error| invalid(&error))?.len() / 3;
        let covers = (frame.left, frame.top) == (0, 0) && size == (width, height);
        let is_opaque = covers && frame.transparent.is_none() && colors == 256;
        // The alpha channel of an opaque picture is dropped once it is decoded.
        let (layout, alpha) = if is_opaque {
            (Layout::Rgb, count)
        } else {
            (Layout::Rgba, 0)
        };
        Ok(Footprint {
            width,
            height,
            layout,
            decoder: TABLES + indices + alpha + self.outline.held_bytes(),
        })
    }

    /// The memory that [`Header::frames`] take, whose frames may be larger than the canvas, by the
    /// memory that the first frame takes.
    ///
    /// # Errors
    /// A frame is not within `limits`, or all frames together are not.
    pub fn animation_footprint(
        &self,
        first: &Footprint,
        limits: &Limits,
    ) -> Result<Footprint, DecodeError> {
        let mut largest = 0;
        for (width, height) in self.outline.frame_sizes() {
            largest = largest.max(limits.check(width, height)? as u64);
        }
        self.check_animation(first.pixel_count(), limits)?;
        Ok(Footprint {
            layout: Layout::Rgba,
            decoder: TABLES + largest + self.outline.held_bytes(),
            ..*first
        })
    }

    /// Checks the pixels of all frames together, each as large as a canvas of so many, or larger.
    ///
    /// # Errors
    /// They are not within `limits`.
    pub fn check_animation(&self, canvas: u64, limits: &Limits) -> Result<(), DecodeError> {
        let (mut frames, mut pixels) = (0u32, 0u64);
        for (width, height) in self.outline.frame_sizes() {
            let frame = u64::from(width) * u64::from(height);
            frames = frames.saturating_add(1);
            pixels = pixels.saturating_add(frame.max(canvas));
            limits.check_animation(frames, pixels)?;
        }
        Ok(())
    }

    /// The bytes of the metadata: an XMP packet.
    pub fn metadata_bytes(&self) -> u64 {
        self.xmp().map_or(0, <[u8]>::len) as u64
    }

    /// The XMP packet.
    pub fn xmp(&self) -> Option<&'a [u8]> {
        self.outline.xmp
    }

    /// Decodes the first frame. The ones behind it are not read.
    pub fn decode_first(
        &self,
        limits: &Limits,
        cancel: &Cancel<'_>,
    ) -> Result<Decoded, DecodeError> {
        Ok(Decoded {
            image: Frames::new(&self.outline, *limits, cancel)?.into_first()?,
            is_gray: false,
            space: None,
        })
    }

    /// The frames, of which none is drawn yet.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn frames(
        &'a self,
        limits: &Limits,
        cancel: &'a Cancel<'a>,
    ) -> Result<Frames<'a>, DecodeError> {
        decode_guarded(cancel, || Frames::new(&self.outline, *limits, cancel))
    }
}

#[cfg(test)]
mod frames_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::testing::{LIMITS, assert_as_promised, assert_parts_are_rejected, rejection};
    use ::gif::{Encoder, Frame};

    const PALETTE: [u8; 12] = [10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42];

    fn gif(width: u16, height: u16, frames: &[Frame<'_>]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder =
            Encoder::new(&mut file, width, height, &PALETTE).expect("a valid palette");
        for frame in frames {
            encoder.write_frame(frame).expect("a valid frame");
        }
        drop(encoder);
        file
    }

    fn frame(left: u16, top: u16, width: u16, height: u16, indices: &[u8]) -> Frame<'_> {
        Frame {
            left,
            top,
            width,
            height,
            buffer: indices.into(),
            ..Frame::default()
        }
    }

    fn read(bytes: &[u8], limits: &Limits, cancel: &Cancel<'_>) -> Result<Decoded, DecodeError> {
        let header = Header::read(bytes, limits)?;
        let decoded = header.decode_first(limits, cancel)?;
        let promised = header.footprint(limits).expect("it was decoded");
        assert_as_promised(&promised, &decoded.image);
        Ok(decoded)
    }

    fn pixels(file: &[u8]) -> Vec<[u8; 4]> {
        let raw = read(file, &LIMITS, &Cancel::never()).unwrap_or_else(|error| panic!("{error}"));
        raw.image.pixels.as_chunks().0.to_vec()
    }

    const NONE: [u8; 4] = [0; 4];
    const FIRST: [u8; 4] = [10, 11, 12, 255];
    const SECOND: [u8; 4] = [20, 21, 22, 255];
    const THIRD: [u8; 4] = [30, 31, 32, 255];

    #[test]
    fn the_first_frame_is_shown() {
        let file = gif(
            2,
            2,
            &[
                frame(0, 0, 2, 2, &[0, 1, 2, 0]),
                frame(0, 0, 2, 2, &[3, 3, 3, 3]),
            ],
        );
        assert_eq!(pixels(&file), [FIRST, SECOND, THIRD, FIRST]);
    }

    #[test]
    fn a_smaller_frame_lies_on_a_transparent_canvas() {
        let file = gif(3, 2, &[frame(1, 1, 2, 1, &[1, 2])]);
        assert_eq!(pixels(&file), [NONE, NONE, NONE, NONE, SECOND, THIRD]);
    }

    #[test]
    fn a_frame_that_leaves_the_canvas_is_clipped() {
        let file = gif(2, 2, &[frame(1, 1, 3, 2, &[1, 2, 2, 2, 2, 2])]);
        assert_eq!(pixels(&file), [NONE, NONE, NONE, SECOND]);
        assert_eq!(pixels(&gif(1, 1, &[frame(5, 7, 1, 1, &[1])])), [NONE]);
    }

    #[test]
    fn the_transparent_index_and_indices_without_a_color_are_transparent() {
        let transparent = Frame {
            transparent: Some(1),
            ..frame(0, 0, 2, 1, &[1, 0])
        };
        assert_eq!(pixels(&gif(2, 1, &[transparent])), [NONE, FIRST]);
        assert_eq!(
            pixels(&gif(2, 1, &[frame(0, 0, 2, 1, &[200, 0])])),
            [NONE, FIRST]
        );
    }

    #[test]
    fn only_a_frame_that_covers_the_canvas_in_256_colors_is_opaque_for_certain() {
        let layout = |colors: u8, canvas: (u16, u16), frame: Frame<'_>| {
            let palette = vec![9; 3 * (usize::from(colors) + 1)];
            let mut file = Vec::new();
            let encoder = Encoder::new(&mut file, canvas.0, canvas.1, &palette);
            let mut encoder = encoder.expect("a valid palette");
            encoder.write_frame(&frame).expect("a valid frame");
            drop(encoder);
            let image = read(&file, &LIMITS, &Cancel::never()).expect("a valid picture");
            assert_eq!(image.image.width, u32::from(canvas.0));
            let header = Header::read(&file, &LIMITS).expect("it was read");
            let promised = header.footprint(&LIMITS).expect("it was read");
            (
                promised.layout,
                promised.decoder - header.outline.held_bytes() - TABLES,
            )
        };
        let whole = || frame(0, 0, 2, 1, &[0, 1]);
        // A byte for each index, and for each pixel's alpha before that is dropped.
        assert_eq!(layout(255, (2, 1), whole()), (Layout::Rgb, 2 + 2));
        assert_eq!(layout(127, (2, 1), whole()), (Layout::Rgba, 2));
        let transparent = Frame {
            transparent: Some(7),
            ..whole()
        };
        assert_eq!(layout(255, (2, 1), transparent), (Layout::Rgba, 2));
        assert_eq!(layout(255, (3, 1), whole()), (Layout::Rgba, 2));
        let moved = frame(1, 0, 2, 1, &[0, 1]);
        assert_eq!(layout(255, (2, 1), moved), (Layout::Rgba, 2));
    }

    #[test]
    fn interlaced_rows_are_sorted() {
        // The passes of GIF 89a, appendix E: the first row and the step. In flat rows one code may
        // stand for several.
        const PASSES: [(usize, usize); 4] = [(0, 8), (4, 8), (2, 4), (1, 2)];
        for (width, height) in [(1, 4), (5, 1), (9, 9), (17, 16), (30, 23), (47, 63)] {
            for index in [|_| 0, |y| y as u8 % 3, |y| y as u8 / 8 % 3] {
                let rows: Vec<usize> = PASSES
                    .iter()
                    .flat_map(|&(first, step)| (first..height).step_by(step))
                    .collect();
                let indices: Vec<u8> = rows.iter().flat_map(|&y| vec![index(y); width]).collect();
                let interlaced = Frame {
                    interlaced: true,
                    ..frame(0, 0, width as u16, height as u16, &indices)
                };
                let file = gif(width as u16, height as u16, &[interlaced]);
                let color = |y| [FIRST, SECOND, THIRD][usize::from(index(y))];
                let expected: Vec<[u8; 4]> =
                    (0..height).flat_map(|y| vec![color(y); width]).collect();
                assert!(pixels(&file) == expected, "{width} x {height}");
            }
        }
    }

    #[test]
    fn an_empty_canvas_takes_the_frames_size() {
        assert_eq!(
            pixels(&gif(0, 0, &[frame(3, 3, 2, 1, &[0, 1])])),
            [FIRST, SECOND]
        );
        let pixels = pixels(&gif(0, 2, &[frame(0, 0, 1, 3, &[0, 1, 0])]));
        assert_eq!(pixels, [FIRST, SECOND, FIRST], "one side is empty");
    }

    #[test]
    fn a_file_that_ends_before_the_first_frame_does_is_rejected() {
        let indices: Vec<u8> = (0..1200)
            .map(|index| (index * index % 7 % 4) as u8)
            .collect();
        let file = gif(40, 30, &[frame(0, 0, 40, 30, &indices)]);
        assert_eq!(pixels(&file).len(), 1200);
        // The last bytes are the end of the data's blocks and the trailer.
        assert_parts_are_rejected(read, &file, 6..file.len() - 4);
        for length in [20, file.len() / 2] {
            let reason = rejection(read, &file[..length]);
            assert!(reason.contains("ends too early"), "{length}: {reason}");
        }
        let reason = rejection(read, &gif(4, 4, &[]));
        assert!(reason.contains("ends too early"), "no frame: {reason}");
    }

    #[test]
    fn canvas_and_frame_are_held_to_the_limits() {
        let error = |width, height, frame_width, frame_height| {
            // The header alone: no data stands behind these sizes.
            let mut file = gif(width, height, &[frame(0, 0, 1, 1, &[0])]);
            let descriptor = file
                .iter()
                .position(|&byte| byte == b',')
                .expect("an image descriptor")
                + 5;
            file[descriptor..descriptor + 2].copy_from_slice(&u16::to_le_bytes(frame_width));
            file[descriptor + 2..descriptor + 4].copy_from_slice(&u16::to_le_bytes(frame_height));
            read(&file, &LIMITS, &Cancel::never()).err()
        };
        assert_eq!(
            error(1001, 1, 1, 1),
            Some(DecodeError::TooWide {
                width: 1001,
                height: 1,
                max_side: 1000
            })
        );
        assert_eq!(
            error(101, 100, 1, 1),
            Some(DecodeError::TooManyPixels {
                width: 101,
                height: 100,
                max_pixels: 10_000
            })
        );
        assert_eq!(
            error(1, 1, 65535, 1),
            Some(DecodeError::TooWide {
                width: 65535,
                height: 1,
                max_side: 1000
            })
        );
        assert_eq!(
            error(1, 1, 100, 101),
            Some(DecodeError::TooManyPixels {
                width: 100,
                height: 101,
                max_pixels: 10_000
            })
        );
        assert!(error(1, 1, 0, 1).is_some(), "an empty frame");
        assert_eq!(error(1000, 10, 1, 1), None);
    }
}
