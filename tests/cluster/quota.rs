//! A monthly quota over several replicas, two of which are killed: never one over, and all of it
//! can be used. `TOWEBP_QUOTA` is its size (100 if it is not set).

use crate::replicas::{OWNER, Replicas, convert, get};
use crate::support::picture::Picture;
use crate::support::postgres::shared;
use crate::support::{Server, TIMEOUT, try_read_response};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const CLIENTS: usize = 9;

#[test]
fn a_quota_holds_over_three_replicas_of_which_two_are_killed() {
    let Some(server) = shared() else {
        return;
    };
    let quota: u64 = match std::env::var("TOWEBP_QUOTA") {
        Ok(number) => number.parse().expect("TOWEBP_QUOTA is a number"),
        Err(_) => 100,
    };
    let replicas = Replicas::of(server.database());
    let given = quota.to_string();
    let start = || replicas.start(&["--monthly-quota", &given]);
    let [first, second, last] = [start(), start(), start()];
    let token = replicas.create_account(OWNER);
    let done = AtomicU64::new(0);
    let load = |addresses: &[SocketAddr], until: u64| {
        thread::scope(|scope| {
            for number in 0..CLIENTS {
                let address = addresses[number % addresses.len()];
                let (done, token) = (&done, &token);
                scope.spawn(move || {
                    while done.load(Ordering::SeqCst) < until {
                        // A replica that was killed answers nobody any more.
                        let Ok(status) = ask(address, token) else {
                            return;
                        };
                        match status {
                            200 => done.fetch_add(1, Ordering::SeqCst),
                            429 => return,
                            503 => continue,
                            _ => panic!("{status}"),
                        };
                    }
                });
            }
        });
    };
    load(&[first.address, second.address, last.address], quota / 3);
    // In the middle of the work: both are asked while they end.
    thread::scope(|scope| {
        scope.spawn(|| {
            load(
                &[first.address, second.address, last.address],
                quota * 3 / 4,
            );
        });
        thread::sleep(std::time::Duration::from_millis(30));
        for server in [&first, &second] {
            server.signal(rustix::process::Signal::KILL);
        }
    });
    assert!(done.load(Ordering::SeqCst) <= quota);
    load(&[last.address], u64::MAX);
    let refused = convert(&last, &token);
    assert_eq!(
        refused.json()["code"],
        "quota_exceeded",
        "{}",
        refused.text()
    );
    let page = get(&last, &token, "/api/usage?limit=1").json();
    assert_eq!(page["totals"]["conversions"], quota, "{page}");
    let rows = get(&last, &token, "/api/usage.csv");
    assert_eq!(rows.text().lines().count() as u64, 1 + quota);
    let done = done.into_inner();
    // Of a killed replica's clients each may have lost one answer.
    assert!(done <= quota && done + CLIENTS as u64 >= quota, "{done}");
    // A replica that starts afterwards knows, too.
    let new = start();
    assert_eq!(convert(&new, &token).status, 429);
    drop::<[Server; 3]>([first, second, new]);
    replicas.check();
}

fn ask(address: SocketAddr, token: &str) -> std::io::Result<u16> {
    let png = Picture::waves(16, 16).png();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    write!(
        stream,
        "POST /convert?token={token} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
         Content-Type: image/png\r\nContent-Length: {}\r\n\r\n",
        png.len()
    )?;
    stream.write_all(&png)?;
    Ok(try_read_response(&mut stream, false)?.status)
}
