//! The power goes, at any moment and again and again: whatever the disk then has of the writes
//! since the last sync, the database opens, is sound, and has all that was answered and nothing by
//! halves.
//!
//! `TOWEBP_POWER_IMAGES` is the number of power losses (1000 if it is not set), `TOWEBP_POWER_SEED`
//! the seed of what reaches the disk. `TOWEBP_POWER_IMAGES=100000 cargo test --lib power_loss --
//! --nocapture` prints the result.

mod disk;
mod load;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use towebp_encoder::testing::Random;

use crate::store::engine::{Engine, Snapshot};
use crate::store::redb::database::CACHE_BYTES;
use crate::store::redb::snapshot::FileSnapshot;
use crate::store::tests::from_environment;
use disk::{Disk, Durable, Event, Loss};
use load::{Load, REPAIRED, Rows, open, rows, work_after};

/// Of this many images, one is written to after it was opened, and loses the power again.
const SECOND_LOSSES: u64 = 4;

/// A power loss.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    load: usize,
    /// How many events came before it.
    events: usize,
    /// What decides about the writes since the last sync; if there is none, all reach the disk.
    seed: Option<u64>,
}

/// What the test has seen.
#[derive(Debug, Default)]
struct Counts {
    images: usize,
    repaired: usize,
    /// Files without their name that were incomplete.
    rejected: usize,
    /// Bytes of the largest image.
    largest: usize,
    /// Images that had lost writes.
    lossy: usize,
    /// Images that had what was not answered yet.
    ahead: usize,
    second_losses: usize,
}

#[test]
fn a_power_loss_takes_nothing_that_was_answered() {
    let count: usize = from_environment("TOWEBP_POWER_IMAGES").unwrap_or(1000);
    let seed: u64 = from_environment("TOWEBP_POWER_SEED").unwrap_or(19);
    println!("TOWEBP_POWER_SEED={seed}");
    let started = Instant::now();
    let loads = load::all();
    let mut counts = Counts::default();
    let mut durable = BTreeMap::new();
    for moment in moments(&loads, count, seed) {
        let load = &loads[moment.load];
        let durable = durable
            .entry(moment.load)
            .or_insert_with(|| Durable::of(load.before.clone()));
        lose_power(load, moment, durable, &mut counts);
    }
    let events: usize = loads.iter().map(|load| load.events.len()).sum();
    println!("{events} events, {counts:?} in {:?}", started.elapsed());
}

/// `count` power losses in the order of their events. Up to a third of them cut the events off, one
/// after another or, if there are too many events, some of them; the others lose some of the writes
/// since the last sync.
fn moments(loads: &[Load], count: usize, seed: u64) -> Vec<Moment> {
    let ends: Vec<usize> = loads.iter().map(|load| load.events.len()).collect();
    let all: usize = ends.iter().sum();
    let place = |mut at: usize| {
        let mut load = 0;
        while at >= ends[load] {
            at -= ends[load];
            load += 1;
        }
        (load, at + 1)
    };
    let step = (3 * all).div_ceil(count);
    let mut random = Random::new(seed);
    let mut moments = Vec::with_capacity(count);
    for number in 0..count {
        let is_prefix = number * step < all;
        let at = if is_prefix {
            number * step
        } else {
            random.index(all)
        };
        let (load, mut events) = place(at);
        // Most writes can be lost just before a sync.
        if !is_prefix && random.below(2) == 0 {
            let until_sync = loads[load].events[events..].iter().position(Event::is_sync);
            events += until_sync.unwrap_or(0);
        }
        moments.push(Moment {
            load,
            events,
            seed: (!is_prefix).then(|| random.next_u64()),
        });
    }
    moments.sort_unstable();
    moments
}

/// Loses the power at this moment, opens what is left, and looks at it.
fn lose_power(load: &Load, moment: Moment, durable: &mut Durable, counts: &mut Counts) {
    let Moment { events, seed, .. } = moment;
    // redb itself may panic, too.
    let _place = Place(format!(
        "{}, after event {events}, loss {seed:?}",
        load.name
    ));
    let mut random = Random::new(seed.unwrap_or(0));
    let mut loss = match seed {
        None => Loss::None,
        Some(_) => Loss::random(&mut random),
    };
    let bytes = durable.after(&load.events, events, &mut loss);
    let answered = count_answers(&load.events[..events]);
    let allowed = &load.states[answered..load.states.len().min(answered + 2)];

    counts.images += 1;
    counts.largest = counts.largest.max(bytes.len());
    counts.lossy += usize::from(seed.is_some());
    REPAIRED.store(false, Ordering::Relaxed);
    let present = match sound_rows(bytes.clone()) {
        Err(error) if events < load.unnamed && is_incomplete(&error) => {
            counts.rejected += 1;
            return;
        }
        rows => rows.unwrap(),
    };
    counts.repaired += usize::from(REPAIRED.load(Ordering::Relaxed));
    let found = allowed.iter().position(|rows| *rows == present);
    let found = found.unwrap_or_else(|| {
        let other = load.states.iter().position(|rows| *rows == present);
        panic!("{answered} answers, and the rows are those after {other:?}")
    });
    counts.ahead += usize::from(found > 0);
    if bytes.is_empty() || !random.next_u64().is_multiple_of(SECOND_LOSSES) {
        return;
    }
    counts.second_losses += 1;
    lose_power_again(bytes, &present, allowed, &mut random);
}

/// Opens a file, writes to it, and loses the power at any moment of that. Before, it has the rows
/// `present` once it is open, and until then one of `allowed`.
fn lose_power_again(bytes: Vec<u8>, present: &Rows, allowed: &[Rows], random: &mut Random) {
    let disk = Disk::of(bytes.clone());
    let engine = open(&disk, CACHE_BYTES).unwrap();
    disk.answer();
    engine.apply(&work_after(9), Instant::now()).unwrap();
    disk.answer();
    let after = rows(&engine).unwrap();
    assert!(after != *present);
    drop(engine);
    let events = disk.events();
    let count = random.index(events.len() + 1);
    let mut loss = Loss::random(random);
    let left = Durable::of(bytes).after(&events, count, &mut loss);
    let found = sound_rows(left).unwrap();
    let is_allowed = match count_answers(&events[..count]) {
        0 => allowed.contains(&found),
        1 => found == *present || found == after,
        _ => found == after,
    };
    assert!(
        is_allowed,
        "the second loss, after event {count} of {}",
        events.len()
    );
}

/// The rows of a file that has to be sound.
fn sound_rows(bytes: Vec<u8>) -> Result<Rows, String> {
    let mut engine = open(&Disk::of(bytes), CACHE_BYTES)?;
    let has_sound_pages = engine.database.check_pages();
    assert!(has_sound_pages.unwrap(), "pages had to be mended");
    let findings = FileSnapshot::of(&engine.database).unwrap().check().unwrap();
    assert_eq!(findings.problems, [""; 0]);
    Ok(rows(&engine).unwrap())
}

fn is_incomplete(error: &str) -> bool {
    error.contains("another program") || error.contains("Not a redb database")
}

fn count_answers(events: &[Event]) -> usize {
    let is_answer = |event: &&Event| matches!(event, Event::Answered);
    events.iter().filter(is_answer).count()
}

/// What a failure needs to be repeated, printed at a panic.
struct Place(String);

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.0);
        }
    }
}
