//! Requests in, answers out: the only room that knows `tiny_http` and status codes.
//!
//! [`Server::start`] opens the front door onto a fixed number of threads, those for conversions and others for pages. The door asks the [`desk`] whether a request is
//! worth its body, by its head alone. A worker takes a whole request ([`exchange`]), the [`router`] finds who answers
//! it, and that one reads what it needs from the [`request`] and gives a [`response`] or a [`error::Problem`].

mod allowance;
mod convert;
mod desk;
mod error;
mod exchange;
mod metrics;
mod pages;
mod ready;
mod request;
mod response;
mod router;
mod suggestion;
mod ticket;
mod usage;

pub use crate::admission::Rate;
pub use crate::dashboard::Signup;
pub use metrics::{Metrics, Present};
pub use ready::Readiness;

use crate::admission::{ClientRateLimiter, MemoryBudget, Reservation};
use crate::conversion::{CpuBudget, Fonts};
use crate::fetch::Fetcher;
use crate::front::{
    self, Clients, FrontHandle, Heartbeat, Listeners, LoadGauge, Pool, PrivateSocket,
    ShutdownHandle,
};
use crate::image;
use crate::store::{AccountId, Store};
use allowance::Allowance;
use error::Problem;
use request::Request;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The bound on `--max-body`: a picture's file is held in memory whole.
pub const LONGEST_BODY: u64 = 1 << 30;

/// The room's own settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Workers, and so conversions at the same time, but for one more while a single account has all of them. Each keeps
    /// one core busy: as many as there are cores.
    pub threads: NonZeroUsize,
    /// Most bytes of a picture's file. 32 MiB is above what cameras write as JPEG and most PNG screenshots.
    pub max_body: u64,
    /// Longest that a conversion may take, of a body that has arrived and a watermark that was fetched. 50 seconds: 100
    /// megapixels take some 5 on one core, and the proxies that stand before servers wait for 60 by default, after
    /// which nobody would see the answer.
    pub conversion_timeout: Duration,
    /// How long a whole request may wait, for a worker and for memory together: as long as the front door lets it.
    pub queue_time: Duration,
    /// Where people reach the service, such as `https://webp.example.org`, without a slash at the end. Without it,
    /// pages name the address that the browser used.
    pub public_url: Option<String>,
    /// Who may create an account on the sign-up page.
    pub signup: Signup,
    /// Attempts to sign in by one client address (IPv6: of one /64, and 4 and 16 times as many of one /56 and one /48,
    /// [`crate::admission::CLIENT_FACTORS`]); `None` for no limit. Successful ones count too, since
    /// each leaves a session in the database. 30 in 10 minutes: an office behind one address signs in less often, and somebody who tries one common password with
    /// many accounts, which no wait of an account stops, gets 4,320 a day.
    pub signin_rate: Option<Rate>,
    /// Attempts to sign up by one client address, counted in the same way; `None` for no limit. 10 in an hour: a class or an office comes in one
    /// after the other, and a script neither fills the disk nor finds out who has an account.
    pub signup_rate: Option<Rate>,
    /// Conversions of one account a minute; `None`, the default, for no limit: on one's own server the cores are the
    /// limit.
    pub rate_limit: Option<NonZeroU32>,
    /// Conversions of one account in a calendar month (UTC); `None`, the default, for no limit.
    pub monthly_quota: Option<NonZeroU64>,
}

/// The window of [`Settings::signin_rate`].
pub const SIGNIN_WINDOW: Duration = Duration::from_mins(10);

/// The window of [`Settings::signup_rate`].
pub const SIGNUP_WINDOW: Duration = Duration::from_hours(1);

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            max_body: 32 << 20,
            conversion_timeout: Duration::from_secs(50),
            queue_time: front::Settings::default().queue_time,
            public_url: None,
            signup: Signup::Open,
            signin_rate: NonZeroU32::new(30).map(|times| Rate {
                times,
                window: SIGNIN_WINDOW,
            }),
            signup_rate: NonZeroU32::new(10).map(|times| Rate {
                times,
                window: SIGNUP_WINDOW,
            }),
            rate_limit: None,
            monthly_quota: None,
        }
    }
}

/// What the handlers work with, shared by all workers.
pub struct Rooms {
    /// Accounts, sessions and usage.
    pub store: Arc<Store>,
    /// Fetches watermark pictures.
    pub fetcher: Fetcher,
    /// What texts are drawn with.
    pub fonts: Fonts,
    /// Bounds on pictures.
    pub limits: image::Limits,
    /// The cores that conversions share.
    pub cpu_budget: CpuBudget,
    /// The memory that they share.
    pub memory: MemoryBudget,
    /// Who has done how much of what is limited.
    pub limiters: Limiters,
    /// Whether all this works.
    pub readiness: Readiness,
    /// What has been done.
    pub metrics: Metrics,
    /// This room's settings.
    pub settings: Settings,
}

impl Rooms {
    /// Takes memory and a worker for this request's conversion, and waits for them as long as the request may wait.
    ///
    /// # Errors
    /// 413 for what there will never be, 503 for what others have too long.
    fn reserve(
        &self,
        request: &Request,
        account: AccountId,
        bytes: u64,
    ) -> Result<Reservation, Problem> {
        let until = request.gone.whole_since() + self.settings.queue_time;
        let is_waiting = || !request.gone.is_set();
        Ok(self.memory.reserve(account.0, bytes, until, is_waiting)?)
    }
}

/// What is held to the rates of the settings.
pub struct Limiters {
    signin: Option<ClientRateLimiter>,
    signup: Option<ClientRateLimiter>,
    allowance: Allowance,
}

impl Limiters {
    /// With nothing counted yet.
    pub fn new(settings: &Settings) -> Limiters {
        Limiters {
            signin: settings.signin_rate.map(ClientRateLimiter::new),
            signup: settings.signup_rate.map(ClientRateLimiter::new),
            allowance: Allowance::new(settings.rate_limit, settings.monthly_quota),
        }
    }
}

/// A running server.
pub struct Server {
    addresses: Vec<SocketAddr>,
    front: FrontHandle,
    pools: Vec<Workers>,
    is_over: Arc<AtomicBool>,
}

/// The threads of one pool.
struct Workers {
    server: Arc<tiny_http::Server>,
    threads: Vec<JoinHandle<()>>,
}

/// Threads for all that is no conversion. None of it takes longer than computing a password, some 50 ms; while all four
/// compute one, which four client addresses have to ask for, others wait as long.
const PAGE_THREADS: usize = 4;

/// Threads for conversions, beyond two for each worker. A thread reads the request and finds out what memory it takes, then
/// waits for memory and a worker ([`MemoryBudget`]), so that others with smaller pictures get by. No account has more than half of
/// the threads, which has to be enough for all workers.
const WAITING_THREADS: usize = 8;

impl Server {
    /// Starts answering what comes through the door. In the folder `private`, sockets stand for a moment.
    ///
    /// # Errors
    /// A sentence for the operator, if the sockets or the threads cannot be had.
    pub fn start(listeners: Listeners, rooms: Rooms, private: &Path) -> Result<Server, String> {
        let addresses = listeners.addresses().to_vec();
        let (rooms, clients) = (Arc::new(rooms), listeners.clients());
        let is_over = Arc::new(AtomicBool::new(false));
        let start = |pool: Pool| {
            let (name, count) = match pool {
                Pool::Conversions => {
                    let workers = rooms.settings.threads.get();
                    ("convert", 2 * workers + WAITING_THREADS)
                }
                Pool::Pages => ("pages", PAGE_THREADS),
            };
            let socket = PrivateSocket::bind(private, &format!("front-{name}"))?;
            let server = tiny_http::Server::from_listener(socket.listener()?, None)
                .map_err(|error| format!("the HTTP server did not start: {error}"))?;
            let server = Arc::new(server);
            let start_thread = |number| {
                let (server, rooms, clients, is_over) = (
                    Arc::clone(&server),
                    Arc::clone(&rooms),
                    Arc::clone(&clients),
                    Arc::clone(&is_over),
                );
                let name = format!("{name}-{number}");
                thread::Builder::new()
                    .name(name.clone())
                    .spawn(move || work(&server, &rooms, &clients, &is_over))
                    .map_err(|error| format!("the thread {name} did not start: {error}"))
            };
            let threads = (1..=count)
                .map(start_thread)
                .collect::<Result<Vec<_>, String>>()?;
            Ok(((pool, socket, count), Workers { server, threads }))
        };
        let (upstreams, pools) = Pool::ALL
            .into_iter()
            .map(start)
            .collect::<Result<(Vec<_>, Vec<_>), String>>()?;
        let front = listeners.serve(upstreams, desk::Desk::new(rooms))?;
        Ok(Server {
            addresses,
            front,
            pools,
            is_over,
        })
    }

    /// Where it listens, with the ports that it really got.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Ends it gracefully: the front door closes, what is under way is finished, and [`Server::wait`] returns.
    pub fn stop(&self) -> ShutdownHandle {
        self.front.shutdown.clone()
    }

    /// Tells whether the front door goes round still.
    pub fn heartbeat(&self) -> Heartbeat {
        self.front.heartbeat.clone()
    }

    /// Tells how busy the front door is.
    pub fn load_gauge(&self) -> LoadGauge {
        self.front.load.clone()
    }

    /// Waits until the server was stopped, and all its workers have ended.
    ///
    /// # Errors
    /// A sentence for the operator: why the front door ended by itself, which it should never come to.
    pub fn wait(self) -> Result<(), String> {
        let ended = self.front.ended.recv();
        ended.unwrap_or_else(|_| Err("the event loop has ended".to_owned()))?;
        self.is_over.store(true, Ordering::SeqCst);
        for Workers { server, threads } in &self.pools {
            for _ in threads {
                server.unblock();
            }
        }
        for thread in self.pools.into_iter().flat_map(|pool| pool.threads) {
            thread
                .join()
                .map_err(|_| "a worker has panicked".to_owned())?;
        }
        Ok(())
    }
}

/// Answers requests until it is over.
fn work(server: &tiny_http::Server, rooms: &Rooms, clients: &Clients, is_over: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        // Errors come at the start, when the door has all its connections and ends the accepting of more, and at the end.
        if let Ok(incoming) = server.recv() {
            let is_https = pages::is_behind_tls(&rooms.settings);
            exchange::run(
                incoming,
                clients,
                &rooms.metrics,
                is_https,
                |request, ticket, body| router::answer(rooms, request, ticket, body),
            );
        }
    }
}

#[cfg(test)]
mod tests;
