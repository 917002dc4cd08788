//! The commands, as they are typed.

mod completions;
mod cwebp;
mod environment;
mod folders;
mod habits;
mod health;
mod interruptions;
mod mistakes;
mod passwords;
mod reports;
mod targets;
mod terminal;

use crate::support::command::{account, run, towebp};
use crate::support::host::Host;
use crate::support::picture::{HALVES_JPEG, Picture};
use crate::support::service::{OWNER, Service, Webp, send};
use crate::support::{Folder, TIMEOUT};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

fn convert(folder: &Folder, arguments: &[&str], input: &[u8]) -> Output {
    run(
        towebp()
            .arg("convert")
            .args(arguments)
            .current_dir(&folder.path),
        input,
    )
}

fn write(folder: &Folder, name: &str, bytes: &[u8]) {
    fs::write(folder.path.join(name), bytes).expect("a file in our own folder");
}

#[track_caller]
fn succeeded(output: &Output) {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Checks that the command failed and that its complaint has these words.
#[track_caller]
fn failed(output: &Output, words: &[&str]) {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success(),
        "it passed for a success: {complaint}"
    );
    for word in words {
        assert!(complaint.contains(word), "{word} is not in: {complaint}");
    }
}

#[track_caller]
fn assert_webp(path: &Path, width: u32, height: u32) {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let picture = Picture::decode(&bytes);
    assert_eq!(
        (picture.width, picture.height),
        (width, height),
        "{}",
        path.display()
    );
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// A photograph. Without loss it becomes larger.
const JPEG: &[u8] = include_bytes!("../../../testdata/chelsea.jpg");

#[test]
fn convert_writes_beside_the_input() {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(30, 20).png());
    succeeded(&convert(&folder, &["a.png"], b""));
    assert_webp(&folder.path.join("a.webp"), 30, 20);
    assert_eq!(names(&folder.path), ["a.png", "a.webp"]);
}

#[test]
fn convert_writes_to_the_named_file() {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(30, 20).png());
    succeeded(&convert(&folder, &["a.png", "-o", "b.webp"], b""));
    assert_webp(&folder.path.join("b.webp"), 30, 20);
    assert_eq!(names(&folder.path), ["a.png", "b.webp"]);
}

#[test]
fn convert_takes_many_files_of_all_formats_into_a_folder() {
    let folder = Folder::new();
    let picture = Picture::waves(30, 20);
    write(&folder, "a.png", &picture.png());
    write(&folder, "b.jpg", HALVES_JPEG);
    write(&folder, "c.GIF", &picture.gif());
    write(&folder, "d.bmp", &picture.bmp());
    fs::create_dir(folder.path.join("out")).expect("our own folder");
    succeeded(&convert(
        &folder,
        &["a.png", "b.jpg", "c.GIF", "d.bmp", "-o", "out"],
        b"",
    ));
    assert_eq!(
        names(&folder.path.join("out")),
        ["a.webp", "b.webp", "c.webp", "d.webp"]
    );
    assert_webp(&folder.path.join("out/b.webp"), 64, 48);
    assert_webp(&folder.path.join("out/d.webp"), 30, 20);
}

#[test]
fn convert_tells_what_was_saved_of_each_picture_and_of_all() {
    let folder = Folder::new();
    let pictures = [Picture::waves(90, 60).png(), Picture::waves(60, 90).bmp()];
    write(&folder, "a.png", &pictures[0]);
    write(&folder, "b.bmp", &pictures[1]);
    let output = convert(&folder, &["a.png", "b.bmp"], b"");
    succeeded(&output);
    let told = String::from_utf8_lossy(&output.stderr);
    let size = |name| fs::metadata(folder.path.join(name)).expect("written").len();
    let before: u64 = pictures.iter().map(|file| file.len() as u64).sum();
    let after = size("a.webp") + size("b.webp");
    let saved = (before - after) * 100 / before;
    let total = told.lines().last().expect("a line");
    assert!(total.starts_with("2 pictures in "), "{told}");
    assert!(total.ends_with(&format!("({saved} % saved)")), "{told}");
    let one = convert(&folder, &["a.png"], b"");
    let told = String::from_utf8_lossy(&one.stderr);
    assert!(
        told.contains(" % saved)") && told.lines().count() == 1,
        "{told}"
    );
}

#[test]
fn convert_keeps_originals_that_are_not_larger_than_their_webp() {
    let folder = Folder::new();
    write(&folder, "a.jpeg", JPEG);
    write(&folder, "b.png", &Picture::waves(90, 60).png());
    let larger = ["--lossless", "--effort", "low", "--if-larger", "original"];
    let run = |more: &[&str], input: &[u8]| convert(&folder, &[&larger, more].concat(), input);
    // Beside itself the input stays as it is.
    let output = run(&["a.jpeg", "b.png"], b"");
    succeeded(&output);
    assert_eq!(names(&folder.path), ["a.jpeg", "b.png", "b.webp"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("a.jpeg -> a.jpeg: ") && told.contains("original"),
        "{told}"
    );
    succeeded(&run(&["a.jpeg", "b.png", "-o", "out/"], b""));
    assert_eq!(names(&folder.path.join("out")), ["a.jpeg", "b.webp"]);
    let copy = folder.path.join("out/a.jpeg");
    assert!(fs::read(&copy).is_ok_and(|bytes| bytes == JPEG));
    // As any file that is not a WebP, the copy is not replaced by mistake.
    write(&folder, "out/a.jpeg", b"precious");
    failed(&run(&["a.jpeg", "-o", "out"], b""), &["out/a.jpeg"]);
    succeeded(&run(&["a.jpeg", "-o", "out", "--skip-existing"], b""));
    assert!(fs::read(&copy).is_ok_and(|bytes| bytes == b"precious"));
    succeeded(&run(&["a.jpeg", "-o", "out", "--force"], b""));
    assert!(fs::read(&copy).is_ok_and(|bytes| bytes == JPEG));
    let output = run(&["-"], JPEG);
    succeeded(&output);
    assert!(output.stdout == JPEG);
    succeeded(&run(&["-", "-o", "out"], JPEG));
    assert_eq!(
        names(&folder.path.join("out")),
        ["a.jpeg", "b.webp", "stdin.jpg"]
    );
    failed(
        &run(&["a.jpeg", "--watermark", "x"], b""),
        &["--if-larger and --watermark"],
    );
}

#[test]
fn convert_dash_is_standard_input_and_output() {
    let folder = Folder::new();
    let output = convert(&folder, &["-", "-o", "-"], &Picture::waves(30, 20).png());
    succeeded(&output);
    let picture = Picture::decode(&output.stdout);
    assert_eq!((picture.width, picture.height), (30, 20));
    assert!(names(&folder.path).is_empty(), "files were left behind");
}

#[test]
fn convert_goes_on_after_a_bad_file_and_says_which_it_was() {
    let folder = Folder::new();
    write(&folder, "good.png", &Picture::waves(30, 20).png());
    write(&folder, "bad.png", b"not a picture");
    write(&folder, "last.png", &Picture::waves(10, 10).png());
    let output = convert(
        &folder,
        &["bad.png", "good.png", "missing.png", "last.png"],
        b"",
    );
    failed(&output, &["bad.png", "missing.png"]);
    assert_webp(&folder.path.join("good.webp"), 30, 20);
    assert_webp(&folder.path.join("last.webp"), 10, 10);
    assert_eq!(
        names(&folder.path),
        ["bad.png", "good.png", "good.webp", "last.png", "last.webp"]
    );
}

#[test]
fn convert_never_overwrites_an_input() {
    let folder = Folder::new();
    let png = Picture::waves(30, 20).png();
    write(&folder, "a.png", &png);
    write(&folder, "b.png", &png);
    failed(
        &convert(&folder, &["a.png", "-o", "a.png"], b""),
        &["a.png"],
    );
    failed(
        &convert(&folder, &["a.png", "-o", "./a.png"], b""),
        &["a.png"],
    );
    fs::create_dir(folder.path.join("sub")).expect("our own folder");
    failed(
        &convert(&folder, &["a.png", "-o", "sub/../a.png"], b""),
        &["a.png"],
    );
    assert_eq!(
        fs::read(folder.path.join("a.png")).expect("still there"),
        png
    );
}

#[test]
fn convert_keeps_an_older_output_if_the_input_is_bad() {
    let folder = Folder::new();
    write(&folder, "a.png", b"not a picture");
    write(&folder, "a.webp", b"precious");
    failed(&convert(&folder, &["a.png"], b""), &["a.png"]);
    assert_eq!(
        fs::read(folder.path.join("a.webp")).expect("still there"),
        b"precious"
    );
    assert_eq!(names(&folder.path), ["a.png", "a.webp"]);
}

#[test]
fn convert_does_not_let_two_inputs_share_an_output() {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(30, 20).png());
    write(&folder, "a.gif", &Picture::waves(10, 10).gif());
    let output = convert(&folder, &["a.png", "a.gif"], b"");
    failed(&output, &["a.webp"]);
}

#[test]
fn convert_gives_the_same_bytes_as_the_server() {
    let server = Service::start();
    let folder = Folder::new();
    let png = Picture::waves(120, 90).png();
    write(&folder, "a.png", &png);
    let arguments = [
        "a.png",
        "--quality",
        "30",
        "--effort",
        "low",
        "--watermark",
        "Hallo",
        "--watermark-position",
        "topLeft",
    ];
    succeeded(&convert(&folder, &arguments, b""));
    let parameters = [
        ("quality", "30"),
        ("effort", "low"),
        ("watermark", "Hallo"),
        ("watermark_position", "topLeft"),
    ];
    let here = Webp(fs::read(folder.path.join("a.webp")).expect("written"));
    assert_eq!(
        here,
        server.webp(&parameters, &png),
        "command line and server differ"
    );
}

#[test]
fn convert_fetches_watermarks_without_the_environments_proxy() {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(60, 40).png());
    let host = Host::of(&Picture::flat(10, 10, [250, 250, 0]).png());
    let mut command = towebp();
    command.args(["convert", "a.png", "--watermark-image", &host.url()]);
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a free port");
    proxy.set_nonblocking(true).expect("a socket can");
    let address = format!("http://{}", proxy.local_addr().expect("bound"));
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, &address);
        command.env(name.to_ascii_lowercase(), &address);
    }
    command.env_remove("NO_PROXY").env_remove("no_proxy");
    succeeded(&run(command.current_dir(&folder.path), b""));
    assert_webp(&folder.path.join("a.webp"), 60, 40);
    let asked = proxy.accept().expect_err("nobody asks the proxy");
    assert_eq!(asked.kind(), ErrorKind::WouldBlock);
}

#[test]
fn convert_names_the_parameter_at_fault() {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(30, 20).png());
    failed(
        &convert(&folder, &["a.png", "--quality", "high"], b""),
        &["quality"],
    );
    failed(
        &convert(&folder, &["a.png", "--effort", "most"], b""),
        &["effort", "most", "low, medium, high or max"],
    );
    failed(
        &convert(
            &folder,
            &["a.png", "--watermark", "a", "--watermark-position", "north"],
            b"",
        ),
        &["topLeft"],
    );
    assert_eq!(names(&folder.path), ["a.png"]);
}

#[test]
fn account_commands_work_without_a_server() {
    let data = Folder::new();
    accounts_are_managed(&data.path);
}

#[test]
fn account_commands_work_beside_a_running_server() {
    let server = Service::start();
    let png = Picture::waves(8, 8).png();
    let status = |token: &str| {
        let target = format!("/convert?token={token}");
        server
            .request("POST", &target, &[("Content-Type", "image/png")], &png)
            .status
    };
    accounts_are_managed(&server.data());
    let created = account(&["create", "third@example.org"], &server.data());
    assert_eq!(status(&created), 200);
    let rotated = account(&["rotate", "third@example.org"], &server.data());
    assert_eq!(
        (status(&created), status(&rotated)),
        (401, 200),
        "the old token is refused at once"
    );
}

/// Makes, lists, shows, rotates and deletes an account.
#[track_caller]
fn accounts_are_managed(data: &Path) {
    let token = account(&["create", "Second@Example.org"], data);
    assert!(
        token.len() >= 20 && !token.contains(char::is_whitespace),
        "not a token alone: {token:?}"
    );
    assert_eq!(account(&["token", "second@example.org"], data), token);
    assert!(account(&["list"], data).contains("second@example.org"));
    let rotated = account(&["rotate", "second@example.org"], data);
    assert_ne!(rotated, token);
    assert_eq!(account(&["token", "second@example.org"], data), rotated);
    account(&["delete", "second@example.org", "--yes"], data);
    assert!(!account(&["list"], data).contains("second@example.org"));
}

#[test]
fn account_mistakes_are_explained() {
    let data = Folder::new();
    let try_to = |action: &[&str]| {
        let mut command: Command = towebp();
        run(
            command
                .arg("account")
                .args(action)
                .arg("--data")
                .arg(&data.path),
            b"",
        )
    };
    failed(&try_to(&["create", "nobody"]), &["e-mail", "@"]);
    account(&["create", OWNER], &data.path);
    failed(&try_to(&["create", OWNER]), &[OWNER]);
    failed(&try_to(&["delete", OWNER]), &["--yes"]);
    assert!(
        account(&["list"], &data.path).contains(OWNER),
        "deleted without --yes"
    );
    for action in [&["token"][..], &["rotate"], &["delete", "--yes"]] {
        let stranger = "stranger@example.org";
        failed(&try_to(&[action, &[stranger]].concat()), &[stranger]);
    }
}

#[test]
fn tokens_survive_a_restart() {
    let Service { server, token } = Service::start();
    let server = Service::resume(server.kill(), token);
    server.webp(&[], &Picture::waves(8, 8).png());
    assert_eq!(account(&["token", OWNER], &server.data()), server.token);
}

#[test]
fn serve_listens_on_any_address_and_on_more_than_one() {
    let data = Folder::new();
    let mut child = towebp()
        .args([
            "serve",
            "--listen",
            "0.0.0.0:0",
            "--listen",
            "127.0.0.1:0",
            "--data",
        ])
        .arg(&data.path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut ports = ["0.0.0.0", "127.0.0.1"].map(|address| {
        let line = lines
            .next()
            .expect("a line for each address")
            .expect("text");
        let port = line.strip_prefix(&format!("towebp listens on http://{address}:"));
        port.unwrap_or_else(|| panic!("{line}"))
            .parse::<u16>()
            .expect("a port")
    });
    ports.sort_unstable();
    let statuses = ports.map(|port| {
        let request = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        send(([127, 0, 0, 1], port).into(), request).map(|answer| answer.status)
    });
    let _ = child.kill();
    let _ = child.wait();
    assert!(matches!(statuses, [Ok(200), Ok(200)]), "{statuses:?}");
}

#[test]
fn serve_says_that_the_data_is_in_use() {
    let server = Service::start();
    let output = run(
        towebp()
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(server.data()),
        b"",
    );
    failed(&output, &[&server.data().to_string_lossy()]);
}

#[test]
fn serve_demo_converts_prints_a_working_request_and_goes_on_serving() {
    let data = Folder::new();
    let mut process = towebp()
        .args(["serve", "--demo", "--listen", "127.0.0.1:0", "--data"])
        .arg(&data.path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let outcome = catch_unwind(AssertUnwindSafe(|| follow_demo(&mut process)));
    process.kill().ok();
    process.wait().ok();
    outcome.unwrap_or_else(|panic| resume_unwind(panic));
}

/// Reads what the demo prints, and sends the request of its curl line.
fn follow_demo(process: &mut Child) {
    let (sender, lines) = mpsc::channel();
    let stdout = BufReader::new(process.stdout.take().expect("its output is piped"));
    thread::spawn(move || {
        stdout
            .lines()
            .map_while(Result::ok)
            .try_for_each(|line| sender.send(line))
    });
    let mut output = String::new();
    while !(output.contains("curl") && output.contains("assword")) {
        let line = lines.recv_timeout(TIMEOUT);
        output.push_str(
            &line.unwrap_or_else(|_| panic!("the demo does not come to its end: {output}")),
        );
        output.push('\n');
    }
    assert!(
        output.contains("bytes") && output.contains(" ms"),
        "no sizes or milliseconds: {output}"
    );
    let curl = output
        .lines()
        .find(|line| line.contains("curl"))
        .expect("found above");
    let (_, address) = curl.split_once("http://").expect("a URL in the curl line");
    let address: SocketAddr = address[..address.find('/').expect("a path")]
        .parse()
        .expect("an address");
    let start = curl
        .find("/convert?token=")
        .expect("a target in the curl line");
    let target: String = curl[start..]
        .chars()
        .take_while(|c| !"'\" ".contains(*c))
        .collect();
    let content_type = if curl.contains("image/jpeg") {
        "image/jpeg"
    } else {
        "image/png"
    };
    let picture = curl
        .split('@')
        .nth(1)
        .expect("--data-binary @FILE")
        .split_whitespace()
        .next()
        .expect("a file");
    let picture = fs::read(picture.trim_matches(['\'', '"'])).expect("the file of the curl line");
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\n\r\n",
        picture.len()
    );
    let answer = send(address, &[head.as_bytes(), &picture].concat()).expect("it goes on serving");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let converted = Picture::decode(&answer.body);
    assert!(
        converted.width > 100 && converted.height > 100,
        "not a real photograph"
    );
}

#[test]
fn unknown_commands_and_flags_are_refused() {
    for arguments in [
        &["frobnicate"][..],
        &["serve", "--frobnicate"],
        &["convert"],
        &[],
    ] {
        let output = run(towebp().args(arguments), b"");
        assert!(
            !output.status.success(),
            "{arguments:?} passed for a success"
        );
    }
}

#[test]
fn help_and_values_are_read_alike_by_all_commands() {
    for arguments in [
        &["-h"][..],
        &["convert", "-h"],
        &["convert", "a.png", "--quality=75", "-h"],
        &["account", "list", "-h"],
        &["backup", "-h"],
        &["check", "--help"],
    ] {
        let output = run(towebp().args(arguments), b"");
        succeeded(&output);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.starts_with("Usage: towebp"), "{arguments:?}: {said}");
    }
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(30, 20).png());
    let quality = |arguments: &[&str]| {
        let all = [&["a.png", "-o", "-", "--mode=lossy"], arguments].concat();
        let output = convert(&folder, &all, b"");
        succeeded(&output);
        Webp(output.stdout)
    };
    assert_eq!(quality(&["--quality=20"]), quality(&["--quality", "20"]));
    assert_ne!(quality(&["--quality=20"]), quality(&["--quality=90"]));
    let data = folder.path.join("data");
    let flag = format!("--data={}", data.display());
    let created = run(
        towebp().args(["account", "create", OWNER, flag.as_str()]),
        b"",
    );
    succeeded(&created);
    assert!(account(&["list"], &data).contains(OWNER));
    let refused = convert(&folder, &["a.png", "--lossless=yes"], b"");
    failed(&refused, &["--lossless takes no value"]);
    let refused = convert(&folder, &["a.png", "--qualty=3"], b"");
    failed(&refused, &["--qualty", "Run towebp convert -h"]);
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let data = Folder::new();
    let output = run(
        towebp()
            .args(["serve", "--listen", &address, "--data"])
            .arg(&data.path),
        b"",
    );
    failed(&output, &[&address]);
}

#[test]
fn server_answers_on_ipv6_loopback() {
    // The address is not known to `Service`, so this one is started by hand.
    let Ok(free) = TcpListener::bind("[::1]:0") else {
        return;
    };
    let address = free.local_addr().expect("bound");
    drop(free);
    let data = Folder::new();
    let mut child = towebp()
        .args(["serve", "--listen", &address.to_string(), "--data"])
        .arg(&data.path)
        .spawn()
        .expect("it starts");
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let started = Instant::now();
    let answer = loop {
        match send(address, request.as_bytes()) {
            Ok(answer) => break Some(answer.status),
            Err(_) if started.elapsed() > Duration::from_secs(10) => break None,
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    };
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(answer, Some(200));
}

#[test]
fn a_secret_is_printed_as_its_file_holds_it() {
    let print = || {
        let output = run(towebp().arg("secret"), b"");
        succeeded(&output);
        assert!(output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).expect("hexadecimal digits")
    };
    let secret = print();
    assert_eq!(secret.len(), 65);
    assert_ne!(secret, print());
    let folder = Folder::new();
    let file = folder.path.join("secret");
    fs::write(&file, &secret).expect("a file in our own folder");
    let mut create = towebp();
    create
        .args(["account", "create", OWNER, "--data"])
        .arg(folder.path.join("data"))
        .arg("--secret-file")
        .arg(&file);
    succeeded(&run(&mut create, b""));
    assert_eq!(fs::read_to_string(&file).expect("it is there"), secret);
}

#[test]
fn a_store_that_cannot_be_used_is_told_and_nothing_is_made() {
    let folder = Folder::new();
    let data = folder.path.join("data");
    let store = "postgres://towebp@127.0.0.1:1/towebp";
    for (arguments, words) in [
        (&["--store", store][..], &["--secret-file"][..]),
        (&["--store-tls", "off"], &["--store-tls without --store"]),
        (&["--store", "mysql://a@b/c"], &["--store: "]),
        (
            &["--store", "postgres://towebp:hunter2@db1/towebp"],
            &["--store: ", "password"],
        ),
    ] {
        for command in [&["serve"][..], &["account", "list"]] {
            let mut towebp = towebp();
            towebp
                .args(command)
                .args(arguments)
                .arg("--data")
                .arg(&data)
                .current_dir(&folder.path);
            let output = run(&mut towebp, b"");
            failed(&output, words);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
    assert!(!folder.path.join("secret").exists());
}
