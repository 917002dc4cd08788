//! The pages in Chromium, driven by W3C `WebDriver` as people use them.
//!
//! Every test has a server and a browser of its own. A message on the browser's console, such as a
//! violation of the pages' content security policy, fails a test that does not expect it. Without
//! Chromium and its driver the tests are skipped ([`support::skip`]).

#[path = "../support/mod.rs"]
mod support;

mod axe;
mod charts;
mod chromium;
mod contrast;
mod convert;
mod convert_layout;
mod convert_many;
mod convert_snippets;
mod converter;
mod difference;
mod docs;
mod equipment;
mod figures;
mod journeys;
mod local;
#[allow(dead_code, reason = "it is made for tests to come")]
mod page;
mod preset;
mod problems;
mod second_factor;
mod secrets;
mod settings;
mod sweep;
mod theme;
mod tokens;
mod usage;
mod visitor;
mod way_back;
mod webdriver;
