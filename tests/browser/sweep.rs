//! These checks hold for all pages, at three widths and in both themes: nobody who uses assistive
//! technology stumbles, nothing is wider than the window, and the console stays empty. Pictures of
//! all of them are in `target/screenshots/` afterwards.
//!
//! The pages are those that links lead to, so a new one is looked at as soon as it is linked.

use crate::axe;
use crate::page::{Browser, Theme};
use crate::support::Server;
use crate::support::picture::Picture;
use crate::visitor;
use std::collections::BTreeSet;

/// A phone, a tablet and a laptop, in pixels.
const WIDTHS: [u32; 3] = [360, 768, 1280];

/// The paths of pages that the page links to.
const LINKS: &str = "
return [...document.querySelectorAll('a[href]:not([download])')]
    .filter((link) => link.origin === location.origin && !/^\\/api\\/|\\.json$/.test(link.pathname))
    .map((link) => link.pathname)";

/// What reaches over the right edge of a window of so many pixels, without that being scrolled by
/// itself.
const TOO_WIDE: &str = "
if (document.documentElement.scrollWidth <= arguments[0]) return [];
const wide = [...document.body.querySelectorAll('*')]
    .filter((one) => one.getBoundingClientRect().right > arguments[0] + 1);
return wide.slice(0, 5).map((one) => one.outerHTML.slice(0, 150));";

#[test]
fn pages_for_guests() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let looked_at = sweep_from(&browser, "/", &BTreeSet::new());
    for path in ["/", "/signin", "/signup"] {
        assert!(
            looked_at.contains(path),
            "no link leads to {path}: {looked_at:?}"
        );
    }
}

#[test]
fn pages_of_a_new_account() {
    let server = Server::start_with(&["--monthly-quota", "1000"]);
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    visitor::sign_up(&browser);
    look(&browser, "/dashboard", "dashboard-empty");
}

#[test]
fn pages_of_an_account_with_a_history() {
    let server = Server::start_with(&["--monthly-quota", "1000"]);
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    let token = visitor::sign_up(&browser);
    let convert = |parameters: &str, body: Vec<u8>| {
        let request = server.request("POST", &format!("/convert?token={token}{parameters}"));
        request
            .header("Content-Type", "image/png")
            .body(body)
            .send()
    };
    for quality in [5, 50, 95] {
        let answer = convert(
            &format!("&quality={quality}"),
            Picture::waves(240, 160).png(),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert_eq!(convert("", b"no picture".to_vec()).status, 400);
    assert_eq!(convert("&quality=900", b"no picture".to_vec()).status, 400);
    // What guests see, too, was looked at.
    let seen = ["/", "/docs"].map(str::to_owned).into();
    let looked_at = sweep_from(&browser, "/dashboard", &seen);
    for path in ["/dashboard", "/tokens", "/sessions", "/account"] {
        assert!(
            looked_at.contains(path),
            "no link leads to {path}: {looked_at:?}"
        );
    }
}

/// Without this, a sweep that finds nothing would mean nothing.
#[test]
fn faults_of_pages_are_found() {
    let server = Server::start();
    let Some(browser) = Browser::start(&server) else {
        return;
    };
    browser.open("/");
    assert_eq!(faults(&browser, 1280), [""; 0]);
    browser.run(
        "const image = document.createElement('img'); image.src = '/icon.svg'; image.width = 2000; \
         document.querySelector('main').append(image);",
        &[],
    );
    for width in [360, 1280] {
        browser.show_as(width, Theme::Light);
        let found = faults(&browser, width);
        assert!(
            found
                .iter()
                .any(|fault| fault.starts_with("wider than the window: <img")),
            "{width}: {found:?}"
        );
        if axe::script().is_some() {
            assert!(
                found.iter().any(|fault| fault.starts_with("image-alt: ")),
                "{width}: {found:?}"
            );
        }
    }
}

/// Looks at the page of this path and all that links lead to, but not at those of `seen` and
/// below. Gives the paths.
#[track_caller]
fn sweep_from(browser: &Browser, path: &str, seen: &BTreeSet<String>) -> BTreeSet<String> {
    let mut to_come = vec![path.to_owned()];
    let mut looked_at = BTreeSet::new();
    while let Some(path) = to_come.pop() {
        let is_seen = seen
            .iter()
            .any(|one| *one == path || path.starts_with(&format!("{one}/")) && one != "/");
        if is_seen || !looked_at.insert(path.clone()) {
            continue;
        }
        let name = path.trim_start_matches('/').replace('/', "-");
        let name = if name.is_empty() { "start" } else { &name };
        browser.open(&path);
        if browser.path().starts_with("/signin?next=") {
            // The text of a page links to one that guests are led away from.
            continue;
        }
        look(browser, &path, name);
        let links = browser.run(LINKS, &[]);
        let links = links.as_array().expect("a list").iter();
        to_come.extend(links.map(|path| path.as_str().expect("a path").to_owned()));
    }
    looked_at
}

/// Looks at one page in every width and theme.
#[track_caller]
pub fn look(browser: &Browser, path: &str, name: &str) {
    browser.open(path);
    assert_eq!(browser.path(), path, "the page leads elsewhere");
    look_at_shown(browser, name);
}

/// Looks at the page that is shown in every width and theme.
#[track_caller]
pub fn look_at_shown(browser: &Browser, name: &str) {
    // What is closed at first is a part of the page.
    browser.run(
        "for (const one of document.querySelectorAll('details')) one.open = true",
        &[],
    );
    let mut all = Vec::new();
    for (theme, theme_name) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
        for width in WIDTHS {
            browser.show_as(width, theme);
            browser.screenshot(&format!("{name}-{width}-{theme_name}"));
            let faults = faults(browser, width);
            all.extend(
                faults
                    .into_iter()
                    .map(|fault| format!("{width} pixels, {theme_name}: {fault}")),
            );
        }
    }
    browser.show_as(1280, Theme::Light);
    assert!(all.is_empty(), "{} has faults: {all:#?}", browser.path());
}

/// What is wrong with the page that is shown, in a window so many pixels wide.
#[track_caller]
fn faults(browser: &Browser, width: u32) -> Vec<String> {
    let mut faults = axe::complaints(browser);
    let wide = browser.run(TOO_WIDE, &[width.into()]);
    let wide = wide.as_array().expect("a list").iter();
    faults
        .extend(wide.map(|one| format!("wider than the window: {}", one.as_str().unwrap_or("?"))));
    faults
}
