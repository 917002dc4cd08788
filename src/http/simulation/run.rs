//! One run: the events that may happen, and the checks that hold whatever happens.

use super::client::{self, Client, Received, Want, picture};
use super::history::History;
use super::service::{Database, MEMORY, Machines, Service};
use crate::admission::{Need, Reservation};
use crate::http::Settings;
use crate::store::monotonic::simulate;
use crate::store::tests::disk::Disk;
use crate::store::tests::probe;
use crate::store::{AccountId, Restrictions, Store, TokenNumber};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, UNIX_EPOCH};
use towebp_encoder::testing::Random;

/// The steps of a run, before everything is brought to its end.
const STEPS: usize = 500;

/// Most requests of a run; by their sizes, requests and responses belong together.
const MOST_REQUESTS: usize = 80;

/// After this time, changes of tokens are in force on all servers.
const IN_FORCE: Duration = Duration::from_millis(1100);

/// The time of the first clock, in milliseconds since the epoch: half a minute before a new month.
const FIRST_TIME: u64 = 1_796_083_200_000 - 30_000;

/// A run.
struct Simulation {
    random: Random,
    /// The time that is simulated.
    now: Instant,
    began: Instant,
    machines: Machines,
    /// The servers; `None` between the end of a process and the start of the next.
    services: Vec<Option<Service>>,
    accounts: Vec<Account>,
    clients: Vec<Client>,
    requests: Vec<Sent>,
    /// Memory that conversions beside those of the clients have, with the server.
    others: Vec<(usize, Reservation)>,
    history: History,
    step: usize,
    /// The last step at which the database had a fault.
    fault: Option<usize>,
    is_faulty: bool,
    /// The events so far: each has its step, its name, and a number that belongs to it.
    events: Vec<Event>,
}

pub type Event = (usize, &'static str, u64);

/// An account.
#[derive(Debug)]
struct Account {
    id: AccountId,
    token: String,
    /// Tokens that are certainly invalid, with the step since which they are.
    ended: HashMap<String, usize>,
    /// Whether its last change may be in force or not.
    is_uncertain: bool,
    /// The step since which the operator has disabled it.
    disabled: Option<usize>,
    /// The last step at which it may have been disabled.
    was_disabled: Option<usize>,
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
    /// The status of its response, once the client has it.
    status: Option<u16>,
}

/// One run. Returns its events.
pub fn run(seed: u64) -> Vec<Event> {
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
        let settings = Settings {
            threads: NonZeroUsize::new(1 + random.index(3)).expect("one at least"),
            max_body: 20_000,
            monthly_quota: NonZeroU64::new([0, 3, 10][random.index(3)]),
            rate_limit: NonZeroU32::new([0, 5, 20][random.index(3)]),
            ..Settings::default()
        };
        let servers = 1 + random.index(2);
        let database = match servers {
            1 => Database::File(Disk::default()),
            _ => Database::Shared(Arc::default()),
        };
        // Ahead of the machine, whose time the threads of the store go by.
        let now = Instant::now() + Duration::from_hours(1);
        simulate(Some(now));
        let machines = Machines::new(database, FIRST_TIME, settings);
        let services: Vec<_> = (0..servers).map(|_| Some(machines.start(now))).collect();
        let mut simulation = Simulation {
            random,
            now,
            began: now,
            machines,
            services,
            accounts: Vec::new(),
            clients: Vec::new(),
            requests: Vec::new(),
            others: Vec::new(),
            history: History::default(),
            step: 0,
            fault: None,
            is_faulty: false,
            events: Vec::new(),
        };
        for number in 0..3 {
            let store = simulation.store(0);
            let account = store.create_account(&format!("{number}@example.org"), None);
            let id = account.expect("a new account").id;
            simulation.accounts.push(Account {
                id,
                token: store.token(id).expect("it has one"),
                ended: HashMap::new(),
                is_uncertain: false,
                disabled: None,
                was_disabled: None,
            });
        }
        simulation
    }

    fn service(&mut self, server: usize) -> &mut Service {
        self.services[server].as_mut().expect("it runs")
    }

    fn store(&self, server: usize) -> Arc<Store> {
        let service = self.services[server].as_ref().expect("it runs");
        Arc::clone(&service.state.store)
    }

    fn any_server(&mut self) -> usize {
        self.random.index(self.services.len())
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
            660..910 => {
                let server = self.any_server();
                self.work(server);
            }
            910..930 => self.reserve(),
            930..950 => self.give_back(),
            950..956 => self.break_database(),
            956..981 => self.mend_database(),
            981..987 => self.set_clock(),
            987..991 => self.rotate(),
            991..993 => self.restrict(),
            993..997 => self.kill(),
            _ => self.shut_down(),
        }
        self.receive();
    }

    /// A client sends one request or several: a new one, or one that has all its responses.
    fn connect(&mut self) {
        let server = self.any_server();
        if self.service(server).is_stopping || self.requests.len() + 3 > MOST_REQUESTS {
            return;
        }
        let idle = self.clients.iter().position(Client::is_idle);
        let index = match idle {
            Some(index) if self.random.below(4) > 0 => index,
            _ => {
                let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, self.random.byte() % 4));
                let window = [0, 100, 1 << 20][self.random.index(3)];
                let end = self.service(server).front.connect(address, window);
                self.clients.push(Client::new(server, end));
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

    /// A new request of any kind: its number and its bytes.
    fn request(&mut self) -> (usize, Vec<u8>) {
        let want = match self.random.below(20) {
            0 => Want::Damaged,
            1 => Want::Forged,
            2 => Want::History,
            3 => Want::Health,
            4 => Want::Noise,
            _ => Want::Conversion,
        };
        self.request_of(want)
    }

    fn request_of(&mut self, want: Want) -> (usize, Vec<u8>) {
        let number = self.requests.len();
        let account = self.random.index(self.accounts.len());
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
                let is_form = self.random.below(4) == 0;
                client::conversion(&token, body, is_form, is_expected, chunk)
            }
        };
        let sent = Sent {
            want,
            account,
            token,
            begun: self.step,
            has_left: false,
            status: None,
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
        let (server, end) = (client.server, client.end.clone());
        self.service(server).front.send(&end, &bytes);
    }

    /// The network takes more bytes for a client.
    fn widen(&mut self) {
        if let Some(index) = self.any_client() {
            let bytes = self.random.index(2000);
            self.widen_by(index, bytes);
        }
    }

    /// A client sends no more, or its connection breaks.
    fn leave(&mut self) {
        if let Some(index) = self.any_client() {
            let client = &mut self.clients[index];
            client.to_send.clear();
            client.has_left = true;
            for number in &client.open {
                self.requests[*number].has_left = true;
            }
            let (server, end) = (client.server, client.end.clone());
            if self.random.below(2) == 0 {
                self.service(server).front.finish(&end);
            } else {
                self.service(server).front.reset(&end);
            }
        }
    }

    fn any_client(&mut self) -> Option<usize> {
        let count = self.clients.len();
        (count > 0).then(|| self.random.index(count))
    }

    /// Time passes, at most so much, and the event loops take a turn.
    fn pass(&mut self, most: Duration) {
        let milliseconds = self.random.below(most.as_millis() as u32);
        self.pass_by(Duration::from_millis(milliseconds.into()));
    }

    fn pass_by(&mut self, time: Duration) {
        self.now += time;
        simulate(Some(self.now));
        let milliseconds = time.as_millis() as u64;
        self.machines
            .clock
            .fetch_add(milliseconds, Ordering::Relaxed);
        self.turn();
    }

    /// A worker does a job.
    fn work(&mut self, server: usize) {
        let jobs = self.service(server).front.jobs();
        if jobs > 0 {
            let job = self.random.index(jobs);
            let service = self.service(server);
            let waiting = service.state.memory.usage().waiting;
            service.front.work(job);
            if service.state.memory.usage().waiting > waiting {
                self.note("waited", job);
            }
            self.note("work", job);
        }
    }

    /// A conversion of somebody else takes memory.
    fn reserve(&mut self) {
        let server = self.any_server();
        let need = Need {
            bytes: 1 + u64::from(self.random.below(MEMORY as u32)),
            is_small: self.random.below(4) > 0,
            seconds: 0.1,
        };
        let until = self.now + Duration::from_secs(30);
        let account = 1000 + self.random.below(3);
        let memory = &self.service(server).state.memory;
        let joined = memory.join(account.into(), need, until, || {});
        if let Ok(reservation) = joined.expect("it can fit").take() {
            self.others.push((server, reservation));
        }
    }

    /// A conversion of somebody else ends.
    fn give_back(&mut self) {
        if !self.others.is_empty() {
            let index = self.random.index(self.others.len());
            drop(self.others.swap_remove(index));
        }
    }

    fn break_database(&mut self) {
        self.is_faulty = true;
        if self.random.below(2) == 0 {
            self.machines.database.stop();
        } else {
            let operations = self.random.index(30);
            self.machines.database.break_after(operations);
        }
        self.note("database broken", 0);
    }

    fn mend_database(&mut self) {
        self.machines.database.mend();
        if std::mem::take(&mut self.is_faulty) {
            self.fault = Some(self.step);
            for server in 0..self.services.len() {
                probe(&self.store(server));
            }
            self.read_tokens();
        }
    }

    /// Finds out which tokens are valid after a fault, once they are for all servers.
    fn read_tokens(&mut self) {
        if self.services.len() > 1 {
            self.pass_by(IN_FORCE);
        }
        let store = self.store(0);
        for account in &mut self.accounts {
            let token = store.token(account.id);
            account.has_token(token.expect("it has one"), self.step);
            let restrictions = store.restrictions(account.id).unwrap();
            let disabled = restrictions.expect("it exists").disabled;
            account.is_disabled(disabled.is_some(), self.step);
            account.is_uncertain = false;
        }
    }

    /// The clock is set, back or forward.
    fn set_clock(&mut self) {
        let hours = u64::from(self.random.below(72)) * 3_600_000;
        let clock = &self.machines.clock;
        if self.random.below(2) == 0 {
            clock.fetch_add(hours, Ordering::Relaxed);
        } else {
            clock.fetch_sub(hours, Ordering::Relaxed);
        }
        self.note("clock set", hours as usize);
    }

    /// An account gets a new token, and the old one ends once the change is in force.
    fn rotate(&mut self) {
        let index = self.random.index(self.accounts.len());
        let token = self.change(index, |store, id| {
            let rotated = store.rotate_token(id, TokenNumber::DEFAULT, Duration::ZERO);
            Some(store.token_text(id, &rotated.ok()?.expect("it is there")))
        });
        if let Some(token) = token {
            self.accounts[index].has_token(token, self.step);
            self.note("rotated", index);
        }
    }

    /// The operator disables an account, or enables it again.
    fn restrict(&mut self) {
        let index = self.random.index(self.accounts.len());
        let is_disabled = self.accounts[index].disabled.is_none();
        let restrictions = Restrictions {
            disabled: is_disabled.then_some(UNIX_EPOCH),
            ..Restrictions::default()
        };
        let changed = self.change(index, |store, id| store.restrict(id, restrictions).ok());
        if changed.is_some() {
            self.accounts[index].is_disabled(is_disabled, self.step);
            self.note("restricted", index);
        }
    }

    /// Changes an account by one of the servers, and waits until the change is in force. Until then
    /// servers may differ, and after a failure nobody knows.
    fn change<T>(
        &mut self,
        index: usize,
        change: impl FnOnce(&Store, AccountId) -> Option<T>,
    ) -> Option<T> {
        let server = self.any_server();
        let store = self.store(server);
        let was_uncertain = std::mem::replace(&mut self.accounts[index].is_uncertain, true);
        let changed = change(&store, self.accounts[index].id)?;
        if let Some(at) = store.in_force_at() {
            drop(store);
            self.pass_by(at.saturating_duration_since(self.now));
        }
        self.accounts[index].is_uncertain = was_uncertain;
        Some(changed)
    }

    /// A process is killed, perhaps within a commit.
    fn kill(&mut self) {
        let (server, operations) = (self.any_server(), self.random.index(30));
        self.machines.database.break_after(operations);
        self.work(server);
        self.machines.database.break_after(0);
        self.note("killed", server);
        self.restart(server);
    }

    fn shut_down(&mut self) {
        let server = self.any_server();
        let service = self.service(server);
        if !service.is_stopping {
            service.is_stopping = true;
            service.front.shut_down();
            self.note("shut down", server);
        }
    }

    /// A process has ended, and another one starts.
    fn restart(&mut self, server: usize) {
        self.others.retain(|(of, _)| *of != server);
        self.services[server].take().expect("it ran").end();
        self.receive();
        for client in &self.clients {
            assert!(client.server != server, "a socket has outlived its process");
        }
        self.machines.database.mend();
        self.services[server] = Some(self.machines.start(self.now));
        self.is_faulty = true;
        self.mend_database();
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
            (Want::Conversion | Want::Damaged | Want::History, 403) => {
                let was_disabled = owner.was_disabled.is_some_and(|step| step >= sent.begun);
                owner.is_uncertain || owner.disabled.is_some() || was_disabled
            }
            (Want::Conversion, 200) => {
                let disabled = owner.disabled.is_some_and(|since| since < sent.begun);
                (owner.is_uncertain || !disabled) && ended.is_none_or(|it| sent.begun <= *it)
            }
            (Want::History, 200) => ended.is_none_or(|it| sent.begun <= *it),
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
            "step {}, request {number} ({:?}) begun at {}: {status} {text:?}\n{:?}",
            self.step,
            sent.want,
            sent.begun,
            self.accounts[sent.account]
        );
        let (want, account) = (sent.want, sent.account);
        self.requests[number].status = Some(*status);
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
        for service in self.services.iter().flatten() {
            let memory = service.state.memory.usage();
            assert!(memory.reserved <= memory.total, "{memory:?}");
            let (held, total) = service.front.held();
            // One read of a socket may come on top.
            assert!(held <= total + (64 << 10), "{held} of {total} bytes");
        }
    }

    /// Checks the history of each account.
    fn check_history(&self) {
        let accounts: Vec<AccountId> = self.accounts.iter().map(|account| account.id).collect();
        let Settings {
            monthly_quota,
            rate_limit,
            ..
        } = self.machines.settings;
        let quota = monthly_quota.map(NonZeroU64::get);
        self.history.check(&self.store(0), &accounts, quota);
        if let Some(rate) = rate_limit {
            let minutes = 1 + (self.now - self.began).as_secs() / 60;
            let ends = self.events.iter();
            let ends = ends.filter(|(_, what, _)| matches!(*what, "killed" | "shut down"));
            let starts = self.services.len() + ends.count();
            let most = u64::from(rate.get()) * (minutes + starts as u64);
            for index in 0..accounts.len() {
                let answered = self.history.count(index) as u64;
                assert!(answered <= most, "{answered} conversions, {most} allowed");
            }
        }
    }

    /// Lets everything come to its end.
    fn end(&mut self) {
        self.mend_database();
        self.others.clear();
        for _ in 0..100 {
            self.go_on();
        }
        // Nothing is in the way of what has arrived, so that it waits for no time.
        for service in self.services.iter().flatten() {
            let [_, working, waiting, _] = service.front.counts();
            let memory = service.state.memory.usage();
            assert_eq!(
                (working, waiting, memory.running, memory.waiting),
                (0, 0, 0, 0),
                "a request waits for nothing: {:?}",
                service.state.memory
            );
        }
        for rounds in 0.. {
            let services = self.services.iter().flatten();
            if services.clone().all(|it| it.front.counts() == [0; 4]) {
                break;
            }
            assert!(rounds < 1000, "connections or timers never end");
            let due = services.filter_map(|service| service.front.next_deadline());
            let due = due.min().unwrap_or(self.now);
            self.now = self.now.max(due) + Duration::from_millis(1);
            self.go_on();
        }
        assert!(self.clients.is_empty(), "a client waits for ever");
        for service in self.services.iter().flatten() {
            assert_eq!(service.front.held().0, 0, "bytes are held for nobody");
            let memory = service.state.memory.usage();
            let (reserved, running) = (memory.reserved, memory.running);
            assert_eq!((reserved, running), (0, 0), "memory is held for nobody");
        }
        for server in 0..self.services.len() {
            self.check_service(server);
        }
        self.check_history();
        let findings = self.store(0).snapshot().unwrap().check().unwrap();
        assert_eq!(findings.problems, Vec::<String>::new());
    }

    /// Checks that a server does its work, now that nothing is in its way.
    fn check_service(&mut self, server: usize) {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let end = self.service(server).front.connect(address, 1 << 20);
        let (number, bytes) = self.request_of(Want::Conversion);
        let mut client = Client::new(server, end.clone());
        client.open.push_back(number);
        self.clients.push(client);
        self.service(server).front.send(&end, &bytes);
        for _ in 0..3 {
            self.go_on();
        }
        let status = self.requests[number].status;
        assert!(matches!(status, Some(200 | 403 | 429)), "{status:?}");
    }

    /// Everybody does what there is to do, except that no client sends more.
    fn go_on(&mut self) {
        for service in self.services.iter_mut().flatten() {
            while service.front.jobs() > 0 {
                service.front.work(0);
            }
        }
        for index in 0..self.clients.len() {
            self.widen_by(index, 1 << 20);
        }
        self.turn();
        self.receive();
    }

    fn widen_by(&mut self, client: usize, bytes: usize) {
        let Client { server, end, .. } = &self.clients[client];
        let (server, end) = (*server, end.clone());
        self.service(server).front.widen(&end, bytes);
    }

    /// The event loops take a turn.
    fn turn(&mut self) {
        let now = self.now;
        simulate(Some(now));
        for server in 0..self.services.len() {
            let service = self.service(server);
            let is_over = service.front.turn(now);
            let has_ended = service.is_stopping && is_over;
            let counts = service.front.counts();
            let number = counts.iter().fold(0, |number, count| 100 * number + count);
            self.note("turn", number);
            if has_ended {
                self.restart(server);
            }
        }
    }

    fn note(&mut self, what: &'static str, number: usize) {
        self.events.push((self.step, what, number as u64));
    }
}

impl Account {
    /// From this step on it is disabled or not.
    fn is_disabled(&mut self, is_disabled: bool, step: usize) {
        if is_disabled {
            self.disabled.get_or_insert(step);
        } else if self.disabled.take().is_some() || self.is_uncertain {
            self.was_disabled = Some(step);
        }
    }

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
pub fn size(number: usize) -> (u32, u32) {
    (1 + number as u32 % 40, 1 + number as u32 / 40)
}
