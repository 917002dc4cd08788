//! The database goes away and comes back, here or on another machine.

use crate::proxy::{Link, Proxy};
use crate::replicas::{OWNER, Replicas, convert, get, until_ready};
use crate::support::command::{run, towebp};
use crate::support::postgres::{Postgres, ROLE, shared};
use crate::support::{Server, read_response};
use std::fs;
use std::time::{Duration, Instant};

const TIMEOUT: [&str; 2] = ["--store-timeout", "2"];

#[test]
fn while_the_database_is_away_no_body_is_read_and_healthz_answers() {
    let Some(mut database) = Postgres::start() else {
        return;
    };
    let replicas = Replicas::of(database.database());
    let replica = replicas.start(&TIMEOUT);
    let token = replicas.create_account(OWNER);
    assert_eq!(convert(&replica, &token).status, 200);
    database.stop();
    let begun = Instant::now();
    let refused = convert(&replica, &token);
    refused.problem(503, "storage_unavailable");
    // It waited for the database, and not much longer than it may.
    assert!(begun.elapsed() < Duration::from_secs(8), "{refused:?}");
    let ready = replica.request("GET", "/readyz").send();
    assert_eq!(ready.status, 503, "{}", ready.text());
    assert_eq!(replica.request("GET", "/healthz").send().status, 200);
    // Nothing of the body is sent: the answer comes all the same.
    let mut client = replica.send_raw(format!(
        "POST /convert?token={token} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\n\
         Content-Length: 1000\r\nConnection: close\r\n\r\n"
    ));
    read_response(&mut client, false).problem(503, "storage_unavailable");
    database.resume();
    until_ready([&replica]);
    assert_eq!(convert(&replica, &token).status, 200);
    let page = get(&replica, &token, "/api/usage").json();
    assert_eq!(page["totals"]["conversions"], 2, "{page}");
    let log = replica.log();
    let told = log.lines().filter(|line| line.contains("ERROR")).count();
    assert!((1..=4).contains(&told), "{told} errors are told: {log}");
}

#[test]
fn an_old_primary_that_comes_back_gets_nothing() {
    let Some(mut old) = Postgres::start() else {
        return;
    };
    let new = old.standby(true);
    let replicas = Replicas::of(old.database());
    let both = replicas.database.behind(&[old.port(), new.port()]);
    let before = replicas.start_over(&both, &TIMEOUT);
    let token = replicas.create_account(OWNER);
    assert_eq!(convert(&before, &token).status, 200);
    old.kill();
    new.promote();
    until_ready([&before]);
    assert_eq!(convert(&before, &token).status, 200);
    old.launch_with(&["-c", "synchronous_standby_names="]);
    old.wait_until_ready();
    // One that knew the new primary, and one that finds both, the old one first.
    let after = replicas.start_over(&both, &TIMEOUT);
    for replica in [&before, &after] {
        for _ in 0..3 {
            assert_eq!(convert(replica, &token).status, 200);
        }
    }
    let rows =
        |server: &Postgres| server.sql(&replicas.database.name, "SELECT count(*) FROM usage");
    assert_eq!((rows(&old), rows(&new)), ("1".into(), "8".into()));
}

#[test]
fn a_new_replica_that_reaches_an_old_primary_alone_does_not_take_it() {
    let Some(mut old) = Postgres::start() else {
        return;
    };
    let new = old.standby(false);
    let replicas = Replicas::of(old.database());
    let both = replicas.database.behind(&[old.port(), new.port()]);
    let before = replicas.start_over(&both, &TIMEOUT);
    let token = replicas.create_account(OWNER);
    assert_eq!(convert(&before, &token).status, 200);
    old.until(
        "SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()",
    );
    old.kill();
    new.promote();
    until_ready([&before]);
    assert_eq!(convert(&before, &token).status, 200);
    // Commits of the old primary wait for nobody: it takes writes as it did.
    old.resume();
    // The replica that goes on marks it, within some heartbeats.
    let database = &replicas.database.name;
    let begun = Instant::now();
    let mark = "SELECT count(*) FROM meta WHERE name = 'timeline' AND value > 1";
    while old.sql(database, mark) != "1" {
        assert!(begun.elapsed() < Duration::from_mins(1), "it is not marked");
        std::thread::sleep(Duration::from_millis(100));
    }
    // A new one reaches the old primary alone.
    let cut = Proxy::to(new.port());
    cut.set(Link::Hold);
    let way = replicas.database.behind(&[old.port(), cut.port()]);
    let flags = way.flags();
    let secret = replicas.secret();
    let output = run(
        towebp()
            .args(["account", "create", "late@example.org", "--secret-file"])
            .arg(&secret)
            .args(&flags),
        b"",
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("old primary"),
        "{said}"
    );
    let count = |server: &Postgres| server.sql(database, "SELECT count(*) FROM accounts");
    assert_eq!(count(&old), "1");
    // With the new one in reach it takes that.
    cut.set(Link::Pass);
    let after = replicas.start_over(&way, &TIMEOUT);
    assert_eq!(convert(&after, &token).status, 200);
}

#[test]
fn a_primary_that_does_not_know_of_its_successor_is_left() {
    let Some(old) = Postgres::start() else {
        return;
    };
    let new = old.standby(false);
    let replicas = Replicas::of(old.database());
    let both = replicas.database.behind(&[old.port(), new.port()]);
    let cut = Proxy::to(new.port());
    let way = replicas.database.behind(&[old.port(), cut.port()]);
    let [near, far] = [&both, &way].map(|way| replicas.start_over(way, &TIMEOUT));
    let token = replicas.create_account(OWNER);
    for replica in [&near, &far] {
        assert_eq!(convert(replica, &token).status, 200);
    }
    let database = &replicas.database.name;
    let rows = |server: &Postgres| server.sql(database, "SELECT count(*) FROM usage");
    old.until(
        "SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()",
    );
    assert_eq!(rows(&new), "2");
    // The old primary runs on, with all connections to it; one replica reaches nothing else.
    cut.set(Link::Hold);
    new.promote();
    until_not_ready(&far);
    convert(&far, &token).problem(503, "storage_unavailable");
    let kept = rows(&old);
    until_ready([&near]);
    assert_eq!(convert(&near, &token).status, 200);
    assert_eq!((rows(&old), rows(&new)), (kept, "3".into()));
    cut.set(Link::Pass);
    until_ready([&far]);
    assert_eq!(convert(&far, &token).status, 200);
    assert_eq!(rows(&new), "4");
}

/// A dump of the tables in another database system: what the numbers of timelines were in the first
/// one says nothing there.
#[test]
fn a_restored_dump_is_no_old_primary() {
    let Some(first) = Postgres::start() else {
        return;
    };
    let standby = first.standby(false);
    let replicas = Replicas::of(first.database());
    let hosts = replicas.database.behind(&[first.port(), standby.port()]);
    drop(replicas.start_over(&hosts, &TIMEOUT));
    let database = &replicas.database.name;
    let system = "SELECT count(*) FROM meta WHERE name IN ('timeline', 'system')";
    assert_eq!(first.sql(database, system), "2");
    first.sql(
        database,
        "UPDATE meta SET value = 7 WHERE name = 'timeline'",
    );
    let refused = replicas.command_over(&hosts, &["account", "list"]);
    assert!(!refused.status.success(), "{refused:?}");
    first.sql(database, "UPDATE meta SET value = 5 WHERE name = 'system'");
    let replica = replicas.start_over(&hosts, &TIMEOUT);
    let token = replicas.create_account(OWNER);
    assert_eq!(convert(&replica, &token).status, 200);
    let timeline = "SELECT value FROM meta WHERE name = 'timeline'";
    assert_eq!(first.sql(database, timeline), "1");
}

#[test]
fn a_host_that_says_nothing_does_not_keep_a_replica_from_the_others() {
    let Some(database) = shared() else {
        return;
    };
    let replicas = Replicas::of(database.database());
    let silent = Proxy::to(database.port());
    silent.set(Link::Hold);
    let both = replicas.database.behind(&[silent.port(), database.port()]);
    let replica = replicas.start_over(&both, &[]);
    let token = replicas.create_account(OWNER);
    assert_eq!(convert(&replica, &token).status, 200);
}

#[test]
fn the_password_is_changed_while_a_replica_runs() {
    // A role's password is everybody's: this server is no one else's.
    let Some(server) = Postgres::start() else {
        return;
    };
    let replicas = Replicas::of(server.database());
    let replica = replicas.start(&TIMEOUT);
    let token = replicas.create_account(OWNER);
    let connections_end = || {
        let end = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{ROLE}'"
        );
        server.sql("postgres", &end);
    };
    fs::write(&replicas.database.password_file, "the next one\n").expect("it is ours");
    assert_eq!(convert(&replica, &token).status, 200);
    server.sql(
        "postgres",
        &format!("ALTER ROLE {ROLE} PASSWORD 'the next one'"),
    );
    connections_end();
    until_ready([&replica]);
    assert_eq!(convert(&replica, &token).status, 200);
    // The other order: it is away until the file has the new one.
    server.sql(
        "postgres",
        &format!("ALTER ROLE {ROLE} PASSWORD 'the last one'"),
    );
    connections_end();
    until_not_ready(&replica);
    fs::write(&replicas.database.password_file, "the last one\n").expect("it is ours");
    until_ready([&replica]);
    assert_eq!(convert(&replica, &token).status, 200);
}

fn until_not_ready(server: &Server) {
    let begun = Instant::now();
    while server.request("GET", "/readyz").send().status == 200 {
        assert!(begun.elapsed() < Duration::from_mins(1));
        std::thread::sleep(Duration::from_millis(20));
    }
}
