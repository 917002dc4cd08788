//! Counts of requests, conversions and other events, and their text in Prometheus's format (version
//! 0.0.4). [`FAMILIES`] lists all of them.

use crate::admission::MemoryBudget;
use crate::fetch::{FetchError, Fetched, Fetcher, Source};
use crate::front::LoadGauge;
use crate::store::{Caller, Store};
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use towebp_pipeline::conversion::Timing;

/// Makes the table of families from one line each: kind, name, and a help text with the counted
/// event, its unit and its labels.
macro_rules! families {
    ($($kind:ident $name:ident $help:literal;)+) => {
        const FAMILIES: &[[&str; 3]] = &[$([stringify!($name), stringify!($kind), $help],)+];
    };
}

families! {
    counter towebp_requests_total "Answers, by status.";
    counter towebp_request_bytes_total "Bytes of bodies received.";
    counter towebp_response_bytes_total "Bytes of bodies sent.";
    counter towebp_conversions_total "Pictures converted, by format of the input.";
    counter towebp_token_conversions_total
        "Pictures converted, by number of the account and name of the token; from the 1001st pair on by \"other\".";
    counter towebp_watermark_fetches_total
        "Watermark pictures asked for, by source: host, shared (with another conversion), cache, none (it failed).";
    histogram towebp_stage_seconds "Seconds of a conversion, by stage: decode, watermark, encode.";
    gauge towebp_connections "Connections of clients, idle ones included.";
    gauge towebp_requests_waiting "Whole requests that wait for a thread.";
    gauge towebp_requests_working "Requests that threads have.";
    gauge towebp_buffer_bytes "Bytes that requests and answers on their way take, of --buffer.";
    gauge towebp_memory_budget_bytes "Bytes of memory that conversions may take together.";
    gauge towebp_memory_reserved_bytes "Bytes of memory that those take that run now, as estimated.";
    gauge towebp_memory_waiting "Conversions that wait for memory and their turn.";
    gauge towebp_conversions_running "Conversions that have memory and run.";
    gauge towebp_watermark_fetches_running "Watermark pictures that are being fetched.";
    gauge towebp_watermark_fetches_waiting "Watermark pictures that wait to be fetched.";
    gauge towebp_store_up "1 if the storage of accounts and usage can be used, else 0.";
    counter towebp_store_groups_total "Groups of changes that were committed together.";
    counter towebp_store_changes_total "Changes in these groups, conversions included.";
    counter towebp_store_faults_total
        "Faults of the database that several servers share, by class; most were mended by asking again.";
    gauge towebp_store_servers "Servers that use the store, this one included, as seen in the last 30 seconds.";
    gauge towebp_store_clock_offset_seconds
        "Seconds by which the clock of the shared database is ahead of this machine's.";
    gauge process_resident_memory_bytes "Bytes of memory, as Linux counts them.";
}

/// The upper ends of the histogram's buckets, in seconds: from a thumbnail's decoding to the
/// default time limit of a conversion.
const BUCKETS: [f64; 10] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 50.0];

/// The parts of the service that have gauges.
#[derive(Clone)]
pub struct Gauges {
    /// The memory of conversions.
    pub memory: MemoryBudget,
    /// The load of the event loop.
    pub load_gauge: LoadGauge,
    /// The fetches of watermarks.
    pub fetcher: Fetcher,
    /// Accounts and usage.
    pub store: Arc<Store>,
}

/// The most pairs of an account and a token that are counted one by one: Prometheus handles as many
/// from one server easily.
const MAX_TOKENS: usize = 1000;

/// The token of all others, of account 0.
const OTHER: &str = "other";

/// Counts since the start of the server. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    requests: BTreeMap<u16, u64>,
    bytes_in: u64,
    bytes_out: u64,
    conversions: BTreeMap<&'static str, u64>,
    by_token: BTreeMap<(u64, String), u64>,
    fetches: BTreeMap<&'static str, u64>,
    stages: [Histogram; 3],
}

#[derive(Debug, Default)]
struct Histogram {
    /// How many values lie in each bucket, and in no earlier one; the last counts those above all
    /// upper ends.
    counts: [u64; BUCKETS.len() + 1],
    sum: f64,
}

impl Metrics {
    /// Counts a request that was answered, and the bytes of its bodies.
    pub fn answered(&self, status: u16, bytes_in: u64, bytes_out: u64) {
        self.count(|counts| {
            *counts.requests.entry(status).or_default() += 1;
            counts.bytes_in += bytes_in;
            counts.bytes_out += bytes_out;
        });
    }

    /// Counts bytes of a later part of a response.
    pub fn sent(&self, bytes: u64) {
        self.count(|counts| counts.bytes_out += bytes);
    }

    /// Counts a picture of this format that was converted for a caller.
    pub fn converted(&self, caller: &Caller, format: &'static str, timing: Timing) {
        let stages = [timing.decode, timing.watermark, timing.encode];
        let mut key = (caller.account.0, caller.token_name().to_owned());
        self.count(|counts| {
            if counts.by_token.len() >= MAX_TOKENS && !counts.by_token.contains_key(&key) {
                key = (0, OTHER.to_owned());
            }
            *counts.by_token.entry(key).or_default() += 1;
            *counts.conversions.entry(format).or_default() += 1;
            for (histogram, time) in counts.stages.iter_mut().zip(stages) {
                histogram.add(time.as_secs_f64());
            }
        });
    }

    /// Counts a requested watermark picture by its source.
    pub fn fetched(&self, outcome: &Result<Fetched, FetchError>) {
        let source = match outcome.as_ref().map(|fetched| fetched.source) {
            Ok(Source::Host) => "host",
            Ok(Source::Shared) => "shared",
            Ok(Source::Cache) => "cache",
            Err(_) => "none",
        };
        self.count(|counts| *counts.fetches.entry(source).or_default() += 1);
    }

    /// All families, with their present values.
    pub fn to_text(&self, gauges: &Gauges) -> String {
        let mut text = String::new();
        self.count(|counts| counts.write(&mut text))
            .and_then(|()| gauges.write(&mut text))
            .expect("a String takes everything");
        text
    }

    fn count<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        // Counts are numbers: after a panic at most one event is missing.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Counts {
    fn write(&self, text: &mut String) -> std::fmt::Result {
        write_each(text, "towebp_requests_total", "status", &self.requests)?;
        write_one(text, "towebp_request_bytes_total", self.bytes_in)?;
        write_one(text, "towebp_response_bytes_total", self.bytes_out)?;
        write_each(
            text,
            "towebp_conversions_total",
            "format",
            &self.conversions,
        )?;
        begin(text, "towebp_token_conversions_total")?;
        for ((account, token), value) in &self.by_token {
            let token = escaped(token);
            writeln!(
                text,
                "towebp_token_conversions_total{{account=\"{account}\",token=\"{token}\"}} {value}"
            )?;
        }
        write_each(
            text,
            "towebp_watermark_fetches_total",
            "source",
            &self.fetches,
        )?;
        begin(text, "towebp_stage_seconds")?;
        for (stage, histogram) in ["decode", "watermark", "encode"].iter().zip(&self.stages) {
            histogram.write(text, stage)?;
        }
        Ok(())
    }
}

impl Gauges {
    fn write(&self, text: &mut String) -> std::fmt::Result {
        let (load, usage) = (self.load_gauge.load(), self.memory.usage());
        write_one(text, "towebp_connections", load.connections as u64)?;
        write_one(text, "towebp_requests_waiting", load.waiting as u64)?;
        write_one(text, "towebp_requests_working", load.working as u64)?;
        write_one(text, "towebp_buffer_bytes", load.held)?;
        write_one(text, "towebp_memory_budget_bytes", usage.total)?;
        write_one(text, "towebp_memory_reserved_bytes", usage.reserved)?;
        write_one(text, "towebp_memory_waiting", usage.waiting as u64)?;
        write_one(text, "towebp_conversions_running", usage.running as u64)?;
        let (fetching, waiting) = self.fetcher.load();
        write_one(text, "towebp_watermark_fetches_running", fetching as u64)?;
        write_one(text, "towebp_watermark_fetches_waiting", waiting as u64)?;
        let store = self.store.metrics();
        write_one(text, "towebp_store_up", u64::from(store.is_up))?;
        write_one(text, "towebp_store_groups_total", store.groups)?;
        write_one(text, "towebp_store_changes_total", store.commands)?;
        let faults = store.faults.into_iter().collect();
        write_each(text, "towebp_store_faults_total", "class", &faults)?;
        write_one(text, "towebp_store_servers", u64::from(store.replicas))?;
        begin(text, "towebp_store_clock_offset_seconds")?;
        let offset = store.clock_offset as f64 / 1000.0;
        writeln!(text, "towebp_store_clock_offset_seconds {offset}")?;
        match resident_bytes() {
            Some(bytes) => write_one(text, "process_resident_memory_bytes", bytes),
            None => Ok(()),
        }
    }
}

/// The two lines before the values of a family.
fn begin(text: &mut String, name: &str) -> std::fmt::Result {
    let [_, kind, help] = FAMILIES
        .iter()
        .find(|family| family[0] == name)
        .expect("all families are in the table");
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// A label's value as Prometheus reads it.
fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"")
}

fn write_one(text: &mut String, name: &str, value: u64) -> std::fmt::Result {
    begin(text, name)?;
    writeln!(text, "{name} {value}")
}

/// A family with one value for each value of its label.
fn write_each<K: Display>(
    text: &mut String,
    name: &str,
    label: &str,
    values: &BTreeMap<K, u64>,
) -> std::fmt::Result {
    begin(text, name)?;
    for (key, value) in values {
        writeln!(text, "{name}{{{label}=\"{key}\"}} {value}")?;
    }
    Ok(())
}

impl Histogram {
    fn add(&mut self, seconds: f64) {
        self.counts[BUCKETS.partition_point(|end| *end < seconds)] += 1;
        self.sum += seconds;
    }

    fn write(&self, text: &mut String, stage: &str) -> std::fmt::Result {
        let mut total = 0;
        let ends = BUCKETS.iter().map(f64::to_string);
        for (end, count) in ends.chain(["+Inf".to_owned()]).zip(self.counts) {
            total += count;
            writeln!(
                text,
                "towebp_stage_seconds_bucket{{stage=\"{stage}\",le=\"{end}\"}} {total}"
            )?;
        }
        writeln!(
            text,
            "towebp_stage_seconds_sum{{stage=\"{stage}\"}} {}\ntowebp_stage_seconds_count{{stage=\"{stage}\"}} {total}",
            self.sum
        )
    }
}

/// The bytes of memory that are resident: `VmRSS` of `/proc/self/status` (proc(5)), there in KiB.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch;
    use crate::store::AccountId;
    use crate::store::tests::Folder;
    use std::time::Duration;

    #[test]
    fn tokens_beyond_a_thousand_are_counted_together() {
        let metrics = Metrics::default();
        for account in 1..=MAX_TOKENS as u64 + 5 {
            let caller = Caller::plain(AccountId(account));
            metrics.converted(&caller, "png", Timing::default());
            metrics.converted(&caller, "png", Timing::default());
        }
        metrics.count(|counts| {
            assert_eq!(counts.by_token.len(), MAX_TOKENS + 1);
            assert_eq!(counts.by_token[&(0, OTHER.to_owned())], 10);
            assert_eq!(counts.by_token[&(5, "default".to_owned())], 2);
        });
        assert_eq!(escaped("a\"b\\"), "a\\\"b\\\\");
    }

    #[test]
    fn buckets_hold_all_that_is_below_their_end() {
        let metrics = Metrics::default();
        let timing = |milliseconds| Timing {
            decode: Duration::from_millis(milliseconds),
            ..Timing::default()
        };
        for milliseconds in [1, 2, 100_000] {
            let caller = Caller::plain(AccountId(7));
            metrics.converted(&caller, "png", timing(milliseconds));
        }
        let text = metrics.to_text(&Gauges {
            memory: MemoryBudget::new(1, 1),
            load_gauge: LoadGauge::default(),
            fetcher: Fetcher::new(&fetch::Settings::default()).expect("no file is read"),
            store: Arc::new(Folder::new().store()),
        });
        for line in [
            "towebp_stage_seconds_bucket{stage=\"decode\",le=\"0.001\"} 1",
            "towebp_stage_seconds_bucket{stage=\"decode\",le=\"0.003\"} 2",
            "towebp_stage_seconds_bucket{stage=\"decode\",le=\"50\"} 2",
            "towebp_stage_seconds_bucket{stage=\"decode\",le=\"+Inf\"} 3",
            "towebp_stage_seconds_count{stage=\"decode\"} 3",
            "towebp_conversions_total{format=\"png\"} 3",
            "towebp_token_conversions_total{account=\"7\",token=\"default\"} 3",
            "towebp_memory_budget_bytes 1",
            "towebp_store_up 1",
            "towebp_store_changes_total 1",
            "towebp_store_servers 1",
            "towebp_store_clock_offset_seconds 0",
            "# HELP towebp_connections Connections of clients, idle ones included.",
            "# TYPE towebp_connections gauge",
            "towebp_connections 0",
        ] {
            assert!(
                text.lines().any(|given| given == line),
                "no {line} in\n{text}"
            );
        }
        let families = text.lines().filter(|line| line.starts_with("# HELP "));
        assert_eq!(families.count(), FAMILIES.len(), "{text}");
    }
}
