//! `--memory`: one number for the whole process, and the parts that it is divided into.

use super::Config;
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

    pub(super) fn check_memory(&self) -> Result<(), String> {
        if self.memory_for_conversions() >= MIN_FOR_CONVERSIONS {
            return Ok(());
        }
        let (aside, buffer) = (self.set_aside(), self.front.buffer as u64);
        let least = (aside + MIN_FOR_CONVERSIONS).saturating_add(buffer);
        Err(format!(
            "--memory {}: at least {least} are needed: {aside} for the program, the accounts, watermarks with --watermark-cache, and --threads {}, {buffer} \
             for --buffer, which holds a body of --max-body, and {MIN_FOR_CONVERSIONS} for conversions",
            self.memory, self.http.threads
        ))
    }

    /// The bytes that are neither for conversions nor for `--buffer`.
    fn set_aside(&self) -> u64 {
        // One more worker starts while one account occupies all of them.
        let workers = (1 + self.http.threads.get() as u64) * WORKER;
        let watermarks = self.fetch.cache_bytes + self.fetch.downloads_bytes();
        PROGRAM + store::MEMORY + watermarks as u64 + workers
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::*;
    use std::num::NonZeroUsize;

    fn two_threads() -> Config {
        let mut config = config();
        config.http.threads = NonZeroUsize::new(2).expect("not zero");
        config
    }

    #[test]
    fn a_small_machine_converts_photographs_of_phones() {
        // Two thirds of what Linux reports on a machine of 512 MB.
        let small = two_threads().with_memory(None, None, 320 << 20);
        let photograph = 12_000_000 * 8;
        assert!(
            small.memory_for_conversions() > photograph,
            "{}",
            small.memory_for_conversions()
        );
        assert!(small.front.buffer < 64 << 20, "{}", small.front.buffer);
        small.check().expect("it is enough");
    }

    #[test]
    fn on_a_tiny_machine_the_default_is_the_least_that_works() {
        let tiny = two_threads().with_memory(None, None, 16 << 20);
        assert_eq!(tiny.memory_for_conversions(), MIN_FOR_CONVERSIONS);
        assert_eq!(tiny.front.buffer, 33 << 20);
        let least = tiny.memory;
        tiny.check().expect("it works");

        two_threads()
            .with_memory(Some(least), None, 0)
            .check()
            .expect("what is enough by default is enough when given");
        let rejected = two_threads()
            .with_memory(Some(least - 1), None, u64::MAX)
            .check();
        let error = rejected.expect_err("too little");
        assert!(error.starts_with("--memory"), "{error}");
        for part in ["--buffer", "--threads 2", "--max-body", &least.to_string()] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_large_machine_gives_the_buffer_no_more_than_it_needs() {
        let large = two_threads().with_memory(None, None, 64 << 30);
        assert_eq!(large.front.buffer as u64, MAX_DEFAULT_BUFFER);
        let given = two_threads().with_memory(Some(1 << 30), Some(1 << 29), 0);
        assert_eq!((given.memory, given.front.buffer), (1 << 30, 1 << 29));
        let error = two_threads()
            .with_memory(Some(1 << 29), Some(1 << 29), 0)
            .check()
            .expect_err("the buffer takes all");
        assert!(error.starts_with("--memory 536870912"), "{error}");
    }
}
