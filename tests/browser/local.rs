//! What the browser converts by itself, by the program as WebAssembly: previews on the page that
//! converts, the drop zone of the start page, and the same bytes as the native program.

use crate::chromium::Options;
use crate::converter::Converter;
use crate::page::{Browser, Theme};
use crate::support::picture::Picture;
use crate::support::skip::skipped;
use crate::support::wasm::{Case, fnv1a, package, pictures, testdata};
use crate::support::{Folder, Server};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use towebp::dashboard::MODULE;

/// Whether the program has the module; reports it if not.
fn has_module() -> bool {
    if MODULE.is_none() {
        skipped(
            "nothing was converted in Chromium: the program was built without scripts/wasm before",
        );
    }
    MODULE.is_some()
}

/// The lines that `tests/support/wasm.mjs` gives for these cases, some at a time.
fn outcomes(browser: &Browser, cases: &[Value]) -> Vec<String> {
    let program = include_str!("../support/wasm.mjs").replace("export ", "");
    let body = format!(
        "{program}
         return await outcomes(await import('/browser/index.js'), window.pictures, window.mark, arguments[0]);"
    );
    let some = |cases: &[Value]| {
        let lines = browser.run_async(&body, &[json!(cases)]);
        serde_json::from_value::<Vec<String>>(lines).expect("a list of texts")
    };
    cases.chunks(8).flat_map(some).collect()
}

/// Gives the page a picture by its name.
fn give(browser: &Browser, name: &str, bytes: &[u8]) {
    browser.run(
        "(window.pictures ??= {})[arguments[0]] = new Uint8Array(arguments[1]);
         window.mark ??= new Uint8Array(arguments[1]);",
        &[json!(name), json!(bytes)],
    );
}

#[test]
fn chromium_makes_the_same_bytes_as_the_native_program() {
    if !has_module() {
        return;
    }
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.open("/");
    let mark = std::fs::read(testdata("alpha.png")).expect("it is shipped");
    give(&browser, "alpha.png", &mark); // the first one is the mark, too
    let (pictures, cases) = (pictures(), Case::random(200));
    for (name, bytes) in &pictures {
        give(&browser, name, bytes);
    }
    let given: Vec<Value> = cases.iter().map(Case::to_json).collect();
    let made = outcomes(&browser, &given);
    assert_eq!(made.len(), 200);
    for (case, made) in cases.iter().zip(made) {
        let bytes = pictures.iter().find(|(name, _)| *name == case.picture);
        let expected = case.outcome(&bytes.expect("it is one of them").1, &mark);
        assert_eq!(made, expected, "{} by {:?}", case.picture, case.parameters);
    }
    // The shipped pictures of the golden table.
    let table = std::fs::read_to_string(testdata("golden.tsv")).expect("it is shipped");
    let mut rows = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (name, parameters) = (fields[0], fields[1]);
        if !name.contains('.') {
            continue; // made by another test
        }
        let by_name = parameters
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        let mut pairs: Vec<_> = by_name.collect();
        if pairs.is_empty() {
            pairs = vec![("quality", parameters), ("mode", "lossy")];
        }
        give(
            &browser,
            name,
            &std::fs::read(testdata(name)).expect("it is shipped"),
        );
        rows.push((json!([name, pairs]), format!("{} {}", fields[2], fields[3])));
    }
    let given: Vec<Value> = rows.iter().map(|(case, _)| case.clone()).collect();
    assert!(rows.len() > 80, "{}", rows.len());
    for (made, (case, expected)) in outcomes(&browser, &given).iter().zip(&rows) {
        assert_eq!(made, expected, "{case}");
    }
}

#[test]
fn settings_change_without_a_connection_and_nothing_is_counted() {
    if !has_module() {
        return;
    }
    let Some(it) = Converter::start_local(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    browser.show_as(1280, Theme::Light);
    let photograph = std::fs::read(testdata("chelsea.jpg")).expect("it is shipped");
    it.choose(&[("chelsea.jpg", &photograph)]);
    it.until_states(&["done"]);
    browser.assert_says(&["Previews in your browser: not counted against your quota."]);
    let settings = [("quality", "40"), ("width", "200"), ("watermark", "© me")];
    // Loaded with the first picture; the fonts with the first text.
    browser.run_async(
        "const towebp = await import('/browser/index.js'); await towebp.load(); await towebp.load('fonts')",
        &[],
    );
    // A new worker takes its scripts from the browser's cache.
    let requests = "return performance.getEntriesByType('resource').map(({ name }) => name) \
        .filter((name) => name.startsWith('http') && !name.includes('/browser/')).length";
    let before = browser.run(requests, &[]);
    browser.set_offline(true);
    browser.run(
        "for (const group of document.querySelectorAll('#settings details')) group.open = true",
        &[],
    );
    for (name, value) in settings {
        let before = browser.text("#after-label");
        browser.fill(&format!("[name={name}]"), value);
        browser.until("the preview is that of the settings", || {
            let label = browser.text("#after-label");
            let detail = browser.text(".row .detail");
            label != before
                && label.contains("in this browser")
                && !detail.contains("other settings")
        });
    }
    assert_eq!(browser.run(requests, &[]), before, "nothing is requested");
    browser.screenshot("local-preview-1280-light");
    browser.set_offline(false);
    assert_eq!(it.conversions(), 1, "previews are not counted");
    browser.click(".row .save");
    let saved = browser.download("chelsea.webp");
    let target = it.service.convert(&settings, "image/jpeg", &photograph);
    assert_eq!(target.status, 200);
    assert_eq!(
        fnv1a(&saved),
        fnv1a(&target.body),
        "the same as the server's"
    );
    // The server's, for those who want it in their history.
    browser.click("#apply");
    browser.until("the server has converted it", || {
        !browser.text("#after-label").contains("in this browser") && it.conversions() == 3
    });
}

#[test]
fn a_picture_is_converted_on_the_start_page_without_an_account() {
    if !has_module() {
        return;
    }
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.show_as(1280, Theme::Dark);
    browser.open("/");
    let folder = Folder::new();
    let path = folder.path.join("waves.png");
    std::fs::write(&path, Picture::waves(320, 240).png()).expect("a new file");
    browser.drop_files(200.0, 300.0, &[&path]);
    browser.wait_for_text("Download it");
    browser.assert_says(&["became", "% less"]);
    browser.screenshot("local-start-1280-dark");
    assert_eq!(browser.cookie("towebp_session"), None);
    let text = folder.path.join("notes.png");
    std::fs::write(&text, "no picture").expect("a new file");
    browser.choose_files("#try-file", &[&text]);
    browser.wait_for_text("begins like none of PNG, JPEG, GIF, BMP and WebP");
    browser.show_as(360, Theme::Light);
    browser.screenshot("local-start-360-light");
}

/// Serves `examples/local.html`, with the npm package in its folder `towebp`; gives its address.
fn page_host() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accepted");
            let mut line = String::new();
            let mut reader = BufReader::new(&stream);
            reader.read_line(&mut line).ok();
            let mut header = line.clone();
            while header.len() > 2 {
                header.clear();
                reader.read_line(&mut header).ok();
            }
            let path = line.split(' ').nth(1).unwrap_or_default();
            let file = match path.strip_prefix("/towebp/") {
                Some(name) => root.join("wasm/built").join(name),
                None => root.join("examples/local.html"),
            };
            let media_type = match file.extension().and_then(|extension| extension.to_str()) {
                Some("js") => "text/javascript",
                Some("wasm") => "application/wasm",
                _ => "text/html",
            };
            let body = std::fs::read(file).unwrap_or_default();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            // A browser may close a connection that it opened beside another.
            stream.write_all(&[head.as_bytes(), &body].concat()).ok();
        }
    });
    format!("http://{address}/")
}

#[test]
fn the_example_page_converts_without_a_server_of_ours() {
    if package().is_none() {
        return skipped("examples/local.html was not tried: scripts/wasm makes the npm package");
    }
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.expect_on_console("favicon");
    browser.open_elsewhere(&page_host());
    let bytes = Picture::waves(60, 40).png();
    let folder = Folder::new();
    let path = folder.path.join("waves.png");
    std::fs::write(&path, &bytes).expect("a new file");
    browser.choose_files("#file", &[&path]);
    browser.wait_for_text(&format!("60 x 40 pixels, {} bytes became", bytes.len()));
}
