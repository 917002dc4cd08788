//! The flags `--store...`, which several commands have.

use super::failure::Failure;
use super::shared::sentence;
use crate::store::{self, PostgresSettings, Snapshot};
use std::path::Path;
use std::time::Duration;

/// Defines the arguments of a command, and adds the flags that lead to a PostgreSQL, but for
/// `--store` itself. `towebp serve` has the same.
macro_rules! with_store_flags {
    ($(#[$($attribute:tt)*])+ pub $(($scope:ident))? struct $type:ident { $($fields:tt)* }) => {
        $(#[$($attribute)*])+
        pub $(($scope))? struct $type {
            $($fields)*
            #[argh(
                option,
                arg_name = "file",
                description = "file with the password for --store (default: $TOWEBP_STORE_PASSWORD)"
            )]
            store_password_file: Option<std::path::PathBuf>,
            /// root certificates for --store, as PEM (default: Mozilla's)
            #[argh(option, arg_name = "file")]
            store_ca: Option<std::path::PathBuf>,
            /// TLS to --store: on, or off for this machine's own addresses and sockets (default on)
            #[argh(option, arg_name = "on|off", from_str_fn($crate::cli::store_flags::on_or_off))]
            store_tls: Option<bool>,
            /// connections to --store (default 4: one writes, the others read)
            #[argh(option, arg_name = "number")]
            store_connections: Option<usize>,
            /// how long --store may take to answer (default 5: longer than a standby needs to stand
            /// in)
            #[argh(option, arg_name = "seconds", from_str_fn($crate::config::seconds))]
            store_timeout: Option<std::time::Duration>,
        }

        impl $type {
            /// What these flags say of the store with this URL.
            fn flags_of<'a>(
                &'a self,
                url: impl Into<Option<&'a str>>,
            ) -> $crate::cli::store_flags::StoreFlags<'a> {
                $crate::cli::store_flags::StoreFlags {
                    store: url.into(),
                    password_file: self.store_password_file.as_deref(),
                    ca: self.store_ca.as_deref(),
                    tls: self.store_tls,
                    connections: self.store_connections,
                    timeout: self.store_timeout,
                }
            }
        }
    };
}

pub(super) use with_store_flags;

/// The options that say which database several servers share. They are declared alike by
/// all commands that open a store.
pub(super) struct StoreFlags<'a> {
    /// `--store`
    pub(super) store: Option<&'a str>,
    /// `--store-password-file`
    pub(super) password_file: Option<&'a Path>,
    /// `--store-ca`
    pub(super) ca: Option<&'a Path>,
    /// `--store-tls`
    pub(super) tls: Option<bool>,
    /// `--store-connections`
    pub(super) connections: Option<usize>,
    /// `--store-timeout`
    pub(super) timeout: Option<Duration>,
}

impl StoreFlags<'_> {
    /// The database; `None` if the store is in the data folder.
    ///
    /// # Errors
    /// A sentence for standard error: a flag is wrong, or stands without `--store`.
    pub(super) fn settings(&self) -> Result<Option<PostgresSettings>, String> {
        let Some(url) = self.store else {
            for (flag, is_given) in [
                ("--store-password-file", self.password_file.is_some()),
                ("--store-ca", self.ca.is_some()),
                ("--store-tls", self.tls.is_some()),
                ("--store-connections", self.connections.is_some()),
                ("--store-timeout", self.timeout.is_some()),
            ] {
                if is_given {
                    return Err(format!("{flag} without --store"));
                }
            }
            return Ok(None);
        };
        let named = |sentence| format!("--store: {sentence}");
        let mut settings = PostgresSettings::parse(url).map_err(named)?;
        settings.password_file = self.password_file.map(Path::to_owned);
        settings.ca = self.ca.map(Path::to_owned);
        settings.tls = self.tls.unwrap_or(settings.tls);
        settings.connections = self.connections.unwrap_or(settings.connections);
        settings.timeout = self.timeout.unwrap_or(settings.timeout);
        settings.check().map_err(named)?;
        Ok(Some(settings))
    }

    /// The present state of the database.
    ///
    /// # Errors
    /// A sentence for standard error.
    pub(super) fn snapshot(&self) -> Result<Box<dyn Snapshot>, Failure> {
        let snapshot = store::open_postgres_snapshot(&self.required()?).map_err(sentence);
        Ok(snapshot?)
    }

    /// The database, which must be given.
    ///
    /// # Errors
    /// As [`StoreFlags::settings`].
    pub(super) fn required(&self) -> Result<PostgresSettings, Failure> {
        let settings = self.settings().map_err(Failure::Usage)?;
        settings.ok_or_else(|| Failure::Usage("--store is missing".to_owned()))
    }
}

/// Reads `on` or `off`.
///
/// # Errors
/// A sentence that says what is allowed.
pub(super) fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: StoreFlags<'_> = StoreFlags {
        store: None,
        password_file: None,
        ca: None,
        tls: None,
        connections: None,
        timeout: None,
    };

    #[test]
    fn flags_of_the_store_need_a_store() {
        assert!(NONE.settings().unwrap().is_none());
        for (flag, flags) in [
            (
                "--store-password-file",
                StoreFlags {
                    password_file: Some(Path::new("password")),
                    ..NONE
                },
            ),
            (
                "--store-ca",
                StoreFlags {
                    ca: Some(Path::new("ca.pem")),
                    ..NONE
                },
            ),
            (
                "--store-tls",
                StoreFlags {
                    tls: Some(true),
                    ..NONE
                },
            ),
            (
                "--store-connections",
                StoreFlags {
                    connections: Some(4),
                    ..NONE
                },
            ),
            (
                "--store-timeout",
                StoreFlags {
                    timeout: Some(Duration::from_secs(5)),
                    ..NONE
                },
            ),
        ] {
            let error = flags.settings().unwrap_err();
            assert_eq!(error, format!("{flag} without --store"));
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn flags_of_the_store_are_read_and_checked() {
        let store = Some("postgres://towebp@db1,db2:5433/towebp");
        let settings = StoreFlags { store, ..NONE }.settings().unwrap().unwrap();
        assert!(settings.tls);
        assert_eq!(settings.connections, 4);
        assert_eq!(settings.timeout, Duration::from_secs(5));
        let given = StoreFlags {
            store,
            password_file: Some(Path::new("password")),
            ca: Some(Path::new("ca.pem")),
            tls: Some(true),
            connections: Some(9),
            timeout: Some(Duration::from_secs(7)),
        };
        let settings = given.settings().unwrap().unwrap();
        assert_eq!(settings.password_file, Some("password".into()));
        assert_eq!(settings.ca, Some("ca.pem".into()));
        assert_eq!(settings.connections, 9);
        assert_eq!(settings.timeout, Duration::from_secs(7));
        for wrong in [
            StoreFlags {
                store: Some("postgres://towebp:hunter2@db1/towebp"),
                ..NONE
            },
            StoreFlags {
                store,
                tls: Some(false),
                ..NONE
            },
            StoreFlags {
                store,
                connections: Some(1),
                ..NONE
            },
            StoreFlags {
                store,
                timeout: Some(Duration::ZERO),
                ..NONE
            },
        ] {
            let error = wrong.settings().unwrap_err();
            assert!(error.starts_with("--store: "), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
