//! The whole service in one run that a seed decides: one server with a disk, or two that share a
//! database; which clients come and what they send, in which pieces it arrives, when workers work,
//! when the disk breaks or fills up, when the database is away or loses an answer, when clocks are
//! set, and when a process is killed or shut down. Event loop, admission, conversion, budgets of
//! memory, quotas and the store are those that are shipped. Sockets, time and the turns of workers
//! are simulated by `front/event_loop/simulated.rs`, the disk and the shared database by
//! `store/tests`.
//!
//! These hold after each step: an answered conversion is recorded once and for the account that
//! sent it, no quota is passed, an old token is of no use, nobody gets the response to another
//! request, and memory stays within its budget. In the end every request has ended, without waiting
//! for a timer unless its client is slow, and nothing is held for it any more.
//!
//! `TOWEBP_SIMULATIONS` is the number of runs (100 if it is not set), `TOWEBP_SIMULATION_SEED` the
//! seed of the first one. `TOWEBP_SIMULATIONS=10000 cargo test --lib simulation -- --nocapture`
//! prints what they have come through.

mod client;
mod history;
mod run;
mod service;

use crate::store::tests::from_environment;
use run::{Event, run};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[test]
fn whatever_happens_every_request_ends_and_what_was_answered_is_recorded_once() {
    let runs: u64 = from_environment("TOWEBP_SIMULATIONS").unwrap_or(100);
    let first: u64 = from_environment("TOWEBP_SIMULATION_SEED").unwrap_or(1);
    let began = Instant::now();
    let mut counts = BTreeMap::new();
    for seed in first..first + runs {
        for (_, what, _) in run(seed) {
            *counts.entry(what).or_insert(0_u64) += 1;
        }
    }
    println!("{runs} runs in {:?}: {counts:?}", began.elapsed());
    if runs >= 100 {
        let statuses = ["200", "401", "408", "429", "503"];
        for what in statuses.iter().chain(&["killed", "shut down", "waited"]) {
            assert!(counts.contains_key(what), "no {what}: {counts:?}");
        }
    }
}

#[test]
fn a_seed_decides_everything() {
    for seed in 1..=5 {
        let (first, second) = (run_briefly(seed), run_briefly(seed));
        for (index, event) in first.iter().enumerate() {
            assert_eq!(second.get(index), Some(event), "seed {seed}, event {index}");
        }
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}

/// One run of less than a second, after which threads of the store act by themselves.
fn run_briefly(seed: u64) -> Vec<Event> {
    let brief = (0..50).find_map(|_| {
        let began = Instant::now();
        let events = run(seed);
        (began.elapsed() < Duration::from_millis(900)).then_some(events)
    });
    brief.expect("one of 50 runs is brief")
}
