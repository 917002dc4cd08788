//! The clocks of the replicas' machines are minutes away from the database's, whose time holds.

use crate::replicas::{OWNER, Replicas, convert, get};
use crate::support::postgres::shared;
use std::time::{Duration, SystemTime};

#[test]
fn the_database_s_clock_holds_at_every_replica() {
    for (ahead, later) in [("10 minutes", true), ("-10 minutes", false)] {
        let Some(server) = shared() else {
            return;
        };
        let replicas = Replicas::of(server.database());
        let name = &replicas.database.name;
        // What asks for the time of this database is told another one than that of the machine.
        server.sql(
            name,
            &format!(
                "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql
                 AS 'SELECT pg_catalog.clock_timestamp() + interval ''{ahead}'''"
            ),
        );
        let path = format!("ALTER DATABASE {name} SET search_path = public, pg_catalog");
        server.sql("postgres", &path);
        let servers = [replicas.start(&[]), replicas.start(&[])];
        let token = replicas.create_account(OWNER);
        for server in servers.iter().chain(&servers) {
            assert_eq!(convert(server, &token).status, 200);
        }
        let page = get(&servers[0], &token, "/api/usage").json();
        let entries = page["entries"].as_array().expect("a list");
        assert_eq!(entries.len(), 4, "{page}");
        let (here, minutes) = (SystemTime::now(), Duration::from_mins(8));
        for entry in entries {
            let time = entry["time"].as_str().expect("a time");
            let time = humantime::parse_rfc3339(time).expect("RFC 3339");
            let is_so = if later {
                time > here + minutes
            } else {
                time < here - minutes
            };
            assert!(is_so, "{ahead}: {page}");
        }
        for server in &servers {
            let log = server.log();
            assert_eq!(log.matches("differ by").count(), 1, "told once: {log}");
        }
    }
}
