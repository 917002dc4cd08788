//! The pages in Chromium, driven by W3C `WebDriver` as people use them.
//!
//! Every test has a server and a browser of its own. A message on the browser's console, such as a
//! violation of the pages' content security policy, fails a test that does not expect it. Without
//! Chromium and its driver the tests are skipped, which standard error says; with
//! `TOWEBP_SKIP_NOTHING` or `CI` in the environment they fail.

#[path = "../support/mod.rs"]
mod support;

mod axe;
mod chromium;
mod convert;
mod convert_snippets;
mod equipment;
mod figures;
mod journeys;
#[allow(dead_code, reason = "it is made for tests to come")]
mod page;
mod problems;
mod sweep;
mod usage;
mod visitor;
mod webdriver;
