//! What a test does with a browser: it opens pages, reads them, clicks and types, and looks.

use crate::chromium::{Chromium, Options, wait_for};
use crate::support::{Server, TIMEOUT};
use crate::webdriver::{ELEMENT, Failure, from_base64};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// What the console says of every page at a host name by plain http: browsers isolate windows only
/// where nobody can change the pages on their way.
pub const POLICY_IGNORED: &str = "Cross-Origin-Opener-Policy header has been ignored";

/// The most characters of a page's text in the message of a failed test.
const MAX_TEXT: usize = 3000;

/// A window of a browser, and the service whose pages it shows.
pub struct Browser {
    chromium: Chromium,
    /// The beginning of the service's URLs, without a slash at the end.
    base_url: String,
    /// Parts of the console's messages that are no fault.
    expected: RefCell<Vec<String>>,
}

/// How wide a window is, and whether the system is set to dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
}

impl Theme {
    fn name(self) -> &'static str {
        match self {
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }
}

/// Keys by the characters that stand for them (`WebDriver`, section 17.4.2).
pub mod key {
    pub const TAB: char = '\u{E004}';
    pub const ENTER: char = '\u{E007}';
    pub const SHIFT: char = '\u{E008}';
    pub const CONTROL: char = '\u{E009}';
    pub const ESCAPE: char = '\u{E00C}';
    pub const SPACE: char = ' ';
    pub const END: char = '\u{E010}';
    pub const HOME: char = '\u{E011}';
    pub const LEFT: char = '\u{E012}';
    pub const UP: char = '\u{E013}';
    pub const RIGHT: char = '\u{E014}';
    pub const DOWN: char = '\u{E015}';
    pub const DELETE: char = '\u{E017}';
}

impl Browser {
    /// A new browser for the pages of this server, 1280 pixels wide and light; `None` where there
    /// is none.
    pub fn start(server: &Server) -> Option<Browser> {
        Browser::start_with(server, Options::default())
    }

    pub fn start_with(server: &Server, options: Options) -> Option<Browser> {
        let host = options.host.unwrap_or("127.0.0.1");
        let base_url = format!("http://{host}:{}", server.address.port());
        let browser = Browser {
            chromium: Chromium::start(options, &base_url)?,
            base_url,
            expected: RefCell::default(),
        };
        browser.show_as(1280, Theme::Light);
        Some(browser)
    }

    /// Makes the window so many pixels wide, as a phone's below 600, and sets the system to this
    /// theme.
    pub fn show_as(&self, width: u32, theme: Theme) {
        let is_phone = width < 600;
        let screen = json!({
            "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": is_phone,
        });
        self.chromium
            .devtools("Emulation.setDeviceMetricsOverride", &screen);
        // They would take from the width, and be in pictures.
        self.chromium
            .devtools("Emulation.setScrollbarsHidden", &json!({"hidden": true}));
        let features = json!([{"name": "prefers-color-scheme", "value": theme.name()}]);
        self.chromium
            .devtools("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// As [`Browser::show_as`], light, on a screen that has so many pixels to one of CSS a side.
    pub fn show_finely(&self, width: u32, device_pixels: u32) {
        self.show_as(width, Theme::Light);
        let screen = json!({
            "width": width, "height": 800, "deviceScaleFactor": device_pixels, "mobile": false,
        });
        self.chromium
            .devtools("Emulation.setDeviceMetricsOverride", &screen);
    }

    /// Shows the page in a medium, such as `print`, and with a feature of it, such as
    /// `forced-colors: active`.
    pub fn show_in(&self, medium: &str, (feature, value): (&str, &str), theme: Theme) {
        let media = json!({"media": medium, "features": [
            {"name": "prefers-color-scheme", "value": theme.name()},
            {"name": feature, "value": value},
        ]});
        self.devtools("Emulation.setEmulatedMedia", &media);
    }

    /// Sends a command of the Chrome `DevTools` Protocol.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.chromium.devtools(command, parameters)
    }

    /// Makes the network slow: so many bytes a second each way, and a latency in milliseconds.
    pub fn slow_network(&self, bytes_per_second: u32, latency: u32) {
        let conditions = json!({"network_conditions": {
            "offline": false, "latency": latency,
            "download_throughput": bytes_per_second, "upload_throughput": bytes_per_second,
        }});
        self.must(
            self.chromium
                .post("chromium/network_conditions", &conditions),
        );
    }

    /// Takes the network away, or gives it back.
    pub fn set_offline(&self, is_offline: bool) {
        let conditions = json!({"network_conditions": {
            "offline": is_offline, "latency": 0,
            "download_throughput": -1, "upload_throughput": -1,
        }});
        self.must(
            self.chromium
                .post("chromium/network_conditions", &conditions),
        );
    }

    /// Opens a path of the service, and waits until the page is there.
    #[track_caller]
    pub fn open(&self, path: &str) {
        self.open_elsewhere(&format!("{}{path}", self.base_url));
    }

    /// Opens an address, also outside of the service, and waits until the page is there.
    #[track_caller]
    pub fn open_elsewhere(&self, url: &str) {
        let before = self.run("return [location.href, performance.timeOrigin]", &[]);
        self.must(self.chromium.post("url", &json!({"url": url})));
        let address = before[0].as_str().and_then(|href| href.split('#').next());
        if url.contains('#') && url.split('#').next() == address {
            return; // to a section of the same page
        }
        // The driver's answer may come while the page before is still there.
        let is_there =
            "return document.readyState === 'complete' && performance.timeOrigin !== arguments[0]";
        self.until(&format!("{url} is there"), || {
            self.run(is_there, &[before[1].clone()]) == true
        });
    }

    /// Loads the page again.
    #[track_caller]
    pub fn reload(&self) {
        self.must(self.chromium.post("refresh", &json!({})));
    }

    /// The path and query of the page that is shown.
    #[track_caller]
    pub fn path(&self) -> String {
        let url = self.must(self.chromium.get("url"));
        let url = url.as_str().expect("a URL is text");
        url.strip_prefix(&self.base_url)
            .unwrap_or_else(|| panic!("{url} is no page of {}", self.base_url))
            .to_owned()
    }

    /// Waits until the page of this path is shown.
    #[track_caller]
    pub fn wait_for_path(&self, path: &str) {
        self.until(&format!("the page is {path}"), || self.path() == path);
    }

    /// Waits until `condition`, which `what` says in words.
    #[track_caller]
    pub fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        wait_for(
            || condition().then_some(()),
            || {
                self.complaint(&format!(
                    "it did not become so within {TIMEOUT:?} that {what}"
                ))
            },
        );
    }

    /// Presses a button, and waits until it shows that it has copied. It does so for two seconds,
    /// which a busy machine may not see: an observer remembers it.
    #[track_caller]
    pub fn until_copied(&self, css: &str, press: impl FnOnce()) {
        let observe = "const button = document.querySelector(arguments[0]); window.copied = false; \
             new MutationObserver(() => { window.copied ||= button.textContent === 'Copied'; }) \
                 .observe(button, { childList: true });";
        self.run(observe, &[css.into()]);
        press();
        self.until("the button shows that it has copied", || {
            self.run("return window.copied", &[]) == true
        });
    }

    /// Waits until the page's text contains this.
    #[track_caller]
    pub fn wait_for_text(&self, text: &str) {
        self.until(&format!("the page says {text:?}"), || {
            self.page_text().contains(text)
        });
    }

    /// Fails if the page does not say each of these texts.
    #[track_caller]
    pub fn assert_says(&self, texts: &[&str]) {
        let page = self.page_text();
        for text in texts {
            assert!(
                page.contains(text),
                "{text:?} is missing; the page says:\n{page}"
            );
        }
    }

    /// The text of the page, as far as it is seen.
    #[track_caller]
    pub fn page_text(&self) -> String {
        let text = self.run("return document.body?.innerText ?? ''", &[]);
        text.as_str().expect("it is text").to_owned()
    }

    /// The first element by this CSS selector, once there is one.
    #[track_caller]
    pub fn find(&self, css: &str) -> Element<'_> {
        wait_for(
            || self.all(css).into_iter().next(),
            || self.complaint(&format!("there is no {css}")),
        )
    }

    /// All elements by this CSS selector that are there now.
    #[track_caller]
    pub fn all(&self, css: &str) -> Vec<Element<'_>> {
        let by = json!({"using": "css selector", "value": css});
        let found = self.must(self.chromium.post("elements", &by));
        let found = found.as_array().expect("a list").iter();
        found.map(|value| self.element(value)).collect()
    }

    /// The texts of all elements by this selector, also of those that are not shown.
    #[track_caller]
    pub fn texts(&self, css: &str) -> Vec<String> {
        let script =
            "return [...document.querySelectorAll(arguments[0])].map((it) => it.textContent)";
        serde_json::from_value(self.run(script, &[json!(css)])).expect("texts")
    }

    /// Whether there is such an element, and it is seen.
    #[track_caller]
    pub fn is_shown(&self, css: &str) -> bool {
        self.all(css).iter().any(Element::is_shown)
    }

    /// Clicks the first element by this CSS selector, once that can be done.
    #[track_caller]
    pub fn click(&self, css: &str) {
        // Where no bar at an edge of the window lies on it.
        let scroll = "document.querySelector(arguments[0])?.scrollIntoView({ block: 'center' })";
        self.run(scroll, &[css.into()]);
        self.act(css, |element| element.post("click", &json!({})));
    }

    /// Puts this text into a field in place of what is in it, as if typed.
    #[track_caller]
    pub fn fill(&self, css: &str, text: &str) {
        self.act(css, |element| {
            element.post("clear", &json!({}))?;
            element.post("value", &json!({"text": text}))
        });
    }

    /// Chooses these files in a field for files.
    #[track_caller]
    pub fn choose_files(&self, css: &str, files: &[&Path]) {
        let files: Vec<_> = files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        let files = json!({"text": files.join("\n")});
        self.act(css, |element| element.post("value", &files));
    }

    /// The text of the first element by this CSS selector.
    #[track_caller]
    pub fn text(&self, css: &str) -> String {
        as_text(&self.act(css, |element| element.read("text")))
    }

    /// The value of the first field by this CSS selector.
    #[track_caller]
    pub fn value(&self, css: &str) -> String {
        as_property(self.act(css, |element| element.read("property/value")))
    }

    /// Clicks at this place of the window, in pixels of CSS, by a mouse.
    #[track_caller]
    pub fn click_at(&self, x: f64, y: f64) {
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.devtools("Input.dispatchMouseEvent", &event);
        }
    }

    /// Drops these files and folders at this place of the window.
    #[track_caller]
    pub fn drop_files(&self, x: f64, y: f64, files: &[&Path]) {
        let files: Vec<_> = files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        for kind in ["dragEnter", "dragOver", "drop"] {
            let event = json!({
                "type": kind, "x": x, "y": y,
                "data": {"items": [], "files": files, "dragOperationsMask": 1},
            });
            self.devtools("Input.dispatchDragEvent", &event);
        }
    }

    /// Presses these keys together, as Control with V, and lets them go.
    #[track_caller]
    pub fn press(&self, keys: &[char]) {
        let action = |kind: &str, key: &char| json!({"type": kind, "value": key.to_string()});
        let down = keys.iter().map(|key| action("keyDown", key));
        let up = keys.iter().rev().map(|key| action("keyUp", key));
        let actions: Vec<Value> = down.chain(up).collect();
        let actions = json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]});
        self.must(self.chromium.post("actions", &actions));
    }

    /// Types this text into what has the focus.
    #[track_caller]
    pub fn type_keys(&self, text: &str) {
        for key in text.chars() {
            self.press(&[key]);
        }
    }

    /// The element that has the focus.
    #[track_caller]
    pub fn focused(&self) -> Element<'_> {
        self.element(&self.must(self.chromium.get("element/active")))
    }

    /// Runs the body of a function of JavaScript with these `arguments`, and gives what it returns.
    #[track_caller]
    pub fn run(&self, body: &str, arguments: &[Value]) -> Value {
        let script = json!({"script": body, "args": arguments});
        self.must(self.chromium.post("execute/sync", &script))
    }

    /// As [`Browser::run`], of a body that may `await`.
    #[track_caller]
    pub fn run_async(&self, body: &str, arguments: &[Value]) -> Value {
        let body = format!(
            "const done = arguments[arguments.length - 1]; \
             (async function () {{ {body} }}).apply(null, arguments).then(done, (e) => done('failed: ' + e));"
        );
        let script = json!({"script": body, "args": arguments});
        let value = self.must(self.chromium.post("execute/async", &script));
        if let Some(failure) = value
            .as_str()
            .and_then(|text| text.strip_prefix("failed: "))
        {
            panic!("{}", self.complaint(failure));
        }
        value
    }

    /// Opens another tab, and turns to it. Gives the handles of this tab and the new one.
    #[track_caller]
    pub fn new_tab(&self) -> [String; 2] {
        let handle = |value: &Value| value.as_str().expect("a handle is text").to_owned();
        let here = handle(&self.must(self.chromium.get("window")));
        let made = self.must(self.chromium.post("window/new", &json!({"type": "tab"})));
        let made = handle(&made["handle"]);
        self.turn_to(&made);
        [here, made]
    }

    /// Turns to the tab of this handle.
    #[track_caller]
    pub fn turn_to(&self, tab: &str) {
        self.must(self.chromium.post("window", &json!({"handle": tab})));
    }

    /// The value of the cookie of this name, if there is one.
    #[track_caller]
    pub fn cookie(&self, name: &str) -> Option<String> {
        let cookie = self.chromium.get(&format!("cookie/{name}")).ok()?;
        cookie["value"].as_str().map(str::to_owned)
    }

    /// Forgets the cookie of this name.
    #[track_caller]
    pub fn delete_cookie(&self, name: &str) {
        self.must(self.chromium.delete(&format!("cookie/{name}")));
    }

    /// Forgets all cookies.
    #[track_caller]
    pub fn delete_cookies(&self) {
        self.must(self.chromium.delete("cookie"));
    }

    /// The text of the dialog that a script or leaving the page has opened, if there is one.
    pub fn dialog(&self) -> Option<String> {
        let text = self.chromium.get("alert/text").ok()?;
        text.as_str().map(str::to_owned)
    }

    /// Answers that dialog with OK or, if not `accepted`, with Cancel.
    #[track_caller]
    pub fn answer_dialog(&self, accepted: bool) {
        let how = if accepted { "accept" } else { "dismiss" };
        self.must(self.chromium.post(&format!("alert/{how}"), &json!({})));
    }

    /// The bytes of the file of this name that was downloaded, once it is whole.
    #[track_caller]
    pub fn download(&self, name: &str) -> Vec<u8> {
        let file = self.chromium.downloads().join(name);
        wait_for(
            // Chromium reserves the name before it writes.
            || fs::read(&file).ok().filter(|bytes| !bytes.is_empty()),
            || self.complaint(&format!("{name} was not downloaded")),
        )
    }

    /// Puts a picture of the whole page into `target/screenshots/`, for people to look at.
    #[track_caller]
    pub fn screenshot(&self, name: &str) -> PathBuf {
        let picture = self.devtools(
            "Page.captureScreenshot",
            &json!({"format": "png", "captureBeyondViewport": true}),
        );
        let picture = from_base64(picture["data"].as_str().expect("Base64"));
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/screenshots");
        fs::create_dir_all(&folder).expect("target/ is ours");
        let file = folder.join(format!("{name}.png"));
        fs::write(&file, picture).expect("target/ is ours");
        file
    }

    /// Says that a message on the console which contains this is no fault.
    pub fn expect_on_console(&self, part: &str) {
        self.expected.borrow_mut().push(part.to_owned());
    }

    /// The messages on the console since this was called last that are faults.
    pub fn faults_on_console(&self) -> Vec<String> {
        let messages = self.must(self.chromium.post("se/log", &json!({"type": "browser"})));
        let expected = self.expected.borrow();
        let messages = messages.as_array().expect("a list").iter();
        let messages = messages.filter(|message| message["level"] != "INFO");
        let texts = messages.map(|message| message["message"].as_str().unwrap_or("?"));
        texts
            .filter(|text| !expected.iter().any(|part| text.contains(part)))
            .map(str::to_owned)
            .collect()
    }

    /// `what`, and what the page says.
    pub fn complaint(&self, what: &str) -> String {
        let url = self.chromium.get("url").unwrap_or_default();
        let script = json!({"script": "return document.body?.innerText ?? ''", "args": []});
        let text = match self.chromium.post("execute/sync", &script) {
            Ok(text) => text.as_str().unwrap_or_default().to_owned(),
            Err(failure) => failure.to_string(),
        };
        let text: String = text.chars().take(MAX_TEXT).collect();
        format!("{what}; the page {url} says:\n{text}")
    }

    /// Does something with the first element by this selector, again while the page changes, and
    /// gives what comes of it.
    #[track_caller]
    fn act(&self, css: &str, action: impl Fn(&Element<'_>) -> Result<Value, Failure>) -> Value {
        let last = RefCell::new(String::from("there is none"));
        wait_for(
            || match action(self.all(css).first()?) {
                Ok(value) => Some(value),
                Err(failure) => {
                    *last.borrow_mut() = failure.to_string();
                    None
                }
            },
            || self.complaint(&format!("{css}: {}", last.borrow())),
        )
    }

    fn element(&self, value: &Value) -> Element<'_> {
        let id = value[ELEMENT].as_str();
        Element {
            browser: self,
            id: id
                .unwrap_or_else(|| panic!("no element: {value}"))
                .to_owned(),
        }
    }

    #[track_caller]
    fn must(&self, done: Result<Value, Failure>) -> Value {
        done.unwrap_or_else(|failure| panic!("{}", self.complaint(&failure.to_string())))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A test that has failed has said why.
        if !thread::panicking() {
            let faults = self.faults_on_console();
            assert!(
                faults.is_empty(),
                "{}",
                self.complaint(&format!("the console has {faults:#?}"))
            );
        }
    }
}

/// An element of the page that is shown. It is gone with the page.
pub struct Element<'b> {
    browser: &'b Browser,
    id: String,
}

impl Element<'_> {
    /// Its text, as far as it is seen.
    #[track_caller]
    pub fn text(&self) -> String {
        as_text(&self.get("text"))
    }

    /// Its property of this name as text; empty if it has none.
    #[track_caller]
    pub fn property(&self, name: &str) -> String {
        as_property(self.get(&format!("property/{name}")))
    }

    /// Its attribute of this name, if it has one.
    #[track_caller]
    pub fn attribute(&self, name: &str) -> Option<String> {
        let value = self.browser.run(
            "return arguments[0].getAttribute(arguments[1])",
            &[self.value(), name.into()],
        );
        value.as_str().map(str::to_owned)
    }

    /// The name that assistive technology gives it.
    #[track_caller]
    pub fn accessible_name(&self) -> String {
        let name = self.get("computedlabel");
        name.as_str().unwrap_or_default().to_owned()
    }

    /// Whether it is seen.
    #[track_caller]
    pub fn is_shown(&self) -> bool {
        self.get("displayed") == true
    }

    /// Clicks it.
    #[track_caller]
    pub fn click(&self) {
        self.browser.must(self.post("click", &json!({})));
    }

    /// It as an argument of a script.
    pub fn value(&self) -> Value {
        json!({ELEMENT: self.id})
    }

    fn post(&self, command: &str, parameters: &Value) -> Result<Value, Failure> {
        let command = format!("element/{}/{command}", self.id);
        self.browser.chromium.post(&command, parameters)
    }

    #[track_caller]
    fn get(&self, what: &str) -> Value {
        self.browser.must(self.read(what))
    }

    fn read(&self, what: &str) -> Result<Value, Failure> {
        let path = format!("element/{}/{what}", self.id);
        self.browser.chromium.get(&path)
    }
}

fn as_text(value: &Value) -> String {
    value.as_str().expect("it is text").to_owned()
}

/// A property as text; empty if there is none.
fn as_property(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}
