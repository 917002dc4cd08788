//! Decompresses strips and tiles (TIFF 6.0, sections 9 and 13; Adobe's technical note on Deflate).

use super::error::{damaged, ends_too_early};
use super::header::Compression;
use crate::image::error::DecodeError;
use towebp_encoder::Cancel;
use weezl::{BitOrder, LzwStatus};

/// Bytes that are decompressed between two checks for cancellation: less than a millisecond's work.
const PORTION: usize = 1 << 15;

/// Decompresses one part after the other.
pub struct Decompressor<'a> {
    compression: Compression,
    /// The decoder of LZW, if the compression is that.
    lzw: Option<weezl::decode::Decoder>,
    cancel: &'a Cancel<'a>,
}

impl<'a> Decompressor<'a> {
    pub fn new(compression: Compression, cancel: &'a Cancel<'a>) -> Decompressor<'a> {
        // Codes become longer one code earlier than in GIF.
        let lzw = || weezl::decode::Decoder::with_tiff_size_switch(BitOrder::Msb, 8);
        Decompressor {
            compression,
            lzw: (compression == Compression::Lzw).then(lzw),
            cancel,
        }
    }

    /// Fills `output` with what `data` has. What it has beyond that is passed over.
    ///
    /// # Errors
    /// The data is damaged or ends too early.
    pub fn read(&mut self, data: &[u8], output: &mut [u8]) -> Result<(), DecodeError> {
        let filled = match self.compression {
            Compression::Nothing => self.copy(data, output)?,
            Compression::PackBits => self.unpack(data, output)?,
            Compression::Lzw => self.expand(data, output)?,
            Compression::Deflate => self.inflate(data, output)?,
        };
        if filled < output.len() {
            return Err(ends_too_early());
        }
        Ok(())
    }

    fn copy(&self, data: &[u8], output: &mut [u8]) -> Result<usize, DecodeError> {
        let count = data.len().min(output.len());
        let parts = output
            .chunks_mut(PORTION)
            .zip(data[..count].chunks(PORTION));
        for (output, data) in parts {
            self.cancel.check()?;
            output[..data.len()].copy_from_slice(data);
        }
        Ok(count)
    }

    /// Runs of bytes: section 9.
    fn unpack(&self, mut data: &[u8], output: &mut [u8]) -> Result<usize, DecodeError> {
        let (mut filled, mut checked) = (0, 0);
        while filled < output.len() {
            if filled >= checked {
                self.cancel.check()?;
                checked = filled + PORTION;
            }
            let Some((&code, rest)) = data.split_first() else {
                break;
            };
            let free = &mut output[filled..];
            let count;
            match code.cast_signed() {
                -128 => {
                    data = rest;
                    continue;
                }
                code @ 0.. => {
                    let length = (code as usize + 1).min(rest.len());
                    count = length.min(free.len());
                    free[..count].copy_from_slice(&rest[..count]);
                    data = &rest[length..];
                }
                code => {
                    let Some((&byte, rest)) = rest.split_first() else {
                        break;
                    };
                    count = (1 - isize::from(code)).unsigned_abs().min(free.len());
                    free[..count].fill(byte);
                    data = rest;
                }
            }
            filled += count;
        }
        Ok(filled)
    }

    /// LZW: section 13.
    fn expand(&mut self, mut data: &[u8], output: &mut [u8]) -> Result<usize, DecodeError> {
        let decoder = self.lzw.as_mut().expect("it was made for this compression");
        decoder.reset();
        let mut filled = 0;
        while filled < output.len() {
            self.cancel.check()?;
            let end = output.len().min(filled + PORTION);
            let result = decoder.decode_bytes(data, &mut output[filled..end]);
            data = &data[result.consumed_in..];
            filled += result.consumed_out;
            match result.status {
                Ok(LzwStatus::Ok) => {}
                Ok(LzwStatus::NoProgress | LzwStatus::Done) => break,
                Err(_) => return Err(damaged("its LZW codes")),
            }
        }
        Ok(filled)
    }

    fn inflate(&self, mut data: &[u8], output: &mut [u8]) -> Result<usize, DecodeError> {
        let mut decoder = fdeflate::Decompressor::new();
        // As in PNG: the checksum stands behind all pixels.
        decoder.ignore_adler32();
        let mut filled = 0;
        while filled < output.len() && !decoder.is_done() {
            self.cancel.check()?;
            let part = &data[..data.len().min(PORTION)];
            let end = output.len().min(filled + 4 * PORTION);
            let is_last = part.len() == data.len();
            let (read, written) = decoder
                .read(part, &mut output[..end], filled, is_last)
                .map_err(|_| damaged("its compressed data"))?;
            if read == 0 && written == 0 {
                break;
            }
            data = &data[read..];
            filled += written;
        }
        Ok(filled)
    }
}
