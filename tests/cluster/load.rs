//! Clients that convert without a pause, and remember every answer.

use crate::support::picture::Picture;
use crate::support::service::{Size, send};
use crate::support::{Response, Server};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Accounts, among which the conversions are divided.
pub const ACCOUNTS: usize = 2;

const CLIENTS: usize = 4;

/// After an answer that is no picture: clients that are refused do not come again at once.
const PAUSE: Duration = Duration::from_millis(20);

/// What clients ask, and what they have seen. Each conversion is of a size of its own, by which it
/// is told from all others.
pub struct Load {
    tokens: Vec<String>,
    addresses: Mutex<Vec<SocketAddr>>,
    /// Replicas that were killed: what they do not answer is no fault.
    ended: Mutex<HashSet<SocketAddr>>,
    next: AtomicU32,
    seen: Mutex<Seen>,
    is_over: AtomicBool,
}

#[derive(Default)]
struct Seen {
    answered: [Vec<Size>; ACCOUNTS],
    /// How often each status came; 0 for a connection that ended without an answer.
    statuses: BTreeMap<u16, usize>,
    longest: Duration,
    health: Vec<Duration>,
    faults: Vec<String>,
}

impl Load {
    pub fn new(servers: &[Server], tokens: &[String]) -> Load {
        Load {
            tokens: tokens.to_vec(),
            addresses: Mutex::new(servers.iter().map(|server| server.address).collect()),
            ended: Mutex::default(),
            next: AtomicU32::new(0),
            seen: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Has clients convert while `meanwhile` runs.
    pub fn run<T>(&self, meanwhile: impl FnOnce() -> T) -> T {
        self.is_over.store(false, Ordering::SeqCst);
        thread::scope(|scope| {
            // Also if `meanwhile` panics.
            let _end = OnDrop(&self.is_over);
            for _ in 0..CLIENTS {
                scope.spawn(|| self.convert());
            }
            scope.spawn(|| self.ask_health());
            meanwhile()
        })
    }

    /// Waits until so many further conversions have been answered.
    #[track_caller]
    pub fn until_answered(&self, count: usize, time: Duration) {
        let deadline = Instant::now() + time;
        let aim = self.count() + count;
        while self.count() < aim {
            assert!(
                Instant::now() < deadline,
                "no {count} conversions within {time:?}: {}",
                self.summary()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// From now on this replica may leave requests without an answer.
    pub fn expect_end_of(&self, address: SocketAddr) {
        lock(&self.ended).insert(address);
    }

    /// From now on this replica is asked in place of that one.
    pub fn replace(&self, old: SocketAddr, new: SocketAddr) {
        for address in lock(&self.addresses).iter_mut() {
            if *address == old {
                *address = new;
            }
        }
        // It may have the number of an earlier one.
        lock(&self.ended).remove(&new);
    }

    /// The conversions of an account that were answered.
    pub fn answered(&self, account: usize) -> Vec<Size> {
        lock(&self.seen).answered[account].clone()
    }

    /// Checks what clients have seen; `recorded` conversions are in the histories.
    pub fn check(&self, round: usize, recorded: usize, longest: Duration, health: Duration) {
        let seen = lock(&self.seen);
        assert!(seen.faults.is_empty(), "round {round}: {:#?}", seen.faults);
        assert!(
            seen.longest <= longest,
            "round {round}: a request took {:?}",
            seen.longest
        );
        let slowest = seen.health.iter().max().copied().unwrap_or_default();
        assert!(
            slowest <= health,
            "round {round}: /healthz took {slowest:?}"
        );
        // Only what was not answered may have been recorded without an answer.
        let asked: usize = seen.statuses.values().sum();
        assert!(recorded <= asked, "round {round}: {recorded} of {asked}");
    }

    pub fn summary(&self) -> String {
        let mut seen = lock(&self.seen);
        seen.health.sort_unstable();
        let part = |hundredth: usize| seen.health.get(seen.health.len() * hundredth / 100);
        format!(
            "statuses {:?}, longest request {:?}, /healthz p50 {:?} p99 {:?} longest {:?}",
            seen.statuses,
            seen.longest,
            part(50),
            part(99),
            seen.health.last()
        )
    }

    fn count(&self) -> usize {
        lock(&self.seen).answered.iter().map(Vec::len).sum()
    }

    fn convert(&self) {
        while !self.is_over.load(Ordering::SeqCst) {
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            let size = (32 + number % 256, 32 + number / 256);
            let account = number as usize % ACCOUNTS;
            let address = self.address(number as usize / ACCOUNTS);
            let message = message(&self.tokens[account], size);
            let begun = Instant::now();
            let answer = send(address, &message);
            self.note(address, account, size, &answer, begun.elapsed());
            if !answer.is_ok_and(|answer| answer.status == 200) {
                thread::sleep(PAUSE);
            }
        }
    }

    fn note(
        &self,
        address: SocketAddr,
        account: usize,
        size: Size,
        answer: &io::Result<Response>,
        took: Duration,
    ) {
        let may_end = lock(&self.ended).contains(&address);
        let mut seen = lock(&self.seen);
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        *seen.statuses.entry(status).or_default() += 1;
        match answer {
            Ok(answer) => {
                seen.longest = seen.longest.max(took);
                match status {
                    200 => seen.answered[account].push(size),
                    503 | 429 => {}
                    _ => seen.faults.push(format!("{status}: {}", answer.text())),
                }
            }
            Err(_) if may_end => {}
            Err(error) => {
                let fault = format!("no answer of {address} after {took:?}: {error}");
                seen.faults.push(fault);
            }
        }
    }

    fn ask_health(&self) {
        let mut turn = 0;
        while !self.is_over.load(Ordering::SeqCst) {
            turn += 1;
            let address = self.address(turn);
            let begun = Instant::now();
            let answer = send(
                address,
                b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            );
            let took = begun.elapsed();
            let may_end = lock(&self.ended).contains(&address);
            let mut seen = lock(&self.seen);
            match answer {
                Ok(answer) if answer.status == 200 => seen.health.push(took),
                Ok(answer) => seen.faults.push(format!("/healthz: {}", answer.status)),
                Err(_) if may_end => {}
                Err(error) => seen.faults.push(format!("/healthz: {error}")),
            }
            drop(seen);
            thread::sleep(PAUSE);
        }
    }

    fn address(&self, turn: usize) -> SocketAddr {
        let addresses = lock(&self.addresses);
        addresses[turn % addresses.len()]
    }
}

fn message(token: &str, (width, height): Size) -> Vec<u8> {
    let png = Picture::waves(width, height).png();
    let head = format!(
        "POST /convert?effort=low HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nContent-Type: image/png\r\nContent-Length: {}\r\n\r\n",
        png.len()
    );
    [head.as_bytes(), &png].concat()
}

/// Sets a flag when it goes.
pub struct OnDrop<'f>(pub &'f AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding the lock")
}
