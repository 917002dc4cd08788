//! PostgreSQL for the tests of the engine on it.

#[path = "../../../tests/support/postgres.rs"]
#[expect(
    dead_code,
    reason = "tests of whole servers use the rest: tests/cluster"
)]
pub mod server;

use crate::store::engine::Engine;
use crate::store::postgres::{PostgresEngine, PostgresSettings};

/// A database of its own, and the settings to reach it.
pub struct TestDatabase {
    pub settings: PostgresSettings,
    database: server::Database,
}

impl TestDatabase {
    /// `None` if PostgreSQL is not installed, which is told.
    pub fn new() -> Option<TestDatabase> {
        Some(TestDatabase::on(server::shared()?))
    }

    /// A new one of this server.
    pub fn on(server: &server::Postgres) -> TestDatabase {
        let database = server.database();
        TestDatabase {
            settings: settings(&database),
            database,
        }
    }

    /// How it is reached by these ports instead.
    pub fn behind(&self, ports: &[u16]) -> PostgresSettings {
        settings(&self.database.behind(ports))
    }

    pub fn engine(&self) -> PostgresEngine {
        PostgresEngine::open(&self.settings).expect("it is reachable")
    }

    /// Carries out a statement as another client of this server does.
    pub fn sql(&self, server: &server::Postgres, statement: &str) -> String {
        server.sql(&self.database.name, statement)
    }
}

fn settings(database: &server::Database) -> PostgresSettings {
    let mut settings = PostgresSettings::default()
        .at(&database.url)
        .expect("a good URL");
    settings.password_file = Some(database.password_file.clone());
    settings.ca = Some(database.ca.clone());
    settings
}

/// Runs a test on a database of its own, if PostgreSQL is installed.
pub fn on_postgres(test: fn(&dyn Engine)) {
    if let Some(database) = TestDatabase::new() {
        test(&database.engine());
    }
}
