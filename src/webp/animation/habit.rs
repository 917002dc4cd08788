//! What frames before have come out as, so that not each has to be coded both ways.

use crate::webp::coded::{Coded, Way};

/// The way that took clearly fewer bytes when both were tried last.
#[derive(Debug, Default)]
pub struct Habit {
    way: Option<Way>,
    /// Frames that were coded by it.
    followed: u32,
}

/// Both ways are tried once more after so many frames.
const MOST_FOLLOWED: u32 = 15;

impl Habit {
    /// How to code the next frame, if both ways are allowed.
    pub fn way(&mut self) -> Way {
        match self.way {
            Some(way) if self.followed < MOST_FOLLOWED => {
                self.followed += 1;
                way
            }
            _ => Way::Either,
        }
    }

    /// Both ways were tried: this is the smaller one, and so many bytes the other took.
    pub fn learn(&mut self, smaller: &Coded, larger: usize) {
        let is_clear = larger * 4 >= smaller.bytes() * 5;
        let way = if smaller.is_lossless {
            Way::Lossless
        } else {
            Way::Lossy
        };
        self.way = is_clear.then_some(way);
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
            assert_eq!(habit.way(), Way::Either, "nothing is known");
            habit.learn(&coded(100, is_lossless), 124);
            assert_eq!(habit.way(), Way::Either, "it was close");
            habit.learn(&coded(100, is_lossless), 125);
            for frame in 0..MOST_FOLLOWED {
                assert_eq!(habit.way(), way, "frame {frame}");
            }
            assert_eq!(habit.way(), Way::Either, "it may have changed");
        }
    }
}
