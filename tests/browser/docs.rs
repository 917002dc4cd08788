//! The documentation, read and searched by the keyboard.

use crate::page::{Browser, key};
use crate::support::Server;
use crate::sweep;
use crate::visitor;

#[test]
fn the_documentation_is_searched_by_the_keyboard() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.open("/docs/api");
    browser.run("document.querySelector('#q').focus()", &[]);
    browser.type_keys("recovery codes");
    browser.press(&[key::ENTER]);
    browser.wait_for_text("Found: ");
    assert_eq!(browser.path(), "/docs?q=recovery+codes");
    assert_eq!(browser.value("#q"), "recovery codes");
    sweep::look_at_shown(&browser, "docs-found");
    browser.click("#found h3 a");
    browser.until("the section is in view", || {
        let script = "const id = location.hash.slice(1); if (!id) return false; \
             const { top } = document.getElementById(id).getBoundingClientRect(); \
             return top > -5 && top < innerHeight";
        browser.run(script, &[]) == true
    });
    assert!(
        browser.path().starts_with("/docs/security"),
        "{}",
        browser.path()
    );
}

#[test]
fn examples_can_be_tried_with_pictures_of_ones_own() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    visitor::sign_up(&browser);
    browser.open("/docs/api");
    let link = "a[href*='#watermark=']";
    let code = browser.text(&format!(".code:has({link}) code"));
    assert!(code.contains("watermark=%C2%A9%20example.org"), "{code}");
    browser.click(link);
    browser.until("the example's settings are in the fields", || {
        browser.value("#p-watermark") == "© example.org"
    });
    assert_eq!(browser.value("#p-watermark_opacity"), "80");
    browser.open("/docs/api");
    sweep::look_at_shown(&browser, "docs-try");
}
