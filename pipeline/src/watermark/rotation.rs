//! Rotation by whole degrees, clockwise in a coordinate system whose y points down.

/// A rotation around the origin. Its sine and cosine are computed by additions and multiplications
/// only, so that they are the same on every machine; those of quarter turns are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rotation {
    cos: f64,
    sin: f64,
}

/// Cosine and sine of one degree.
const COS_1: f64 = 0.999_847_695_156_391_2;
const SIN_1: f64 = 0.017_452_406_437_283_51;

impl Rotation {
    /// The rotation by this number of degrees.
    pub(super) fn degrees(degrees: i16) -> Rotation {
        let degrees = degrees.rem_euclid(360);
        let (mut cos, mut sin) = (1.0, 0.0);
        for _ in 0..degrees % 90 {
            (cos, sin) = (cos * COS_1 - sin * SIN_1, sin * COS_1 + cos * SIN_1);
        }
        for _ in 0..degrees / 90 {
            (cos, sin) = (-sin, cos);
        }
        Rotation { cos, sin }
    }

    /// Whether it leaves every point where it is.
    pub(super) fn is_identity(self) -> bool {
        self == Rotation::degrees(0)
    }

    /// The place that a point is rotated to.
    pub(super) fn apply(self, (x, y): (f64, f64)) -> (f64, f64) {
        (x * self.cos - y * self.sin, x * self.sin + y * self.cos)
    }

    /// The place that is rotated to a point.
    pub(super) fn undo(self, (x, y): (f64, f64)) -> (f64, f64) {
        (x * self.cos + y * self.sin, y * self.cos - x * self.sin)
    }

    /// The size of the upright rectangle around a rotated one.
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
            let rotation = Rotation::degrees(degrees);
            assert_eq!(rotation.apply((3.0, 1.0)), expected, "{degrees}");
            assert_eq!(rotation.undo(expected), (3.0, 1.0), "{degrees}");
            assert_eq!(rotation.is_identity(), degrees % 360 == 0, "{degrees}");
        }
        assert_eq!(Rotation::degrees(90).bounds((30.0, 7.0)), (7.0, 30.0));
    }

    #[test]
    fn every_degree_agrees_with_the_functions_of_the_standard_library() {
        for degrees in -360..=360 {
            let angle = f64::from(degrees).to_radians();
            let (x, y) = Rotation::degrees(degrees).apply((1.0, 0.0));
            assert!(
                (x - angle.cos()).abs() < 1e-12 && (y - angle.sin()).abs() < 1e-12,
                "{degrees}: {x}, {y}"
            );
        }
    }
}
