//! What becomes of conversions that take too long: a server inside the test, whose deadline is shorter than the flag's
//! least.

mod support;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::picture::Picture;
use support::service::{OWNER, send};
use support::{Folder, Response};
use towebp::fetch::{self, Fetcher};
use towebp::http::{self, Rooms, Server};
use towebp::image::Limits;
use towebp::store::{self, Store};

#[test]
fn a_conversion_that_takes_too_long_is_stopped_and_answered_with_503() {
    let timeout = Duration::from_millis(300);
    let service = Service::start(timeout);
    let small = Picture::waves(64, 64).png();
    assert_eq!(
        service.convert(&small).status,
        200,
        "a small one is in time"
    );

    let large = Picture::waves(4000, 4000).png();
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
    let account = service.store.authenticate(&service.token).expect("a token");
    let totals = service.store.usage_totals(account.id).expect("a store");
    assert_eq!(totals.conversions, 2, "what failed is not in the history");
}

/// A server of one worker with an account.
struct Service {
    address: SocketAddr,
    store: Arc<Store>,
    token: String,
    _folder: Folder,
}

impl Service {
    fn start(conversion_timeout: Duration) -> Service {
        let folder = Folder::new();
        let settings = store::Settings {
            data: folder.path.join("data"),
            secret_file: None,
        };
        let store = Arc::new(Store::open(&settings).expect("a new store"));
        let account = store.create_account(OWNER, None).expect("a new account");
        let rooms = Rooms {
            store: Arc::clone(&store),
            fetcher: Fetcher::new(fetch::Settings::default()).expect("default settings"),
            limits: Limits::default(),
            settings: http::Settings {
                threads: 1.try_into().expect("not zero"),
                conversion_timeout,
                ..http::Settings::default()
            },
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = Server::start(listener, rooms).expect("a server");
        Service {
            address: server.address(),
            token: store.token(&account),
            store,
            _folder: folder,
        }
    }

    fn convert(&self, png: &[u8]) -> Response {
        let mut message = format!(
            "POST /convert?token={} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: {}\r\n\r\n",
            self.token,
            png.len()
        )
        .into_bytes();
        message.extend(png);
        send(self.address, &message).expect("an answer")
    }
}
