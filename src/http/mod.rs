//! Requests in, answers out: the only room that knows `tiny_http` and status codes.
//!
//! [`Server::start`] takes a listener from the front door and runs a fixed number of workers over it. A worker takes
//! a request ([`exchange`]), the [`router`] finds who answers it, and that one reads what it needs from the
//! [`request`] and gives a [`response`] or a [`error::Problem`].

mod convert;
mod error;
mod exchange;
mod pages;
mod request;
mod response;
mod router;
mod usage;

pub use exchange::LONGEST_REST as LONGEST_BODY;

use crate::conversion::Cores;
use crate::fetch::Fetcher;
use crate::image;
use crate::store::Store;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{io, thread};

/// The room's own settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Workers, and so conversions at the same time. Each keeps one core busy: as many as there are cores.
    pub threads: NonZeroUsize,
    /// Most bytes of a picture's file. 32 MiB is above what cameras write as JPEG and most PNG screenshots.
    pub max_body: u64,
    /// Longest that a conversion may take, of a body that has arrived and a watermark that was fetched. 50 seconds: 100
    /// megapixels take some 5 on one core, and the proxies that stand before servers wait for 60 by default, after
    /// which nobody would see the answer.
    pub conversion_timeout: Duration,
    /// Where people reach the service, such as `https://webp.example.org`, without a slash at the end. Without it,
    /// pages name the address that the browser used.
    pub public_url: Option<String>,
    /// Whether anybody may create an account on the sign-up page.
    pub signup_open: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            max_body: 32 << 20,
            conversion_timeout: Duration::from_secs(50),
            public_url: None,
            signup_open: true,
        }
    }
}

/// What the handlers work with, shared by all workers.
pub struct Rooms {
    /// Accounts, sessions and usage.
    pub store: Arc<Store>,
    /// Fetches watermark pictures.
    pub fetcher: Fetcher,
    /// Bounds on pictures.
    pub limits: image::Limits,
    /// What conversions share.
    pub cores: Cores,
    /// This room's settings.
    pub settings: Settings,
}

/// A running server.
pub struct Server {
    address: SocketAddr,
    failure: mpsc::Receiver<io::Error>,
}

impl Server {
    /// Starts answering on `listener`.
    ///
    /// # Errors
    /// A sentence for the operator, if the listener or the threads cannot be had.
    pub fn start(listener: TcpListener, rooms: Rooms) -> Result<Server, String> {
        let address = listener
            .local_addr()
            .map_err(|error| format!("the listener has no address: {error}"))?;
        let server = tiny_http::Server::from_listener(listener, None)
            .map_err(|error| format!("the HTTP server did not start: {error}"))?;
        let (server, rooms) = (Arc::new(server), Arc::new(rooms));
        let (sender, failure) = mpsc::channel();
        for number in 1..=rooms.settings.threads.get() {
            let (server, rooms, sender) = (Arc::clone(&server), Arc::clone(&rooms), sender.clone());
            thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || {
                    // Nobody listens any more only when the process is about to end.
                    sender.send(work(&server, &rooms)).ok();
                })
                .map_err(|error| format!("worker {number} did not start: {error}"))?;
        }
        Ok(Server { address, failure })
    }

    /// Where it listens, with the port it really got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the server can no longer accept connections, which it should never come to, and says why.
    pub fn wait(self) -> String {
        match self.failure.recv() {
            Ok(error) => format!("connections can no longer be accepted: {error}"),
            Err(_) => "all workers have ended".to_owned(),
        }
    }
}

/// Answers requests until the listener is gone.
fn work(server: &tiny_http::Server, rooms: &Rooms) -> io::Error {
    loop {
        match server.recv() {
            Ok(incoming) => exchange::run(incoming, |request, body| {
                router::answer(rooms, request, body)
            }),
            Err(error) => return error,
        }
    }
}
