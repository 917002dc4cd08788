//! Inflates the image data of a PNG on one thread while another decodes its rows: two thirds of the
//! work are the decompression.
//!
//! The decoder reads the file as if its image data were stored without compression (RFC 1951,
//! section 3.2.4), in `IDAT` chunks of a block each. Whatever a file has that this does not follow,
//! from a wrong checksum to bytes behind the compressed data, ends the reader with an error; the
//! caller then decodes the file itself, whose error describes the fault, if there is one.

use super::chunk::{Chunk, parts_without};
use super::decoder::BYTES_PER_CHECK;
use crate::image::reader::CancellableReader;
use fdeflate::Decompressor;
use std::io::{self, BufRead};
use std::mem;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ScopedJoinHandle};
use towebp_encoder::{Cancel, Helper, Workers};

/// The least bytes of the pixels for which a thread is started: some milliseconds of work.
const LEAST_BYTES: u64 = 1 << 20;

/// The longest distance of a match (RFC 1951, section 2).
const HISTORY: usize = 1 << 15;

/// Bytes of a stored block, at most 65535.
const BLOCK: usize = 1 << 15;

/// Bytes that are inflated at a time, less than a millisecond's work.
const PORTION: usize = 4 * BLOCK;

/// The number of buffers that go back and forth.
const BUFFERS: usize = 4;

/// Most bytes that are held to inflate beside the decoder, for pixels of `pixel_bytes`.
pub fn bytes(pixel_bytes: u64) -> u64 {
    /// The state of the decompression, and of the thread.
    const STATES: u64 = 128 << 10;
    if pixel_bytes < LEAST_BYTES {
        return 0;
    }
    (BUFFERS * (HISTORY + PORTION)) as u64 + STATES
}

/// Decodes by `decode` while a helper inflates. `None` if there is no helper, if the pixels are
/// fewer than it is worth (`pixel_bytes`), or if the file is not as a writer leaves it.
pub fn with_helper<'a, T>(
    bytes: &'a [u8],
    (pixel_bytes, left_out): (u64, &[Range<usize>]),
    workers: Workers<'a>,
    decode: impl FnOnce(InflatedReader<'_, 'a>) -> T,
) -> Option<T> {
    if pixel_bytes < LEAST_BYTES {
        return None;
    }
    let ImageData { place, chunks } = ImageData::find(bytes)?;
    let mut helper = workers.try_helper()?;
    let cancel = workers.cancel();
    let (to_fill, empty) = channel();
    let (filled, to_read) = channel();
    for _ in 0..BUFFERS {
        to_fill.send(Buffer::new()).expect("the receiver is here");
    }
    thread::scope(|scope| {
        let work = move || inflate_all(Inflater::new(chunks), &empty, &filled, &mut helper, cancel);
        let thread = thread::Builder::new().name("inflate".to_owned());
        let helper = thread.spawn_scoped(scope, work).ok()?;
        let part = |range| {
            let parts = parts_without(bytes, range, left_out);
            CancellableReader::of_parts(&parts, BYTES_PER_CHECK, cancel)
        };
        Some(decode(InflatedReader {
            stage: Stage::Before,
            before: part(0..place.start),
            behind: part(place.end..bytes.len()),
            buffers: Buffers {
                empty: to_fill,
                filled: to_read,
                source: Source::Helper(helper),
                cancel,
            },
            buffer: Buffer::EMPTY,
            block: 0,
            frame: (Vec::new(), 0),
        }))
    })
}

/// Fills one buffer after the other, until all is inflated, the core is needed elsewhere or the
/// reader is gone. Returns the inflater, which can go on.
fn inflate_all<'a>(
    mut inflater: Inflater<'a>,
    empty: &Receiver<Buffer>,
    filled: &Sender<Result<Buffer, Irregular>>,
    helper: &mut Helper<'_>,
    cancel: &Cancel<'_>,
) -> Inflater<'a> {
    while let Ok(mut buffer) = empty.recv() {
        if cancel.is_cancelled() {
            break;
        }
        let outcome = inflater.fill(&mut buffer).map(|()| buffer);
        let is_last = !matches!(&outcome, Ok(buffer) if !buffer.is_last);
        if filled.send(outcome).is_err() || is_last || !helper.may_go_on() {
            break;
        }
    }
    inflater
}

/// A file that has something that a PNG has not, as a rule.
#[derive(Debug)]
struct Irregular;

impl From<Irregular> for io::Error {
    fn from(Irregular: Irregular) -> io::Error {
        io::Error::other("the image data is not inflated beside")
    }
}

/// The chunks of the image data.
struct ImageData<'a> {
    /// Their place in the file.
    place: Range<usize>,
    /// The chunks themselves, from their lengths on.
    chunks: &'a [u8],
}

impl<'a> ImageData<'a> {
    /// Finds the `IDAT` chunks; `None` if they do not follow each other, if a chunk is cut, if the
    /// checksum of another one is wrong, or if the file is an animation.
    fn find(bytes: &'a [u8]) -> Option<ImageData<'a>> {
        const SIGNATURE: usize = 8;
        let mut place: Option<Range<usize>> = None;
        let mut at = SIGNATURE;
        loop {
            let chunk = Chunk::first(bytes.get(at..)?)?;
            let end = at + chunk.bytes.len();
            match (&chunk.name, &mut place) {
                (b"IDAT", None) => place = Some(at..end),
                (b"IDAT", Some(place)) if place.end == at => place.end = end,
                (b"IDAT" | b"acTL" | b"fcTL" | b"fdAT", _) => return None,
                _ if !chunk.is_sound() => return None,
                (b"IEND", _) => {
                    let place = place?;
                    let chunks = &bytes[place.clone()];
                    return Some(ImageData { place, chunks });
                }
                _ => {}
            }
            at = end;
        }
    }
}

/// Inflated bytes, behind the ones before them.
struct Buffer {
    bytes: Vec<u8>,
    /// The place of the inflated bytes that were not read yet.
    rest: Range<usize>,
    /// Whether the image data ends here.
    is_last: bool,
}

impl Buffer {
    /// The buffer of a reader that has none.
    const EMPTY: Buffer = Buffer {
        bytes: Vec::new(),
        rest: 0..0,
        is_last: false,
    };

    fn new() -> Buffer {
        Buffer {
            bytes: vec![0; HISTORY + PORTION],
            rest: 0..0,
            is_last: false,
        }
    }
}

/// Inflates the image data of a file.
struct Inflater<'a> {
    state: Box<Decompressor>,
    /// The chunks that were not begun.
    chunks: &'a [u8],
    /// The rest of the chunk that was begun.
    input: &'a [u8],
    /// The last bytes that were inflated.
    history: Vec<u8>,
}

impl<'a> Inflater<'a> {
    fn new(chunks: &'a [u8]) -> Inflater<'a> {
        let mut state = Box::new(Decompressor::new());
        // The decoder of PNGs does so, too: the chunks have checksums of their own.
        state.ignore_adler32();
        Inflater {
            state,
            chunks,
            input: &[],
            history: Vec::with_capacity(HISTORY),
        }
    }

    /// Fills a buffer as far as there are bytes.
    fn fill(&mut self, buffer: &mut Buffer) -> Result<(), Irregular> {
        let begin = self.history.len();
        let bytes = &mut buffer.bytes[..begin + PORTION];
        bytes[..begin].copy_from_slice(&self.history);
        let mut end = begin;
        while end < bytes.len() && !self.state.is_done() {
            if self.input.is_empty() {
                let chunk = Chunk::first(self.chunks).filter(Chunk::is_sound);
                let chunk = chunk.ok_or(Irregular)?;
                self.chunks = &self.chunks[chunk.bytes.len()..];
                self.input = chunk.data;
            }
            let read = self.state.read(self.input, bytes, end, false);
            let (consumed, produced) = read.map_err(|_| Irregular)?;
            self.input = &self.input[consumed..];
            end += produced;
            if consumed == 0 && produced == 0 && !self.input.is_empty() && !self.state.is_done() {
                return Err(Irregular);
            }
        }
        self.history.clear();
        let kept = end.saturating_sub(HISTORY);
        self.history.extend_from_slice(&bytes[kept..end]);
        buffer.rest = begin..end;
        buffer.is_last = self.state.is_done();
        if buffer.is_last && !(self.input.is_empty() && self.chunks.is_empty()) {
            return Err(Irregular);
        }
        Ok(())
    }
}

/// Reads a file whose image data a helper inflates, as if it were stored.
pub struct InflatedReader<'scope, 'a> {
    stage: Stage,
    /// The chunks before the image data, and those behind it.
    before: CancellableReader<'a>,
    behind: CancellableReader<'a>,
    buffers: Buffers<'scope, 'a>,
    /// The buffer that is read.
    buffer: Buffer,
    /// The bytes of the present block that were not read.
    block: usize,
    /// The bytes around blocks, and how many of them were read.
    frame: (Vec<u8>, usize),
}

/// The part of the file that is read.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Before,
    /// The bytes around a block of the image data.
    Frame,
    Block,
    /// The empty block that ends the image data.
    End,
    Behind,
}

/// The first chunk of the image data: the header of the compressed data (RFC 1950, section 2.2),
/// which names a window of 32 KiB. Checksums are 0, since nobody looks at them.
const FIRST: &[u8] = b"\0\0\0\x02IDAT\x78\x01\0\0\0\0";

/// The last chunk of the image data: an empty block, marked as the last, and the data's checksum.
const LAST: &[u8] = b"\0\0\0\x09IDAT\x01\0\0\xff\xff\0\0\0\0\0\0\0\0";

impl InflatedReader<'_, '_> {
    /// The bytes that come next; empty at the end of a stage.
    fn rest(&mut self) -> io::Result<&[u8]> {
        match self.stage {
            Stage::Before => self.before.fill_buf(),
            Stage::Frame | Stage::End => Ok(&self.frame.0[self.frame.1..]),
            Stage::Block => Ok(&self.buffer.bytes[self.buffer.rest.start..][..self.block]),
            Stage::Behind => self.behind.fill_buf(),
        }
    }

    /// Goes on to the next stage.
    fn advance(&mut self) -> io::Result<()> {
        let (frame, read) = &mut self.frame;
        self.stage = match self.stage {
            Stage::Before => {
                frame.extend_from_slice(FIRST);
                Stage::Frame
            }
            Stage::Frame if self.block > 0 => Stage::Block,
            Stage::Frame | Stage::Block => {
                let was_block = self.stage == Stage::Block;
                while self.buffer.rest.is_empty() && !self.buffer.is_last {
                    self.buffers.next(&mut self.buffer)?;
                }
                self.block = self.buffer.rest.len().min(BLOCK);
                frame.clear();
                *read = 0;
                if was_block {
                    // The checksum of the chunk before.
                    frame.extend_from_slice(&[0; 4]);
                }
                if self.block == 0 {
                    frame.extend_from_slice(LAST);
                    Stage::End
                } else {
                    frame.extend_from_slice(&(self.block as u32 + 5).to_be_bytes());
                    let [low, high] = (self.block as u16).to_le_bytes();
                    frame.extend_from_slice(b"IDAT\0");
                    frame.extend_from_slice(&[low, high, !low, !high]);
                    Stage::Frame
                }
            }
            Stage::End | Stage::Behind => Stage::Behind,
        };
        Ok(())
    }
}

impl InflatedReader<'_, '_> {
    /// As [`BufRead::fill_buf`].
    pub fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.stage != Stage::Behind && self.rest()?.is_empty() {
            self.advance()?;
        }
        self.rest()
    }

    /// As [`BufRead::consume`].
    pub fn consume(&mut self, count: usize) {
        match self.stage {
            Stage::Before => self.before.consume(count),
            Stage::Frame | Stage::End => self.frame.1 += count,
            Stage::Block => {
                self.block -= count;
                self.buffer.rest.start += count;
            }
            Stage::Behind => self.behind.consume(count),
        }
    }
}

/// The buffers with inflated data.
struct Buffers<'scope, 'a> {
    empty: Sender<Buffer>,
    filled: Receiver<Result<Buffer, Irregular>>,
    source: Source<'scope, 'a>,
    cancel: &'a Cancel<'a>,
}

/// The thread that inflates.
enum Source<'scope, 'a> {
    Helper(ScopedJoinHandle<'scope, Inflater<'a>>),
    /// The reader itself, once the helper's core was needed elsewhere.
    Reader(Inflater<'a>),
    /// It failed.
    None,
}

impl Buffers<'_, '_> {
    /// Replaces `buffer`, which was read, by the next one.
    fn next(&mut self, buffer: &mut Buffer) -> io::Result<()> {
        let cancelled = |_| io::Error::other("cancelled");
        self.cancel.check().map_err(cancelled)?;
        if matches!(self.source, Source::Helper(_)) {
            // The buffer that is there at the beginning is none of theirs.
            let read = mem::replace(buffer, Buffer::EMPTY);
            if !read.bytes.is_empty() {
                // If the helper has ended, the buffers that it filled are still to be read.
                let _is_sent = self.empty.send(read);
            }
            if let Ok(filled) = self.filled.recv() {
                *buffer = filled?;
                return Ok(());
            }
        }
        let mut inflater = match mem::replace(&mut self.source, Source::None) {
            Source::Helper(helper) => helper.join().map_err(|_| Irregular)?,
            Source::Reader(inflater) => inflater,
            Source::None => return Err(Irregular.into()),
        };
        if buffer.bytes.is_empty() {
            *buffer = Buffer::new();
        }
        inflater.fill(buffer)?;
        self.source = Source::Reader(inflater);
        Ok(())
    }
}
