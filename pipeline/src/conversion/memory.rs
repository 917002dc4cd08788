//! The memory that a conversion takes, known before anything is decoded.

use super::goal::Goal;
use super::placeholder;
use super::plan::{Path, Plan, color_type};
use super::search::scoring_memory;
use crate::image::{Footprint, PlanesMemory};
use crate::watermark::Outline;
use towebp_encoder::{Cancel, ColorType, Encoder, Mode, PlanesBuilder};

/// Bytes per byte of a text that is drawn: its glyphs, and the lines that they make.
const TEXT_FACTOR: u64 = 100;

/// Most bytes of the frames that are encoded beside each other, of which some wait for others.
const WAITING_FRAMES: u64 = 1 << 21;

/// Bytes of a thread of its own that encodes a frame beside others.
const FRAME_THREAD: u64 = 1 << 20;

/// Bytes of the mask in which one letter after the other is filled, a band at a time.
const LETTER: u64 = 1 << 21;

/// Most bytes a pixel of a file.
const FILE: u64 = 5;

/// Bytes of the decoder's buffers that the allocator keeps while the planes are encoded.
const RETAINED: u64 = 256 << 10;

impl Plan<'_> {
    /// Most bytes that [`Plan::run_within`] holds at a time without a call of its
    /// [`MayHold`](super::MayHold): its outcome included, the files that it is given excluded. It
    /// is never too low, and for common photographs at most about twice as high as the bytes that
    /// are held, since the encoder's part is computed for noise.
    pub fn memory(&self) -> u64 {
        self.memory_by(if self.grows_for_lossless {
            Mode::Lossy
        } else {
            self.mode
        })
    }

    /// Most bytes that [`Plan::run`] holds at a time: with those of lossless coding, if the pixels
    /// may make it the better choice.
    pub fn most_memory(&self) -> u64 {
        self.memory_by(self.mode)
    }

    fn memory_by(&self, mode: Mode) -> u64 {
        let metadata = self.params.metadata;
        let placeholder = if self.params.placeholder {
            placeholder::MEMORY
        } else {
            0
        };
        metadata.memory(self.opened.metadata_bytes())
            + placeholder
            + match (self.path, self.opened.planes()) {
                (Path::Planes, Some(planes)) if planes.is_certain && mode == Mode::Lossy => {
                    self.in_planes(planes)
                }
                (Path::Planes, Some(planes)) => {
                    self.in_planes(planes).max(self.by_way_of_rgb(mode))
                }
                (Path::Planes | Path::Rgb, _) => self.by_way_of_rgb(mode),
                (Path::Animation(_), _) => self.by_way_of_rgb(mode) + self.animation(),
            }
    }

    fn in_planes(&self, planes: PlanesMemory) -> u64 {
        let rgb = match self.params.goal {
            Some(Goal::Score(_)) => self.footprint.peak(),
            _ => 0,
        };
        let marking = if self.is_watermarked() {
            planes.bytes + self.marking_planes(planes)
        } else {
            0
        };
        // The encoder's figure includes planes.
        planes.peak.max(self.encoding(Mode::Lossy)).max(marking) + rgb + RETAINED
    }

    /// The memory that drawing watermarks on planes takes beside them: the watermarks, both at a
    /// time, planes of the parts under them, and some rows of pixels.
    fn marking_planes(&self, planes: PlanesMemory) -> u64 {
        /// Rows of a part are pixels twice: before they are drawn on, and with it.
        const ROWS: u64 = 2 * 16 * 3;
        let Footprint { width, height, .. } = self.output;
        let longer = width.max(height);
        // A narrower part has up to a quarter more pixels.
        let window = PlanesBuilder::window_bytes((longer, longer)) * 5 / 4;
        let changed = planes.bytes / 8;
        let rows = u64::from(longer) * ROWS;
        self.mark() + self.text() + planes.bytes + window + changed + rows
    }

    fn by_way_of_rgb(&self, mode: Mode) -> u64 {
        let (source, picture) = (&self.footprint, &self.output);
        let beside = self.mark().max(self.text()).max(self.encoding(mode));
        let resizing = self.resize.map_or(0, |resize| {
            let scratch = resize.bytes(source.width.max(source.height), self.resources.threads);
            source.pixel_bytes() + 2 * picture.pixel_bytes() + scratch
        });
        let decoding = match (self.resize, self.path) {
            (Some(resize), Path::Rgb)
                if self.params.crop.is_none() && self.opened.upright_size().is_some() =>
            {
                self.opened.resized_peak(resize, self.resources.threads)
            }
            _ => source.peak().max(resizing),
        };
        decoding.max(picture.pixel_bytes() + beside)
    }

    /// The memory of the watermark's picture.
    fn mark(&self) -> u64 {
        self.watermark_picture.as_ref().map_or(0, |opened| {
            let mark = opened.footprint();
            mark.peak()
                .max(mark.pixel_bytes() + self.watermark_copies(mark))
        })
    }

    /// The memory of the watermark's text.
    fn text(&self) -> u64 {
        self.params.text.as_ref().map_or(0, |watermark| {
            // A mask of at most a byte per pixel; with an outline two masks, and a picture with
            // alpha of both.
            let bytes_per_pixel = match watermark.outline {
                Outline::None => 1,
                Outline::Line | Outline::Shadow => 6,
            };
            bytes_per_pixel * self.output.pixel_count()
                + watermark.text.len() as u64 * TEXT_FACTOR
                + LETTER
        })
    }

    /// The memory of an animation beside the memory of each frame as a still picture.
    fn animation(&self) -> u64 {
        let canvas = self.output.pixel_bytes();
        // The GIF's own canvas, its copy for the disposal, and the part that is resized again.
        let resized = self.resize.map_or(0, |resize| {
            let source = 2 * self.footprint.pixel_bytes();
            source + canvas + 2 * resize.bytes(self.footprint.width, 1)
        });
        // The canvas of the file, its copy for the disposal, and the part of it, with its pixels
        // before a frame.
        let cropped = match self.params.crop {
            Some(_) => 4 * self.footprint.pixel_bytes(),
            None => 0,
        };
        // The canvas on the color, and its pixels before a frame.
        let laid = match self.params.background {
            Some(_) => 2 * canvas,
            None => 0,
        };
        // The watermark, and the canvas with it.
        let marked = if self.is_watermarked() { 2 * canvas } else { 0 };
        // The previous pixels are freed, but for two bits per pixel, before a frame is encoded,
        // which takes more.
        let restored = canvas;
        let frames = canvas / 16 + WAITING_FRAMES.min(canvas);
        let threads = self.resources.threads as u64 * FRAME_THREAD;
        let files = self.files() * self.file_bytes();
        cropped + laid + resized + marked + restored + frames + threads + files
    }

    /// The most files of an animation that are held at a time: of a search, the best one, the
    /// nearest one, and the one that is encoded or played.
    pub(super) fn files(&self) -> u64 {
        if self.params.goal.is_some() { 3 } else { 1 }
    }

    /// The bytes that the estimate has for the file of an animation; a larger file reserves more as
    /// it grows ([`MayHold`](super::MayHold)).
    pub(super) fn file_bytes(&self) -> u64 {
        const LEAST: u64 = 64 << 10;
        self.opened.bytes().len() as u64 + LEAST
    }

    fn encoding(&self, mode: Mode) -> u64 {
        let Footprint {
            width,
            height,
            layout,
            ..
        } = self.output;
        let color = color_type(layout);
        let never = Cancel::never();
        let encoder = self.encoder(&never).mode(mode);
        match self.params.goal {
            None => encoder.memory((width, height), color),
            Some(goal) => self.searching(goal, encoder, mode, color),
        }
    }

    /// The memory of a search: what stays of one encoding for the next, the best file, and what is
    /// needed for a score.
    fn searching(&self, goal: Goal, encoder: Encoder<'_>, mode: Mode, color: ColorType) -> u64 {
        let Footprint { width, height, .. } = self.output;
        let (scoring, mode) = match goal {
            Goal::MaxBytes { .. } => (0, mode),
            // If no quality reaches the score, lossless coding is used.
            Goal::Score(_) => (scoring_memory(width, height), self.params.mode),
        };
        let encoding = encoder.mode(mode).prepared_memory((width, height), color);
        encoding + self.output.pixel_count() * FILE + scoring
    }

    /// The bytes of a watermark's picture, scaled and rotated: neither copy has more pixels than
    /// the picture itself.
    fn watermark_copies(&self, mark: &Footprint) -> u64 {
        let most = 4 * self.output.pixel_count();
        let placement = &self.params.placement;
        let scaled = match placement.scale {
            Some(_) => most,
            None => most.min(mark.pixel_bytes()),
        };
        let rotated = if placement.rotate % 360 == 0 { 0 } else { most };
        scaled + rotated
    }
}
