//! The connection pool: runs queries on an open or a new connection to the host that takes writes,
//! retries where that helps, and gives up at a deadline.
//!
//! One thread with a runtime of its own drives the sockets. A query is a future that the caller's
//! thread waits for. At the deadline the future is dropped with its connection, so that nothing
//! waits for a silent host.

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
use crate::store::error::StoreError;

/// The first and the longest pause before a retry; pauses double.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];

/// The first and the longest pause after a conflict; pauses double.
const CONFLICT_PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(50)];

/// How long the other hosts have to answer once one that takes writes has answered.
const GRACE: Duration = Duration::from_millis(300);

/// [`GRACE`] of the first choice, when no timeline is known yet; at most a quarter of the timeout.
const FIRST_GRACE: Duration = Duration::from_secs(1);

/// The timeout of a query of a [`Session`], which may add up a whole table.
const SESSION_LIMIT: Duration = Duration::from_mins(2);

/// A warning is logged if this machine's clock and the database's differ by more milliseconds.
const WORTH_A_WARNING: i64 = 2000;

/// Which connections a query uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The one connection of the store's writer.
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

/// The state that the thread and the callers share.
pub struct Shared {
    connector: Arc<Connector>,
    writers: Connections,
    readers: Connections,
    target: Mutex<Target>,
    /// This machine's clock.
    now: fn() -> SystemTime,
    /// Milliseconds to add to it.
    pub clock_offset: AtomicI64,
    /// Faults by class, in the order of [`Class`].
    pub faults: [AtomicU64; Class::NAMES.len()],
}

/// Connections of one purpose.
struct Connections {
    permits: Semaphore,
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
            writers: Connections::new(1),
            readers: Connections::new(readers),
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
                // The thread ends by the message and without it.
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
        // An error that an operator has to correct is reported at once, without retries.
        pool.query_at_start(async |_| Ok(()))?;
        Ok(pool)
    }

    /// The settings.
    pub fn settings(&self) -> &PostgresSettings {
        self.shared.connector.settings()
    }

    /// The state that the thread and the callers share.
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

    /// The deadline of a query that begins now.
    fn deadline(&self) -> Instant {
        Instant::now() + self.settings().timeout
    }

    /// Runs an idempotent query, with retries.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if there is no answer by the deadline, or if an operator has to
    /// change something.
    pub fn query<T>(
        &self,
        purpose: Purpose,
        query: impl AsyncFn(&Link) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.query_until(purpose, self.deadline(), query)
    }

    /// As [`Pool::query`], but an error that an operator has to correct is returned at once.
    ///
    /// # Errors
    /// As [`Pool::query`].
    pub fn query_at_start<T>(
        &self,
        query: impl AsyncFn(&Link) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.run(Purpose::Write, self.deadline(), RetryPolicy::AtStart, query)
    }

    /// As [`Pool::query`], with this deadline.
    ///
    /// # Errors
    /// As [`Pool::query`].
    pub fn query_until<T>(
        &self,
        purpose: Purpose,
        deadline: Instant,
        query: impl AsyncFn(&Link) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.run(purpose, deadline, RetryPolicy::UntilDeadline, query)
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers make the closure for this call"
    )]
    fn run<T>(
        &self,
        purpose: Purpose,
        deadline: Instant,
        policy: RetryPolicy,
        query: impl AsyncFn(&Link) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let result = RefCell::new(None);
        let query = storing(&query, &result);
        self.wait_for(purpose, deadline, policy, &query)?;
        let none = || StoreError::Failed("a query without a result".to_owned());
        result.take().ok_or_else(none)
    }

    fn wait_for(
        &self,
        purpose: Purpose,
        deadline: Instant,
        policy: RetryPolicy,
        query: &Query<'_>,
    ) -> Result<(), StoreError> {
        let last = RefCell::new(None);
        self.runtime.block_on(async {
            let retries = self.shared.retry(purpose, policy, &last, query);
            if let Ok(result) = timeout_at(deadline.into(), retries).await {
                return result.map_err(Fault::into_error);
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

/// A query that stores its result itself, so that the retries are compiled once for all queries.
type Query<'a> = dyn Fn(Arc<Link>) -> Pending<'a> + 'a;

/// A query under way.
type Pending<'a> = Pin<Box<dyn Future<Output = Result<(), Fault>> + 'a>>;

/// The query that stores its result in `result`.
fn storing<'a, T>(
    query: &'a impl AsyncFn(&Link) -> Result<T, Fault>,
    result: &'a RefCell<Option<T>>,
) -> impl Fn(Arc<Link>) -> Pending<'a> {
    move |link| {
        Box::pin(async move {
            let value = query(&link).await?;
            result.replace(Some(value));
            Ok(())
        })
    }
}

/// A connection for a sequence of queries, which may be in one transaction. It takes no permit of
/// the pool, so that no other query waits for it.
pub struct Session {
    link: Link,
    runtime: Handle,
}

impl Session {
    /// Runs a query, without retries.
    ///
    /// # Errors
    /// There is no answer within [`SESSION_LIMIT`], or another fault occurs. The transaction is
    /// lost.
    pub fn query<T>(
        &self,
        query: impl AsyncFnOnce(&Link) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let result = async { timeout(SESSION_LIMIT, query(&self.link)).await };
        match self.runtime.block_on(result) {
            Ok(result) => result.map_err(Fault::into_error),
            Err(_) => Err(StoreError::Unavailable(format!(
                "the database has not answered within {} s",
                SESSION_LIMIT.as_secs()
            ))),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for connections in [&self.shared.writers, &self.shared.readers] {
            connections.idle().clear();
        }
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has ended its queries, and there is nothing left to do.
            let _ = thread.join();
        }
    }
}

/// Which faults are retried until the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryPolicy {
    /// Those that no operator has to correct.
    AtStart,
    /// All that may pass.
    UntilDeadline,
}

impl Shared {
    /// Retries the query until it succeeds, or until a fault that does not pass soon. Stores each
    /// fault in `last`.
    async fn retry(
        &self,
        purpose: Purpose,
        policy: RetryPolicy,
        last: &RefCell<Option<Fault>>,
        query: &Query<'_>,
    ) -> Result<(), Fault> {
        let [mut pause, mut conflict_pause] = [PAUSES[0], CONFLICT_PAUSES[0]];
        loop {
            let Err(fault) = self.try_once(purpose, query).await else {
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

    /// Runs the query once. A connection whose query fails is closed.
    async fn try_once(&self, purpose: Purpose, query: &Query<'_>) -> Result<(), Fault> {
        let connections = self.connections(purpose);
        let permit = connections.permits.acquire().await;
        let _permit = permit.map_err(|_| Fault::new(Class::Lost, "the store is closed"))?;
        let choice = self.target().choice;
        let result = self.try_on(connections, choice, query).await;
        if let Err(fault) = &result
            && matches!(
                fault.class,
                Class::Lost | Class::NotReady | Class::Refused | Class::Unknown
            )
        {
            self.leave_target(choice);
        }
        result
    }

    async fn try_on(
        &self,
        connections: &Connections,
        choice: u64,
        query: &Query<'_>,
    ) -> Result<(), Fault> {
        let idle = connections.take(choice);
        let link = match idle {
            Some(link) => link,
            None => Arc::new(self.connect().await?),
        };
        query(Arc::clone(&link)).await?;
        // A connection whose query fails may be in a transaction. It is dropped, and so closed.
        if !link.is_closed() {
            connections.idle().push(link);
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

    /// Queries all hosts, and takes the one that takes writes and has the highest timeline.
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
        // The rest is time to report which hosts have not answered.
        let limit = *limit * 3 / 4;
        let mut examined = JoinSet::new();
        for host in hosts {
            let (connector, host, now) = (Arc::clone(&self.connector), host.clone(), self.now);
            examined.spawn(async move {
                let found = async {
                    let link = connector.connect(&host).await?;
                    let state = link.examine(is_one_of_many, now).await?;
                    state.check(&host, 0)?;
                    Ok((link, state))
                };
                let silent = |_| Err(Fault::new(Class::Lost, format!("{host} does not answer")));
                let found: Result<_, Fault> = timeout(limit, found).await.unwrap_or_else(silent);
                (host, found)
            });
        }
        let mut faults = Vec::new();
        let mut writable: Vec<(Host, Link, HostState)> = Vec::new();
        loop {
            let next = examined.join_next();
            let next = if writable.is_empty() {
                next.await
            } else {
                // A silent host does not delay the others.
                timeout(grace, next).await.unwrap_or(None)
            };
            let Some(next) = next else { break };
            match next {
                Ok((host, Ok((link, state)))) => {
                    self.set_clock(state.clock_offset);
                    writable.push((host, link, state));
                }
                Ok((_, Err(fault))) => faults.push(fault),
                Err(_) => faults.push(Fault::new(Class::Lost, "a query was given up")),
            }
        }
        warn_of_several(&writable);
        let best = writable
            .into_iter()
            .max_by_key(|(_, _, state)| state.timeline);
        best.ok_or_else(|| all_of(faults))
    }

    /// Reads a host's state, and takes over its clock.
    pub async fn examine(&self, link: &Link) -> Result<HostState, Fault> {
        let is_one_of_many = self.connector.settings().hosts.len() > 1;
        let state = link.examine(is_one_of_many, self.now).await?;
        self.set_clock(state.clock_offset);
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

    /// Examines the hosts that are not in use, since another one may take writes too.
    ///
    /// If such a host is on a later timeline, hosts are chosen again. If it is on an earlier one,
    /// it was the primary before and has come back. Then the timeline is written into its database,
    /// so that replicas that reach only that host do not use it. Each host may take `limit`.
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
                let state = link.examine(true, self.now).await?;
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
                    // It has no standby any more to wait for. The setting is local, since a pooler
                    // would pass the connection on to others.
                    let begin = "BEGIN; SET LOCAL synchronous_commit = local";
                    link.batch(begin).await?;
                    link.note_timeline(system, timeline).await?;
                    link.batch("COMMIT").await?;
                }
                Ok(())
            };
            // An unavailable host is examined again later.
            let _: Result<Result<(), Fault>, _> = timeout(limit, looked).await;
        }
    }

    /// Takes over the database's clock, which is so many milliseconds ahead of this machine's.
    fn set_clock(&self, offset: i64) {
        let last = self.clock_offset.swap(offset, Ordering::Relaxed);
        if offset.abs() > WORTH_A_WARNING && last.abs() <= WORTH_A_WARNING {
            log::warn!(
                "this machine's clock and the database's differ by {:.1} s; the database's holds",
                offset as f64 / 1000.0
            );
        }
    }

    /// Gives up this choice of a host with its connections. The next connection chooses again.
    fn leave_target(&self, choice: u64) {
        let mut target = self.target();
        if target.choice == choice {
            target.host = None;
            target.choice += 1;
        }
    }

    fn connections(&self, purpose: Purpose) -> &Connections {
        match purpose {
            Purpose::Write => &self.writers,
            Purpose::Read => &self.readers,
        }
    }

    fn target(&self) -> MutexGuard<'_, Target> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a query without retries.
    pub async fn query_once<T>(
        &self,
        limit: Duration,
        query: impl AsyncFn(&Link) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let result = RefCell::new(None);
        let query = storing(&query, &result);
        let none = || Fault::new(Class::Lost, "no answer");
        match timeout(limit, self.try_once(Purpose::Read, &query)).await {
            Ok(run) => run.and_then(|()| result.take().ok_or_else(none)),
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
    /// Uses a host from now on. Returns the number of the choice.
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

impl Connections {
    fn new(most: usize) -> Connections {
        Connections {
            permits: Semaphore::new(most),
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

/// Logs an error if two hosts take writes, because they are two databases then.
fn warn_of_several(writable: &[(Host, Link, HostState)]) {
    if let [(first, ..), (second, ..), ..] = writable {
        log::error!(
            "{first} and {second} both take writes; the one with the higher timeline is used"
        );
    }
}

/// One fault with the texts of the faults of all hosts, those first that an operator can correct.
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

/// A random 3/4 to 5/4 of a pause, so that clients that failed together do not retry together.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0];
    // Without random numbers, it is 3/4 of the pause.
    let _ = getrandom::fill(&mut byte);
    pause * 3 / 4 + pause * u32::from(byte[0]) / 512
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host::Tcp("db.example.org".to_owned(), 5432)
    }

    fn state(timeline: u32, system: i64) -> HostState {
        HostState {
            is_writable: true,
            clock_offset: 0,
            timeline,
            system,
            noted: 0,
        }
    }

    #[test]
    fn writes_go_to_no_standby_no_old_primary_and_no_other_system() {
        let mut target = Target::default();
        let mut admit = |state| target.admit(&host(), state).map_err(|fault| fault.class);
        let standby = HostState {
            is_writable: false,
            ..state(1, 7)
        };
        let behind_a_note = HostState {
            noted: 4,
            ..state(3, 7)
        };
        for (given, expected) in [
            (standby, Err(Class::NotReady)),
            (state(2, 0), Ok(())),
            (state(2, 7), Ok(())),
            (state(1, 7), Err(Class::NotReady)),
            (state(3, 8), Err(Class::Refused)),
            (state(3, 7), Ok(())),
            (state(2, 7), Err(Class::NotReady)),
            (behind_a_note, Err(Class::NotReady)),
            (state(3, 0), Ok(())),
        ] {
            assert_eq!(admit(given), expected, "{given:?}");
        }
    }

    #[test]
    fn what_an_operator_can_correct_comes_first_and_counts_only_if_it_is_all() {
        let refused = || Fault::new(Class::Refused, "no role");
        let away = || Fault::new(Class::Lost, "no route");
        for (faults, class, text) in [
            (vec![], Class::NotReady, ""),
            (vec![refused()], Class::Refused, "no role"),
            (vec![away()], Class::NotReady, "no route"),
            (
                vec![away(), refused()],
                Class::NotReady,
                "no role; no route",
            ),
        ] {
            let all = all_of(faults);
            assert_eq!((all.class, &*all.text), (class, text));
        }
    }

    #[test]
    fn a_pause_is_between_three_and_five_quarters() {
        let pauses: Vec<_> = (0..50).map(|_| jittered(Duration::from_secs(4))).collect();
        let within = Duration::from_secs(3)..Duration::from_secs(5);
        assert!(pauses.iter().all(|pause| within.contains(pause)));
        assert!(pauses.iter().any(|pause| *pause != pauses[0]));
    }
}
