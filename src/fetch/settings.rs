//! Limits of fetches, and their defaults.

use std::path::PathBuf;
use std::time::Duration;

/// The limits of fetches: hosts, bytes, times and numbers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether private, local and otherwise special addresses may be reached, and ports other than
    /// 80, 443, 8080 and 8443. For intranets and tests.
    pub allow_private: bool,
    /// Most bytes of a body.
    pub max_bytes: u64,
    /// Longest time for a fetch, its redirects and its time in the queue included.
    pub timeout: Duration,
    /// Most redirects that are followed.
    pub max_redirects: u32,
    /// A PEM file with root certificates to trust besides Mozilla's.
    pub ca_file: Option<PathBuf>,
    /// Most bytes of pictures in the cache; 0 turns it off.
    pub cache_bytes: usize,
    /// Most fetches at a time; each has a thread.
    pub fetches: usize,
    /// Most fetches at a time for one account.
    pub fetches_per_account: usize,
    /// Most callers in the queue.
    pub queue: usize,
    /// Most callers of one account in the queue.
    pub queue_per_account: usize,
}

impl Settings {
    /// Most bytes that unfinished downloads hold together: four of the largest pictures.
    pub fn downloads_bytes(&self) -> usize {
        usize::try_from(self.max_bytes.saturating_mul(4)).unwrap_or(usize::MAX)
    }
}

impl Default for Settings {
    /// - 8 MiB hold any logo, even a photograph; 10 s and 3 redirects are what a picture host needs
    ///   on a bad day.
    /// - A cache of 16 MiB holds some hundred logos, or two of the largest pictures.
    /// - 16 fetches at a time are 160 a second from a host that answers in 100 ms. With 4 for each
    ///   account it takes four accounts, not one, to occupy all of them with slow hosts.
    /// - A queue of 64 is what 16 fetches get done within the timeout if each takes 2 s. With 16
    ///   for each account, three other accounts find places left.
    fn default() -> Settings {
        Settings {
            allow_private: false,
            max_bytes: 8 << 20,
            timeout: Duration::from_secs(10),
            max_redirects: 3,
            ca_file: None,
            cache_bytes: 16 << 20,
            fetches: 16,
            fetches_per_account: 4,
            queue: 64,
            queue_per_account: 16,
        }
    }
}
