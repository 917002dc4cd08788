//! Recording without conversions: `cargo bench --bench store -- [SECONDS]` prints how many entries
//! a second a store records on redb and on PostgreSQL, how long each waits, and how many commits
//! that takes: first as fast as callers come, then with up to a hundred stores on one PostgreSQL,
//! as many replicas have, at the pace of conversions. See `benches/README.md`.

#[path = "../tests/support/postgres.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod postgres;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use towebp::store::{
    AccountId, PostgresSettings, RequestId, Settings, Store, TokenNumber, UsageEntry, WatermarkKind,
};

/// Accounts that the entries are spread over, unless they are all of one.
const ACCOUNTS: u64 = 200;

/// A place for data, removed at the end.
struct Folder(PathBuf);

/// One PostgreSQL that writes to the disk as it does for users.
struct Database {
    server: postgres::Postgres,
    database: postgres::Database,
}

/// What callers measured.
#[derive(Default)]
struct Turn {
    entries: u64,
    latencies: Vec<Duration>,
}

fn main() {
    let seconds = std::env::args().skip(1).find(|it| it != "--bench");
    let seconds = seconds.map_or(3, |it| it.parse().expect("a number of seconds"));
    let time = Duration::from_secs(seconds);
    let settings = [
        "fsync = on",
        "max_connections = 450",
        "shared_buffers = 128MB",
    ];
    let Some(server) = postgres::Postgres::start_with(&settings) else {
        return;
    };
    let database = server.database();
    let database = Database { server, database };
    saturated(&database, time);
    paced(&database, time);
    database.print_size();
}

/// One store each, under callers that record one entry after the other.
fn saturated(database: &Database, time: Duration) {
    println!("| callers | store | entries/s | ratio | p50 ms | p99 ms |");
    println!("|---|---|---|---|---|---|");
    for callers in [1, 4, 16, 64] {
        let (folder, data) = (Folder::new(), Folder::new());
        let stores = [
            ("redb", open(&folder.redb())),
            ("PostgreSQL", open(&database.settings(&data.0, 4))),
        ];
        let mut sums = [Turn::default(), Turn::default()];
        let accounts = stores
            .each_ref()
            .map(|(_, store)| accounts(store, ACCOUNTS));
        // They take turns, since the disk has moods.
        for _ in 0..8 {
            for (at, (_, store)) in stores.iter().enumerate() {
                let turn = record(&[store], &accounts[at], callers, None, time / 8);
                sums[at].entries += turn.entries;
                sums[at].latencies.extend(turn.latencies);
            }
        }
        let redb = sums[0].entries as f64;
        for ((name, _), mut sum) in stores.iter().zip(sums) {
            sum.latencies.sort_unstable();
            println!(
                "| {callers} | {name} | {:.0} | {:.2} | {:.2} | {:.2} |",
                sum.entries as f64 / time.as_secs_f64(),
                sum.entries as f64 / redb,
                milliseconds(&sum.latencies, 0.5),
                milliseconds(&sum.latencies, 0.99),
            );
        }
    }
}

/// Many stores on one PostgreSQL, each with a share of the entries, as replicas have.
fn paced(database: &Database, time: Duration) {
    println!("\n| stores | entries/s of each | recorded/s | commits/s | p50 ms | p99 ms |");
    println!("|---|---|---|---|---|---|");
    for (replicas, pace) in [
        (1, 200),
        (2, 200),
        (4, 200),
        (16, 200),
        (50, 50),
        (100, 50),
        (100, 100),
        (100, 200),
    ] {
        let folder = Folder::new();
        let stores: Vec<Store> = (0..replicas)
            .map(|_| open(&database.settings(&folder.0, 2)))
            .collect();
        let accounts = accounts(&stores[0], ACCOUNTS);
        let references: Vec<&Store> = stores.iter().collect();
        let before = database.commits();
        let mut turn = record(&references, &accounts, 4 * replicas, Some(pace), time);
        let commits = database.commits() - before;
        turn.latencies.sort_unstable();
        println!(
            "| {replicas} | {pace} | {:.0} | {:.0} | {:.1} | {:.1} |",
            turn.entries as f64 / time.as_secs_f64(),
            commits as f64 / time.as_secs_f64(),
            milliseconds(&turn.latencies, 0.5),
            milliseconds(&turn.latencies, 0.99),
        );
    }
}

/// Has callers record for a while, each in its own store. With `pace` a store gets this many
/// entries a second from all of its callers; a latency counts from when the entry was due.
fn record(
    stores: &[&Store],
    accounts: &[AccountId],
    callers: usize,
    pace: Option<u64>,
    time: Duration,
) -> Turn {
    let (sum, entries) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    let is_over = AtomicBool::new(false);
    let of_store = (callers / stores.len()).max(1) as u64;
    let interval = pace.map(|pace| Duration::from_secs(of_store) / pace as u32);
    thread::scope(|scope| {
        for caller in 0..callers {
            let (sum, entries, is_over) = (&sum, &entries, &is_over);
            scope.spawn(move || {
                let store = stores[caller % stores.len()];
                let mut latencies = Vec::new();
                // Callers do not begin all at once.
                let offset = interval.unwrap_or_default() * caller as u32 / callers as u32;
                let mut due = Instant::now() + offset;
                let mut number = caller;
                while !is_over.load(Ordering::Relaxed) {
                    let began = match interval {
                        Some(_) => due,
                        None => Instant::now(),
                    };
                    thread::sleep(began.saturating_duration_since(Instant::now()));
                    due = began + interval.unwrap_or_default();
                    let account = accounts[number % accounts.len()];
                    let done = store.record_usage(account, &entry());
                    done.unwrap_or_else(|error| panic!("{error:?}"));
                    latencies.push(began.elapsed());
                    number += callers;
                }
                entries.fetch_add(latencies.len() as u64, Ordering::Relaxed);
                sum.lock()
                    .expect("no caller panics with it")
                    .extend(latencies);
            });
        }
        thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
    });
    Turn {
        entries: entries.into_inner(),
        latencies: sum.into_inner().expect("all callers have ended"),
    }
}

impl Database {
    fn settings(&self, data: &Path, connections: usize) -> Settings {
        let settings = PostgresSettings::default().at(&self.database.url);
        let mut settings = settings.expect("a good URL");
        settings.password_file = Some(self.database.password_file.clone());
        settings.ca = Some(self.database.ca.clone());
        settings.connections = connections;
        settings.timeout = Duration::from_secs(30);
        let secret = std::env::temp_dir().join(format!("towebp-secret-{}", std::process::id()));
        std::fs::write(&secret, format!("{}\n", "7".repeat(64))).expect("a temporary file");
        Settings {
            secret_file: Some(secret),
            postgres: Some(settings),
            ..plain(data)
        }
    }

    /// Transactions so far.
    fn commits(&self) -> u64 {
        let sql = format!(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = '{}'",
            self.database.name
        );
        // Connections tell it once a second at most.
        thread::sleep(Duration::from_millis(1500));
        let text = self.server.sql("postgres", &sql);
        text.trim().parse().expect("a number")
    }

    /// Prints how much space an entry takes.
    fn print_size(&self) {
        let sql = "SELECT count(*), pg_relation_size('usage') / count(*),
                          pg_indexes_size('usage') / count(*) FROM usage";
        let text = self.server.sql(&self.database.name, sql);
        println!("\nentries | bytes of a row | of its index: {}", text.trim());
    }
}

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "towebp-bench-store-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        Folder(std::env::temp_dir().join(name))
    }

    fn redb(&self) -> Settings {
        plain(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn plain(data: &Path) -> Settings {
    Settings {
        data: data.to_owned(),
        secret_file: None,
        allow_shared_data: false,
        history_keep: None,
        postgres: None,
    }
}

fn open(settings: &Settings) -> Store {
    Store::open(settings).unwrap_or_else(|error| panic!("{error}"))
}

/// Accounts of this store, which are made if they are missing.
fn accounts(store: &Store, count: u64) -> Vec<AccountId> {
    let numbers = 0..count;
    let made = numbers.map(|i| {
        let address = format!("owner{i}@example.org");
        let found = store.account_by_email(&address).expect("it is read");
        let make = || store.create_account(&address, None).expect("it is made");
        let account = found.unwrap_or_else(make);
        account.id
    });
    made.collect()
}

fn entry() -> UsageEntry {
    UsageEntry {
        time: SystemTime::now(),
        token: TokenNumber::DEFAULT,
        format: "jpeg".to_owned(),
        input_bytes: 73_281,
        output_bytes: 34_554,
        width: 600,
        height: 400,
        quality: 85,
        watermark: WatermarkKind::None,
        milliseconds: 9,
        request: RequestId(9),
    }
}

/// The value in milliseconds below which this share of the sorted values lies.
fn milliseconds(sorted: &[Duration], share: f64) -> f64 {
    let index = (sorted.len() as f64 * share) as usize;
    let value = sorted.get(index.min(sorted.len().saturating_sub(1)));
    value.copied().unwrap_or_default().as_secs_f64() * 1e3
}
