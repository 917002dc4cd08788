//! The other way to compare on the page that converts: what changed between before and after.

use crate::chromium::Options;
use crate::converter::Converter;
use crate::page::Theme;
use crate::support::picture::Picture;

const STYLE: &str = "
const style = (css) => getComputedStyle(document.querySelector(css));
return [style('#after-layer').mixBlendMode, style('#after-layer').clipPath, style('#slider').display];";

#[test]
fn what_changed_is_shown_and_counted() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    assert!(!browser.is_shown("#difference"), "without a picture");
    it.choose(&[("waves.png", &Picture::waves(300, 200).png())]);
    browser.until("there is something to compare", || {
        browser.is_shown("#difference")
            && browser.find("#difference").property("disabled") == "false"
    });
    assert!(!browser.is_shown("#difference-note"));

    browser.click("#difference");
    browser.until("the changes are counted", || {
        let note = browser.text("#difference-note");
        note.contains("of the pixels changed, by ") && !note.contains("In the middle")
    });
    let style = browser.run(STYLE, &[]);
    assert_eq!(style, serde_json::json!(["difference", "none", "none"]));
    for (width, name) in [(360, "360"), (768, "768"), (1280, "1280")] {
        browser.show_as(width, Theme::Light);
        browser.screenshot(&format!("convert-difference-{name}"));
    }

    browser.run(
        "const mode = document.querySelector('#settings [name=mode][value=lossless], #settings select[name=mode]'); \
         if (mode.type === 'radio') mode.checked = true; else mode.value = 'lossless'; \
         mode.dispatchEvent(new Event('input', { bubbles: true }))",
        &[],
    );
    browser.until("a file without loss has changed nothing", || {
        browser
            .text("#difference-note")
            .ends_with("No pixel changed.")
    });

    // By the keyboard alone, back to the slider.
    browser.run("document.querySelector('#stage').focus()", &[]);
    browser.type_keys("d");
    browser.until("the slider is back", || {
        browser.is_shown("#slider") && !browser.is_shown("#difference-note")
    });
    assert_eq!(
        browser
            .find("#difference")
            .attribute("aria-pressed")
            .as_deref(),
        Some("false")
    );
}
