//! One Chromium with its driver, in a folder of its own. Both end with the value and, by a process
//! that watches the test, also if the test is killed.

use crate::support::skip::skipped;
use crate::support::{Folder, TIMEOUT};
use crate::webdriver::{Failure, Wire};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Condvar, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// The most browsers at a time: each has some 200 MB and several processes.
const MAX_BROWSERS: usize = 3;

/// What begins the line with the driver's port.
const STARTED: &str = "started successfully on port ";

/// Waits for the end of its standard input, which only the test holds, and cleans up.
const WATCHER: &str = r#"
trap '' INT TERM HUP
cat >/dev/null
kill -KILL "$1" $(cat "$2/chromium" 2>/dev/null) 2>/dev/null
for wait in 0 0.1 0.5 2; do
    sleep $wait
    rm -rf "$2" 2>/dev/null && break
done
"#;

/// What a browser is started with.
#[derive(Clone, Copy)]
pub struct Options {
    /// Whether it runs scripts of pages.
    pub has_script: bool,
    /// Its time zone, by its name.
    pub time_zone: &'static str,
    /// A host name that leads to 127.0.0.1, beside those that do anyway.
    pub host: Option<&'static str>,
}

impl Options {
    /// Of a browser that runs no scripts of pages.
    pub fn without_script() -> Options {
        Options {
            has_script: false,
            ..Options::default()
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            has_script: true,
            time_zone: "UTC",
            host: None,
        }
    }
}

/// A running Chromium.
pub struct Chromium {
    wire: Wire,
    session: String,
    driver: Child,
    watcher: Child,
    /// Its end is what the watcher waits for.
    held: Option<ChildStdin>,
    folder: Folder,
    _turn: Turn,
}

impl Chromium {
    /// A new one, with an empty profile; `None` where Chromium or its driver is not installed.
    pub fn start(options: Options) -> Option<Chromium> {
        /// A driver takes a free port of IPv6, and ends if that is not free in IPv4.
        const DRIVERS: usize = 5;
        let programs = programs()?;
        let mut turn = Turn::take();
        let mut said = String::new();
        for _ in 0..DRIVERS {
            match Chromium::try_start(programs, options, turn) {
                Ok(chromium) => return Some(chromium),
                Err(failed) => (turn, said) = failed,
            }
        }
        panic!("{DRIVERS} drivers ended without saying their port: {said}");
    }

    /// Starts a driver with a browser. An error is what the driver said before it ended.
    fn try_start(
        [driver, browser]: [&str; 2],
        options: Options,
        turn: Turn,
    ) -> Result<Chromium, (Turn, String)> {
        let folder = Folder::new();
        let mut driver = Command::new(driver)
            .arg("--port=0")
            // Profiles, caches and crash reports that are not told where to go.
            .env("HOME", &folder.path)
            .env("TMPDIR", &folder.path)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_CACHE_HOME")
            .env("TZ", options.time_zone)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the driver starts");
        let mut watcher = Command::new("sh")
            .args(["-c", WATCHER, "sh", &driver.id().to_string()])
            .arg(&folder.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        let held = watcher.stdin.take();
        let mut output = BufReader::new(driver.stdout.take().expect("its output is piped"));
        let port = match port(&mut output) {
            Ok(port) => port,
            Err(said) => {
                drop(held);
                watcher.wait().ok();
                driver.wait().ok();
                return Err((turn, said));
            }
        };
        // Read on, so that the driver never waits for a full pipe.
        thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let mut chromium = Chromium {
            wire: Wire::to(port),
            session: String::new(),
            driver,
            watcher,
            held,
            folder,
            _turn: turn,
        };
        chromium.begin(browser, options);
        Ok(chromium)
    }

    /// Where downloads are put.
    pub fn downloads(&self) -> PathBuf {
        self.folder.path.join("downloads")
    }

    /// Sends a command of the session, such as `url`.
    pub fn post(&self, command: &str, parameters: &Value) -> Result<Value, Failure> {
        self.wire
            .send("POST", &self.path(command), Some(parameters))
    }

    /// Asks for something of the session.
    pub fn get(&self, command: &str) -> Result<Value, Failure> {
        self.wire.send("GET", &self.path(command), None)
    }

    /// Deletes something of the session.
    pub fn delete(&self, command: &str) -> Result<Value, Failure> {
        self.wire.send("DELETE", &self.path(command), None)
    }

    /// Sends a command of the Chrome `DevTools` Protocol.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        let parameters = json!({"cmd": command, "params": parameters});
        self.post("goog/cdp/execute", &parameters)
            .unwrap_or_else(|failure| panic!("{command}: {failure}"))
    }

    fn path(&self, command: &str) -> String {
        format!("/session/{}/{command}", self.session)
    }

    fn begin(&mut self, browser: &str, options: Options) {
        let mut flags = vec![
            "--headless=new".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--disable-sync".to_owned(),
            "--no-default-browser-check".to_owned(),
            "--no-first-run".to_owned(),
            format!("--user-data-dir={}/profile", self.folder.path.display()),
        ];
        if let Some(host) = options.host {
            flags.push(format!("--host-resolver-rules=MAP {host} 127.0.0.1"));
        }
        // Chromium's sandbox refuses root.
        if rustix::process::geteuid().is_root() {
            flags.push("--no-sandbox".to_owned());
        }
        let script = if options.has_script { 1 } else { 2 };
        let settings = json!({"profile.managed_default_content_settings.javascript": script});
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"args": flags, "binary": browser, "prefs": settings},
        }}});
        let begun = self
            .wire
            .send("POST", "/session", Some(&wanted))
            .unwrap_or_else(|failure| panic!("no browser: {failure}"));
        begun["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("no session in {begun}"))
            .clone_into(&mut self.session);
        if let Some(process) = begun["capabilities"]["goog:processID"].as_u64() {
            fs::write(self.process_file(), process.to_string()).expect("the folder is ours");
        }
        let allowed = json!({"behavior": "allow", "downloadPath": self.downloads()});
        self.devtools("Browser.setDownloadBehavior", &allowed);
    }

    fn process_file(&self) -> PathBuf {
        self.folder.path.join("chromium")
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let path = format!("/session/{}", self.session);
        if self.wire.send("DELETE", &path, None).is_ok() {
            // Its number may be another process's by now.
            fs::remove_file(self.process_file()).ok();
        }
        drop(self.held.take());
        self.watcher.wait().ok();
        self.driver.wait().ok();
    }
}

/// The right to run a browser: there are [`MAX_BROWSERS`] of them.
struct Turn;

static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

impl Turn {
    fn take() -> Turn {
        let running = RUNNING.lock().expect("nobody panics while holding it");
        let mut running = ENDED
            .wait_while(running, |running| *running >= MAX_BROWSERS)
            .expect("nobody panics while holding it");
        *running += 1;
        Turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *RUNNING.lock().expect("nobody panics while holding it") -= 1;
        ENDED.notify_one();
    }
}

/// The port that the driver listens on, once it does. An error is what it said before it ended.
fn port(output: &mut impl BufRead) -> Result<u16, String> {
    let mut told = String::new();
    loop {
        let before = told.len();
        let read = output.read_line(&mut told).expect("it writes UTF-8");
        if read == 0 {
            return Err(told);
        }
        if let Some((_, port)) = told[before..].split_once(STARTED) {
            let digits = port.trim().trim_end_matches('.');
            return Ok(digits
                .parse()
                .unwrap_or_else(|error| panic!("{error}: {port:?}")));
        }
    }
}

/// The driver and the browser, as Debian or others name them; without either, says so.
fn programs() -> Option<[&'static str; 2]> {
    static FOUND: OnceLock<Option<[&str; 2]>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let driver = first_found(&["chromedriver"]);
        let browser = first_found(&[
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
        ]);
        let found = driver.zip(browser).map(|(driver, browser)| [driver, browser]);
        if found.is_none() {
            skipped("Chromium and its driver are not installed, so no page was tried in a browser (scripts/install-tools)");
        }
        found
    })
}

/// The path of the first of these programs that is on the PATH.
fn first_found(names: &[&str]) -> Option<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = names.iter().find_map(|name| {
        let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
        files.find(|file| file.is_file())
    })?;
    let text = found.into_os_string().into_string().ok()?;
    Some(String::leak(text))
}

/// Waits until `look` finds something, and gives that; at the end of [`TIMEOUT`], fails with what
/// `complaint` says.
#[track_caller]
pub fn wait_for<T>(mut look: impl FnMut() -> Option<T>, complaint: impl FnOnce() -> String) -> T {
    let deadline = Instant::now() + TIMEOUT;
    let mut pause = Duration::from_millis(5);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{}", complaint());
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}
