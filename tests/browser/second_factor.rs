//! The second factor, from the page of the account to a sign-in by a code.

use crate::page::Browser;
use crate::support::Server;
use crate::support::totp::{code, period};
use crate::sweep;
use crate::visitor::{self, PASSWORD};

#[test]
fn a_second_factor_is_set_up_and_asked_for() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.expect_on_console("status of 400");
    visitor::sign_up(&browser);
    browser.open("/account");
    browser.click("#second-factor a");
    browser.wait_for_path("/account/second-factor");
    sweep::look_at_shown(&browser, "second-factor-off");
    let side = "return document.querySelector('svg.qr').getBoundingClientRect().width";
    let side = browser.run(side, &[]).as_f64().expect("a width");
    assert!(side > 150.0, "{side} pixels are too small to scan");
    let (key, first) = (browser.text("#key"), period());
    let fill = |code: &str| {
        browser.fill("#code", code);
        browser.fill("#password", PASSWORD);
        browser.click("main button[type=submit]");
    };
    fill("000 000 x");
    browser.wait_for_text("The code is wrong.");
    assert_eq!(browser.text("#key"), key);
    fill(&code(&key, first));
    browser.wait_for_text("They are not shown again.");
    sweep::look_at_shown(&browser, "recovery-codes");
    let codes = browser.text("#codes");
    let recovery = codes.lines().next().expect("ten codes").to_owned();
    assert_eq!(codes.lines().count(), 10, "{codes}");

    sweep::look(&browser, "/account/second-factor", "second-factor-on");
    let sign_in = |code: &str| {
        visitor::try_sign_in(&browser, PASSWORD);
        browser.wait_for_text("or a recovery code");
        assert!(browser.cookie("towebp_session").is_none());
        browser.fill("#code", code);
        browser.click("main button[type=submit]");
    };
    visitor::sign_out(&browser);
    sign_in(&code(&key, first));
    browser.wait_for_text("The code is wrong, or was used before.");
    sweep::look_at_shown(&browser, "sign-in-code");
    for code in [&code(&key, first + 1), &recovery] {
        sign_in(code);
        browser.wait_for_path("/dashboard");
        visitor::sign_out(&browser);
    }

    browser.open("/signin");
    browser.click("main a[href='/signin/recover']");
    browser.wait_for_path("/signin/recover");
    browser.fill("#email", visitor::OWNER);
    browser.fill("#code", codes.lines().nth(1).expect("ten codes"));
    browser.fill("#password", "another horse battery");
    browser.click("main button[type=submit]");
    browser.wait_for_text("The password is set.");
    sweep::look_at_shown(&browser, "sign-in-recovered");
}
