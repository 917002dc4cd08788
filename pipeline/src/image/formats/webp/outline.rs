//! The outline of a WebP (RFC 9649, 2.4 to 2.7), walked once: its chunks, without their pixels.

use super::bitstream::Bitstream;
use super::chunk::{Chunk, Chunks, damaged, u24};
use crate::image::animation::DisposalMethod;
use crate::image::error::DecodeError;
use crate::image::rectangle::Rectangle;

/// The flags of the chunk `VP8X`.
const ANIMATION: u8 = 1 << 1;
const PROFILE: u8 = 1 << 5;

/// The chunks of a WebP, without the pixels.
#[derive(Debug)]
pub struct Outline<'a> {
    /// Width and height in pixels.
    pub canvas: (u32, u32),
    pub pixels: Pixels<'a>,
    /// The ICC profile, Exif and the XMP packet.
    pub profile: Option<&'a [u8]>,
    pub exif: Option<&'a [u8]>,
    pub xmp: Option<&'a [u8]>,
}

/// The parts of the file that have pixels.
#[derive(Debug)]
pub enum Pixels<'a> {
    Still(Bitstream<'a>),
    /// The data of the chunks `ANMF`, at least one, and at most one more than an animation may have
    /// frames; and the number of times that they are played, 0 for ever.
    Animation(Vec<&'a [u8]>, u16),
}

/// A frame of an animation.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Its place on the canvas.
    pub rectangle: Rectangle,
    pub milliseconds: u32,
    pub disposal: DisposalMethod,
    /// Whether it is blended with the canvas, instead of replacing it.
    pub is_drawn_over: bool,
    pub bitstream: Bitstream<'a>,
}

impl<'a> Outline<'a> {
    /// Walks the chunks of a file, and keeps those of at most `max_frames` frames and one more.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] if they are damaged or not all there.
    pub fn walk(bytes: &'a [u8], max_frames: u32) -> Result<Outline<'a>, DecodeError> {
        /// Bytes of the name `RIFF` and the size, which counts what follows, and of `WEBP`.
        const HEAD: usize = 12;
        let size = bytes.get(4..).and_then(|rest| rest.first_chunk());
        let size = size.map_or(0, |size| u32::from_le_bytes(*size)) as usize;
        let chunks = size.checked_add(8).and_then(|end| bytes.get(HEAD..end));
        let chunks = chunks.ok_or_else(|| damaged("it is shorter than it says"))?;
        let mut chunks = Chunks(chunks);
        let first = chunks.next().unwrap_or(Err(damaged("it has no chunks")))?;
        if first.name != *b"VP8X" {
            let bitstream = Bitstream::of(None, &first)?;
            return Ok(Outline {
                canvas: bitstream.size,
                pixels: Pixels::Still(bitstream),
                profile: None,
                exif: None,
                xmp: None,
            });
        }
        let side = |at| Some(u24(first.data, at)? + 1);
        let (Some(&flags), Some(canvas)) = (first.data.first(), side(4).zip(side(7))) else {
            return Err(damaged("its header is too short"));
        };
        let found = Found::among(chunks, max_frames)?;
        let pixels = if flags & ANIMATION != 0 {
            // The color of the background, which no browser draws, comes before the number.
            let loops = found
                .animation
                .and_then(|data| data.get(4..)?.first_chunk());
            let loops = loops.ok_or_else(|| damaged("its animation has no header"))?;
            if found.frames.is_empty() {
                return Err(damaged("its animation has no frames"));
            }
            Pixels::Animation(found.frames, u16::from_le_bytes(*loops))
        } else {
            let picture = found.picture.ok_or_else(|| damaged("it has no picture"))?;
            let bitstream = Bitstream::of(found.alpha.as_ref(), &picture)?;
            if bitstream.size != canvas {
                return Err(damaged("its picture has another size than its canvas"));
            }
            Pixels::Still(bitstream)
        };
        Ok(Outline {
            canvas,
            pixels,
            profile: found.profile.filter(|_| flags & PROFILE != 0),
            exif: found.exif,
            xmp: found.xmp,
        })
    }
}

impl<'a> Frame<'a> {
    /// Reads the data of a chunk `ANMF`.
    ///
    /// # Errors
    /// [`DecodeError::Invalid`] if it is damaged, or leaves the canvas.
    pub fn read(data: &'a [u8], canvas: (u32, u32)) -> Result<Frame<'a>, DecodeError> {
        const HEAD: usize = 16;
        let Some((head, chunks)) = data.split_at_checked(HEAD) else {
            return Err(damaged("a frame has no header"));
        };
        let number = |at| u24(head, at).unwrap_or_default();
        let (left, top) = (number(0) * 2, number(3) * 2);
        let (width, height) = (number(6) + 1, number(9) + 1);
        if left + width > canvas.0 || top + height > canvas.1 {
            return Err(damaged("a frame leaves the canvas"));
        }
        let found = Found::among(Chunks(chunks), 0)?;
        let picture = found.picture.ok_or_else(|| damaged("a frame is empty"))?;
        let bitstream = Bitstream::of(found.alpha.as_ref(), &picture)?;
        if bitstream.size != (width, height) {
            return Err(damaged("a frame has another size than its header says"));
        }
        let flags = head[HEAD - 1];
        Ok(Frame {
            rectangle: Rectangle {
                left: left as usize,
                top: top as usize,
                width: width as usize,
                height: height as usize,
            },
            milliseconds: number(12),
            disposal: if flags & 1 == 0 {
                DisposalMethod::Keep
            } else {
                DisposalMethod::Clear
            },
            is_drawn_over: flags & 2 == 0,
            bitstream,
        })
    }
}

/// The first chunk of each name, and all frames.
#[derive(Default)]
struct Found<'a> {
    alpha: Option<Chunk<'a>>,
    /// The one with a bitstream.
    picture: Option<Chunk<'a>>,
    animation: Option<&'a [u8]>,
    frames: Vec<&'a [u8]>,
    profile: Option<&'a [u8]>,
    exif: Option<&'a [u8]>,
    xmp: Option<&'a [u8]>,
}

impl<'a> Found<'a> {
    fn among(chunks: Chunks<'a>, max_frames: u32) -> Result<Found<'a>, DecodeError> {
        let mut found = Found::default();
        for chunk in chunks {
            let chunk = chunk?;
            let data = Some(chunk.data);
            match &chunk.name {
                b"ALPH" => found.alpha = found.alpha.or(Some(chunk)),
                b"VP8 " | b"VP8L" => found.picture = found.picture.or(Some(chunk)),
                b"ANIM" => found.animation = found.animation.or(data),
                b"ANMF" if found.frames.len() as u64 <= u64::from(max_frames) => {
                    found.frames.push(chunk.data);
                }
                b"ICCP" => found.profile = found.profile.or(data),
                b"EXIF" => found.exif = found.exif.or(data),
                b"XMP " => found.xmp = found.xmp.or(data),
                _ => {}
            }
        }
        Ok(found)
    }
}
