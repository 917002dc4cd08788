//! The settings of a server: those of each module, put together and checked.
//!
//! A value that is invalid by itself is rejected by its parser below, and argh reports the flag. A
//! value that is out of bounds, or does not fit another one, is rejected by [`Config::check`].

mod memory;

use crate::process::logging::LogFormat;
use crate::{fetch, front, http, image, store};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

/// Where a server listens unless `--listen` says otherwise: this machine alone.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Everything that a server needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// `--listen`: the public sockets.
    pub listen: Vec<Listen>,
    /// `--max-connections`, `--max-head`, `--min-rate`, `--buffer`, `--trusted-proxy`, and the
    /// other limits of connections.
    pub front: front::Settings,
    /// `--memory`: the bytes that the process stays below. [`Config::with_memory`] sets it.
    pub memory: u64,
    /// `--metrics`: the address of the second listener, if there is to be one.
    pub metrics: Option<SocketAddr>,
    /// `--data`, `--secret-file`.
    pub store: store::Settings,
    /// `--threads`, `--max-body`, `--conversion-timeout`, `--public-url`, `--signup`,
    /// `--signin-limit`, `--signup-limit`, `--rate-limit`, `--monthly-quota`.
    pub http: http::Settings,
    /// `--max-pixels`, `--max-frames`, `--max-animation-pixels`.
    pub limits: image::Limits,
    /// `--allow-private-watermark-hosts`, `--ca-file`, and those that begin with `--watermark-`.
    pub fetch: fetch::Settings,
}

/// One `--listen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A new socket at this address.
    At(SocketAddr),
    /// The socket that the process has as standard input.
    StandardInput,
}

impl Config {
    /// Checks bounds, and values that depend on each other.
    ///
    /// # Errors
    /// A sentence for the operator that names the flag.
    pub fn check(self) -> Result<Config, String> {
        // A smaller limit would reject nearly every picture.
        within(
            "--max-body",
            self.http.max_body,
            1 << 10,
            http::LONGEST_BODY,
        )?;
        within(
            "--max-pixels",
            self.limits.max_pixels,
            1,
            u64::from(self.limits.max_side).pow(2),
        )?;
        // A GIF has at least one frame, and a conversion never gets to a billion of them.
        within(
            "--max-frames",
            u64::from(self.limits.max_frames),
            1,
            1_000_000_000,
        )?;
        within(
            "--max-animation-pixels",
            self.limits.max_animation_pixels,
            1,
            1 << 50,
        )?;
        // Each worker has a stack and a picture in memory.
        within("--threads", self.http.threads.get() as u64, 1, 1024)?;
        // No client waits for a response longer than an hour.
        within(
            "--conversion-timeout",
            self.http.conversion_timeout.as_secs(),
            1,
            3600,
        )?;
        // The client waits while the watermark is fetched.
        within("--watermark-timeout", self.fetch.timeout.as_secs(), 1, 300)?;
        // Each fetch has a thread, and each caller in the queue is a request in memory.
        let fetch = &self.fetch;
        for (flag, number, least, most) in [
            ("--watermark-fetches", fetch.fetches, 1, 1024),
            (
                "--watermark-fetches-per-account",
                fetch.fetches_per_account,
                1,
                1024,
            ),
            ("--watermark-queue", fetch.queue, 0, 1 << 18),
            (
                "--watermark-queue-per-account",
                fetch.queue_per_account,
                0,
                1 << 18,
            ),
        ] {
            within(flag, number as u64, least, most)?;
        }
        // A larger cache is the task of a proxy.
        within(
            "--watermark-cache",
            self.fetch.cache_bytes as u64,
            0,
            1 << 30,
        )?;
        self.check_front()?;
        self.check_memory()?;
        if !self.front.trusted_proxies.is_empty() && self.http.public_url.is_none() {
            log::warn!(
                "--trusted-proxy without --public-url: if the proxy speaks TLS, the cookies of the dashboard are not \
                 held to it; say --public-url https://..."
            );
        }
        if let Some(file) = &self.fetch.ca_file
            && !file.is_file()
        {
            return Err(format!(
                "--ca-file {}: there is no such file",
                file.display()
            ));
        }
        if self.store.data.is_file() {
            return Err(format!(
                "--data {}: is a file; it must be a folder",
                self.store.data.display()
            ));
        }
        Ok(self)
    }

    fn check_front(&self) -> Result<(), String> {
        let front = &self.front;
        // Four descriptors for each of these are more than systems give a process.
        within("--max-connections", front.connections as u64, 1, 1 << 18)?;
        let per_address = front.connections_per_address as u64;
        within("--max-connections-per-address", per_address, 1, 1 << 18)?;
        // With a smaller limit browsers are rejected; with a larger one heads take memory before
        // the budget can reject them.
        within("--max-head", front.head_bytes as u64, 1 << 10, 1 << 20)?;
        within("--max-headers", front.headers as u64, 8, 1024)?;
        let times = [
            ("--head-timeout", front.head_time),
            ("--body-timeout", front.body_time),
            ("--answer-timeout", front.answer_time),
            ("--idle-timeout", front.idle_time),
            ("--queue-timeout", front.queue_time),
            ("--linger-timeout", front.linger_time),
            ("--stop-timeout", front.stop_time),
        ];
        for (flag, time) in times {
            within(flag, time.as_secs(), 1, 24 * 60 * 60)?;
        }
        within("--min-rate", front.rate, 0, 1 << 30)?;
        within(
            "--buffer",
            front.buffer as u64,
            self.least_buffer(),
            1 << 40,
        )
    }
}

/// Parses `stdin`, or an [`address`].
///
/// # Errors
/// A sentence that says what is allowed.
pub fn listen(text: &str) -> Result<Listen, String> {
    match text {
        "stdin" => Ok(Listen::StandardInput),
        _ => address(text).map(Listen::At),
    }
}

/// Parses `127.0.0.1:8080` or `[::1]:8080`.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text.replacen("localhost:", "127.0.0.1:", 1);
    text.parse()
        .map_err(|_| "expected ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:8080".to_owned())
}

/// Parses a number of bytes: `33554432`, `32MiB`, `32M`, `500kB`. K, M and G mean powers of 1024,
/// alone or with `iB`; with `B` they mean powers of 1000.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn byte_count(text: &str) -> Result<u64, String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor: Option<u64> = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        "kb" => Some(1000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        _ => None,
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(factor))
        .ok_or_else(|| "expected a number of bytes, such as 33554432 or 32MiB".to_owned())
}

/// Parses whole seconds.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .map(Duration::from_secs)
        .map_err(|_| "expected a whole number of seconds, such as 10".to_owned())
}

/// Parses a number of days, at most a hundred years.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn days(text: &str) -> Result<NonZeroU32, String> {
    let days = text
        .parse()
        .ok()
        .filter(|days: &NonZeroU32| days.get() <= 36_500);
    days.ok_or_else(|| "expected a whole number of days, 1 to 36500".to_owned())
}

/// Parses a number of threads.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| "expected a whole number, 1 or more".to_owned())
}

/// Parses `https://webp.example.org`, and removes a slash at the end.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn public_url(text: &str) -> Result<String, String> {
    let url = text.trim_end_matches('/');
    let host = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    match host {
        Some(host) if !host.is_empty() && host.bytes().all(is_allowed) => {
            Ok(url.to_ascii_lowercase())
        }
        _ => Err(
            "expected scheme and host without a path, such as https://webp.example.org".to_owned(),
        ),
    }
}

/// Parses `open`, `closed` or `invite`: who may create an account.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn signup(text: &str) -> Result<http::Signup, String> {
    match text {
        "open" => Ok(http::Signup::Open),
        "closed" => Ok(http::Signup::Closed),
        "invite" => Ok(http::Signup::Invite),
        _ => Err("expected open, closed or invite".to_owned()),
    }
}

/// Parses `text` or `json`.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("expected text or json".to_owned()),
    }
}

/// Checks that `given` lies between `least` and `most`.
///
/// # Errors
/// A sentence that says what is allowed.
fn within(flag: &str, given: u64, least: u64, most: u64) -> Result<(), String> {
    if (least..=most).contains(&given) {
        return Ok(());
    }
    Err(format!("{flag} {given}: allowed are {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    pub(super) fn config() -> Config {
        let config = Config {
            memory: 0,
            listen: vec![listen("127.0.0.1:8080").unwrap()],
            metrics: None,
            front: front::Settings::default(),
            store: store::Settings {
                data: PathBuf::from("no-such-folder"),
                secret_file: None,
                allow_shared_data: false,
                history_keep: None,
                postgres: None,
            },
            http: http::Settings::default(),
            limits: image::Limits::default(),
            fetch: fetch::Settings::default(),
        };
        config.with_memory(None, None, 4 << 30)
    }

    #[test]
    fn the_defaults_pass() {
        config().check().expect("the defaults are sensible");
    }

    #[test]
    fn invalid_values_are_rejected_with_the_name_of_the_flag() {
        type Spoil = fn(&mut Config);
        let cases: [(&str, Spoil); 20] = [
            ("--max-body", |c| c.http.max_body = 0),
            ("--max-body", |c| c.http.max_body = 1 << 40),
            ("--max-pixels", |c| c.limits.max_pixels = 0),
            ("--max-frames", |c| c.limits.max_frames = 0),
            ("--max-animation-pixels", |c| {
                c.limits.max_animation_pixels = 0;
            }),
            ("--conversion-timeout", |c| {
                c.http.conversion_timeout = Duration::from_secs(3601);
            }),
            ("--watermark-timeout", |c| c.fetch.timeout = Duration::ZERO),
            ("--watermark-fetches", |c| c.fetch.fetches = 0),
            ("--watermark-fetches-per-account", |c| {
                c.fetch.fetches_per_account = 1025;
            }),
            ("--watermark-queue", |c| c.fetch.queue = usize::MAX),
            ("--watermark-queue-per-account", |c| {
                c.fetch.queue_per_account = usize::MAX;
            }),
            ("--watermark-cache", |c| {
                c.fetch.cache_bytes = (1 << 30) + 1;
            }),
            ("--ca-file", |c| {
                c.fetch.ca_file = Some("no-such-file.pem".into());
            }),
            ("--threads", |c| c.http.threads = NonZeroUsize::MAX),
            ("--max-connections", |c| c.front.connections = 0),
            ("--max-head", |c| c.front.head_bytes = 1000),
            ("--max-headers", |c| c.front.headers = 0),
            ("--idle-timeout", |c| c.front.idle_time = Duration::ZERO),
            ("--min-rate", |c| c.front.rate = u64::MAX),
            ("--buffer", |c| c.front.buffer = 32 << 20),
        ];
        for (flag, spoil) in cases {
            let mut config = config();
            spoil(&mut config);
            let error = config.check().expect_err(flag);
            assert!(error.starts_with(flag), "{error}");
        }
    }

    #[test]
    fn byte_counts_have_units() {
        assert_eq!(byte_count("0"), Ok(0));
        assert_eq!(byte_count("33554432"), byte_count("32MiB"));
        assert_eq!(byte_count("32M"), Ok(32 << 20));
        assert_eq!(byte_count("500kB"), Ok(500_000));
        for wrong in ["", "MiB", "-1", "1.5M", "1X", "99999999999G"] {
            byte_count(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn public_urls_have_no_path() {
        assert_eq!(
            public_url("https://WebP.example.org/"),
            Ok("https://webp.example.org".to_owned())
        );
        assert_eq!(
            public_url("http://[::1]:8080"),
            Ok("http://[::1]:8080".to_owned())
        );
        for wrong in [
            "",
            "example.org",
            "https://",
            "https://example.org/a",
            "ftp://example.org",
            "https://a'b",
        ] {
            public_url(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn standard_input_is_accepted_as_a_listener() {
        assert_eq!(listen("stdin"), Ok(Listen::StandardInput));
        assert_eq!(listen("[::1]:80"), address("[::1]:80").map(Listen::At));
        listen("stdout").expect_err("it is no listener");
    }

    #[test]
    fn addresses_name_a_port() {
        assert_eq!(address("localhost:80"), address("127.0.0.1:80"));
        for wrong in ["", "8080", "127.0.0.1", "example.org:80"] {
            address(wrong).expect_err(wrong);
        }
    }
}
