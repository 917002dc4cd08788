//! The whole history as CSV: it is longer than any buffer, and its clients may be slow.

use super::{BEARABLE, Bystander, connect, memory, status_of};
use crate::support::picture::Picture;
use crate::support::service::{OWNER, Service};
use crate::support::{Folder, Server, TOWEBP, read_next, until};
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::SystemTime;
use towebp::store::{self, RequestId, Store, TokenNumber, UsageEntry, WatermarkKind};

/// Rows of the history, of 150 bytes each: more than the kernel's buffers of a connection hold, and
/// more than two parts of an answer.
const ROWS: u64 = 100_000;

/// Threads that record rows: the store commits those of all of them at once.
const RECORDERS: u64 = 250;

/// A service whose account has [`ROWS`] rows.
fn with_a_history() -> Service {
    let folder = Folder::new();
    let settings = store::Settings {
        data: folder.path.join("data"),
        secret_file: None,
        allow_shared_data: false,
        history_keep: None,
        postgres: None,
    };
    let store = Store::open(&settings).unwrap_or_else(|_| panic!("a new store is opened"));
    let account = store.create_account(OWNER, None).expect("a new account");
    let token = store.token(account.id).expect("a token");
    let entry = UsageEntry {
        time: SystemTime::now(),
        token: TokenNumber::DEFAULT,
        format: "jpeg".to_owned(),
        input_bytes: u64::MAX / 1_000_000,
        output_bytes: u64::MAX / 10_000_000,
        width: 16383,
        height: 16383,
        quality: 100,
        watermark: WatermarkKind::Both,
        milliseconds: u32::MAX,
        request: RequestId(u128::MAX),
    };
    thread::scope(|scope| {
        for _ in 0..RECORDERS {
            scope.spawn(|| {
                for _ in 0..ROWS / RECORDERS {
                    store
                        .record_usage(account.id, &entry)
                        .expect("it is recorded");
                }
            });
        }
    });
    drop(store);
    let server = Server::start_in(folder, &[]);
    Service { server, token }
}

fn csv_request(service: &Service, method: &str, version: &str) -> String {
    format!(
        "{method} /api/usage.csv HTTP/{version}\r\nHost: a\r\nAuthorization: Bearer {}\r\n\r\n",
        service.token
    )
}

/// The columns, then the rows from the newest to the first.
#[track_caller]
fn check_rows(text: &str, newest: u64) {
    let mut lines = text.split_terminator("\r\n");
    let columns = lines.next().expect("a first line");
    assert!(columns.starts_with("id,time,format,"), "{columns}");
    let mut expected = newest;
    for row in lines {
        assert!(
            row.starts_with(&format!("{expected},")),
            "{row}, not {expected}"
        );
        assert_eq!(row.split(',').count(), 12, "{row}");
        expected -= 1;
    }
    assert_eq!(expected, 0, "the last rows are missing");
}

#[test]
fn a_long_history_is_answered_in_flat_memory() {
    let service = with_a_history();
    service.get("/api/usage", &[]);
    let before = memory(&service);
    let mut stream = BufReader::new(connect(&service));
    let requests = ["HEAD", "GET", "GET"].map(|method| csv_request(&service, method, "1.1"));
    stream
        .get_mut()
        .write_all(requests[0].as_bytes())
        .expect("the server reads");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
    assert!(
        !head.contains("content-length") && !head.contains("x-towebp"),
        "{head}"
    );

    for request in &requests[1..] {
        // The connection is kept, after HEAD too.
        stream
            .get_mut()
            .write_all(request.as_bytes())
            .expect("the server reads");
        let answer = read_next(&mut stream).expect("a whole answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
        assert_eq!(answer.header("content-length"), None);
        let media_type = answer.header("content-type").unwrap_or_default();
        assert!(media_type.starts_with("text/csv"), "{media_type}");
        let disposition = answer.header("content-disposition").unwrap_or_default();
        assert!(disposition.contains("towebp-usage.csv"), "{disposition}");
        assert_eq!(
            answer.header("x-towebp-next-part"),
            None,
            "it is between us"
        );
        check_rows(answer.text(), ROWS);
    }

    let mut old = service.server.send_raw(csv_request(&service, "GET", "1.0"));
    let mut answer = String::new();
    old.read_to_string(&mut answer)
        .expect("an answer up to the end");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("Connection: close"), "{head}");
    assert!(
        !head.to_ascii_lowercase().contains("transfer-encoding"),
        "{head}"
    );
    check_rows(body, ROWS);

    let grown = status_of(&service, "VmHWM").saturating_sub(before);
    println!("{ROWS} rows, {} bytes: {grown} bytes of memory", body.len());
    assert!(
        grown < body.len() / 2,
        "{grown} bytes for {} of CSV",
        body.len()
    );
}

/// A client that has asked for the history and reads nothing of it but the start.
fn unread(service: &Service) -> TcpStream {
    let mut stream = connect(service);
    stream
        .write_all(csv_request(service, "GET", "1.1").as_bytes())
        .expect("the server reads");
    let mut start = [0; 12];
    stream.read_exact(&mut start).expect("an answer begins");
    assert_eq!(&start, b"HTTP/1.1 200");
    stream
}

#[test]
fn clients_that_do_not_read_their_history_hold_nobody_up() {
    let service = with_a_history();
    let bystander = Bystander::start(&service);
    let before = memory(&service);
    let held: Vec<TcpStream> = (0..20).map(|_| unread(&service)).collect();
    let bearer = format!("Bearer {}", service.token);
    let authorization = [("Authorization", bearer.as_str())];
    let usage = service.get("/api/usage?limit=1", &authorization);
    assert_eq!(usage.status, 200, "{}", usage.text());
    let more = status_of(&service, "VmHWM").saturating_sub(before);
    assert!(
        more < 40 << 20,
        "{more} bytes for 20 histories that nobody reads"
    );
    bystander.finish("20 unread histories", BEARABLE);

    drop(held);

    // What is converted meanwhile is not in it.
    let totals = service.get("/api/usage?limit=1", &authorization).json();
    let newest = totals["totals"]["conversions"].as_u64().expect("a number");
    let stream = unread(&service);
    service.webp(&[], &Picture::waves(40, 30).png());
    let start: &[u8] = b"HTTP/1.1 200";
    let mut stream = BufReader::new(start.chain(stream));
    let answer = read_next(&mut stream).expect("a whole answer");
    check_rows(answer.text(), newest);
}

#[test]
fn a_history_breaks_off_once_its_token_is_replaced() {
    let service = with_a_history();
    let mut stream = unread(&service);
    let rotated = Command::new(TOWEBP)
        .args(["account", "rotate", OWNER, "--data"])
        .arg(service.data())
        .output()
        .expect("it starts");
    assert!(rotated.status.success(), "{rotated:?}");
    let answer = super::read_to_end(&mut stream);
    assert!(
        !answer.ends_with("\r\n0\r\n\r\n"),
        "nothing says that it is whole"
    );
    assert!(
        !answer.contains("token_invalid"),
        "no second answer inside the first"
    );
    until(|| service.server.request("GET", "/healthz").send().status == 200);
}
