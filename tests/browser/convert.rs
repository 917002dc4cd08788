//! The page that converts: pictures in, results out, and everything that may happen between.

use crate::chromium::Options;
use crate::page::{Browser, key};
use crate::support::picture::{HALVES_JPEG, Picture};
use crate::support::service::Service;
use crate::support::{Folder, Server};
use crate::{sweep, visitor};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Somebody who has signed up and opened the page.
struct Converter {
    browser: Browser,
    service: Service,
    folder: Folder,
}

impl Converter {
    fn start(flags: &[&str], options: Options) -> Option<Converter> {
        let server = Server::start_with(flags);
        let browser = Browser::start_with(&server, options)?;
        let token = visitor::sign_up(&browser);
        browser.open("/dashboard/convert");
        Some(Converter {
            browser,
            service: Service { server, token },
            folder: Folder::new(),
        })
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path.join(name);
        std::fs::write(&path, bytes).expect("a new file");
        path
    }

    #[track_caller]
    fn choose(&self, files: &[(&str, &[u8])]) {
        let files: Vec<_> = files
            .iter()
            .map(|(name, bytes)| self.file(name, bytes))
            .collect();
        let files: Vec<_> = files.iter().map(PathBuf::as_path).collect();
        self.browser.choose_files("#files", &files);
    }

    /// The states of all rows.
    #[track_caller]
    fn states(&self) -> Vec<String> {
        let script =
            "return [...document.querySelectorAll('.row')].map((row) => row.dataset.state)";
        serde_json::from_value(self.browser.run(script, &[])).expect("a list of texts")
    }

    #[track_caller]
    fn until_states(&self, states: &[&str]) {
        let what = format!("the pictures are {states:?}");
        self.browser.until(&what, || self.states() == states);
    }

    #[track_caller]
    fn until_settled(&self) {
        let is_pending =
            |state: &String| ["waiting", "uploading", "converting"].contains(&&**state);
        self.browser.until("nothing is under way", || {
            !self.states().iter().any(is_pending)
        });
    }

    #[track_caller]
    fn conversions(&self) -> u64 {
        let usage = self.service.usage();
        usage["totals"]["conversions"].as_u64().expect("a number")
    }

    /// Whether the page wants people to be asked before they leave it.
    #[track_caller]
    fn asks_before_it_leaves(&self) -> bool {
        let script = "return !dispatchEvent(new Event('beforeunload', { cancelable: true }))";
        self.browser.run(script, &[]) == true
    }

    /// A property of the first element by this selector, by its style.
    #[track_caller]
    fn style(&self, css: &str, property: &str) -> String {
        let script = "return document.querySelector(arguments[0]).style[arguments[1]]";
        let value = self.browser.run(script, &[css.into(), property.into()]);
        value.as_str().expect("a text").to_owned()
    }
}

/// The files of a ZIP in which all are stored, by their names; checks each against its CRC-32.
fn unzip(zip: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let number = |at: usize, length: usize| {
        let bytes = &zip[at..at + length];
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    };
    let end = zip.len() - 22;
    assert_eq!(number(end, 4), 0x0605_4b50, "the end of the directory");
    let mut files = BTreeMap::new();
    let mut at = number(end + 16, 4);
    assert_eq!(at + number(end + 12, 4), end, "the directory's length");
    for _ in 0..number(end + 10, 2) {
        assert_eq!(number(at, 4), 0x0201_4b50, "an entry of the directory");
        let (flags, method) = (number(at + 8, 2), number(at + 10, 2));
        assert_eq!((flags, method), (1 << 11, 0), "a name in UTF-8, stored");
        let (crc, size) = (number(at + 16, 4), number(at + 24, 4));
        let name_length = number(at + 28, 2);
        let name = String::from_utf8(zip[at + 46..at + 46 + name_length].to_vec());
        let name = name.expect("the flag says UTF-8");
        let local = number(at + 42, 4);
        assert_eq!(number(local, 4), 0x0403_4b50, "the file's own head");
        let start = local + 30 + number(local + 26, 2) + number(local + 28, 2);
        let bytes = zip[start..start + size].to_vec();
        assert_eq!(crc32fast::hash(&bytes) as usize, crc, "{name}");
        assert!(files.insert(name.clone(), bytes).is_none(), "{name} twice");
        at += 46 + name_length;
    }
    files
}

#[test]
fn many_pictures_are_converted_counted_and_saved_as_a_zip() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    browser.expect_on_console("status of 400");
    let png = Picture::waves(60, 40).png();
    it.choose(&[
        ("waves.png", &png),
        ("Waves.jpg", HALVES_JPEG),
        ("käse & \"brot\".bmp", &Picture::waves(30, 20).bmp()),
        ("damaged.png", &png[..png.len() / 2]),
        ("notes.png", b"no picture"),
    ]);
    it.until_states(&["done", "done", "done", "failed", "failed"]);
    assert_eq!(it.conversions(), 3);
    browser.wait_for_text("This picture is damaged or cut short. Choose another one.");
    browser.wait_for_text("This is not a PNG, JPEG, GIF or BMP. Choose another file.");
    assert!(browser.text("#sum").starts_with("3 of 5 pictures"));
    browser.until("screen readers are told", || {
        let announced = browser.find("#announce").property("textContent");
        announced.ends_with("3 pictures converted, 2 failed.")
    });
    sweep::look_at_shown(browser, "convert-done");
    browser.click("#zip");
    let files = unzip(&browser.download("pictures.zip"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["Waves-2.webp", "käse & _brot_.webp", "waves.webp"]);
    assert_eq!(files["waves.webp"], it.service.webp(&[], &png).0);
    for (name, webp) in &files {
        let decoded = Picture::decode(webp);
        assert!(decoded.width >= 30, "{name}: {}", decoded.width);
    }
    // What was saved may be left.
    assert!(!it.asks_before_it_leaves());
}

#[test]
fn the_newest_settings_win_on_the_compared_picture() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    let (first, second) = (Picture::noise(300, 200).png(), Picture::waves(60, 40).png());
    it.choose(&[("noise.png", &first), ("waves.png", &second)]);
    it.until_states(&["done", "done"]);
    // The slider by the keyboard, and the picture's clip after it.
    browser.run("document.querySelector('#slider').focus()", &[]);
    let clip = it.style("#after-layer", "clipPath");
    browser.press(&[key::RIGHT]);
    assert_eq!(browser.value("#slider"), "51");
    assert_ne!(it.style("#after-layer", "clipPath"), clip);
    let width = |zoom: &str| {
        browser.click(&format!("[data-zoom='{zoom}']"));
        it.style("#after", "width")
    };
    assert_eq!([width("1"), width("4")], ["300px", "1200px"]);
    // Ten moves, of which the last counts.
    let move_to = "const slider = document.querySelector('#quality'); slider.value = arguments[0]; \
         slider.dispatchEvent(new Event('input', { bubbles: true }))";
    for quality in 51..=60 {
        browser.run(move_to, &[json!(quality)]);
    }
    assert_eq!(browser.value("[name=quality]"), "60");
    let expected = it.service.webp(&[("quality", "60")], &first).0;
    let counted = it.conversions();
    let label = format!("{:.1} kB", expected.len() as f64 / 1000.0);
    browser.until("the result is that of the last move", || {
        browser.text("#after-label").contains(&label)
    });
    it.until_settled();
    assert!(it.conversions() <= counted + 3, "{counted} before");
    assert!(
        browser
            .text(".row:nth-child(2) .detail")
            .ends_with("with other settings")
    );
    assert_eq!(
        browser.text("#apply"),
        "Convert 1 picture with these settings"
    );
    // A double click converts once, and what is converted already is not converted again.
    let counted = it.conversions();
    browser.run(
        "const apply = document.querySelector('#apply'); apply.click(); apply.click()",
        &[],
    );
    it.until_states(&["done", "done"]);
    browser.until("there is nothing left to convert", || {
        browser.find("#apply").property("disabled") == "true"
    });
    assert_eq!(it.conversions(), counted + 1);
    browser.click(".row:nth-child(1) .save");
    assert_eq!(browser.download("noise.webp"), expected);
}

#[test]
fn work_is_cancelled_and_not_lost_without_a_question() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    let picture = Picture::noise(200, 200).png();
    browser.slow_network(10_000, 10);
    it.choose(&[("1.png", &picture), ("2.png", &picture)]);
    browser.until("both are uploading", || it.states() == ["uploading"; 2]);
    browser.click(".row:nth-child(1) .cancel");
    assert_eq!(it.states()[0], "cancelled");
    // WebDriver answers the question itself, so the event is looked at.
    assert!(it.asks_before_it_leaves());
    browser.click("#cancel-all");
    it.until_states(&["cancelled", "cancelled"]);
    browser.slow_network(100_000_000, 0);
    assert_eq!(it.conversions(), 0);
    browser.click(".row:nth-child(1) .retry");
    it.until_states(&["done", "cancelled"]);
    assert_eq!(it.conversions(), 1);
    assert!(it.asks_before_it_leaves());
    browser.click(".row:nth-child(1) .save");
    browser.download("1.webp");
    assert!(!it.asks_before_it_leaves());
}

#[test]
fn pictures_are_dropped_and_pasted_and_the_session_may_end() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    // The token goes on to work.
    browser.delete_cookies();
    let events = "const canvas = document.createElement('canvas'); \
         canvas.getContext('2d').fillRect(10, 10, 50, 50); \
         const blob = await new Promise((resolve) => canvas.toBlob(resolve)); \
         const files = () => { const all = new DataTransfer(); \
             all.items.add(new File([blob], 'image.png', { type: 'image/png' })); return all; }; \
         const options = { bubbles: true, cancelable: true }; \
         document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: files(), ...options })); \
         for (const name of ['dragenter', 'dragover', 'drop']) { \
             document.body.dispatchEvent(new DragEvent(name, { dataTransfer: files(), ...options })); \
         }";
    browser.run_async(events, &[]);
    it.until_states(&["done", "done"]);
    assert_eq!(it.conversions(), 2);
    browser.click("#zip");
    let files = unzip(&browser.download("pictures.zip"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["image-2.webp", "image.webp"]);
}

#[test]
fn a_server_that_asks_to_wait_is_asked_again_by_itself() {
    // One more every six seconds.
    let Some(it) = Converter::start(&["--rate-limit", "10"], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    browser.expect_on_console("status of 429");
    let picture = Picture::waves(20, 20).png();
    while it.service.convert(&[], "image/png", &picture).status != 429 {}
    let counted = it.conversions();
    it.choose(&[
        ("1.png", &picture),
        ("2.png", &picture),
        ("3.png", &picture),
    ]);
    browser.wait_for_text("The server is busy. It goes on by itself in ");
    it.until_states(&["done", "done", "done"]);
    assert_eq!(it.conversions(), counted + 3);
    assert!(!browser.is_shown("#hold"));
}

#[test]
fn without_a_script_the_form_saves_a_picture_or_says_why_not() {
    let Some(it) = Converter::start(&["--allow-origin", "*"], Options::without_script()) else {
        return;
    };
    let browser = &it.browser;
    let picture = Picture::waves(60, 40).png();
    it.choose(&[("waves.png", &picture)]);
    browser.fill("[name=quality]", "60");
    browser.click("#apply");
    let expected = it.service.webp(&[("quality", "60")], &picture).0;
    assert_eq!(browser.download("converted.webp"), expected);
    browser.expect_on_console("status of 400");
    it.choose(&[("damaged.png", &picture[..picture.len() / 2])]);
    browser.click("#apply");
    browser.until("a page says why not", || {
        browser.text("h1") == "The picture cannot be read"
    });
}
