//! The documentation, read and searched by the keyboard.

use crate::page::{Browser, key};
use crate::support::Server;
use crate::sweep;

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
