//! Fetches from small servers on 127.0.0.1; nothing here leaves the machine.

mod guard;

use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Starts a server that calls `answer` with the head of each request, until the process of the
/// tests ends.
fn serve(answer: impl Fn(&str, &mut dyn Write) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let origin = format!("http://{}", listener.local_addr().expect("bound"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accepted");
            let head = read_head(&mut stream);
            answer(&head, &mut stream);
        }
    });
    origin
}

fn read_head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("an ASCII head")
}

/// A write fails if the client has gone, which many tests intend.
fn write(out: &mut dyn Write, text: &str) {
    let _ = out.write_all(text.as_bytes());
}

fn settings() -> Settings {
    Settings {
        allow_private: true,
        timeout: Duration::from_secs(5),
        max_bytes: 1000,
        ..Settings::default()
    }
}

fn fetch(url: &str) -> Result<Vec<u8>, FetchError> {
    get(
        &Fetcher::new(&settings()).expect("no certificates' file"),
        url,
    )
}

fn get(fetcher: &Fetcher, url: &str) -> Result<Vec<u8>, FetchError> {
    let fetched = fetcher.fetch(url, &|| true)?;
    Ok(fetched.bytes.to_vec())
}

#[test]
fn body_arrives_and_the_request_says_who_asks() {
    let origin = serve(|head, out| {
        let body = head.to_ascii_lowercase();
        write(
            out,
            &format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ),
        );
    });
    let body =
        String::from_utf8(fetch(&format!("{origin}/a.png?b=c")).expect("fetched")).expect("text");
    assert!(body.starts_with("get /a.png?b=c http/1.1\r\n"), "{body}");
    assert!(
        body.contains(&format!(
            "user-agent: towebp/{}\r\n",
            env!("CARGO_PKG_VERSION")
        )),
        "{body}"
    );
    assert!(body.contains("accept: image/png, image/jpeg\r\n"), "{body}");
}

#[test]
fn redirects_are_followed_to_the_limit() {
    let origin = serve(|head, out| {
        let left: u32 = head[5..6].parse().expect("paths are /N");
        match left {
            0 => write(out, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"),
            _ => write(
                out,
                &format!(
                    "HTTP/1.1 302 Found\r\nLocation: /{}\r\nContent-Length: 0\r\n\r\n",
                    left - 1
                ),
            ),
        }
    });
    assert_eq!(fetch(&format!("{origin}/3")), Ok(b"done".to_vec()));
    let answer = fetch(&format!("{origin}/4"));
    assert!(
        matches!(&answer, Err(FetchError::Unreachable(detail)) if detail.contains("too often")),
        "{answer:?}"
    );
}

#[test]
fn other_statuses_are_reported() {
    for status in [204, 206, 304, 403, 404, 500, 503] {
        let origin = serve(move |_, out| {
            write(
                out,
                &format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"),
            );
        });
        assert_eq!(fetch(&origin), Err(FetchError::Status(status)));
    }
}

#[test]
fn bodies_are_held_to_the_limit() {
    let body = "x".repeat(1000);
    let declared = body.clone();
    let origin = serve(move |_, out| {
        write(
            out,
            &format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{declared}"),
        );
    });
    assert_eq!(
        fetch(&origin).map(|b| b.len()),
        Ok(1000),
        "declared, just within"
    );

    let origin = serve(move |_, out| {
        write(
            out,
            &format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}"),
        );
    });
    assert_eq!(
        fetch(&origin).map(|b| b.len()),
        Ok(1000),
        "undeclared, just within"
    );

    let too_large = Err(FetchError::TooLarge { max_bytes: 1000 });
    // The body never comes, so that only the declared length can be the reason.
    let origin = serve(|_, out| {
        write(out, "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n");
        thread::sleep(Duration::from_secs(8));
    });
    assert_eq!(fetch(&origin), too_large, "declared, over");

    let endless = |_: &str, out: &mut dyn Write| {
        write(out, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while out
            .write_all(format!("400\r\n{}\r\n", "x".repeat(1024)).as_bytes())
            .is_ok()
        {}
    };
    assert_eq!(fetch(&serve(endless)), too_large, "chunked, endless");
}

#[test]
fn truncated_and_foreign_responses_are_unreachable() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "",
    ] {
        let outcome = fetch(&serve(move |_, out| write(out, answer)));
        assert!(
            matches!(outcome, Err(FetchError::Unreachable(_))),
            "{answer:?}: {outcome:?}"
        );
    }
    let long_header = |_: &str, out: &mut dyn Write| {
        write(out, "HTTP/1.1 200 OK\r\nX: ");
        while out.write_all(&[b'x'; 1024]).is_ok() {}
    };
    let outcome = fetch(&serve(long_header));
    assert!(
        matches!(outcome, Err(FetchError::Unreachable(_))),
        "an endless header: {outcome:?}"
    );
}

#[test]
fn nobody_listening_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    drop(listener);
    let answer = fetch(&url);
    assert!(
        matches!(&answer, Err(FetchError::Unreachable(detail)) if detail.contains("refused")),
        "{answer:?}"
    );
}

#[test]
fn slow_and_endless_responses_run_into_a_limit() {
    fn drip(out: &mut dyn Write, start: &str, piece: &str, pause: Duration) {
        write(out, start);
        while out.write_all(piece.as_bytes()).is_ok() {
            thread::sleep(pause);
        }
    }
    let slowly = Duration::from_millis(20);
    let ok = "HTTP/1.1 200 OK\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let redirect = "HTTP/1.1 302 Found\r\nLocation: /\r\nTransfer-Encoding: chunked\r\n\r\n";
    let declared = "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n";
    let at_once = Duration::ZERO;
    let cases = [
        ("nothing", "", "", slowly),
        ("a slow body", declared, "x", slowly),
        (
            "a slow body of unknown length",
            "HTTP/1.1 200 OK\r\n\r\n",
            "x",
            slowly,
        ),
        ("slow chunks", chunked, "1\r\nx\r\n", slowly),
        ("a slow chunk's extension", chunked, "1;x", slowly),
        (
            "an endless chunk's extension",
            chunked,
            "1;xxxxxxxxxxxxxxxxxx",
            at_once,
        ),
        (
            "endless trailers",
            &format!("{chunked}0\r\n"),
            "X: y\r\n",
            at_once,
        ),
        ("a slow status", "", "H", slowly),
        ("slow headers", ok, "X: y\r\n", slowly),
        ("a slow header", ok, "x", slowly),
        ("endless headers", ok, "X: y\r\n", at_once),
        ("an endless header", ok, "xxxxxxxxxxxxxxxxxx", at_once),
        (
            "slow interim responses",
            "",
            "HTTP/1.1 103 Early Hints\r\n\r\n",
            slowly,
        ),
        (
            "endless interim responses",
            "",
            "HTTP/1.1 100 Continue\r\n\r\n",
            at_once,
        ),
        ("slow redirects", redirect, "1\r\nx\r\n", slowly),
        ("endless redirects", redirect, "5\r\nxxxxx\r\n", at_once),
    ];
    for (name, start, piece, pause) in cases {
        let (start, piece) = (start.to_owned(), piece.to_owned());
        let origin = serve(move |_, out| drip(out, &start, &piece, pause));
        let settings = Settings {
            timeout: Duration::from_millis(300),
            max_bytes: 1000,
            ..settings()
        };
        let fetcher = Fetcher::new(&settings).expect("no certificates' file");
        let started = Instant::now();
        let answer = fetcher.fetch(&origin, &|| true);
        answer.expect_err(name);
        // The thread of the fetch ends too, not only the waiting for it.
        while fetcher.single_flight.has_running() {
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "{name}: the fetch goes on"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_fetch_that_nobody_waits_for_ends_early() {
    let origin = serve(|_, out| {
        write(out, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while out.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
    let settings = Settings {
        timeout: Duration::from_mins(5),
        ..settings()
    };
    let fetcher = Fetcher::new(&settings).expect("no certificates' file");
    let start = Instant::now();
    let is_waiting = || start.elapsed() < Duration::from_millis(300);
    assert_eq!(
        fetcher.fetch(&origin, &is_waiting),
        Err(FetchError::Abandoned)
    );
    while fetcher.single_flight.has_running() {
        assert!(start.elapsed() < Duration::from_mins(1), "it goes on");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn responses_are_kept_as_long_as_they_say() {
    for (header, fetches) in [
        ("X: y", 1),
        ("Cache-Control: max-age=60", 1),
        ("Cache-Control: no-store", 2),
        ("Cache-Control: max-age=0", 2),
    ] {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let origin = serve(move |_, out| {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            write(
                out,
                &format!("HTTP/1.1 200 OK\r\n{header}\r\nContent-Length: 1\r\n\r\n{number}"),
            );
        });
        let fetcher = Fetcher::new(&settings()).expect("no certificates' file");
        let (first, second) = (get(&fetcher, &origin), get(&fetcher, &origin));
        assert_eq!(first, Ok(b"0".to_vec()));
        assert_eq!(first == second, fetches == 1, "{header}");
        let other = get(&fetcher, &format!("{origin}/?other"));
        assert_eq!(other, Ok(fetches.to_string().into_bytes()), "{header}");
        assert_eq!(count.load(Ordering::SeqCst), fetches + 1, "{header}");
    }
}

#[test]
fn without_tls_https_is_rejected_also_behind_a_redirect() {
    let origin = serve(|_, out| {
        write(
            out,
            "HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        );
    });
    let network = Network {
        lookup: Arc::new(resolver::system),
        connector: TcpConnector::default,
    };
    let fetcher = Fetcher::on(&network, &settings(), false).expect("no certificates' file");
    for url in ["https://127.0.0.1:1/", &origin] {
        assert_eq!(get(&fetcher, url), Err(FetchError::TlsUnavailable), "{url}");
    }
}

/// A root, and a certificate that it signed for localhost and 127.0.0.1, both valid until 2126.
/// Made by openssl.
const TLS_DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/tls");

fn serve_tls(answer: impl Fn(&str, &mut dyn Write) + Send + 'static) -> String {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    let chain =
        CertificateDer::from_pem_file(format!("{TLS_DATA}/server.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(format!("{TLS_DATA}/server.key")).expect("a key");
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls_graviola::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("graviola does TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .expect("key and certificate belong together");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let origin = format!("https://{}", listener.local_addr().expect("bound"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection =
                rustls::ServerConnection::new(config.clone()).expect("a good configuration");
            let mut stream: rustls::StreamOwned<_, TcpStream> =
                rustls::StreamOwned::new(connection, stream.expect("accepted"));
            let head = read_head(&mut stream);
            answer(&head, &mut stream);
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    origin
}

#[test]
fn https_works_with_the_operators_certificates_and_no_others() {
    if !crate::tls::available() {
        return;
    }
    let origin =
        serve_tls(|_, out| write(out, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret"));
    let trusting = Settings {
        ca_file: Some(format!("{TLS_DATA}/ca.pem").into()),
        ..settings()
    };
    let trusting = Fetcher::new(&trusting).expect("a good certificates' file");
    assert_eq!(get(&trusting, &origin), Ok(b"secret".to_vec()));
    assert_eq!(
        get(&trusting, &origin.replace("127.0.0.1", "localhost")),
        Ok(b"secret".to_vec())
    );
    let answer = fetch(&origin);
    assert!(
        matches!(&answer, Err(FetchError::Unreachable(detail)) if detail.contains("TLS")),
        "{answer:?}"
    );
}

#[test]
fn https_is_not_redirected_to_http() {
    if !crate::tls::available() {
        return;
    }
    let plain = serve(|_, out| write(out, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    let secure = serve_tls(move |_, out| {
        write(
            out,
            &format!("HTTP/1.1 302 Found\r\nLocation: {plain}/x\r\nContent-Length: 0\r\n\r\n"),
        );
    });
    let upgrade = serve({
        let secure = secure.clone();
        move |_, out| {
            write(
                out,
                &format!("HTTP/1.1 302 Found\r\nLocation: {secure}\r\nContent-Length: 0\r\n\r\n"),
            );
        }
    });
    let trusting = Settings {
        ca_file: Some(format!("{TLS_DATA}/ca.pem").into()),
        ..settings()
    };
    let trusting = Fetcher::new(&trusting).expect("a good certificates' file");
    let answer = get(&trusting, &secure);
    assert!(
        matches!(&answer, Err(FetchError::Url(detail)) if detail.contains("https to http")),
        "{answer:?}"
    );
    assert_eq!(
        get(&trusting, &upgrade),
        Ok(vec![]),
        "http may lead to https and back: nothing was promised"
    );
}

#[test]
fn bad_certificates_files_are_named() {
    if !crate::tls::available() {
        return;
    }
    for (path, reason) in [
        ("/nonexistent/ca.pem", "cannot be read"),
        (
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
            "holds no certificate",
        ),
    ] {
        let outcome = Fetcher::new(&Settings {
            ca_file: Some(path.into()),
            ..settings()
        });
        let message = outcome.err().unwrap_or_default();
        assert!(
            message.contains(path) && message.contains(reason),
            "{path}: {message:?}"
        );
    }
}
