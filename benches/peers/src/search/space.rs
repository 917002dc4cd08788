//! The constants that are searched, and the points by which the search names them.

use towebp_encoder::Constants;

/// From the least value of a constant to the greatest are so many steps; a coordinate of 1 is one
/// step.
const STEPS: f64 = 25.0;

/// Some of the encoder's constants.
pub struct Space {
    dimensions: Vec<Dimension>,
    start: Constants,
}

/// A constant: name, least and greatest value.
type Dimension = &'static (&'static str, i32, i32);

impl Space {
    /// Those of `names`, from the values in `start` on; all if there is none.
    ///
    /// # Errors
    /// A name that no constant has.
    pub fn new(names: &[String], start: &Constants) -> Result<Self, String> {
        let all = || Constants::TABLE.iter();
        if let Some(wrong) = names.iter().find(|name| all().all(|(n, ..)| n != name)) {
            let all: Vec<&str> = all().map(|(name, ..)| *name).collect();
            let all = all.join(", ");
            return Err(format!("no constant is called {wrong:?}: {all}"));
        }
        let is_chosen =
            |(name, ..): &Dimension| names.is_empty() || names.iter().any(|chosen| chosen == name);
        Ok(Self {
            dimensions: all().filter(is_chosen).collect(),
            start: *start,
        })
    }

    /// The point of the values that the search starts at.
    pub fn start(&self) -> Vec<f64> {
        vec![0.0; self.dimensions.len()]
    }

    /// The constants at a point, within their ranges; those of the start for the others.
    pub fn constants(&self, point: &[f64]) -> Constants {
        let mut constants = self.start;
        for ((name, low, high), coordinate) in self.dimensions.iter().zip(point) {
            let start = self.start.get(name).expect("it is in the table");
            let value = f64::from(start) + coordinate * f64::from(high - low) / STEPS;
            constants.set(name, value.round() as i32);
        }
        constants
    }

    /// Names and values of those that are searched.
    pub fn text(&self, constants: &Constants) -> String {
        let named = |(name, ..): &Dimension| Some(format!("{name}={}", constants.get(name)?));
        let named: Vec<String> = self.dimensions.iter().filter_map(named).collect();
        named.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towebp_encoder::Effort;

    #[test]
    fn the_search_starts_at_the_encoders_own_constants() {
        for effort in [Effort::Low, Effort::Max] {
            let own = effort.constants();
            let space = Space::new(&[], own).expect("all constants");
            assert_eq!(space.start().len(), Constants::TABLE.len());
            assert_eq!(space.constants(&space.start()), *own);
        }
    }

    #[test]
    fn only_those_named_move_and_they_stay_within_their_ranges() {
        let (name, low, high) = Constants::TABLE[1];
        let space =
            Space::new(&[name.to_owned()], &Constants::DEFAULT).expect("a constant of that name");
        for (coordinate, value) in [(-1e9, low), (1e9, high)] {
            let mut expected = Constants::DEFAULT;
            expected.set(name, value);
            let found = space.constants(&[coordinate]);
            assert_eq!(found, expected);
            assert_eq!(space.text(&found), format!("{name}={value}"));
        }
        assert!(Space::new(&["quality".to_owned()], &Constants::DEFAULT).is_err());
    }
}
