//! Pages for failed requests: the problem in words for people, and the next step. The code and the
//! text for programmers stand below in small.

use super::document::{Viewer, card};
use super::duration::duration;
use super::paths;
use crate::store::RequestId;
use maud::{Markup, html};

/// A request that could not be answered as intended.
pub struct Trouble<'a> {
    /// The status code.
    pub status: u16,
    /// The problem's code in the API.
    pub code: &'a str,
    /// The problem's title in the API.
    pub title: &'a str,
    /// The sentence of the API, which is for programmers.
    pub detail: &'a str,
    /// Seconds after which it is worth trying again, if that is known.
    pub retry_after: Option<u64>,
    /// The id by which the operator finds the request in the log.
    pub request_id: RequestId,
    /// Where it may be tried again.
    pub again: Again,
}

/// Where a request may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// At its own address, if it is one that may pass.
    Here,
    /// On the page of this path, by a link of this name. An empty path is that of the request.
    At(&'static str, &'static str),
    /// On no page that is known.
    Nowhere,
}

/// The title and the text of a problem, where the API's words are for programmers.
struct Words {
    code: &'static str,
    title: &'static str,
    what: &'static str,
}

/// Makes the table from a code, a title and a text in each row.
macro_rules! words {
    ($($code:literal: $title:literal, $what:literal;)+) => {
        /// Problems that people meet. Others have the API's own words.
        const WORDS: &[Words] = &[$(
            Words { code: $code, title: $title, what: $what },
        )+];
    };
}

words! {
    "not_found": "There is nothing here",
        "The address may be mistyped, or what was here has moved.";
    "method_not_allowed": "There is no page here",
        "This address takes what forms and programs send.";
    "cross_site_form": "The form came from another site",
        "Nothing was changed. If you have sent it, open the page here, and send the form from there.";
    "invalid_form": "The form could not be read",
        "Nothing was changed. Load the page with the form again, and send it once more.";
    "token_missing": "You are signed out",
        "The session has ended, here or from another browser. Sign in, and ask again.";
    "token_invalid": "The token is out of date",
        "It was replaced or deleted since the page was loaded. Load the page again, and repeat what you did.";
    "account_disabled": "The account may not convert",
        "The server's operator has disabled it. Only they can change that.";
    "body_too_large": "That was too large",
        "The server takes no more at a time. Choose a smaller picture, or shorten what you have typed.";
    "too_much_memory": "The picture is too large for this server",
        "Choose a smaller one.";
    "storage_unavailable": "Nothing can be saved at the moment",
        "The server cannot write to its storage, so nothing was changed. That does not depend on you.";
    "busy": "The server is busy",
        "More is being done at the moment than there is room for.";
    "too_many_connections": "There are too many connections",
        "The server, or your network, has as many connections as are allowed.";
    "conversion_timeout": "The conversion took too long",
        "Choose a smaller picture or a lower effort, or try again when the server is less busy.";
    "request_timeout": "It took too long to arrive",
        "The connection is slow, or was interrupted.";
    "body_cut_short": "It did not arrive whole",
        "The connection was interrupted while the browser was sending.";
    "head_too_large": "The browser has sent too much",
        "The address is too long, or there are too many cookies. Delete the cookies of this site, and try again.";
    "target_too_long": "The address is too long",
        "Open the page by the links below.";
    "internal_error": "Something went wrong here",
        "It is a fault of the server, not yours. Try again. If it happens again, tell the server's operator the \
         name of the request, which stands below.";
    "not_ready": "The server is not ready",
        "It cannot convert or save anything at the moment.";
}

/// The page. It shows nothing of an account, and so does not read the store: the event loop makes
/// it, too.
pub fn trouble(trouble: &Trouble<'_>) -> Markup {
    let words = WORDS.iter().find(|words| words.code == trouble.code);
    let title = words.map_or(trouble.title, |words| words.title);
    let content = html! {
        p { (words.map_or(trouble.detail, |words| words.what)) }
        // The text about a body that is too large has the limit.
        @let is_limit = trouble.status == 413;
        @if is_limit && words.is_some() { p { (trouble.detail) } }
        // The API's sentences have the time in them.
        @if let (Some(_), Some(seconds)) = (words, trouble.retry_after) {
            p { "Try again in " (duration(seconds)) "." }
        }
        p.actions {
            @if trouble.status == 401 {
                a.button href=(paths::SIGN_IN) { "Sign in" }
            }
            @match trouble.again {
                Again::Here if may_pass(trouble.status) => a.button href="" { "Try again" },
                Again::At(path, name) => a.button href=(path) { (name) },
                Again::Here | Again::Nowhere => {}
            }
            a.button.secondary href=(paths::DASHBOARD) { "Dashboard" }
            a.button.secondary href=(paths::START) { "Start page" }
        }
        p.hint {
            (trouble.status) " " code { (trouble.code) }
            @if words.is_some() && !is_limit { ": " (trouble.detail) }
        }
        @if trouble.status >= 500 {
            p.hint { "Request " code { (trouble.request_id) } }
        }
    };
    card(title, Viewer::Guest, &content)
}

/// Whether the same request may be answered at another time.
fn may_pass(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(status: u16, code: &str, retry_after: Option<u64>, again: Again) -> String {
        let page = Trouble {
            status,
            code,
            title: "The title of the API",
            detail: "Its <detail>.",
            retry_after,
            request_id: RequestId(0x0f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0),
            again,
        };
        trouble(&page).into_string()
    }

    #[track_caller]
    fn has(page: &str, present: &[&str], absent: &[&str]) {
        for text in present {
            assert!(page.contains(text), "{text} is missing: {page}");
        }
        for text in absent {
            assert!(!page.contains(text), "{text} is there: {page}");
        }
    }

    #[test]
    fn people_are_told_what_to_do_next() {
        has(
            &page(404, "not_found", None, Again::Here),
            &[
                "There is nothing here",
                "Its &lt;detail&gt;.",
                "not_found",
                "href=\"/dashboard\"",
            ],
            &["Try again", "The title of the API", "0f1e2d"],
        );
        has(
            &page(503, "busy", Some(90), Again::Here),
            &[
                "Try again in 1 minute and 30 seconds.",
                "href=\"\"",
                "0f1e2d",
            ],
            &["href=\"/signin\" class=\"button\""],
        );
        has(
            &page(500, "internal_error", None, Again::Nowhere),
            &[
                "tell the server's operator",
                "Request <code>0f1e2d3c4b5a69788796a5b4c3d2e1f0</code>",
            ],
            &["href=\"\""],
        );
        has(
            &page(401, "token_missing", None, Again::Here),
            &["class=\"button\" href=\"/signin\"", "You are signed out"],
            &["href=\"\"", "0f1e2d"],
        );
        has(
            &page(
                413,
                "body_too_large",
                None,
                Again::At("", "Back to the form"),
            ),
            &["Back to the form", "<p>Its &lt;detail&gt;.</p>"],
            &["Try again"],
        );
    }

    #[test]
    fn other_problems_have_the_words_of_the_api() {
        has(
            &page(
                429,
                "too_many_attempts",
                Some(7),
                Again::At("", "Back to the form"),
            ),
            &[
                "<h1>The title of the API</h1>",
                "<p>Its &lt;detail&gt;.</p>",
            ],
            &["7 seconds"],
        );
    }
}
