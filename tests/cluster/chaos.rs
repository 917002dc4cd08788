//! Random faults under load, round after round: every answered conversion is in the history once,
//! sums agree with it, no token that was replaced works again, no request waits longer than it may,
//! and the replicas recover by themselves.
//!
//! `TOWEBP_CHAOS_ROUNDS` is the number of rounds (3 if it is not set), `TOWEBP_CHAOS_SEED` the seed
//! of their faults. `TOWEBP_CHAOS_ROUNDS=100 cargo test --test cluster chaos -- --nocapture` prints
//! each round and the result.

use crate::load::{ACCOUNTS, Load, OnDrop};
use crate::proxy::{Link, Proxy};
use crate::replicas::{Replicas, get, until_ready};
use crate::rotations::Rotations;
use crate::support::Server;
use crate::support::postgres::{Database, Postgres};
use crate::support::service::Size;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use towebp_encoder::testing::Random;

const REPLICAS: usize = 2;

/// The replicas' `--store-timeout`.
const STORE_TIMEOUT: Duration = Duration::from_secs(3);

/// Beyond it: 1 s, and the conversion itself, in a debug build on a busy machine.
const LONGEST_REQUEST: Duration = Duration::from_secs(STORE_TIMEOUT.as_secs() + 1 + 2);

/// /healthz asks nobody. This is no measurement: a replica that waits for the store on its event
/// loop waits for seconds.
const LONGEST_HEALTH: Duration = Duration::from_millis(1500);

/// How many conversions have to be answered after a fault before the round ends.
const AFTERWARDS: usize = 12;

/// How long replicas may take to find the database again, of which PostgreSQL's own start and
/// promotion take most on a busy machine.
const RECOVERY: Duration = Duration::from_mins(1);

#[test]
fn nothing_that_was_answered_is_lost_whatever_dies() {
    let rounds: usize = from_environment("TOWEBP_CHAOS_ROUNDS").unwrap_or(3);
    let seed = from_environment("TOWEBP_CHAOS_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.expect("it is after 1970").as_micros() as u64
    });
    let Some(mut site) = Site::start() else {
        return;
    };
    println!("TOWEBP_CHAOS_SEED={seed}");
    let mut random = Random::new(seed);
    let load = Load::new(&site.servers, &site.tokens);
    let mut rotations = Rotations::begin(&site.replicas, site.both());
    let mut longest_recovery = Duration::ZERO;
    for round in 1..=rounds {
        // Each once, in the order of the number, then by chance.
        let faults = [Fault::random(&mut random), Fault::random(&mut random)];
        let count = 1 + random.below(2) as usize;
        println!("round {round}: {:?}", &faults[..count]);
        let is_over = AtomicBool::new(false);
        let recovery = thread::scope(|scope| {
            scope.spawn(|| rotations.rotate_until(&is_over));
            let _end = OnDrop(&is_over);
            load.run(|| site.suffer_all(&faults[..count], &load))
        });
        longest_recovery = longest_recovery.max(recovery);
        site.check(&load, round);
        rotations.check(&site.servers);
    }
    println!(
        "{rounds} rounds, seed {seed}: {}; {} rotations; recovered within {longest_recovery:?}",
        load.summary(),
        rotations.count()
    );
}

/// What happens.
#[derive(Clone, Debug)]
enum Fault {
    /// A replica is killed, and another one started.
    KillReplica(usize),
    /// A replica is ended by SIGTERM once another one is asked in its place: no request is lost.
    Update(usize),
    /// All processes of the primary are killed, and it is started again after so long.
    KillPrimary(Duration),
    /// The primary is shut down fast, and started again after so long.
    RestartPrimary(Duration),
    /// The same as `KillPrimary` of the standby, for which every commit waits.
    KillStandby(Duration),
    /// The primary is killed, and the standby promoted after so long. Then the old primary comes
    /// back, and would take writes; later it is made a standby.
    Promote(Duration),
    /// The links of one replica, or of all of them, behave so for so long.
    Links(Option<usize>, Link, Duration),
    /// All processes of the primary stand still for so long.
    Freeze(Duration),
}

impl Fault {
    fn random(random: &mut Random) -> Fault {
        let mut up_to = |longest: u32| Duration::from_millis(random.below(longest).into());
        let (short, long) = (up_to(1500), up_to(5000));
        let replica = random.below(REPLICAS as u32 * 2) as usize;
        let of = (replica < REPLICAS).then_some(replica);
        match random.below(10) {
            0 => Fault::KillReplica(replica % REPLICAS),
            1 => Fault::KillPrimary(short),
            2 => Fault::RestartPrimary(short),
            3 => Fault::KillStandby(short),
            4 => Fault::Promote(short),
            5 => Fault::Links(of, Link::Cut, long),
            6 => Fault::Links(of, Link::Hold, long),
            7 => Fault::Links(of, Link::Drip, long),
            8 => Fault::Update(replica % REPLICAS),
            _ => Fault::Freeze(long),
        }
    }
}

/// A primary, its synchronous standby, replicas, and a link from each replica to each of both.
struct Site {
    nodes: [Postgres; 2],
    /// Which of them is the primary.
    primary: usize,
    links: Vec<[Proxy; 2]>,
    replicas: Arc<Replicas>,
    servers: Vec<Server>,
    tokens: Vec<String>,
}

impl Site {
    fn start() -> Option<Site> {
        let primary = Postgres::start()?;
        let database = primary.database();
        let nodes = [primary.standby(true), primary];
        let nodes = {
            let [standby, primary] = nodes;
            [primary, standby]
        };
        let link = |_| [Proxy::to(nodes[0].port()), Proxy::to(nodes[1].port())];
        let links: Vec<[Proxy; 2]> = (0..REPLICAS).map(link).collect();
        let replicas = Arc::new(Replicas::of(database));
        let account = |number| replicas.create_account(&format!("{number}@example.org"));
        let tokens = (0..ACCOUNTS).map(account).collect();
        let servers = links.iter().map(|links| start(&replicas, links)).collect();
        Some(Site {
            nodes,
            primary: 0,
            links,
            replicas,
            servers,
            tokens,
        })
    }

    /// The way to whichever server is the primary, past the links.
    fn both(&self) -> Database {
        let ports = self.nodes.each_ref().map(Postgres::port);
        self.replicas.database.behind(&ports)
    }

    /// Returns how long the replicas took to recover once the last cause was gone.
    fn suffer_all(&mut self, faults: &[Fault], load: &Load) -> Duration {
        load.until_answered(4, RECOVERY);
        for fault in faults {
            self.suffer(fault, load);
        }
        let healed = Instant::now();
        load.until_answered(AFTERWARDS, RECOVERY);
        until_ready(&self.servers);
        healed.elapsed()
    }

    /// Returns when the cause is gone; the replicas have to recover by themselves.
    fn suffer(&mut self, fault: &Fault, load: &Load) {
        let (primary, standby) = (self.primary, 1 - self.primary);
        match fault {
            Fault::KillReplica(number) => {
                load.expect_end_of(self.servers[*number].address);
                self.servers[*number].signal(rustix::process::Signal::KILL);
                // One that cannot write at its start says so and ends, for its supervisor.
                self.nodes[primary].wait_for_standby();
                let new = start(&self.replicas, &self.links[*number]);
                load.replace(self.servers[*number].address, new.address);
                self.servers[*number] = new;
            }
            Fault::Update(number) => {
                self.nodes[primary].wait_for_standby();
                let new = start(&self.replicas, &self.links[*number]);
                load.replace(self.servers[*number].address, new.address);
                // Whoever has the address of the old one is connected by then.
                thread::sleep(Duration::from_millis(500));
                let mut old = std::mem::replace(&mut self.servers[*number], new);
                old.signal(rustix::process::Signal::TERM);
                let status = old.ended_within(Duration::from_mins(1));
                assert!(status.success(), "{status}: {}", old.log());
            }
            Fault::KillPrimary(away) => {
                self.nodes[primary].kill();
                thread::sleep(*away);
                self.nodes[primary].resume();
            }
            Fault::RestartPrimary(away) => {
                self.nodes[primary].stop();
                thread::sleep(*away);
                self.nodes[primary].resume();
            }
            Fault::KillStandby(away) => {
                self.nodes[standby].kill();
                thread::sleep(*away);
                self.nodes[standby].resume();
            }
            Fault::Promote(away) => {
                self.nodes[primary].kill();
                thread::sleep(*away);
                self.nodes[standby].promote();
                self.nodes[primary].launch_with(&["-c", "synchronous_standby_names="]);
                self.nodes[primary].wait_until_ready();
                // It is there, takes writes, and nobody may use it.
                load.until_answered(AFTERWARDS, RECOVERY);
                thread::sleep(*away);
                let [first, second] = &mut self.nodes;
                let (old, new) = if primary == 0 {
                    (first, second)
                } else {
                    (second, first)
                };
                old.become_standby(new, true);
                self.primary = standby;
            }
            Fault::Links(of, link, time) => {
                let all = self.links.iter().enumerate();
                let concerned = all.filter(|(number, _)| of.is_none_or(|of| of == *number));
                let concerned: Vec<&Proxy> = concerned.flat_map(|(_, links)| links).collect();
                for proxy in &concerned {
                    proxy.set(*link);
                }
                thread::sleep(*time);
                for proxy in &concerned {
                    proxy.set(Link::Pass);
                }
            }
            Fault::Freeze(time) => {
                self.nodes[primary].freeze();
                thread::sleep(*time);
                self.nodes[primary].thaw();
            }
        }
    }

    /// Compares what was answered with what is in the histories.
    fn check(&self, load: &Load, round: usize) {
        let mut recorded = 0;
        for (account, token) in self.tokens.iter().enumerate() {
            let histories: Vec<String> = self
                .servers
                .iter()
                .map(|server| {
                    let answer = get(server, token, "/api/usage.csv");
                    assert_eq!(answer.status, 200, "round {round}: {}", answer.text());
                    answer.text().to_owned()
                })
                .collect();
            let same = histories.iter().all(|history| *history == histories[0]);
            assert!(same, "round {round}: replicas tell different histories");
            let sizes = sizes_of(&histories[0]);
            let page = get(&self.servers[0], token, "/api/usage?limit=1").json();
            assert_eq!(page["totals"]["conversions"], sizes.len(), "round {round}");
            let twice = sizes.iter().find(|(_, times)| **times != 1);
            assert_eq!(twice, None, "round {round}: it was recorded so often");
            for size in load.answered(account) {
                assert!(
                    sizes.contains_key(&size),
                    "round {round}: {size:?} was answered and is not there"
                );
            }
            recorded += sizes.len();
        }
        load.check(round, recorded, LONGEST_REQUEST, LONGEST_HEALTH);
        self.replicas.check_over(&self.both());
    }
}

fn start(replicas: &Replicas, links: &[Proxy; 2]) -> Server {
    let ports = [links[0].port(), links[1].port()];
    let database: Database = replicas.database.behind(&ports);
    let timeout = STORE_TIMEOUT.as_secs().to_string();
    replicas.start_over(&database, &["--store-timeout", &timeout])
}

/// How often each size of a picture is in a history.
fn sizes_of(csv: &str) -> HashMap<Size, usize> {
    let mut rows = csv.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let names = rows.next().expect("the names of the columns");
    let column = |name| names.iter().position(|given| *given == name).expect("it");
    let (width, height) = (column("width"), column("height"));
    let mut sizes = HashMap::new();
    for row in rows {
        let number = |column: usize| row[column].parse().expect("a number");
        *sizes.entry((number(width), number(height))).or_default() += 1;
    }
    sizes
}

fn from_environment<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let number = text.parse().ok();
    Some(number.unwrap_or_else(|| panic!("{name} is {text:?}, and should be a number")))
}
