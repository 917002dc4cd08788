//! Runs what shares memory between threads by random schedules, each of which must end, and end
//! well: `cargo run --release -- [SCHEDULES] [MODEL]`, 100,000 of each unless told otherwise.
//!
//! The text is the product's own, as the build script says. A schedule in which nobody can go on
//! is a fault, too. Shuttle prints what repeats a schedule that has failed.

#![allow(
    dead_code,
    unused_imports,
    reason = "the product's files do more than the models need"
)]

mod instrumented;
mod models;

/// `encoder/src/cancel.rs`.
mod cancel {
    include!(concat!(env!("OUT_DIR"), "/encoder/src/cancel.rs"));
}

/// `encoder/src/error.rs`.
mod error {
    include!(concat!(env!("OUT_DIR"), "/encoder/src/error.rs"));
}

/// `encoder/src/threads/budget.rs`.
mod budget {
    include!(concat!(env!("OUT_DIR"), "/encoder/src/threads/budget.rs"));
}

/// `encoder/src/threads.rs`.
mod threads {
    include!(concat!(env!("OUT_DIR"), "/encoder/src/threads.rs"));
}

/// `src/admission`.
mod admission {
    pub use account_shares::{AccountShares, Share};
    pub(crate) use fair_queue::FairQueue;

    mod account_shares {
        include!(concat!(env!("OUT_DIR"), "/src/admission/account_shares.rs"));
    }

    mod fair_queue {
        include!(concat!(env!("OUT_DIR"), "/src/admission/fair_queue.rs"));
    }

    pub mod memory_budget {
        include!(concat!(
            env!("OUT_DIR"),
            "/src/admission/memory_budget/mod.rs"
        ));
    }
}

/// `src/fetch`, of which the model fetches nothing.
mod fetch {
    mod cache {
        include!(concat!(env!("OUT_DIR"), "/src/fetch/cache.rs"));
    }

    pub mod client {
        use crate::instrumented::time::Duration;
        use std::sync::Arc;

        #[derive(Debug)]
        pub struct Download {
            pub bytes: Arc<[u8]>,
            pub lifetime: Duration,
        }
    }

    mod download_budget {
        include!(concat!(env!("OUT_DIR"), "/src/fetch/download_budget.rs"));
    }

    pub mod error {
        include!(concat!(env!("OUT_DIR"), "/src/fetch/error.rs"));
    }

    pub mod settings {
        include!(concat!(env!("OUT_DIR"), "/src/fetch/settings.rs"));
    }

    pub mod single_flight {
        include!(concat!(env!("OUT_DIR"), "/src/fetch/single_flight.rs"));
    }
}

/// `src/front/workers.rs`.
mod front {
    pub mod job {
        /// Anything to do.
        pub struct Job(pub Box<dyn FnOnce() + Send>);

        impl Job {
            pub fn run(self) {
                (self.0)();
            }
        }
    }

    pub mod workers {
        include!(concat!(env!("OUT_DIR"), "/src/front/workers.rs"));
    }
}

/// `src/store/writer.rs`, over an engine that the model has.
mod store {
    pub mod availability {
        include!(concat!(env!("OUT_DIR"), "/src/store/availability.rs"));
    }

    pub mod engine {
        use super::error::Result;
        use crate::instrumented::time::Instant;

        pub type Command = u64;
        pub type Outcome = u64;

        pub trait Engine: Send + Sync {
            fn apply(&self, commands: &[Command], since: Instant) -> Result<Vec<Outcome>>;
            fn probe(&self) -> Result<()>;
        }
    }

    pub mod error {
        pub type Result<T, E = StoreError> = std::result::Result<T, E>;

        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum StoreError {
            Failed(String),
            Unavailable(String),
        }
    }

    pub mod monotonic {
        include!(concat!(env!("OUT_DIR"), "/src/store/monotonic.rs"));
    }

    pub mod known {
        use super::engine::{Command, Outcome};
        use crate::instrumented::sync::Mutex;
        use crate::instrumented::time::Instant;

        /// The commands of which memory was told, with what became of them.
        #[derive(Default)]
        pub struct KnownAccounts(pub Mutex<Vec<(Command, Option<Outcome>)>>);

        impl KnownAccounts {
            pub fn update(&self, command: &Command, outcome: &Outcome, _: Instant) {
                self.0.lock().unwrap().push((*command, Some(*outcome)));
            }

            pub fn forget(&self, command: &Command) {
                self.0.lock().unwrap().push((*command, None));
            }
        }
    }

    pub mod writer {
        include!(concat!(env!("OUT_DIR"), "/src/store/writer.rs"));
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let schedules = arguments.next().map_or(100_000, |number| {
        number
            .parse()
            .expect("the first argument is a number of schedules")
    });
    let only = arguments.next();
    println!("| model | schedules | seconds |\n|---|---:|---:|");
    for (name, model) in models::ALL {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let since = std::time::Instant::now();
        shuttle::check_random(
            move || {
                instrumented::time::reset();
                model();
            },
            schedules,
        );
        let seconds = since.elapsed().as_secs_f32();
        println!("| {name} | {schedules} | {seconds:.0} |");
    }
}
