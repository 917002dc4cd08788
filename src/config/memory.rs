//! `--memory`: one number for the whole process, and what it is divided into.

use super::Config;
use crate::store;

/// The program itself, what it keeps of connections and of whom it has seen, and what the allocator
/// keeps for later.
const PROGRAM: u64 = 24 << 20;

/// A worker's stack and buffers, and pieces that its allocations leave behind.
const WORKER: u64 = 6 << 20;

/// Below, not even four megapixels of a photograph can be converted.
const LEAST_FOR_CONVERSIONS: u64 = 32 << 20;

/// Of `--buffer`, by default: eight of the largest bodies.
const MOST_BUFFER: u64 = 256 << 20;

impl Config {
    /// Sets `--memory` and `--buffer` to what was given, and else to a default. `share` is what the
    /// machine has for this process: less only if nothing could be converted in it.
    #[must_use]
    pub fn with_memory(mut self, memory: Option<u64>, buffer: Option<u64>, share: u64) -> Config {
        let least_buffer = self.least_buffer();
        let others = self.set_aside() + LEAST_FOR_CONVERSIONS;
        let least = others.saturating_add(buffer.unwrap_or(least_buffer));
        self.memory = memory.unwrap_or(share.max(least));
        // An eighth, since a picture takes several times the bytes of its file.
        let buffer = buffer.unwrap_or_else(|| {
            let eighth = (self.memory / 8).min(MOST_BUFFER);
            eighth
                .min(self.memory.saturating_sub(others))
                .max(least_buffer)
        });
        self.front.buffer = usize::try_from(buffer).unwrap_or(usize::MAX);
        self
    }

    /// Bytes that conversions may take together.
    pub fn memory_for_conversions(&self) -> u64 {
        let others = self.set_aside().saturating_add(self.front.buffer as u64);
        self.memory.saturating_sub(others)
    }

    /// What requests and answers on their way need at least: one of the largest bodies, and others
    /// beside it.
    pub(super) fn least_buffer(&self) -> u64 {
        self.http.max_body + (1 << 20)
    }

    pub(super) fn check_memory(&self) -> Result<(), String> {
        if self.memory_for_conversions() >= LEAST_FOR_CONVERSIONS {
            return Ok(());
        }
        let (aside, buffer) = (self.set_aside(), self.front.buffer as u64);
        let least = (aside + LEAST_FOR_CONVERSIONS).saturating_add(buffer);
        Err(format!(
            "--memory {}: at least {least} are needed: {aside} for the program, the accounts, watermarks with --watermark-cache, and --threads {}, {buffer} \
             for --buffer, which holds a body of --max-body, and {LEAST_FOR_CONVERSIONS} for conversions",
            self.memory, self.http.threads
        ))
    }

    /// What is neither for conversions nor for the front door.
    fn set_aside(&self) -> u64 {
        // One more while one account has all.
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
    fn a_small_machine_converts_what_phones_take() {
        // Two thirds of what Linux says of 512 MB.
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
    fn a_default_that_the_machine_is_too_small_for_is_the_least_that_works() {
        let tiny = two_threads().with_memory(None, None, 16 << 20);
        assert_eq!(tiny.memory_for_conversions(), LEAST_FOR_CONVERSIONS);
        assert_eq!(tiny.front.buffer, 33 << 20);
        let least = tiny.memory;
        tiny.check().expect("it works");

        two_threads()
            .with_memory(Some(least), None, 0)
            .check()
            .expect("what is enough by default is enough when given");
        let refused = two_threads()
            .with_memory(Some(least - 1), None, u64::MAX)
            .check();
        let error = refused.expect_err("too little");
        assert!(error.starts_with("--memory"), "{error}");
        for part in ["--buffer", "--threads 2", "--max-body", &least.to_string()] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_large_machine_gives_the_door_no_more_than_it_needs() {
        let large = two_threads().with_memory(None, None, 64 << 30);
        assert_eq!(large.front.buffer as u64, MOST_BUFFER);
        let given = two_threads().with_memory(Some(1 << 30), Some(1 << 29), 0);
        assert_eq!((given.memory, given.front.buffer), (1 << 30, 1 << 29));
        let error = two_threads()
            .with_memory(Some(1 << 29), Some(1 << 29), 0)
            .check()
            .expect_err("the buffer takes all");
        assert!(error.starts_with("--memory 536870912"), "{error}");
    }
}
