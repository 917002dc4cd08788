//! What people do on the pages, from the first visit on.

use crate::chromium::Options;
use crate::converter::Converter;
use crate::page::{Browser, POLICY_IGNORED, Theme, key};
use crate::support::picture::Picture;
use crate::support::{Folder, Server};
use crate::visitor::{self, OWNER, PASSWORD};
use serde_json::json;
use std::process::Command;

/// Presses Tab until the focus is on an element for which `is_it`, and fails after the page's last.
#[track_caller]
fn tab_to(browser: &Browser, what: &str, is_it: impl Fn(&crate::page::Element<'_>) -> bool) {
    for _ in 0..60 {
        browser.press(&[key::TAB]);
        if is_it(&browser.focused()) {
            return;
        }
    }
    panic!(
        "{}",
        browser.complaint(&format!("Tab does not lead to {what}"))
    );
}

/// What is on the clipboard, pasted into a field as people do.
#[track_caller]
fn pasted(browser: &Browser) -> String {
    browser.delete_cookies();
    browser.open("/signin");
    browser.click("input[name=password]");
    browser.press(&[key::CONTROL, 'v']);
    browser.value("input[name=password]")
}

#[test]
fn a_wrong_password_is_told_and_the_address_stays() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.expect_on_console("the server responded with a status of 400");
    visitor::sign_up(&browser);
    visitor::sign_out(&browser);
    visitor::try_sign_in(&browser, "a wrong one");
    browser.wait_for_text("The address or the password is wrong.");
    assert_eq!(
        browser.find("[role=alert]").text(),
        "The address or the password is wrong."
    );
    assert_eq!(browser.value("input[name=email]"), OWNER);
    assert_eq!(browser.value("input[name=password]"), "");
    browser.fill("input[name=password]", PASSWORD);
    browser.press(&[key::ENTER]);
    browser.wait_for_path("/dashboard");
}

#[test]
fn passwords_are_shown_by_a_button_and_sent_hidden() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let fields = |kind: &str| {
        browser
            .all(&format!("[name][type={kind}]:not([readonly])"))
            .len()
    };
    for path in ["/signin", "/signup"] {
        browser.open(path);
        browser.fill("#password", PASSWORD);
        browser.click(".field:has(#password) button");
        assert_eq!((fields("password"), fields("text")), (0, 1), "{path}");
        assert_eq!(browser.value("#password"), PASSWORD);
        browser.click(".field:has(#password) button");
        assert_eq!((fields("password"), fields("text")), (1, 0), "{path}");
    }
    browser.click(".field:has(#password) button");
    browser.fill("#email", OWNER);
    browser.run(
        "document.querySelector('main form').addEventListener('submit', () => { \
             sessionStorage.type = document.querySelector('#password').type })",
        &[],
    );
    browser.click("main button[type=submit]");
    browser.wait_for_path("/dashboard");
    assert_eq!(browser.run("return sessionStorage.type", &[]), "password");
    browser.open("/account");
    assert_eq!(browser.all(".field:has([type=password]) button").len(), 4);
    for id in ["present-password", "new-password"] {
        browser.click(&format!(".field:has(#{id}) button"));
        assert_eq!(browser.find(&format!("#{id}")).property("type"), "text");
    }
}

#[test]
fn the_token_is_copied_on_localhost_and_by_plain_http_at_a_host_name() {
    let server = Server::start();
    for host in [None, Some("towebp.test")] {
        let options = Options {
            host,
            ..Options::default()
        };
        let Some(browser) = Browser::start_with(&server, options) else {
            return;
        };
        browser.expect_on_console(POLICY_IGNORED);
        let token = if host.is_none() {
            visitor::sign_up(&browser)
        } else {
            visitor::sign_in(&browser);
            visitor::token(&browser)
        };
        browser.until_copied("button[data-copy=token]", || {
            browser.click("button[data-copy=token]");
        });
        assert_eq!(pasted(&browser), token, "at {host:?}");
    }
}

#[test]
fn a_page_whose_session_was_ended_elsewhere_says_so_and_sends_nothing() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    browser.open("/tokens");
    // Another browser, which ends all sessions of the account.
    let signed_in = server
        .request("POST", "/signin")
        .form(&[("email", OWNER), ("password", PASSWORD)])
        .send();
    let cookie = signed_in.session_cookie();
    let page = server
        .request("GET", "/sessions")
        .header("Cookie", &cookie)
        .send();
    let (_, rest) = page
        .text()
        .split_once("name=\"csrf\" value=\"")
        .expect("a form");
    let ended = server
        .request("POST", "/signout/everywhere")
        .header("Cookie", &cookie)
        .form(&[("csrf", &rest[..43])])
        .send();
    assert_eq!(ended.status, 303, "{}", ended.text());

    visitor::replace_token(&browser);
    browser.wait_for_text("You are signed out, so this was not sent.");
    visitor::sign_in(&browser);
    assert_eq!(visitor::token(&browser), token, "nothing was changed");
}

#[test]
fn two_tabs_do_not_get_in_each_others_way() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    let [first, second] = browser.new_tab();
    browser.open("/tokens");
    browser.turn_to(&first);
    browser.reload();
    visitor::sign_out(&browser);
    visitor::sign_in(&browser);
    // The second tab's page belongs to the session before, of the same account.
    browser.turn_to(&second);
    visitor::replace_token(&browser);
    browser.wait_for_text("is rolled");
    browser.turn_to(&first);
    browser.reload();
    assert_ne!(visitor::token(&browser), token);
}

#[test]
fn the_keyboard_is_enough() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.open("/signup");
    browser.press(&[key::TAB]);
    let skip = browser.focused();
    assert_eq!(skip.text(), "Skip to content");
    let left = browser.run(
        "return arguments[0].getBoundingClientRect().left",
        &[skip.value()],
    );
    assert!(
        left.as_f64() > Some(0.0),
        "it is seen when it has the focus: {left}"
    );
    browser.press(&[key::ENTER]);
    browser.press(&[key::TAB]);
    let field = browser.focused();
    assert_eq!(
        field.attribute("name").as_deref(),
        Some("email"),
        "behind the header"
    );
    browser.type_keys(OWNER);
    browser.press(&[key::TAB]);
    browser.type_keys(PASSWORD);
    let outline = browser.run(
        "return getComputedStyle(document.activeElement).outlineStyle",
        &[],
    );
    assert_ne!(outline, "none", "the focus is seen");
    browser.press(&[key::ENTER]);
    browser.wait_for_path("/dashboard");

    tab_to(&browser, "the link to the tokens", |focused| {
        focused.text() == "Tokens"
    });
    browser.press(&[key::ENTER]);
    browser.wait_for_path("/tokens");
    tab_to(&browser, "the form of another token", |focused| {
        focused.text() == "Create token"
    });
    browser.press(&[key::ENTER]);
    browser.until("the dialog's first field has the focus", || {
        browser.focused().attribute("name").as_deref() == Some("name")
    });
    browser.type_keys("build server");
    browser.press(&[key::ENTER]);
    browser.wait_for_text("build server");

    browser.open("/dashboard");
    tab_to(&browser, "the button to sign out", |focused| {
        focused.text() == "Sign out"
    });
    browser.press(&[key::SPACE]);
    browser.wait_for_path("/");
}

/// Sign-up, a conversion, the history with its filter, and another token.
#[test]
fn everything_can_be_done_without_script_on_a_phone() {
    let server = Server::start();
    let Some(browser) = Browser::start_with(&server, Options::without_script()) else {
        return;
    };
    browser.show_as(360, Theme::Light);
    let token = visitor::sign_up(&browser);

    let picture = server.folder.path.join("waves.png");
    std::fs::write(&picture, Picture::waves(120, 80).png()).expect("the folder is ours");
    browser.open("/dashboard/convert");
    browser.choose_files("#files", &[&picture]);
    browser.click("#apply");
    let webp = browser.download("converted.webp");
    let decoded = Picture::decode(&webp);
    assert_eq!((decoded.width, decoded.height), (120, 80));
    // What cannot be converted is told on a page with a way back.
    let broken = server.folder.path.join("broken.png");
    std::fs::write(&broken, b"no picture").expect("the folder is ours");
    browser.expect_on_console("the server responded with a status of 400");
    browser.choose_files("#files", &[&broken]);
    browser.click("#apply");
    browser.wait_for_text("400 wrong_format");
    browser.click("main a.button");
    browser.wait_for_path("/dashboard/convert");

    browser.open("/dashboard");
    browser.assert_says(&["120 × 80", "wrong_format"]);
    browser.open("/dashboard?format=gif");
    assert!(
        !browser.page_text().contains("120 × 80"),
        "{}",
        browser.page_text()
    );

    browser.open("/tokens");
    visitor::replace_token(&browser);
    browser.wait_for_text("is rolled");
    browser.open("/dashboard");
    assert_ne!(visitor::token(&browser), token);
    visitor::sign_out(&browser);
}

/// How many elements the Tab key stops at in each row by this selector, as much as it is shown.
const STOPS: &str = "
const stops = (row) => [...row.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
    .filter((one) => one.tabIndex >= 0 && !one.disabled && one.type !== 'hidden' && one.checkVisibility());
return [...document.querySelectorAll(arguments[0])].map((row) => stops(row).length);";

#[test]
fn a_row_has_at_most_two_stops_and_keys_that_are_told() {
    let Some(it) = Converter::start(&[], Options::default()) else {
        return;
    };
    let browser = &it.browser;
    browser.expect_on_console("status of 400");
    let stops = |rows: &str| {
        let stops = browser.run(STOPS, &[rows.into()]);
        serde_json::from_value::<Vec<usize>>(stops).expect("numbers")
    };
    let focused = || {
        browser.run(
            "const { className } = document.activeElement; \
             const row = document.activeElement.closest('.row'); \
             return [row?.querySelector('.name').textContent, className.split(' ')[0]]",
            &[],
        )
    };
    let png = Picture::waves(30, 20).png();
    it.choose(&[
        ("a.png", &png),
        ("b.png", &png),
        ("c.png", b"no picture"),
        ("d.png", &png[..50]),
    ]);
    it.until_states(&["done", "done", "failed", "failed"]);
    assert_eq!(stops(".row"), [2, 2, 2, 2]);
    browser.assert_says(&["S downloads", "Delete removes"]);
    browser.run("document.querySelector('.thumb').focus()", &[]);
    for (key, row, class) in [
        (key::RIGHT, "a.png", "save"),
        (key::RIGHT, "a.png", "remove"),
        (key::DOWN, "b.png", "remove"),
        (key::DOWN, "c.png", "remove"),
        (key::UP, "b.png", "save"),
    ] {
        browser.press(&[key]);
        assert_eq!(focused(), json!([row, class]));
    }
    browser.press(&['S']);
    assert!(!browser.download("b.webp").is_empty());
    browser.press(&[key::DELETE]);
    assert_eq!(it.states().len(), 3);

    browser.open("/tokens");
    assert_eq!(stops(".tokens tbody tr"), [2]);
    browser.run(
        "document.querySelector('.tokens [type=submit]').focus()",
        &[],
    );
    browser.until_copied(".tokens .copy", || {
        browser.press(&[key::RIGHT]);
        browser.press(&[key::ENTER]);
    });
}

#[test]
fn the_first_webp_takes_one_click_and_the_first_call_three() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.open("/");
    // One: the button of the dialog in which the picture is chosen.
    assert!(browser.is_shown("#stage"));
    if browser.find("#try").attribute("data-module").is_some() {
        assert!(browser.is_shown("[for=try-file]"));
    }
    browser.click("main a[href='/signup']");
    browser.fill("input[name=email]", OWNER);
    browser.fill("input[name=password]", PASSWORD);
    browser.click("main button[type=submit]");
    browser.wait_for_path("/dashboard");
    browser.until_copied("[data-copy=curl]", || browser.click("[data-copy=curl]"));
    // A field of one line has no line breaks; those of the command stand behind a backslash.
    let command = pasted(&browser).replace('\\', "");
    let folder = Folder::new();
    let picture = Picture::waves(30, 20).png();
    std::fs::write(folder.path.join("picture.png"), picture).expect("a new file");
    let called = Command::new("sh")
        .args(["-c", &command])
        .current_dir(&folder.path)
        .status();
    assert!(called.expect("sh starts").success(), "{command}");
    let webp = std::fs::read(folder.path.join("picture.webp")).expect("what curl saved");
    assert_eq!(Picture::decode(&webp).width, 30);
}
