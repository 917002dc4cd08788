//! The page of the tokens with as many as an account may have.

use crate::chromium::Options;
use crate::page::{Browser, Theme, key};
use crate::support::Server;
use crate::sweep;
use crate::visitor;
use serde_json::json;

/// Makes so many tokens by the page's own form.
const CREATE: &str = "
const form = document.querySelector('#new form');
for (let at = 1; at < arguments[0]; at += 1) {
    const fields = new URLSearchParams(new FormData(form));
    fields.set('name', `shop ${at}`);
    if (at % 2) fields.set('monthly', 100);
    if (at % 3) fields.set('ends', '2030-01-01');
    const answer = await fetch(form.action, { method: 'POST', body: fields });
    if (!answer.ok) throw new Error(await answer.text());
}";

#[test]
fn fifty_tokens_are_on_one_screen() {
    let server = Server::start();
    let Some(browser) = Browser::start_with(&server, Options::default()) else {
        return;
    };
    visitor::sign_up(&browser);
    browser.open("/tokens");
    browser.run_async(CREATE, &[json!(50)]);
    browser.open("/tokens");
    browser.show_as(1280, Theme::Light);
    assert_eq!(browser.all(".tokens tbody tr").len(), 50);
    let height = browser.run("return document.documentElement.scrollHeight", &[]);
    assert!(height.as_u64() <= Some(3000), "{height} pixels");
    assert_eq!(browser.all(".tokens meter").len(), 25);
    let wide = "return document.documentElement.scrollWidth - innerWidth";
    for width in [1280, 1024, 768, 360] {
        browser.show_as(width, Theme::Dark);
        assert_eq!(browser.run(wide, &[]), json!(0), "{width} pixels");
    }
    // A menu is opened by the keyboard, closes the other one, and is seen.
    browser.show_as(1280, Theme::Light);
    browser.click("tr:nth-child(3) .menu > summary");
    browser.run(
        "document.querySelector('tr:nth-child(50) .menu > summary').focus()",
        &[],
    );
    browser.press(&[key::ENTER]);
    assert_eq!(browser.all(".menu[open]").len(), 1);
    assert!(browser.is_shown("tr:nth-child(50) .menu details > summary"));
    browser.screenshot("tokens-menu-1280");
    sweep::look_at_shown(&browser, "tokens-50");
}
