//! `--memory`: one number for the whole process, and the parts that it is divided into.

use super::given::{Config, Given};
use crate::store;

/// Bytes for the program itself, its tables of connections and clients, and the free memory that
/// the allocator keeps.
const PROGRAM: u64 = 24 << 20;

/// Bytes for each worker: its stack, its buffers, and fragments that its allocations leave behind.
const WORKER: u64 = 6 << 20;

/// The least number of bytes for conversions: with less, not even a photograph of four megapixels
/// can be converted.
const MIN_FOR_CONVERSIONS: u64 = 32 << 20;

/// The largest default of `--buffer`, in bytes: eight of the largest bodies.
const MAX_DEFAULT_BUFFER: u64 = 256 << 20;

impl Config {
    /// Sets `--memory` and `--buffer` to the given bytes, or to a default. `available` is the
    /// default of `--memory`, unless that is too little to convert anything.
    #[must_use]
    pub fn with_memory(
        mut self,
        memory: Option<u64>,
        buffer: Option<u64>,
        available: u64,
    ) -> Config {
        let least_buffer = self.least_buffer();
        let others = self.set_aside() + MIN_FOR_CONVERSIONS;
        let least = others.saturating_add(buffer.unwrap_or(least_buffer));
        self.memory = memory.unwrap_or(available.max(least));
        // Only an eighth, since a picture takes several times as much memory as its file.
        let buffer = buffer.unwrap_or_else(|| {
            let eighth = (self.memory / 8).min(MAX_DEFAULT_BUFFER);
            eighth
                .min(self.memory.saturating_sub(others))
                .max(least_buffer)
        });
        self.front.buffer = usize::try_from(buffer).unwrap_or(usize::MAX);
        self
    }

    /// The bytes that all conversions together may use.
    pub fn memory_for_conversions(&self) -> u64 {
        let others = self.set_aside().saturating_add(self.front.buffer as u64);
        self.memory.saturating_sub(others)
    }

    /// The bytes that a worker takes by itself, beside the picture that it converts. For
    /// `--threads` and one more they are set aside.
    pub fn memory_of_worker(&self) -> u64 {
        WORKER
    }

    /// The part of [`Config::memory_for_conversions`] that large pictures leave to small ones.
    pub fn memory_for_small(&self) -> u64 {
        /// A small picture takes 1 MiB as most JPEGs, 5 MiB with transparency.
        const SMALL: u64 = 5 << 20;
        (self.http.threads.get() as u64 * SMALL).min(self.memory_for_conversions() / 16)
    }

    /// The least `--buffer` in bytes: one of the largest bodies, and smaller requests beside it.
    pub(super) fn least_buffer(&self) -> u64 {
        self.http.max_body + (1 << 20)
    }

    /// The bytes that are neither for conversions nor for `--buffer`.
    fn set_aside(&self) -> u64 {
        // Further workers are counted with their pictures.
        let workers = (1 + self.http.threads.get() as u64) * WORKER;
        let watermarks = self.fetch.cache_bytes + self.fetch.downloads_bytes();
        PROGRAM + store::MEMORY + watermarks as u64 + workers
    }
}

impl Given {
    /// Checks that the parts of `--memory` suffice.
    pub(super) fn check_memory(&self, config: &Config) -> Result<(), String> {
        let (buffer, least) = (config.front.buffer as u64, config.least_buffer());
        if buffer < least {
            let name = self.name("buffer");
            return Err(format!(
                "{name} {buffer}: at least {least} are needed: for a body of --max-body and 1 MiB"
            ));
        }
        if config.memory_for_conversions() >= MIN_FOR_CONVERSIONS {
            return Ok(());
        }
        let aside = config.set_aside();
        let least = (aside + MIN_FOR_CONVERSIONS).saturating_add(buffer);
        Err(format!(
            "{} {}: at least {least} are needed: {aside} for the program, the accounts, watermarks with --watermark-cache, \
             and --threads {}, {buffer} for --buffer, which holds a body of --max-body, and {MIN_FOR_CONVERSIONS} for \
             conversions",
            self.name("memory"),
            config.memory,
            config.http.threads
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::given;
    use super::*;

    fn two_threads(flags: &[(&str, &str)], available: u64) -> Result<Config, String> {
        given(&[&[("threads", "2")], flags].concat())?.config(available)
    }

    #[test]
    fn a_small_machine_converts_photographs_of_phones() {
        // Two thirds of what Linux reports on a machine of 512 MB.
        let small = two_threads(&[], 320 << 20).expect("it is enough");
        let photograph = 12_000_000 * 8;
        assert!(
            small.memory_for_conversions() > photograph,
            "{}",
            small.memory_for_conversions()
        );
        assert!(small.front.buffer < 64 << 20, "{}", small.front.buffer);
    }

    #[test]
    fn on_a_tiny_machine_the_default_is_the_least_that_works() {
        let tiny = two_threads(&[], 16 << 20).expect("it works");
        assert_eq!(tiny.memory_for_conversions(), MIN_FOR_CONVERSIONS);
        assert_eq!(tiny.front.buffer, 33 << 20);
        let least = tiny.memory;
        two_threads(&[("memory", &least.to_string())], 0)
            .expect("what is enough by default is enough when given");
        let rejected = two_threads(&[("memory", &(least - 1).to_string())], u64::MAX);
        let error = rejected.expect_err("too little");
        assert!(error.starts_with("--memory"), "{error}");
        for part in ["--buffer", "--threads 2", "--max-body", &least.to_string()] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_large_machine_gives_the_buffer_no_more_than_it_needs() {
        let large = two_threads(&[], 64 << 30).expect("it is enough");
        assert_eq!(large.front.buffer as u64, MAX_DEFAULT_BUFFER);
        let given = two_threads(&[("memory", "1GiB"), ("buffer", "512MiB")], 0);
        let given = given.expect("it is enough");
        assert_eq!((given.memory, given.front.buffer), (1 << 30, 1 << 29));
        let error = two_threads(&[("memory", "512MiB"), ("buffer", "512MiB")], 0)
            .expect_err("the buffer takes all");
        assert!(error.starts_with("--memory 536870912"), "{error}");
    }
}
