//! `kill -9` in the middle of the work, again and again on the same data: every answered conversion
//! is in the history, none twice, and the database is sound.
//!
//! `TOWEBP_KILL_ROUNDS` is the number of kills (3 if it is not set), `TOWEBP_KILL_SEED` the seed of
//! their moments. `TOWEBP_KILL_ROUNDS=100 cargo test --release --test service kill -- --nocapture`
//! prints the result.

use crate::support::command::{run, towebp};
use crate::support::service::{Service, Size, send};
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use towebp_encoder::testing::Random;

const CLIENTS: usize = 4;

/// From the first request of a round to the kill, at most.
const LONGEST: Duration = Duration::from_millis(800);

#[test]
fn answered_conversions_survive_kill_9_exactly_once() {
    let rounds: usize = from_environment("TOWEBP_KILL_ROUNDS").unwrap_or(3);
    let seed = from_environment("TOWEBP_KILL_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.expect("it is after 1970").as_micros() as u64
    });
    println!("TOWEBP_KILL_SEED={seed}");
    let mut random = Random::new(seed);
    let (next, mut answered) = (AtomicU32::new(0), Vec::new());
    let mut longest_reopening = Duration::ZERO;
    let mut service = Service::start();
    for round in 1..=rounds {
        let Service { server, token } = &service;
        let of_this_round = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| convert_until_killed(&service, &next, &of_this_round));
            }
            // In the first rounds too there is something to lose.
            until_some(&of_this_round);
            let moment = random.below(LONGEST.as_micros() as u32);
            thread::sleep(Duration::from_micros(moment.into()));
            server.signal(rustix::process::Signal::KILL);
        });
        let token = token.clone();
        let folder = service.server.kill();
        answered.extend(of_this_round.into_inner().expect("no client panicked"));
        let reopening = Instant::now();
        service = Service::resume(folder, token);
        longest_reopening = longest_reopening.max(reopening.elapsed());
        check(&service, &answered, round);
    }
    let recorded = service.sizes().len();
    println!(
        "{rounds} rounds, {} answered, {recorded} recorded, longest reopening {longest_reopening:?}",
        answered.len()
    );
    let data = service.data();
    let _folder = service.server.kill();
    let checked = run(towebp().arg("check").arg("--data").arg(data), b"");
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "without a server: {said}");
}

fn convert_until_killed(service: &Service, next: &AtomicU32, answered: &Mutex<Vec<Size>>) {
    loop {
        let number = next.fetch_add(1, Ordering::SeqCst);
        let size = (32 + number % 256, 32 + number / 256);
        // After the kill nothing is answered any more.
        let Ok(answer) = send(service.address(), &service.message(size)) else {
            return;
        };
        assert_eq!(answer.status, 200, "{}", answer.text());
        answered.lock().expect("no client panicked").push(size);
    }
}

fn until_some(answered: &Mutex<Vec<Size>>) {
    let started = Instant::now();
    while answered.lock().expect("no client panicked").is_empty() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "the conversions take too long"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

fn check(service: &Service, answered: &[Size], round: usize) {
    let sizes: HashMap<Size, usize> = service.sizes();
    for size in answered {
        let times = sizes.get(size).copied().unwrap_or(0);
        assert_eq!(
            times, 1,
            "round {round}: {size:?} was answered and is there {times} times"
        );
    }
    assert!(
        sizes.values().all(|times| *times == 1),
        "round {round}: entries are there twice"
    );
    // One of each client may have been recorded when a kill cut off its answer.
    assert!(
        sizes.len() <= answered.len() + CLIENTS * round,
        "round {round}: {} entries for {} answers",
        sizes.len(),
        answered.len()
    );
    let checked = run(towebp().arg("check").arg("--data").arg(service.data()), b"");
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "round {round}: {said}");
}

fn from_environment<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let number = text.parse().ok();
    Some(number.unwrap_or_else(|| panic!("{name} is {text:?}, and should be a number")))
}
