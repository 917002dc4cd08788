//! What the other tests stand on does what it says: PostgreSQL with its standby, and the link.

use crate::proxy::{Link, Proxy};
use crate::support::postgres::{PASSWORD, Postgres, ROLE, shared};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

#[test]
fn the_role_comes_by_tls_and_password_alone() {
    let Some(server) = shared() else {
        return;
    };
    let database = server.database();
    let ca = database.ca.to_str().expect("ASCII");
    let verified = format!("sslmode=verify-full sslrootcert={ca}");
    let as_role = |ssl: &str, password: &str| {
        let connection = format!(
            "host=127.0.0.1 port={} user={ROLE} dbname={} {ssl}",
            server.port(),
            database.name
        );
        ask(&connection, password)
    };
    let good = as_role(&verified, PASSWORD);
    assert!(good.status.success(), "{good:?}");
    assert!(!as_role(&verified, "guessed").status.success());
    assert!(!as_role("sslmode=disable", PASSWORD).status.success());
    let other = server.other_ca();
    let other = format!("sslmode=verify-full sslrootcert={}", other.display());
    assert!(!as_role(&other, PASSWORD).status.success());
}

/// A row that the standby shows as soon as it is committed: by default, it has only been flushed
/// there.
fn insert(number: u32) -> String {
    format!("SET synchronous_commit = remote_apply; INSERT INTO t VALUES ({number})")
}

#[test]
fn a_standby_follows_is_promoted_and_the_old_primary_comes_back() {
    let Some(mut first) = Postgres::start() else {
        return;
    };
    first.sql("postgres", "CREATE TABLE t (n INT PRIMARY KEY)");
    let mut second = first.standby(true);
    first.sql("postgres", &insert(1));
    assert_eq!(second.sql("postgres", "SELECT * FROM t"), "1");
    first.kill();
    second.promote();
    second.sql("postgres", "INSERT INTO t VALUES (2)");
    first.launch_with(&["-c", "synchronous_standby_names="]);
    first.wait_until_ready();
    first.sql("postgres", "INSERT INTO t VALUES (3)");
    first.become_standby(&second, true);
    second.freeze();
    second.thaw();
    second.stop();
    second.resume();
    second.sql("postgres", &insert(4));
    assert_eq!(
        first.sql("postgres", "SELECT string_agg(n::text, '') FROM t"),
        "124"
    );
}

#[test]
fn the_link_holds_drips_and_cuts() {
    let Some(server) = shared() else {
        return;
    };
    let proxy = Proxy::to(server.port());
    let database = server.database();
    let query = || {
        let connection = format!(
            "host=127.0.0.1 port={} user={ROLE} dbname={} sslmode=require connect_timeout=2",
            proxy.port(),
            database.name
        );
        let begun = Instant::now();
        (ask(&connection, PASSWORD).status.success(), begun.elapsed())
    };
    assert!(query().0);
    proxy.set(Link::Cut);
    assert!(!query().0);
    proxy.set(Link::Hold);
    let (answered, after) = query();
    assert!(!answered && after > Duration::from_secs(1), "{after:?}");
    proxy.set(Link::Drip);
    assert!(!query().0, "a handshake has some thousands of bytes");
    proxy.set(Link::Pass);
    assert!(query().0);
}

fn ask(connection: &str, password: &str) -> Output {
    Command::new("psql")
        .args([
            "--no-psqlrc",
            "--command",
            "SELECT 1",
            "--dbname",
            connection,
        ])
        .env("PGPASSWORD", password)
        .env("PGPASSFILE", "/dev/null")
        .output()
        .expect("psql is installed wherever the server is")
}
