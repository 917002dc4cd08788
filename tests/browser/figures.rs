//! How much a page weighs, and how soon it is there.

use crate::chromium::Options;
use crate::converter::Converter;
use crate::page::Browser;
use crate::support::Server;
use crate::support::picture::Picture;
use crate::visitor;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// The most bytes of the first page with all that it loads, but for [`SAMPLES`].
const FIRST_PAGE: u64 = 30_000;

/// The picture that it shows before and after. What is read and clicked does not wait for them.
const SAMPLES: [&str; 2] = ["/sample.jpg", "/sample.webp"];

/// The most bytes of these.
const SAMPLE_BYTES: u64 = 55_000;

/// The addresses and bytes of the page and of all that it has loaded, in the order in which they
/// were asked for.
const LOADED: &str = "
const entries = ['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind));
return entries.map(({ name, encodedBodySize }) => [name, encodedBodySize]);";

/// The figures of the page, once it is quiet: first contentful paint, largest contentful paint, and
/// the end of loading in milliseconds after the navigation began, cumulative layout shift, total
/// blocking time in milliseconds, bytes with headers, and requests.
const FIGURES: &str = "
const observed = (type) => new Promise((resolve) => {
    const observer = new PerformanceObserver((list) => resolve(list.getEntries()));
    observer.observe({ type, buffered: true });
    setTimeout(() => resolve(observer.takeRecords()), 1000);
});
const [largest, shifts, tasks] = await Promise.all(
    ['largest-contentful-paint', 'layout-shift', 'longtask'].map(observed));
const sum = (values) => values.reduce((total, value) => total + value, 0);
const [page] = performance.getEntriesByType('navigation');
const entries = [page, ...performance.getEntriesByType('resource')];
return [
    performance.getEntriesByName('first-contentful-paint')[0].startTime,
    largest.at(-1).startTime,
    page.loadEventEnd,
    sum(shifts.map((shift) => shift.value)),
    sum(tasks.map((task) => Math.max(0, task.duration - 50))),
    sum(entries.map((entry) => entry.transferSize)),
    entries.length,
];";

#[test]
fn the_first_page_is_small_and_loads_nothing_from_elsewhere() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.open("/");
    let loaded = browser.run(LOADED, &[]);
    let loaded: Vec<(String, u64)> = serde_json::from_value(loaded).expect("names and sizes");
    let origin = format!("http://{}", server.address);
    let mut sizes = BTreeMap::new();
    for (name, bytes) in &loaded {
        let path = name.strip_prefix(&origin);
        let path = path.unwrap_or_else(|| panic!("{name} is elsewhere: {loaded:?}"));
        // The icon stands in the header and in the tab; it comes once, and from memory then.
        sizes.insert(path, *bytes);
    }
    // The module comes with a picture.
    let mut expected = BTreeSet::from(["/", "/start.js", "/icon.svg", "/style.css", "/theme.js"]);
    expected.extend(SAMPLES);
    let paths: BTreeSet<&str> = sizes.keys().copied().collect();
    assert_eq!(paths, expected);
    let (pictures, rest): (Vec<_>, Vec<_>) = sizes
        .into_iter()
        .partition(|(path, _)| SAMPLES.contains(path));
    let sum = |files: &[(&str, u64)]| files.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let (pictures, rest) = (sum(&pictures), sum(&rest));
    assert!(
        rest > 1000 && rest < FIRST_PAGE && pictures < SAMPLE_BYTES,
        "{rest} bytes, and {pictures} of pictures: {loaded:?}"
    );
}

#[test]
fn nothing_moves_while_a_page_loads_over_a_slow_network() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    visitor::sign_up(&browser);
    browser.slow_network(200_000, 150);
    for path in [
        "/",
        "/dashboard",
        "/dashboard/convert",
        "/tokens",
        "/account",
    ] {
        let figures = figures(&browser, path);
        assert!(
            figures[3] <= 0.1,
            "{path} moves by {}: {figures:?}",
            figures[3]
        );
    }
}

/// Prints the table of `benches/README.md`.
#[test]
#[ignore = "it measures, and so needs a machine of its own"]
fn table() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    for size in 1..=30 {
        let answer = server
            .request("POST", &format!("/convert?token={token}"))
            .header("Content-Type", "image/png")
            .body(Picture::waves(10 * size, 100).png())
            .send();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    browser.slow_network(200_000, 150);
    println!(
        "| page | requests | bytes | first paint | largest paint | loaded | blocking | shift |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for path in [
        "/",
        "/dashboard",
        "/dashboard/convert",
        "/tokens",
        "/account",
        "/docs",
        "/docs/api",
    ] {
        let [first, largest, loaded, shift, blocking, bytes, requests] = figures(&browser, path);
        println!(
            "| `{path}` | {requests} | {bytes} | {first:.0} ms | {largest:.0} ms | {loaded:.0} ms | {blocking:.0} ms | {shift:.3} |"
        );
    }
}

/// The figures of a page that nothing of is known yet.
#[track_caller]
fn figures(browser: &Browser, path: &str) -> [f64; 7] {
    browser.devtools("Network.enable", &json!({}));
    browser.devtools("Network.clearBrowserCache", &json!({}));
    browser.open(path);
    let figures: Value = browser.run_async(FIGURES, &[]);
    serde_json::from_value(figures).expect("seven numbers")
}

/// Pastes 1000 pictures, and remembers the longest time for which the page answered nobody.
const PASTE: &str = "
window.longest = 0;
new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
}).observe({ type: 'longtask' });
const canvas = Object.assign(document.createElement('canvas'), { width: 640, height: 480 });
const context = canvas.getContext('2d');
const clipboardData = new DataTransfer();
for (let at = 0; at < 1000; at += 1) {
    context.fillStyle = `hsl(${at} 80% 50%)`;
    context.fillRect(at % 640, 0, 40, 480);
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, 'image/jpeg'));
    clipboardData.items.add(new File([blob], `picture ${at}.jpg`, { type: 'image/jpeg' }));
}
window.longest = 0;
document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
while (document.querySelectorAll('.row').length < 1000) await new Promise((resolve) => setTimeout(resolve, 20));";

/// Prints how long the page answers nobody at most while it converts 1000 pictures.
#[test]
#[ignore = "it measures, and so needs a machine of its own"]
fn a_thousand_pictures() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let began = Instant::now();
    it.browser.run_async(PASTE, &[]);
    it.until_settled();
    let longest = it.browser.run("return window.longest", &[]);
    let done = it.states().iter().filter(|state| *state == "done").count();
    println!(
        "{done} converted in {:.0} s; the longest task took {longest} ms",
        began.elapsed().as_secs_f64()
    );
}
