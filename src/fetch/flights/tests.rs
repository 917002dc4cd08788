//! With loads that the test holds back and lets go.

use super::*;
use std::sync::mpsc::{self, Receiver, Sender};

/// A machine may be busy.
const PATIENCE: Duration = Duration::from_mins(1);

type Outcome = Result<Download, FetchError>;

/// Says that a load has begun, of which URL, and takes its outcome. A load whose sender is dropped panics.
type Begun = (String, Sender<Outcome>);

/// Flights whose loads wait for the test.
fn held(timeout: Duration) -> (Arc<Flights>, Receiver<Begun>) {
    held_with(&Settings {
        timeout,
        ..settings()
    })
}

/// With one account as good as many.
fn settings() -> Settings {
    Settings {
        fetches_per_account: usize::MAX,
        queue_per_account: usize::MAX,
        ..Settings::default()
    }
}

fn held_with(settings: &Settings) -> (Arc<Flights>, Receiver<Begun>) {
    let (begin, begun) = mpsc::channel();
    let begin = Mutex::new(begin);
    let flights = Flights::new(
        settings,
        Box::new(move |uri, may_go_on| {
            let (sender, outcome) = mpsc::channel();
            let begin = begin.lock().expect("nobody panicked").clone();
            begin.send((uri.to_string(), sender)).expect("it is heard");
            loop {
                match outcome.recv_timeout(Duration::from_millis(5)) {
                    Ok(outcome) => return outcome,
                    Err(mpsc::RecvTimeoutError::Timeout) => may_go_on(0)?,
                    Err(mpsc::RecvTimeoutError::Disconnected) => panic!("as the test wants it"),
                }
            }
        }),
    );
    (flights, begun)
}

fn download(text: &str) -> Download {
    Download {
        bytes: text.as_bytes().into(),
        lifetime: Duration::from_mins(1),
    }
}

fn uri(text: &str) -> Uri {
    text.parse().expect("a URL")
}

/// Fetches on a thread of its own.
fn fetch(flights: &Arc<Flights>, url: &str) -> thread::JoinHandle<Result<Fetched, FetchError>> {
    let (flights, uri) = (Arc::clone(flights), uri(url));
    thread::spawn(move || flights.fetch(uri, &|| true))
}

fn until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it never came to be");
        thread::sleep(Duration::from_millis(1));
    }
}

fn waiting(flights: &Flights, url: &str) -> usize {
    let state = flights.lock();
    let flight = state.wanted.get(url);
    flight.map_or(0, |flight| flight.waiting.load(Ordering::Relaxed))
}

fn begun(receiver: &Receiver<Begun>) -> Begun {
    receiver.recv_timeout(PATIENCE).expect("a load begins")
}

#[test]
fn many_who_want_the_same_picture_fetch_it_once() {
    let (flights, loads) = held(PATIENCE);
    let url = "http://a.example/logo";
    let callers: Vec<_> = (0..20).map(|_| fetch(&flights, url)).collect();
    until(|| waiting(&flights, url) == 20);
    begun(&loads)
        .1
        .send(Ok(download("logo")))
        .expect("it waits");
    let fetched: Vec<_> = callers
        .into_iter()
        .map(|caller| caller.join().expect("no panic").expect("fetched"))
        .collect();
    assert!(fetched.iter().all(|fetched| *fetched.bytes == *b"logo"));
    let from = |source| fetched.iter().filter(|f| f.source == source).count();
    assert_eq!((from(Source::Host), from(Source::Shared)), (1, 19));
    for _ in 0..1000 {
        let again = flights.fetch(uri(url), &|| true).expect("kept");
        assert_eq!((again.source, &*again.bytes), (Source::Cache, &b"logo"[..]));
    }
    assert!(loads.try_recv().is_err(), "one load");
}

#[test]
fn those_who_wait_together_share_an_error_and_nobody_after_them() {
    let (flights, loads) = held(PATIENCE);
    let url = "http://a.example/logo";
    let callers = [fetch(&flights, url), fetch(&flights, url)];
    until(|| waiting(&flights, url) == 2);
    let failure = Err(FetchError::Status(503));
    begun(&loads).1.send(failure).expect("it waits");
    for caller in callers {
        let outcome = caller.join().expect("no panic");
        assert_eq!(outcome, Err(FetchError::Status(503)));
    }
    let after = fetch(&flights, url);
    begun(&loads)
        .1
        .send(Ok(download("logo")))
        .expect("it waits");
    assert_eq!(
        after.join().expect("no panic").map(|f| f.source),
        Ok(Source::Host)
    );
}

#[test]
fn what_may_not_be_kept_is_fetched_again() {
    let (flights, loads) = held(PATIENCE);
    for _ in 0..2 {
        let caller = fetch(&flights, "http://a.example/logo");
        let outcome = Ok(Download {
            lifetime: Duration::ZERO,
            ..download("logo")
        });
        begun(&loads).1.send(outcome).expect("it waits");
        caller.join().expect("no panic").expect("fetched");
    }
}

#[test]
fn whoever_leaves_takes_nothing_from_the_others() {
    let (flights, loads) = held(PATIENCE);
    let url = "http://a.example/logo";
    let staying = fetch(&flights, url);
    let (_, held) = begun(&loads);
    let gone = flights.fetch(uri(url), &|| false);
    assert_eq!(gone, Err(FetchError::Abandoned));
    held.send(Ok(download("logo"))).expect("it waits");
    staying.join().expect("no panic").expect("fetched");
}

#[test]
fn the_first_may_leave_before_the_others() {
    let (flights, loads) = held(PATIENCE);
    let url = "http://a.example/logo";
    let is_there = Arc::new(AtomicUsize::new(1));
    let first = {
        let (flights, uri, is_there) = (Arc::clone(&flights), uri(url), Arc::clone(&is_there));
        thread::spawn(move || flights.fetch(uri, &|| is_there.load(Ordering::SeqCst) == 1))
    };
    let (_, held) = begun(&loads);
    let second = fetch(&flights, url);
    until(|| waiting(&flights, url) == 2);
    is_there.store(0, Ordering::SeqCst);
    assert_eq!(first.join().expect("no panic"), Err(FetchError::Abandoned));
    held.send(Ok(download("logo"))).expect("it waits");
    second.join().expect("no panic").expect("fetched");
}

#[test]
fn a_flight_that_nobody_waits_for_ends_and_is_not_joined() {
    let (flights, loads) = held(Duration::from_millis(50));
    let url = "http://a.example/logo";
    let outcome = flights.fetch(uri(url), &|| true);
    assert_eq!(outcome, Err(FetchError::Timeout));
    let (_, first) = begun(&loads);
    let later = fetch(&flights, url);
    let (_, second) = begun(&loads);
    second.send(Ok(download("logo"))).expect("it waits");
    drop(later.join());
    until(|| !flights.has_flights());
    assert!(first.send(Ok(download("late"))).is_err(), "it has ended");
}

#[test]
fn a_panic_frees_those_who_wait() {
    let (flights, loads) = held(PATIENCE);
    let url = "http://a.example/logo";
    let callers = [fetch(&flights, url), fetch(&flights, url)];
    until(|| waiting(&flights, url) == 2);
    drop(begun(&loads));
    for caller in callers {
        let outcome = caller.join().expect("the caller does not panic");
        assert_eq!(outcome, Err(FetchError::Failed));
    }
    let after = fetch(&flights, url);
    begun(&loads)
        .1
        .send(Ok(download("logo")))
        .expect("it waits");
    after.join().expect("no panic").expect("fetched");
}

#[test]
fn a_slow_host_leaves_room_for_others() {
    let (flights, loads) = held(PATIENCE);
    let urls: Vec<String> = (0..=FLIGHTS_TO_A_HOST)
        .map(|number| format!("http://{}.example/{number}", ["slow", "SLOW"][number % 2]))
        .collect();
    let callers: Vec<_> = urls.iter().map(|url| fetch(&flights, url)).collect();
    let held: Vec<Begun> = (0..FLIGHTS_TO_A_HOST).map(|_| begun(&loads)).collect();
    until(|| flights.lock().queue.len() == 1);
    let other = fetch(&flights, "http://quick.example/");
    let (url, quick) = begun(&loads);
    assert_eq!(
        url, "http://quick.example/",
        "it does not queue for the slow host"
    );
    quick.send(Ok(download("logo"))).expect("it waits");
    other.join().expect("no panic").expect("fetched");
    assert!(
        loads.try_recv().is_err(),
        "one waits for the slow host still"
    );
    for (_, sender) in held {
        sender.send(Ok(download("logo"))).expect("it waits");
    }
    begun(&loads)
        .1
        .send(Ok(download("logo")))
        .expect("it waits");
    for caller in callers {
        caller.join().expect("no panic").expect("fetched");
    }
}

#[test]
fn so_many_fly_at_a_time_and_others_wait_within_their_time() {
    let most = settings().fetches;
    let (flights, loads) = held(PATIENCE);
    let url = |number: usize| format!("http://{number}.example/");
    let callers: Vec<_> = (0..most).map(|n| fetch(&flights, &url(n))).collect();
    let mut held: Vec<Begun> = (0..most).map(|_| begun(&loads)).collect();
    let start = Instant::now();
    let is_waiting = || start.elapsed() < Duration::from_millis(100);
    let gone = flights.fetch(uri(&url(most)), &is_waiting);
    assert_eq!(gone, Err(FetchError::Abandoned));
    assert!(
        flights.lock().queue.len() == 0,
        "it does not queue any more"
    );
    let next = fetch(&flights, &url(most + 1));
    until(|| flights.lock().queue.len() == 1);
    assert!(loads.try_recv().is_err(), "no more fly");
    let (_, sender) = held.pop().expect("many");
    sender.send(Ok(download("logo"))).expect("it waits");
    held.push(begun(&loads));
    for (_, sender) in held {
        sender.send(Ok(download("logo"))).expect("it waits");
    }
    for caller in callers.into_iter().chain([next]) {
        caller.join().expect("no panic").expect("fetched");
    }
}

#[test]
fn whoever_never_got_a_turn_is_told_so() {
    // Loads that go on though nobody waits for them: as a lookup does that cannot be stopped.
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let flights = Flights::new(
        &Settings {
            timeout: Duration::from_millis(100),
            cache_bytes: 0,
            ..settings()
        },
        Box::new(move |_, _| {
            released.lock().expect("nobody panicked").recv().ok();
            Err(FetchError::Abandoned)
        }),
    );
    let same_host = |number| uri(&format!("http://a.example/{number}"));
    for number in 0..FLIGHTS_TO_A_HOST {
        let outcome = flights.fetch(same_host(number), &|| true);
        assert_eq!(outcome, Err(FetchError::Timeout));
    }
    let outcome = flights.fetch(same_host(FLIGHTS_TO_A_HOST), &|| true);
    assert_eq!(outcome, Err(FetchError::Busy));
    drop(release);
    until(|| !flights.has_flights());
    let outcome = flights.fetch(same_host(0), &|| true);
    assert_eq!(outcome, Err(FetchError::Abandoned), "there is room again");
}

/// Asks without waiting; the wakes are counted.
fn ask(
    flights: &Arc<Flights>,
    account: u64,
    url: &str,
    woken: &Arc<AtomicUsize>,
) -> Result<Pending, FetchError> {
    let woken = Arc::clone(woken);
    let wake = move || {
        woken.fetch_add(1, Ordering::SeqCst);
    };
    flights.begin(account, uri(url), Box::new(wake))
}

fn outcome(pending: &Pending) -> Option<Result<Fetched, FetchError>> {
    pending.outcome(Instant::now())
}

#[test]
fn whoever_asks_is_woken_once_and_need_not_wait() {
    let (flights, loads) = held(PATIENCE);
    let woken = Arc::default();
    let url = "http://a.example/logo";
    let [first, second, left] =
        [(); 3].map(|()| ask(&flights, 1, url, &woken).expect("there is room"));
    assert_eq!(outcome(&first), None);
    drop(left);
    let (_, sender) = begun(&loads);
    sender.send(Ok(download("logo"))).expect("it waits");
    until(|| woken.load(Ordering::SeqCst) == 2);
    for pending in [first, second] {
        let fetched = outcome(&pending).expect("it was woken").expect("fetched");
        assert_eq!(*fetched.bytes, *b"logo");
    }
    let kept = ask(&flights, 1, url, &woken).expect("there is room");
    assert!(outcome(&kept).is_some() && kept.deadline().is_none());
    assert_eq!(woken.load(Ordering::SeqCst), 2, "who left is not woken");
}

#[test]
fn one_account_leaves_room_for_others_and_waits_for_its_own() {
    let (flights, loads) = held_with(&Settings {
        timeout: PATIENCE,
        fetches_per_account: 2,
        ..Settings::default()
    });
    let woken = Arc::default();
    let dripping: Vec<Pending> = (0..5)
        .map(|n| ask(&flights, 1, &format!("http://drip{n}.example/"), &woken).expect("room"))
        .collect();
    let mut of_first: Vec<Begun> = (0..2).map(|_| begun(&loads)).collect();
    assert_eq!(flights.lock().queue.len_of(1), 3);
    let other = ask(&flights, 2, "http://quick.example/", &woken).expect("room");
    let (url, sender) = begun(&loads);
    assert_eq!(
        url, "http://quick.example/",
        "it does not queue behind another account"
    );
    sender.send(Ok(download("logo"))).expect("it waits");
    until(|| outcome(&other).is_some());
    // Whoever joins what waits in another account's turn has it begun in their own.
    let joined = ask(&flights, 2, "http://drip4.example/", &woken).expect("room");
    let (url, sender) = begun(&loads);
    assert_eq!(url, "http://drip4.example/");
    sender.send(Ok(download("logo"))).expect("it waits");
    until(|| outcome(&joined).is_some() && outcome(&dripping[4]).is_some());
    assert!(loads.try_recv().is_err(), "the account has its two");
    let (_, sender) = of_first.remove(0);
    sender.send(Ok(download("logo"))).expect("it waits");
    assert_eq!(
        begun(&loads).0,
        "http://drip2.example/",
        "the next of its own"
    );
    drop(dripping);
    until(|| !flights.has_flights());
    assert_eq!(flights.lock().queue.len(), 0);
}

#[test]
fn what_does_not_fit_the_queue_is_refused_at_once() {
    let (flights, loads) = held_with(&Settings {
        timeout: PATIENCE,
        fetches: 1,
        queue: 3,
        queue_per_account: 2,
        ..Settings::default()
    });
    let woken = Arc::default();
    let ask = |account: u64, number: u64| {
        ask(
            &flights,
            account,
            &format!("http://{account}-{number}.example/"),
            &woken,
        )
    };
    let mut all = vec![ask(1, 0).expect("it begins")];
    let _held = begun(&loads);
    all.extend([1, 2].map(|number| ask(1, number).expect("two may wait")));
    assert_eq!(
        ask(1, 3).err(),
        Some(FetchError::Busy),
        "a third of the account"
    );
    all.push(ask(2, 0).expect("a third in all"));
    assert_eq!(ask(3, 0).err(), Some(FetchError::Busy), "a fourth in all");
    all.remove(1);
    all.push(ask(3, 0).expect("whoever left made room"));
    assert_eq!(
        flights.lock().wanted.len(),
        4,
        "what was refused is not wanted"
    );
}
