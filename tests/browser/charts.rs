//! The charts of the dashboard stay in their card, cover nothing, and tell of the same conversions
//! and the same days as what stands beside them.

use crate::chromium::Options;
use crate::page::{Browser, Theme, key};
use crate::support::Server;
use crate::support::picture::Picture;
use crate::visitor;
use serde_json::json;

/// Texts of the page that reach out of their cards.
const OUTSIDE: &str = "
return [...document.querySelectorAll('.ticks span, .scale span, .tip b')].filter((text) => {
    if (!text.firstChild || !text.checkVisibility()) return false;
    const range = document.createRange();
    range.selectNodeContents(text);
    const { left, right } = range.getBoundingClientRect(), card = text.closest('.card').getBoundingClientRect();
    return left < card.left + 1 || right > card.right - 1;
}).map((text) => text.textContent);";

/// The names of columns that another one lies on.
const CROWDED: &str = "
return [...document.querySelectorAll('.ticks')].filter((ticks) => ticks.checkVisibility()).flatMap((ticks) => {
    const names = [...ticks.children].filter((span) => span.firstChild).map((span) => {
        const range = document.createRange();
        range.selectNodeContents(span);
        return range.getBoundingClientRect();
    });
    return names.slice(1).filter((name, at) => name.left < names[at].right + 2).map((name) => name.left);
});";

/// The names of columns that the values lie on.
const COVERED: &str = "
const tip = document.querySelector('#chart .plot.conversions .tip b').getBoundingClientRect();
return [...document.querySelectorAll('#chart .plot.conversions .ticks span')].filter((text) => {
    if (!text.firstChild) return false;
    const range = document.createRange();
    range.selectNodeContents(text);
    const name = range.getBoundingClientRect();
    return name.left < tip.right && name.right > tip.left && name.top < tip.bottom && name.bottom > tip.top;
}).map((text) => text.textContent);";

fn convert(server: &Server, token: &str, format: &str) {
    let picture = Picture::waves(40, 30);
    let body = match format {
        "bmp" => picture.bmp(),
        _ => picture.png(),
    };
    let answer = server
        .request("POST", "/convert")
        .header("Authorization", &format!("Bearer {token}"))
        .header("Content-Type", &format!("image/{format}"))
        .body(body)
        .send();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn ticks_stay_in_the_card_and_values_cover_none() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    convert(&server, &visitor::sign_up(&browser), "png");
    browser.open("/dashboard");
    for theme in [Theme::Light, Theme::Dark] {
        for width in [360, 768, 1024, 1280, 1920] {
            browser.show_as(width, theme);
            for chart in ["saved", "bytes", "conversions"] {
                browser.click(&format!("#chart [value={chart}]"));
                assert_eq!(browser.run(OUTSIDE, &[]), json!([]), "{width} pixels");
                assert_eq!(browser.run(CROWDED, &[]), json!([]), "{width} pixels");
            }
            let height = "return document.documentElement.scrollHeight";
            let before = browser.run(height, &[]);
            browser.run("document.querySelector('#chart svg').focus()", &[]);
            for _ in 0..31 {
                browser.press(&[key::LEFT]);
                assert_eq!(browser.run(COVERED, &[]), json!([]), "{width} pixels");
            }
            assert_eq!(browser.run(OUTSIDE, &[]), json!([]), "{width} pixels");
            assert_eq!(
                browser.run(height, &[]),
                before,
                "nothing moves at {width} pixels"
            );
            browser.press(&[key::ESCAPE]);
        }
    }
}

#[test]
fn a_range_holds_for_the_tiles_and_all_days_are_utc() {
    let server = Server::start();
    let options = Options {
        time_zone: "Asia/Tokyo",
        ..Options::default()
    };
    let Some(browser) = Browser::start_with(&server, options) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    for format in ["png", "png", "bmp"] {
        convert(&server, &token, format);
    }
    browser.open("/dashboard");
    let tile = |browser: &Browser| browser.text("#totals div:nth-child(2) dd");
    assert_eq!(tile(&browser), "3");
    browser.open("/dashboard?format=bmp");
    assert_eq!(tile(&browser), "1");
    browser.open("/dashboard?to=2020-01-01");
    assert_eq!(tile(&browser), "0");
    browser.open("/dashboard");
    // The newest column and the newest row are of the same day in UTC, and both name the zone.
    let seen = browser.run(
        "const time = document.querySelector('#history time'); \
         return [document.querySelector('#chart tbody td').textContent === time.title.slice(0, 10), \
             time.dateTime.slice(0, 10) === time.title.slice(0, 10), time.title.endsWith(' UTC')]",
        &[],
    );
    assert_eq!(seen, json!([true, true, true]));
    assert!(browser.text("#chart h3").contains("UTC"));
}

#[test]
fn days_in_the_wrong_order_are_told_beside_the_filter() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.expect_on_console("status of 400");
    convert(&server, &visitor::sign_up(&browser), "png");
    for (query, reason) in [
        (
            "from=2026-11-20&to=2026-11-01",
            "The last day, 2026-11-01, comes before the first one, 2026-11-20.",
        ),
        ("from=soon", "First day: \"soon\" was given; allowed"),
        ("token_name=gone", "Token: \"gone\" was given; allowed"),
        ("status=9", "Status: \"9\" was given; allowed"),
    ] {
        browser.open(&format!("/dashboard?{query}"));
        assert_eq!(browser.text("h1"), "Dashboard");
        assert!(
            browser.text("#usage [role=alert]").contains(reason),
            "{query}"
        );
        assert!(browser.is_shown(".filter form") && browser.is_shown("main a[href='/tokens']"));
    }
    browser.open("/dashboard?from=2026-11-20&to=2026-11-01");
    assert_eq!(browser.value("#from"), "2026-11-20");
    browser.run("document.querySelector('#from').value = '2020-01-01'; document.querySelector('#to').value = ''", &[]);
    browser.click(".filter [type=submit]");
    browser.until("the figures are there again", || {
        browser.is_shown("#totals")
    });
}
