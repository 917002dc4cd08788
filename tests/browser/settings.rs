//! The settings of the page that converts: what keeps them, the presets, and problems beside them.

use crate::chromium::Options;
use crate::converter::Converter;
use crate::page::Theme;
use crate::support::picture::Picture;
use crate::sweep;
use serde_json::{Value, json};

const LINK: &str = "/dashboard/convert#quality=70&width=300&effort=high&watermark_position=topLeft\
     &dpr=900&fit=no&watermark_color=pinkish&unknown=1";

impl Converter {
    /// The lines of the snippet that are parameters.
    #[track_caller]
    fn given(&self) -> Vec<String> {
        let snippet = self.browser.text("#snippet");
        let lines = snippet.lines().filter_map(|line| {
            let (_, rest) = line.split_once("--form-string '")?;
            rest.split_once('\'').map(|(given, _)| given.to_owned())
        });
        lines.collect()
    }

    /// The settings in the address, once they are those of the fields.
    #[track_caller]
    fn until_address(&self, expected: &str) {
        self.browser.until("the address has the settings", || {
            self.browser.run("return location.hash", &[]) == expected
        });
    }
}

#[test]
fn settings_come_with_the_address_and_stay() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    let is_open = || browser.run("return document.querySelector('#advanced').open", &[]);
    assert_eq!((it.given(), is_open()), (Vec::new(), json!(false)));
    browser.open(LINK);
    let given = [
        "quality=70",
        "width=300",
        "watermark_position=topLeft",
        "effort=high",
    ];
    assert_eq!(
        (it.given(), is_open()),
        (given.map(str::to_owned).into(), json!(true))
    );
    let kept = "#quality=70&width=300&watermark_position=topLeft&effort=high";
    it.until_address(kept);
    browser.open("/dashboard/convert");
    assert_eq!(it.given(), given);
    it.until_address(kept);
    // A default is not given, nor is what was emptied.
    browser.fill("#p-quality", "85");
    browser.run(
        "const width = document.querySelector('#p-width'); width.value = ''; \
         width.dispatchEvent(new Event('input', { bubbles: true }))",
        &[],
    );
    it.until_address("#watermark_position=topLeft&effort=high");
    browser.click("#reset");
    it.until_address("");
    browser.run("document.querySelector('#advanced').open = false", &[]);
    browser.open("/dashboard/convert");
    assert_eq!((it.given(), is_open()), (Vec::new(), json!(false)));
}

#[test]
fn presets_set_the_fields() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    it.choose(&[("noise.png", &Picture::noise(600, 400).png())]);
    it.until_states(&["done"]);
    let links = browser.all("#presets a");
    let mut names = Vec::new();
    for (at, link) in (1..).zip(&links) {
        names.push(link.text());
        browser.click(&format!("#presets a:nth-child({at})"));
        let expected = link.attribute("href").expect("a link");
        it.until_address(&expected);
        assert_eq!(it.given().join("&"), expected[1..]);
        let current = "return [...document.querySelectorAll('#presets [aria-current]')].map((it) => it.textContent)";
        assert_eq!(browser.run(current, &[]), json!([link.text()]));
    }
    assert_eq!(
        names,
        ["Web photo", "Screenshot", "Thumbnail", "Under 100 kB"]
    );
    browser.until("the picture fits", || {
        browser.text("#after-label").contains("kB · −") && it.states() == ["done"]
    });
    browser.click("#zip");
    assert!(!browser.download("pictures.zip").is_empty());
}

#[test]
fn what_is_wrong_is_said_beside_the_field() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    browser.expect_on_console("status of 400");
    it.choose(&[("noise.png", &Picture::noise(300, 200).png())]);
    it.until_states(&["done"]);
    let told = |name: &str| {
        let script = "const field = document.querySelector(`#p-${arguments[0]}`); \
             const problem = field.closest('.param').querySelector('[role=alert]'); \
             return field.getAttribute('aria-describedby').includes(problem?.id ?? '?') && problem.textContent";
        browser.run(script, &[json!(name)])
    };
    let has = |told: &Value, part: &str| told.as_str().is_some_and(|told| told.contains(part));
    browser.fill("#p-quality", "900");
    browser.until("it is above the range", || has(&told("quality"), "100"));
    browser.fill("#p-quality", "80");
    browser.until("it is right", || told("quality") == false);
    // The server alone finds this problem, of a field under the fold.
    browser.run(
        "document.querySelector('#advanced').open = true; const field = document.querySelector('#p-max_bytes'); \
         field.value = '20'; field.dispatchEvent(new Event('input', { bubbles: true })); \
         document.querySelector('#advanced').open = false",
        &[],
    );
    browser.until("it is too small", || has(&told("max_bytes"), "20"));
    assert!(browser.is_shown("#field-problem"));
    sweep::look_at_shown(browser, "convert-field-problem");
}

#[test]
fn the_bar_stays_in_view() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    assert!(!browser.is_shown("#bar"));
    let picture = Picture::waves(60, 40).png();
    let names: Vec<String> = (0..20).map(|at| format!("{at}.png")).collect();
    let files: Vec<_> = names.iter().map(|name| (&**name, &*picture)).collect();
    it.choose(&files);
    it.until_states(&["done"; 20]);
    let sum = browser.text("#sum");
    assert!(
        sum.starts_with("20 pictures · ") && sum.contains(" → "),
        "{sum}"
    );
    assert!(browser.text("#shown").ends_with(" · 0.png"));
    let script = "const bar = document.querySelector('#bar'), out = []; \
         const sum = document.querySelector('#sum'); \
         if (sum.scrollWidth > sum.clientWidth || sum.scrollHeight > sum.clientHeight + 1) out.push('the sum is cut'); \
         for (let y = 0; y < document.documentElement.scrollHeight; y += 100) { \
             scrollTo(0, y); \
             const { top, bottom } = bar.getBoundingClientRect(); \
             if (top < 0 || bottom > innerHeight) out.push([y, top, bottom]); \
         } \
         return out;";
    for width in [360, 1280] {
        for theme in [Theme::Light, Theme::Dark] {
            browser.show_as(width, theme);
            assert_eq!(browser.run(script, &[]), json!([]), "at {width} pixels");
        }
    }
}

#[test]
fn a_picture_may_have_settings_of_its_own() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    assert!(!browser.is_shown("#own-choice"), "without a picture");
    let picture = Picture::noise(60, 40).png();
    it.choose(&[("first.png", &picture)]);
    assert!(!browser.is_shown("#own-choice"), "with one picture");
    it.choose(&[("second.png", &picture), ("third.png", &picture)]);
    it.until_states(&["done"; 3]);
    let details = || browser.texts(".row .detail");
    assert_eq!(browser.text("#own-choice"), "Only for first.png");
    browser.click("#own");
    assert!(details()[0].ends_with("60 × 40 · own settings"));
    browser.fill("#p-width", "30");
    browser.until("the first picture alone is converted anew", || {
        let has = |at: usize, text: &str| details()[at].ends_with(text);
        has(0, "30 × 20 · own settings") && has(1, "60 × 40") && has(2, "60 × 40")
    });
    assert_eq!(it.given(), ["width=30"]);
    assert_eq!(browser.text("#apply"), "Convert all with their settings");
    // The settings of the others stay in the address, and come back with their pictures.
    it.until_address("");
    browser.click(".row:nth-child(2) .thumb");
    browser.until("the second has those of all", || it.given().is_empty());
    assert_eq!(browser.find("#own").property("checked"), "false");
    browser.fill("#p-width", "20");
    it.until_address("#width=20");
    browser.until("two are left to convert", || {
        browser.text("#apply") == "Convert 1 picture with their settings"
    });
    browser.click("#apply");
    browser.until("each has its settings", || {
        let sizes: Vec<_> = details();
        sizes[0].contains("30 × 20") && sizes[1..].iter().all(|it| it.ends_with("20 × 13"))
    });
    browser.click(".row:nth-child(1) .thumb");
    browser.until("its own are back", || it.given() == ["width=30"]);
    it.until_address("#width=20");
    sweep::look_at_shown(browser, "convert-own-settings");
    // A reset is of its own settings, and a preset, too.
    browser.click("#reset");
    browser.until("it has no settings", || {
        details()[0].contains("60 × 40 · own settings")
    });
    browser.click("#presets a");
    browser.until("it has a preset", || it.given() == ["quality=80"]);
    it.until_address("#width=20");
    browser.click("#own");
    browser.until("it is as the others", || {
        details().iter().all(|it| it.ends_with("20 × 13"))
    });
}
