//! What the other tests stand on does what it says: the browser, its settings, and what makes a
//! test fail.

use crate::chromium::Options;
use crate::page::{Browser, POLICY_IGNORED, Theme, key};
use crate::support::Server;
use crate::visitor;
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn pages_are_opened_read_and_typed_into() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    assert!(token.starts_with("twp_"), "{token}");
    assert_eq!(browser.text("h1"), "Dashboard");
    assert!(browser.cookie("towebp_session").is_some());
    visitor::sign_out(&browser);
    assert!(browser.cookie("towebp_session").is_none());
    visitor::sign_in(&browser);
    assert_eq!(visitor::token(&browser), token);
    browser.delete_cookies();
    browser.reload();
    browser.wait_for_path("/signin");
    let field = browser.find("input[name=email]");
    assert_eq!(field.accessible_name(), "E-mail address");
    field.click();
    browser.type_keys("a@b");
    browser.press(&[key::TAB]);
    assert_eq!(
        browser.focused().attribute("name").as_deref(),
        Some("password")
    );
    assert_eq!(browser.value("input[name=email]"), "a@b");
    let [first, second] = browser.new_tab();
    browser.open("/");
    browser.turn_to(&first);
    assert_eq!(browser.path(), "/signin");
    browser.turn_to(&second);
    assert_eq!(browser.path(), "/");
    assert!(browser.is_shown("main h1") && !browser.is_shown("#no-such-thing"));
}

#[test]
fn a_browser_is_as_wide_as_dark_and_as_far_east_as_asked_for() {
    let server = Server::start();
    let options = Options {
        time_zone: "Asia/Tokyo",
        host: Some("towebp.test"),
        ..Options::default()
    };
    let Some(browser) = Browser::start_with(&server, options) else {
        return;
    };
    browser.expect_on_console(POLICY_IGNORED);
    for (width, theme, is_dark) in [
        (360, Theme::Dark, true),
        (768, Theme::Light, false),
        (1280, Theme::Dark, true),
    ] {
        browser.show_as(width, theme);
        browser.open("/");
        let seen = browser.run(
            "return [innerWidth, matchMedia('(prefers-color-scheme: dark)').matches, \
             Intl.DateTimeFormat().resolvedOptions().timeZone, location.hostname, isSecureContext]",
            &[],
        );
        assert_eq!(
            seen,
            json!([width, is_dark, "Asia/Tokyo", "towebp.test", false])
        );
    }
    let picture = std::fs::read(browser.screenshot("equipment-1280-dark")).expect("it was written");
    assert!(
        picture.starts_with(b"\x89PNG\r\n"),
        "{} bytes",
        picture.len()
    );
    let waited = browser.run_async(
        "await new Promise((resolve) => setTimeout(resolve, 20)); return arguments[0] + 1",
        &[json!(41)],
    );
    assert_eq!(waited, 42);
}

#[test]
fn pages_work_without_script() {
    let server = Server::start();
    let Some(browser) = Browser::start_with(&server, Options::without_script()) else {
        return;
    };
    visitor::sign_up(&browser);
    // The script shows it.
    assert!(!browser.is_shown("button[data-copy=token]"));
}

/// Without this, the sweep over the pages would see nothing.
#[test]
fn messages_on_the_console_fail_a_test_unless_it_expects_them() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.open("/");
    assert_eq!(browser.faults_on_console(), [""; 0]);
    browser.run(
        "const style = document.createElement('style'); style.textContent = 'p { color: red }'; \
         document.head.append(style);",
        &[],
    );
    let faults = browser.faults_on_console();
    assert!(
        faults.len() == 1 && faults[0].contains("Content Security Policy"),
        "{faults:?}"
    );
    browser.expect_on_console("status of 404");
    browser.open("/no-such-page");
    assert_eq!(browser.faults_on_console(), [""; 0]);
    browser.run("console.error('a fault of the page')", &[]);
    let ended = catch_unwind(AssertUnwindSafe(|| drop(browser)));
    let said = ended.expect_err("the console has a fault");
    let said = said.downcast_ref::<String>().expect("a text");
    assert!(said.contains("a fault of the page"), "{said}");
}

#[test]
fn a_failed_wait_says_what_the_page_says() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.open("/");
    let said = browser.complaint("something is missing");
    assert!(
        said.starts_with("something is missing; the page ") && said.contains("Pictures to WebP"),
        "{said}"
    );
}
