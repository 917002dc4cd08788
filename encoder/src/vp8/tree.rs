//! Trees of booleans with symbols at their leaves: RFC 6386, sections 8.1, 9.3 and 11.2 to 11.5.

use super::bool_encoder::{Bool, BoolRun};
use super::rate::{BitCost, bit_cost};

/// The path from the root of a tree to a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    length: u8,
    /// The booleans, in the order in which they are written.
    branches: [bool; MAX_DEPTH],
    /// For each boolean, the index of its probability.
    nodes: [u8; MAX_DEPTH],
}

/// At least the depth of the deepest tree: subblock modes, 7.
const MAX_DEPTH: usize = 8;

/// Segments (section 9.3). Trees are written as in the RFC: pairs of branches, where a positive
/// number is the index of the next pair, and other numbers are negated leaves.
const SEGMENT_TREE: [i8; 6] = [2, 4, 0, -1, -2, -3];
/// Luma modes of a key frame: the four Intra16 modes, then Intra4 (section 11.2).
const LUMA_MODE_TREE: [i8; 8] = [-4, 2, 4, 6, 0, -1, -2, -3];
/// Chroma modes (section 11.2).
const CHROMA_MODE_TREE: [i8; 6] = [0, 2, -1, 4, -2, -3];
/// Subblock modes (section 11.2).
const SUBBLOCK_MODE_TREE: [i8; 18] = [
    0, 2, -1, 4, -2, 6, 8, 12, -3, 10, -5, -6, -4, 14, -7, 16, -8, -9,
];

/// Paths to the four segments.
pub const SEGMENT_PATHS: [Path; 4] = paths(&SEGMENT_TREE);
/// Paths to the four Intra16 [`BlockMode`](super::predict::BlockMode)s and, fifth, to Intra4.
pub const LUMA_MODE_PATHS: [Path; 5] = paths(&LUMA_MODE_TREE);
/// Paths to the four chroma modes.
pub const CHROMA_MODE_PATHS: [Path; 4] = paths(&CHROMA_MODE_TREE);
/// Paths to the ten [`SubblockMode`](super::predict::SubblockMode)s.
pub const SUBBLOCK_MODE_PATHS: [Path; 10] = paths(&SUBBLOCK_MODE_TREE);

/// Probabilities of [`LUMA_MODE_PATHS`] in a key frame (section 11.2).
pub const LUMA_MODE_PROBABILITIES: [u8; 4] = [145, 156, 163, 128];
/// Probabilities of [`CHROMA_MODE_PATHS`] in a key frame (section 11.2).
pub const CHROMA_MODE_PROBABILITIES: [u8; 3] = [142, 114, 183];

impl Path {
    /// Returns the booleans of the path.
    pub const fn run(&self, probabilities: &[u8]) -> BoolRun {
        let mut run = BoolRun::EMPTY;
        let mut i = 0;
        while i < self.length as usize {
            run.push(Bool::new(
                self.branches[i],
                probabilities[self.nodes[i] as usize],
            ));
            i += 1;
        }
        run
    }

    /// Returns the cost of the path's booleans.
    pub const fn cost(&self, probabilities: &[u8]) -> BitCost {
        let mut cost = 0;
        let mut i = 0;
        while i < self.length as usize {
            cost += bit_cost(self.branches[i], probabilities[self.nodes[i] as usize]);
            i += 1;
        }
        cost
    }
}

/// Returns the paths to the leaves 0, 1, 2 ... of `tree`.
const fn paths<const LEAVES: usize>(tree: &[i8]) -> [Path; LEAVES] {
    let mut all = [Path {
        length: 0,
        branches: [false; MAX_DEPTH],
        nodes: [0; MAX_DEPTH],
    }; LEAVES];
    let mut leaf = 0;
    while leaf < LEAVES {
        // Walks from the leaf up to the root, and then reverses. Index 0 is the root, which no
        // branch leads to, so the branch 0 is leaf 0.
        let mut wanted = -(leaf as i8);
        let mut up = [0; MAX_DEPTH];
        let mut length = 0;
        loop {
            let mut i = 0;
            while tree[i] != wanted {
                i += 1;
            }
            up[length] = i;
            length += 1;
            if i < 2 {
                break;
            }
            wanted = (i & !1) as i8;
        }
        all[leaf].length = length as u8;
        let mut i = 0;
        while i < length {
            let branch = up[length - 1 - i];
            all[leaf].branches[i] = branch & 1 != 0;
            all[leaf].nodes[i] = (branch >> 1) as u8;
            i += 1;
        }
        leaf += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The booleans of a path as 0s and 1s.
    fn bits(path: &Path) -> String {
        path.branches[..path.length as usize]
            .iter()
            .map(|&b| if b { '1' } else { '0' })
            .collect()
    }

    #[test]
    fn paths_spell_the_codes_of_the_rfc() {
        // Section 11.2 lists these codes beside the trees.
        let luma: Vec<_> = LUMA_MODE_PATHS.iter().map(bits).collect();
        assert_eq!(luma, ["100", "101", "110", "111", "0"]);
        let chroma: Vec<_> = CHROMA_MODE_PATHS.iter().map(bits).collect();
        assert_eq!(chroma, ["0", "10", "110", "111"]);
        let subblock: Vec<_> = SUBBLOCK_MODE_PATHS.iter().map(bits).collect();
        assert_eq!(
            subblock,
            [
                "0", "10", "110", "11100", "11110", "111010", "111011", "111110", "1111110",
                "1111111"
            ]
        );
        let segment: Vec<_> = SEGMENT_PATHS.iter().map(bits).collect();
        assert_eq!(segment, ["00", "01", "10", "11"]);
    }

    #[test]
    fn nodes_are_pairs_of_the_tree() {
        assert_eq!(SEGMENT_PATHS[2].nodes[..2], [0, 2]);
        assert_eq!(SUBBLOCK_MODE_PATHS[9].nodes[..7], [0, 1, 2, 3, 6, 7, 8]);
    }
}
