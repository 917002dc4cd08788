//! The program's commands, run to their end.

use super::{TIMEOUT, TOWEBP, store};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The built program, whatever the environment says of its log.
pub fn towebp() -> Command {
    let mut command = Command::new(TOWEBP);
    command.env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// As [`towebp`], but with the signals that a terminal sends not ignored. Tests that run as a job
/// of a script in the background are started with SIGINT ignored, which their children inherit.
pub fn towebp_with_signals() -> Command {
    let mut command = Command::new("env");
    command
        .args(["--default-signal=INT,HUP", TOWEBP])
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

/// Runs a command with these bytes on standard input; kills it and fails if it does not end.
pub fn run(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("its input is piped");
    let input = input.to_vec();
    // A command that does not read its input closes the pipe: not a fault.
    let feeder = thread::spawn(move || stdin.write_all(&input).ok());
    let stdout = drain(child.stdout.take().expect("its output is piped"));
    let stderr = drain(child.stderr.take().expect("its errors are piped"));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the process can be asked") {
            break status;
        }
        if started.elapsed() > TIMEOUT {
            child.kill().ok();
            panic!("{command:?} did not end within {TIMEOUT:?}");
        }
        thread::sleep(Duration::from_millis(5));
    };
    feeder.join().expect("the feeder cannot panic");
    Output {
        status,
        stdout: stdout.join().expect("the pipe can be read"),
        stderr: stderr.join().expect("the pipe can be read"),
    }
}

/// Runs `towebp account ACTION...` on the store of the server with this data folder. It has to
/// succeed; gives its standard output without the last line's end.
#[track_caller]
pub fn account(action: &[&str], data: &Path) -> String {
    let output = run(
        towebp()
            .arg("account")
            .args(action)
            .args(store::flags(data)),
        b"",
    );
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "account {action:?}: {complaint}");
    let text = String::from_utf8(output.stdout).expect("the output is text");
    text.trim_end().to_owned()
}

fn drain(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("the pipe can be read");
        bytes
    })
}
