//! The coding that was smaller for earlier frames, so that not each has to be coded both ways.

use crate::auto_mode::{CodingPlan, is_clearly_smaller};

/// The coding that took clearly fewer bytes when both were tried last.
#[derive(Debug, Default)]
pub struct ModeHistory {
    plan: Option<CodingPlan>,
    /// The pixels of the frame for which both were tried.
    area: usize,
    /// The frames that were coded by `plan` since then.
    followed: u32,
}

/// After this many frames, both codings are tried once more.
const MOST_FOLLOWED: u32 = 15;

impl ModeHistory {
    /// Returns how to code the next frame, of `area` pixels, if both codings are allowed. A cursor
    /// does not predict a scene: for frames of another size both are tried.
    pub fn plan(&mut self, area: usize) -> CodingPlan {
        let is_alike = area <= self.area * 2 && self.area <= area * 2;
        match self.plan {
            Some(plan) if is_alike && self.followed < MOST_FOLLOWED => {
                self.followed += 1;
                plan
            }
            _ => CodingPlan::Smaller,
        }
    }

    /// Records that `smaller` was chosen for a frame of `area` pixels, and the sizes of both
    /// codings in bytes. The coding is kept if it is clearly smaller.
    pub fn learn(&mut self, area: usize, smaller: CodingPlan, smaller_size: usize, larger: usize) {
        self.plan = is_clearly_smaller(smaller_size, larger).then_some(smaller);
        self.area = area;
        self.followed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clearly_smaller_coding_is_kept_for_some_frames() {
        for plan in [CodingPlan::Lossless, CodingPlan::Lossy] {
            let mut history = ModeHistory::default();
            assert_eq!(history.plan(1000), CodingPlan::Smaller, "nothing is known");
            history.learn(1000, plan, 100, 124);
            assert_eq!(history.plan(1000), CodingPlan::Smaller, "it was close");
            history.learn(1000, plan, 100, 125);
            for frame in 0..MOST_FOLLOWED {
                let area = [1000, 500, 2000][frame as usize % 3];
                assert_eq!(history.plan(area), plan, "frame {frame}");
            }
            let again = history.plan(1000);
            assert_eq!(again, CodingPlan::Smaller, "it may have changed");
            history.learn(1000, plan, 100, 200);
            for area in [1, 499, 2001] {
                let plan = history.plan(area);
                assert_eq!(plan, CodingPlan::Smaller, "{area} pixels are not alike");
            }
        }
    }
}
