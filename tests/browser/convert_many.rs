//! The page that converts with many pictures, a bad connection, limits, and folders.

use crate::chromium::Options;
use crate::converter::{Converter, unzip};
use crate::support::picture::Picture;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Counts the files that the page sends.
const COUNT: &str = "
const send = XMLHttpRequest.prototype.send;
window.sent = 0;
XMLHttpRequest.prototype.send = function (...body) { window.sent += 1; return send.apply(this, body); };";

/// Pastes so many files with this content, or the picture of a canvas, and waits for their rows.
const PASTE: &str = "
const [count, content] = arguments;
const canvas = document.createElement('canvas');
const picture = await new Promise((resolve) => canvas.toBlob(resolve));
const clipboardData = new DataTransfer();
for (let at = 0; at < count; at += 1) {
    clipboardData.items.add(new File([content ?? picture], `picture ${at}.png`, { type: 'image/png' }));
}
document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
while (document.querySelectorAll('.row').length < count) await new Promise((resolve) => setTimeout(resolve, 20));";

/// Puts the browser's own file system in place of the folder that people choose in a dialog.
const CHOOSE_FOLDER: &str = "window.showDirectoryPicker = () => navigator.storage.getDirectory();";

/// The files of the browser's own file system, by their paths, with their bytes.
const SAVED: &str = "
const found = {};
const walk = async (folder, path) => {
    for await (const [name, entry] of folder.entries()) {
        if (entry.kind === 'directory') await walk(entry, `${path}${name}/`);
        else found[path + name] = [...new Uint8Array(await (await entry.getFile()).arrayBuffer())];
    }
};
await walk(await navigator.storage.getDirectory(), '');
return found;";

/// Clicks, and lays the page out after that.
const CLICK: &str = "
document.querySelector(arguments[0]).click();
document.body.getBoundingClientRect();";

impl Converter {
    /// The problems of the failed conversions that the account's history tells of.
    #[track_caller]
    fn failures(&self) -> Vec<String> {
        let answer = self
            .service
            .server
            .request("GET", "/api/failures")
            .header("Authorization", &format!("Bearer {}", self.service.token))
            .send();
        let page: Value = serde_json::from_slice(&answer.body).expect("JSON");
        let failures = page["failures"].as_array().expect("a list").iter();
        let codes = failures.map(|one| one["code"].as_str().expect("a code").to_owned());
        codes.collect()
    }

    /// Clicks, and returns the seconds of CPU time that the page's thread takes for that: wall time
    /// would include other processes.
    #[track_caller]
    fn click_timed(&self, css: &str) -> f64 {
        let before = self.thread_seconds();
        self.browser.run(CLICK, &[css.into()]);
        self.thread_seconds() - before
    }

    #[track_caller]
    fn thread_seconds(&self) -> f64 {
        self.browser.devtools("Performance.enable", &json!({}));
        let found = self.browser.devtools("Performance.getMetrics", &json!({}));
        let metrics = found["metrics"].as_array().expect("a list");
        let time = metrics.iter().find(|one| one["name"] == "ThreadTime");
        time.and_then(|one| one["value"].as_f64())
            .expect("seconds of the thread")
    }

    #[track_caller]
    fn details(&self) -> Vec<String> {
        self.browser.texts(".row .detail")
    }
}

#[test]
fn clearing_the_list_sends_nothing_and_is_quick_for_a_thousand_rows() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    let picture = Picture::waves(20, 20).png();
    let names: Vec<String> = (0..20).map(|at| format!("{at}.png")).collect();
    let files: Vec<_> = names.iter().map(|name| (&**name, &*picture)).collect();
    it.choose(&files);
    it.until_states(&["done"; 20]);
    browser.fill("[name=quality]", "40");
    browser.until("the compared one is converted anew", || {
        browser.text("#apply").starts_with("Convert 19 pictures")
    });
    it.until_settled();
    let counted = it.conversions();
    browser.run(COUNT, &[]);
    browser.run("window.confirm = () => true", &[]);
    browser.click("#clear");
    assert_eq!(it.states(), [""; 0]);
    assert!(!browser.is_shown("#compare") && !browser.is_shown("#results"));
    assert_eq!(browser.focused().attribute("id").as_deref(), Some("files"));
    assert_eq!(
        (browser.run("return sent", &[]), it.conversions()),
        (json!(0), counted)
    );

    browser.run_async(PASTE, &[json!(1000), json!("no picture")]);
    it.until_settled();
    let taken = it.click_timed("#clear");
    assert!((0.0001..1.0).contains(&taken), "{taken} s");
    assert_eq!(it.states(), [""; 0]);
    // Those that are under way, too.
    browser.slow_network(1000, 1000);
    browser.run_async(PASTE, &[json!(1000), Value::Null]);
    let taken = it.click_timed("#cancel-all");
    assert!((0.0001..1.0).contains(&taken), "{taken} s");
    assert!(it.states().iter().all(|state| state == "cancelled"));
}

#[test]
fn the_page_s_own_cancels_and_waits_are_no_failed_conversions() {
    let Some(it) = Converter::start(&["--rate-limit", "10"], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    browser.expect_on_console("status of 429");
    let picture = Picture::noise(200, 200).png();
    browser.slow_network(20_000, 10);
    it.choose(&[("1.png", &picture), ("2.png", &picture)]);
    browser.until("both are uploading", || it.states() == ["uploading"; 2]);
    browser.click("#cancel-all");
    browser.slow_network(100_000_000, 0);
    let small = Picture::waves(20, 20).png();
    while it.service.convert(&[], "image/png", &small).status != 429 {}
    let counted = it.conversions();
    it.choose(&[("3.png", &small)]);
    browser.wait_for_text("It goes on by itself in ");
    it.until_states(&["cancelled", "cancelled", "done"]);
    assert_eq!(it.conversions(), counted + 1);
    // The one that this test was answered with.
    assert_eq!(it.failures(), ["rate_limited"]);
}

#[test]
fn a_connection_that_drops_is_waited_for() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    browser.expect_on_console("ERR_INTERNET_DISCONNECTED");
    browser.expect_on_console("ERR_NETWORK_CHANGED");
    let picture = Picture::noise(100, 100).png();
    browser.slow_network(20_000, 10);
    let names = ["1.png", "2.png", "3.png", "4.png", "5.png", "6.png"];
    it.choose(&names.map(|name| (name, &*picture)));
    browser.until("three are uploading", || {
        it.states()[..3] == ["uploading"; 3]
    });
    browser.set_offline(true);
    browser.wait_for_text("The connection is interrupted. It goes on by itself in ");
    let states = it.states();
    assert!(!states.contains(&"failed".to_owned()), "{states:?}");
    browser.set_offline(false);
    it.until_states(&["done"; 6]);
    assert!(!browser.is_shown("#hold"));
    assert_eq!(it.conversions(), 6);
}

#[test]
fn a_quota_that_is_used_up_is_not_asked_for_again_by_the_other_pictures() {
    let Some(it) = Converter::start(&["--monthly-quota", "2"], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    browser.expect_on_console("status of 429");
    browser.run(COUNT, &[]);
    browser.run_async(PASTE, &[json!(30), Value::Null]);
    it.until_settled();
    assert_eq!(it.conversions(), 2);
    let sent = browser.run("return sent", &[]);
    assert!(sent.as_u64() <= Some(5), "{sent} were sent");
    let details = it.details();
    let told = details
        .iter()
        .filter(|text| text.contains("may have 2 conversions a month"));
    assert_eq!(told.count(), 28, "{details:?}");
    assert!(browser.is_shown("#retry-all"));
}

#[test]
fn a_picture_that_is_too_large_is_told_with_the_limit_and_not_sent() {
    let Some(it) = Converter::start(
        &["--max-body", "100000", "--max-pixels", "10000"],
        Options::default(),
    ) else {
        return;
    };
    let browser = &it.browser;
    browser.expect_on_console("status of 400");
    browser.run(COUNT, &[]);
    let large = vec![0_u8; 150_000];
    let large = [&Picture::waves(20, 20).png()[..], &large].concat();
    it.choose(&[
        ("large.png", &large),
        ("wide.png", &Picture::waves(200, 100).png()),
    ]);
    it.until_states(&["failed", "failed"]);
    let details = it.details();
    assert!(
        details[0].contains("150.") && details[0].contains("at most 10"),
        "{details:?}"
    );
    assert!(
        details[1].contains("200 x 100") && details[1].contains("10000"),
        "{details:?}"
    );
    assert_eq!(browser.run("return sent", &[]), 1);
}

#[test]
fn a_folder_keeps_its_structure_in_the_zip() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    let folder = it.folder.path.join("trip");
    std::fs::create_dir_all(folder.join("day one/a:b")).expect("a new folder");
    std::fs::create_dir_all(folder.join("Day two")).expect("a new folder");
    let picture = Picture::waves(20, 20).png();
    for name in [
        "top.png",
        "day one/view.png",
        "day one/a:b/view.png",
        "Day two/view.png",
    ] {
        std::fs::write(folder.join(name), &picture).expect("a new file");
    }
    std::fs::write(folder.join("notes.txt"), "no picture").expect("a new file");
    browser.drop_files(200.0, 400.0, &[&folder]);
    it.until_states(&["done"; 4]);
    browser.click("#zip");
    let files = unzip(&browser.download("pictures.zip"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected = [
        "trip/Day two/view.webp",
        "trip/day one/a_b/view.webp",
        "trip/day one/view.webp",
        "trip/top.webp",
    ];
    assert_eq!(names, expected);
    browser.assert_says(&["trip/day one/view.png"]);
    assert!(!it.asks_before_it_leaves());
}

#[test]
fn results_are_saved_into_a_folder_and_replace_nothing() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    browser.run(CHOOSE_FOLDER, &[]);
    let saved = || {
        let files = browser.run_async(SAVED, &[]);
        serde_json::from_value::<BTreeMap<String, Vec<u8>>>(files).expect("files")
    };
    let folder = it.folder.path.join("trip");
    std::fs::create_dir_all(folder.join("day one")).expect("a new folder");
    let (view, top) = (Picture::waves(20, 20).png(), Picture::noise(20, 20).png());
    std::fs::write(folder.join("day one/view.png"), &view).expect("a new file");
    std::fs::write(folder.join("top.png"), &top).expect("a new file");
    browser.drop_files(200.0, 400.0, &[&folder]);
    it.until_states(&["done"; 2]);
    for expected in [
        vec!["trip/day one/view.webp", "trip/top.webp"],
        vec![
            "trip/day one/view-2.webp",
            "trip/day one/view.webp",
            "trip/top-2.webp",
            "trip/top.webp",
        ],
    ] {
        browser.click("#folder");
        browser.until("all are saved", || {
            let said = browser.find("#announce").property("textContent");
            said.starts_with("2 pictures saved into ") && saved().len() == expected.len()
        });
        assert_eq!(saved().keys().collect::<Vec<_>>(), expected);
        assert!(!it.asks_before_it_leaves());
    }
    let files = saved();
    assert_eq!(files["trip/top.webp"], it.service.webp(&[], &top).0);
    assert_eq!(
        files["trip/day one/view-2.webp"],
        it.service.webp(&[], &view).0
    );

    // Whoever closes the dialog, or may not write there.
    let refuse = |name: &str| {
        browser.run(
            "const name = arguments[0]; \
             window.showDirectoryPicker = async () => { throw new DOMException('It is not yours.', name); }",
            &[json!(name)],
        );
        browser.click("#folder");
    };
    refuse("AbortError");
    assert!(!browser.is_shown("#hold"));
    refuse("NotAllowedError");
    browser.wait_for_text("It is not yours.");
    assert_eq!(browser.text("#folder"), "Save into a folder");
}
