//! Asks the database: by a connection that is open or a new one, at the host that takes writes,
//! again where that helps, and never longer than a deadline.
//!
//! The sockets are moved by one thread with a runtime of its own. A question is a future that the
//! caller's thread waits for; when its deadline comes, the future is dropped with its connection,
//! so nothing waits for a host that says nothing.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, timeout, timeout_at};

use super::connection::{Connector, HostState, Link};
use super::fault::{Class, Fault};
use super::settings::{Host, PostgresSettings};
use crate::store::clock;
use crate::store::error::StoreError;

/// The pauses before a question is asked again, which double.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];

/// The pauses after a conflict, which double.
const CONFLICT_PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(50)];

/// How long the other hosts have to answer once one that takes writes has.
const GRACE: Duration = Duration::from_millis(300);

/// As [`GRACE`], for the first choice, which knows no timeline yet; at most a quarter of the
/// timeout.
const FIRST_GRACE: Duration = Duration::from_secs(1);

/// How long a question of a [`Session`] may take: it may add up a whole table.
const SESSION_LIMIT: Duration = Duration::from_mins(2);

/// A difference between this machine's clock and the database's that is worth a warning.
const WORTH_A_WARNING: i64 = 2000;

/// Which connections a question uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The one that is kept for the commands of the store's writer.
    Write,
    /// The others.
    Read,
}

/// The connections. Dropping it closes them.
pub struct Pool {
    shared: Arc<Shared>,
    runtime: Handle,
    /// Ends the thread when it is dropped.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and the callers share.
pub struct Shared {
    connector: Arc<Connector>,
    writers: Lane,
    readers: Lane,
    target: Mutex<Target>,
    /// This machine's clock.
    now: fn() -> SystemTime,
    /// Milliseconds to add to it.
    pub clock_offset: AtomicI64,
    /// Faults by class, in the order of [`Class`].
    pub faults: [AtomicU64; Class::NAMES.len()],
}

/// Connections of one purpose.
struct Lane {
    places: Semaphore,
    idle: Mutex<Vec<Arc<Link>>>,
}

/// Where writes go.
#[derive(Default)]
struct Target {
    host: Option<Host>,
    /// Counts the choices.
    choice: u64,
    /// The highest timeline that was seen; a host of a lower one is an old primary.
    timeline: u32,
    system: i64,
}

impl Pool {
    /// Starts the thread, which also carries out `background`, and connects.
    ///
    /// # Errors
    /// A sentence for the operator: the thread cannot be started, or there is no connection within
    /// the timeout.
    pub fn open<B: Future<Output = ()> + 'static>(
        connector: Connector,
        now: fn() -> SystemTime,
        background: impl FnOnce(Arc<Shared>) -> B + Send + 'static,
    ) -> Result<Pool, StoreError> {
        let cannot = |error| {
            StoreError::Failed(format!(
                "the thread for PostgreSQL cannot be started: {error}"
            ))
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(cannot)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let readers = connector.settings().connections.saturating_sub(1).max(1);
        let shared = Arc::new(Shared {
            connector: Arc::new(connector),
            writers: Lane::new(1),
            readers: Lane::new(readers),
            target: Mutex::default(),
            now,
            clock_offset: AtomicI64::new(0),
            faults: Default::default(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("store-postgres".into())
            .spawn(move || {
                let local = LocalSet::new();
                local.spawn_local(background(of_thread));
                // Whether it was told or not, it is time to end.
                let _ = runtime.block_on(local.run_until(ended));
                drop(local);
                runtime.shutdown_background();
            })
            .map_err(cannot)?;
        let pool = Pool {
            shared,
            runtime: handle,
            end: Some(end),
            thread: Some(thread),
        };
        // What an operator has to change is told at once, and not waited for.
        pool.ask_at_start(async |_| Ok(()))?;
        Ok(pool)
    }

    /// The settings.
    pub fn settings(&self) -> &PostgresSettings {
        self.shared.connector.settings()
    }

    /// What the thread and the callers share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// A connection of its own to the host that takes writes.
    pub fn session(&self) -> Result<Session, StoreError> {
        let limit = self.settings().timeout;
        let connected = async { timeout(limit, self.shared.connect()).await };
        let connected = self.runtime.block_on(connected).unwrap_or_else(|_| {
            let text = "no connection within the timeout";
            Err(Fault::new(Class::Lost, text))
        });
        Ok(Session {
            link: connected.map_err(Fault::into_error)?,
            runtime: self.runtime.clone(),
        })
    }

    /// When a question that is asked now has to be answered.
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.settings().timeout
    }

    /// Asks a question that may be asked any number of times.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if there is no answer by the deadline, or if an operator has to
    /// change something.
    pub fn ask<T>(
        &self,
        purpose: Purpose,
        question: impl AsyncFn(&Link) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.ask_until(
            purpose,
            self.deadline(),
            RetryPolicy::UntilDeadline,
            question,
        )
    }

    /// As [`Pool::ask`], but what an operator has to change is not waited for.
    ///
    /// # Errors
    /// As [`Pool::ask`].
    pub fn ask_at_start<T>(
        &self,
        question: impl AsyncFn(&Link) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.ask_until(
            Purpose::Write,
            self.deadline(),
            RetryPolicy::AtStart,
            question,
        )
    }

    /// As [`Pool::ask`], until this time.
    ///
    /// # Errors
    /// As [`Pool::ask`].
    pub fn ask_by<T>(
        &self,
        purpose: Purpose,
        deadline: Instant,
        question: impl AsyncFn(&Link) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.ask_until(purpose, deadline, RetryPolicy::UntilDeadline, question)
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "whoever asks has made the question for this call"
    )]
    fn ask_until<T>(
        &self,
        purpose: Purpose,
        deadline: Instant,
        policy: RetryPolicy,
        question: impl AsyncFn(&Link) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let answer = RefCell::new(None);
        let question = asked(&question, &answer);
        self.wait_for(purpose, deadline, policy, &question)?;
        let none = || StoreError::Failed("a question without an answer".to_owned());
        answer.take().ok_or_else(none)
    }

    fn wait_for(
        &self,
        purpose: Purpose,
        deadline: Instant,
        policy: RetryPolicy,
        question: &Question<'_>,
    ) -> Result<(), StoreError> {
        let last = RefCell::new(None);
        self.runtime.block_on(async {
            let answered = timeout_at(
                deadline.into(),
                self.shared.persist(purpose, policy, &last, question),
            );
            if let Ok(answer) = answered.await {
                return answer.map_err(Fault::into_error);
            }
            let limit = self.settings().timeout.as_secs_f64();
            let last: Option<Fault> = last.into_inner();
            let cause = last.map_or_else(String::new, |fault| format!("; {}", fault.text));
            Err(StoreError::Unavailable(format!(
                "the database has not answered within {limit} s{cause}"
            )))
        })
    }
}

/// A question that keeps its answer itself, so that what asks is compiled once for all of them.
type Question<'a> = dyn Fn(Arc<Link>) -> Pending<'a> + 'a;

/// A question that is being asked.
type Pending<'a> = Pin<Box<dyn Future<Output = Result<(), Fault>> + 'a>>;

/// The question that puts what it is answered into `answer`.
fn asked<'a, T>(
    question: &'a impl AsyncFn(&Link) -> Result<T, Fault>,
    answer: &'a RefCell<Option<T>>,
) -> impl Fn(Arc<Link>) -> Pending<'a> {
    move |link| {
        Box::pin(async move {
            let given = question(&link).await?;
            answer.replace(Some(given));
            Ok(())
        })
    }
}

/// A connection for many questions one after the other, which may be in one transaction. It has no
/// place among the connections of the pool, so that nothing waits for it.
pub struct Session {
    link: Link,
    runtime: Handle,
}

impl Session {
    /// Asks a question, once.
    ///
    /// # Errors
    /// There is no answer within [`SESSION_LIMIT`], or another fault: the transaction is gone.
    pub fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&Link) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let answered = async { timeout(SESSION_LIMIT, question(&self.link)).await };
        match self.runtime.block_on(answered) {
            Ok(answer) => answer.map_err(Fault::into_error),
            Err(_) => Err(StoreError::Unavailable(format!(
                "the database has not answered within {} s",
                SESSION_LIMIT.as_secs()
            ))),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for lane in [&self.shared.writers, &self.shared.readers] {
            lane.idle().clear();
        }
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // If it has panicked, there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// What is waited for until the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryPolicy {
    /// Nothing that an operator has to change.
    AtStart,
    /// Whatever can pass.
    UntilDeadline,
}

impl Shared {
    /// Asks until there is an answer, or a fault that does not pass soon. `last` is told each
    /// fault.
    async fn persist(
        &self,
        purpose: Purpose,
        policy: RetryPolicy,
        last: &RefCell<Option<Fault>>,
        question: &Question<'_>,
    ) -> Result<(), Fault> {
        let [mut pause, mut conflict_pause] = [PAUSES[0], CONFLICT_PAUSES[0]];
        loop {
            let Err(fault) = self.ask_once(purpose, question).await else {
                return Ok(());
            };
            self.faults[fault.class as usize].fetch_add(1, Ordering::Relaxed);
            let wait = match fault.class {
                Class::Full | Class::Unknown | Class::Unexpected => return Err(fault),
                Class::Refused if policy == RetryPolicy::AtStart => return Err(fault),
                Class::Conflict => {
                    let wait = conflict_pause;
                    conflict_pause = (wait * 2).min(CONFLICT_PAUSES[1]);
                    wait
                }
                Class::Lost | Class::NotReady | Class::Refused => {
                    let wait = pause;
                    pause = (wait * 2).min(PAUSES[1]);
                    wait
                }
            };
            *last.borrow_mut() = Some(fault);
            sleep(jittered(wait)).await;
        }
    }

    /// Asks once. A connection on which a question was not answered is not used again.
    async fn ask_once(&self, purpose: Purpose, question: &Question<'_>) -> Result<(), Fault> {
        let lane = self.lane(purpose);
        let place = lane.places.acquire().await;
        let _place = place.map_err(|_| Fault::new(Class::Lost, "the store is closed"))?;
        let choice = self.target().choice;
        let answer = self.ask_over(lane, choice, question).await;
        if let Err(fault) = &answer
            && matches!(
                fault.class,
                Class::Lost | Class::NotReady | Class::Refused | Class::Unknown
            )
        {
            self.leave_target(choice);
        }
        answer
    }

    async fn ask_over(
        &self,
        lane: &Lane,
        choice: u64,
        question: &Question<'_>,
    ) -> Result<(), Fault> {
        let idle = lane.take(choice);
        let link = match idle {
            Some(link) => link,
            None => Arc::new(self.connect().await?),
        };
        question(Arc::clone(&link)).await?;
        // One that was broken off may be in the middle of a transaction, and is closed.
        if !link.is_closed() {
            lane.idle().push(link);
        }
        Ok(())
    }

    /// A connection to the host that takes writes.
    async fn connect(&self) -> Result<Link, Fault> {
        let (host, choice) = {
            let target = self.target();
            (target.host.clone(), target.choice)
        };
        if let Some(host) = host {
            let mut link = self.connector.connect(&host).await?;
            let state = self.examine(&link).await?;
            self.target().admit(&host, state)?;
            link.choice = choice;
            return Ok(link);
        }
        let (host, mut link, state) = self.choose().await?;
        link.choice = self.target().choose(&host, state)?;
        log::debug!("the store is on {host}");
        Ok(link)
    }

    /// Asks all hosts, and takes the one that takes writes and has the highest timeline.
    async fn choose(&self) -> Result<(Host, Link, HostState), Fault> {
        let PostgresSettings {
            hosts,
            timeout: limit,
            ..
        } = self.connector.settings();
        let is_one_of_many = hosts.len() > 1;
        let grace = match self.target().choice {
            0 => FIRST_GRACE.min(*limit / 4),
            _ => GRACE,
        };
        // So that there is time to say which hosts have not answered.
        let limit = *limit * 3 / 4;
        let mut asked = JoinSet::new();
        for host in hosts {
            let (connector, host, now) = (Arc::clone(&self.connector), host.clone(), self.now);
            asked.spawn(async move {
                let found = async {
                    let link = connector.connect(&host).await?;
                    let before = now();
                    let state = link.examine(is_one_of_many).await?;
                    Ok((link, state, [before, now()]))
                };
                let silent = |_| Err(Fault::new(Class::Lost, format!("{host} does not answer")));
                let found: Result<_, Fault> = timeout(limit, found).await.unwrap_or_else(silent);
                (host, found)
            });
        }
        let mut faults = Vec::new();
        let mut writable: Vec<(Host, Link, HostState)> = Vec::new();
        loop {
            let next = asked.join_next();
            let next = if writable.is_empty() {
                next.await
            } else {
                // A host that says nothing does not hold up the others.
                timeout(grace, next).await.unwrap_or(None)
            };
            let Some(next) = next else { break };
            match next {
                Ok((host, Ok((link, state, asked)))) => match state.check(&host, 0) {
                    Ok(()) => {
                        self.set_clock(state, asked);
                        writable.push((host, link, state));
                    }
                    Err(fault) => faults.push(fault),
                },
                Ok((_, Err(fault))) => faults.push(fault),
                Err(_) => faults.push(Fault::new(Class::Lost, "a question was given up")),
            }
        }
        warn_of_several(&writable);
        let best = writable
            .into_iter()
            .max_by_key(|(_, _, state)| state.timeline);
        best.ok_or_else(|| all_of(faults))
    }

    /// Asks a host about itself, and takes over its clock.
    pub async fn examine(&self, link: &Link) -> Result<HostState, Fault> {
        let before = (self.now)();
        let is_one_of_many = self.connector.settings().hosts.len() > 1;
        let state = link.examine(is_one_of_many).await?;
        self.set_clock(state, [before, (self.now)()]);
        Ok(state)
    }

    /// Checks the state of the host in use: it may have become a standby since the connection was
    /// made, or another replica may have noted that it is an old primary.
    pub fn check_target(&self, state: HostState) -> Result<(), Fault> {
        let mut target = self.target();
        match target.host.clone() {
            Some(host) => target.admit(&host, state),
            None => Ok(()),
        }
    }

    /// Looks at the hosts that are not in use, for one that takes writes, too.
    ///
    /// If it is on a later timeline, hosts are chosen anew. If it is on an earlier one, it was the
    /// primary before, has come back, and cannot know better: the timeline is noted in its
    /// database, so that replicas that reach that host alone do not use it. Each host may take
    /// `limit`.
    pub async fn look_at_others(&self, limit: Duration) {
        let (used, choice, timeline, system) = {
            let target = self.target();
            let host = target.host.clone();
            (host, target.choice, target.timeline, target.system)
        };
        let hosts = &self.connector.settings().hosts;
        if used.is_none() || timeline == 0 {
            return;
        }
        for host in hosts.iter().filter(|host| Some(*host) != used.as_ref()) {
            let looked = async {
                let link = self.connector.connect(host).await?;
                let state = link.examine(true).await?;
                if !state.is_writable || state.system != system {
                    return Ok(());
                }
                let other = state.timeline;
                if other > timeline {
                    log::error!(
                        "{host} takes writes on timeline {other}, this replica's host on {timeline}"
                    );
                    self.leave_target(choice);
                } else if other.max(state.noted) < timeline {
                    log::error!("{host}, an old primary, takes writes: make it a standby");
                    // It has no standby any more that it could wait for. A pooler would hand on
                    // what is set for more than a transaction.
                    let begin = "BEGIN; SET LOCAL synchronous_commit = local";
                    link.batch(begin).await?;
                    link.note_timeline(system, timeline).await?;
                    link.batch("COMMIT").await?;
                }
                Ok(())
            };
            // A host that is away is looked at again later.
            let _: Result<Result<(), Fault>, _> = timeout(limit, looked).await;
        }
    }

    /// Takes over the database's clock, which was asked for between these times of this machine's.
    fn set_clock(&self, state: HostState, asked: [SystemTime; 2]) {
        let [before, after] = asked.map(|time| clock::to_milliseconds(time) as i64);
        let offset = state.time - before.midpoint(after);
        let last = self.clock_offset.swap(offset, Ordering::Relaxed);
        if offset.abs() > WORTH_A_WARNING && last.abs() <= WORTH_A_WARNING {
            log::warn!(
                "this machine's clock and the database's differ by {:.1} s; the database's holds",
                offset as f64 / 1000.0
            );
        }
    }

    /// Has the next connection look for the host that takes writes, and all of this choice given
    /// up.
    fn leave_target(&self, choice: u64) {
        let mut target = self.target();
        if target.choice == choice {
            target.host = None;
            target.choice += 1;
        }
    }

    fn lane(&self, purpose: Purpose) -> &Lane {
        match purpose {
            Purpose::Write => &self.writers,
            Purpose::Read => &self.readers,
        }
    }

    fn target(&self) -> MutexGuard<'_, Target> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks once, without waiting for anything to pass.
    pub async fn ask_now<T>(
        &self,
        limit: Duration,
        question: impl AsyncFn(&Link) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let answer = RefCell::new(None);
        let question = asked(&question, &answer);
        let none = || Fault::new(Class::Lost, "no answer");
        match timeout(limit, self.ask_once(Purpose::Read, &question)).await {
            Ok(given) => given.and_then(|()| answer.take().ok_or_else(none)),
            Err(_) => Err(none()),
        }
    }
}

impl HostState {
    /// Checks that the host is the primary. `timeline` is the highest one that was seen.
    fn check(self, host: &Host, timeline: u32) -> Result<(), Fault> {
        if !self.is_writable {
            let text = format!("{host} takes no writes: it is a standby");
            return Err(Fault::new(Class::NotReady, text));
        }
        let timeline = timeline.max(self.noted);
        if self.timeline < timeline {
            let text = format!(
                "{host} is an old primary: it is on timeline {}, and the database was on {timeline} already",
                self.timeline
            );
            return Err(Fault::new(Class::NotReady, text));
        }
        Ok(())
    }
}

impl Target {
    /// Takes a host that was chosen. Returns the number of the choice.
    fn choose(&mut self, host: &Host, state: HostState) -> Result<u64, Fault> {
        self.admit(host, state)?;
        self.host = Some(host.clone());
        Ok(self.choice)
    }

    /// Checks a host's state.
    fn admit(&mut self, host: &Host, state: HostState) -> Result<(), Fault> {
        state.check(host, self.timeline)?;
        if self.system != 0 && state.system != 0 && state.system != self.system {
            let text = format!("{host} has another database system than the hosts before it");
            return Err(Fault::new(Class::Refused, text));
        }
        self.timeline = state.timeline;
        self.system = state.system;
        Ok(())
    }
}

impl Lane {
    fn new(places: usize) -> Lane {
        Lane {
            places: Semaphore::new(places),
            idle: Mutex::default(),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Arc<Link>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of this choice of hosts; those of earlier ones are closed.
    fn take(&self, choice: u64) -> Option<Arc<Link>> {
        let mut idle = self.idle();
        idle.retain(|link| link.choice == choice && !link.is_closed());
        idle.pop()
    }
}

/// Two hosts that take writes are two databases: the operator has to know.
fn warn_of_several(writable: &[(Host, Link, HostState)]) {
    if let [(first, ..), (second, ..), ..] = writable {
        log::error!(
            "{first} and {second} both take writes; the one with the higher timeline is used"
        );
    }
}

/// One fault of those of all hosts, the one that an operator has to see first.
fn all_of(mut faults: Vec<Fault>) -> Fault {
    let is_refused = |fault: &Fault| fault.class == Class::Refused;
    let class = if !faults.is_empty() && faults.iter().all(is_refused) {
        Class::Refused
    } else {
        Class::NotReady
    };
    faults.sort_by_key(|fault| !is_refused(fault));
    let texts: Vec<_> = faults.into_iter().map(|fault| fault.text).collect();
    Fault::new(class, texts.join("; "))
}

/// Some 3/4 to 5/4 of a pause, so that those who were turned away together come back apart.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0];
    // Without randomness it is the pause itself.
    let _ = getrandom::fill(&mut byte);
    pause * 3 / 4 + pause * u32::from(byte[0]) / 512
}
