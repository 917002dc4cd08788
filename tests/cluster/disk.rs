//! The disk of PostgreSQL is full, and has room again.

use crate::replicas::{OWNER, Replicas, convert, until_ready};
use crate::support::postgres::Postgres;
use std::time::{Duration, Instant};

#[test]
fn a_full_disk_of_postgresql_refuses_conversions_until_there_is_room() {
    let Some(server) = Postgres::start_on_small_disk(96) else {
        return;
    };
    let replicas = Replicas::of(server.database());
    let replica = replicas.start(&[]);
    let token = replicas.create_account(OWNER);
    let mut recorded = 0;
    for _ in 0..3 {
        assert_eq!(convert(&replica, &token).status, 200);
        recorded += 1;
    }
    server.fill_disk();
    // The pages that there are have room for some more.
    let deadline = Instant::now() + Duration::from_mins(2);
    let refused = loop {
        let answer = convert(&replica, &token);
        if answer.status != 200 {
            break answer;
        }
        recorded += 1;
        assert!(Instant::now() < deadline, "{recorded} and no end");
    };
    assert_eq!(
        refused.problem(503, "storage_unavailable"),
        refused.json()["detail"]
    );
    for _ in 0..3 {
        let answer = convert(&replica, &token);
        assert!([200, 503].contains(&answer.status), "{}", answer.text());
        recorded += u32::from(answer.status == 200);
    }
    assert_eq!(replica.request("GET", "/healthz").send().status, 200);
    server.empty_disk();
    let after = until_ready([&replica]);
    assert!(after < Duration::from_secs(10), "{after:?}");
    assert_eq!(convert(&replica, &token).status, 200);
    recorded += 1;
    let usage = replicas.done(&["account", "list"]);
    assert!(usage.contains(&recorded.to_string()), "{recorded}: {usage}");
    replicas.check();
}
