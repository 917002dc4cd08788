//! Distance codes: RFC 9649, section 3.6.2.2. The first 120 codes mean pixels nearby in two
//! dimensions.

/// Number of short distance codes, which mean an offset in columns and rows.
const SHORT_CODES: usize = 120;

/// Largest distance whose code is below 2^20, so that it fits into a token.
pub const MAX_DISTANCE: usize = (1 << 20) - 1 - SHORT_CODES;

/// For each short code, in order, the columns to the left and the rows up (the table of the
/// section).
#[rustfmt::skip]
const OFFSETS: [(i8, u8); SHORT_CODES] = [
    (0, 1), (1, 0), (1, 1), (-1, 1), (0, 2), (2, 0), (1, 2), (-1, 2), (2, 1), (-2, 1), (2, 2), (-2, 2),
    (0, 3), (3, 0), (1, 3), (-1, 3), (3, 1), (-3, 1), (2, 3), (-2, 3), (3, 2), (-3, 2), (0, 4), (4, 0),
    (1, 4), (-1, 4), (4, 1), (-4, 1), (3, 3), (-3, 3), (2, 4), (-2, 4), (4, 2), (-4, 2), (0, 5), (3, 4),
    (-3, 4), (4, 3), (-4, 3), (5, 0), (1, 5), (-1, 5), (5, 1), (-5, 1), (2, 5), (-2, 5), (5, 2), (-5, 2),
    (4, 4), (-4, 4), (3, 5), (-3, 5), (5, 3), (-5, 3), (0, 6), (6, 0), (1, 6), (-1, 6), (6, 1), (-6, 1),
    (2, 6), (-2, 6), (6, 2), (-6, 2), (4, 5), (-4, 5), (5, 4), (-5, 4), (3, 6), (-3, 6), (6, 3), (-6, 3),
    (0, 7), (7, 0), (1, 7), (-1, 7), (5, 5), (-5, 5), (7, 1), (-7, 1), (4, 6), (-4, 6), (6, 4), (-6, 4),
    (2, 7), (-2, 7), (7, 2), (-7, 2), (3, 7), (-3, 7), (7, 3), (-7, 3), (5, 6), (-5, 6), (6, 5), (-6, 5),
    (8, 0), (4, 7), (-4, 7), (7, 4), (-7, 4), (8, 1), (8, 2), (6, 6), (-6, 6), (8, 3), (5, 7), (-5, 7),
    (7, 5), (-7, 5), (8, 4), (6, 7), (-6, 7), (7, 6), (-7, 6), (8, 5), (7, 7), (-7, 7), (8, 6), (8, 7),
];

/// The codes of all distances, for pictures of one width.
#[derive(Clone, Debug)]
pub struct DistanceCodes {
    /// Short code of each distance, 0 if it has none.
    near: Vec<u8>,
}

impl DistanceCodes {
    /// Tabulates the short codes for rows of `width` pixels.
    pub fn new(width: usize) -> DistanceCodes {
        let mut near = vec![0; 7 * width + 9];
        // In narrow pictures, a distance has several codes; the first one is kept.
        for (code, offset) in (1..=SHORT_CODES as u8).zip(&OFFSETS).rev() {
            near[distance(*offset, width)] = code;
        }
        DistanceCodes { near }
    }

    /// Returns the code of `distance`, 1 to [`MAX_DISTANCE`].
    #[inline]
    pub fn code(&self, distance: usize) -> u32 {
        match self.near.get(distance) {
            Some(&code) if code > 0 => u32::from(code),
            _ => (distance + SHORT_CODES) as u32,
        }
    }
}

/// Returns the distances of the first `count` short codes, each distance once.
pub fn nearest(width: usize, count: usize) -> Vec<usize> {
    let mut distances = Vec::with_capacity(count);
    for offset in &OFFSETS[..count] {
        let distance = distance(*offset, width);
        if !distances.contains(&distance) {
            distances.push(distance);
        }
    }
    distances
}

/// Returns the distance in raster order to a pixel `left` columns to the left and `up` rows up, at
/// least 1.
fn distance((left, up): (i8, u8), width: usize) -> usize {
    (usize::from(up) * width)
        .saturating_add_signed(isize::from(left))
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offsets_are_each_point_of_the_neighborhood_once() {
        let mut sorted = OFFSETS;
        sorted.sort_unstable();
        let all = (0..8).flat_map(|up| (-7..=8).map(move |left| (left, up)));
        let mut expected: Vec<(i8, u8)> = all.filter(|&(left, up)| up > 0 || left > 0).collect();
        expected.sort_unstable();
        assert_eq!(sorted.as_slice(), expected);
    }

    #[test]
    fn every_code_means_its_distance() {
        for width in (1..40).chain([1000, 16383]) {
            let codes = DistanceCodes::new(width);
            for distance in (1..=8 * width + 20).chain([MAX_DISTANCE]) {
                let code = codes.code(distance) as usize;
                let meant = match OFFSETS.get(code - 1) {
                    Some(offset) => super::distance(*offset, width),
                    None => code - SHORT_CODES,
                };
                assert_eq!(meant, distance, "code {code}, width {width}");
            }
        }
        assert_eq!(DistanceCodes::new(100).code(100), 1, "the pixel above");
        assert_eq!(DistanceCodes::new(100).code(1), 2, "the pixel to the left");
        assert_eq!(DistanceCodes::new(100).code(99), 4, "above to the right");
        assert_eq!(DistanceCodes::new(1).code(1), 1);
    }

    #[test]
    fn nearest_distances_are_unique() {
        assert_eq!(nearest(100, 5), [100, 1, 101, 99, 200]);
        // (0, 1) and (1, 0) are the same, and offsets that point ahead count as the pixel before.
        assert_eq!(nearest(1, 5), [1, 2]);
        assert!(nearest(9, 0).is_empty());
    }
}
