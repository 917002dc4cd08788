//! Admission beside a slow disk, and beside other servers on the same store.

use super::asset::Asset;
use super::convert::Progress;
use super::request::Request;
use super::response::Response;
use super::*;
use crate::admission::MemoryBudget;
use crate::dashboard::paths;
use crate::fetch::{self, Fetcher};
use crate::front::{self, ByteQueue, Listeners};
use crate::store::tests::disk::Disk;
use crate::store::tests::shared::two;
use crate::store::tests::{entry, store_on};
use crate::store::{Account, AccountId, FailureFilter, Store, TokenNumber, UsageEntry};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use towebp_pipeline::conversion::{CpuBudget, Fonts};
use towebp_pipeline::image;

/// How long a test waits for what should happen at once.
const DEADLINE: Duration = Duration::from_mins(1);

#[test]
fn admission_does_not_read_the_disk() {
    let disk = Disk::default();
    let state = state(&disk);
    let store = &state.store;
    let owner = account(store, "owner@example.org");
    let rotated = account(store, "rotated@example.org");
    let spent = account(store, "spent@example.org");
    let cookie = store
        .start_session(owner.id, &crate::store::Browser::default())
        .unwrap();
    let old = store.token(rotated.id).unwrap();
    store
        .rotate_token(rotated.id, TokenNumber::DEFAULT, Duration::ZERO)
        .unwrap();
    for _ in 0..2 {
        let entry = UsageEntry {
            time: SystemTime::now(),
            ..entry(1)
        };
        store.record_usage(spent.id, &entry).unwrap();
    }
    let convert =
        |account: &Account| format!("/convert?token={}", store.token(account.id).unwrap());
    let cookie = format!("towebp_session={cookie}");
    let form = "application/x-www-form-urlencoded";
    let mut cases = vec![
        ("POST", convert(&owner), "image/png", None),
        (
            "POST",
            format!("/convert?token={old}"),
            "image/png",
            Some(401),
        ),
        ("POST", "/convert".to_owned(), "image/png", Some(401)),
        ("GET", "/healthz".to_owned(), "", Some(200)),
    ];
    for page in ["/", "/dashboard", "/api/usage", "/readyz"] {
        cases.push(("GET", page.to_owned(), "", None));
    }
    cases.push(("GET", "/nothing".to_owned(), "", Some(404)));
    for page in routes::forms() {
        cases.push(("POST", page.to_owned(), form, None));
        cases.push(("POST", page.to_owned(), "image/png", Some(400)));
    }
    // Last, because a failure of a known account is written soon.
    cases.push(("POST", convert(&spent), "image/png", Some(429)));
    disk.slow_down(Duration::from_secs(1));
    for (method, target, content_type, expected) in cases {
        let headers = [("Cookie", cookie.as_str()), ("Content-Type", content_type)];
        let request = Request::new(
            method,
            &target,
            Ipv4Addr::LOCALHOST.into(),
            headers.into_iter(),
        );
        let reads = disk.reads();
        let rejected = admitted::admit(&state, routes::by_path(&request.path), &request).err();
        assert_eq!(disk.reads(), reads, "{method} {}: a read", request.path);
        assert_eq!(
            rejected.map(|response| response.status),
            expected,
            "{method} {}",
            request.path
        );
    }
    disk.slow_down(Duration::ZERO);
}

#[test]
fn while_the_disk_does_not_answer_the_event_loop_goes_on() {
    let disk = Disk::default();
    let state = state(&disk);
    let store = Arc::clone(&state.store);
    let owner = account(&store, "owner@example.org");
    let token = store.token(owner.id).unwrap();
    let cookie = store
        .start_session(owner.id, &crate::store::Browser::default())
        .unwrap();
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let listeners = Listeners::bind(&[local], front::Settings::default()).expect("a free port");
    let server = serve(listeners, state).expect("a server");
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(server.addresses[0]).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let convert = |token: &str| {
        ask(&format!(
            "POST /convert?token={token} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\n\
             Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"
        ))
    };

    let reads_go_on = disk.hold_up_reads();
    let reads = disk.reads();
    let dashboard =
        format!("GET /dashboard HTTP/1.1\r\nHost: a\r\nCookie: towebp_session={cookie}\r\n\r\n");
    let mut page = ask(&dashboard);
    let deadline = Instant::now() + DEADLINE;
    while disk.reads() == reads {
        assert!(Instant::now() < deadline, "no worker has begun to read");
        thread::sleep(Duration::from_millis(1));
    }
    let mut conversion = convert(&token);
    assert_eq!(status(&mut conversion), 100, "its body is asked for");
    assert_eq!(status(&mut convert("twp_forged")), 401);
    for _ in 0..3 {
        assert_eq!(
            status(&mut ask("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")),
            200
        );
    }
    drop(reads_go_on);

    conversion.write_all(b"GIF").unwrap();
    assert_eq!(status(&mut conversion), 400, "no picture");
    assert_eq!(status(&mut page), 200, "the page that had to wait");
    server
        .shutdown
        .shut_down()
        .expect("its thread can be woken");
    server.wait().expect("a graceful end");
}

#[test]
fn what_is_wrong_with_a_request_is_told_when_its_token_is_known() {
    let (engine, first, second) = two();
    let state = state_of(first);
    let owner = account(&second, "owner@example.org").id;
    let old = second.token(owner).unwrap();
    let rotated = second.rotate_token(owner, TokenNumber::DEFAULT, Duration::ZERO);
    let token = second.token_text(owner, &rotated.unwrap().unwrap());
    let asked = || engine.asked.load(Ordering::SeqCst);
    let before = asked();
    let wrong = |token: &str| convert(&state, &format!("/convert?quality=high&token={token}"));
    let (is_rejected, response) = wrong(&old);
    assert_eq!((is_rejected, response.status), (false, 401));
    let (is_rejected, response) = convert(&state, "/convert?quality=high&token=twp_forged");
    assert_eq!((is_rejected, response.status), (true, 401));
    thread::sleep(Duration::from_secs(1));
    let (is_rejected, response) = wrong(&token);
    assert_eq!((is_rejected, response.status), (false, 400));
    assert_eq!(asked(), before + 2, "the event loop asked");
    let (is_rejected, response) = wrong(&token);
    assert_eq!((is_rejected, response.status), (true, 400));
    assert_eq!(failures(&state, owner), [400, 400]);
}

#[test]
fn a_month_that_another_server_fills_meanwhile_is_a_429() {
    let (_, first, second) = two();
    let state = state_of(first);
    let owner = account(&second, "owner@example.org").id;
    let target = format!("/convert?token={}", second.token(owner).unwrap());
    let (_, response) = convert(&state, &target);
    assert_eq!(response.status, 200);
    let entry = UsageEntry {
        time: SystemTime::now(),
        ..entry(1)
    };
    second.record_usage(owner, &entry).unwrap();
    let (_, response) = convert(&state, &target);
    assert_eq!(response.status, 429);
    let header = |name: &str| {
        let mut values = response.headers.iter().filter(|(it, _)| *it == name);
        let value = values.next().map(|(_, value)| value.clone());
        assert!(values.next().is_none(), "{name} is there twice");
        value
    };
    assert!(header("Retry-After").is_some());
    let limit = header("RateLimit").unwrap();
    assert!(limit.contains("\"month\";r=0;"), "{limit}");
    assert_eq!(failures(&state, owner), [429]);
    assert_eq!(second.usage_totals(owner).unwrap().conversions, 2);
}

#[test]
fn while_changes_of_tokens_come_into_force_no_thread_waits() {
    let (_, first, second) = two();
    let state = state_of(first);
    let store = Arc::clone(&state.store);
    let owner = account(&store, "owner@example.org");
    let old = store.token(owner.id).unwrap();
    let cookie = store
        .start_session(owner.id, &crate::store::Browser::default())
        .unwrap();
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let settings = front::Settings {
        trusted_proxies: vec!["127.0.0.1".parse().expect("an address")],
        ..front::Settings::default()
    };
    let listeners = Listeners::bind(&[local], settings).expect("a free port");
    let server = serve(listeners, state).expect("a server");
    let ask = |request: String| {
        let mut stream = TcpStream::connect(server.addresses[0]).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let head = format!("Host: a\r\nConnection: close\r\nCookie: towebp_session={cookie}\r\n");
    let mut page = String::new();
    ask(format!("GET {} HTTP/1.1\r\n{head}\r\n", paths::TOKENS))
        .read_to_string(&mut page)
        .unwrap();
    let (_, secret) = page
        .split_once("name=\"csrf\" value=\"")
        .expect("the field");
    let form = format!("csrf={}", secret.split('"').next().expect("its value"));
    // From addresses of their own, so that each has a worker.
    let began = Instant::now();
    let rotating: Vec<TcpStream> = (1..=8)
        .map(|number| {
            ask(format!(
                "POST {} HTTP/1.1\r\n{head}X-Forwarded-For: 192.0.2.{number}\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
                paths::ROTATE_TOKEN,
                form.len()
            ))
        })
        .collect();
    for path in ["/readyz", paths::SIGN_IN, "/readyz"] {
        let mut stream = ask(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(status(&mut stream), 200, "{path}");
    }
    let is_unanswered = |stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        let peeked = stream.peek(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        peeked.is_err()
    };
    assert!(rotating.iter().all(is_unanswered), "{:?}", began.elapsed());
    for mut stream in rotating {
        assert_eq!(status(&mut stream), 303);
    }
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert!(second.authenticate(&old).is_err(), "it is in force");
}

/// Answers a conversion of a tiny picture. Returns whether it was rejected by its head, too.
fn convert(state: &AppState, target: &str) -> (bool, Response) {
    let headers = [("Content-Type", "image/bmp")];
    let client = Ipv4Addr::LOCALHOST.into();
    let request = Request::new("POST", target, client, headers.into_iter());
    match admitted::admit(state, routes::by_path(&request.path), &request) {
        Err(response) => (true, response),
        Ok((_, work)) => {
            let mut body = ByteQueue::default();
            body.push(health::PICTURE, None);
            let answered = admitted::answer(state, &request, work, &mut body, || {});
            let response = match answered {
                Ok(Progress::Done(response)) => response,
                Ok(Progress::Waits(_)) => panic!("there is memory"),
                Err(problem) => problem.into(),
            };
            (false, response)
        }
    }
}

/// The status codes of an account's failures, the newest first.
fn failures(state: &AppState, account: AccountId) -> Vec<u16> {
    let page = state
        .store
        .failures(account, &FailureFilter::default(), None, 9);
    let failures = page.unwrap().entries;
    failures.iter().map(|(_, failure)| failure.status).collect()
}

/// A state on this disk: two workers, two conversions a month.
fn state(disk: &Disk) -> AppState {
    state_of(store_on(disk))
}

fn state_of(store: Store) -> AppState {
    let settings = Settings {
        threads: NonZeroUsize::new(2).unwrap(),
        monthly_quota: NonZeroU64::new(2),
        rate_limit: NonZeroU32::new(1000),
        ..Settings::default()
    };
    let fetcher = Fetcher::new(&fetch::Settings::default()).expect("default settings");
    AppState {
        openapi: openapi::describe(&settings),
        ..state_by(store, fetcher, MemoryBudget::new(u64::MAX, 2), settings)
    }
}

/// A state by these settings, without the description of the API, which takes longer to make than
/// everything else.
pub(super) fn state_by(
    store: Store,
    fetcher: Fetcher,
    memory: MemoryBudget,
    settings: Settings,
) -> AppState {
    AppState {
        store: Arc::new(store),
        fetcher,
        fonts: Fonts::default(),
        limits: image::Limits::default(),
        cpu_budget: CpuBudget::new(NonZeroUsize::MIN),
        memory,
        limiters: Limiters::new(&settings),
        readiness: Readiness::default(),
        metrics: Metrics::default(),
        openapi: Asset::new("application/json", "{}"),
        settings,
    }
}

fn account(store: &Store, email: &str) -> Account {
    store.create_account(email, None).unwrap()
}

/// The status of the next response, after reading its head.
fn status(stream: &mut TcpStream) -> u16 {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer in time");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("ASCII");
    head["HTTP/1.1 ".len()..][..3].parse().expect("a status")
}
