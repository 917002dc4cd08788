//! What frames before have come out as, so that not each has to be coded both ways.

use crate::coded::{Coded, Way};

/// The way that took clearly fewer bytes when both were tried last.
#[derive(Debug, Default)]
pub struct Habit {
    way: Option<Way>,
    /// Pixels of the frame that was tried.
    area: usize,
    /// Frames that were coded by it.
    followed: u32,
}

/// Both ways are tried once more after so many frames.
const MOST_FOLLOWED: u32 = 15;

impl Habit {
    /// How to code the next frame, of so many pixels, if both ways are allowed. A cursor tells nothing of a scene: frames of
    /// another size are tried.
    pub fn way(&mut self, area: usize) -> Way {
        let is_alike = area <= self.area * 2 && self.area <= area * 2;
        match self.way {
            Some(way) if is_alike && self.followed < MOST_FOLLOWED => {
                self.followed += 1;
                way
            }
            _ => Way::Either,
        }
    }

    /// Both ways were tried of a frame of so many pixels: this is the smaller one, and so many bytes the other took.
    pub fn learn(&mut self, area: usize, smaller: &Coded, larger: usize) {
        let is_clear = larger * 4 >= smaller.bytes() * 5;
        let way = if smaller.is_lossless {
            Way::Lossless
        } else {
            Way::Lossy
        };
        self.way = is_clear.then_some(way);
        self.area = area;
        self.followed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coded(bytes: usize, is_lossless: bool) -> Coded {
        Coded {
            alpha: None,
            frame: vec![0; bytes],
            is_lossless,
        }
    }

    #[test]
    fn what_was_clearly_smaller_is_kept_for_some_frames() {
        for (is_lossless, way) in [(true, Way::Lossless), (false, Way::Lossy)] {
            let mut habit = Habit::default();
            assert_eq!(habit.way(1000), Way::Either, "nothing is known");
            habit.learn(1000, &coded(100, is_lossless), 124);
            assert_eq!(habit.way(1000), Way::Either, "it was close");
            habit.learn(1000, &coded(100, is_lossless), 125);
            for frame in 0..MOST_FOLLOWED {
                let area = [1000, 500, 2000][frame as usize % 3];
                assert_eq!(habit.way(area), way, "frame {frame}");
            }
            assert_eq!(habit.way(1000), Way::Either, "it may have changed");
            habit.learn(1000, &coded(100, is_lossless), 200);
            for area in [1, 499, 2001] {
                assert_eq!(habit.way(area), Way::Either, "{area} pixels are not alike");
            }
        }
    }
}
