//! The values of flags and variables, and the settings of a server that follow from them.

use super::address::{Listen, public_url};
use super::value::{Field, Kind};
use crate::process::logging::LogFormat;
use crate::store::PostgresSettings;
use crate::{fetch, front, http, store};
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use towebp_pipeline::image;

/// The beginning of all variables' names.
pub const PREFIX: &str = "TOWEBP_";

/// A row of [`SETTINGS`](super::SETTINGS).
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name: `max-body` is the flag `--max-body` and the variable `TOWEBP_MAX_BODY`.
    pub name: &'static str,
    /// The heading of its group.
    pub heading: &'static str,
    /// The unit and the range of its value.
    pub kind: Kind,
    /// The default in words, if it is no value.
    pub default: Option<&'static str>,
    /// The meaning, in one line.
    pub meaning: &'static str,
    /// The reason for the default, or nothing.
    pub reason: &'static str,
    /// The field of the value.
    pub place: fn(&mut Given) -> &mut dyn Field,
}

/// The default of `--listen`: this machine only.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The public sockets.
    pub listen: Vec<Listen>,
    /// The limits of connections.
    pub front: front::Settings,
    /// The bytes that the process stays below. [`Config::with_memory`] sets it.
    pub memory: u64,
    /// The address of the listener for metrics, if there is one.
    pub metrics: Option<SocketAddr>,
    /// The settings of the store.
    pub store: store::Settings,
    /// The settings of the service.
    pub http: http::Settings,
    /// The limits of pictures.
    pub limits: image::Limits,
    /// How the pictures of watermarks are fetched.
    pub fetch: fetch::Settings,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: vec![Listen::At(DEFAULT_LISTEN)],
            front: front::Settings::default(),
            memory: 0,
            metrics: None,
            store: store::Settings {
                data: PathBuf::from("towebp-data"),
                secret_file: None,
                allow_shared_data: false,
                history_keep: None,
                postgres: None,
            },
            http: http::Settings::default(),
            limits: image::Limits::default(),
            fetch: fetch::Settings::default(),
        }
    }
}

/// The values of flags and variables: the fields of all [`SETTINGS`](super::SETTINGS).
#[derive(Clone, Debug)]
pub struct Given {
    /// The values that are settings of one module.
    pub config: Config,
    /// The URL of the database that several servers share.
    pub store: Option<String>,
    /// How the database is reached.
    pub postgres: PostgresSettings,
    /// Bytes of the whole process.
    pub memory: Option<u64>,
    /// Bytes of requests and answers.
    pub buffer: Option<u64>,
    /// Files of fonts.
    pub fonts: Vec<PathBuf>,
    /// The format of the log.
    pub log_format: LogFormat,
    /// Whether the demo runs.
    pub demo: bool,
    /// The settings that were given, and whether by a variable.
    names: Vec<(&'static Setting, bool)>,
}

impl Default for Given {
    fn default() -> Given {
        Given {
            config: Config::default(),
            store: None,
            postgres: PostgresSettings::default(),
            memory: None,
            buffer: None,
            fonts: Vec::new(),
            log_format: LogFormat::Text,
            demo: false,
            names: Vec::new(),
        }
    }
}

impl Given {
    /// Reads the values of a setting, of which there is at least one.
    ///
    /// # Errors
    /// A sentence that names the flag or the variable.
    pub fn set(
        &mut self,
        row: &'static Setting,
        values: &[&OsStr],
        by_variable: bool,
    ) -> Result<(), String> {
        self.names.push((row, by_variable));
        let set = row.set(self, values);
        set.map_err(|reason| format!("{} {reason}", self.name(row.name)))
    }

    /// Whether a variable has given a setting.
    pub fn is_by_variable(&self, name: &str) -> bool {
        let mut names = self.names.iter();
        names.any(|(row, by_variable)| *by_variable && row.name == name)
    }

    /// The name by which a setting was given: `--max-body`, or `TOWEBP_MAX_BODY`.
    pub fn name(&self, name: &str) -> String {
        let mut by_variable = self.names.iter().filter(|(_, by_variable)| *by_variable);
        let row = by_variable.find(|(row, _)| row.name == name);
        row.map_or_else(|| format!("--{name}"), |(row, _)| row.variable())
    }

    /// The settings of a server, checked.
    ///
    /// # Errors
    /// A sentence for the operator that names the flag or the variable.
    pub fn config(&self, available: u64) -> Result<Config, String> {
        let mut config = self.config.clone();
        config.store = self.store()?;
        config.http.queue_time = config.front.queue_time;
        config.http.accepts.webp |= self.demo;
        let url = config.http.public_url.as_deref().map(public_url);
        let url = url.transpose();
        config.http.public_url = url.map_err(|reason| {
            let given = self.config.http.public_url.as_deref();
            format!(
                "{} {:?}: {reason}",
                self.name("public-url"),
                given.unwrap_or_default()
            )
        })?;
        let config = config.with_memory(self.memory, self.buffer, available);
        self.check(&config)?;
        Ok(config)
    }

    /// The settings of the store.
    ///
    /// # Errors
    /// A sentence that names the flag or the variable.
    pub fn store(&self) -> Result<store::Settings, String> {
        Ok(store::Settings {
            postgres: self.postgres(self.store.as_deref())?,
            ..self.config.store.clone()
        })
    }

    /// The PostgreSQL with this URL; `None` if there is no URL, and the accounts are in the folder.
    ///
    /// # Errors
    /// A sentence that names the flag or the variable: it is wrong, or stands without `--store`.
    pub fn postgres(&self, url: Option<&str>) -> Result<Option<PostgresSettings>, String> {
        let Some(url) = url else {
            let mut given = self.names.iter().map(|(row, _)| row.name);
            let lost = given.find(|name| name.starts_with("store-"));
            return lost.map_or(Ok(None), |lost| {
                Err(format!("{} without --store", self.name(lost)))
            });
        };
        let named = |sentence| format!("{}: {sentence}", self.name("store"));
        let settings = self.postgres.clone().at(url).map_err(named)?;
        settings.check().map_err(named)?;
        Ok(Some(settings))
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        &self.config.store.data
    }

    /// Checks values that depend on each other, or on files.
    fn check(&self, config: &Config) -> Result<(), String> {
        self.check_memory(config)?;
        if !config.front.trusted_proxies.is_empty() && config.http.public_url.is_none() {
            log::warn!(
                "{} without --public-url: if the proxy speaks TLS, the cookies of the dashboard are not held to it; \
                 say --public-url https://...",
                self.name("trusted-proxy")
            );
        }
        if let Some(file) = &config.fetch.ca_file
            && !file.is_file()
        {
            let name = self.name("ca-file");
            return Err(format!("{name} {}: there is no such file", file.display()));
        }
        if self.data().is_file() {
            let (name, data) = (self.name("data"), self.data().display());
            return Err(format!("{name} {data}: is a file; it must be a folder"));
        }
        Ok(())
    }
}

impl Setting {
    /// The variable: `TOWEBP_MAX_BODY`.
    pub fn variable(&self) -> String {
        PREFIX.to_owned() + &self.name.replace('-', "_").to_ascii_uppercase()
    }

    /// The default, in words or as it would be given.
    pub fn default_text(&self) -> String {
        let given = &mut Given::default();
        let text = || (self.place)(given).text(self.kind);
        self.default.map_or_else(text, str::to_owned)
    }

    /// Reads the values that are given, of which there is at least one; the last one counts, unless
    /// it is a list.
    ///
    /// # Errors
    /// The end of a sentence that begins with the flag or the variable.
    pub fn set(&self, given: &mut Given, values: &[&OsStr]) -> Result<(), String> {
        (self.place)(given).set(self.kind, values)
    }
}
