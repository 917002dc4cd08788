//! Chromium with its driver, in a folder of its own. Starting one takes a third of a short test's
//! time, so a test that has passed leaves its Chromium, tidied up, to the next one that wants it
//! with the same options. A process that watches the test program ends those that are left when it
//! ends, also if it is killed.

use crate::support::skip::skipped;
use crate::support::{Folder, TIMEOUT};
use crate::webdriver::{Failure, Wire};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Condvar, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// The most browsers at a time, those that wait for a test among them: each has some 200 MB and
/// several processes.
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
#[derive(Clone, Copy, PartialEq, Eq)]
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

/// A Chromium that a test has for itself.
pub struct Chromium {
    /// The programs; `None` before they have started, and once the value is dropped.
    process: Option<Process>,
    options: Options,
    /// The origin of the pages that the test opens.
    origin: String,
}

impl Chromium {
    /// Gives a test a Chromium with an empty profile, for the pages of `origin`; `None` where
    /// Chromium or its driver is not installed.
    pub fn start(options: Options, origin: &str) -> Option<Chromium> {
        let programs = programs()?;
        let mut chromium = Chromium {
            process: take(options),
            options,
            origin: origin.to_owned(),
        };
        let started = || Process::start(programs, options);
        let process = chromium.process.get_or_insert_with(started);
        // This holds as long as the tab by which it is sent: each test sends it by its first tab.
        let allowed = json!({"behavior": "allow", "downloadPath": process.downloads()});
        process.devtools("Browser.setDownloadBehavior", &allowed);
        Some(chromium)
    }
}

impl Deref for Chromium {
    type Target = Process;

    fn deref(&self) -> &Process {
        self.process.as_ref().expect("it has started")
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let process = self.process.take();
        let tidy = process.filter(|it| !thread::panicking() && it.tidy(&self.origin).is_ok());
        give_back(tidy.map(|process| (self.options, process)));
    }
}

/// A running Chromium, its driver and what watches them.
pub struct Process {
    wire: Wire,
    session: String,
    driver: Child,
    watcher: Child,
    /// Its end is what the watcher waits for.
    held: Option<ChildStdin>,
    folder: Folder,
}

impl Process {
    fn start(programs: [&str; 2], options: Options) -> Process {
        /// A driver takes a free port of IPv6, and ends if that is not free in IPv4.
        const DRIVERS: usize = 5;
        let mut said = String::new();
        for _ in 0..DRIVERS {
            match Process::try_start(programs, options) {
                Ok(process) => return process,
                Err(last) => said = last,
            }
        }
        panic!("{DRIVERS} drivers ended without saying their port: {said}");
    }

    /// Starts a driver with a browser. An error is what the driver said before it ended.
    fn try_start([driver, browser]: [&str; 2], options: Options) -> Result<Process, String> {
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
                return Err(said);
            }
        };
        // Read on, so that the driver never waits for a full pipe.
        thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let mut process = Process {
            wire: Wire::to(port),
            session: String::new(),
            driver,
            watcher,
            held,
            folder,
        };
        process.begin(browser, options);
        Ok(process)
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
        self.try_devtools(command, parameters)
            .unwrap_or_else(|failure| panic!("{command}: {failure}"))
    }

    fn try_devtools(&self, command: &str, parameters: &Value) -> Result<Value, Failure> {
        let parameters = json!({"cmd": command, "params": parameters});
        self.post("goog/cdp/execute", &parameters)
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
    }

    /// Makes it as it was at the beginning: an empty tab, which knows nothing of what the tabs
    /// before were told to show or to be without, and nothing stored for pages of `origin`.
    fn tidy(&self, origin: &str) -> Result<(), Failure> {
        self.delete("chromium/network_conditions")?;
        let old = self.get("window/handles")?;
        let new = self.post("window/new", &json!({"type": "tab"}))?["handle"].take();
        for tab in old.as_array().into_iter().flatten().chain([&new]) {
            self.post("window", &json!({"handle": tab}))?;
            if *tab != new {
                self.delete("window")?;
            }
        }
        let stored = json!({"origin": origin, "storageTypes": "all"});
        self.try_devtools("Network.clearBrowserCookies", &json!({}))?;
        self.try_devtools("Network.clearBrowserCache", &json!({}))?;
        self.try_devtools("Storage.clearDataForOrigin", &stored)?;
        // Messages on the console are given once, so the next test does not get these.
        self.post("se/log", &json!({"type": "browser"}))?;
        fs::remove_dir_all(self.downloads()).ok();
        Ok(())
    }

    fn process_file(&self) -> PathBuf {
        self.folder.path.join("chromium")
    }
}

impl Drop for Process {
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

/// The browsers that there are, at most [`MAX_BROWSERS`].
struct Browsers {
    /// The number of tests that have a browser.
    taken: usize,
    /// The browsers that wait for a test, each with what it was started with.
    idle: Vec<(Options, Process)>,
}

static BROWSERS: Mutex<Browsers> = Mutex::new(Browsers {
    taken: 0,
    idle: Vec::new(),
});
static GIVEN_BACK: Condvar = Condvar::new();

/// Waits until the test may have a browser, which it has until [`give_back`]. Returns an idle one
/// of these options; if there is none, the caller starts one.
fn take(options: Options) -> Option<Process> {
    let browsers = BROWSERS.lock().expect("nobody panics while holding it");
    let mut browsers = GIVEN_BACK
        .wait_while(browsers, |browsers| browsers.taken >= MAX_BROWSERS)
        .expect("nobody panics while holding it");
    browsers.taken += 1;
    let place = browsers.idle.iter().position(|(of, _)| *of == options);
    if let Some(place) = place {
        return Some(browsers.idle.swap_remove(place).1);
    }
    let ended = (browsers.taken + browsers.idle.len() > MAX_BROWSERS).then(|| browsers.idle.pop());
    drop(browsers);
    drop(ended);
    None
}

/// Ends what [`take`] began, and leaves the browser, if it is given, to another test.
fn give_back(idle: Option<(Options, Process)>) {
    let mut browsers = BROWSERS.lock().expect("nobody panics while holding it");
    browsers.taken -= 1;
    browsers.idle.extend(idle);
    GIVEN_BACK.notify_one();
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
