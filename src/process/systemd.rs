//! The protocols of systemd, which other service managers speak too: notifications, the watchdog,
//! and the socket that the manager hands over.
//!
//! The crate sd-notify 0.5 does not replace this file. It cannot reach an abstract socket, does not
//! report a socket that cannot be reached before the first notification, and ignores a
//! `WATCHDOG_USEC` that is no number: the service would be restarted again and again, without a
//! word in its log.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The service manager that started this process, if it wants notifications (`sd_notify(3)`). A
/// clone notifies the same manager.
#[derive(Clone, Debug)]
pub struct Manager(Option<Arc<UnixDatagram>>);

impl Manager {
    /// The manager that listens on the socket in `NOTIFY_SOCKET`: a path, or `@` and an abstract
    /// name.
    ///
    /// # Errors
    /// A sentence for the operator: the socket cannot be reached, so that the manager would wait in
    /// vain.
    pub fn from_environment() -> Result<Manager, String> {
        let Some(name) = env::var_os("NOTIFY_SOCKET") else {
            return Ok(Manager(None));
        };
        let connect = || -> io::Result<UnixDatagram> {
            let socket = UnixDatagram::unbound()?;
            socket.connect_addr(&address(name.as_encoded_bytes())?)?;
            Ok(socket)
        };
        let socket = connect().map_err(|error| {
            format!(
                "NOTIFY_SOCKET {}: cannot be reached: {error}",
                name.display()
            )
        })?;
        Ok(Manager(Some(Arc::new(socket))))
    }

    /// Tells the manager that the service is up.
    pub fn ready(&self) {
        self.notify("READY=1");
    }

    /// Tells the manager that the service ends as soon as the requests under way are finished.
    pub fn stopping(&self) {
        self.notify("STOPPING=1");
    }

    /// Starts a thread that calls `is_alive` with a time limit, four times in each interval of
    /// `WATCHDOG_USEC`, and notifies the manager if it returns true (`sd_watchdog_enabled(3)`).
    ///
    /// # Errors
    /// A sentence for the operator: `WATCHDOG_USEC` is invalid, or the thread did not start.
    pub fn start_watchdog(
        &self,
        is_alive: impl Fn(Duration) -> bool + Send + 'static,
    ) -> Result<(), String> {
        let Some(interval) = watchdog_interval()? else {
            return Ok(());
        };
        let manager = self.clone();
        thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || {
                loop {
                    if is_alive(interval / 4) {
                        manager.notify("WATCHDOG=1");
                    } else {
                        log::error!("the event loop does not respond");
                    }
                    thread::sleep(interval / 4);
                }
            })
            .map(drop)
            .map_err(|error| format!("the watchdog's thread did not start: {error}"))
    }

    fn notify(&self, state: &str) {
        if let Some(socket) = &self.0
            && let Err(error) = socket.send(state.as_bytes())
        {
            log::warn!("the service manager was not told {state}: {error}");
        }
    }
}

/// The address of the socket that `NOTIFY_SOCKET` names.
fn address(name: &[u8]) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = name.strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt;
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(OsStr::from_bytes(name))
}

/// The interval in which the manager expects a notification; `None` if it has no watchdog for this
/// process.
fn watchdog_interval() -> Result<Option<Duration>, String> {
    let own_id = process::id().to_string();
    if env::var("WATCHDOG_PID").is_ok_and(|watched| watched != own_id) {
        return Ok(None);
    }
    let Ok(given) = env::var("WATCHDOG_USEC") else {
        return Ok(None);
    };
    let interval: Option<u64> = given.parse().ok().filter(|micros| *micros > 0);
    interval
        .map(|micros| Some(Duration::from_micros(micros)))
        .ok_or_else(|| {
            format!("WATCHDOG_USEC {given}: expected a number of microseconds, 1 or more")
        })
}

/// The listening TCP socket that this process has as standard input (`StandardInput=socket`,
/// systemd.exec(5)).
///
/// # Errors
/// A sentence for the operator: standard input is something else.
pub fn listener_from_stdin() -> Result<TcpListener, String> {
    let taken = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(TcpListener::from)
        .and_then(|listener| {
            let is_listening = rustix::net::sockopt::socket_acceptconn(&listener)?;
            listener.local_addr()?;
            Ok((listener, is_listening))
        });
    match taken {
        Ok((listener, true)) => Ok(listener),
        _ => Err("--listen stdin: standard input is no listening TCP socket".to_owned()),
    }
}
