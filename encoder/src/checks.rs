//! How often loops over pixels check for cancellation.

use crate::EncodeError;
use crate::threads::Workers;

/// Pixels between two checks: about a millisecond of work.
pub const PIXELS_PER_CHECK: usize = 1 << 15;

/// Checks for cancellation from time to time in a loop over pixels, or larger pieces, forward or
/// backward.
pub struct Checks<'a> {
    workers: Workers<'a>,
    interval: usize,
    /// The index of the pixel at the last check.
    last: Option<usize>,
}

impl<'a> Checks<'a> {
    /// A check every [`PIXELS_PER_CHECK`].
    pub fn new(workers: Workers<'a>) -> Checks<'a> {
        Checks::every(PIXELS_PER_CHECK, workers)
    }

    /// A check every `interval` pieces, for loops in which a piece takes longer than a pixel mostly
    /// does.
    pub fn every(interval: usize, workers: Workers<'a>) -> Checks<'a> {
        Checks {
            workers,
            interval,
            last: None,
        }
    }

    /// Checks at the first pixel of the loop, and at an index that is an interval away from the
    /// last check.
    ///
    /// # Errors
    /// [`EncodeError::Cancelled`].
    #[inline]
    pub fn at(&mut self, pixel: usize) -> Result<(), EncodeError> {
        let is_near = |last: usize| pixel.abs_diff(last) < self.interval;
        if self.last.is_some_and(is_near) {
            return Ok(());
        }
        self.last = Some(pixel);
        self.workers.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cancel;
    use crate::cancel::tests::Checks as CountedChecks;

    #[test]
    fn checks_are_an_interval_apart_in_both_directions() {
        let count = |interval: Option<usize>, pixels: &mut dyn Iterator<Item = usize>| {
            let counted = CountedChecks::new(usize::MAX);
            let is_unwanted = || counted.are_used_up();
            let cancel = Cancel::when(&is_unwanted);
            let workers = Workers::new(1, None, &cancel);
            let mut checks = match interval {
                Some(interval) => Checks::every(interval, workers),
                None => Checks::new(workers),
            };
            for pixel in pixels {
                checks.at(pixel).expect("nothing cancels it");
            }
            counted.calls.into_inner()
        };
        assert_eq!(count(Some(10), &mut (0..10)), 1);
        assert_eq!(count(Some(10), &mut (0..11)), 2);
        assert_eq!(count(Some(10), &mut (90..100).rev()), 1);
        assert_eq!(count(Some(10), &mut (89..100).rev()), 2);
        // Rows of 16 pixels, of which none is near the row before.
        assert_eq!(count(Some(10), &mut (0..160).step_by(16)), 10);
        assert_eq!(count(None, &mut (0..1 << 17)), 4);
    }
}
