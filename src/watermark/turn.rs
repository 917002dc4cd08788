//! Turning by whole degrees, clockwise in a coordinate system whose y points down.

/// A turn around the origin. Its sine and cosine come from additions and multiplications alone, so that they are the
/// same on every machine, and those of quarter turns are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Turn {
    cos: f64,
    sin: f64,
}

/// Of one degree.
const COS_1: f64 = 0.999_847_695_156_391_2;
const SIN_1: f64 = 0.017_452_406_437_283_51;

impl Turn {
    pub(super) fn degrees(degrees: i16) -> Turn {
        let degrees = degrees.rem_euclid(360);
        let (mut cos, mut sin) = (1.0, 0.0);
        for _ in 0..degrees % 90 {
            (cos, sin) = (cos * COS_1 - sin * SIN_1, sin * COS_1 + cos * SIN_1);
        }
        for _ in 0..degrees / 90 {
            (cos, sin) = (-sin, cos);
        }
        Turn { cos, sin }
    }

    pub(super) fn is_none(self) -> bool {
        self == Turn::degrees(0)
    }

    /// Where a point comes to lie.
    pub(super) fn apply(self, (x, y): (f64, f64)) -> (f64, f64) {
        (x * self.cos - y * self.sin, x * self.sin + y * self.cos)
    }

    /// Where a point came from.
    pub(super) fn undo(self, (x, y): (f64, f64)) -> (f64, f64) {
        (x * self.cos + y * self.sin, y * self.cos - x * self.sin)
    }

    /// The size of the upright box around a turned one.
    pub(super) fn bounds(self, (width, height): (f64, f64)) -> (f64, f64) {
        let (cos, sin) = (self.cos.abs(), self.sin.abs());
        (width * cos + height * sin, width * sin + height * cos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarter_turns_are_exact_and_clockwise() {
        for (degrees, expected) in [
            (0, (3.0, 1.0)),
            (90, (-1.0, 3.0)),
            (180, (-3.0, -1.0)),
            (270, (1.0, -3.0)),
            (-90, (1.0, -3.0)),
            (360, (3.0, 1.0)),
            (-360, (3.0, 1.0)),
        ] {
            let turn = Turn::degrees(degrees);
            assert_eq!(turn.apply((3.0, 1.0)), expected, "{degrees}");
            assert_eq!(turn.undo(expected), (3.0, 1.0), "{degrees}");
            assert_eq!(turn.is_none(), degrees % 360 == 0, "{degrees}");
        }
        assert_eq!(Turn::degrees(90).bounds((30.0, 7.0)), (7.0, 30.0));
    }

    #[test]
    fn every_degree_agrees_with_the_functions_of_the_standard_library() {
        for degrees in -360..=360 {
            let angle = f64::from(degrees).to_radians();
            let (x, y) = Turn::degrees(degrees).apply((1.0, 0.0));
            assert!(
                (x - angle.cos()).abs() < 1e-12 && (y - angle.sin()).abs() < 1e-12,
                "{degrees}: {x}, {y}"
            );
        }
    }
}
