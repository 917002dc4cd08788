//! The servers of a run, and the database that they have.

use crate::admission::MemoryBudget;
use crate::fetch::{self, Fetcher};
use crate::front::{self, SimulatedFront};
use crate::http::admitted::HttpAdmission;
use crate::http::tests::state_by;
use crate::http::{AppState, Settings};
use crate::store::Store;
use crate::store::tests::disk::Disk;
use crate::store::tests::shared::{SECRET, store_of};
use crate::store::tests::shared_engine::SharedEngine;
use crate::store::tests::store_at;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// The memory that conversions share.
pub const MEMORY: u64 = 4 << 20;

/// The storage of the servers, which stays when processes end.
pub enum Database {
    /// A file of one server.
    File(Disk),
    /// A database of several.
    Shared(Arc<SharedEngine>),
}

/// The storage, clock and settings that all processes of a run start with.
pub struct Machines {
    pub database: Database,
    /// The clock, in milliseconds since the epoch.
    pub clock: Arc<AtomicU64>,
    pub settings: Settings,
    fetcher: Fetcher,
}

/// A server, from its start to its end.
pub struct Service {
    pub front: SimulatedFront<HttpAdmission>,
    pub state: Arc<AppState>,
    pub is_stopping: bool,
}

impl Database {
    /// Makes it work again.
    pub fn mend(&self) {
        match self {
            Database::File(disk) => {
                disk.mend();
                disk.free_space();
            }
            Database::Shared(engine) => {
                engine.is_away.store(false, Ordering::SeqCst);
                engine.loses_answer.store(false, Ordering::SeqCst);
            }
        }
    }

    /// Makes the disk fail after so many operations, or the shared database lose its next answer.
    pub fn break_after(&self, operations: usize) {
        match self {
            Database::File(disk) => disk.break_after(operations),
            Database::Shared(engine) => engine.loses_answer.store(true, Ordering::SeqCst),
        }
    }

    /// Fills the disk up, or makes the shared database unreachable.
    pub fn stop(&self) {
        match self {
            Database::File(disk) => disk.fill_up(),
            Database::Shared(engine) => engine.is_away.store(true, Ordering::SeqCst),
        }
    }
}

impl Machines {
    pub fn new(database: Database, clock: u64, settings: Settings) -> Machines {
        Machines {
            database,
            clock: Arc::new(AtomicU64::new(clock)),
            settings,
            fetcher: Fetcher::new(&fetch::Settings::default()).expect("default settings"),
        }
    }

    fn store(&self) -> Store {
        let clock = Arc::clone(&self.clock);
        let time = move || UNIX_EPOCH + Duration::from_millis(clock.load(Ordering::Relaxed));
        match &self.database {
            Database::File(disk) => store_at(disk, time),
            Database::Shared(engine) => {
                store_of(engine, SECRET, time).expect("they have one secret")
            }
        }
    }

    /// Starts a server.
    pub fn start(&self, now: Instant) -> Service {
        let threads = self.settings.threads.get();
        let state = Arc::new(state_by(
            self.store(),
            self.fetcher.clone(),
            MemoryBudget::new(MEMORY, threads),
            self.settings.clone(),
        ));
        let front_settings = front::Settings {
            connections: 8,
            connections_per_address: 4,
            buffer: 64 << 10,
            ..front::Settings::default()
        };
        let admission = HttpAdmission(Arc::clone(&state));
        Service {
            front: SimulatedFront::new([threads + 2, 2, 1], front_settings, admission, now),
            state,
            is_stopping: false,
        }
    }
}

impl Service {
    /// Ends the process.
    pub fn end(self) {
        drop(self.front);
        assert_eq!(
            Arc::strong_count(&self.state),
            1,
            "somebody has the state still"
        );
    }
}
