//! The door's thread: waits for every socket at once, asks connections to go on, and deals with what concerns more than
//! one of them: who may come in ([`entry`]), the queue for workers ([`work`]), the end ([`closing`]), memory and timers.

mod closing;
mod entry;
mod work;

use super::admitted::{Admitted, Owner, Pool, Woken};
use super::answer::Answer;
use super::backend::Slot;
use super::clients::Clients;
use super::connection::{Connection, Stage, Step};
use super::crowd::{Crowd, Load};
use super::forwarded::client;
use super::head::Head;
use super::held::{Held, Share};
use super::lane::Lane;
use super::limits::Limits;
use super::pulse::Pulse;
use super::refusal::Refusal;
use super::slab::{Key, Slab};
use super::stop::Stop;
use super::{Behind, Door, Framing};
use crate::admission::ConnectionCounts;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Waker};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Kinds of sources that stay.
const LISTENER: u32 = 0;
const SLOT: u32 = 1;
const STOP: u32 = 2;

/// Read from a socket at once.
const SCRATCH: usize = 64 << 10;

/// Steps of one connection before others have their turn.
const STEPS: usize = 16;

/// All that the door's thread has.
pub struct Watch<B> {
    poll: Poll,
    listeners: Vec<TcpListener>,
    limits: Limits,
    behind: B,
    clients: Arc<Clients>,
    connections: Slab<Connection>,
    addresses: ConnectionCounts,
    /// Connections that are told that there are too many.
    told: usize,
    slots: Vec<Slot>,
    /// Slots that are lost: an error of our own.
    lost: usize,
    /// By the number of their pool.
    lanes: [Lane; Pool::ALL.len()],
    /// What connections and slots hold.
    held: Held,
    timers: BTreeSet<(Instant, Key)>,
    /// Connections that have more to do than their turn allowed.
    unfinished: Vec<Key>,
    /// When to accept again, if there may be more.
    accept_at: Option<Instant>,
    /// Whether the last attempt failed, which was logged.
    is_starved: bool,
    stop: Stop,
    woken: Woken,
    pulse: Pulse,
    crowd: Crowd,
    /// Once it was asked to close: when the last requests must have ended.
    closes_at: Option<Instant>,
    scratch: Box<[u8]>,
    now: Instant,
}

impl<B: Behind> Watch<B> {
    /// Registers all sockets.
    ///
    /// # Errors
    /// The system has no more of something.
    pub fn new(door: Door, slots: Vec<Slot>, behind: B) -> io::Result<Watch<B>> {
        let Door {
            listeners,
            mut limits,
            clients,
            ..
        } = door;
        limits.connections = entry::within_descriptors(limits.connections, slots.len());
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), Key::fixed(STOP, 0).token())?);
        let mut watch = Watch {
            poll,
            listeners: Vec::new(),
            limits,
            behind,
            clients,
            connections: Slab::new(),
            addresses: ConnectionCounts::default(),
            told: 0,
            slots,
            lost: 0,
            lanes: Default::default(),
            held: Held::default(),
            timers: BTreeSet::new(),
            unfinished: Vec::new(),
            accept_at: None,
            is_starved: false,
            stop: Stop::new(Arc::clone(&waker)),
            woken: Woken::new(Arc::clone(&waker)),
            pulse: Pulse::new(waker),
            crowd: Crowd::default(),
            closes_at: None,
            scratch: vec![0; SCRATCH].into_boxed_slice(),
            now: Instant::now(),
        };
        for (index, listener) in listeners.into_iter().enumerate() {
            listener.set_nonblocking(true)?;
            let mut listener = TcpListener::from_std(listener);
            let token = Key::fixed(LISTENER, index).token();
            watch
                .poll
                .registry()
                .register(&mut listener, token, Interest::READABLE)?;
            watch.listeners.push(listener);
        }
        for (index, slot) in watch.slots.iter_mut().enumerate() {
            let token = Key::fixed(SLOT, index).token();
            let interest = Interest::READABLE | Interest::WRITABLE;
            watch
                .poll
                .registry()
                .register(slot.stream(), token, interest)?;
        }
        Ok(watch)
    }

    /// Ends what [`Watch::run`] does.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Beats as [`Watch::run`] goes round.
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// Tells how busy [`Watch::run`] is.
    pub fn crowd(&self) -> Crowd {
        self.crowd.clone()
    }

    /// Works until it is asked to stop.
    ///
    /// # Errors
    /// Why it cannot go on.
    pub fn run(mut self) -> Result<(), String> {
        let mut events = Events::with_capacity(256);
        loop {
            match self.poll.poll(&mut events, self.time_to_wait()) {
                Err(error) if error.kind() != ErrorKind::Interrupted => {
                    return Err(format!("sockets cannot be waited for: {error}"));
                }
                _ => self.now = Instant::now(),
            }
            self.pulse.beat();
            for event in &events {
                let key = Key::from(event.token());
                match key.as_fixed() {
                    Some((LISTENER, _)) => self.accept_at = Some(self.now),
                    Some((STOP, _)) => {}
                    Some((_, slot)) => self.drive_slot(slot),
                    None => {
                        if event.is_read_closed() {
                            self.input_closed(key);
                        }
                        if event.is_error() || (event.is_write_closed() && !self.lingers(key)) {
                            self.close(key);
                        } else {
                            self.drive(key);
                        }
                    }
                }
            }
            for key in self.woken.take() {
                self.prepare_again(key);
            }
            for key in std::mem::take(&mut self.unfinished) {
                self.drive(key);
            }
            if self.accept_at.is_some_and(|at| at <= self.now) {
                self.accept_at = None;
                self.accept();
            }
            self.expire();
            self.crowd.tell(self.load());
            if self.lost == self.slots.len() {
                return Err(
                    "every connection to the HTTP server behind the door is lost".to_owned(),
                );
            }
            if self.stop.is_asked() && self.is_closed() {
                return Ok(());
            }
        }
    }

    fn load(&self) -> Load {
        let working = self.slots.iter().filter(|slot| slot.work.is_some());
        Load {
            connections: self.connections.len(),
            waiting: self.lanes.iter().map(Lane::len).sum(),
            working: working.count(),
            held: self.held.all(),
        }
    }

    fn time_to_wait(&self) -> Option<Duration> {
        if !self.unfinished.is_empty() {
            return Some(Duration::ZERO);
        }
        let timer = self.timers.first().map(|(at, _)| *at);
        let others = self.accept_at.into_iter().chain(self.closes_at);
        let next = timer.into_iter().chain(others).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Lets it go on as far as it can.
    fn drive(&mut self, key: Key) {
        for _ in 0..STEPS {
            let Some(connection) = self.connections.get_mut(key) else {
                return;
            };
            let budget = self.limits.buffer;
            let has_room =
                self.held.all() < budget && !self.held.is_over_its_part(connection.counted, budget);
            let step = connection.step(&mut self.scratch, &self.limits, has_room, self.now);
            if !self.follow(key, step) {
                return self.settle(key);
            }
            self.settle(key);
            self.bound_heads(key);
        }
        self.unfinished.push(key);
    }

    /// Does what the connection asked for; says whether it can go on.
    fn follow(&mut self, key: Key, step: Step) -> bool {
        match step {
            Step::Wait => false,
            Step::Again => true,
            Step::Head(head) => self.admit(key, *head),
            Step::Whole => self.prepare(key),
            Step::Refuse(refusal) => self.refuse(key, refusal, None),
            Step::Room => {
                let owner = self.over_its_part(key);
                if self.make_room(owner) {
                    return true;
                }
                let busy = self.busy(Pool::Conversions);
                self.refuse(key, busy, None)
            }
            Step::Close => {
                self.close(key);
                false
            }
        }
    }

    fn admit(&mut self, key: Key, head: Head) -> bool {
        let Some(client) = self.client(key, Some(&head)) else {
            return false;
        };
        let admitted = catch_unwind(AssertUnwindSafe(|| self.behind.admit(&head, client)));
        let admitted = match admitted {
            Ok(Ok(admitted)) => admitted,
            Ok(Err(answer)) => return self.answer(key, &answer, Some(&head)),
            Err(_) => return self.refuse(key, Refusal::Broken, Some(&head)),
        };
        let limit = admitted.body_limit;
        if let Framing::Length(length) = head.framing
            && length > limit
        {
            return self.refuse(key, Refusal::BodyTooLarge { limit }, Some(&head));
        }
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        let step = connection.take_body(head, client, admitted, &self.limits, self.now);
        self.follow(key, step)
    }

    /// Whose connection or request it is; `None` if the connection has ended.
    fn client(&mut self, key: Key, head: Option<&Head>) -> Option<IpAddr> {
        let peer = self.connections.get_mut(key)?.peer;
        let headers = head.map_or(&[][..], |head| &head.headers);
        let forwarded = headers.iter().filter(|(name, _)| name == "x-forwarded-for");
        let forwarded = forwarded.map(|(_, value)| value.as_str());
        Some(client(peer, forwarded, &self.limits.trusted_proxies))
    }

    fn refuse(&mut self, key: Key, refusal: Refusal, head: Option<&Head>) -> bool {
        let connection = self.connections.get_mut(key);
        if connection.is_some_and(|connection| connection.is_in_parts()) {
            // A part of the answer was sent: nothing else can be said than that it breaks off.
            self.close(key);
            return false;
        }
        let Some(client) = self.client(key, head) else {
            return false;
        };
        let worded = catch_unwind(AssertUnwindSafe(|| {
            self.behind.refuse(refusal, head, client)
        }));
        if let Ok(answer) = worded {
            return self.answer(key, &answer, head);
        }
        self.close(key);
        false
    }

    fn answer(&mut self, key: Key, answer: &Answer, head: Option<&Head>) -> bool {
        let Some(connection) = self.connections.get_mut(key) else {
            return false;
        };
        let queued = match &connection.stage {
            Stage::Queued { request, .. } => Some(&request.admitted),
            _ => None,
        };
        if let Some(admitted) = queued {
            self.lanes[admitted.pool as usize].remove(admitted.owner, key);
        }
        let step = connection.refuse(answer, head, &self.limits, self.now);
        self.follow(key, step)
    }

    /// The client has closed its sending side. Most such clients have gone away altogether; which ones have not, only
    /// writing to them would tell.
    fn input_closed(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        connection.input_closed = true;
        match &connection.stage {
            Stage::Working { slot } => self.clients.leave(*slot),
            // A conversion costs too much to be done for nobody.
            Stage::Queued { request, .. } if request.admitted.pool == Pool::Conversions => {
                self.refuse(key, Refusal::ClientGone, None);
            }
            _ => {}
        }
    }

    /// Whether our own side is closed: then the client's closing is no news, and what it sent before is to be read, since
    /// closing a socket with unread bytes resets the connection.
    fn lingers(&mut self, key: Key) -> bool {
        let connection = self.connections.get_mut(key);
        connection.is_some_and(|connection| matches!(connection.stage, Stage::Lingering { .. }))
    }

    fn close(&mut self, key: Key) {
        let Some(connection) = self.connections.remove(key) else {
            return;
        };
        self.held.replace(connection.counted, Share::default());
        if let Some(deadline) = connection.deadline {
            self.timers.remove(&(deadline, key));
        }
        if connection.is_in {
            self.addresses.remove(connection.peer);
        } else {
            self.told -= 1;
        }
        match connection.stage {
            Stage::Queued { request, .. } => {
                let Admitted { pool, owner, .. } = &request.admitted;
                self.lanes[*pool as usize].remove(*owner, key);
            }
            Stage::Working { slot } => {
                self.clients.leave(slot);
                if let Some(work) = &mut self.slots[slot].work {
                    work.client = None;
                }
            }
            _ => {}
        }
    }

    /// Brings the timers and the budget up to date with the connection.
    fn settle(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let held = connection.held();
        self.held.replace(connection.counted, held);
        connection.counted = held;
        let deadline = connection.time_over(&self.limits);
        if deadline != connection.deadline {
            if let Some(before) = connection.deadline {
                self.timers.remove(&(before, key));
            }
            if let Some(deadline) = deadline {
                self.timers.insert((deadline, key));
            }
            connection.deadline = deadline;
        }
    }

    /// Deals with those whose time is over.
    fn expire(&mut self) {
        while let Some(&(at, key)) = self.timers.first() {
            if at > self.now {
                return;
            }
            self.timers.pop_first();
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            connection.deadline = None;
            let refusal = match &connection.stage {
                Stage::Queued {
                    preparing: Some(_), ..
                } => {
                    self.prepare_again(key);
                    continue;
                }
                Stage::Head { .. } if !connection.is_idle() => Refusal::SlowHead,
                Stage::Body(_) => Refusal::SlowBody,
                Stage::Queued { request, .. } => {
                    let pool = request.admitted.pool;
                    self.busy(pool)
                }
                _ => {
                    self.close(key);
                    continue;
                }
            };
            if self.refuse(key, refusal, None) {
                self.drive(key);
            } else {
                self.settle(key);
            }
        }
    }

    /// Heads are read whatever the budget says, since idle connections would be refused else. Many that only begin must
    /// not outgrow it.
    fn bound_heads(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let is_head = matches!(connection.stage, Stage::Head { .. });
        let holds = connection.counted.bytes > 0;
        if is_head && holds && self.held.all() >= self.limits.buffer {
            self.make_room(None);
        }
    }

    /// Its account, if that holds too much of the budget: then others do not have to make room for it.
    fn over_its_part(&mut self, key: Key) -> Option<Owner> {
        let share = self.connections.get_mut(key)?.counted;
        let is_over = self.held.is_over_its_part(share, self.limits.buffer);
        share.owner.filter(|_| is_over)
    }

    /// The budget is used up: whoever holds most for longest, and is not whole yet or does not read its answer, has to
    /// go. That is a slow client rather than a quick one, and a hostile one rather than either. With an owner, it is the
    /// heaviest of theirs. Says whether there was one.
    fn make_room(&mut self, of: Option<Owner>) -> bool {
        let now = self.now;
        let heaviest = self
            .connections
            .iter()
            .filter(|(_, connection)| of.is_none() || connection.counted.owner == of)
            .map(|(key, connection)| (connection.burden(now), key))
            .max();
        let Some((1.., victim)) = heaviest else {
            return false;
        };
        let can_be_told = self.connections.get_mut(victim).is_some_and(|connection| {
            matches!(connection.stage, Stage::Head { .. } | Stage::Body(_))
        });
        if can_be_told {
            let busy = self.busy(Pool::Conversions);
            if self.refuse(victim, busy, None) {
                self.unfinished.push(victim);
            }
            self.settle(victim);
        } else {
            self.close(victim);
        }
        true
    }

    /// 503, with the time that those who wait for these workers already will take.
    fn busy(&self, pool: Pool) -> Refusal {
        let of_pool = |slot: &&Slot| slot.pool == pool && !slot.is_lost;
        let workers = self.slots.iter().filter(of_pool).count();
        let wait = self.lanes[pool as usize].expected_wait(workers);
        Refusal::Busy {
            retry_after: wait.as_secs().clamp(1, 60),
        }
    }
}
