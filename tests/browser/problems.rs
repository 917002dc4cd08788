//! What cannot be done is said on a page: what happened, in words for people, and what to do next.

use crate::page::Browser;
use crate::support::{Folder, Server};
use crate::sweep::look_at_shown;
use crate::visitor;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// Sends a form with this value of a field, past what the page itself checks.
const SEND: &str = "
const form = document.querySelector(arguments[0]);
for (const field of form.querySelectorAll('input')) field.removeAttribute('maxlength');
Object.assign(form.elements[arguments[1]], { type: 'text', value: arguments[2] });
form.submit();";

/// Waits for the page of a problem, and looks at it in every width and theme.
#[track_caller]
fn problem(browser: &Browser, name: &str, texts: &[&str]) {
    browser.wait_for_text(texts[0]);
    browser.assert_says(texts);
    look_at_shown(browser, name);
}

/// The texts of the links that look like buttons.
#[track_caller]
fn next_steps(browser: &Browser) -> Vec<String> {
    let links = browser.all("main a.button");
    links.iter().map(crate::page::Element::text).collect()
}

#[test]
fn guests_are_told_what_to_do_next() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.expect_on_console("the server responded with a status of 4");

    browser.open("/no-such-page");
    problem(
        &browser,
        "problem-404",
        &["There is nothing here", "not_found"],
    );
    assert_eq!(next_steps(&browser), ["Dashboard", "Start page"]);

    browser.open("/convert");
    problem(
        &browser,
        "problem-405",
        &["There is no page here", "GET is not allowed here"],
    );
    browser.click("main a.button");
    browser.wait_for_path("/signin?next=%2Fdashboard%2Fconvert");

    browser.open("/api/usage.csv");
    problem(
        &browser,
        "problem-401",
        &["You are signed out", "Sign in, and ask again"],
    );
    browser.click("main a.button");
    browser.wait_for_path("/signin");

    browser.open("/signup");
    let long = "x".repeat(20_000);
    browser.run(SEND, &["main form".into(), "email".into(), long.into()]);
    problem(
        &browser,
        "problem-413",
        &["That was too large", "16384 bytes"],
    );
    assert_eq!(
        next_steps(&browser),
        ["Back to the form", "Dashboard", "Start page"]
    );
    browser.click("main a.button");
    browser.wait_for_text("Create an account");

    let form = format!(
        "data:text/html,<form method=post action='http://{}/signin'><input name=email></form>",
        server.address
    );
    browser.open_elsewhere(&form);
    browser.run("document.forms[0].submit()", &[]);
    problem(
        &browser,
        "problem-403",
        &["The form came from another site", "Nothing was changed"],
    );
}

#[test]
fn too_many_attempts_say_how_long_to_wait() {
    let server = Server::start_with(&["--signin-limit", "1"]);
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.expect_on_console("the server responded with a status of 4");
    visitor::try_sign_in(&browser, "wrong");
    browser.wait_for_text("The address or the password is wrong.");
    visitor::try_sign_in(&browser, "wrong");
    problem(
        &browser,
        "problem-429",
        &["There were too many attempts", "Try again in"],
    );
    assert_eq!(next_steps(&browser)[0], "Back to the form");
}

#[test]
fn people_who_are_signed_in_are_told_what_to_do_next() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.expect_on_console("the server responded with a status of 4");
    let token = visitor::sign_up(&browser);
    browser.open("/tokens?name=%FF");
    problem(&browser, "problem-400", &["Parameter name", "UTF-8"]);
    // The form of a page that was loaded in an earlier session.
    browser.open("/tokens");
    browser.run(
        SEND,
        &[
            "form[action='/token/rotate']".into(),
            "csrf".into(),
            "old".into(),
        ],
    );
    problem(
        &browser,
        "problem-403-stale",
        &["Please try again", "nothing was changed"],
    );
    browser.open("/dashboard");
    assert_eq!(visitor::token(&browser), token);
}

#[test]
fn a_full_disk_is_told_with_the_number_of_the_request() {
    let server = Server::start_warning(Folder::new(), &[]);
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.expect_on_console("the server responded with a status of 503");
    visitor::sign_up(&browser);
    visitor::sign_out(&browser);
    let process = i32::try_from(server.process_id()).expect("Linux has no more processes");
    // As in `tests/service/disk.rs`: the database cannot grow nor be written.
    let limit = Rlimit {
        current: Some(64 << 10),
        maximum: None,
    };
    prlimit(Pid::from_raw(process), Resource::Fsize, limit).expect("it is our own process");
    visitor::try_sign_in(&browser, visitor::PASSWORD);
    problem(
        &browser,
        "problem-503",
        &[
            "Nothing can be saved at the moment",
            "Try again in 10 seconds.",
            "Request ",
        ],
    );
    let request = browser.find("main p:last-child code").text();
    let is_hexadecimal = request.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(request.len() == 32 && is_hexadecimal, "{request}");
}
