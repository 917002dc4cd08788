//! GIF, by the crate `gif`: frames on the logical screen, one by one, transparent where none has drawn, as browsers show them.

mod needed;

use crate::image::{DecodeError, Footprint, Image, Layout, Limits, Raw, guarded};
use ::gif::{
    ColorOutput, DecodeOptions, Decoder, DecodingError, DisposalMethod, Frame, MemoryLimit, Repeat,
};
use needed::Needed;
use std::num::NonZeroU64;
use towebp_encoder::{Cancel, Cancelled};

/// Reads the first frame of a GIF. What follows it is not read.
pub(in crate::image) fn read(
    bytes: &[u8],
    limits: &Limits,
    cancel: &Cancel<'_>,
) -> Result<Raw, DecodeError> {
    let mut frames = Frames {
        is_still: true,
        ..Frames::begin(bytes, limits, cancel)?
    };
    frames.draw_next()?.ok_or_else(no_frame)?;
    Ok(Raw {
        image: frames.screen,
        grey: false,
        space: None,
        exif: None,
    })
}

/// The frames of a GIF, drawn one after the other.
pub struct Frames<'a> {
    decoder: Decoder<Needed<'a>>,
    limits: &'a Limits,
    cancel: &'a Cancel<'a>,
    /// As the decoder does not know them; 0 is for ever.
    repetitions: Option<u16>,
    /// What is shown; empty before the first frame.
    screen: Image,
    /// How the frame that was drawn last is left.
    disposal: Disposal,
    /// What the decoder has still before it.
    blocks: Blocks<'a>,
    /// The frame that was drawn last.
    last: Option<Last<'a>>,
    /// Only the first frame is wanted, and not what it covers.
    is_still: bool,
}

/// A frame that was drawn.
#[derive(Debug, PartialEq, Eq)]
pub struct Drawn {
    /// For how long it is shown.
    pub milliseconds: u32,
    /// Where the screen may have changed; of the first frame, all of it.
    pub place: Place,
    /// What it showed there before, row by row.
    pub covered: Vec<[u8; 4]>,
    /// Pixels of the frame or of the screen, whichever has more.
    pub pixels: u64,
}

/// A frame that was drawn, as the file has it.
struct Last<'a> {
    image: &'a [u8],
    transparent: Option<u8>,
    dispose: DisposalMethod,
    /// Whether nothing was below its transparent pixels.
    is_alone: bool,
}

/// What happens to a frame before the next one (GIF 89a, 23).
enum Disposal {
    Keep,
    /// Its place becomes transparent: the background colour is not drawn by any browser.
    Clear(Place),
    /// What was there before it comes back: its pixels, row by row, as far as they are on the screen.
    Restore(Place, Vec<[u8; 4]>),
}

/// A rectangle of the screen, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Columns before it.
    pub left: usize,
    /// Rows before it.
    pub top: usize,
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Drawn {
    fn unchanged(delay: u16, pixels: u64) -> Drawn {
        Drawn {
            milliseconds: milliseconds(delay),
            place: Place {
                left: 0,
                top: 0,
                width: 0,
                height: 0,
            },
            covered: Vec::new(),
            pixels,
        }
    }
}

impl Place {
    fn all(screen: &Image) -> Place {
        Place {
            left: 0,
            top: 0,
            width: screen.width as usize,
            height: screen.height as usize,
        }
    }

    /// What of it is on the screen; at its end, and empty, if nothing is.
    fn on(self, screen: &Image) -> Place {
        let (across, down) = (screen.width as usize, screen.height as usize);
        let (left, top) = (self.left.min(across), self.top.min(down));
        Place {
            left,
            top,
            width: self.width.min(across - left),
            height: self.height.min(down - top),
        }
    }

    fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// The smallest that holds both.
    fn around(self, other: Place) -> Place {
        if self.is_empty() || other.is_empty() {
            return if self.is_empty() { other } else { self };
        }
        let (left, top) = (self.left.min(other.left), self.top.min(other.top));
        let right = (self.left + self.width).max(other.left + other.width);
        let bottom = (self.top + self.height).max(other.top + other.height);
        Place {
            left,
            top,
            width: right - left,
            height: bottom - top,
        }
    }
}

impl<'a> Frames<'a> {
    /// Reads what stands before the first frame.
    ///
    /// # Errors
    /// As [`crate::image::decode`].
    pub fn open(
        bytes: &'a [u8],
        limits: &'a Limits,
        cancel: &'a Cancel<'a>,
    ) -> Result<Frames<'a>, DecodeError> {
        guarded(cancel, || Frames::begin(bytes, limits, cancel))
    }

    fn begin(
        bytes: &'a [u8],
        limits: &'a Limits,
        cancel: &'a Cancel<'a>,
    ) -> Result<Frames<'a>, DecodeError> {
        let mut options = options();
        options.set_color_output(ColorOutput::Indexed);
        options.set_memory_limit(MemoryLimit::Bytes(
            NonZeroU64::new(limits.max_pixels).unwrap_or(NonZeroU64::MIN),
        ));
        let decoder = options
            .read_info(Needed::of(bytes, cancel))
            .map_err(|error| invalid(&error))?;
        let (width, height) = (u32::from(decoder.width()), u32::from(decoder.height()));
        if width != 0 && height != 0 {
            limits.check(width, height)?;
        }
        Ok(Frames {
            decoder,
            limits,
            cancel,
            repetitions: repetitions(bytes),
            screen: Image {
                width,
                height,
                layout: Layout::Rgba,
                pixels: Vec::new(),
            },
            disposal: Disposal::Keep,
            blocks: Blocks::of(bytes),
            last: None,
            is_still: false,
        })
    }

    /// Draws the next frame; `None` after the last one. A file that ends between two frames is taken as it is, as browsers take
    /// it.
    ///
    /// # Errors
    /// As [`crate::image::decode`].
    pub fn draw(&mut self) -> Result<Option<Drawn>, DecodeError> {
        guarded(self.cancel, || self.draw_next())
    }

    /// What is shown now; empty before the first frame.
    pub fn screen(&self) -> &Image {
        &self.screen
    }

    /// How often it is played, 0 for ever; known after the first frame. The file tells how often it is repeated.
    pub fn loops(&self) -> u16 {
        match (self.repetitions, self.decoder.repeat()) {
            (Some(0), _) | (None, Repeat::Infinite) => 0,
            (Some(times), _) | (None, Repeat::Finite(times)) => times.saturating_add(1),
        }
    }

    fn draw_next(&mut self) -> Result<Option<Drawn>, DecodeError> {
        let is_first = self.screen.pixels.is_empty();
        let frame = match self.decoder.next_frame_info() {
            Ok(Some(frame)) => frame.clone(),
            Ok(None) => return Ok(None),
            Err(DecodingError::UnexpectedEof) if !is_first => return Ok(None),
            Err(error) => return Err(invalid(&error)),
        };
        // The indices are one byte a pixel of the frame, which may be larger than the screen.
        let size = (u32::from(frame.width), u32::from(frame.height));
        let count = self.limits.check(size.0, size.1)?;
        let image = self.blocks.find(is_image);
        let descriptor = image.unwrap_or(self.blocks.rest);
        if place_of(descriptor) != Some([frame.left, frame.top, frame.width, frame.height]) {
            // The memory was estimated by what the descriptors say.
            return Err(DecodeError::Invalid(
                "the GIF's blocks are ambiguous".to_owned(),
            ));
        }
        if image.is_some_and(|image| self.repeats(image, &frame)) {
            let pixels = self.pixels_with(count);
            return Ok(Some(Drawn::unchanged(frame.delay, pixels)));
        }
        let palette = self.decoder.palette().map_err(|error| invalid(&error))?;
        let palette = rgba_palette(&frame, palette);
        let mut indices = vec![0; count];
        // All of them at once, and interlaced rows in the order of the file: row by row, the decoder loses codes that go beyond one.
        match self.decoder.fill_buffer(&mut indices) {
            Ok(true) => {}
            Ok(false) => return Err(invalid(&DecodingError::UnexpectedEof)),
            Err(error) => return Err(invalid(&error)),
        }

        let mut place = Place {
            left: usize::from(frame.left),
            top: usize::from(frame.top),
            width: usize::from(frame.width),
            height: usize::from(frame.height),
        };
        if is_first {
            // Some writers leave the logical screen empty: viewers then show the frame alone.
            if self.screen.width == 0 || self.screen.height == 0 {
                (self.screen.width, self.screen.height) = size;
                (place.left, place.top) = (0, 0);
            }
            let count = self.limits.check(self.screen.width, self.screen.height)?;
            self.screen.pixels = vec![0; count * 4];
        }
        let (changed, covered) = self.cover(place, is_first)?;
        let is_in_its_place = (place.left, place.top) == (frame.left.into(), frame.top.into());
        self.last = image.filter(|_| is_in_its_place).map(|image| Last {
            image,
            transparent: frame.transparent,
            dispose: frame.dispose,
            is_alone: is_first || matches!(self.disposal, Disposal::Clear(other) if other == place),
        });
        self.dispose()?;
        self.disposal = match frame.dispose {
            DisposalMethod::Background => Disposal::Clear(place),
            DisposalMethod::Previous => Disposal::Restore(place, self.copy(place)?),
            DisposalMethod::Any | DisposalMethod::Keep => Disposal::Keep,
        };
        let row = if frame.interlaced {
            interlaced_row
        } else {
            |y, _| y
        };
        self.lay(place, |y| row(y, place.height), &indices, &palette)?;
        Ok(Some(Drawn {
            milliseconds: milliseconds(frame.delay),
            place: changed,
            covered,
            pixels: self.pixels_with(count),
        }))
    }

    /// Pixels of a frame of so many, or of the screen, whichever has more.
    fn pixels_with(&self, frame: usize) -> u64 {
        (frame as u64).max(u64::from(self.screen.width) * u64::from(self.screen.height))
    }

    /// Whether a frame makes of the screen what the last one did, and leaves it so: it need not be decoded.
    fn repeats(&self, image: &[u8], frame: &Frame<'_>) -> bool {
        self.last.as_ref().is_some_and(|last| {
            // What was restored or kept below it is there still; what was cleared is not, unless there was nothing.
            last.image == image
                && last.transparent == frame.transparent
                && last.dispose == frame.dispose
                && (last.is_alone || last.dispose != DisposalMethod::Background)
        })
    }

    /// Where a frame will change the screen, by how the one before is left, too, and what is there.
    fn cover(&mut self, place: Place, is_first: bool) -> Result<(Place, Vec<[u8; 4]>), Cancelled> {
        if self.is_still {
            return Ok((Place::all(&self.screen), Vec::new()));
        }
        if is_first {
            let all = Place::all(&self.screen);
            // Zeroed memory takes none before it is written to.
            return Ok((all, vec![[0; 4]; all.width * all.height]));
        }
        let place = place.on(&self.screen);
        let place = match &self.disposal {
            Disposal::Keep => place,
            Disposal::Clear(other) | Disposal::Restore(other, _) => {
                place.around(other.on(&self.screen))
            }
        };
        Ok((place, self.copy(place)?))
    }

    fn dispose(&mut self) -> Result<(), Cancelled> {
        match std::mem::replace(&mut self.disposal, Disposal::Keep) {
            Disposal::Keep => {}
            Disposal::Clear(place) => {
                for row in self.screen.rows_of(place) {
                    self.cancel.check()?;
                    row.fill([0; 4]);
                }
            }
            Disposal::Restore(place, pixels) => {
                let mut rest = pixels.as_slice();
                for row in self.screen.rows_of(place) {
                    self.cancel.check()?;
                    let (pixels, below) = rest.split_at(row.len());
                    row.copy_from_slice(pixels);
                    rest = below;
                }
            }
        }
        Ok(())
    }

    /// The pixels of the screen, row by row.
    fn copy(&mut self, place: Place) -> Result<Vec<[u8; 4]>, Cancelled> {
        let on_screen = place.on(&self.screen);
        let mut pixels = Vec::with_capacity(on_screen.width * on_screen.height);
        for row in self.screen.rows_of(place) {
            self.cancel.check()?;
            pixels.extend_from_slice(row);
        }
        Ok(pixels)
    }

    /// Draws the indices of a frame. `stored` says where each of its rows stands among them.
    fn lay(
        &mut self,
        place: Place,
        stored: impl Fn(usize) -> usize,
        indices: &[u8],
        palette: &[[u8; 4]; 256],
    ) -> Result<(), Cancelled> {
        for (y, row) in self.screen.rows_of(place).enumerate() {
            self.cancel.check()?;
            let indices = &indices[stored(y) * place.width..][..place.width];
            for (pixel, &index) in row.iter_mut().zip(indices) {
                let color = palette[usize::from(index)];
                if color[3] != 0 {
                    *pixel = color;
                }
            }
        }
        Ok(())
    }
}

/// Where a row of an interlaced frame stands in the file, behind those of the passes before its own (GIF 89a, appendix E).
fn interlaced_row(y: usize, height: usize) -> usize {
    match y % 8 {
        0 => y / 8,
        4 => height.div_ceil(8) + y / 8,
        2 | 6 => height.div_ceil(4) + y / 4,
        _ => height.div_ceil(2) + y / 2,
    }
}

impl Image {
    /// The rows of what lies within the picture.
    fn rows_of(&mut self, place: Place) -> impl Iterator<Item = &mut [[u8; 4]]> {
        let width = self.width as usize;
        let columns = place.left.min(width)..(place.left + place.width).min(width);
        let rows = self.pixels.as_chunks_mut::<4>().0.chunks_exact_mut(width);
        let rows = rows.skip(place.top).take(place.height);
        rows.map(move |row| &mut row[columns.clone()])
    }
}

/// As browsers play it: what is to be shown for no time or a hundredth of a second is shown for a tenth.
fn milliseconds(hundredths: u16) -> u32 {
    match hundredths {
        0 | 1 => 100,
        more => u32::from(more) * 10,
    }
}

/// Whether there is more than one frame, by the outline of the file; nothing is decoded.
pub fn is_animated(bytes: &[u8]) -> bool {
    Blocks::of(bytes).filter(is_image).nth(1).is_some()
}

fn is_image(block: &&[u8]) -> bool {
    block.starts_with(b",")
}

/// The outline of a file (GIF 89a, appendix B): each extension, and each image from its descriptor to the end of its data. It ends
/// where a block does not, and at a byte that begins neither.
pub(in crate::image) struct Blocks<'a> {
    rest: &'a [u8],
}

impl Blocks<'_> {
    pub(in crate::image) fn of(bytes: &[u8]) -> Blocks<'_> {
        Blocks {
            rest: behind_head(bytes).unwrap_or_default(),
        }
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (b'!' | b',') = self.rest.first()? else {
            return None;
        };
        let behind = behind_block(self.rest)?;
        let (block, behind) = self.rest.split_at(self.rest.len() - behind.len());
        self.rest = behind;
        Some(block)
    }
}

/// Left, top, width and height by the descriptor of an image (GIF 89a, 20), which need not be whole.
fn place_of(image: &[u8]) -> Option<[u16; 4]> {
    let &[b',', ref place @ ..] = image else {
        return None;
    };
    let place = place.first_chunk::<8>()?.as_chunks::<2>().0;
    Some([0, 1, 2, 3].map(|side| u16::from_le_bytes(place[side])))
}

/// Width and height of all frames by their descriptors, of a last one that is cut, too.
fn frame_sizes(bytes: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    let mut blocks = Blocks::of(bytes);
    std::iter::from_fn(move || {
        let image = match blocks.find(is_image) {
            Some(image) => image,
            None => std::mem::take(&mut blocks.rest),
        };
        let [.., width, height] = place_of(image)?;
        Some((u32::from(width), u32::from(height)))
    })
}

/// What an extension before the first image says under the older of the two names that browsers know.
fn repetitions(bytes: &[u8]) -> Option<u16> {
    const BEGIN: &[u8] = b"!\xff\x0bANIMEXTS1.0\x03\x01";
    let mut extensions = Blocks::of(bytes).take_while(|block| !is_image(block));
    extensions.find_map(|block| match block.strip_prefix(BEGIN)? {
        [low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    })
}

/// What follows the logical screen descriptor and its colours.
fn behind_head(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(13 + table_bytes(*bytes.get(10)?)..)
}

/// What follows the extension or the image that `bytes` begin with.
fn behind_block(bytes: &[u8]) -> Option<&[u8]> {
    let head = match bytes.first()? {
        // Behind the descriptor and its table, the size of the codes.
        b',' => 11 + table_bytes(*bytes.get(9)?),
        _ => 2,
    };
    let mut rest = bytes.get(head..)?;
    while let (&length @ 1.., behind) = rest.split_first()? {
        rest = behind.get(usize::from(length)..)?;
    }
    rest.get(1..)
}

/// Of a colour table, by the flags before it.
fn table_bytes(flags: u8) -> usize {
    if flags & 0x80 == 0 {
        0
    } else {
        3 << ((flags & 7) + 1)
    }
}

/// Blocks that nobody knows are passed over, of which [`Needed`] keeps all from the decoder.
fn options() -> DecodeOptions {
    let mut options = DecodeOptions::new();
    options.allow_unknown_blocks(true);
    options
}

/// The decoder's tables, and its window.
const TABLES: u64 = 1 << 20;

/// What [`Frames`] take, whose frames may be larger than the screen.
pub(in crate::image) fn probe_animation(
    bytes: &[u8],
    limits: &Limits,
) -> Result<Footprint, DecodeError> {
    let screen = probe(bytes, limits)?;
    let (mut largest, mut frames, mut pixels) = (0, 0u32, 0u64);
    for (width, height) in frame_sizes(bytes) {
        let frame = limits.check(width, height)? as u64;
        largest = frame.max(largest);
        frames = frames.saturating_add(1);
        pixels = pixels.saturating_add(frame.max(screen.count()));
        limits.check_film(frames, pixels)?;
    }
    Ok(Footprint {
        layout: Layout::Rgba,
        decoder: TABLES + largest,
        ..screen
    })
}

/// What [`read`] takes.
pub(in crate::image) fn probe(bytes: &[u8], limits: &Limits) -> Result<Footprint, DecodeError> {
    let cancel = Cancel::never();
    let mut decoder = options()
        .read_info(Needed::of(bytes, &cancel))
        .map_err(|error| invalid(&error))?;
    let screen = (u32::from(decoder.width()), u32::from(decoder.height()));
    let frame = decoder.next_frame_info().map_err(|error| invalid(&error))?;
    let frame = frame.ok_or_else(no_frame)?.clone();
    let size = (u32::from(frame.width), u32::from(frame.height));
    let indices = limits.check(size.0, size.1)? as u64;
    let (width, height) = if screen.0 == 0 || screen.1 == 0 {
        size
    } else {
        screen
    };
    let count = limits.check(width, height)? as u64;
    let colors = decoder.palette().map_err(|error| invalid(&error))?.len() / 3;
    let covers = (frame.left, frame.top) == (0, 0) && size == (width, height);
    let is_opaque = covers && frame.transparent.is_none() && colors == 256;
    // The alpha channel of what is opaque is given up once it is decoded.
    let (layout, alpha) = if is_opaque {
        (Layout::Rgb, count)
    } else {
        (Layout::Rgba, 0)
    };
    Ok(Footprint {
        width,
        height,
        layout,
        decoder: TABLES + indices + alpha,
        planes: None,
    })
}

fn no_frame() -> DecodeError {
    DecodeError::Invalid("the GIF has no frame".to_owned())
}

/// The frame's colours; indices beyond its palette are transparent, as browsers show them.
fn rgba_palette(frame: &Frame<'_>, palette: &[u8]) -> [[u8; 4]; 256] {
    let mut colors = [[0; 4]; 256];
    for (color, &[red, green, blue]) in colors.iter_mut().zip(palette.as_chunks::<3>().0) {
        *color = [red, green, blue, 255];
    }
    if let Some(transparent) = frame.transparent {
        colors[usize::from(transparent)] = [0; 4];
    }
    colors
}

fn invalid(error: &DecodingError) -> DecodeError {
    DecodeError::Invalid(match error {
        DecodingError::UnexpectedEof | DecodingError::Io(_) => {
            "the GIF data ends too early".to_owned()
        }
        other => format!(
            "the GIF data is damaged ({})",
            other.to_string().trim_end_matches('.')
        ),
    })
}

#[cfg(test)]
mod frames_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::tests::{LIMITS, assert_parts_are_refused};
    use ::gif::Encoder;

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
    fn a_smaller_frame_lies_on_a_transparent_screen() {
        let file = gif(3, 2, &[frame(1, 1, 2, 1, &[1, 2])]);
        assert_eq!(pixels(&file), [NONE, NONE, NONE, NONE, SECOND, THIRD]);
    }

    #[test]
    fn a_frame_that_leaves_the_screen_is_cut() {
        let file = gif(2, 2, &[frame(1, 1, 3, 2, &[1, 2, 2, 2, 2, 2])]);
        assert_eq!(pixels(&file), [NONE, NONE, NONE, SECOND]);
        assert_eq!(pixels(&gif(1, 1, &[frame(5, 7, 1, 1, &[1])])), [NONE]);
    }

    #[test]
    fn the_transparent_index_and_indices_without_a_colour_are_transparent() {
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
    fn interlaced_rows_are_sorted() {
        // The passes of GIF 89a, appendix E: the first row and the step. In flat rows one code may stand for several.
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
    fn an_empty_screen_takes_the_frames_size() {
        assert_eq!(
            pixels(&gif(0, 0, &[frame(3, 3, 2, 1, &[0, 1])])),
            [FIRST, SECOND]
        );
    }

    #[test]
    fn a_file_that_ends_before_the_first_frame_does_is_refused() {
        let indices: Vec<u8> = (0..1200)
            .map(|index| (index * index % 7 % 4) as u8)
            .collect();
        let file = gif(40, 30, &[frame(0, 0, 40, 30, &indices)]);
        assert_eq!(pixels(&file).len(), 1200);
        // The last bytes are the end of the data's blocks and the trailer.
        assert_parts_are_refused(read, &file, 6..file.len() - 4);
        assert!(
            read(&gif(4, 4, &[]), &LIMITS, &Cancel::never()).is_err(),
            "no frame at all"
        );
    }

    #[test]
    fn screen_and_frame_are_held_to_the_limits() {
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
