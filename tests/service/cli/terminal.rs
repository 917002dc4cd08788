//! A terminal, and what a command shows at it.

use crate::support::TIMEOUT;
use crate::support::command::towebp_with_signals;
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A terminal with a command at it.
pub(super) struct Terminal {
    keyboard: File,
    /// The command's side, which a test holds open to read its modes.
    line: File,
    screen: Arc<Mutex<String>>,
    pub(super) child: Child,
}

impl Terminal {
    /// Starts the program in this folder.
    pub(super) fn start(arguments: &[&str], folder: &Path) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it is ours");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let line = File::options()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NOCTTY.bits().cast_signed())
            .open(name.to_str().expect("ASCII"))
            .expect("it can be opened");
        let clone = || Stdio::from(line.try_clone().expect("a descriptor"));
        let child = towebp_with_signals()
            .args(arguments)
            .current_dir(folder)
            .stdin(clone())
            .stdout(clone())
            .stderr(clone())
            .spawn()
            .expect("it starts");
        let keyboard = File::from(master);
        let mut reader = keyboard.try_clone().expect("a descriptor");
        let screen = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&screen);
        thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..read]);
                shown.lock().expect("no panic").push_str(&text);
            }
        });
        Terminal {
            keyboard,
            line,
            screen,
            child,
        }
    }

    pub(super) fn screen(&self) -> String {
        self.screen.lock().expect("no panic").clone()
    }

    #[track_caller]
    pub(super) fn wait_for(&self, text: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while !self.screen().contains(text) {
            assert!(
                Instant::now() < deadline,
                "no {text:?} in {}",
                self.screen()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn type_line(&mut self, text: &str) {
        self.keyboard
            .write_all(format!("{text}\n").as_bytes())
            .expect("it is open");
    }

    #[track_caller]
    pub(super) fn end(&mut self) -> Option<i32> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                return status.code();
            }
            if Instant::now() > deadline {
                self.child.kill().ok();
                panic!("it did not end: {}", self.screen());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn shows_what_is_typed(&self) -> bool {
        let modes = tcgetattr(&self.line).expect("a terminal").local_modes;
        modes.contains(LocalModes::ECHO)
    }
}
