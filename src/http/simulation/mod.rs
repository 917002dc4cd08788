//! The whole service in one run that a seed decides: which clients come and what they send, in
//! which pieces it arrives, when workers work, when disks break and fill up, when clocks are set,
//! and when the process is killed or shut down. Event loop, admission, conversion, budgets of
//! memory, quotas and the store are the ones that are shipped; sockets, disk, clocks and the turns
//! of the workers are simulated ([`crate::front::SimulatedFront`], [`Disk`]).
//!
//! What has to hold after each step: what was answered is recorded once and by the account that
//! sent it, no quota is passed, nobody gets the response to another request, memory stays within
//! its budget; and in the end every request has ended, and nothing is held for it any more.
//!
//! `TOWEBP_SIMULATIONS` is the number of runs (100 if it is not set), `TOWEBP_SIMULATION_SEED` the
//! seed of the first one. `TOWEBP_SIMULATIONS=10000 cargo test --lib simulation -- --nocapture`
//! prints what they have come through.

mod client;
mod history;

use super::admitted::HttpAdmission;
use super::asset::Asset;
use super::*;
use crate::admission::{MemoryBudget, Need, Reservation, simulate};
use crate::fetch::{self, Fetcher};
use crate::front::{self, SimulatedFront};
use crate::store::tests::disk::Disk;
use crate::store::tests::{probe, store_at};
use crate::store::{AccountId, Store, TokenNumber};
use client::{Client, Received, Want, picture};
use history::History;
use std::collections::{BTreeMap, HashMap};
use std::env;
use std::net::{IpAddr, Ipv4Addr};
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use towebp_encoder::testing::Random;
use towebp_pipeline::conversion::{CpuBudget, Fonts};
use towebp_pipeline::image;

/// The steps of a run, before everything is brought to its end.
const STEPS: usize = 500;

/// Most requests of a run; by their sizes, requests and responses belong together.
const MOST_REQUESTS: usize = 80;

/// The memory that conversions share.
const MEMORY: u64 = 4 << 20;

/// The time of the first clock, in milliseconds since the epoch: half a minute before a new month.
const FIRST_TIME: u64 = 1_795_996_800_000 + 86_400_000 * 10 - 30_000;

/// A run.
struct Simulation {
    random: Random,
    now: Instant,
    began: Instant,
    /// The clock of the machine, in milliseconds since the epoch.
    clock: Arc<AtomicU64>,
    disk: Disk,
    settings: Settings,
    fetcher: Fetcher,
    /// `None` between the end of a process and the start of the next.
    service: Option<Service>,
    is_stopping: bool,
    accounts: Vec<Account>,
    clients: Vec<Client>,
    requests: Vec<Sent>,
    /// Memory that conversions beside those of the clients have.
    others: Vec<Reservation>,
    history: History,
    step: usize,
    /// The last step at which the disk had a fault.
    fault: Option<usize>,
    is_faulty: bool,
    /// What has happened: the step, what it was, and a number that belongs to it.
    events: Vec<Event>,
}

type Event = (usize, &'static str, u64);

/// The service, from its start to its end.
struct Service {
    front: SimulatedFront<HttpAdmission>,
    state: Arc<AppState>,
}

/// An account.
struct Account {
    id: AccountId,
    token: String,
    /// Tokens that are certainly invalid, with the step since which they are.
    ended: HashMap<String, usize>,
    /// Whether its token may be another one, since a rotation has failed.
    is_uncertain: bool,
}

/// A request of a client.
struct Sent {
    want: Want,
    account: usize,
    token: String,
    /// The step at which its client began to send it.
    begun: usize,
    /// Whether its client has closed its sending side, or left.
    has_left: bool,
}

#[test]
fn whatever_happens_every_request_ends_and_what_was_answered_is_recorded_once() {
    let runs: u64 = from_environment("TOWEBP_SIMULATIONS").unwrap_or(100);
    let first: u64 = from_environment("TOWEBP_SIMULATION_SEED").unwrap_or(1);
    let began = Instant::now();
    let mut counts = BTreeMap::new();
    for seed in first..first + runs {
        for (_, what, _) in run(seed) {
            *counts.entry(what).or_insert(0_u64) += 1;
        }
    }
    println!("{runs} runs in {:?}: {counts:?}", began.elapsed());
    if runs >= 100 {
        for what in [
            "200",
            "401",
            "408",
            "429",
            "503",
            "killed",
            "shut down",
            "waited",
        ] {
            assert!(
                counts.contains_key(what),
                "no {what} in any run: {counts:?}"
            );
        }
    }
}

#[test]
fn a_seed_decides_everything() {
    for seed in 1..=5 {
        let (first, second) = (run(seed), run(seed));
        for (index, event) in first.iter().enumerate() {
            assert_eq!(second.get(index), Some(event), "seed {seed}, event {index}");
        }
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}

/// A number of the environment.
fn from_environment(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// One run. Returns what has happened.
fn run(seed: u64) -> Vec<Event> {
    let mut simulation = Simulation::new(seed);
    for step in 1..=STEPS {
        simulation.step = step;
        simulation.act();
        simulation.check();
    }
    simulation.end();
    simulate(None);
    simulation.events
}

impl Simulation {
    fn new(seed: u64) -> Simulation {
        let mut random = Random::new(seed);
        let clock = Arc::new(AtomicU64::new(FIRST_TIME));
        let disk = Disk::default();
        let threads = 1 + random.index(3);
        let settings = Settings {
            threads: NonZeroUsize::new(threads).expect("one at least"),
            max_body: 20_000,
            monthly_quota: NonZeroU64::new([0, 3, 10][random.index(3)]),
            rate_limit: NonZeroU32::new([0, 5, 20][random.index(3)]),
            ..Settings::default()
        };
        let now = Instant::now();
        simulate(Some(now));
        let fetcher = Fetcher::new(&fetch::Settings::default()).expect("default settings");
        let service = start(&disk, &clock, &settings, &fetcher, now);
        let accounts = (0..3).map(|number| {
            let store = &service.state.store;
            let account = store.create_account(&format!("{number}@example.org"), None);
            let id = account.expect("a new account").id;
            Account {
                id,
                token: store.token(id).expect("it has one"),
                ended: HashMap::new(),
                is_uncertain: false,
            }
        });
        Simulation {
            accounts: accounts.collect(),
            random,
            now,
            began: now,
            clock,
            disk,
            settings,
            fetcher,
            service: Some(service),
            is_stopping: false,
            clients: Vec::new(),
            requests: Vec::new(),
            others: Vec::new(),
            history: History::default(),
            step: 0,
            fault: None,
            is_faulty: false,
            events: Vec::new(),
        }
    }

    fn front(&mut self) -> &mut SimulatedFront<HttpAdmission> {
        &mut self.service.as_mut().expect("it runs").front
    }

    fn state(&self) -> &AppState {
        &self.service.as_ref().expect("it runs").state
    }

    fn store(&self) -> Arc<Store> {
        Arc::clone(&self.state().store)
    }

    /// Does one thing that may happen.
    fn act(&mut self) {
        match self.random.below(1000) {
            0..80 => self.connect(),
            80..380 => self.send(),
            380..430 => self.widen(),
            430..440 => self.leave(),
            440..650 => self.pass(Duration::from_millis(20)),
            650..660 => self.pass(Duration::from_secs(12)),
            660..910 => self.work(),
            910..930 => self.reserve(),
            930..950 => self.give_back(),
            950..956 => self.break_disk(),
            956..981 => self.mend_disk(),
            981..987 => self.set_clock(),
            987..993 => self.rotate(),
            993..997 => self.kill(),
            _ => self.shut_down(),
        }
        self.receive();
    }

    /// A client sends one request or several: a new one, or one that has all its responses.
    fn connect(&mut self) {
        if self.is_stopping || self.requests.len() + 3 > MOST_REQUESTS {
            return;
        }
        let mut clients = self.clients.iter();
        let idle = clients.position(|client| client.open.is_empty() && client.to_send.is_empty());
        let index = match idle {
            Some(index) if self.random.below(4) > 0 => index,
            _ => {
                let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, self.random.byte() % 4));
                let window = [0, 100, 1 << 20][self.random.index(3)];
                let end = self.front().connect(address, window);
                self.clients.push(Client::new(end));
                self.note("connected", self.clients.len());
                self.clients.len() - 1
            }
        };
        for _ in 0..=self.random.below(3) {
            let (number, bytes) = self.request();
            self.clients[index].open.push_back(number);
            self.clients[index].to_send.extend(bytes);
        }
    }

    /// A new request: its number and its bytes.
    fn request(&mut self) -> (usize, Vec<u8>) {
        let number = self.requests.len();
        let account = self.random.index(self.accounts.len());
        let want = match self.random.below(20) {
            0 => Want::Damaged,
            1 => Want::Forged,
            2 => Want::History,
            3 => Want::Health,
            4 => Want::Noise,
            _ => Want::Conversion,
        };
        let token = match want {
            Want::Forged => "twp_forged".to_owned(),
            _ => self.accounts[account].token.clone(),
        };
        let bytes = match want {
            Want::Health => b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            Want::Noise => (0..40).map(|_| self.random.byte()).collect(),
            Want::History => client::history(&token),
            Want::Conversion | Want::Damaged | Want::Forged => {
                let (width, height) = size(number);
                let mut body = picture(width, height);
                if want == Want::Damaged {
                    body.truncate(40);
                }
                let is_expected = self.random.below(4) == 0;
                let chunk = (self.random.below(2) == 0).then(|| 1 + self.random.index(900));
                client::conversion(&token, &body, is_expected, chunk)
            }
        };
        let sent = Sent {
            want,
            account,
            token,
            begun: self.step,
            has_left: false,
        };
        self.requests.push(sent);
        (number, bytes)
    }

    /// Bytes of a client arrive.
    fn send(&mut self) {
        let Some(index) = self.any_client() else {
            return;
        };
        let most = [30, 500, 20_000][self.random.index(3)];
        let client = &mut self.clients[index];
        let count = (1 + self.random.index(most)).min(client.to_send.len());
        let bytes: Vec<u8> = client.to_send.drain(..count).collect();
        let end = client.end.clone();
        self.front().send(&end, &bytes);
    }

    /// The network takes more bytes for a client.
    fn widen(&mut self) {
        if let Some(index) = self.any_client() {
            let bytes = self.random.index(2000);
            let end = self.clients[index].end.clone();
            self.front().widen(&end, bytes);
        }
    }

    /// A client sends no more, or its connection breaks.
    fn leave(&mut self) {
        if let Some(index) = self.any_client() {
            let client = &mut self.clients[index];
            client.to_send.clear();
            for number in &client.open {
                self.requests[*number].has_left = true;
            }
            let end = client.end.clone();
            if self.random.below(2) == 0 {
                self.front().finish(&end);
            } else {
                self.front().reset(&end);
            }
        }
    }

    fn any_client(&mut self) -> Option<usize> {
        let count = self.clients.len();
        (count > 0).then(|| self.random.index(count))
    }

    /// Time passes, at most so much, and the event loop takes a turn.
    fn pass(&mut self, most: Duration) {
        let passed = Duration::from_millis(u64::from(self.random.below(most.as_millis() as u32)));
        self.now += passed;
        let milliseconds = passed.as_millis() as u64;
        self.clock.fetch_add(milliseconds, Ordering::Relaxed);
        self.turn();
    }

    /// A worker does a job.
    fn work(&mut self) {
        let jobs = self.front().jobs();
        if jobs > 0 {
            let waiting = self.state().memory.usage().waiting;
            let job = self.random.index(jobs);
            self.front().work(job);
            self.note("work", jobs * 100 + job);
            if self.state().memory.usage().waiting > waiting {
                self.note("waited", 0);
            }
        }
    }

    /// A conversion of somebody else takes memory.
    fn reserve(&mut self) {
        let need = Need {
            bytes: 1 + u64::from(self.random.below(MEMORY as u32)),
            is_small: self.random.below(4) > 0,
            seconds: 0.1,
        };
        let until = self.now + Duration::from_secs(30);
        let account = 1000 + self.random.below(3);
        let joined = (self.state().memory).join(account.into(), need, until, || {});
        if let Ok(reservation) = joined.expect("it can fit").take() {
            self.others.push(reservation);
        }
    }

    /// A conversion of somebody else ends.
    fn give_back(&mut self) {
        if !self.others.is_empty() {
            let index = self.random.index(self.others.len());
            drop(self.others.swap_remove(index));
        }
    }

    fn break_disk(&mut self) {
        self.is_faulty = true;
        if self.random.below(2) == 0 {
            self.disk.fill_up();
        } else {
            self.disk.break_after(self.random.index(30));
        }
        self.note("disk broken", 0);
    }

    fn mend_disk(&mut self) {
        self.disk.mend();
        self.disk.free_space();
        if std::mem::take(&mut self.is_faulty) {
            self.fault = Some(self.step);
            probe(&self.store());
            self.read_tokens();
        }
    }

    /// Finds out which tokens are valid after a fault.
    fn read_tokens(&mut self) {
        let store = self.store();
        for account in &mut self.accounts {
            let token = store.token(account.id);
            account.has_token(token.expect("it has one"), self.step);
            account.is_uncertain = false;
        }
    }

    /// The machine's clock is set, back or forward.
    fn set_clock(&mut self) {
        let hours = u64::from(self.random.below(72)) * 3_600_000;
        if self.random.below(2) == 0 {
            self.clock.fetch_add(hours, Ordering::Relaxed);
        } else {
            self.clock.fetch_sub(hours, Ordering::Relaxed);
        }
        self.note("clock set", 0);
    }

    /// An account gets a new token, and the old one ends at once.
    fn rotate(&mut self) {
        let index = self.random.index(self.accounts.len());
        let (store, account) = (self.store(), &mut self.accounts[index]);
        let rotated = store.rotate_token(account.id, TokenNumber::DEFAULT, Duration::ZERO);
        account.is_uncertain |= rotated.is_err();
        if let Ok(rotated) = rotated {
            account.has_token(
                store.token_text(account.id, &rotated.expect("it is there")),
                self.step,
            );
            self.note("rotated", index);
        }
    }

    /// The process is killed, perhaps within a commit.
    fn kill(&mut self) {
        self.disk.break_after(self.random.index(30));
        self.work();
        self.disk.break_after(0);
        self.note("killed", 0);
        self.restart();
    }

    fn shut_down(&mut self) {
        if !self.is_stopping {
            self.is_stopping = true;
            self.front().shut_down();
            self.note("shut down", 0);
        }
    }

    /// The process has ended, and another one starts.
    fn restart(&mut self) {
        self.others.clear();
        let Service { front, state } = self.service.take().expect("it runs");
        drop(front);
        self.receive();
        assert_eq!(Arc::strong_count(&state), 1, "somebody has the state still");
        drop(state);
        for client in &self.clients {
            assert!(client.end.is_dropped(), "a socket has outlived its process");
        }
        self.clients.clear();
        self.disk.mend();
        self.disk.free_space();
        self.is_faulty = false;
        self.fault = Some(self.step);
        self.is_stopping = false;
        let service = start(
            &self.disk,
            &self.clock,
            &self.settings,
            &self.fetcher,
            self.now,
        );
        self.service = Some(service);
        self.read_tokens();
        self.check_history();
    }

    /// Clients read what has arrived.
    fn receive(&mut self) {
        let mut clients = std::mem::take(&mut self.clients);
        for client in &mut clients {
            while let Some(received) = client.receive() {
                let number = client.open.pop_front();
                self.answered(number.expect("a response to a request"), &received);
            }
        }
        clients.retain(|client| !client.end.is_over());
        self.clients = clients;
    }

    /// Whether a response with this status and text is right for this request.
    fn may_get(&self, sent: &Sent, status: u16, text: &str) -> bool {
        let owner = &self.accounts[sent.account];
        let ended = owner.ended.get(&sent.token);
        match (&sent.want, status) {
            // While a disk fails, and before that is known, it cannot be read.
            (_, 500) => self.is_faulty || self.fault.is_some_and(|fault| fault >= sent.begun),
            (Want::Conversion | Want::History, 401) => {
                owner.is_uncertain || sent.token != owner.token
            }
            (Want::Conversion | Want::History, 200) => ended.is_none_or(|it| sent.begun <= *it),
            (Want::Conversion, 400) => sent.has_left && text.contains("body_cut_short"),
            (Want::Conversion | Want::Damaged, 499) => sent.has_left,
            other => matches!(
                other,
                (_, 408 | 503)
                    | (Want::Conversion | Want::Damaged, 429)
                    | (Want::Damaged, 400 | 401 | 422)
                    | (Want::Forged, 401)
                    | (Want::Health, 200)
                    | (Want::Noise, 400 | 405 | 414 | 431 | 501 | 505)
            ),
        }
    }

    /// Looks at a response to this request.
    fn answered(&mut self, number: usize, received: &Received) {
        let Received { status, body, .. } = received;
        let text = String::from_utf8_lossy(body).into_owned();
        let sent = &self.requests[number];
        assert!(
            self.may_get(sent, *status, &text),
            "step {}, request {number} ({:?}) begun at {}: {status} {text}",
            self.step,
            sent.want,
            sent.begun
        );
        let (want, account) = (sent.want.clone(), sent.account);
        if want == Want::Conversion && *status == 200 {
            assert_eq!(
                received.size(),
                size(number),
                "the response is to another request"
            );
            let id = received.header("x-request-id").expect("it has a name");
            self.history.answered(account, number, id);
        }
        let what = match status {
            200 => "200",
            401 => "401",
            408 => "408",
            429 => "429",
            500 => "500",
            503 => "503",
            _ => "other statuses",
        };
        self.note(what, number);
    }

    /// Checks what has to hold at all times.
    fn check(&mut self) {
        let memory = self.state().memory.usage();
        assert!(memory.reserved <= memory.total, "{memory:?}");
        let (held, total) = self.front().held();
        // One read of a socket may come on top.
        assert!(held <= total + (64 << 10), "{held} of {total} bytes");
    }

    /// Checks the history of each account.
    fn check_history(&self) {
        let store = &*self.store();
        let accounts: Vec<AccountId> = self.accounts.iter().map(|account| account.id).collect();
        let quota = self.settings.monthly_quota.map(NonZeroU64::get);
        self.history.check(store, &accounts, quota);
        if let Some(rate) = self.settings.rate_limit {
            let minutes = 1 + (self.now - self.began).as_secs() / 60;
            let ends = self.events.iter();
            let ends = ends.filter(|(_, what, _)| matches!(*what, "killed" | "shut down"));
            let most = u64::from(rate.get()) * (minutes + 1 + ends.count() as u64);
            for index in 0..accounts.len() {
                let answered = self.history.count(index) as u64;
                assert!(answered <= most, "{answered} conversions, {most} allowed");
            }
        }
    }

    /// Lets everything come to its end.
    fn end(&mut self) {
        self.mend_disk();
        self.others.clear();
        for _ in 0..100 {
            self.go_on();
        }
        // Nothing is in the way of what has arrived, so that it waits for no time.
        let [_, working, waiting, _] = self.front().counts();
        let memory = self.state().memory.usage();
        assert_eq!(
            (working, waiting, memory.running, memory.waiting),
            (0, 0, 0, 0),
            "a request waits for nothing"
        );
        let mut rounds = 0;
        while self.front().counts() != [0; 4] {
            let due = self.front().next_deadline();
            self.now = self.now.max(due.unwrap_or(self.now)) + Duration::from_millis(1);
            self.go_on();
            rounds += 1;
            assert!(rounds < 1000, "connections or timers never end");
        }
        assert!(self.clients.is_empty(), "a client waits for ever");
        assert_eq!(self.front().held().0, 0, "bytes are held for nobody");
        let memory = self.state().memory.usage();
        assert_eq!(
            (memory.reserved, memory.running, memory.waiting),
            (0, 0, 0),
            "{memory:?}"
        );
        self.check_history();
        let findings = self.store().snapshot().unwrap().check().unwrap();
        assert_eq!(findings.problems, Vec::<String>::new());
    }

    /// Everybody does what there is to do, except that no client sends more.
    fn go_on(&mut self) {
        while self.front().jobs() > 0 {
            self.front().work(0);
        }
        for index in 0..self.clients.len() {
            let end = self.clients[index].end.clone();
            self.front().widen(&end, 1 << 20);
        }
        self.turn();
        self.receive();
    }

    /// The event loop takes a turn.
    fn turn(&mut self) {
        let now = self.now;
        simulate(Some(now));
        let is_over = self.front().turn(now);
        let [connections, working, waiting, timers] = self.front().counts();
        self.note(
            "turn",
            connections + 100 * (working + 100 * (waiting + 100 * timers)),
        );
        if self.is_stopping && is_over {
            self.restart();
        }
    }

    fn note(&mut self, what: &'static str, number: usize) {
        self.events.push((self.step, what, number as u64));
    }
}

impl Account {
    /// From this step on its token is this one.
    fn has_token(&mut self, token: String, step: usize) {
        assert!(!self.ended.contains_key(&token), "an old token is back");
        if token != self.token {
            self.ended
                .insert(std::mem::replace(&mut self.token, token), step);
        }
    }
}

/// The size of the picture of this request, which no other one has.
fn size(number: usize) -> (u32, u32) {
    (1 + number as u32 % 40, 1 + number as u32 / 40)
}

/// Starts a service on this disk.
fn start(
    disk: &Disk,
    clock: &Arc<AtomicU64>,
    settings: &Settings,
    fetcher: &Fetcher,
    now: Instant,
) -> Service {
    let clock = Arc::clone(clock);
    let time =
        move || -> SystemTime { UNIX_EPOCH + Duration::from_millis(clock.load(Ordering::Relaxed)) };
    let threads = settings.threads.get();
    let state = Arc::new(AppState {
        store: Arc::new(store_at(disk, time)),
        fetcher: fetcher.clone(),
        fonts: Fonts::default(),
        limits: image::Limits::default(),
        cpu_budget: CpuBudget::new(NonZeroUsize::MIN),
        memory: MemoryBudget::new(MEMORY, threads),
        limiters: Limiters::new(settings),
        readiness: Readiness::default(),
        metrics: Metrics::default(),
        // It takes longer to make than everything else, and no client wants it.
        openapi: Asset::new("application/json", "{}"),
        settings: settings.clone(),
    });
    let front_settings = front::Settings {
        connections: 8,
        connections_per_address: 4,
        buffer: 64 << 10,
        ..front::Settings::default()
    };
    let admission = HttpAdmission(Arc::clone(&state));
    let front = SimulatedFront::new([threads + 2, 2, 1], front_settings, admission, now);
    Service { front, state }
}
