//! The replacement for `postgres` in a program that is built without it.

use std::path::PathBuf;
use std::time::Duration;

use super::engine::Snapshot;
use super::error::OpenError;

/// Settings that cannot be used, since [`PostgresSettings::at`] always fails.
#[derive(Clone, Debug)]
pub struct PostgresSettings {
    /// The file of the password.
    pub password_file: Option<PathBuf>,
    /// The root certificates.
    pub ca: Option<PathBuf>,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// The most connections.
    pub connections: usize,
    /// The timeout of a query.
    pub timeout: Duration,
}

impl Default for PostgresSettings {
    fn default() -> PostgresSettings {
        PostgresSettings {
            password_file: None,
            ca: None,
            tls: true,
            connections: 4,
            timeout: Duration::from_secs(5),
        }
    }
}

impl PostgresSettings {
    /// Takes no URL.
    ///
    /// # Errors
    /// A sentence, always.
    pub fn at(self, _url: &str) -> Result<PostgresSettings, String> {
        Err("this towebp is built without PostgreSQL (its feature is named postgres)".to_owned())
    }

    /// Accepts all settings; there are none.
    ///
    /// # Errors
    /// None.
    pub fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// There is no such database.
///
/// # Errors
/// A sentence, always.
pub fn open_postgres_snapshot(
    _settings: &PostgresSettings,
) -> Result<Box<dyn Snapshot>, OpenError> {
    Err(OpenError::Failed(
        "this towebp is built without PostgreSQL".to_owned(),
    ))
}
