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
    look_for(&browser);
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

/// Searches the fifty tokens by their names and by their ends.
#[track_caller]
fn look_for(browser: &Browser) {
    let shown = || {
        let names = "return [...document.querySelectorAll('.tokens tbody tr')] \
             .filter((row) => row.checkVisibility()).map((row) => row.querySelector('th').textContent)";
        let names: Vec<String> =
            serde_json::from_value(browser.run(names, &[])).expect("a list of names");
        names
    };
    browser.fill("#sought", " SHOP 4");
    let expected = [4, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49].map(|at| format!("shop {at}"));
    assert_eq!(shown(), expected);
    assert_eq!(browser.text("#found"), "11 of 50 tokens");
    sweep::look_at_shown(browser, "tokens-search");
    let masked = browser.value("input[aria-label='Token shop 7']");
    let (_, end) = masked.split_at(masked.len() - 4);
    browser.fill("#sought", end);
    assert!(shown().contains(&"shop 7".to_owned()), "{:?}", shown());
    browser.fill("#sought", "nowhere");
    assert_eq!(shown(), [""; 0]);
    assert_eq!(browser.text("#found"), "0 of 50 tokens");
    browser.run("document.querySelector('#sought').value = ''", &[]);
    browser.click("#sought");
    browser.press(&[key::SPACE]);
    assert_eq!(shown().len(), 50, "spaces alone search for nothing");
    assert_eq!(browser.text("#found"), "");
}

#[test]
fn a_token_is_created_in_a_dialog_that_keeps_what_was_typed() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    visitor::sign_up(&browser);
    browser.open("/tokens");
    assert!(!browser.is_shown("#new"));
    assert!(browser.all("#search").is_empty(), "there is one token");
    let (button, name) = ("#create", "#new [name=name]");
    browser.click(button);
    browser.fill(name, "shop");
    sweep::look_at_shown(&browser, "tokens-dialog");
    browser.press(&[key::ESCAPE]);
    browser.until("the dialog is closed", || !browser.is_shown("#new"));
    assert_eq!(browser.focused().text(), "Create token");
    browser.press(&[key::ENTER]);
    assert_eq!(browser.value(name), "shop");
    browser.click("#new .secondary");
    assert!(!browser.is_shown("#new"));
    // The dialog comes back with the form, and with the reason why it was rejected.
    browser.expect_on_console("status of 400");
    browser.click(button);
    browser.fill("#new [name=preset]", "qality=90");
    browser.click("#new [type=submit]");
    browser.until("the reason is in the dialog", || {
        browser.is_shown("dialog:modal [role=alert]")
    });
    assert_eq!(browser.value(name), "shop");
    assert!(browser.text("#new [role=alert]").contains("qality"));
    sweep::look_at_shown(&browser, "tokens-dialog-rejected");
    browser.fill("#new [name=preset]", "quality=90");
    browser.click("#new [type=submit]");
    browser.wait_for_text("The token shop is created.");
    assert!(!browser.is_shown("#new"));
}

#[test]
fn without_script_a_token_is_created_by_a_form_of_the_page() {
    let server = Server::start();
    let Some(browser) = Browser::start_with(&server, Options::without_script()) else {
        return;
    };
    visitor::sign_up(&browser);
    for number in 1..=10 {
        browser.open("/tokens");
        assert!(!browser.is_shown("#create"));
        browser.click("#new summary");
        browser.fill("#new [name=name]", &format!("shop {number}"));
        browser.click("#new [type=submit]");
        browser.wait_for_text(&format!("The token shop {number} is created."));
    }
    assert_eq!(browser.all("#search").len(), 1, "there are eleven tokens");
    assert!(!browser.is_shown("#search"));
    browser.show_as(360, Theme::Light);
    browser.screenshot("tokens-without-script-360");
    browser.show_as(1280, Theme::Dark);
    browser.screenshot("tokens-without-script-1280");
}
