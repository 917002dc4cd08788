//! A live token is in no page and in no address, until its owner asks for it.

use crate::chromium::Options;
use crate::page::{Browser, key};
use crate::support::Server;
use crate::support::picture::Picture;
use crate::visitor;
use serde_json::json;

/// The pages of somebody who is signed in that tell of a token.
const PAGES: [&str; 5] = [
    "/dashboard",
    "/tokens",
    "/dashboard/convert",
    "/docs",
    "/docs/api",
];

/// All that a page consists of: its source, values of fields, texts, addresses.
const WHOLE: &str = "
const fields = [...document.querySelectorAll('input, textarea')].map((field) => field.value);
const source = await (await fetch(location.href)).text();
return [location.href, document.documentElement.outerHTML, ...fields, source].join('\\n');";

/// What was copied last, pasted into a field.
#[track_caller]
fn pasted(browser: &Browser) -> String {
    browser.open("/account");
    browser.run(
        "document.querySelector('#new-email').type = 'text'; document.querySelector('#new-email').focus()",
        &[],
    );
    browser.press(&[key::CONTROL, 'v']);
    browser.value("#new-email")
}

#[test]
fn tokens_are_masked_and_copied_as_they_are() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    let end = &token[token.len() - 4..];
    // By the pointer, and by the keyboard.
    browser.open("/dashboard");
    browser.until_copied("button[data-copy=token]", || {
        browser.click("button[data-copy=token]");
    });
    assert_eq!(pasted(&browser), token);
    for (path, button, prefix) in [
        ("/dashboard", "button[data-copy=curl]", ""),
        ("/docs/api", "button[data-copy=code-2]", ""),
        ("/tokens", "button[data-copy=token-0]", "twp_"),
    ] {
        browser.open(path);
        browser.run(
            "document.querySelector(arguments[0]).focus()",
            &[json!(button)],
        );
        browser.until_copied(button, || browser.press(&[key::ENTER]));
        let copied = pasted(&browser);
        assert!(
            copied.contains(&token) && copied.starts_with(prefix),
            "{path}: {copied}"
        );
        assert!(
            !copied.contains("token="),
            "{path} has it in a URL: {copied}"
        );
    }
    // It is revealed, and hidden again on paper.
    browser.open("/dashboard");
    let reveal = "form.reveal [type=submit]";
    browser.run(
        "document.querySelector(arguments[0]).focus()",
        &[json!(reveal)],
    );
    browser.press(&[key::ENTER]);
    browser.until("the token is revealed", || browser.value("#token") == token);
    assert_eq!(browser.text(reveal), "Hide");
    browser.run("dispatchEvent(new Event('beforeprint'))", &[]);
    assert!(browser.value("#token").contains('•'));
    for has_history in [false, true] {
        if has_history {
            let answer = server
                .request("POST", "/convert")
                .header("Authorization", &format!("Bearer {token}"))
                .header("Content-Type", "image/png")
                .body(Picture::waves(20, 20).png())
                .send();
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        for path in PAGES {
            browser.open(path);
            let whole = browser.run_async(WHOLE, &[]);
            let whole = whole.as_str().expect("a text");
            assert!(!whole.contains(&token), "{path} has the token");
            if path != "/dashboard/convert" && !(has_history && path == "/dashboard") {
                let masked = format!("twp_••••••••{end}");
                assert!(whole.contains(&masked), "{path} has no {masked}");
            }
        }
    }
    // Whoever is signed out elsewhere is told.
    browser.open("/tokens");
    browser.delete_cookies();
    browser.click("button[data-copy=token-0]");
    browser.wait_for_text("You are signed out");
}

#[test]
fn without_a_script_a_token_is_read_by_a_form_and_stands_in_no_address() {
    let server = Server::start();
    let Some(browser) = Browser::start_with(&server, Options::without_script()) else {
        return;
    };
    visitor::sign_up(&browser);
    browser.click("form.reveal [type=submit]");
    browser.wait_for_path("/token/reveal");
    browser.assert_says(&["The token default"]);
    browser.open("/dashboard/convert");
    let picture = server.folder.path.join("broken.png");
    std::fs::write(&picture, b"no picture").expect("the folder is ours");
    browser.expect_on_console("status of 400");
    browser.choose_files("#files", &[&picture]);
    browser.click("#apply");
    browser.wait_for_text("400 wrong_format");
    assert_eq!(browser.path(), "/convert");
}

/// The cookie by which the page that converts shows whose it is belongs to whoever is signed in.
#[test]
fn whoever_signs_out_leaves_no_token_behind() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    visitor::sign_up(&browser);
    assert!(browser.cookie("towebp_token").is_none());
    browser.open("/dashboard/convert");
    assert!(browser.cookie("towebp_token").is_some());
    assert_eq!(browser.run("return document.cookie", &[]), "");
    visitor::sign_out(&browser);
    assert!(browser.cookie("towebp_token").is_none());
}
