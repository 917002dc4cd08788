//! A batch that is ended by a signal, or that nobody listens to.

use super::{assert_webp, failed, names, write};
use crate::support::command::{run, towebp, towebp_with_signals};
use crate::support::picture::Picture;
use crate::support::{Folder, TIMEOUT};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Waits for the end of a process, which is killed if it does not come.
fn end_of(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(status) = child.try_wait().expect("the process can be asked") {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().ok();
            panic!("it did not end within {TIMEOUT:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn until(mut it_is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !it_is_so() {
        assert!(Instant::now() < deadline, "it did not become so");
        thread::sleep(Duration::from_millis(2));
    }
}

fn signal(child: &Child, signal: Signal) {
    let number = i32::try_from(child.id()).expect("Linux has no more processes");
    kill_process(Pid::from_raw(number).expect("not 0"), signal).expect("it runs");
}

fn mkfifo(folder: &Folder, name: &str) {
    let made = Command::new("mkfifo").arg(folder.path.join(name)).status();
    assert!(made.expect("it starts").success(), "mkfifo failed");
}

/// `a.png` and `b.png`, and `c.png`, a FIFO that a batch waits for.
fn batch_that_waits() -> Folder {
    let folder = Folder::new();
    for name in ["a.png", "b.png"] {
        write(&folder, name, &Picture::waves(30, 20).png());
    }
    mkfifo(&folder, "c.png");
    folder
}

const BATCH: [&str; 6] = ["convert", "a.png", "b.png", "c.png", "--threads", "1"];

#[test]
fn a_signal_ends_a_batch_with_a_count() {
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let folder = batch_that_waits();
        write(&folder, "a.png", b"not a picture");
        let mut child = towebp_with_signals()
            .args(BATCH)
            .current_dir(&folder.path)
            .stderr(Stdio::from(
                fs::File::create(folder.path.join("said")).expect("our own folder"),
            ))
            .spawn()
            .expect("it starts");
        let said = || fs::read_to_string(folder.path.join("said")).expect("text");
        until(|| said().contains("b.webp"));
        signal(&child, sent);
        assert_eq!(end_of(&mut child).code(), Some(code));
        let said = said();
        assert!(said.contains("interrupted when 1 of 3"), "{said}");
        assert!(said.contains("a.png: "), "the failure is not told: {said}");
        let expected = ["a.png", "b.png", "b.webp", "c.png", "said"];
        assert_eq!(names(&folder.path), expected);
    }
}

#[test]
fn nothing_unfinished_is_left_whenever_the_signal_comes() {
    let folder = Folder::new();
    let inputs: Vec<String> = (0..60).map(|number| format!("{number}.png")).collect();
    for input in &inputs {
        write(&folder, input, &Picture::waves(48, 32).png());
    }
    for round in 0..12 {
        let mut child = towebp_with_signals()
            .args(["convert", "--threads", "4", "-o", "out/"])
            .args(&inputs)
            .current_dir(&folder.path)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let out = folder.path.join("out");
        let count = || fs::read_dir(&out).map_or(0, Iterator::count);
        until(|| count() > round * 3);
        signal(&child, Signal::INT);
        let status = end_of(&mut child);
        let mut said = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().expect("piped"), &mut said)
            .expect("text");
        let left = names(&out);
        assert!(
            left.iter().all(|name| !name.starts_with('.')),
            "left behind: {left:?}"
        );
        // A batch that was quicker than the signal has all.
        if status.code() == Some(130) {
            let counted = format!("interrupted when {} of 60 pictures", left.len());
            assert!(said.contains(&counted), "{counted} is not in: {said}");
        } else {
            assert_eq!((status.code(), left.len()), (Some(0), 60));
        }
        for name in &left {
            assert_webp(&out.join(name), 48, 32);
        }
        fs::remove_dir_all(&out).expect("our own folder");
    }
}

#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let folder = batch_that_waits();
    let mut child = Command::new("sh")
        .args(["-c", r#"trap "" INT HUP; exec "$0" "$@""#])
        .arg(env!("CARGO_BIN_EXE_towebp"))
        .args(BATCH)
        .current_dir(&folder.path)
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    until(|| folder.path.join("b.webp").exists());
    signal(&child, Signal::INT);
    signal(&child, Signal::HUP);
    let png = Picture::waves(8, 8).png();
    let fifo = folder.path.join("c.png");
    // Opening it to write waits for a reader: it would wait for ever if the batch had ended.
    let feeder = thread::spawn(move || fs::write(fifo, png));
    assert_eq!(end_of(&mut child).code(), Some(0));
    feeder.join().expect("no panic").expect("it was read");
    assert_webp(&folder.path.join("c.webp"), 8, 8);
}

#[test]
fn a_disk_that_takes_no_more_leaves_nothing_behind() {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(120, 90).png());
    write(&folder, "a.webp", b"precious");
    // One block of 512 bytes, or of 1024 by some shells.
    let script = r#"ulimit -f 1; exec "$0" convert --lossless a.png"#;
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_towebp")]);
    let output = run(command.current_dir(&folder.path), b"");
    failed(&output, &["a.webp", "File too large"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(names(&folder.path), ["a.png", "a.webp"]);
    let kept = fs::read(folder.path.join("a.webp")).expect("it is there");
    assert_eq!(kept, b"precious");
}

#[test]
fn a_batch_goes_on_when_nobody_reads_its_messages() {
    let folder = Folder::new();
    let inputs: Vec<String> = (0..9).map(|number| format!("{number}.png")).collect();
    for input in &inputs {
        write(&folder, input, &Picture::waves(16, 8).png());
    }
    write(&folder, "4.png", b"not a picture");
    let mut child = towebp()
        .arg("convert")
        .args(&inputs)
        .current_dir(&folder.path)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stderr.take());
    assert_eq!(end_of(&mut child).code(), Some(1), "one cannot be read");
    for number in (0..9).filter(|number| *number != 4) {
        assert_webp(&folder.path.join(format!("{number}.webp")), 16, 8);
    }
    // Neither a mistake nor an answer on a closed stream is a crash.
    for (arguments, code) in [
        (&["--version"][..], 0),
        (&["-h"], 0),
        (&["no"], 2),
        (&[], 2),
    ] {
        let mut child = towebp()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(end_of(&mut child).code(), Some(code), "{arguments:?}");
    }
}
