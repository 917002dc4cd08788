//! Decompresses strips and tiles (TIFF 6.0, sections 9 and 13; Adobe's technical note on Deflate).

use super::error::{damaged, ends_too_early};
use super::header::{Compression, Header, Part};
use super::{fax, jpeg_part};
use crate::image::error::DecodeError;
use towebp_encoder::Cancel;
use weezl::{BitOrder, LzwStatus};

/// Bytes that are decompressed between two checks for cancellation: less than a millisecond's work.
const PORTION: usize = 1 << 15;

/// Most bytes that a [`Decompressor`] holds.
pub fn most_bytes(header: &Header<'_>) -> u64 {
    /// Those of the libraries, rounded up.
    const LIBRARIES: u64 = 256 << 10;
    let data = header.longest_part();
    let decoder = match header.compression {
        Compression::Jpeg { .. } => {
            let tables = header.jpeg_tables.map_or(0, <[u8]>::len);
            jpeg_part::most_bytes(header.part_size(), data, tables)
        }
        Compression::Fax => fax::most_bytes(data),
        _ => LIBRARIES,
    };
    let reversed = if header.has_reversed_bits { data } else { 0 };
    decoder + reversed as u64
}

/// Decompresses one part after the other.
pub struct Decompressor<'a> {
    header: &'a Header<'a>,
    /// The decoder of LZW, if the compression is that.
    lzw: Option<weezl::decode::Decoder>,
    cancel: &'a Cancel<'a>,
}

impl<'a> Decompressor<'a> {
    pub fn new(header: &'a Header<'a>, cancel: &'a Cancel<'a>) -> Decompressor<'a> {
        // Codes become longer one code earlier than in GIF.
        let lzw = || weezl::decode::Decoder::with_tiff_size_switch(BitOrder::Msb, 8);
        Decompressor {
            header,
            lzw: (header.compression == Compression::Lzw).then(lzw),
            cancel,
        }
    }

    /// Fills `output` with what `part` has. What it has beyond that is passed over.
    ///
    /// # Errors
    /// The part is damaged or ends too early.
    pub fn read(&mut self, part: &Part<'_>, output: &mut [u8]) -> Result<(), DecodeError> {
        let reversed: Vec<u8>;
        let mut data = part.data;
        if self.header.has_reversed_bits {
            reversed = data.iter().map(|byte| byte.reverse_bits()).collect();
            data = &reversed;
        }
        let filled = match self.header.compression {
            Compression::Jpeg { is_luma_and_chroma } => {
                return jpeg_part::read(self.header, is_luma_and_chroma, part, output, self.cancel);
            }
            Compression::Fax => return fax::read(data, part, output, self.cancel),
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
