//! The servers of a run, and the database that they have.

use crate::admission::MemoryBudget;
use crate::fetch::{self, Fetcher};
use crate::front::{self, SimulatedFront};
use crate::http::admitted::HttpAdmission;
use crate::http::asset::Asset;
use crate::http::{AppState, Limiters, Metrics, Readiness, Settings};
use crate::store::Store;
use crate::store::tests::disk::Disk;
use crate::store::tests::shared_engine::SharedEngine;
use crate::store::tests::{store_at, store_beside};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};
use towebp_pipeline::conversion::{CpuBudget, Fonts};
use towebp_pipeline::image;

/// The memory that conversions share.
pub const MEMORY: u64 = 4 << 20;

/// What stays when processes end.
pub enum Database {
    /// A file of one server.
    File(Disk),
    /// A database of several.
    Shared(Arc<SharedEngine>),
}

/// What all processes of a run start with.
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
    /// One that works again.
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

    /// One that breaks off after so many operations of its disk, or takes the next commands and
    /// gives no answer.
    pub fn break_after(&self, operations: usize) {
        match self {
            Database::File(disk) => disk.break_after(operations),
            Database::Shared(engine) => engine.loses_answer.store(true, Ordering::SeqCst),
        }
    }

    /// One that takes no more data, or is away.
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
            Database::Shared(engine) => store_beside(engine, time),
        }
    }

    /// Starts a server.
    pub fn start(&self, now: Instant) -> Service {
        let settings = self.settings.clone();
        let threads = settings.threads.get();
        let state = Arc::new(AppState {
            store: Arc::new(self.store()),
            fetcher: self.fetcher.clone(),
            fonts: Fonts::default(),
            limits: image::Limits::default(),
            cpu_budget: CpuBudget::new(NonZeroUsize::MIN),
            memory: MemoryBudget::new(MEMORY, threads),
            limiters: Limiters::new(&settings),
            readiness: Readiness::default(),
            metrics: Metrics::default(),
            // It takes longer to make than everything else, and no client wants it.
            openapi: Asset::new("application/json", "{}"),
            settings,
        });
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
