//! The settings of the PostgreSQL database: its hosts and how to connect.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;

/// The port of a host that is named without one.
const DEFAULT_PORT: u16 = 5432;

/// The most connections: more than PostgreSQL allows by default to all of its clients.
const MAX_CONNECTIONS: usize = 100;

/// The database and how to connect to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresSettings {
    /// The machines that the database may run on; the one that takes writes is used.
    pub hosts: Vec<Host>,
    /// The role.
    pub user: String,
    /// The name of the database.
    pub database: String,
    /// The file of the password, which is read at each connect, so that it can be changed. Without
    /// one, the password is that of the environment variable `TOWEBP_STORE_PASSWORD`, if it is set.
    pub password_file: Option<PathBuf>,
    /// The root certificates (PEM) that are trusted instead of Mozilla's.
    pub ca: Option<PathBuf>,
    /// Whether connections are encrypted; those to other machines always are.
    pub tls: bool,
    /// The most connections: one writes, the others read.
    pub connections: usize,
    /// The timeout of a query.
    pub timeout: Duration,
}

/// A machine that the database may run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name or an address, and a port.
    Tcp(String, u16),
    /// The folder of a Unix socket, and the port that is in the socket's name.
    Unix(PathBuf, u16),
}

impl Default for PostgresSettings {
    fn default() -> PostgresSettings {
        PostgresSettings {
            hosts: Vec::new(),
            user: String::new(),
            database: String::new(),
            password_file: None,
            ca: None,
            tls: true,
            connections: 4,
            timeout: Duration::from_secs(5),
        }
    }
}

impl PostgresSettings {
    /// Takes hosts, role and database from a URL: `postgres://role@host1,host2:5433/database`.
    /// Special characters are escaped as in any URL; a folder of Unix sockets is a host such as
    /// `%2Frun%2Fpostgresql`.
    ///
    /// # Errors
    /// A sentence that names the error and the allowed form.
    pub fn at(self, url: &str) -> Result<PostgresSettings, String> {
        let form = "the form is postgres://ROLE@HOST[:PORT][,HOST...]/DATABASE";
        let rest = url
            .strip_prefix("postgres://")
            .or_else(|| url.strip_prefix("postgresql://"))
            .ok_or_else(|| format!("the store's URL does not begin with postgres://; {form}"))?;
        let (authority, database) = rest
            .split_once('/')
            .ok_or_else(|| format!("the store's URL names no database; {form}"))?;
        if database.contains('?') {
            return Err(
                "the store's URL takes no parameters after a question mark; the flags --store-ca, \
                 --store-tls, --store-connections and --store-timeout are there for them"
                    .to_owned(),
            );
        }
        let (user, hosts) = authority
            .rsplit_once('@')
            .ok_or_else(|| format!("the store's URL names no role; {form}"))?;
        if user.contains(':') {
            return Err(
                "the store's URL holds a password, which everybody on this machine could read; put \
                 it into a file for --store-password-file, or into the environment variable \
                 TOWEBP_STORE_PASSWORD"
                    .to_owned(),
            );
        }
        let hosts: Vec<Host> = hosts.split(',').map(host).collect::<Result<_, _>>()?;
        let (user, database) = (decoded(user)?, decoded(database)?);
        for (name, value) in [("role", &user), ("database", &database)] {
            if value.is_empty() {
                return Err(format!("the store's URL names no {name}; {form}"));
            }
        }
        Ok(PostgresSettings {
            hosts,
            user,
            database,
            ..self
        })
    }

    /// Checks values that depend on each other.
    ///
    /// # Errors
    /// A sentence with the setting, the given value and the allowed ones.
    pub fn check(&self) -> Result<(), String> {
        if !(2..=MAX_CONNECTIONS).contains(&self.connections) {
            return Err(format!(
                "there may be 2 to {MAX_CONNECTIONS} connections to the store, not {}",
                self.connections
            ));
        }
        if self.timeout < Duration::from_millis(100) || self.timeout > Duration::from_mins(1) {
            return Err(format!(
                "the store's timeout may be 0.1 to 60 seconds, not {}",
                self.timeout.as_secs_f64()
            ));
        }
        if let Some(far) = self.hosts.iter().find(|host| !host.is_here())
            && !self.tls
        {
            return Err(format!(
                "the connection to {far} must be encrypted: only those to this machine may be \
                 without TLS"
            ));
        }
        Ok(())
    }
}

impl Host {
    /// Whether connections to it stay on this machine: a Unix socket or a loopback address.
    fn is_here(&self) -> bool {
        match self {
            Host::Unix(..) => true,
            Host::Tcp(name, _) => {
                let address = name.parse::<IpAddr>();
                name == "localhost" || address.is_ok_and(|address| address.is_loopback())
            }
        }
    }

    /// The file of the Unix socket.
    pub fn socket(folder: &Path, port: u16) -> PathBuf {
        folder.join(format!(".s.PGSQL.{port}"))
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Host::Tcp(name, port) if name.contains(':') => write!(f, "[{name}]:{port}"),
            Host::Tcp(name, port) => write!(f, "{name}:{port}"),
            Host::Unix(folder, port) => Host::socket(folder, *port).display().fmt(f),
        }
    }
}

fn host(text: &str) -> Result<Host, String> {
    let wrong = || {
        format!(
            "the store's URL has the host \"{text}\"; a host is NAME, ADDRESS or [IPV6], with :PORT if need be"
        )
    };
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']').ok_or_else(wrong)?;
            let port = match rest {
                "" => None,
                rest => Some(rest.strip_prefix(':').ok_or_else(wrong)?),
            };
            (address, port)
        }
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map_or(Ok(DEFAULT_PORT), |port| port.parse().map_err(|_| wrong()))?;
    let name = decoded(name)?;
    if name.is_empty() || port == 0 {
        return Err(wrong());
    }
    Ok(if name.starts_with('/') {
        Host::Unix(PathBuf::from(name), port)
    } else {
        Host::Tcp(name, port)
    })
}

fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| format!("\"{text}\" in the store's URL is no UTF-8"))?;
    if decoded.chars().any(char::is_control) {
        return Err(format!(
            "\"{text}\" in the store's URL has a control character"
        ));
    }
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_hosts_role_and_database() {
        let settings = PostgresSettings::default()
            .at("postgres://to%40webp@db1,db2:5433,[::1]:7,%2Frun%2Fpg/a%2Fb")
            .unwrap();
        assert_eq!((&*settings.user, &*settings.database), ("to@webp", "a/b"));
        let hosts: Vec<_> = settings.hosts.iter().map(Host::to_string).collect();
        let expected = ["db1:5432", "db2:5433", "[::1]:7", "/run/pg/.s.PGSQL.5432"];
        assert_eq!(hosts, expected);
    }

    #[test]
    fn a_url_that_is_none_is_told_why() {
        for (url, part) in [
            ("mysql://a@b/c", "postgres://"),
            ("postgres://a@b", "no database"),
            ("postgres://a@b/", "no database"),
            ("postgres://b/c", "no role"),
            ("postgres://@b/c", "no role"),
            ("postgres://a:secret@b/c", "--store-password-file"),
            ("postgres://a@b/c?sslmode=disable", "--store-tls"),
            ("postgres://a@b:port/c", "\"b:port\""),
            ("postgres://a@b:0/c", "\"b:0\""),
            ("postgres://a@b,/c", "\"\""),
            ("postgres://a@[::1/c", "[::1"),
            ("postgres://a@b%0a/c", "control"),
            ("postgres://a%ff@b/c", "UTF-8"),
        ] {
            let error = PostgresSettings::default().at(url).unwrap_err();
            assert!(error.contains(part), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn only_connections_to_this_machine_go_without_tls() {
        for (host, allowed) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("[::1]", true),
            ("localhost", true),
            ("%2Frun", true),
            ("127.0.0.1,db", false),
            ("10.0.0.1", false),
            ("localhost.example.org", false),
        ] {
            let url = format!("postgres://a@{host}/c");
            let mut settings = PostgresSettings::default().at(&url).unwrap();
            settings.check().unwrap();
            settings.tls = false;
            assert_eq!(settings.check().is_ok(), allowed, "{host}");
        }
    }

    #[test]
    fn connections_and_timeout_are_bounded() {
        let settings = PostgresSettings::default().at("postgres://a@b/c").unwrap();
        for (connections, timeout, allowed) in [
            (2, 100, true),
            (100, 60_000, true),
            (1, 100, false),
            (101, 100, false),
            (2, 99, false),
            (2, 60_001, false),
        ] {
            let settings = PostgresSettings {
                connections,
                timeout: Duration::from_millis(timeout),
                ..settings.clone()
            };
            let is_allowed = settings.check().is_ok();
            assert_eq!(is_allowed, allowed, "{connections} {timeout}");
        }
    }
}
