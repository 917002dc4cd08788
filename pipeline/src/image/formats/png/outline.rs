//! The outline of an animated PNG: its frames without their pixels (PNG, third edition, 11.3.6).

use super::chunk::Chunk;
use crate::image::animation::DisposalMethod;
use crate::image::rectangle::Rectangle;

/// The animation of a file that has an `acTL` chunk.
#[derive(Debug)]
pub struct Outline<'a> {
    /// The number of frames that the file announces.
    pub announced: u32,
    /// The number of times that the animation is played; 0 is for ever.
    pub plays: u32,
    /// The frames; none if the file announces more than are allowed.
    pub frames: Vec<FrameControl<'a>>,
    /// The fault in the chunks of the animation, if there is one: a few words.
    pub fault: Option<&'static str>,
}

/// The fields of a frame (`fcTL`).
#[derive(Debug)]
pub struct FrameControl<'a> {
    /// The place of the frame on the canvas, within which it lies.
    pub rectangle: Rectangle,
    /// The time for which it is shown, in seconds: a numerator and a denominator, not 0.
    pub delay: (u16, u16),
    /// Its disposal before the next frame is drawn.
    pub disposal: DisposalMethod,
    /// Whether it is drawn over the canvas, or replaces its pixels.
    pub is_drawn_over: bool,
    /// Whether its pixels are in the default image (`IDAT`).
    pub is_default_image: bool,
    /// The chunks among which its data is.
    pub data: &'a [u8],
}

/// Reads the chunks of an animation, one after the other.
#[derive(Debug)]
pub struct OutlineReader<'a> {
    file: &'a [u8],
    /// The width and height of the canvas.
    size: (u32, u32),
    max_frames: u32,
    outline: Option<Outline<'a>>,
    /// The frames so far.
    frames: Vec<FrameControl<'a>>,
    /// The place of the frame's data that is being read.
    begin: Option<usize>,
    /// The end of the last data chunk of that frame.
    end: usize,
    /// The next sequence number.
    sequence: u32,
    stage: Stage,
    fault: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// In front of the default image.
    Before,
    /// Among the chunks of the default image.
    Within,
    /// Behind them.
    Behind,
    /// Behind the end of the file.
    Ended,
}

impl Outline<'_> {
    /// Whether this is more than the default image: a file that announces one frame and has it
    /// there is a still picture.
    pub fn is_animated(&self) -> bool {
        let is_default_image =
            |frames: &[FrameControl<'_>]| frames.iter().all(|frame| frame.is_default_image);
        self.announced != 1 || self.fault.is_none() && !is_default_image(&self.frames)
    }

    /// The bytes that the outline holds.
    pub fn held_bytes(&self) -> u64 {
        (self.frames.capacity() * size_of::<FrameControl<'_>>()) as u64
    }
}

impl<'a> OutlineReader<'a> {
    /// A reader of the chunks of `file`, whose canvas has this size, and of at most `max_frames`
    /// frames.
    pub fn new(file: &'a [u8], size: (u32, u32), max_frames: u32) -> OutlineReader<'a> {
        OutlineReader {
            file,
            size,
            max_frames,
            outline: None,
            frames: Vec::new(),
            begin: None,
            end: 0,
            sequence: 0,
            stage: Stage::Before,
            fault: None,
        }
    }

    /// Takes the next chunk, which stands at `place` of the file.
    pub fn take(&mut self, place: usize, chunk: &Chunk<'a>) {
        if self.stage == Stage::Ended || self.fault.is_some() && self.stage != Stage::Before {
            return;
        }
        let taken = match &chunk.name {
            b"IDAT" => self.take_default_image(place, chunk),
            _ if self.stage == Stage::Within => {
                self.stage = Stage::Behind;
                self.take_other(place, chunk)
            }
            _ => self.take_other(place, chunk),
        };
        if let Err(fault) = taken {
            self.fault.get_or_insert(fault);
        }
    }

    /// Returns the animation; `None` if the file has no `acTL` in front of its default image.
    pub fn finish(mut self) -> Option<Outline<'a>> {
        self.end_frame();
        let mut outline = self.outline?;
        let is_read = outline.announced <= self.max_frames;
        if is_read && self.stage != Stage::Ended {
            self.fault.get_or_insert("the file ends too early");
        }
        if is_read && self.frames.len() as u64 != u64::from(outline.announced) {
            self.fault
                .get_or_insert("it announces another number of frames than it has");
        }
        outline.fault = self.fault.filter(|_| is_read);
        outline.frames = self.frames;
        Some(outline)
    }

    fn take_default_image(&mut self, place: usize, chunk: &Chunk<'a>) -> Result<(), Fault> {
        match self.stage {
            Stage::Before => self.stage = Stage::Within,
            Stage::Within => {}
            Stage::Behind | Stage::Ended => return Err("the default image is in two parts"),
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.is_default_image = true;
            self.add_data(place, chunk);
        }
        Ok(())
    }

    fn take_other(&mut self, place: usize, chunk: &Chunk<'a>) -> Result<(), Fault> {
        match &chunk.name {
            b"acTL" if self.stage == Stage::Before => self.take_animation_control(chunk),
            // They do not matter in a file that is no animation.
            b"fcTL" if self.is_read() => self.take_frame_control(chunk),
            b"fdAT" if self.is_read() => self.take_frame_data(place, chunk),
            b"IEND" => {
                self.stage = Stage::Ended;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether frames are read. What stands in front of the default image may stand in front of
    /// `acTL`, too.
    fn is_read(&self) -> bool {
        match &self.outline {
            Some(outline) => outline.announced <= self.max_frames,
            None => self.stage == Stage::Before,
        }
    }

    fn take_animation_control(&mut self, chunk: &Chunk<'a>) -> Result<(), Fault> {
        let numbers = chunk.data.as_chunks().0;
        let (&[announced, plays], 8, true) = (numbers, chunk.data.len(), chunk.is_sound()) else {
            let damaged = "its acTL chunk is damaged";
            // It is an animation, of which no frame is known.
            self.outline.get_or_insert(Outline::EMPTY);
            return Err(damaged);
        };
        if self.outline.is_some() {
            return Err("it has two acTL chunks");
        }
        let announced = u32::from_be_bytes(announced);
        self.outline = Some(Outline {
            announced,
            plays: u32::from_be_bytes(plays),
            ..Outline::EMPTY
        });
        if announced == 0 {
            return Err("it announces no frame");
        }
        Ok(())
    }

    fn take_frame_control(&mut self, chunk: &Chunk<'a>) -> Result<(), Fault> {
        const DAMAGED: Fault = "a fcTL chunk is damaged";
        let is_default_image = self.stage == Stage::Before;
        if is_default_image && !self.frames.is_empty() {
            return Err("two frames stand in front of the default image");
        }
        self.end_frame();
        let (Some((head, &[disposal, blend])), true) =
            (chunk.data.split_last_chunk::<2>(), chunk.is_sound())
        else {
            return Err(DAMAGED);
        };
        let (&[sequence, width, height, left, top, delay], []) = head.as_chunks::<4>() else {
            return Err(DAMAGED);
        };
        self.check_sequence(sequence)?;
        let [width, height, left, top] = [width, height, left, top].map(u32::from_be_bytes);
        let fits = |offset: u32, side: u32, canvas: u32| {
            side > 0 && offset.checked_add(side).is_some_and(|end| end <= canvas)
        };
        if !fits(left, width, self.size.0) || !fits(top, height, self.size.1) {
            return Err("a frame is empty or lies outside of the canvas");
        }
        if is_default_image && (width, height) != self.size {
            return Err("its first frame is not as large as the canvas");
        }
        let [numerator, denominator] = [[delay[0], delay[1]], [delay[2], delay[3]]];
        self.frames.push(FrameControl {
            rectangle: Rectangle {
                left: left as usize,
                top: top as usize,
                width: width as usize,
                height: height as usize,
            },
            delay: (
                u16::from_be_bytes(numerator),
                match u16::from_be_bytes(denominator) {
                    0 => 100,
                    denominator => denominator,
                },
            ),
            disposal: match disposal {
                0 => DisposalMethod::Keep,
                1 => DisposalMethod::Clear,
                2 => DisposalMethod::Restore,
                _ => return Err("a frame has an unknown disposal"),
            },
            is_drawn_over: match blend {
                0 => false,
                1 => true,
                _ => return Err("a frame has an unknown blending"),
            },
            is_default_image: false,
            data: &[],
        });
        Ok(())
    }

    fn take_frame_data(&mut self, place: usize, chunk: &Chunk<'a>) -> Result<(), Fault> {
        let is_expected = self.stage == Stage::Behind
            && self
                .frames
                .last()
                .is_some_and(|frame| !frame.is_default_image);
        if !is_expected {
            return Err("data of a frame stands in front of its fcTL chunk");
        }
        let sequence = chunk.data.first_chunk();
        self.check_sequence(*sequence.ok_or("a fdAT chunk is damaged")?)?;
        self.add_data(place, chunk);
        Ok(())
    }

    fn check_sequence(&mut self, number: [u8; 4]) -> Result<(), Fault> {
        if u32::from_be_bytes(number) != self.sequence {
            return Err("its chunks are out of order");
        }
        self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }

    fn add_data(&mut self, place: usize, chunk: &Chunk<'a>) {
        self.begin.get_or_insert(place);
        self.end = place + chunk.bytes.len();
    }

    /// Gives the last frame its data.
    fn end_frame(&mut self) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        match self.begin.take() {
            Some(begin) => frame.data = &self.file[begin..self.end],
            None if frame.data.is_empty() => {
                self.fault.get_or_insert("a frame has no data");
            }
            None => {}
        }
    }
}

/// A fault in the chunks of an animation, in a few words behind "its animation is damaged".
type Fault = &'static str;

impl Outline<'_> {
    const EMPTY: Self = Outline {
        announced: 0,
        plays: 0,
        frames: Vec::new(),
        fault: None,
    };
}
