//! BD-rate, CPU time and memory by kind of picture.

use std::fmt::Write as _;

use super::rate::METRICS;
use super::{Results, STRING, mean};
use crate::measure::median;
use crate::peer::REFERENCE;

impl Results {
    /// A table for each kind of picture, and for all pictures together.
    pub fn summary(&self) -> String {
        let every = self.every();
        let mut text = String::from(
            "BD-rate against m4, mean / median over the pictures; negative: fewer bytes at equal quality\n",
        );
        let kinds = self.kinds();
        if kinds.len() > 1 {
            for (name, pictures) in kinds {
                let title = format!("{name}, {} pictures", pictures.len());
                text += &self.table(&title, &pictures);
            }
        }
        text + &self.table(&format!("all {} pictures", every.len()), &every)
    }

    /// One line for each peer: BD-rate by metric, CPU ratio, memory.
    fn table(&self, title: &str, pictures: &[usize]) -> String {
        let mut text = format!("{title}\n{:<15}", "peer");
        for metric in METRICS {
            write!(text, "{:>20}", metric.name).expect(STRING);
        }
        write!(text, "{:>20}", "mean of judges").expect(STRING);
        text += "      CPU of m4 (min - max)   ms/MP   memory B/px\n";
        for (index, peer) in self.plan.peers.iter().enumerate() {
            write!(text, "{peer:<15}").expect(STRING);
            for metric in METRICS {
                let rates = self.bd_rates(index, metric, pictures);
                let rate = self.bd_text(index, rates, pictures);
                write!(text, "{rate:>20}").expect(STRING);
            }
            let judged = self.bd_text(index, self.judged_rates(index, pictures), pictures);
            write!(text, "{judged:>20}").expect(STRING);
            let mut ratios = self.cpu_ratios(index, pictures);
            let cpu = if ratios.is_empty() {
                "-".to_owned()
            } else {
                let middle = median(&mut ratios);
                let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
                format!("{middle:.2} ({least:.2} - {most:.2})")
            };
            let mut speeds = self.speeds(index, pictures);
            let speed = if speeds.is_empty() {
                "-".to_owned()
            } else {
                format!("{:.1}", median(&mut speeds))
            };
            let memory = self.memory.get(index).copied().flatten();
            let memory = memory.map_or_else(|| "-".to_owned(), |m| format!("{m:.2}"));
            writeln!(text, "{cpu:>27}{speed:>8}{memory:>14}").expect(STRING);
        }
        text + "\n"
    }

    /// The mean and the median of what some of `pictures` have.
    fn bd_text(&self, peer: usize, mut rates: Vec<f64>, pictures: &[usize]) -> String {
        if self.plan.peers[peer] == REFERENCE {
            return "0".to_owned();
        }
        if rates.is_empty() {
            return "-".to_owned();
        }
        // Curves that do not overlap have no BD-rate.
        let note = if rates.len() == pictures.len() {
            String::new()
        } else {
            format!(" (of {})", rates.len())
        };
        format!(
            "{:+.1} / {:+.1}{note}",
            mean(&rates) * 100.0,
            median(&mut rates) * 100.0
        )
    }
}
