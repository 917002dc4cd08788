//! The pictures that gain least, by name: a mean hides them.

use std::fmt::Write as _;

use super::rate::{BUTTERAUGLI, METRICS, SSIMULACRA2};
use super::{Results, STRING};

/// How many are named.
const NAMED: usize = 10;

impl Results {
    /// For each of our efforts the worst pictures by SSIMULACRA2, by Butteraugli and by
    /// the mean of the judges, with all
    /// metrics, and how many pictures take more bytes than the reference's.
    pub fn worst(&self) -> String {
        let mut text = String::new();
        for peer in self.ours() {
            for by in [&SSIMULACRA2, &BUTTERAUGLI] {
                let rate = |picture| self.bd_rate(picture, peer, by);
                text += &self.worst_of(peer, by.name, rate);
            }
            let rate = |picture| self.judged_rate(picture, peer);
            text += &self.worst_of(peer, "the mean of judges", rate);
        }
        text
    }

    fn worst_of(&self, peer: usize, by: &str, rate: impl Fn(usize) -> Option<f64>) -> String {
        let every = self.every();
        let mut rates: Vec<(f64, usize)> = every
            .iter()
            .filter_map(|&picture| Some((rate(picture)?, picture)))
            .collect();
        if rates.is_empty() {
            return String::new();
        }
        rates.sort_by(|a, b| b.0.total_cmp(&a.0));
        let above = rates.iter().filter(|(rate, _)| *rate > 0.0).count();
        let mut text = format!(
            "\nWorst pictures of {} by {}; {above} of {} above 0\n",
            self.plan.peers[peer],
            by,
            rates.len()
        );
        for metric in METRICS {
            write!(text, "{:>12}", metric.name).expect(STRING);
        }
        text += "   picture\n";
        for (_, picture) in rates.into_iter().take(NAMED) {
            for metric in METRICS {
                let rate = self.bd_rate(picture, peer, metric);
                let rate = rate.map_or_else(|| "-".to_owned(), |r| format!("{:+.1}", r * 100.0));
                write!(text, "{rate:>12}").expect(STRING);
            }
            writeln!(text, "   {}", self.name(picture)).expect(STRING);
        }
        text
    }
}
