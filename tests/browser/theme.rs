//! The choice of a theme, which starts from the system's and is kept on the device.

use crate::chromium::Options;
use crate::page::{Browser, Theme, key};
use crate::support::Server;
use crate::visitor;
use serde_json::json;

/// The theme in force when the page's body began to exist, before anything was painted.
const FIRST_THEME: &str = "new MutationObserver((_, observer) => {
    if (!document.body) return;
    window.firstTheme = document.documentElement.dataset.theme;
    observer.disconnect();
}).observe(document, { childList: true, subtree: true });";

#[test]
fn the_theme_is_the_system_s_until_another_is_chosen() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let is_dark = || {
        let script = "return getComputedStyle(document.body).backgroundColor";
        match browser.run(script, &[]).as_str() {
            Some("rgb(16, 22, 21)") => true,
            Some("rgb(246, 247, 248)") => false,
            other => panic!("the page is {other:?}"),
        }
    };
    let chosen = || browser.value("[name=theme]:checked");
    browser.devtools(
        "Page.addScriptToEvaluateOnNewDocument",
        &json!({"source": FIRST_THEME}),
    );
    browser.open("/");
    assert_eq!((chosen().as_str(), is_dark()), ("system", false));
    browser.show_as(1280, Theme::Dark);
    assert!(is_dark());

    // Radio buttons are one tab stop, and arrows go through them.
    browser.run(
        "document.querySelector('[name=theme]:checked').focus()",
        &[],
    );
    browser.press(&[key::RIGHT]);
    assert_eq!((chosen().as_str(), is_dark()), ("light", false));
    let [first, _] = browser.new_tab();
    for path in [
        "/",
        "/signin",
        "/signup",
        "/docs",
        "/docs/api",
        "/no-such-page",
    ] {
        browser.expect_on_console("status of 404");
        browser.open(path);
        browser.show_as(1280, Theme::Dark);
        assert!(!is_dark() && chosen() == "light", "{path}");
    }
    browser.run(
        "document.querySelector('[name=theme]:checked').focus()",
        &[],
    );
    browser.press(&[key::RIGHT]);
    assert!(is_dark());
    browser.turn_to(&first);
    browser.until("the other tab has the theme", || chosen() == "dark");
    browser.show_as(1280, Theme::Light);
    visitor::sign_up(&browser);
    for path in ["/dashboard", "/dashboard/convert", "/tokens", "/account"] {
        browser.open(path);
        assert!(is_dark(), "{path}");
        assert_eq!(
            browser.run("return window.firstTheme", &[]),
            "dark",
            "{path}"
        );
    }
    browser.show_in("print", ("prefers-contrast", "no-preference"), Theme::Dark);
    let paper = "return getComputedStyle(document.body).colorScheme + getComputedStyle(document.body).color";
    assert_eq!(browser.run(paper, &[]), "lightrgb(0, 0, 0)");
}

#[test]
fn without_a_script_there_is_no_choice() {
    let server = Server::start();
    let Some(browser) = Browser::start_with(&server, Options::without_script()) else {
        return;
    };
    browser.open("/");
    assert!(!browser.is_shown(".theme"));
}

#[test]
fn texts_have_more_contrast_when_it_is_preferred() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.open("/");
    for (theme, lead, ground) in [
        (Theme::Light, "rgb(43, 51, 49)", "rgb(255, 255, 255)"),
        (Theme::Dark, "rgb(213, 223, 220)", "rgb(0, 0, 0)"),
    ] {
        browser.show_in("screen", ("prefers-contrast", "more"), theme);
        let script = "return [getComputedStyle(document.querySelector('.lead')).color, \
             getComputedStyle(document.body).backgroundColor]";
        assert_eq!(browser.run(script, &[]), json!([lead, ground]), "{theme:?}");
        browser.screenshot(&format!("start-more-contrast-{theme:?}"));
    }
}
