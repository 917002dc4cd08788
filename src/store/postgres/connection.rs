//! One connection to a host, over TLS and with the password, and the state of the host.

use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::cell::{self, Cell, Fields, cells};
use super::fault::{Class, Fault, Result};
use super::settings::{Host, PostgresSettings};
use crate::store::clock;
use crate::tls;

/// The environment variable of the password, where there is no file.
const PASSWORD: &str = "TOWEBP_STORE_PASSWORD";

/// The system closes a TCP connection after this time without a packet. Queries time out earlier.
const DEAD_AFTER: Duration = Duration::from_secs(10);

/// A connection, used by one query at a time. Dropping it closes it at once, whatever the host
/// does.
pub struct Link {
    client: Client,
    driver: AbortHandle,
    /// Whether a commit may have ended before a standby had it.
    is_unsure: Arc<AtomicBool>,
    prepared: OnceCell<Statement>,
    prepares: Arc<AtomicBool>,
    /// The number of failovers before it was made.
    pub choice: u64,
}

/// The state of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostState {
    /// Whether it takes writes.
    pub is_writable: bool,
    /// By how many milliseconds its clock is ahead of this machine's.
    pub clock_offset: i64,
    /// The number of its timeline, which grows when a standby becomes the primary; 0 if unknown.
    pub timeline: u32,
    /// The number of the database system, which its standbys share; 0 if unknown.
    pub system: i64,
    /// The highest timeline of this database system that a replica has written into the database; 0
    /// if there is none.
    pub noted: u32,
}

/// Connects to hosts.
pub struct Connector {
    settings: PostgresSettings,
    tls: Option<MakeRustlsConnect>,
    /// Whether the statement for conversions is prepared. It is false after a pooler was found that
    /// sends a prepared statement to a connection without it.
    prepares: Arc<AtomicBool>,
}

impl Connector {
    /// Reads the root certificates.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn new(settings: PostgresSettings) -> Result<Connector, String> {
        settings.check()?;
        let tls = if settings.tls {
            Some(MakeRustlsConnect::new(tls_config(settings.ca.as_deref())?))
        } else {
            None
        };
        Ok(Connector {
            settings,
            tls,
            prepares: Arc::new(AtomicBool::new(true)),
        })
    }

    /// The settings.
    pub fn settings(&self) -> &PostgresSettings {
        &self.settings
    }

    /// Connects to a host. This takes as long as the host does: the caller limits it.
    pub async fn connect(&self, host: &Host) -> Result<Link> {
        let mut config = Config::new();
        config
            .user(&self.settings.user)
            .dbname(&self.settings.database)
            .application_name("towebp");
        if let Some(password) = self.password()? {
            config.password(password);
        }
        let lost = |error: io::Error| {
            Fault::new(
                Class::NotReady,
                format!("{host} cannot be reached: {error}"),
            )
        };
        let link = match host {
            Host::Unix(folder, port) => {
                let path = Host::socket(folder, *port);
                let stream = UnixStream::connect(path).await.map_err(lost)?;
                config.ssl_mode(SslMode::Disable);
                Link::start(&config, stream, NoTls).await
            }
            Host::Tcp(name, port) => {
                let stream = TcpStream::connect((&**name, *port)).await.map_err(lost)?;
                prepare(&stream).map_err(lost)?;
                match self.tls.clone() {
                    None => {
                        config.ssl_mode(SslMode::Disable);
                        Link::start(&config, stream, NoTls).await
                    }
                    Some(mut tls) => {
                        config.ssl_mode(SslMode::Require);
                        let Ok(tls) = MakeTlsConnect::<TcpStream>::make_tls_connect(&mut tls, name);
                        Link::start(&config, stream, tls).await
                    }
                }
            }
        };
        let mut link =
            link.map_err(|fault| Fault::new(fault.class, format!("{host}: {}", fault.text)))?;
        link.prepares = Arc::clone(&self.prepares);
        Ok(link)
    }

    fn password(&self) -> Result<Option<String>> {
        let Some(file) = &self.settings.password_file else {
            return Ok(std::env::var(PASSWORD).ok().filter(|text| !text.is_empty()));
        };
        let text = std::fs::read_to_string(file).map_err(|error| {
            let text = format!(
                "the password's file {} cannot be read: {error}",
                file.display()
            );
            Fault::new(Class::Refused, text)
        })?;
        Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

impl Link {
    async fn start<S, T>(config: &Config, stream: S, tls: T) -> Result<Link>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: TlsConnect<S>,
        T::Stream: Send + 'static,
    {
        let (client, connection) = config.connect_raw(stream, tls).await?;
        let is_unsure = Arc::new(AtomicBool::new(false));
        let driver = tokio::spawn(drive(connection, Arc::clone(&is_unsure)));
        Ok(Link {
            client,
            driver: driver.abort_handle(),
            is_unsure,
            prepared: OnceCell::new(),
            prepares: Arc::default(),
            choice: 0,
        })
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// The rows of a statement, which is sent unnamed.
    pub async fn query(&self, sql: &str, parameters: &[Cell]) -> Result<Vec<Row>> {
        Ok(self.client.query_typed(sql, &typed(parameters)).await?)
    }

    /// The rows of a statement, each read by `read`.
    pub async fn all<T>(
        &self,
        sql: &str,
        parameters: &[Cell],
        read: impl Fn(&mut Fields<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let rows = self.query(sql, parameters).await?;
        rows.iter().map(|row| read(&mut Fields::of(row))).collect()
    }

    /// The first row of a statement, if it has one.
    pub async fn first<T>(
        &self,
        sql: &str,
        parameters: &[Cell],
        read: impl Fn(&mut Fields<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let rows = self.query(sql, parameters).await?;
        let first = rows.first().map(|row| read(&mut Fields::of(row)));
        first.transpose()
    }

    /// As [`Link::query`], for the one statement that this connection prepares and uses often. If a
    /// pooler between here and the host does not keep prepared statements, all connections send it
    /// unprepared from then on.
    pub async fn query_prepared(&self, sql: &str, parameters: &[Cell]) -> Result<Vec<Row>> {
        if !self.prepares.load(Ordering::Relaxed) {
            return self.query(sql, parameters).await;
        }
        let rows = async {
            let types: Vec<Type> = parameters.iter().map(Cell::sql_type).collect();
            let prepare = || self.client.prepare_typed(sql, &types);
            let statement = self.prepared.get_or_try_init(prepare).await?;
            let values: Vec<_> = parameters.iter().map(|it| it as _).collect();
            self.client.query(statement, &values).await
        };
        rows.await.map_err(|error| {
            let state = error.code().map_or("", |state| state.code());
            if !matches!(state, "26000" | "42P05" | "0A000") {
                return Fault::from(error);
            }
            self.prepares.store(false, Ordering::Relaxed);
            Fault::new(
                Class::Conflict,
                "a pooler does not keep prepared statements",
            )
        })
    }

    /// Executes a statement, and returns the number of rows that it has changed.
    pub async fn execute(&self, sql: &str, parameters: &[Cell]) -> Result<u64> {
        Ok(self.client.execute_typed(sql, &typed(parameters)).await?)
    }

    /// Executes statements without parameters.
    pub async fn batch(&self, sql: &str) -> Result<()> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Discards earlier warnings, such as those when the connection was made.
    pub fn forget_warnings(&self) {
        self.is_unsure.store(false, Ordering::Relaxed);
    }

    /// Checks that commits since [`Link::forget_warnings`] are on the standbys that they wait for.
    ///
    /// # Errors
    /// The host has warned that a commit has not waited for its standby: its outcome is not known.
    pub fn confirm(&self) -> Result<()> {
        if self.is_unsure.swap(false, Ordering::Relaxed) {
            let text = "the host has warned that a commit did not wait for its standby";
            return Err(Fault::new(Class::Lost, text));
        }
        Ok(())
    }

    /// Reads the state of the host, with timeline and database system if there are several hosts
    /// (`is_one_of_many`).
    pub async fn examine(
        &self,
        is_one_of_many: bool,
        now: fn() -> SystemTime,
    ) -> Result<HostState> {
        let sql = "SELECT current_setting('transaction_read_only') = 'on',
                          (extract(epoch FROM clock_timestamp()) * 1000)::INT8";
        let none = || Fault::new(Class::Unexpected, "no row of a host's state");
        let milliseconds = || clock::to_milliseconds(now()) as i64;
        let before = milliseconds();
        let columns = |row: &mut Fields<'_>| Ok((row.get::<bool>()?, row.get::<i64>()?));
        let (is_read_only, time) = self.first(sql, &[], columns).await?.ok_or_else(none)?;
        let mut state = HostState {
            is_writable: !is_read_only,
            clock_offset: time - before.midpoint(milliseconds()),
            timeline: 0,
            system: 0,
            noted: 0,
        };
        if is_one_of_many && state.is_writable {
            // This fails for other databases that speak PostgreSQL's protocol.
            let sql = "SELECT pg_walfile_name(pg_current_wal_lsn()),
                              (SELECT system_identifier FROM pg_control_system())";
            let rows = self.query(sql, &[]).await.unwrap_or_default();
            if let Some(mut row) = rows.first().map(Fields::of) {
                let file: &str = row.get()?;
                // The name of a WAL file begins with the timeline, 8 hexadecimal digits.
                let timeline = file.get(..8).map(|digits| u32::from_str_radix(digits, 16));
                state.timeline = timeline.and_then(Result::ok).unwrap_or(0);
                state.system = row.get()?;
                state.noted = self.noted_timeline(state.system).await;
            }
        }
        Ok(state)
    }

    /// The timeline that [`Link::note_timeline`] has written for this database system; 0 if there
    /// is none, or if the database has no tables yet.
    async fn noted_timeline(&self, system: i64) -> u32 {
        let sql = "SELECT timeline.value FROM meta timeline, meta system
                   WHERE timeline.name = 'timeline' AND system.name = 'system' AND system.value = $1";
        let noted = self.first(sql, cells![system], cell::read).await;
        noted.ok().flatten().unwrap_or(0)
    }

    /// Writes a timeline into the database, as [`HostState::noted`] of later connections, with the
    /// number of the database system: a copy of the tables in another system begins with the first
    /// timeline again.
    pub async fn note_timeline(&self, system: i64, timeline: u32) -> Result<()> {
        let sql = "INSERT INTO meta (name, value) VALUES ('system', $1), ('timeline', $2)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.execute(sql, cells![system, timeline]).await.map(drop)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // An orderly end could wait for a silent host.
        self.driver.abort();
    }
}

/// The parameters of a statement with their types.
fn typed(parameters: &[Cell]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    let parameters = parameters.iter();
    parameters.map(|it| (it as _, it.sql_type())).collect()
}

/// Drives the connection until it ends, and records warnings.
async fn drive<S, T>(mut connection: Connection<S, T>, is_unsure: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message {
            log::debug!("PostgreSQL reports: {}", notice.message());
            if notice.code().code() == "01000" {
                is_unsure.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Sets the socket up so that small messages are sent at once, and a lost host is noticed.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    rustix::net::sockopt::set_socket_keepalive(stream, true)?;
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt;
        sockopt::set_tcp_keepidle(stream, DEAD_AFTER)?;
        sockopt::set_tcp_keepintvl(stream, DEAD_AFTER / 5)?;
        sockopt::set_tcp_keepcnt(stream, 5)?;
        let milliseconds = u32::try_from(DEAD_AFTER.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(stream, milliseconds)?;
    }
    Ok(())
}

/// The configuration of TLS. Chain and name of the host's certificate are always verified.
fn tls_config(ca: Option<&Path>) -> Result<ClientConfig, String> {
    if !tls::available() {
        return Err(
            "this processor lacks instructions that TLS needs (AES, ADX, AVX2 on x86-64): \
                    connections to the store have to go without, over a Unix socket"
                .to_owned(),
        );
    }
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca {
        roots.add_parsable_certificates(tls::read_roots(path)?);
    } else {
        let all = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
        roots.add_parsable_certificates(all.iter().cloned());
    }
    ClientConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .map(|config| config.with_root_certificates(roots).with_no_client_auth())
        .map_err(|error| format!("TLS cannot be set up: {error}"))
}
