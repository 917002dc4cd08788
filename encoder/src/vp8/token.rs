//! Coefficients as tokens: RFC 6386, section 13.

/// The four kinds of block with probabilities of their own (section 13.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Luma of Intra16, whose DC is in the Y2 block: starts at position 1.
    LumaAfterY2 = 0,
    /// The DCs of the sixteen luma blocks of Intra16.
    Y2 = 1,
    /// Cb or Cr.
    Chroma = 2,
    /// Luma of Intra4, with its DC.
    Luma = 3,
}

impl BlockKind {
    /// The first zigzag position that is sent.
    pub const fn first(self) -> usize {
        matches!(self, BlockKind::LumaAfterY2) as usize
    }
}

/// A range of levels that share a token and differ in extra bits (section 13.2).
pub struct Category {
    /// The lowest level.
    pub base: u32,
    /// Probabilities of the extra bits, highest bit first.
    pub probabilities: &'static [u8],
}

/// The six categories (section 13.2).
pub const CATEGORIES: [Category; 6] = [
    Category {
        base: 5,
        probabilities: &[159],
    },
    Category {
        base: 7,
        probabilities: &[165, 145],
    },
    Category {
        base: 11,
        probabilities: &[173, 148, 140],
    },
    Category {
        base: 19,
        probabilities: &[176, 155, 140, 135],
    },
    Category {
        base: 35,
        probabilities: &[180, 157, 141, 134, 130],
    },
    Category {
        base: 67,
        probabilities: &[254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129],
    },
];

/// Passes the token, extra bits and sign of `level` to `write(value, probability)`, without the
/// "not end of block" boolean before them.
#[inline]
pub fn write_level(level: i16, p: &[u8; 11], write: &mut impl FnMut(bool, u8)) {
    let magnitude = u32::from(level.unsigned_abs());
    write(magnitude > 0, p[1]);
    if magnitude == 0 {
        return;
    }
    write(magnitude > 1, p[2]);
    if magnitude > 1 {
        write(magnitude > 4, p[3]);
        if magnitude <= 4 {
            write(magnitude > 2, p[4]);
            if magnitude > 2 {
                write(magnitude > 3, p[5]);
            }
        } else {
            write_category(magnitude, p, write);
        }
    }
    write(level < 0, 128);
}

fn write_category(magnitude: u32, p: &[u8; 11], write: &mut impl FnMut(bool, u8)) {
    let index = match magnitude {
        0..=6 => 0,
        7..=10 => 1,
        11..=18 => 2,
        19..=34 => 3,
        35..=66 => 4,
        _ => 5,
    };
    write(index > 1, p[6]);
    if index <= 1 {
        write(index == 1, p[7]);
    } else {
        write(index > 3, p[8]);
        write(index % 2 == 1, p[if index > 3 { 10 } else { 9 }]);
    }
    let Category {
        base,
        probabilities,
    } = &CATEGORIES[index];
    let offset = magnitude - base;
    for (i, &probability) in probabilities.iter().enumerate() {
        write(
            offset >> (probabilities.len() - 1 - i) & 1 != 0,
            probability,
        );
    }
}
