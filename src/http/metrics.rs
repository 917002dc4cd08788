//! What the service has done, in Prometheus's text format (version 0.0.4), on an address of its own: one thread, one
//! connection at a time, each with a time limit. [`FAMILIES`] are all there are.

use crate::admission::MemoryBudget;
use crate::conversion::Timing;
use crate::fetch::{FetchError, Fetched, Fetcher, Source};
use crate::front::LoadGauge;
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Name, kind, and what it counts, in which unit and by which labels.
const FAMILIES: [[&str; 3]; 17] = [
    ["towebp_requests_total", "counter", "Answers, by status."],
    [
        "towebp_request_bytes_total",
        "counter",
        "Bytes of bodies received.",
    ],
    [
        "towebp_response_bytes_total",
        "counter",
        "Bytes of bodies sent.",
    ],
    [
        "towebp_conversions_total",
        "counter",
        "Pictures converted, by format of the input.",
    ],
    [
        "towebp_watermark_fetches_total",
        "counter",
        "Watermark pictures asked for, by source: host, shared (with another conversion), cache, none (it failed).",
    ],
    [
        "towebp_stage_seconds",
        "histogram",
        "Seconds of a conversion, by stage: decode, watermark, encode.",
    ],
    [
        "towebp_connections",
        "gauge",
        "Connections of clients, idle ones included.",
    ],
    [
        "towebp_requests_waiting",
        "gauge",
        "Whole requests that wait for a thread.",
    ],
    [
        "towebp_requests_working",
        "gauge",
        "Requests that threads have, conversions included that wait for memory and a worker.",
    ],
    [
        "towebp_buffer_bytes",
        "gauge",
        "Bytes that requests and answers on their way take, of --buffer.",
    ],
    [
        "towebp_memory_budget_bytes",
        "gauge",
        "Bytes of memory that conversions may take together.",
    ],
    [
        "towebp_memory_reserved_bytes",
        "gauge",
        "Bytes of memory that those take that run now, as estimated.",
    ],
    [
        "towebp_memory_waiting",
        "gauge",
        "Conversions that wait for memory and a worker.",
    ],
    [
        "towebp_conversions_running",
        "gauge",
        "Conversions that have memory and a worker.",
    ],
    [
        "towebp_watermark_fetches_running",
        "gauge",
        "Watermark pictures that are being fetched.",
    ],
    [
        "towebp_watermark_fetches_waiting",
        "gauge",
        "Watermark pictures that wait to be fetched.",
    ],
    [
        "process_resident_memory_bytes",
        "gauge",
        "Bytes of memory, as Linux counts them.",
    ],
];

/// Upper ends of the histogram's buckets, in seconds: from a thumbnail's decoding to the default time limit.
const BUCKETS: [f64; 10] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 50.0];

/// A scrape is sent in one go, and from near by; who takes longer keeps others waiting.
const TIME_TO_ASK: Duration = Duration::from_secs(2);

/// No scraper sends more headers.
const LONGEST_HEAD: usize = 16 << 10;

/// Who is asked what is going on now.
#[derive(Clone)]
pub struct Present {
    /// Of the conversions.
    pub memory: MemoryBudget,
    /// At the front door.
    pub load_gauge: LoadGauge,
    /// Of watermarks.
    pub fetcher: Fetcher,
}

/// Counts of what has been done since the start. A clone counts on together.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    requests: BTreeMap<u16, u64>,
    bytes_in: u64,
    bytes_out: u64,
    conversions: BTreeMap<&'static str, u64>,
    fetches: BTreeMap<&'static str, u64>,
    stages: [Histogram; 3],
}

#[derive(Debug, Default)]
struct Histogram {
    /// Those within the bucket of this number and no earlier one; the last holds those above all ends.
    counts: [u64; BUCKETS.len() + 1],
    sum: f64,
}

impl Metrics {
    /// A request was answered.
    pub fn answered(&self, status: u16, bytes_in: u64, bytes_out: u64) {
        self.count(|counts| {
            *counts.requests.entry(status).or_default() += 1;
            counts.bytes_in += bytes_in;
            counts.bytes_out += bytes_out;
        });
    }

    /// More bytes of an answer were sent.
    pub fn sent(&self, bytes: u64) {
        self.count(|counts| counts.bytes_out += bytes);
    }

    /// A picture of this format was converted.
    pub fn converted(&self, format: &'static str, timing: Timing) {
        let stages = [timing.decode, timing.watermark, timing.encode];
        self.count(|counts| {
            *counts.conversions.entry(format).or_default() += 1;
            for (histogram, time) in counts.stages.iter_mut().zip(stages) {
                histogram.add(time.as_secs_f64());
            }
        });
    }

    /// A watermark's picture was asked for.
    pub fn fetched(&self, outcome: &Result<Fetched, FetchError>) {
        let source = match outcome.as_ref().map(|fetched| fetched.source) {
            Ok(Source::Host) => "host",
            Ok(Source::Shared) => "shared",
            Ok(Source::Cache) => "cache",
            Err(_) => "none",
        };
        self.count(|counts| *counts.fetches.entry(source).or_default() += 1);
    }

    /// Begins to answer `GET /metrics` at this address, and gives the one that it really got.
    ///
    /// # Errors
    /// A sentence for the operator: the address cannot be had.
    pub fn serve(&self, address: SocketAddr, present: Present) -> Result<SocketAddr, String> {
        let cannot = |error| format!("--metrics {address}: cannot listen there: {error}");
        let listener = TcpListener::bind(address).map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let metrics = self.clone();
        thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                loop {
                    let answered = listener
                        .accept()
                        .and_then(|(stream, _)| metrics.answer(stream, &present));
                    if answered.is_err() {
                        // When descriptors run out, accept fails at once, again and again.
                        thread::sleep(Duration::from_millis(50));
                    }
                }
            })
            .map_err(cannot)?;
        Ok(bound)
    }

    fn answer(&self, mut stream: TcpStream, present: &Present) -> io::Result<()> {
        let target = read_target(&mut stream)?;
        let (status, text) = match target.as_str() {
            "GET /metrics" => ("200 OK", self.to_text(present)),
            _ => ("404 Not Found", "Metrics are at GET /metrics.\n".to_owned()),
        };
        let length = text.len();
        stream.set_write_timeout(Some(TIME_TO_ASK))?;
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{text}"
        )
    }

    fn to_text(&self, present: &Present) -> String {
        let mut text = String::new();
        self.count(|counts| counts.write(&mut text))
            .and_then(|()| present.write(&mut text))
            .expect("a String takes everything");
        text
    }

    fn count<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        // Counts are numbers: at most one is missing, whoever panicked.
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

impl Present {
    fn write(&self, text: &mut String) -> std::fmt::Result {
        let (load, usage) = (self.load_gauge.load(), self.memory.usage());
        write_one(text, "towebp_connections", load.connections as u64)?;
        write_one(text, "towebp_requests_waiting", load.waiting as u64)?;
        write_one(text, "towebp_requests_working", load.working as u64)?;
        write_one(text, "towebp_buffer_bytes", load.held as u64)?;
        write_one(text, "towebp_memory_budget_bytes", usage.total)?;
        write_one(text, "towebp_memory_reserved_bytes", usage.reserved)?;
        write_one(text, "towebp_memory_waiting", usage.waiting as u64)?;
        write_one(text, "towebp_conversions_running", usage.running as u64)?;
        let (fetching, waiting) = self.fetcher.load();
        write_one(text, "towebp_watermark_fetches_running", fetching as u64)?;
        write_one(text, "towebp_watermark_fetches_waiting", waiting as u64)?;
        match resident_bytes() {
            Some(bytes) => write_one(text, "process_resident_memory_bytes", bytes),
            None => Ok(()),
        }
    }
}

/// What stands before the values of a family.
fn begin(text: &mut String, name: &str) -> std::fmt::Result {
    let [_, kind, help] = FAMILIES
        .iter()
        .find(|family| family[0] == name)
        .expect("all families are in the table");
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

fn write_one(text: &mut String, name: &str, value: u64) -> std::fmt::Result {
    begin(text, name)?;
    writeln!(text, "{name} {value}")
}

/// One value for each value of a label.
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

/// Method and path of the request.
fn read_target(stream: &mut TcpStream) -> io::Result<String> {
    let deadline = Instant::now() + TIME_TO_ASK;
    let (mut head, mut bytes) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        // A time of zero would be none.
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let count = stream.read(&mut bytes)?;
        if count == 0 || left.is_zero() || head.len() > LONGEST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&bytes[..count]);
    }
    let line = String::from_utf8_lossy(&head);
    let mut words = line.split([' ', '?', '\r']);
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    Ok(format!("{method} {path}"))
}

/// `VmRSS` of `/proc/self/status` (proc(5)), which is in KiB.
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

    #[test]
    fn buckets_hold_all_that_is_below_their_end() {
        let metrics = Metrics::default();
        let timing = |milliseconds| Timing {
            decode: Duration::from_millis(milliseconds),
            ..Timing::default()
        };
        for milliseconds in [1, 2, 100_000] {
            metrics.converted("png", timing(milliseconds));
        }
        let text = metrics.to_text(&Present {
            memory: MemoryBudget::new(1, 1),
            load_gauge: LoadGauge::default(),
            fetcher: Fetcher::new(&fetch::Settings::default()).expect("no file is read"),
        });
        for line in [
            "towebp_stage_seconds_bucket{stage=\"decode\",le=\"0.001\"} 1",
            "towebp_stage_seconds_bucket{stage=\"decode\",le=\"0.003\"} 2",
            "towebp_stage_seconds_bucket{stage=\"decode\",le=\"50\"} 2",
            "towebp_stage_seconds_bucket{stage=\"decode\",le=\"+Inf\"} 3",
            "towebp_stage_seconds_count{stage=\"decode\"} 3",
            "towebp_conversions_total{format=\"png\"} 3",
            "towebp_memory_budget_bytes 1",
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
