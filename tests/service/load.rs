//! Conversions that take long: the cores that they leave to others, and when they are stopped.

use crate::support::picture::Picture;
use crate::support::service::{OWNER, Service, Webp, send};
use crate::support::{Folder, Response};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use towebp::admission::MemoryBudget;
use towebp::fetch::{self, Fetcher};
use towebp::front::{self, Listeners};
use towebp::http::{self, AppState};
use towebp::store::{self, Store};
use towebp_pipeline::conversion::{CpuBudget, Fonts};
use towebp_pipeline::image::Limits;

#[test]
fn idle_cores_help_a_lone_conversion_and_turn_to_the_next_one_when_it_comes() {
    if thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        return; // there is no idle core
    }
    let service = Service::start();
    let (large, small) = (large(), small());
    let alone = webp(&service, &small);
    let webps = [(); 2].map(|()| {
        thread::scope(|scope| {
            let converting = scope.spawn(|| webp(&service, &large));
            while !is_helped(service.server.process_id()) {
                assert!(!converting.is_finished(), "no second core helped");
                thread::sleep(Duration::from_millis(1));
            }
            let beside = webp(&service, &small);
            assert!(
                !converting.is_finished(),
                "the small picture waited until the large one was done"
            );
            assert!(beside == alone, "company changes the bytes");
            converting.join().expect("it succeeds")
        })
    });
    assert!(
        webps[0] == webps[1],
        "help that comes and goes changes the bytes"
    );
}

#[test]
fn a_small_picture_waits_for_no_large_ones_of_its_own_account() {
    /// More than there are workers, and threads that wait for them.
    const LARGE: usize = 10;
    let service = Service::start();
    let (large, small) = (Picture::waves(1600, 1600).bmp(), small());
    let done = &AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..LARGE {
            scope.spawn(|| {
                webp(&service, &large);
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        while done.load(Ordering::Relaxed) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        webp(&service, &small);
        let before = done.load(Ordering::Relaxed);
        assert!(before <= LARGE / 2, "it waited until {before} were done");
    });
}

/// A BMP, which is decoded in no time: 11 MP, as much as --max-body lets in.
fn large() -> Vec<u8> {
    Picture::waves(3300, 3300).bmp()
}

fn small() -> Vec<u8> {
    Picture::waves(64, 64).bmp()
}

fn webp(service: &Service, bmp: &[u8]) -> Webp {
    let answer = service.convert(&[], "image/bmp", bmp);
    assert_eq!(answer.status, 200, "{}", answer.text());
    Webp(answer.body)
}

/// Whether the process has threads that encode beside its workers.
fn is_helped(process: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("the process runs");
    tasks.flatten().any(|task| {
        // A thread may end between the two.
        let name = std::fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.trim() == "encoder")
    })
}

#[test]
fn a_conversion_that_takes_too_long_is_stopped_and_answered_with_503() {
    let timeout = Duration::from_millis(200);
    let service = Hurried::start(timeout);
    let small = small();
    assert_eq!(
        service.convert(&small).status,
        200,
        "a small one is in time"
    );

    let large = large();
    let asked = Instant::now();
    let answer = service.convert(&large);
    let waited = asked.elapsed();
    let detail = answer.problem(503, "conversion_timeout");
    assert!(
        detail.contains("longer than this server allows"),
        "{detail}"
    );
    let retry_after = answer.header("retry-after");
    let retry_after = retry_after.and_then(|seconds| seconds.parse::<u32>().ok());
    assert!(retry_after.is_some(), "Retry-After: {answer:?}");

    let started = Instant::now();
    assert_eq!(service.convert(&small).status, 200, "and again after it");
    let free_after = started.elapsed();
    assert!(
        free_after < Duration::from_secs(5),
        "answered after {waited:?}, but its worker was free {free_after:?} later"
    );
    let caller = service.store.authenticate(&service.token).expect("a token");
    let totals = service.store.usage_totals(caller.account).expect("a store");
    assert_eq!(totals.conversions, 2, "what failed is not in the history");
}

/// A server of one worker with an account, inside the test: its deadline may be shorter than the
/// flag's least.
struct Hurried {
    address: SocketAddr,
    store: Arc<Store>,
    token: String,
    _folder: Folder,
}

impl Hurried {
    fn start(conversion_timeout: Duration) -> Hurried {
        let folder = Folder::new();
        let settings = store::Settings {
            data: folder.path.join("data"),
            secret_file: None,
            allow_shared_data: false,
            history_keep: None,
            postgres: None,
        };
        let store = Arc::new(Store::open(&settings).expect("a new store"));
        let account = store.create_account(OWNER, None).expect("a new account");
        let http_settings = http::Settings {
            threads: NonZeroUsize::MIN,
            conversion_timeout,
            ..http::Settings::default()
        };
        let state = AppState {
            store: Arc::clone(&store),
            fetcher: Fetcher::new(&fetch::Settings::default()).expect("default settings"),
            fonts: Fonts::default(),
            limits: Limits::default(),
            cpu_budget: CpuBudget::new(NonZeroUsize::MIN),
            memory: MemoryBudget::new(u64::MAX, 1),
            limiters: http::Limiters::new(&http_settings),
            readiness: http::Readiness::default(),
            metrics: http::Metrics::default(),
            openapi: http::describe(&http_settings),
            settings: http_settings,
        };
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let listeners = Listeners::bind(&[local], front::Settings::default()).expect("a free port");
        let server = http::serve(listeners, state).expect("a server");
        Hurried {
            address: server.addresses[0],
            token: store.token(account.id).expect("a token"),
            store,
            _folder: folder,
        }
    }

    fn convert(&self, bmp: &[u8]) -> Response {
        let mut message = format!(
            "POST /convert?token={} HTTP/1.1\r\nHost: a\r\nContent-Type: image/bmp\r\nContent-Length: {}\r\n\r\n",
            self.token,
            bmp.len()
        )
        .into_bytes();
        message.extend(bmp);
        send(self.address, &message).expect("an answer")
    }
}
