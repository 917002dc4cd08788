//! A joint search over constants of the lossy encoder: found one at a time, they stop where each
//! alone is best.

mod cma;
mod objective;
mod space;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use towebp_encoder::{Constants, Effort};

use crate::cache::Cache;
use crate::measure::Plan;
use crate::output;
use crate::peer::{self, Peer};
use crate::picture::Picture;
use crate::report::METRICS;

use self::cma::Cma;
use self::objective::{Case, Outcome, Sample};
use self::space::Space;

/// Only the middle of each picture is looked at, so many pixels wide and high: a set of constants
/// is then a matter of seconds.
const SIDE: u32 = 512;

/// What is searched, and for how long.
pub struct Settings {
    /// Names of the constants; empty for all.
    pub names: Vec<String>,
    /// How often the search moves.
    pub generations: usize,
    /// Sets of constants that are tried for each move.
    pub population: usize,
    /// Equal seeds give equal searches, but for what CPU times add.
    pub seed: u64,
    /// Threads.
    pub jobs: usize,
}

/// Searches on the pictures of `tuning` for the effort of its first peer of ours, and prints what
/// the start and the best give there and on those of `acceptance`.
///
/// # Errors
/// A constant that does not exist, or what an encoder or a metric says.
pub fn run(
    tuning: &Plan,
    acceptance: &Plan,
    settings: &Settings,
    cache: &Cache,
) -> Result<(), String> {
    let start = *effort(&tuning.peers).constants();
    let space = Space::new(&settings.names, &start)?;
    let crops = [middles(tuning), middles(acceptance)];
    let [tuning_bench, acceptance_bench] = [&crops[0], &crops[1]].map(|crops| {
        Ok::<_, String>(Bench {
            cases: prepare(crops, settings.jobs, cache)?,
            qualities: &tuning.qualities,
            effort: effort(&tuning.peers),
            jobs: settings.jobs,
        })
    });
    let (tuning_bench, acceptance_bench) = (tuning_bench?, acceptance_bench?);
    let best = search(&tuning_bench, &space, &start, settings)?;
    for (name, bench) in [("tuning", &tuning_bench), ("acceptance", &acceptance_bench)] {
        let base = bench.evaluate(&start, Qualities::All)?;
        let found = bench.evaluate(&best, Qualities::All)?;
        output::print(&format!(
            "{name}, {} pictures, all qualities\n  start {}\n  best  {}",
            bench.cases.len(),
            line(&base, &base, &space, &start),
            line(&found, &base, &space, &best)
        ))?;
    }
    Ok(())
}

/// The best constants that were tried.
fn search(
    bench: &Bench<'_>,
    space: &Space,
    start: &Constants,
    settings: &Settings,
) -> Result<Constants, String> {
    let base = bench.evaluate(start, Qualities::InTurns)?;
    output::print(&format!("start: {}", line(&base, &base, space, start)))?;
    let mut best = (base.objective(&base), *start);
    let mut cma = Cma::new(space.start(), settings.population, settings.seed);
    for generation in 1..=settings.generations {
        let mut told = Vec::new();
        for candidate in cma.ask() {
            let constants = space.constants(&candidate.point);
            let outcome = bench.evaluate(&constants, Qualities::InTurns)?;
            let objective = outcome.objective(&base);
            if objective < best.0 {
                best = (objective, constants);
            }
            told.push((objective, candidate));
        }
        cma.tell(told);
        let constants = space.constants(cma.mean());
        let outcome = bench.evaluate(&constants, Qualities::InTurns)?;
        output::print(&format!(
            "{generation} of {}, sigma {:.3}: {}",
            settings.generations,
            cma.sigma(),
            line(&outcome, &base, space, &constants)
        ))?;
        if outcome.objective(&base) < best.0 {
            best = (outcome.objective(&base), constants);
        }
    }
    Ok(best.1)
}

/// Everything that stays the same during a search.
struct Bench<'a> {
    cases: Vec<Case<'a>>,
    qualities: &'a [u8],
    effort: Effort,
    jobs: usize,
}

/// At which qualities a set of constants is tried.
#[derive(Clone, Copy)]
enum Qualities {
    /// Each picture at one of them, in turns.
    InTurns,
    /// Each picture at all of them.
    All,
}

impl Bench<'_> {
    fn evaluate(&self, constants: &Constants, qualities: Qualities) -> Result<Outcome, String> {
        let samples = parallel(self.cases.len(), self.jobs, |index| {
            let one = [self.qualities[index % self.qualities.len()]];
            let qualities = match qualities {
                Qualities::InTurns => &one[..],
                Qualities::All => self.qualities,
            };
            let sample = |quality: &u8| {
                self.cases[index]
                    .sample(|picture| peer::encode(picture, *quality, self.effort, constants))
            };
            qualities
                .iter()
                .map(sample)
                .collect::<Result<Vec<Sample>, _>>()
        })?;
        Ok(Outcome::of(&samples))
    }
}

fn effort(peers: &[Peer]) -> Effort {
    let ours = peers.iter().find_map(|peer| match peer {
        Peer::Towebp(effort) => Some(*effort),
        Peer::Libwebp(_) => None,
    });
    ours.unwrap_or_default()
}

fn middles(plan: &Plan) -> Vec<Picture> {
    let pictures = plan.pictures.iter();
    pictures.map(|(_, picture)| picture.middle(SIDE)).collect()
}

fn prepare<'a>(
    pictures: &'a [Picture],
    jobs: usize,
    cache: &Cache,
) -> Result<Vec<Case<'a>>, String> {
    parallel(pictures.len(), jobs, |index| {
        Case::new(&pictures[index], cache)
    })
}

/// What `item` gives for each index below `count`, in order.
fn parallel<T: Send>(
    count: usize,
    jobs: usize,
    item: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<T, String>)>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    let value = item(index);
                    done.lock().expect(NO_PANIC).push((index, value));
                }
            });
        }
    });
    let mut done = done.into_inner().expect(NO_PANIC);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, value)| value).collect()
}

const NO_PANIC: &str = "no thread panics while it holds the lock";

/// An outcome on one line, with the constants behind it.
fn line(outcome: &Outcome, base: &Outcome, space: &Space, constants: &Constants) -> String {
    let rates: Vec<String> = METRICS
        .iter()
        .zip(outcome.rates)
        .map(|(metric, rate)| format!("{} {rate:+.2}", metric.name))
        .collect();
    let blocks = outcome
        .blocks
        .map(|steps| format!("{steps:+.1}"))
        .join(" / ");
    format!(
        "objective {:.3}: judges {:+.2}, {} %, steps {blocks}, worst {:+.0}, drift {:.2}, losses {:.2} %, CPU {:.3}; {}",
        outcome.objective(base),
        outcome.judged,
        rates.join(", "),
        outcome.worst_blocks,
        outcome.drift(),
        outcome.losses,
        outcome.cpu_beside(base),
        space.text(constants)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_an_error_is_told() {
        let squares = parallel(50, 3, |index| Ok(index * index)).expect("no error");
        assert_eq!(squares, (0..50).map(|i| i * i).collect::<Vec<_>>());
        let failed = parallel(50, 3, |index| match index {
            7 => Err("seven".to_owned()),
            _ => Ok(index),
        });
        assert_eq!(failed, Err("seven".to_owned()));
    }
}
