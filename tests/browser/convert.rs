//! The page that converts: pictures in, results out, and everything that may happen between.

use crate::chromium::Options;
use crate::converter::{Converter, unzip};
use crate::page::key;
use crate::support::picture::{HALVES_JPEG, Picture};
use crate::sweep;
use serde_json::json;

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
fn a_placeholder_is_an_element_to_copy() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    let png = Picture::waves(60, 40).png();
    it.choose(&[("waves.png", &png)]);
    it.until_states(&["done"]);
    assert!(!browser.is_shown("#placeholder"));
    browser.run("document.querySelector('#advanced').open = true", &[]);
    let choose = "const field = document.querySelector('[name=placeholder]'); \
         if (field.type === 'checkbox') field.checked = true; else field.value = 'true'; \
         field.dispatchEvent(new Event('input', { bubbles: true }))";
    browser.run(choose, &[]);
    browser.until("the placeholder is shown", || {
        browser.is_shown("#placeholder")
    });
    let answer = it
        .service
        .convert(&[("placeholder", "true")], "image/png", &png);
    let hash = answer
        .header("x-towebp-thumbhash")
        .expect("it was asked for");
    let tag = browser.text("#placeholder-tag");
    assert!(tag.contains(&format!("data-thumbhash=\"{hash}\"")), "{tag}");
    assert!(tag.contains("width=\"60\" height=\"40\""), "{tag}");
    sweep::look_at_shown(browser, "convert-placeholder");
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
    browser.delete_cookie("towebp_session");
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
    browser
        .wait_for_text("This account may have 10 conversions a minute. It goes on by itself in ");
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
