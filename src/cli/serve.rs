//! `towebp serve`: runs the service.

use super::demo;
use super::failure::Failure;
use super::shared::{cores, default_data, fonts};
use super::store_flags::{StoreFlags, on_or_off};
use crate::admin;
use crate::admission::{self, MemoryBudget, Rate};
use crate::config::{self, Config, Listen};
use crate::conversion::CpuBudget;
use crate::fetch::{self, Fetcher};
use crate::front::{self, Listeners};
use crate::http::{self, AppState, Gauges, Limiters, Metrics, Readiness, Server};
use crate::image;
use crate::process::logging::LogFormat;
use crate::process::systemd::{self, Manager};
use crate::process::{memory_limit, signals};
use crate::store::{self, OpenError, Store};
use argh::{ArgsInfo, FromArgs};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Runs the HTTP service and the dashboard.
#[derive(FromArgs, ArgsInfo)]
#[argh(subcommand, name = "serve", help_triggers("-h", "--help"))]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct ServeCommand {
    /// address and port, may be given more than once; port 0 takes a free one (default
    /// 127.0.0.1:8080: this machine); stdin is the listening socket that systemd gives
    #[argh(option, arg_name = "address", from_str_fn(config::listen))]
    listen: Vec<Listen>,

    /// folder for accounts, usage and the secret (default towebp-data)
    #[argh(option, arg_name = "folder", default = "default_data()")]
    data: PathBuf,

    /// file with the secret that tokens are made from, to keep it apart from the data (default
    /// FOLDER/secret)
    #[argh(option, arg_name = "file")]
    secret_file: Option<PathBuf>,

    /// use a data folder or database that group or others may write: they can take over every
    /// account
    #[argh(switch)]
    allow_shared_data: bool,

    /// remove entries of histories after this many days, 1 to 36500; totals and the sums of days
    /// are kept (default: entries are kept, at some 100 bytes each)
    #[argh(option, arg_name = "days", from_str_fn(config::days))]
    history_keep: Option<NonZeroU32>,

    #[argh(
        option,
        arg_name = "url",
        description = "the database that several servers share, such as postgres://towebp@db1,db2/towebp \
                       (default: none, the data folder has all)"
    )]
    store: Option<String>,

    #[argh(
        option,
        arg_name = "file",
        description = "file with the password for --store (default: $TOWEBP_STORE_PASSWORD)"
    )]
    store_password_file: Option<PathBuf>,

    /// root certificates for --store, as PEM (default: Mozilla's)
    #[argh(option, arg_name = "file")]
    store_ca: Option<PathBuf>,

    /// TLS to --store: on, or off for this machine's own addresses and sockets (default on)
    #[argh(option, arg_name = "on|off", from_str_fn(on_or_off))]
    store_tls: Option<bool>,

    /// connections to --store (default 4: one writes, the others read)
    #[argh(option, arg_name = "number")]
    store_connections: Option<usize>,

    /// how long --store may take to answer (default 5: longer than a standby needs to stand
    /// in)
    #[argh(option, arg_name = "seconds", from_str_fn(config::seconds))]
    store_timeout: Option<Duration>,

    /// conversions at the same time, and the most cores for a conversion that is alone (default:
    /// one for each core)
    #[argh(option, arg_name = "number", from_str_fn(config::threads))]
    threads: Option<NonZeroUsize>,

    /// largest picture file, such as 32MiB (default 32MiB: more than cameras write as JPEG)
    #[argh(option, arg_name = "bytes", from_str_fn(config::byte_count))]
    max_body: Option<u64>,

    /// most pixels of a picture (default 100000000: above today's cameras, and up to 2 GB of
    /// memory)
    #[argh(option, arg_name = "number")]
    max_pixels: Option<u64>,

    /// most frames of a GIF or PNG that stays animated (default 5000: some minutes)
    #[argh(option, arg_name = "number")]
    max_frames: Option<u32>,

    /// most pixels of all frames of a GIF or PNG together (default 1000000000: about what a
    /// conversion has time for)
    #[argh(option, arg_name = "number")]
    max_animation_pixels: Option<u64>,

    /// longest time that a conversion may take (default 50: proxies wait for 60)
    #[argh(option, arg_name = "seconds", from_str_fn(config::seconds))]
    conversion_timeout: Option<Duration>,

    /// let watermark URLs reach private and local addresses
    #[argh(switch)]
    allow_private_watermark_hosts: bool,

    /// more root certificates for https watermark URLs, as PEM
    #[argh(option, arg_name = "file")]
    ca_file: Option<PathBuf>,

    /// time for fetching a watermark picture, its wait in the queue included (default 10: as long
    /// as a host needs on a bad day)
    #[argh(option, arg_name = "seconds", from_str_fn(config::seconds))]
    watermark_timeout: Option<Duration>,

    /// fetches of watermark pictures at a time (default 16: each is a thread)
    #[argh(option, arg_name = "number")]
    watermark_fetches: Option<usize>,

    /// fetches at a time for one account (default 4: three other accounts find some left)
    #[argh(option, arg_name = "number")]
    watermark_fetches_per_account: Option<usize>,

    /// watermark pictures that wait to be fetched; conversions that need more are answered 503
    /// (default 64: what 16 fetches get done within --watermark-timeout)
    #[argh(option, arg_name = "number")]
    watermark_queue: Option<usize>,

    /// watermark pictures of one account that wait to be fetched (default 16: a quarter)
    #[argh(option, arg_name = "number")]
    watermark_queue_per_account: Option<usize>,

    /// memory for watermark pictures that were fetched lately, 0 for none (default 16MiB: some
    /// hundred logos)
    #[argh(option, arg_name = "bytes", from_str_fn(config::byte_count))]
    watermark_cache: Option<u64>,

    /// font for text watermarks (TrueType, OpenType, the first of a collection), may be given more
    /// than once; used in this order, before the bundled ones
    #[argh(option, arg_name = "file")]
    font: Vec<PathBuf>,

    #[argh(
        option,
        arg_name = "url",
        from_str_fn(config::public_url),
        description = "where people reach the service, such as https://webp.example.org; with https, cookies are \
                       sent over https only"
    )]
    public_url: Option<String>,

    /// who may create an account: open, closed, or invite for people with a code of towebp account
    /// invite (default open)
    #[argh(
        option,
        arg_name = "open|closed|invite",
        default = "http::Signup::Open",
        from_str_fn(config::signup)
    )]
    signup: http::Signup,

    /// attempts to sign in from one address in 10 minutes, 0 for no limit (default 30: an office
    /// behind one address)
    #[argh(option, arg_name = "number")]
    signin_limit: Option<u32>,

    /// attempts to sign up from one address in an hour, 0 for no limit (default 10: as for signing
    /// in)
    #[argh(option, arg_name = "number")]
    signup_limit: Option<u32>,

    /// conversions of one account in a minute, 0 for no limit (default 0: on one's own server the
    /// cores are the limit); of several servers on one --store each allows its part
    #[argh(option, arg_name = "number", default = "0")]
    rate_limit: u32,

    /// conversions of one account in a calendar month (UTC), 0 for no limit (default 0)
    #[argh(option, arg_name = "number", default = "0")]
    monthly_quota: u64,

    /// convert pictures without a Content-Type, or of application/octet-stream, by what their bytes
    /// say (without it they are an error)
    #[argh(switch)]
    sniff: bool,

    /// an origin whose pages may call the API, as browsers send it, or * for all, with tokens in
    /// headers alone; may be given more than once (default none)
    #[argh(option, arg_name = "origin")]
    allow_origin: Vec<http::AllowedOrigin>,

    /// address or network of a proxy whose X-Forwarded-For is trusted, may be given more than once
    /// (default none)
    #[argh(option, arg_name = "network")]
    trusted_proxy: Vec<admission::Network>,

    /// connections at a time (default 4096: more clients than the cores can serve)
    #[argh(option, arg_name = "number")]
    max_connections: Option<usize>,

    /// connections of one address, or of one IPv6 /64 (default 256: an office behind one address)
    #[argh(option, arg_name = "number")]
    max_connections_per_address: Option<usize>,

    /// request line and headers together (default 16KiB: the watermark's text stands in the URL)
    #[argh(option, arg_name = "bytes", from_str_fn(config::byte_count))]
    max_head: Option<u64>,

    /// headers of a request (default 64: browsers send about 20)
    #[argh(option, arg_name = "number")]
    max_headers: Option<usize>,

    /// time for the headers (default 10: they are sent in one go)
    #[argh(option, arg_name = "seconds", from_str_fn(config::seconds))]
    head_timeout: Option<Duration>,

    /// time for a body (default 300: 32 MiB at 1 Mbit/s)
    #[argh(option, arg_name = "seconds", from_str_fn(config::seconds))]
    body_timeout: Option<Duration>,

    /// time for reading an answer (default 300, as for a body)
    #[argh(option, arg_name = "seconds", from_str_fn(config::seconds))]
    answer_timeout: Option<Duration>,

    /// time between two requests of a connection (default 75: clients drop theirs after 60)
    #[argh(option, arg_name = "seconds", from_str_fn(config::seconds))]
    idle_timeout: Option<Duration>,

    /// time that a request waits for a worker before it is rejected (default 30: clients rarely
    /// wait longer)
    #[argh(option, arg_name = "seconds", from_str_fn(config::seconds))]
    queue_timeout: Option<Duration>,

    /// time in which a rejected client may go on sending, so that it reads the answer (default 5)
    #[argh(option, arg_name = "seconds", from_str_fn(config::seconds))]
    linger_timeout: Option<Duration>,

    /// time that requests under way may take after SIGTERM or SIGINT (default 60: the longest
    /// conversion)
    #[argh(option, arg_name = "seconds", from_str_fn(config::seconds))]
    stop_timeout: Option<Duration>,

    /// bytes a second that a client must send or read, over every 10 seconds (default 4KiB: a bad
    /// mobile network)
    #[argh(option, arg_name = "bytes", from_str_fn(config::byte_count))]
    min_rate: Option<u64>,

    /// memory of the whole process, such as 512MiB: conversions wait for it, and one that needs
    /// more is rejected (default two thirds of what the container or the machine has)
    #[argh(option, arg_name = "bytes", from_str_fn(config::byte_count))]
    memory: Option<u64>,

    /// part of --memory for requests and answers on their way (default an eighth, up to 256MiB:
    /// eight of the largest bodies)
    #[argh(option, arg_name = "bytes", from_str_fn(config::byte_count))]
    buffer: Option<u64>,

    /// address and port for GET /metrics, in the format of Prometheus (default: none)
    #[argh(option, arg_name = "address", from_str_fn(config::address))]
    metrics: Option<SocketAddr>,

    /// format of the log on standard error: text or json, one line for each record (default text)
    #[argh(
        option,
        arg_name = "text|json",
        default = "LogFormat::Text",
        from_str_fn(config::log_format)
    )]
    pub log_format: LogFormat,

    /// make a demo account, convert a picture by HTTP, show the request, and go on serving
    #[argh(switch)]
    demo: bool,
}

/// Serves until a signal asks the process to end.
///
/// # Errors
/// A sentence for the operator.
pub fn run(command: ServeCommand) -> Result<(), Failure> {
    let with_demo = command.demo;
    let fonts = fonts(&command.font)?;
    let store_url = command.store.clone();
    let config = command.into_config().and_then(Config::check);
    let config = config.map_err(Failure::Usage)?;
    let data = config.store.data.clone();

    let signals = signals::catch()?;
    let manager = Manager::from_environment()?;
    let workers = config.http.threads.get();
    let bytes = config.memory_for_conversions();
    let memory = MemoryBudget::new(bytes, workers).keep_for_small(config.memory_for_small());
    let listeners = bind(&config.listen, config.front)?;
    let is_shared = config.store.postgres.is_some();
    let lock = is_shared.then(|| store::lock_folder(&config.store));
    let _lock = lock.transpose().map_err(explain)?;
    let store = Arc::new(Store::open(&config.store).map_err(explain)?);
    // A store that is shared is open to the command line, too.
    let admin = (!is_shared).then(|| admin::serve(Arc::clone(&store), &data));
    let _admin = admin.transpose()?;
    let fetcher = Fetcher::new(&config.fetch)?;
    let public_url = config.http.public_url.clone();
    let metrics = Metrics::default();
    let state = AppState {
        store: Arc::clone(&store),
        fetcher: fetcher.clone(),
        fonts,
        limits: config.limits,
        // Workers beyond the number of cores share cores, and give no picture more threads.
        cpu_budget: CpuBudget::new(config.http.threads.min(cores())),
        memory: memory.clone(),
        limiters: Limiters::new(&config.http),
        readiness: Readiness::default(),
        metrics: metrics.clone(),
        openapi: http::describe(&config.http),
        settings: config.http,
    };
    let server = Server::start(listeners, state, &data)?;
    let metrics = config
        .metrics
        .map(|address| {
            let gauges = Gauges {
                memory,
                load_gauge: server.load_gauge(),
                fetcher,
                store: Arc::clone(&store),
            };
            http::serve_metrics(address, metrics, gauges)
        })
        .transpose()?;
    let shutdown = server.shutdown_handle();
    signals.stop_on_signal(move || shutdown.shut_down(), manager.clone())?;

    let address = server.addresses()[0];
    let base_url = public_url.unwrap_or_else(|| format!("http://{address}"));
    // A closed standard output is no reason to end.
    let mut out = io::stdout();
    for address in server.addresses() {
        writeln!(out, "towebp listens on http://{address}").ok();
    }
    writeln!(out, "Dashboard: {base_url}/dashboard").ok();
    if let Some(address) = metrics {
        writeln!(out, "Metrics: http://{address}/metrics").ok();
    }
    if let Some(url) = store_url {
        writeln!(out, "Store: {url}").ok();
    }
    writeln!(out, "Data folder: {}", data.display()).ok();
    if with_demo {
        demo::run(&store, address, &data)?;
    }
    out.flush().ok();
    let heartbeat = server.heartbeat();
    manager.start_watchdog(move |within| heartbeat.beats_within(within))?;
    manager.ready();
    server.wait().map_err(Failure::from)
}

fn bind(listen: &[Listen], settings: front::Settings) -> Result<Listeners, String> {
    let own: Vec<SocketAddr> = listen
        .iter()
        .filter_map(|listen| match listen {
            Listen::At(address) => Some(*address),
            Listen::StandardInput => None,
        })
        .collect();
    let mut listeners = Listeners::bind(&own, settings)?;
    if listen.contains(&Listen::StandardInput) {
        listeners.add(systemd::listener_from_stdin()?)?;
    }
    Ok(listeners)
}

impl ServeCommand {
    fn store_flags(&self) -> StoreFlags<'_> {
        StoreFlags {
            store: self.store.as_deref(),
            password_file: self.store_password_file.as_deref(),
            ca: self.store_ca.as_deref(),
            tls: self.store_tls,
            connections: self.store_connections,
            timeout: self.store_timeout,
        }
    }

    /// # Errors
    /// A sentence for the operator: a flag that says where the store is is wrong.
    fn into_config(self) -> Result<Config, String> {
        let postgres = self.store_flags().settings()?;
        let http = http::Settings::default();
        let limits = image::Limits::default();
        let fetch = fetch::Settings::default();
        let front = front::Settings::default();
        let (memory, buffer) = (self.memory, self.buffer);
        let queue_time = self.queue_timeout.unwrap_or(front.queue_time);
        let config = Config {
            listen: if self.listen.is_empty() {
                vec![Listen::At(config::DEFAULT_LISTEN)]
            } else {
                self.listen
            },
            metrics: self.metrics,
            front: front::Settings {
                connections: self.max_connections.unwrap_or(front.connections),
                connections_per_address: self
                    .max_connections_per_address
                    .unwrap_or(front.connections_per_address),
                head_bytes: self.max_head.map_or(front.head_bytes, size),
                headers: self.max_headers.unwrap_or(front.headers),
                head_time: self.head_timeout.unwrap_or(front.head_time),
                body_time: self.body_timeout.unwrap_or(front.body_time),
                answer_time: self.answer_timeout.unwrap_or(front.answer_time),
                idle_time: self.idle_timeout.unwrap_or(front.idle_time),
                queue_time,
                linger_time: self.linger_timeout.unwrap_or(front.linger_time),
                stop_time: self.stop_timeout.unwrap_or(front.stop_time),
                rate: self.min_rate.unwrap_or(front.rate),
                trusted_proxies: self.trusted_proxy,
                ..front
            },
            memory: 0,
            store: store::Settings {
                data: self.data,
                secret_file: self.secret_file,
                allow_shared_data: self.allow_shared_data,
                history_keep: self.history_keep,
                postgres,
            },
            http: http::Settings {
                threads: self.threads.unwrap_or(http.threads),
                max_body: self.max_body.unwrap_or(http.max_body),
                conversion_timeout: self.conversion_timeout.unwrap_or(http.conversion_timeout),
                queue_time,
                public_url: self.public_url,
                signup: self.signup,
                rate_limit: NonZeroU32::new(self.rate_limit),
                monthly_quota: NonZeroU64::new(self.monthly_quota),
                sniff: self.sniff,
                allowed_origins: self.allow_origin,
                signin_rate: rate(self.signin_limit, http::SIGNIN_WINDOW, http.signin_rate),
                signup_rate: rate(self.signup_limit, http::SIGNUP_WINDOW, http.signup_rate),
            },
            limits: image::Limits {
                max_pixels: self.max_pixels.unwrap_or(limits.max_pixels),
                max_frames: self.max_frames.unwrap_or(limits.max_frames),
                max_animation_pixels: self
                    .max_animation_pixels
                    .unwrap_or(limits.max_animation_pixels),
                ..limits
            },
            fetch: fetch::Settings {
                allow_private: self.allow_private_watermark_hosts,
                ca_file: self.ca_file,
                timeout: self.watermark_timeout.unwrap_or(fetch.timeout),
                cache_bytes: self.watermark_cache.map_or(fetch.cache_bytes, size),
                fetches: self.watermark_fetches.unwrap_or(fetch.fetches),
                fetches_per_account: self
                    .watermark_fetches_per_account
                    .unwrap_or(fetch.fetches_per_account),
                queue: self.watermark_queue.unwrap_or(fetch.queue),
                queue_per_account: self
                    .watermark_queue_per_account
                    .unwrap_or(fetch.queue_per_account),
                ..fetch
            },
        };
        Ok(config.with_memory(memory, buffer, memory_limit::default_bytes()))
    }
}

/// The given limit, where 0 means none, or else the default.
fn rate(given: Option<u32>, window: Duration, default: Option<Rate>) -> Option<Rate> {
    let Some(times) = given else {
        return default;
    };
    NonZeroU32::new(times).map(|times| Rate { times, window })
}

/// The number as a size; one that does not fit is rejected as too large later.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn explain(error: OpenError) -> String {
    match error {
        OpenError::InUse(path) => {
            format!(
                "--data: {} is in use by another towebp; end that one, or choose another folder",
                path.display()
            )
        }
        OpenError::Failed(sentence) => sentence,
    }
}
