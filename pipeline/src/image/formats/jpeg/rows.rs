//! Decodes a JPEG to planes, row of MCUs by row of MCUs. The lower part of a large picture is left
//! to a helper, which finds its data by [`super::skim`], or behind a restart marker.
//!
//! If anything keeps the helper from its part, the decoder goes on with it by itself: faults of a
//! file are reported by the decoder that has read all of it.

use super::decoder::{
    BYTES_PER_CHECK, LibraryDecoder, PADDING_AND_END, ends_too_early, invalid, options,
};
use super::header::Header;
use super::scan_header::ScanHeader;
use super::segments::Segment;
use super::skim;
use crate::image::error::DecodeError;
use crate::image::planes::{Planes, limit_chroma, limit_luma};
use crate::image::reader::CancellableReader;
use std::mem;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use towebp_encoder::{Cancel, Helper, Workers};
use zune_jpeg::{JpegDecoder, RawImcuRowStatus};

/// The values that luma has once it is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LumaRange {
    /// All 256, as in the file.
    Full,
    /// Those of WebP.
    Limited,
}

/// Decodes all rows of a picture of this width and height, the lower part by a helper if there is
/// one.
pub fn decode(
    decoder: &mut LibraryDecoder<'_>,
    (width, height): (u32, u32),
    range: LumaRange,
    lower: Option<&LowerPart<'_>>,
    workers: Workers<'_>,
) -> Result<Planes, DecodeError> {
    let mut planes = Planes::new(width, height);
    let mut done = 0;
    if let Some(lower) = lower
        && let Some(helper) = workers.try_helper()
    {
        let rows = PlaneRows::of(&mut planes, range);
        if decode_in_two(decoder, rows, lower, helper, workers.cancel())? {
            return Ok(planes);
        }
        done = lower.first_row;
    }
    let (_, rest) = PlaneRows::of(&mut planes, range).split_at(done);
    decode_rest(decoder, rest, height as usize - done, workers.cancel())?;
    Ok(planes)
}

/// Decodes all rows of a progressive picture in gray. The decoder collects its coefficients before
/// it gives the first row, and holds them twice until then. The planes are made after that, so that
/// they do not add to it.
pub fn decode_progressive(
    decoder: &mut LibraryDecoder<'_>,
    (width, height): (u32, u32),
    range: LumaRange,
    cancel: &Cancel<'_>,
) -> Result<Planes, DecodeError> {
    let mut first = Planes::new(width, height.min(MOST_MCU_ROWS));
    let done = decode_row(decoder, &mut PlaneRows::of(&mut first, range))?;
    let mut planes = Planes::new(width, height);
    planes.luma[..first.luma.len()].copy_from_slice(&first.luma);
    for (plane, first) in planes.chroma.iter_mut().zip(&first.chroma) {
        plane[..first.len()].copy_from_slice(first);
    }
    let (_, rest) = PlaneRows::of(&mut planes, range).split_at(done);
    decode_rest(decoder, rest, height as usize - done, cancel)?;
    Ok(planes)
}

/// The most rows of luma in a row of MCUs, which may have two of blocks.
const MOST_MCU_ROWS: u32 = 16;

/// Decodes the rows that are left, so many of luma.
fn decode_rest(
    decoder: &mut LibraryDecoder<'_>,
    mut rest: PlaneRows<'_>,
    height: usize,
    cancel: &Cancel<'_>,
) -> Result<(), DecodeError> {
    let go_on = || Ok(cancel.check().map(|()| true)?);
    decode_rows(decoder, &mut rest, height, go_on)?;
    check_end(decoder)
}

/// The part of a picture that a helper decodes.
#[derive(Debug)]
pub struct LowerPart<'a> {
    /// The segments of the headers.
    segments: &'a [Segment<'a>],
    /// The data of the scan.
    scan: &'a [u8],
    /// The headers that the decoder needs, with the height of this part.
    headers: Vec<u8>,
    /// The first row of MCUs, and the first row of luma.
    mcu_row: usize,
    first_row: usize,
    /// The number of rows of luma.
    height: usize,
    /// The number of MCUs of a row.
    mcus: usize,
    /// The number of the restart marker in front of it; `None` if there are no such markers.
    restart: Option<usize>,
}

impl<'a> LowerPart<'a> {
    /// The lower part of the picture of a file in 4:2:0, whose only scan is `scan`, where both
    /// parts take about the same time; `None` if the file has restart markers at unusual places.
    pub fn of(header: &'a Header<'a>, scan: &'a [u8]) -> Option<LowerPart<'a>> {
        let (mcus, mcu_rows) = header.mcus();
        let mcu_row = match header.restart_interval() {
            // The helper skims the upper part while it is decoded, which takes half of that time.
            0 => mcu_rows * 57 / 100,
            interval => {
                let mut rows = (1..=mcu_rows / 2).rev();
                rows.find(|row| (row * mcus).is_multiple_of(interval))?
            }
        };
        LowerPart::from_row(mcu_row, header, scan)
    }

    /// The part from a row of MCUs on, at least 1. If there are restart markers, one has to stand
    /// before it.
    pub fn from_row(
        mcu_row: usize,
        header: &'a Header<'a>,
        scan: &'a [u8],
    ) -> Option<LowerPart<'a>> {
        let (mcus, _) = header.mcus();
        let first_row = mcu_row * 16;
        let height = header.height().checked_sub(first_row)?;
        let headers = header.parts.as_slice().concat();
        Some(LowerPart {
            headers: with_height(headers, header.frame_offset()?, height)?,
            segments: &header.segments,
            scan,
            mcu_row,
            first_row,
            height,
            mcus,
            restart: (mcu_row * mcus).checked_div(header.restart_interval()),
        })
    }

    /// The entropy-coded data, of which `skimmed` keeps the part that is made anew.
    fn data<'b>(
        &'b self,
        skimmed: &'b OnceLock<Vec<u8>>,
        mut go_on: impl FnMut() -> bool,
    ) -> Option<&'b [u8]> {
        let Some(number) = self.restart else {
            let header = ScanHeader::read(self.segments)?;
            let data = skim::data_from_row(&header, self.scan, self.mcu_row, self.mcus, go_on)?;
            return Some(skimmed.get_or_init(|| data));
        };
        let markers = self.scan.windows(2).enumerate();
        let mut markers = markers.filter(|(_, pair)| matches!(pair, [0xff, 0xd0..=0xd7]));
        let (marker, _) = markers.nth(number - 1)?;
        go_on().then(|| &self.scan[marker + 2..])
    }

    /// A decoder of this part.
    fn decoder<'b>(&'b self, data: &'b [u8], cancel: &'b Cancel<'b>) -> Option<LibraryDecoder<'b>> {
        let parts = [&self.headers[..], data, PADDING_AND_END];
        let reader = CancellableReader::of_parts(&parts, BYTES_PER_CHECK, cancel);
        let mut decoder = JpegDecoder::new_with_options(reader, options().set_strict_mode(false));
        decoder.decode_headers().ok()?;
        decoder.set_options(options());
        Some(decoder)
    }
}

#[cfg(test)]
impl LowerPart<'_> {
    /// Whether a helper itself decodes this part.
    pub fn can_be_decoded(&self, cancel: &Cancel<'_>) -> bool {
        let skimmed = OnceLock::new();
        let Some(data) = self.data(&skimmed, || true) else {
            return false;
        };
        let mut decoder = self.decoder(data, cancel).expect("good headers");
        let mut planes = Planes::new(self.mcus as u32 * 16, self.height as u32);
        let mut rows = PlaneRows::of(&mut planes, LumaRange::Limited);
        let decoded = decode_rows(&mut decoder, &mut rows, self.height, || Ok(true));
        decoded == Ok(self.height) && check_end(&mut decoder).is_ok()
    }
}

/// The headers, with another height in the frame header, whose data begin at `frame` (T.81, B.2.2).
fn with_height(mut headers: Vec<u8>, frame: usize, height: usize) -> Option<Vec<u8>> {
    // Behind the precision.
    let place = frame + 1;
    let height = u16::try_from(height).ok().filter(|&height| height > 0)?;
    headers
        .get_mut(place..place + 2)?
        .copy_from_slice(&height.to_be_bytes());
    Some(headers)
}

/// The state of the lower part.
enum LowerOutcome<'b> {
    Done,
    /// The helper's core was needed elsewhere after so many rows.
    Unfinished(Box<LibraryDecoder<'b>>, usize),
    /// Nothing of it is of use.
    Failed,
}

/// Decodes the upper part while `helper` decodes the lower one, and finishes that if the helper
/// could not. Returns whether the lower part is decoded; if not, `decoder` has to go on.
fn decode_in_two(
    decoder: &mut LibraryDecoder<'_>,
    mut rows: PlaneRows<'_>,
    lower: &LowerPart<'_>,
    helper: Helper<'_>,
    cancel: &Cancel<'_>,
) -> Result<bool, DecodeError> {
    let skimmed = OnceLock::new();
    // The thread that comes first decodes the lower part.
    let is_begun = AtomicBool::new(false);
    let is_over = AtomicBool::new(false);
    let (mut upper, rest) = rows.reborrow().split_at(lower.first_row);
    let outcome = thread::scope(|scope| {
        let work = || decode_lower(lower, &skimmed, rest, helper, [&is_begun, &is_over], cancel);
        let thread = thread::Builder::new().name("jpeg".to_owned());
        let helper = thread.spawn_scoped(scope, work);
        let _over = SetOnDrop(&is_over);
        let go_on = || Ok(cancel.check().map(|()| true)?);
        decode_rows(decoder, &mut upper, lower.first_row, go_on)?;
        if !is_begun.swap(true, Ordering::Relaxed) {
            return Ok(LowerOutcome::Failed);
        }
        let outcome = helper.ok().and_then(|helper| helper.join().ok());
        Ok::<_, DecodeError>(outcome.unwrap_or(LowerOutcome::Failed))
    })?;
    Ok(match outcome {
        LowerOutcome::Done => true,
        LowerOutcome::Failed => false,
        LowerOutcome::Unfinished(mut decoder, done) => {
            let (_, rest) = rows.split_at(lower.first_row + done);
            decode_rest(&mut decoder, rest, lower.height - done, cancel).is_ok()
        }
    })
}

/// Decodes the lower part, as long as the other thread wants it to.
fn decode_lower<'b>(
    lower: &'b LowerPart<'_>,
    skimmed: &'b OnceLock<Vec<u8>>,
    mut rows: PlaneRows<'_>,
    mut helper: Helper<'_>,
    [is_begun, is_over]: [&AtomicBool; 2],
    cancel: &'b Cancel<'b>,
) -> LowerOutcome<'b> {
    let mut go_on =
        || !is_over.load(Ordering::Relaxed) && !cancel.is_cancelled() && helper.may_go_on();
    let Some(data) = lower.data(skimmed, &mut go_on) else {
        return LowerOutcome::Failed;
    };
    if is_begun.swap(true, Ordering::Relaxed) {
        return LowerOutcome::Failed;
    }
    let Some(mut decoder) = lower.decoder(data, cancel) else {
        return LowerOutcome::Failed;
    };
    match decode_rows(&mut decoder, &mut rows, lower.height, || Ok(go_on())) {
        Ok(done) if done < lower.height => LowerOutcome::Unfinished(Box::new(decoder), done),
        Ok(_) if check_end(&mut decoder).is_ok() => LowerOutcome::Done,
        _ => LowerOutcome::Failed,
    }
}

/// Sets a flag when it is dropped, by a panic, too.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Rows of the three planes.
struct PlaneRows<'a> {
    planes: [&'a mut [u8]; 3],
    strides: [usize; 3],
    range: LumaRange,
}

impl<'a> PlaneRows<'a> {
    fn of(planes: &'a mut Planes, range: LumaRange) -> PlaneRows<'a> {
        let stride = planes.luma_stride();
        let [u, v] = &mut planes.chroma;
        PlaneRows {
            planes: [&mut planes.luma, u, v],
            strides: [stride, stride / 2, stride / 2],
            range,
        }
    }

    /// The same rows for a shorter time.
    fn reborrow(&mut self) -> PlaneRows<'_> {
        PlaneRows {
            planes: self.planes.each_mut().map(|plane| &mut **plane),
            ..*self
        }
    }

    /// The rows above an even row of luma, and the others.
    fn split_at(self, row: usize) -> (PlaneRows<'a>, PlaneRows<'a>) {
        let [luma, u, v] = self.planes;
        let [wide, narrow, _] = self.strides;
        let (luma, lower_luma) = luma.split_at_mut(row * wide);
        let (u, lower_u) = u.split_at_mut(row / 2 * narrow);
        let (v, lower_v) = v.split_at_mut(row / 2 * narrow);
        let rows = |planes| PlaneRows {
            planes,
            strides: self.strides,
            range: self.range,
        };
        (rows([luma, u, v]), rows([lower_luma, lower_u, lower_v]))
    }
}

/// Decodes `height` rows of luma and those of chroma, one row of MCUs after the other as long as
/// `go_on` allows. Returns the number of rows of luma.
fn decode_rows(
    decoder: &mut LibraryDecoder<'_>,
    rows: &mut PlaneRows<'_>,
    height: usize,
    mut go_on: impl FnMut() -> Result<bool, DecodeError>,
) -> Result<usize, DecodeError> {
    let mut done = 0;
    while done < height && go_on()? {
        done += decode_row(decoder, rows)?;
    }
    Ok(done)
}

/// Decodes a row of MCUs, and maps its samples to WebP's range while they are in the cache, unless
/// luma keeps its own. Goes on
/// behind it, and returns the number of its rows of luma.
fn decode_row(
    decoder: &mut LibraryDecoder<'_>,
    rows: &mut PlaneRows<'_>,
) -> Result<usize, DecodeError> {
    let PlaneRows {
        planes,
        strides,
        range,
    } = rows;
    let keep: fn(&mut [u8]) = |_| {};
    let limit_luma = match range {
        LumaRange::Full => keep,
        LumaRange::Limited => limit_luma,
    };
    let limit = [limit_luma, limit_chroma, limit_chroma];
    let mut raw = decoder.raw_output();
    let count = raw.num_components().expect("the headers are read");
    match raw.decode_next_imcu_row(&mut planes[..count], &strides[..count]) {
        Ok(RawImcuRowStatus::RowReady { rows_written }) => {
            for plane in 0..count {
                let length = rows_written[plane] * strides[plane];
                let (written, behind) = mem::take(&mut planes[plane]).split_at_mut(length);
                limit[plane](written);
                planes[plane] = behind;
            }
            Ok(rows_written[0])
        }
        Ok(_) => Err(ends_too_early()),
        Err(error) => Err(invalid(&error)),
    }
}

/// Checks that no row is left.
fn check_end(decoder: &mut LibraryDecoder<'_>) -> Result<(), DecodeError> {
    let mut raw = decoder.raw_output();
    let count = raw.num_components().expect("the headers are read");
    let none: &mut [&mut [u8]] = &mut [&mut [], &mut [], &mut []];
    match raw.decode_next_imcu_row(&mut none[..count], &[0; 3][..count]) {
        Ok(RawImcuRowStatus::Complete) => Ok(()),
        Ok(_) => Err(ends_too_early()),
        Err(error) => Err(invalid(&error)),
    }
}
