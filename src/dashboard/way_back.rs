//! Back to where somebody wanted to go before they had to sign in.

use super::context::PageContext;
use super::outcome::Outcome;
use super::paths;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::borrow::Cow;

/// The pages that a sign-in may lead to.
const PAGES: [&str; 6] = [
    paths::DASHBOARD,
    paths::CONVERTING,
    paths::TOKENS,
    paths::ACCOUNT,
    paths::SECOND_FACTOR,
    paths::SESSIONS,
];

/// The most bytes of a target.
const MAX_TARGET: usize = 1000;

/// Leads to the sign-in, and from there back to the page of this request.
pub fn sign_in_first(context: &PageContext<'_>) -> Outcome {
    Outcome::redirect(match to_page(context.target) {
        Some(target) if target != paths::DASHBOARD => {
            format!("{}?next={}", paths::SIGN_IN, escaped(target))
        }
        _ => paths::SIGN_IN.to_owned(),
    })
}

/// Leads to the sign-in, with a notice that a form of an ended session did nothing, and from there
/// back to the page of that form.
pub fn signed_out(page: &'static str) -> Outcome {
    let next = escaped(page);
    Outcome::redirect(format!("{}?ended=yes&next={next}", paths::SIGN_IN))
}

/// Where to go after the sign-in: the target that came with it, if it is one of our own pages, else
/// the dashboard.
pub fn after_sign_in(target: &str) -> Cow<'static, str> {
    to_page(target).map_or(paths::DASHBOARD.into(), |target| target.to_owned().into())
}

/// The target, if it is one of [`PAGES`] with any query: it comes from outside, and must lead to no
/// other site.
fn to_page(target: &str) -> Option<&str> {
    let path = target.split('?').next().unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\' && byte != b'#';
    let is_page = PAGES.contains(&path) && target.len() <= MAX_TARGET;
    (is_page && target.bytes().all(is_plain)).then_some(target)
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_leads_to_our_own_pages_alone() {
        for target in [
            "/tokens",
            "/dashboard/convert",
            "/dashboard?from=2026-11-01&token_name=a%20b",
            "/sessions?done=//example.org",
        ] {
            assert_eq!(after_sign_in(target), target);
        }
        let long = format!("/tokens?{}", "x".repeat(1000));
        for target in [
            "",
            "//example.org",
            "//example.org/tokens",
            "/\\example.org",
            "\\\\example.org/tokens",
            "https://example.org/tokens",
            "https:/tokens",
            "javascript:alert(1)",
            "/tokens@example.org",
            "/tokens/../signout",
            "/tokens#x",
            "/tokens?a\r\nSet-Cookie: a=b",
            "/tokens?a b",
            "/tokens?é",
            "/tokens\t",
            " /tokens",
            "/signout",
            "/token/delete",
            "/api/usage.csv",
            "tokens",
            &long,
        ] {
            assert_eq!(after_sign_in(target), paths::DASHBOARD, "{target:?}");
        }
    }
}
