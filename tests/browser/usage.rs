//! The dashboard: figures, charts, filters and times against what was converted; the first visit;
//! tokens, account and sessions by their forms.

use crate::chromium::Options;
use crate::page::{Browser, POLICY_IGNORED, Theme, key};
use crate::support::Server;
use crate::support::picture::Picture;
use crate::visitor::{self, OWNER, PASSWORD};
use serde_json::{Value, json};

/// Converts a picture of this many pixels a side, and gives the sizes before and after.
fn convert(server: &Server, token: &str, format: &str, side: u32) -> [usize; 2] {
    let picture = Picture::waves(side, side);
    let body = match format {
        "bmp" => picture.bmp(),
        _ => picture.png(),
    };
    let sent = body.len();
    let answer = server
        .request("POST", "/convert")
        .header("Authorization", &format!("Bearer {token}"))
        .header("Content-Type", &format!("image/{format}"))
        .body(body)
        .send();
    assert_eq!(answer.status, 200, "{}", answer.text());
    [sent, answer.body.len()]
}

/// What a page of the API says to the browser's session.
fn api(browser: &Browser, path: &str) -> Value {
    browser.run_async(
        "return await (await fetch(arguments[0])).json()",
        &[json!(path)],
    )
}

#[test]
fn the_first_conversion_appears_while_the_page_is_open() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    assert!(browser.is_shown("#first-steps") && !browser.is_shown("#totals"));
    browser.wait_for_text("Waiting for your first conversion");
    assert!(browser.text("#curl").contains("Bearer twp_••••••••"));
    let [input, output] = convert(&server, &token, "png", 40);
    let saved = format!("It works: {} bytes saved", input - output);
    browser.until("the conversion is told", || {
        browser.text("#waiting").replace(',', "").contains(&saved)
    });
    browser.click("#look-again");
    browser.until("the figures are there", || browser.is_shown("#totals"));
    assert!(!browser.is_shown("#first-steps"));
    assert!(browser.is_shown("#chart svg"));
    assert_eq!(browser.faults_on_console(), [""; 0]);
}

#[test]
fn a_row_is_found_by_the_name_that_its_response_had() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    let name = |body: Vec<u8>| {
        let answer = server
            .request("POST", &format!("/convert?token={token}"))
            .header("Content-Type", "image/png")
            .body(body)
            .send();
        answer.header("x-request-id").expect("a name").to_owned()
    };
    for (list, body) in [
        ("#history", Picture::waves(20, 10).png()),
        ("#failures", b"no picture".to_vec()),
    ] {
        let [older, newest] = [body.clone(), body].map(name);
        browser.until("both are listed", || {
            browser.open("/dashboard");
            browser.all(&format!("{list} .request")).len() == 2
        });
        let link = format!("#request-{older} .request");
        browser.run(
            "document.querySelector('#failures details')?.setAttribute('open', '')",
            &[],
        );
        let width = || browser.find(&link).property("clientWidth").parse::<u32>();
        let short = width().expect("a number");
        browser.click(&link);
        browser.until("the row is the one of the address", || {
            browser.all("tr:target").len() == 1
        });
        assert_eq!(browser.texts(&format!("{list} .request")), [&*older]);
        assert!(browser.is_shown(&link) && browser.all(&format!("#request-{newest}")).is_empty());
        assert!(
            width().expect("a number") > short,
            "all of the name is shown"
        );
    }
}

#[test]
fn whoever_is_signed_out_while_waiting_is_told() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    visitor::sign_up(&browser);
    browser.expect_on_console("401");
    browser.delete_cookies();
    browser.wait_for_text("You are signed out.");
    browser.click("#waiting a");
    browser.wait_for_path("/signin");
}

#[test]
fn figures_and_charts_are_those_of_the_conversions() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    let sizes = [("png", 30), ("png", 50), ("bmp", 20)]
        .map(|(format, side)| convert(&server, &token, format, side));
    let [input, output] = [0, 1].map(|at| sizes.iter().map(|size| size[at]).sum::<usize>());
    browser.open("/dashboard");
    let days = api(&browser, "/api/usage/days");
    let today = &days["sums"][0];
    assert_eq!(today["conversions"], 3, "{days}");
    assert_eq!(today["input_bytes"], input, "{days}");
    let totals = browser.text("#totals");
    assert!(totals.starts_with("Bytes saved"), "{totals}");
    let percent = (input - output) * 100 / input;
    assert!(totals.contains(&format!("{percent} %")), "{totals}");

    let rows = browser.texts("#chart tbody tr");
    assert_eq!(rows.len(), 31);
    let day = today["day"].as_str().expect("a day");
    assert!(rows[0].starts_with(&format!("{day}3")), "{rows:?}");
    assert!(rows[1].contains("0 B"), "a day without any: {rows:?}");
    // One of three charts is shown, and more than 90 days are shown by month.
    for chart in ["bytes", "saved", "conversions"] {
        browser.click(&format!("#chart [value={chart}]"));
        let shown = "return [...document.querySelectorAll('#chart .plot')] \
             .filter((plot) => plot.checkVisibility()).map((plot) => plot.className)";
        assert_eq!(browser.run(shown, &[]), json!([format!("plot {chart}")]));
    }
    browser.open("/dashboard?from=2026-01-01");
    let months = browser.texts("#chart tbody tr");
    assert!(months.len() >= 10, "{months:?}");
    assert!(
        months[0].starts_with(&format!("{}3", &day[..7])),
        "{months:?}"
    );
    browser.click(".presets a");
    browser.until("there are changes", || {
        browser.texts("#totals .change") == ["none before"; 4]
    });
    browser.open("/dashboard");
    let shares = browser.texts("#by-format tbody td:first-child");
    assert_eq!(shares, ["png", "bmp"]);

    // The bar of today is as high as the chart of up to 3 in steps of 1; the others are none.
    let bars = browser.run(
        "return [...document.querySelectorAll('#chart .plot.conversions rect.out')]
            .map((bar) => [bar.getAttribute('x'), bar.getAttribute('height')])",
        &[],
    );
    assert_eq!(bars, json!([["301", "100.0"]]));
    browser.run("document.querySelector('#chart svg').focus()", &[]);
    browser.press(&[key::LEFT]);
    let told = browser.text("#chart .plot.conversions .tip");
    assert!(
        told.contains(day) && told.contains("3 conversions"),
        "{told}"
    );
    browser.press(&[key::LEFT]);
    let told = browser.text("#chart .plot.conversions .tip");
    assert!(told.contains("0 conversions"), "{told}");
    assert_eq!(browser.faults_on_console(), [""; 0]);
}

#[test]
fn filters_hold_for_charts_history_and_export() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    for (format, side) in [("png", 30), ("png", 50), ("bmp", 20)] {
        convert(&server, &token, format, side);
    }
    browser.open("/dashboard");
    browser.click(".filter summary");
    browser.run(
        "document.querySelector('#format').value = 'bmp'; document.querySelector('.filter form').requestSubmit()",
        &[],
    );
    browser.wait_for_text("1 conversion of this filter");
    assert_eq!(browser.texts("#history tbody tr").len(), 1);
    let days = browser.texts("#chart tbody tr:first-child td:nth-child(2)");
    assert_eq!(days, ["1"]);
    browser.click(".presets a");
    browser.until("seven days are shown", || {
        browser.texts("#chart tbody tr").len() == 7
    });
    let path = browser.path();
    assert!(
        path.contains("format=bmp") && path.contains("from="),
        "{path}"
    );
    let link = browser.find("#history .title a").attribute("href");
    let link = link.expect("a link");
    let csv = browser.run_async(
        "return await (await fetch(arguments[0])).text()",
        &[json!(link)],
    );
    assert_eq!(csv.as_str().expect("text").lines().count(), 2, "{csv}");
}

/// The text and the title of a time, and the same moment by the browser's own calendar in Tokyo and
/// in UTC.
const ZONES: &str = "
const time = document.querySelector(arguments[0]);
const parts = (timeZone) => {
    const two = '2-digit', style = { timeZone, hourCycle: 'h23', year: 'numeric' };
    Object.assign(style, { month: two, day: two, hour: two, minute: two, second: two });
    const parts = new Intl.DateTimeFormat('en', style).formatToParts(new Date(time.dateTime));
    const part = (type) => parts.find((part) => part.type === type).value;
    return `${part('year')}-${part('month')}-${part('day')} ${part('hour')}:${part('minute')}:${part('second')}`;
};
return [time.textContent, time.title, parts('Asia/Tokyo'), `${parts('UTC')} UTC`];";

#[test]
fn times_are_local_with_utc_on_hover() {
    let server = Server::start();
    let options = Options {
        time_zone: "Asia/Tokyo",
        ..Options::default()
    };
    let Some(browser) = Browser::start_with(&server, options) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    convert(&server, &token, "png", 30);
    let answer = server
        .request("POST", &format!("/convert?token={token}"))
        .header("Content-Type", "image/png")
        .body(b"no picture".to_vec())
        .send();
    assert_eq!(answer.status, 400);
    let zones = |path: &str, css: &str| -> [String; 4] {
        browser.open(path);
        serde_json::from_value(browser.run(ZONES, &[json!(css)])).expect("four texts")
    };
    for (path, css) in [
        ("/dashboard", "#history time"),
        ("/dashboard", "#reasons time"),
        ("/dashboard", "#failures details time"),
        ("/sessions", "[data-label^='Signed in'] time"),
        ("/tokens", ".menu time"),
    ] {
        let seen = zones(path, css);
        assert_eq!(seen[..2], seen[2..], "{path}: {css}");
        let labels = "return [...document.querySelectorAll('th, [data-label]')] \
             .map((cell) => (cell.dataset.label ?? '') + cell.textContent).join()";
        let labels = browser.run(labels, &[]).to_string();
        assert!(!labels.contains("(UTC)"), "{path}: {labels}");
    }
    // Words such as "2 minutes ago" have both times on hover.
    for path in ["/tokens", "/sessions"] {
        let [_, title, local, utc] = zones(path, "[data-label='Last used'] time");
        assert_eq!(title, format!("{local} here, {utc}"), "{path}");
    }
    browser.open("/dashboard");
    let days = browser.texts(".filter label");
    assert!(days[0].contains("UTC"), "days are those of UTC: {days:?}");
}

#[test]
fn without_script_times_are_utc() {
    let server = Server::start();
    let options = Options {
        time_zone: "Asia/Tokyo",
        ..Options::without_script()
    };
    let Some(browser) = Browser::start_with(&server, options) else {
        return;
    };
    convert(&server, &visitor::sign_up(&browser), "png", 30);
    browser.open("/dashboard");
    let seen = browser.find("#history time");
    let utc = seen.attribute("datetime").expect("it has one");
    assert_eq!(seen.text(), utc.replace('T', " ").trim_end_matches('Z'));
    assert!(
        browser
            .texts("#history th")
            .contains(&"Time (UTC)".to_owned())
    );
}

#[test]
fn a_token_is_made_replaced_and_deleted_by_its_forms() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    visitor::sign_up(&browser);
    browser.open("/tokens");
    browser.click("#create");
    browser.fill("#new input[name=name]", "shop");
    browser.click("#new button");
    browser.wait_for_text("The token shop is created.");
    let (told_at, field) = (browser.path(), "input[aria-label='Token shop']");
    let revealed = || {
        browser.click(&format!("form:has({field}) [type=submit]"));
        browser.until("the token is revealed", || {
            !browser.value(field).contains('•')
        });
        browser.value(field)
    };
    let made = revealed();
    convert(&server, &made, "png", 20);
    let open = |form: &str| {
        let script = "const form = document.querySelectorAll(`form[action='${arguments[0]}']`);
            const last = form[form.length - 1];
            last.closest('details').open = true;
            last.querySelector('[type=checkbox]').click();
            last.querySelector('button').click()";
        browser.run(script, &[json!(form)]);
    };
    open("/token/rotate");
    browser.wait_for_text("The token shop is rolled.");
    let replaced = revealed();
    assert_ne!(replaced, made);
    open("/token/delete");
    browser.wait_for_text("The token shop is deleted");
    assert!(browser.all(field).is_empty());
    browser.open(&told_at);
    assert!(!browser.is_shown(".notice"), "it is not so any more");
}

#[test]
fn the_address_is_changed_on_the_page_of_the_account() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    visitor::sign_up(&browser);
    browser.click("nav a[href='/account']");
    browser.wait_for_path("/account");
    assert_eq!(browser.text("nav [aria-current=page]"), "Account");
    browser.fill("#new-email", "new@example.org");
    browser.fill("#email-password", PASSWORD);
    browser.click("#email [type=submit]");
    browser.wait_for_text("From now on you sign in as new@example.org");
    browser.click("main a");
    browser.wait_for_path("/account");
    assert!(browser.text("#email").contains("new@example.org"));
}

#[test]
fn what_was_typed_outlasts_a_session_that_ends_in_another_tab() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    visitor::sign_up(&browser);
    browser.open("/tokens");
    browser.click("#create");
    browser.fill("#new input[name=name]", "shop");
    let [first, second] = browser.new_tab();
    browser.open("/dashboard");
    visitor::sign_out(&browser);
    browser.turn_to(&first);
    browser.click("#new button");
    browser.wait_for_text("You are signed out, so this was not sent.");
    assert_eq!(browser.value("#new input[name=name]"), "shop");
    browser.turn_to(&second);
    visitor::sign_in(&browser);
    browser.turn_to(&first);
    browser.click("#new button");
    browser.wait_for_text("The token shop is created.");
    assert!(browser.page_text().contains(OWNER));
}

#[test]
fn without_script_a_form_of_an_ended_session_says_that_nothing_was_changed() {
    let server = Server::start();
    let Some(browser) = Browser::start_with(&server, Options::without_script()) else {
        return;
    };
    visitor::sign_up(&browser);
    browser.open("/account");
    browser.delete_cookies();
    browser.click("#sessions form button");
    browser.wait_for_path("/signin?ended=yes&next=%2Fsessions");
    assert!(browser.text("[role=alert]").contains("nothing was changed"));
}

/// Browsers have the newer way to copy on https and localhost only.
#[test]
fn the_token_is_copied_on_plain_http_too() {
    let server = Server::start();
    let options = Options {
        host: Some("towebp.test"),
        ..Options::default()
    };
    let Some(browser) = Browser::start_with(&server, options) else {
        return;
    };
    browser.expect_on_console(POLICY_IGNORED);
    let token = visitor::sign_up(&browser);
    browser.until_copied("button[data-copy=token]", || {
        browser.click("button[data-copy=token]");
    });
    browser.open("/account");
    browser.click("#new-email");
    browser.press(&[key::CONTROL, 'v']);
    assert_eq!(browser.value("#new-email"), token);
}

#[test]
fn on_a_phone_a_full_dashboard_is_short() {
    let server = Server::start_with(&["--monthly-quota", "1000"]);
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    for side in 1..=60 {
        convert(&server, &token, "png", side);
    }
    browser.show_as(360, Theme::Light);
    browser.open("/dashboard");
    browser.screenshot("dashboard-full-360");
    let height = browser.run("return document.documentElement.scrollHeight", &[]);
    assert!(height.as_u64() <= Some(3000), "{height} pixels");
}
