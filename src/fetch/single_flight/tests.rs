//! Fetches whose outcome and time the test decides.

use super::*;
use std::sync::mpsc::{self, Receiver, Sender};

/// Longer than any step of a test takes, on a busy machine too.
const LONG: Duration = Duration::from_mins(1);

type Outcome = Result<Download, FetchError>;

/// A fetch that has begun: its URL, and a sender for its outcome. If the sender is dropped, the
/// fetch panics.
type Begun = (String, Sender<Outcome>);

/// Begins fetches without limits for one account, which end when the test ends them.
fn controlled(timeout: Duration) -> (Arc<SingleFlight>, Receiver<Begun>) {
    controlled_with(&Settings {
        timeout,
        ..settings()
    })
}

/// The defaults, but without limits for one account.
fn settings() -> Settings {
    Settings {
        fetches_per_account: usize::MAX,
        queue_per_account: usize::MAX,
        ..Settings::default()
    }
}

fn controlled_with(settings: &Settings) -> (Arc<SingleFlight>, Receiver<Begun>) {
    let (begin, begun) = mpsc::channel();
    let begin = Mutex::new(begin);
    let single_flight = SingleFlight::new(
        settings,
        Box::new(move |uri, may_go_on| {
            let (sender, outcome) = mpsc::channel();
            let begin = begin.lock().expect("nobody panicked").clone();
            begin
                .send((uri.to_string(), sender))
                .expect("the test receives it");
            loop {
                match outcome.recv_timeout(Duration::from_millis(5)) {
                    Ok(outcome) => return outcome,
                    Err(mpsc::RecvTimeoutError::Timeout) => may_go_on(0)?,
                    Err(mpsc::RecvTimeoutError::Disconnected) => panic!("the test asked for it"),
                }
            }
        }),
    );
    (single_flight, begun)
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

/// Fetches on another thread.
fn fetch(
    single_flight: &Arc<SingleFlight>,
    url: &str,
) -> thread::JoinHandle<Result<Fetched, FetchError>> {
    let (single_flight, uri) = (Arc::clone(single_flight), uri(url));
    thread::spawn(move || single_flight.fetch(uri, &|| true))
}

fn until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "it did not happen in time");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The number of callers of the fetch of this URL.
fn callers_of(single_flight: &SingleFlight, url: &str) -> usize {
    let state = single_flight.lock();
    let fetch = state.by_url.get(url);
    fetch.map_or(0, |fetch| fetch.callers.load(Ordering::Relaxed))
}

fn begun(receiver: &Receiver<Begun>) -> Begun {
    receiver.recv_timeout(LONG).expect("a load begins")
}

#[test]
fn many_callers_of_the_same_url_fetch_it_once() {
    let (single_flight, loads) = controlled(LONG);
    let url = "http://a.example/logo";
    let callers: Vec<_> = (0..20).map(|_| fetch(&single_flight, url)).collect();
    until(|| callers_of(&single_flight, url) == 20);
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
        let again = single_flight.fetch(uri(url), &|| true).expect("kept");
        assert_eq!((again.source, &*again.bytes), (Source::Cache, &b"logo"[..]));
    }
    assert!(loads.try_recv().is_err(), "one load");
}

#[test]
fn an_error_is_shared_by_those_who_wait_and_not_kept_for_later() {
    let (single_flight, loads) = controlled(LONG);
    let url = "http://a.example/logo";
    let callers = [fetch(&single_flight, url), fetch(&single_flight, url)];
    until(|| callers_of(&single_flight, url) == 2);
    let failure = Err(FetchError::Status(503));
    begun(&loads).1.send(failure).expect("it waits");
    for caller in callers {
        let outcome = caller.join().expect("no panic");
        assert_eq!(outcome, Err(FetchError::Status(503)));
    }
    let after = fetch(&single_flight, url);
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
    let (single_flight, loads) = controlled(LONG);
    for _ in 0..2 {
        let caller = fetch(&single_flight, "http://a.example/logo");
        let outcome = Ok(Download {
            lifetime: Duration::ZERO,
            ..download("logo")
        });
        begun(&loads).1.send(outcome).expect("it waits");
        caller.join().expect("no panic").expect("fetched");
    }
}

#[test]
fn a_caller_who_leaves_takes_nothing_from_the_others() {
    let (single_flight, loads) = controlled(LONG);
    let url = "http://a.example/logo";
    let staying = fetch(&single_flight, url);
    let (_, held) = begun(&loads);
    let gone = single_flight.fetch(uri(url), &|| false);
    assert_eq!(gone, Err(FetchError::Abandoned));
    held.send(Ok(download("logo"))).expect("it waits");
    staying.join().expect("no panic").expect("fetched");
}

#[test]
fn the_first_may_leave_before_the_others() {
    let (single_flight, loads) = controlled(LONG);
    let url = "http://a.example/logo";
    let is_waiting = Arc::new(AtomicUsize::new(1));
    let first = {
        let (single_flight, uri, is_waiting) = (
            Arc::clone(&single_flight),
            uri(url),
            Arc::clone(&is_waiting),
        );
        thread::spawn(move || single_flight.fetch(uri, &|| is_waiting.load(Ordering::SeqCst) == 1))
    };
    let (_, held) = begun(&loads);
    let second = fetch(&single_flight, url);
    until(|| callers_of(&single_flight, url) == 2);
    is_waiting.store(0, Ordering::SeqCst);
    assert_eq!(first.join().expect("no panic"), Err(FetchError::Abandoned));
    held.send(Ok(download("logo"))).expect("it waits");
    second.join().expect("no panic").expect("fetched");
}

#[test]
fn a_fetch_without_callers_ends_and_is_not_joined() {
    let (single_flight, loads) = controlled(Duration::from_millis(50));
    let url = "http://a.example/logo";
    let outcome = single_flight.fetch(uri(url), &|| true);
    assert_eq!(outcome, Err(FetchError::Timeout));
    let (_, first) = begun(&loads);
    let later = fetch(&single_flight, url);
    let (_, second) = begun(&loads);
    second.send(Ok(download("logo"))).expect("it waits");
    drop(later.join());
    until(|| !single_flight.has_running());
    assert!(first.send(Ok(download("late"))).is_err(), "it has ended");
}

#[test]
fn a_panic_ends_the_wait_of_all_callers() {
    let (single_flight, loads) = controlled(LONG);
    let url = "http://a.example/logo";
    let callers = [fetch(&single_flight, url), fetch(&single_flight, url)];
    until(|| callers_of(&single_flight, url) == 2);
    drop(begun(&loads));
    for caller in callers {
        let outcome = caller.join().expect("the caller does not panic");
        assert_eq!(outcome, Err(FetchError::Failed));
    }
    let after = fetch(&single_flight, url);
    begun(&loads)
        .1
        .send(Ok(download("logo")))
        .expect("it waits");
    after.join().expect("no panic").expect("fetched");
}

#[test]
fn a_slow_host_leaves_room_for_others() {
    let (single_flight, loads) = controlled(LONG);
    let urls: Vec<String> = (0..=FETCHES_PER_HOST)
        .map(|number| format!("http://{}.example/{number}", ["slow", "SLOW"][number % 2]))
        .collect();
    let callers: Vec<_> = urls.iter().map(|url| fetch(&single_flight, url)).collect();
    let held: Vec<Begun> = (0..FETCHES_PER_HOST).map(|_| begun(&loads)).collect();
    until(|| single_flight.lock().queue.len() == 1);
    let other = fetch(&single_flight, "http://quick.example/");
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
fn fetches_at_a_time_are_limited_and_others_wait_within_their_time() {
    let most = settings().fetches;
    let (single_flight, loads) = controlled(LONG);
    let url = |number: usize| format!("http://{number}.example/");
    let callers: Vec<_> = (0..most).map(|n| fetch(&single_flight, &url(n))).collect();
    let mut held: Vec<Begun> = (0..most).map(|_| begun(&loads)).collect();
    let start = Instant::now();
    let is_waiting = || start.elapsed() < Duration::from_millis(100);
    let gone = single_flight.fetch(uri(&url(most)), &is_waiting);
    assert_eq!(gone, Err(FetchError::Abandoned));
    assert!(
        single_flight.lock().queue.len() == 0,
        "it does not queue any more"
    );
    let next = fetch(&single_flight, &url(most + 1));
    until(|| single_flight.lock().queue.len() == 1);
    assert!(loads.try_recv().is_err(), "no more begin");
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
fn a_fetch_that_never_began_ends_as_busy() {
    // Fetches that go on without callers, as during a lookup, which cannot be interrupted.
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let single_flight = SingleFlight::new(
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
    for number in 0..FETCHES_PER_HOST {
        let outcome = single_flight.fetch(same_host(number), &|| true);
        assert_eq!(outcome, Err(FetchError::Timeout));
    }
    let outcome = single_flight.fetch(same_host(FETCHES_PER_HOST), &|| true);
    assert_eq!(outcome, Err(FetchError::Busy));
    drop(release);
    until(|| !single_flight.has_running());
    let outcome = single_flight.fetch(same_host(0), &|| true);
    assert_eq!(outcome, Err(FetchError::Abandoned), "a fetch begins again");
}

/// Begins a fetch without waiting; `woken` counts the wakes.
fn ask(
    single_flight: &Arc<SingleFlight>,
    account: u64,
    url: &str,
    woken: &Arc<AtomicUsize>,
) -> Result<Pending, FetchError> {
    let woken = Arc::clone(woken);
    let wake = move || {
        woken.fetch_add(1, Ordering::SeqCst);
    };
    single_flight.begin(account, uri(url), Box::new(wake))
}

fn outcome(pending: &Pending) -> Option<Result<Fetched, FetchError>> {
    pending.outcome(Instant::now())
}

#[test]
fn a_caller_is_woken_once_and_is_not_blocked() {
    let (single_flight, loads) = controlled(LONG);
    let woken = Arc::default();
    let url = "http://a.example/logo";
    let [first, second, left] =
        [(); 3].map(|()| ask(&single_flight, 1, url, &woken).expect("it fits in the queue"));
    assert_eq!(outcome(&first), None);
    drop(left);
    let (_, sender) = begun(&loads);
    sender.send(Ok(download("logo"))).expect("it waits");
    until(|| woken.load(Ordering::SeqCst) == 2);
    for pending in [first, second] {
        let fetched = outcome(&pending).expect("it was woken").expect("fetched");
        assert_eq!(*fetched.bytes, *b"logo");
    }
    let kept = ask(&single_flight, 1, url, &woken).expect("it fits in the queue");
    assert!(outcome(&kept).is_some() && kept.deadline().is_none());
    assert_eq!(
        woken.load(Ordering::SeqCst),
        2,
        "a caller who left is not woken"
    );
}

#[test]
fn one_account_leaves_room_for_others_and_waits_for_its_own() {
    let (single_flight, loads) = controlled_with(&Settings {
        timeout: LONG,
        fetches_per_account: 2,
        ..Settings::default()
    });
    let woken = Arc::default();
    let dripping: Vec<Pending> = (0..5)
        .map(|n| {
            ask(
                &single_flight,
                1,
                &format!("http://drip{n}.example/"),
                &woken,
            )
            .expect("it fits in the queue")
        })
        .collect();
    let mut of_first: Vec<Begun> = (0..2).map(|_| begun(&loads)).collect();
    assert_eq!(single_flight.lock().queue.len_of(1), 3);
    let other =
        ask(&single_flight, 2, "http://quick.example/", &woken).expect("it fits in the queue");
    let (url, sender) = begun(&loads);
    assert_eq!(
        url, "http://quick.example/",
        "it does not queue behind another account"
    );
    sender.send(Ok(download("logo"))).expect("it waits");
    until(|| outcome(&other).is_some());
    // A caller who joins a fetch queued by another account has it begun in a turn of their own.
    let joined =
        ask(&single_flight, 2, "http://drip4.example/", &woken).expect("it fits in the queue");
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
    until(|| !single_flight.has_running());
    assert_eq!(single_flight.lock().queue.len(), 0);
}

#[test]
fn a_full_queue_rejects_at_once() {
    let (single_flight, loads) = controlled_with(&Settings {
        timeout: LONG,
        fetches: 1,
        queue: 3,
        queue_per_account: 2,
        ..Settings::default()
    });
    let woken = Arc::default();
    let ask = |account: u64, number: u64| {
        ask(
            &single_flight,
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
    all.push(ask(3, 0).expect("there is a place again"));
    assert_eq!(
        single_flight.lock().by_url.len(),
        4,
        "nothing is left of what was rejected"
    );
}
