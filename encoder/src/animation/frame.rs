//! A frame on its way into the file (RFC 9649, section 2.7.1.1).

use super::damage::{Rect, Update};
use super::frame_pixels::{FramePixels, Granularity, KeptPixels, Origin, UpdateMask};
use super::mode_history::ModeHistory;
use crate::auto_mode::{self, CodingPlan};
use crate::bitstream::Bitstream;
use crate::error::EncodeError;
use crate::options::Options;

/// A frame of the file.
#[derive(Debug)]
pub struct Frame {
    /// Where and how it is drawn.
    pub update: Update,
    /// How long it is shown.
    pub milliseconds: u32,
    /// Whether its rectangle becomes transparent after that.
    pub is_cleared: bool,
    content: Content,
}

/// The pixels of a frame's rectangle.
#[derive(Debug)]
enum Content {
    Pending {
        plan: CodingPlan,
        mask: UpdateMask,
        /// The pixels to code, once the canvas may show others.
        kept: Option<KeptPixels>,
    },
    Coded(Bitstream),
}

/// The pixels that are shown.
#[derive(Clone, Copy, Debug)]
pub struct Canvas<'a> {
    /// Red, green, blue and alpha.
    pub pixels: &'a [[u8; 4]],
    /// The pixels of a row.
    pub width: usize,
}

/// The sizes of both codings of a frame, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct BothSizes {
    /// The coding that was chosen.
    pub plan: CodingPlan,
    /// Its size.
    pub smaller: usize,
    /// A lower bound of the other coding's size in bytes.
    pub larger: usize,
}

impl Frame {
    /// A frame of the pixels of `canvas` that `mask` marks, to be coded as the mode says, or if
    /// that leaves it open, as `history` and the pixels do.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    pub fn new(
        update: Update,
        mask: UpdateMask,
        canvas: Canvas<'_>,
        history: &mut ModeHistory,
        options: &Options<'_>,
    ) -> Result<Frame, EncodeError> {
        let pixels = canvas.frame_pixels(update.rect, &mask);
        let mut plan = CodingPlan::choose(&pixels, options)?;
        if plan == CodingPlan::Smaller && !auto_mode::is_tiny(pixels.size) {
            plan = history.plan(update.rect.area());
        }
        Ok(Frame {
            update,
            milliseconds: 0,
            is_cleared: false,
            content: Content::Pending {
                plan,
                mask,
                kept: None,
            },
        })
    }

    /// Copies the pixels that it needs of `canvas` before another one is shown.
    pub fn keep(&mut self, canvas: Canvas<'_>) {
        if let Content::Pending { plan, mask, kept } = &mut self.content {
            let granularity = match plan {
                CodingPlan::Lossless => Granularity::Pixel,
                CodingPlan::Lossy | CodingPlan::LossyUpTo(_) | CodingPlan::Smaller => {
                    Granularity::Macroblock
                }
            };
            let pixels = canvas.frame_pixels(self.update.rect, mask);
            *kept = Some(pixels.keep(granularity));
        }
    }

    /// Codes its pixels unless that is done already, and frees them. `canvas` is what is shown now.
    /// Gives the sizes if both codings were needed and both are known.
    ///
    /// # Errors
    /// See [`EncodeError`].
    pub fn code(
        &mut self,
        canvas: Canvas<'_>,
        options: &Options<'_>,
    ) -> Result<Option<BothSizes>, EncodeError> {
        let Content::Pending { plan, mask, kept } = &self.content else {
            return Ok(None);
        };
        let rect = self.update.rect;
        let pixels = match kept {
            Some(kept) => FramePixels {
                mask,
                origin: Origin::Kept(kept),
                size: (rect.width, rect.height),
            },
            None => canvas.frame_pixels(rect, mask),
        };
        let (bitstream, larger) = match plan {
            CodingPlan::Smaller => {
                let smaller = auto_mode::smaller_of_frame(&pixels, options)?;
                (smaller.bitstream, smaller.larger)
            }
            plan => (auto_mode::encode_by(*plan, &pixels, options)?, None),
        };
        let sizes = larger.map(|larger| BothSizes {
            plan: if bitstream.is_lossless {
                CodingPlan::Lossless
            } else {
                CodingPlan::Lossy
            },
            smaller: bitstream.size(),
            larger,
        });
        self.content = Content::Coded(bitstream);
        Ok(sizes)
    }

    /// Its chunks, once it is coded.
    pub fn bitstream(&self) -> Option<&Bitstream> {
        match &self.content {
            Content::Pending { .. } => None,
            Content::Coded(bitstream) => Some(bitstream),
        }
    }

    /// The fields of the `ANMF` chunk before the pixels.
    pub fn header(&self) -> [u8; 16] {
        let number = |value: usize| (value as u32).to_le_bytes();
        let rect = self.update.rect;
        let mut header = [0; 16];
        header[..3].copy_from_slice(&number(rect.left / 2)[..3]);
        header[3..6].copy_from_slice(&number(rect.top / 2)[..3]);
        header[6..9].copy_from_slice(&number(rect.width - 1)[..3]);
        header[9..12].copy_from_slice(&number(rect.height - 1)[..3]);
        header[12..15].copy_from_slice(&self.milliseconds.to_le_bytes()[..3]);
        header[15] = u8::from(self.is_cleared) | u8::from(!self.update.blends) << 1;
        header
    }
}

impl<'a> Canvas<'a> {
    /// The pixels of a rectangle that `mask` marks.
    fn frame_pixels(self, rect: Rect, mask: &'a UpdateMask) -> FramePixels<'a> {
        FramePixels {
            mask,
            origin: Origin::Canvas {
                pixels: &self.pixels[rect.top * self.width + rect.left..],
                stride: self.width,
            },
            size: (rect.width, rect.height),
        }
    }
}
