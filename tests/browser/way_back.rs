//! After the sign-in people are where they wanted to go, and nowhere else; and what is typed there
//! has to make sense.

use crate::page::Browser;
use crate::support::Server;
use crate::visitor::{self, OWNER, PASSWORD};

#[track_caller]
fn fill_in(browser: &Browser, password: &str) {
    browser.fill("input[name=email]", OWNER);
    browser.fill("input[name=password]", password);
    browser.click("main button[type=submit]");
}

#[test]
fn a_sign_in_leads_to_where_one_wanted_to_go() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.expect_on_console("status of 400");
    visitor::sign_up(&browser);
    for path in [
        "/tokens",
        "/account",
        "/sessions",
        "/dashboard/convert",
        "/dashboard?from=2026-11-01&format=png",
    ] {
        browser.delete_cookies();
        browser.open(path);
        browser.until("the sign-in is asked for", || {
            browser.path().starts_with("/signin?next=")
        });
        // A mistyped password does not make it forget.
        fill_in(&browser, "a wrong one");
        browser.wait_for_text("The address or the password is wrong.");
        fill_in(&browser, PASSWORD);
        browser.wait_for_path(path);
    }
    for next in [
        "//example.org",
        "https://example.org/tokens",
        "/\\example.org",
        "javascript:alert(1)",
        "/signout",
    ] {
        browser.delete_cookies();
        let query: String = form_urlencoded::Serializer::new(String::new())
            .append_pair("next", next)
            .finish();
        browser.open(&format!("/signin?{query}"));
        fill_in(&browser, PASSWORD);
        browser.wait_for_path("/dashboard");
    }
}

#[test]
fn common_passwords_and_days_that_are_over_are_rejected() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.expect_on_console("status of 400");
    browser.open("/signup");
    fill_in(&browser, "Password1");
    browser.wait_for_text("The password is one of the most common ones");
    fill_in(&browser, PASSWORD);
    browser.wait_for_path("/dashboard");
    browser.open("/tokens");
    browser.click("#create");
    browser.fill("#new input[name=name]", "shop");
    let set = "const field = document.querySelector('#new [name=ends]'); \
         field.value = '2020-01-31'; return [field.checkValidity(), field.min.length]";
    assert_eq!(browser.run(set, &[]), serde_json::json!([false, 10]));
    // Past what the browser checks.
    browser.run("document.querySelector('#new form').noValidate = true", &[]);
    browser.click("#new button");
    browser.wait_for_text("was given, which is over; allowed is today (UTC) or a later day");
    assert_eq!(browser.value("#new input[name=name]"), "shop");
    // One that ends today works until its end.
    browser.run(
        "document.querySelector('#new [name=ends]').value = new Date().toISOString().slice(0, 10)",
        &[],
    );
    browser.click("#new button");
    browser.wait_for_text("The token shop is created.");
}
