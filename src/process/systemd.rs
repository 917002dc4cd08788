//! What a service manager is told, and the socket that it may hand over: systemd's protocols, which
//! others speak too.

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

/// Whoever started the service, if that wants to hear how it is (`sd_notify(3)`). A clone tells the
/// same one.
#[derive(Clone, Debug)]
pub struct Manager(Option<Arc<UnixDatagram>>);

impl Manager {
    /// By `NOTIFY_SOCKET`: a path, or an abstract name behind `@`.
    ///
    /// # Errors
    /// A sentence for the operator: it is named, and cannot be reached. It would wait in vain.
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

    /// The service is up.
    pub fn ready(&self) {
        self.tell("READY=1");
    }

    /// The service ends, once what is under way is finished.
    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Says that the service lives, as often as `WATCHDOG_USEC` asks for, for as long as `is_alive`
    /// answers so within the time that it is given (`sd_watchdog_enabled(3)`).
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn watch(
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
                        manager.tell("WATCHDOG=1");
                    } else {
                        log::error!("the front door's thread does not go round");
                    }
                    thread::sleep(interval / 4);
                }
            })
            .map(drop)
            .map_err(|error| format!("the watchdog's thread did not start: {error}"))
    }

    fn tell(&self, state: &str) {
        if let Some(socket) = &self.0
            && let Err(error) = socket.send(state.as_bytes())
        {
            log::warn!("the service manager was not told {state}: {error}");
        }
    }
}

fn address(name: &[u8]) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = name.strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt;
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(OsStr::from_bytes(name))
}

/// `None` if nobody watches this process.
fn watchdog_interval() -> Result<Option<Duration>, String> {
    let own = process::id().to_string();
    if env::var("WATCHDOG_PID").is_ok_and(|watched| watched != own) {
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

/// The listening TCP socket that this process was given as standard input (`StandardInput=socket`,
/// systemd.exec(5)).
///
/// # Errors
/// A sentence for the operator: it is something else.
pub fn standard_input() -> Result<TcpListener, String> {
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
