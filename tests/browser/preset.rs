//! The page that converts, with a token that has a preset: what the settings show is what holds.

use crate::chromium::Options;
use crate::converter::Converter;
use crate::page::Theme;
use crate::support::picture::Picture;
use serde_json::json;

const PRESET: &str = "target=70\n!watermark=© a\n!watermark_opacity=30\neffort=low\nenlarge=true";

#[test]
fn settings_show_the_preset_and_what_it_fixes_cannot_be_edited() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    browser.open("/tokens");
    browser.run(
        "const form = document.querySelector('form[action=\"/token/change\"]'); \
         form.elements.preset.value = arguments[0]; form.closest('details').open = true; \
         form.querySelector('button').click()",
        &[json!(PRESET)],
    );
    browser.wait_for_text("is saved");
    browser.open("/dashboard/convert");
    browser.run(
        "for (const group of document.querySelectorAll('#settings details')) group.open = true",
        &[],
    );
    let field = |name: &str| {
        let script = "const field = document.querySelector(`#p-${arguments[0]}`); \
             const shown = field.querySelector?.(':checked')?.value ?? (field.value || field.placeholder); \
             return [shown, field.disabled ?? false]";
        browser.run(script, &[json!(name)])
    };
    assert_eq!(field("quality"), json!(["as target says", false]));
    assert_eq!(field("target"), json!(["70", false]));
    assert_eq!(field("effort"), json!(["low", false]));
    assert_eq!(field("enlarge"), json!(["true", false]));
    assert_eq!(field("watermark"), json!(["© a", true]));
    assert_eq!(field("watermark_opacity"), json!(["30", true]));
    assert_eq!(field("watermark_size"), json!(["24", true]));
    // The slider and the color beside a fixed one, too.
    let beside = "return [...document.querySelectorAll('.pair:has([name^=watermark_]) input')] \
         .filter((input) => !/scale|margin/.test(input.name)).every((input) => input.disabled)";
    assert_eq!(browser.run(beside, &[]), true);
    browser.assert_says(&["Fixed by the token"]);
    browser.show_as(1280, Theme::Light);
    browser.screenshot("convert-preset");

    // What is given displaces the preset's, and the snippet has that alone.
    browser.fill("#p-quality", "40");
    assert_eq!(field("target"), json!(["none", false]));
    assert!(browser.text("#snippet").contains("quality=40"));
    let picture = Picture::waves(80, 60).png();
    it.choose(&[("waves.png", &picture)]);
    it.until_states(&["done"]);
    let expected = it.service.webp(&[("quality", "40")], &picture).0;
    browser.click(".row .save");
    assert_eq!(browser.download("waves.webp"), expected);
    browser.click("#reset");
    browser.until("the preset's is shown again", || {
        field("target") == json!(["70", false])
    });
}

#[test]
fn settings_are_saved_as_the_preset_of_a_token_and_chosen_by_its_name() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    let presets = || browser.texts("#presets a");
    let first = presets();
    assert!(!browser.is_shown("#save-preset"), "nothing is given");
    browser.fill("#p-watermark", "50 %\n© a");
    browser.fill("#p-width", "300");
    browser.until("it can be saved", || browser.is_shown("#save-preset"));
    let link = browser.find("#save-preset a").property("href");
    let [page, tokens] = browser.new_tab();
    browser.turn_to(&tokens);
    browser.open_elsewhere(&link);
    let preset = browser.value("#new [name=preset]");
    assert_eq!(preset, "width=300\nwatermark=50 %25%0A© a");
    browser.show_as(1280, Theme::Light);
    browser.screenshot("tokens-save-preset");
    browser.fill("#new [name=name]", "Blog & shop");
    browser.click("#new [type=submit]");
    browser.wait_for_text("Blog & shop");

    browser.turn_to(&page);
    browser.run(
        "document.querySelector('#save-preset').dispatchEvent(new Event('click')); \
         dispatchEvent(new Event('focus'))",
        &[],
    );
    browser.until("the page has it, too", || {
        presets().len() == first.len() + 1
    });
    assert_eq!(presets().last().map(String::as_str), Some("Blog & shop"));
    let is_current = || {
        browser.run(
            "return document.querySelector('#presets [aria-current]')?.textContent",
            &[],
        )
    };
    assert_eq!(is_current(), json!("Blog & shop"));
    assert!(!browser.is_shown("#save-preset"), "it is saved");
    browser.click("#reset");
    browser.until("nothing is given", || is_current() == json!(null));
    browser.click("#presets a:last-child");
    browser.until("it is chosen", || is_current() == json!("Blog & shop"));
    assert_eq!(browser.value("#p-watermark"), "50 %\n© a");
    assert_eq!(browser.value("#p-width"), "300");
}
