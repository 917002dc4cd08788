//! From values to pixels.

/// One axis: values and the pixels where they lie.
#[derive(Clone, Debug)]
pub struct Axis {
    values: (f64, f64),
    pixels: (f64, f64),
    logarithmic: bool,
    /// The values that are written beside it.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// Covers `values` and a little more, with about six round ticks.
    pub fn linear(values: impl IntoIterator<Item = f64>, pixels: (f64, f64)) -> Self {
        let (low, high) = bounds(values);
        let room = (high - low).max(1e-9) * 0.06;
        let (low, high) = (low - room, high + room);
        let step = round_step((high - low) / 6.0);
        let first = (low / step).ceil() as i64;
        let last = (high / step).floor() as i64;
        Self {
            values: (low, high),
            pixels,
            logarithmic: false,
            ticks: (first..=last).map(|n| n as f64 * step).collect(),
        }
    }

    /// Covers positive `values` and a little more; equal ratios are equal distances.
    pub fn logarithmic(values: impl IntoIterator<Item = f64>, pixels: (f64, f64)) -> Self {
        let (low, high) = bounds(values);
        let room = (high / low).powf(0.08);
        let (low, high) = (low / room, high * room);
        let ticks = [0.01, 0.1, 1.0, 10.0, 100.0]
            .into_iter()
            .flat_map(|decade| [1.0, 1.5, 2.0, 3.0, 5.0, 7.0].map(|digit| digit * decade))
            .filter(|tick| (low..=high).contains(tick))
            .collect();
        Self {
            values: (low, high),
            pixels,
            logarithmic: true,
            ticks,
        }
    }

    /// The pixel of a value.
    pub fn at(&self, value: f64) -> f64 {
        let part = |value: f64| {
            if self.logarithmic {
                (value / self.values.0).ln() / (self.values.1 / self.values.0).ln()
            } else {
                (value - self.values.0) / (self.values.1 - self.values.0)
            }
        };
        self.pixels.0 + part(value) * (self.pixels.1 - self.pixels.0)
    }
}

/// A tick as text.
pub fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A tick as per cent more or less.
pub fn percent(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let sign = if value < 0.0 { '−' } else { '+' };
    format!("{sign}{} %", short(value.abs()))
}

fn bounds(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    values
        .into_iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        })
}

/// 1, 2 or 5 times a power of ten, `rough` or a little more.
fn round_step(rough: f64) -> f64 {
    let decade = 10_f64.powf(rough.log10().floor());
    let digit = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|digit| digit * decade >= rough)
        .unwrap_or(10.0);
    digit * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_ends_and_ticks_are_round() {
        let axis = Axis::linear([40.0, 90.0], (500.0, 0.0));
        assert_eq!(axis.ticks, [40.0, 50.0, 60.0, 70.0, 80.0, 90.0]);
        assert!((axis.at(65.0) - 250.0).abs() < 1e-9, "{}", axis.at(65.0));
    }

    #[test]
    fn ticks_are_written_as_people_do() {
        assert_eq!([0.1 * 3.0, 20.0, 1.5].map(short), ["0.3", "20", "1.5"]);
        assert_eq!([-5.0, 0.0, 10.0].map(percent), ["−5 %", "0", "+10 %"]);
    }

    #[test]
    fn equal_ratios_are_equal_distances() {
        let axis = Axis::logarithmic([0.25, 4.0], (0.0, 100.0));
        let steps = [axis.at(1.0) - axis.at(0.5), axis.at(2.0) - axis.at(1.0)];
        assert!((steps[0] - steps[1]).abs() < 1e-9, "{steps:?}");
        assert!(axis.ticks.contains(&1.0), "{:?}", axis.ticks);
    }
}
