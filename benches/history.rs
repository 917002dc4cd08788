//! A long history: `cargo bench --bench history -- FOLDER [ENTRIES]` fills a new data folder with
//! the entries of one account (10 million), or takes the one that is there, and prints what it
//! takes to record, to read a page of each kind and to sum up, and how far memory grows meanwhile.
//! See `benches/README.md`.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use towebp::store::{
    AccountId, Days, EntryId, FailureFilter, Page, Period, RequestId, Settings, Store, TokenNumber,
    UsageEntry, UsageFilter, WatermarkKind,
};

/// Threads that record: the store commits what has queued up together.
const RECORDERS: u64 = 256;

/// The entries are spread over these days.
const DAYS: u64 = 1000;

/// One entry in so many is by a token of its own.
const RARE: u64 = 1_000_003;

/// How often each question is asked.
const TIMES: usize = 15;

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| it != "--bench")
        .collect();
    let Some(folder) = args.first() else {
        println!("name a folder: cargo bench --bench history -- FOLDER [ENTRIES]");
        return;
    };
    let entries = args
        .get(1)
        .map_or(10_000_000, |it| it.parse().expect("a number"));
    let settings = Settings {
        data: Path::new(folder).to_owned(),
        secret_file: None,
        allow_shared_data: false,
        history_keep: None,
        postgres: None,
    };
    let open = Instant::now();
    let store = Store::open(&settings).unwrap_or_else(|error| panic!("{error}"));
    println!("opened in {:.1} ms", milliseconds(open.elapsed()));
    let accounts = store.accounts().expect("they are read");
    let account = match accounts.first() {
        Some(account) => account.id,
        None => fill(&store, entries),
    };
    let newest = store
        .usage_totals(account)
        .expect("they are read")
        .conversions;
    println!("{newest} entries");
    ask(&store, account, newest);
}

/// Records the entries, oldest first but for what the recorders overtake each other.
fn fill(store: &Store, entries: u64) -> AccountId {
    let account = store.create_account("owner@example.org", None);
    let account = account.expect("a new account").id;
    let start = SystemTime::now() - Duration::from_hours(24 * DAYS);
    let (next, begun) = (AtomicU64::new(0), Instant::now());
    thread::scope(|scope| {
        for _ in 0..RECORDERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= entries {
                        return;
                    }
                    let seconds = number * DAYS * 86_400 / entries;
                    let entry = entry(number, start + Duration::from_secs(seconds));
                    store.record_usage(account, &entry).expect("it is recorded");
                }
            });
        }
    });
    let rate = entries as f64 / begun.elapsed().as_secs_f64();
    println!("recorded {entries} entries, {rate:.0} a second");
    account
}

fn entry(number: u64, time: SystemTime) -> UsageEntry {
    let token = if number % RARE == RARE / 2 {
        9
    } else {
        (number % 3) as u32
    };
    UsageEntry {
        time,
        token: TokenNumber(token),
        format: ["png", "jpeg", "jpeg", "gif"][(number % 4) as usize].to_owned(),
        input_bytes: 100_000 + number % 1000,
        output_bytes: 30_000 + number % 500,
        width: 600,
        height: 400,
        quality: 85,
        watermark: WatermarkKind::None,
        milliseconds: 17,
        request: RequestId(number.into()),
    }
}

/// Asks each question some times, and prints the median and the longest time.
fn ask(store: &Store, account: AccountId, newest: u64) {
    let all = UsageFilter::default();
    let token = |number| UsageFilter {
        token: Some(TokenNumber(number)),
        ..UsageFilter::default()
    };
    let format = |name: &str| UsageFilter {
        format: Some(name.to_owned()),
        ..UsageFilter::default()
    };
    let today = UsageFilter::today(SystemTime::now());
    let day = today - DAYS as u32 / 2;
    let of_day = UsageFilter {
        days: Days {
            first: day,
            last: day,
        },
        ..UsageFilter::default()
    };
    let old_day = UsageFilter {
        days: Days {
            first: 0,
            last: today - DAYS as u32,
        },
        ..UsageFilter::default()
    };
    println!(
        "{:<44}{:>8}{:>11}{:>11}{:>11}",
        "page", "entries", "median ms", "most ms", "peak MiB"
    );
    let middle = Some(EntryId::from(newest / 2));
    for (name, filter, before, limit) in [
        ("the newest 25", &all, None, 25),
        ("25 in the middle", &all, middle, 25),
        ("the newest 1000", &all, None, 1000),
        ("25 by one of three tokens", &token(1), None, 25),
        (
            "25 by one of three tokens, in the middle",
            &token(1),
            middle,
            25,
        ),
        ("25 by a token of 1 in 1,000,003", &token(9), None, 25),
        ("25 by a token that was never used", &token(7), None, 25),
        ("25 of a format that never came", &format("bmp"), None, 25),
        ("25 of a format", &format("gif"), None, 25),
        ("25 of a day in the middle", &of_day, None, 25),
        ("25 of the first days", &old_day, None, 25),
        ("1000 of a day in the middle", &of_day, None, 1000),
    ] {
        measure(name, || {
            let Page { entries, .. } = store
                .usage(account, filter, before, limit)
                .expect("it is read");
            entries.len()
        });
    }
    for (name, filter, period) in [
        ("sums of all days", &all, Period::Day),
        ("sums of all months", &all, Period::Month),
        ("sums of all days by a token", &token(1), Period::Day),
    ] {
        measure(name, || {
            let sums = store.usage_sums(account, filter, period);
            sums.expect("they are read").len()
        });
    }
    measure("totals", || {
        let totals = store.usage_totals(account).expect("they are read");
        totals.conversions as usize
    });
    measure("sums of each token", || {
        store.tokens(account).expect("they are read").len()
    });
    measure("failures", || {
        let failures = store.failures(account, &FailureFilter::default(), None, 10);
        failures.expect("they are read").entries.len()
    });
    let begun = Instant::now();
    let (mut before, mut count) = (None, 0);
    loop {
        let page = store
            .usage(account, &all, before, 1000)
            .expect("it is read");
        count += page.entries.len();
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    println!(
        "all {count} entries in pages of 1000: {:.1} s, peak {:.1} MiB",
        begun.elapsed().as_secs_f64(),
        peak()
    );
}

fn measure(name: &str, question: impl Fn() -> usize) {
    let (mut times, mut answer) = (Vec::new(), 0);
    for _ in 0..TIMES {
        let begun = Instant::now();
        answer = question();
        times.push(milliseconds(begun.elapsed()));
    }
    times.sort_by(f64::total_cmp);
    println!(
        "{name:<44}{answer:>8}{:>11.2}{:>11.2}{:>11.1}",
        times[TIMES / 2],
        times[TIMES - 1],
        peak()
    );
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The most memory that the process has had so far, in MiB; 0 where the system does not tell.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0.0) / 1024.0
}
