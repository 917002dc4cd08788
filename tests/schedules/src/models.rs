//! The models: a few threads each, as many as are needed to meet one another.

use crate::admission::memory_budget::{MemoryBudget, Need};
use crate::budget::CpuBudget;
use crate::cancel::Cancel;
use crate::error::EncodeError;
use crate::fetch::client::Download;
use crate::fetch::error::FetchError;
use crate::fetch::settings::Settings;
use crate::fetch::single_flight::{SingleFlight, Source};
use crate::front::job::Job;
use crate::front::workers;
use crate::instrumented::sync::atomic::{AtomicUsize, Ordering};
use crate::instrumented::sync::{Arc, Mutex, OnceLock, mpsc};
use crate::instrumented::thread;
use crate::instrumented::time::{Duration, Instant};
use crate::store::availability::Availability;
use crate::store::engine::{Command, Engine, Outcome};
use crate::store::error::{Result as StoreResult, StoreError};
use crate::store::known::KnownAccounts;
use crate::store::writer::{Shared, Writer};
use crate::threads::Workers;
use shuttle::rand::Rng;
use std::num::NonZeroUsize;

pub const ALL: [(&str, fn()); 8] = [
    ("hand-over to workers", hand_over),
    ("passes of the encoder", passes),
    ("rows that wait for rows", rows),
    ("cancelled passes", cancelled),
    ("cores between accounts", cores),
    ("memory between accounts", memory),
    ("single-flight", single_flight),
    ("writer of the store", writer),
];

/// Every job is done once, by whatever worker, and the workers end after the last one.
fn hand_over() {
    const JOBS: usize = 3;
    let (workers, jobs) = workers::Workers::start(2).expect("threads start");
    let jobs = Arc::new(jobs);
    let done: Arc<Vec<AtomicUsize>> =
        Arc::new((0..2 * JOBS).map(|_| AtomicUsize::new(0)).collect());
    let producers: Vec<_> = (0..2)
        .map(|producer| {
            let (jobs, done) = (Arc::clone(&jobs), Arc::clone(&done));
            thread::spawn(move || {
                for job in producer * JOBS..(producer + 1) * JOBS {
                    let done = Arc::clone(&done);
                    jobs.push(Job(Box::new(move || {
                        done[job].fetch_add(1, Ordering::SeqCst);
                    })));
                }
            })
        })
        .collect();
    for producer in producers {
        producer.join().expect("it does not panic");
    }
    drop(jobs);
    workers.join().expect("no worker panics");
    for (job, done) in done.iter().enumerate() {
        assert_eq!(done.load(Ordering::SeqCst), 1, "job {job}");
    }
}

fn budget(cores: usize) -> CpuBudget {
    CpuBudget::new(NonZeroUsize::new(cores).expect("not zero"))
}

/// Every core of the budget is free.
fn check_free(budget: &CpuBudget) {
    let never = Cancel::never();
    let workers = Workers::new(budget.total() + 1, Some(budget), &never);
    let all: Vec<_> = std::iter::from_fn(|| workers.try_helper()).collect();
    assert_eq!(all.len(), budget.total(), "cores that came back");
}

/// One conversion that has all cores to itself uses no more than there are.
fn passes() {
    let budget = budget(3);
    let own = budget.occupy();
    let (active, never) = (AtomicUsize::new(0), Cancel::never());
    let done = Workers::new(8, Some(&budget), &never).run(6, |number| {
        let at_once = active.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(at_once <= 3, "{at_once} threads on 3 cores");
        active.fetch_sub(1, Ordering::SeqCst);
        number * number
    });
    assert_eq!(done, Ok(vec![0, 1, 4, 9, 16, 25]));
    drop(own);
    check_free(&budget);
}

/// Lets the others do as much as they like; otherwise a thread is mostly done soon.
fn come_at_any_time() {
    for _ in 0..shuttle::rand::thread_rng().gen_range(0..60) {
        thread::yield_now();
    }
}

/// Row after row, each of which waits for the one above it.
fn run_rows(workers: Workers<'_>) -> Result<Vec<usize>, EncodeError> {
    let rows: Vec<OnceLock<()>> = (0..5).map(|_| OnceLock::new()).collect();
    workers.run(5, |row| {
        if row > 0 {
            rows[row - 1].wait();
        }
        rows[row].get_or_init(|| ());
        row
    })
}

/// Rows wait for the rows above them, while other conversions take cores and give them back.
fn rows() {
    let budget = Arc::new(budget(2));
    let same = Arc::clone(&budget);
    let others = thread::spawn(move || {
        come_at_any_time();
        for is_small in [false, true] {
            drop(same.occupy_for(1, is_small));
        }
    });
    let (own, never) = (budget.occupy(), Cancel::never());
    let done = run_rows(Workers::new(3, Some(&budget), &never));
    assert_eq!(done, Ok(vec![0, 1, 2, 3, 4]));
    // They have the core that helpers had.
    others.join().expect("it does not panic");
    drop(own);
    check_free(&budget);
}

/// A pass that is cancelled ends with the error, or was done before; no row waits for one that
/// never began.
fn cancelled() {
    let (budget, cancel) = (budget(3), Arc::new(Cancel::new()));
    let same = Arc::clone(&cancel);
    let canceller = thread::spawn(move || {
        come_at_any_time();
        same.cancel();
    });
    let own = budget.occupy();
    match run_rows(Workers::new(3, Some(&budget), &cancel)) {
        Ok(rows) => assert_eq!(rows, [0, 1, 2, 3, 4]),
        Err(error) => assert_eq!(error, EncodeError::Cancelled),
    }
    drop(own);
    canceller.join().expect("it does not panic");
    check_free(&budget);
}

/// Large conversions of two accounts and a small one on a single core: each pauses for the others,
/// and each ends.
fn cores() {
    let budget = Arc::new(budget(1));
    let convert = |account: u64, is_small: bool| {
        let budget = Arc::clone(&budget);
        thread::spawn(move || {
            let core = budget.occupy_for(account, is_small);
            for _ in 0..3 {
                core.give_way(&|| false);
            }
            core.busy();
        })
    };
    for conversion in [convert(0, false), convert(1, false), convert(0, true)] {
        conversion.join().expect("it does not panic");
    }
    check_free(&budget);
}

/// Conversions of two accounts share memory for one of them and a half; one gives up. No more is
/// reserved than there is, each that waits gets its turn, and all comes back.
fn memory() {
    const TOTAL: u64 = 100;
    let budget = MemoryBudget::new(TOTAL, 1);
    let convert = |account: u64, bytes: u64, is_small: bool, gives_up: bool| {
        let budget = budget.clone();
        thread::spawn(move || {
            let (wake, woken) = mpsc::channel();
            let need = Need {
                bytes,
                is_small,
                seconds: 1.0,
            };
            let until = Instant::now() + Duration::from_secs(1);
            let mut pending = budget
                .join(account, need, until, move || {
                    wake.send(()).ok();
                })
                .expect("it is less than all");
            if gives_up {
                return;
            }
            let mut reservation = loop {
                match pending.take() {
                    Ok(reservation) => break reservation,
                    Err(waiting) => pending = waiting,
                }
                woken.recv().expect("it is woken while it waits");
            };
            let usage = budget.usage();
            assert!(usage.reserved <= TOTAL, "{usage:?}");
            reservation.grow_to(bytes + 10).ok();
            reservation.finish(10);
            let usage = budget.usage();
            assert!(usage.reserved <= TOTAL, "{usage:?}");
        })
    };
    let all = [
        convert(1, 60, false, false),
        convert(2, 70, false, false),
        convert(1, 60, false, true),
        convert(2, 20, true, false),
    ];
    for one in all {
        one.join().expect("it does not panic");
    }
    let usage = budget.usage();
    assert_eq!(
        (usage.reserved, usage.running, usage.waiting),
        (0, 0, 0),
        "{usage:?}"
    );
}

/// Callers of one URL share a fetch and all get its bytes; one leaves. Of each URL at most one
/// fetch that can be joined runs at a time, and nothing stays behind.
fn single_flight() {
    static LOADS: [std::sync::atomic::AtomicUsize; 2] =
        [const { std::sync::atomic::AtomicUsize::new(0) }; 2];
    LOADS
        .iter()
        .for_each(|loads| loads.store(0, Ordering::SeqCst));
    let settings = Settings {
        fetches: 1,
        // Nothing is in the cache, so that all are fetched.
        cache_bytes: 0,
        ..Settings::default()
    };
    let load = |uri: &http::Uri, may_go_on: &dyn Fn(usize) -> Result<(), FetchError>| {
        let own = usize::from(uri.path() == "/b");
        LOADS[own].fetch_add(1, Ordering::SeqCst);
        for held in [1, 2] {
            thread::yield_now();
            may_go_on(held)?;
        }
        Ok(Download {
            bytes: Arc::from(uri.path().as_bytes()),
            lifetime: Duration::from_secs(1),
        })
    };
    let single_flight = SingleFlight::new(&settings, Box::new(load));
    let call = |account: u64, path: &'static str, leaves: bool| {
        let single_flight = Arc::clone(&single_flight);
        thread::spawn(move || {
            let uri = format!("http://example.org{path}").parse().expect("a URL");
            let (wake, woken) = mpsc::channel();
            let wake = Mutex::new(wake);
            let wake = move || {
                wake.lock().expect("nothing panics").send(()).ok();
            };
            let pending = single_flight
                .begin(account, uri, Box::new(wake))
                .expect("there is room");
            if leaves {
                return;
            }
            let at_first = Instant::now();
            let outcome = pending.outcome(at_first).unwrap_or_else(|| {
                woken.recv().expect("it is woken while it waits");
                pending.outcome(at_first).expect("it was woken for that")
            });
            let fetched = outcome.expect("nothing failed");
            assert_eq!(&*fetched.bytes, path.as_bytes());
            assert_ne!(fetched.source, Source::Cache);
        })
    };
    let all = [
        call(1, "/a", false),
        call(2, "/a", false),
        call(2, "/a", true),
        call(1, "/b", false),
    ];
    for one in all {
        one.join().expect("it does not panic");
    }
    while single_flight.load() != (0, 0) {
        thread::yield_now();
    }
    let loads = LOADS.each_ref().map(|loads| loads.load(Ordering::SeqCst));
    assert!((1..=3).contains(&loads[0]) && loads[1] == 1, "{loads:?}");
}

/// Carries out what it is sent: the outcome is the command's square. Fails once.
#[derive(Default)]
struct Squares {
    applied: Mutex<Vec<Command>>,
    fails_at: usize,
    groups: AtomicUsize,
}

impl Engine for Squares {
    fn apply(&self, commands: &[Command], _: Instant) -> StoreResult<Vec<Outcome>> {
        if self.groups.fetch_add(1, Ordering::SeqCst) == self.fails_at {
            return Err(StoreError::Failed("this group".into()));
        }
        let mut applied = self.applied.lock().expect("nothing panics");
        applied.extend(commands);
        Ok(commands.iter().map(|command| command * command).collect())
    }

    fn probe(&self) -> StoreResult<()> {
        Ok(())
    }
}

/// Each caller gets its own outcome, once its command is carried out and memory knows; those of a
/// group that failed get the error; the writer ends after the last one.
fn writer() {
    let engine = Arc::new(Squares {
        fails_at: 1,
        ..Squares::default()
    });
    let known = Arc::new(KnownAccounts::default());
    let writer = Writer::start(Shared {
        engine: Arc::clone(&engine) as Arc<dyn Engine>,
        has_others: false,
        known: Arc::clone(&known),
        availability: Arc::new(Availability::default()),
    });
    let writer = Arc::new(writer.expect("a thread starts"));
    let callers: Vec<_> = (1..=3)
        .map(|caller| {
            let (writer, engine, known) =
                (Arc::clone(&writer), Arc::clone(&engine), Arc::clone(&known));
            thread::spawn(move || {
                for command in [caller, caller + 10] {
                    let outcome = writer.write(command);
                    let is_applied = engine.applied.lock().expect("no panic").contains(&command);
                    assert_eq!(outcome.is_ok(), is_applied, "{command}");
                    let outcome = outcome.ok();
                    assert!(outcome.is_none_or(|outcome| outcome == command * command));
                    let known = known.0.lock().expect("nothing panics");
                    assert!(known.contains(&(command, outcome)), "memory knows later");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.join().expect("it does not panic");
    }
    let (groups, commands) = writer.counts();
    assert!((2..=6).contains(&groups) && commands == 6, "{groups}");
    drop(writer);
    assert_eq!(known.0.lock().expect("nothing panics").len(), 6);
}
