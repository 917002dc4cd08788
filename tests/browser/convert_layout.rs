//! Where the parts of the page that converts are: nothing covers what is to be clicked or seen, and
//! what belongs together is beside each other.

use crate::chromium::Options;
use crate::converter::Converter;
use crate::page::{Theme, key};
use crate::support::picture::Picture;
use serde_json::{Value, json};

/// The widths of the windows that are looked at; all are 800 pixels high.
const WIDTHS: [u32; 4] = [360, 1024, 1280, 1920];

/// Left, top, right and bottom of the first element by a selector, within the window.
const RECTANGLE: &str = "
const { left, top, right, bottom } = document.querySelector(arguments[0]).getBoundingClientRect();
return [left, top, right, bottom];";

/// Of the scroll positions at which a button's middle is in the window and above the bar that stays
/// at its bottom, those at which something else lies there; and the last one, if the button is
/// still below the bar then.
const COVERED_AT: &str = "
const button = document.querySelector(arguments[0]), covered = [];
const bar = document.querySelector('#bar');
for (let y = 0; y <= document.documentElement.scrollHeight - innerHeight; y += 40) {
    scrollTo(0, y);
    const { left, top, width, height } = button.getBoundingClientRect();
    const [x, middle] = [left + width / 2, top + height / 2];
    if (middle < 0 || middle >= bar.getBoundingClientRect().top) continue;
    const found = document.elementFromPoint(x, middle);
    if (!button.contains(found)) covered.push([y, found?.outerHTML.slice(0, 80)]);
}
scrollTo(0, 1e6);
if (button.getBoundingClientRect().bottom > bar.getBoundingClientRect().top) covered.push('the end');
return covered;";

impl Converter {
    #[track_caller]
    fn rectangle(&self, css: &str) -> [f64; 4] {
        let found = self.browser.run(RECTANGLE, &[css.into()]);
        serde_json::from_value(found).expect("four numbers")
    }

    /// As [`Browser::show_as`](crate::page::Browser::show_as), and returns once the page has been
    /// laid out for the window: observers of sizes run before the second frame.
    #[track_caller]
    fn show_as(&self, width: u32, theme: Theme) {
        self.browser.show_as(width, theme);
        self.browser.run_async(
            "const frame = () => new Promise(requestAnimationFrame); \
             while (innerWidth !== arguments[0]) await frame(); \
             await frame(); \
             await frame(); \
             return true;",
            &[width.into()],
        );
    }

    /// Left, top, right and bottom of the part of the picture that the stage shows.
    #[track_caller]
    fn picture(&self) -> [f64; 4] {
        let [stage, image] = [self.rectangle("#stage"), self.rectangle("#after")];
        [
            stage[0].max(image[0]),
            stage[1].max(image[1]),
            stage[2].min(image[2]),
            stage[3].min(image[3]),
        ]
    }

    /// Chooses a picture of this size, and waits for its result.
    #[track_caller]
    fn compare(&self, width: u32, height: u32) {
        self.choose(&[("picture.png", &Picture::waves(width, height).png())]);
        self.until_states(&["done"]);
        self.browser.until("the result is drawn", || {
            self.browser.run(
                "const after = document.querySelector('#after'); return after.complete && after.naturalWidth > 0",
                &[],
            ) == true
        });
    }
}

#[test]
fn copy_as_can_be_clicked_wherever_the_page_is_scrolled() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    it.compare(300, 200);
    for theme in [Theme::Light, Theme::Dark] {
        for width in WIDTHS {
            it.show_as(width, theme);
            browser.run(
                "for (const group of document.querySelectorAll('#settings details')) group.open = true",
                &[],
            );
            for button in ["#copy-as .copy", "#snippet-language"] {
                let covered = browser.run(COVERED_AT, &[button.into()]);
                assert_eq!(covered, json!([]), "{button} at {width} pixels");
            }
        }
    }
    // By the pointer at the end of the page, then by the keyboard.
    it.show_as(1280, Theme::Light);
    for by_key in [false, true] {
        browser.run(
            "document.querySelector('#copy-as .copy').textContent = 'Copy'; scrollTo(0, 1e6)",
            &[],
        );
        browser.until_copied("#copy-as .copy", || {
            if by_key {
                browser.run("document.querySelector('#snippet-language').focus()", &[]);
                browser.press(&[key::TAB]);
                browser.press(&[key::ENTER]);
            } else {
                let [left, top, right, bottom] = it.rectangle("#copy-as .copy");
                browser.click_at(left.midpoint(right), top.midpoint(bottom));
            }
        });
    }
}

#[test]
fn pictures_are_a_strip_below_the_compared_one() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let png = Picture::waves(300, 200).png();
    let names: Vec<_> = (0..9).map(|i| format!("a-long-name-of-{i}.png")).collect();
    let mut files: Vec<_> = names.iter().map(|name| (&**name, &*png)).collect();
    files[4].1 = &png[..png.len() / 2];
    it.browser.expect_on_console("400");
    it.choose(&files);
    it.browser.until("all are done", || {
        let states = it.states();
        states
            .iter()
            .all(|state| ["done", "failed"].contains(&&**state))
    });
    it.browser.run(
        "for (const bytes of document.querySelectorAll('.bytes')) bytes.textContent = '888.8 kB → 888.8 kB'",
        &[],
    );
    let card = |number: u32| it.rectangle(&format!(".row:nth-child({number})"));
    for width in [900, 1280, 1920] {
        it.show_as(width, Theme::Light);
        let [first, second, last] = [1, 2, 9].map(card);
        assert!(first[1] >= it.rectangle("#slider")[3], "at {width} pixels");
        let [results_left, .., results_right, _] = it.rectangle("#results");
        assert!(results_left <= first[0] && first[2] <= results_right);
        assert!(second[0] >= first[2], "at {width} pixels");
        for card in [second, last] {
            assert!(
                (card[1] - first[1]).abs() < 0.5,
                "one line at {width} pixels"
            );
        }
        assert!(last[0] > results_right, "the strip scrolls");
        let cut = it.browser.run(
            "return [...document.querySelectorAll('.row :is(.figures, .tools)')]
                .filter((part) => part.scrollWidth > part.clientWidth).length",
            &[],
        );
        assert_eq!(cut, 0, "figures or buttons are cut off at {width} pixels");
    }
    // The whole reason of a failure stands at the picture that is chosen.
    it.browser.click(".row:nth-child(5) .thumb");
    let problem = it.browser.text("#compare-problem");
    assert!(problem.contains("damaged or cut short"), "{problem}");
    it.show_as(360, Theme::Light);
    let [first, second] = [1, 2].map(card);
    assert!(second[1] >= first[3], "a list on a phone");
}

#[test]
fn nothing_lies_on_the_compared_picture() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    it.compare(300, 200);
    for width in WIDTHS {
        it.show_as(width, Theme::Light);
        let picture = it.picture();
        for badge in ["#before-label", "#after-label"] {
            let [left, top, right, bottom] = it.rectangle(badge);
            let is_beside = right <= picture[0] || left >= picture[2];
            let is_above_or_below = bottom <= picture[1] || top >= picture[3];
            assert!(
                is_beside || is_above_or_below,
                "{badge} covers the picture at {width} pixels"
            );
        }
    }
}

#[test]
fn a_portrait_is_in_the_middle_and_the_slider_s_thumb_below_the_divider() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    it.compare(500, 1100);
    for theme in [Theme::Light, Theme::Dark] {
        for width in WIDTHS {
            it.show_as(width, theme);
            let (picture, card) = (it.picture(), it.rectangle("#compare"));
            let off = picture[0].midpoint(picture[2]) - card[0].midpoint(card[2]);
            assert!(off.abs() <= 1.5, "{off} off the middle at {width} pixels");
            for value in [2, 30, 50, 98] {
                let set = "const slider = document.querySelector('#slider'); slider.value = arguments[0]; \
                     slider.dispatchEvent(new Event('input')); slider.scrollIntoView({ block: 'center' })";
                browser.run(set, &[json!(value)]);
                // A thumb that is pressed at its middle stays where it is.
                let (divider, slider) = (it.rectangle("#divider"), it.rectangle("#slider"));
                browser.click_at(
                    divider[0].midpoint(divider[2]),
                    slider[1].midpoint(slider[3]),
                );
                let now: f64 = browser.value("#slider").parse().expect("a number");
                let moved = (now - f64::from(value)).abs() * (picture[2] - picture[0]) / 100.0;
                assert!(
                    moved <= 3.0,
                    "the thumb is {moved:.1} pixels off the divider at {value} % and {width} pixels"
                );
            }
        }
    }
    // A laptop's window shows all that matters at once.
    it.show_as(1280, Theme::Light);
    browser.run("scrollTo(0, 0)", &[]);
    for css in [
        "#stage",
        "#slider",
        "#before-label",
        "#after-label",
        "#apply",
        "#sum",
    ] {
        let [_, top, _, bottom] = it.rectangle(css);
        let end = if css == "#sum" {
            800.0
        } else {
            it.rectangle("#bar")[1]
        };
        assert!(top >= 0.0 && bottom <= end, "{css} ends at {bottom}");
    }
    let [_, top, _, bottom] = it.picture();
    assert!(
        bottom - top >= 280.0,
        "the picture is {} high",
        bottom - top
    );
    browser.screenshot("convert-portrait-1280");
}

#[test]
fn at_100_percent_a_pixel_of_the_picture_is_one_of_the_screen() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    it.compare(300, 200);
    for device_pixels in [1, 2, 3] {
        it.browser.show_finely(1280, device_pixels);
        for zoom in [1, 2] {
            it.browser.click(&format!("[data-zoom='{zoom}']"));
            it.browser.until("a pixel is as large as it is called", || {
                let [left, _, right, _] = it.rectangle("#after");
                let drawn = (right - left) * f64::from(device_pixels);
                (drawn - f64::from(300 * zoom)).abs() < 0.5
            });
        }
    }
}

#[test]
fn the_scroll_bar_does_not_jump_as_rows_come_into_view() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    let add = "const files = new DataTransfer(); \
         for (let at = 0; at < 200; at += 1) files.items.add(new File(['no picture'], `a picture ${at}.png`)); \
         document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: files, bubbles: true, cancelable: true }))";
    let scroll = "const height = () => document.documentElement.scrollHeight; \
         const before = height(); \
         for (let y = 0; y < height(); y += 400) { \
             scrollTo(0, y); \
             await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))); \
         } \
         scrollTo(0, 0); \
         return [before, height()]";
    for width in [360, 1280] {
        it.show_as(width, Theme::Light);
        browser.open("/dashboard/convert");
        browser.run(add, &[]);
        it.until_settled();
        let heights: Value = browser.run_async(scroll, &[]);
        let [before, after]: [f64; 2] = serde_json::from_value(heights).expect("two numbers");
        assert!(
            (before - after).abs() <= 40.0,
            "{before} pixels became {after} at {width} pixels"
        );
    }
}
