//! What people do on several pages: sign up, sign in and out.

use crate::page::Browser;

pub const OWNER: &str = "owner@example.org";
pub const PASSWORD: &str = "correct horse battery";

/// Makes an account on the sign-up page, and gives its token.
#[track_caller]
pub fn sign_up(browser: &Browser) -> String {
    browser.open("/signup");
    browser.fill("input[name=email]", OWNER);
    browser.fill("input[name=password]", PASSWORD);
    browser.click("main button[type=submit]");
    browser.wait_for_path("/dashboard");
    token(browser)
}

/// The token, revealed on the page of the tokens. The dashboard is shown afterwards.
#[track_caller]
pub fn token(browser: &Browser) -> String {
    browser.open("/tokens");
    browser.click("form.reveal [type=submit]");
    let mut token = String::new();
    browser.until("the token is revealed", || {
        let value = browser.run("return (document.querySelector('#token') ?? document.querySelector('#token-0'))?.value", &[]);
        value.as_str().unwrap_or_default().clone_into(&mut token);
        token.starts_with("twp_") && !token.contains('•')
    });
    browser.open("/dashboard");
    token
}

/// Signs in on the sign-in page.
#[track_caller]
pub fn sign_in(browser: &Browser) {
    try_sign_in(browser, PASSWORD);
    browser.wait_for_path("/dashboard");
}

/// Sends the sign-in form with this password.
#[track_caller]
pub fn try_sign_in(browser: &Browser, password: &str) {
    browser.open("/signin");
    browser.fill("input[name=email]", OWNER);
    browser.fill("input[name=password]", password);
    browser.click("main button[type=submit]");
}

/// Signs out by the button of the header.
#[track_caller]
pub fn sign_out(browser: &Browser) {
    browser.click("header form[action='/signout'] button");
    browser.wait_for_path("/");
}

/// Sends the form that replaces the default token, on the page of the tokens, which is shown.
#[track_caller]
pub fn replace_token(browser: &Browser) {
    let form = "form[action='/token/rotate']";
    browser.click(".menu > summary");
    browser.click(&format!("details:has(> {form}) > summary"));
    browser.click(&format!("{form} input[type=checkbox]"));
    browser.click(&format!("{form} button"));
}
