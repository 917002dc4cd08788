//! `towebp serve`: runs the service.

use super::demo;
use super::failure::Failure;
use super::names::shown;
use super::settings::AllFlags;
use super::shared::{cores, fonts};
use crate::admin;
use crate::admission::MemoryBudget;
use crate::config::Listen;
use crate::dashboard::MODULE;
use crate::fetch::Fetcher;
use crate::front::{self, Listeners};
use crate::http::{self, AppState, Gauges, Limiters, Metrics, Readiness};
use crate::process::systemd::{self, Manager};
use crate::process::{memory_limit, signals};
use crate::store::{self, OpenError, Store};
use clap::Args;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use towebp_pipeline::conversion::CpuBudget;

/// Runs the HTTP service and the dashboard.
#[derive(Args)]
pub(super) struct Serve {
    #[command(flatten)]
    pub(super) settings: AllFlags,
}

/// Serves until a signal asks the process to end.
///
/// # Errors
/// A sentence for the operator.
pub(super) fn run(command: &Serve) -> Result<(), Failure> {
    let given = &command.settings.0;
    let fonts = fonts(&given.fonts)?;
    let config = given.config(memory_limit::default_bytes());
    let config = config.map_err(Failure::Usage)?;
    let data = config.store.data.clone();

    let signals = signals::catch()?;
    let manager = Manager::from_environment()?;
    let workers = config.http.threads.get();
    let bytes = config.memory_for_conversions();
    let memory = MemoryBudget::new(bytes, workers)
        .keep_for_small(config.memory_for_small())
        .count_workers(config.memory_of_worker());
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
    let server = http::serve(listeners, state)?;
    let metrics = config
        .metrics
        .map(|address| {
            let gauges = Gauges {
                memory,
                load_gauge: server.load.clone(),
                fetcher,
                store: Arc::clone(&store),
            };
            http::serve_metrics(address, metrics, gauges)
        })
        .transpose()?;
    let shutdown = server.shutdown.clone();
    signals.stop_on_signal(move || shutdown.shut_down(), manager.clone())?;

    let address = server.addresses[0];
    let base_url = public_url.unwrap_or_else(|| format!("http://{address}"));
    // A closed standard output is no reason to end.
    let mut out = io::stdout();
    for address in &server.addresses {
        writeln!(out, "towebp listens on http://{address}").ok();
    }
    if !given.demo {
        writeln!(out, "Dashboard: {base_url}/dashboard").ok();
    }
    if let Some(address) = metrics {
        writeln!(out, "Metrics: http://{address}/metrics").ok();
    }
    if let Some(url) = &given.store {
        writeln!(out, "Store: {url}").ok();
    }
    if MODULE.is_none() {
        writeln!(
            out,
            "Pages: without conversions in the browser, which scripts/wasm adds to a build"
        )
        .ok();
    }
    writeln!(out, "Data folder: {}", shown(&data)).ok();
    if given.demo {
        // The demo prints its one request, which a line of the log would interrupt.
        let level = log::max_level();
        log::set_max_level(level.min(log::LevelFilter::Warn));
        let shown = demo::run(&store, address, &data);
        log::set_max_level(level);
        shown?;
    }
    out.flush().ok();
    let heartbeat = server.heartbeat.clone();
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

fn explain(error: OpenError) -> String {
    match error {
        OpenError::InUse(path) => {
            format!(
                "--data: {} is in use by another towebp; end that one, or choose another folder",
                shown(&path)
            )
        }
        OpenError::Failed(sentence) => sentence,
    }
}
