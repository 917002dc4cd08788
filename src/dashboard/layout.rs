//! The frame around every page, the start page, and pages that only say something.

use super::{Outcome, Signup, Visit, page};
use crate::store::StoreError;
use maud::{DOCTYPE, Markup, html};

/// Who looks at a page: decides what its head offers.
#[derive(Clone, Copy)]
pub enum Viewer<'a> {
    /// Signed in, under this address; `csrf` goes into the sign-out form.
    Account {
        /// The account's address.
        email: &'a str,
        /// The session's secret.
        csrf: &'a str,
    },
    /// Not signed in.
    Guest,
}

/// A whole document.
pub fn document(title: &str, viewer: Viewer<'_>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · towebp" }
                link rel="icon" href="/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/style.css";
                script src="/app.js" defer {}
            }
            body {
                a.skip href="#content" { "Skip to content" }
                header {
                    nav aria-label="Main" {
                        a.brand href="/" { img src="/icon.svg" alt="" width="28" height="28"; "towebp" }
                        div.links {
                            @match viewer {
                                Viewer::Account { email, csrf } => {
                                    span.who title=(email) { (email) }
                                    form method="post" action="/signout" {
                                        input type="hidden" name="csrf" value=(csrf);
                                        button.quiet type="submit" { "Sign out" }
                                    }
                                }
                                Viewer::Guest => a href="/signin" { "Sign in" },
                            }
                        }
                    }
                }
                main #content { (content) }
                footer { "towebp " (env!("CARGO_PKG_VERSION")) " · PNG, JPEG, GIF and BMP to WebP" }
            }
        }
    }
}

/// A page that only says something, for example why there is no other.
pub fn message(title: &str, detail: &str) -> Markup {
    let content = html! {
        section.card.narrow {
            h1 { (title) }
            p { (detail) }
            p { a href="/" { "To the start page" } }
        }
    };
    document(title, Viewer::Guest, &content)
}

/// The start page: what this is, and how to begin.
///
/// # Errors
/// When the store fails.
pub fn landing(visit: &Visit<'_>) -> Result<Outcome, StoreError> {
    let session = visit.session()?;
    let content = html! {
        section.hero {
            h1 { "Pictures to WebP," br; "by one HTTP call." }
            p.lead {
                "Send a PNG, JPEG, GIF or BMP, get a WebP back: smaller, with transparency kept, and with a text or \
                 picture watermark if you like."
            }
            p.actions {
                @if session.is_some() {
                    a.button href="/dashboard" { "Open the dashboard" }
                } @else {
                    @if visit.signup != Signup::Closed { a.button href="/signup" { "Create an account" } }
                    a.button.secondary href="/signin" { "Sign in" }
                }
            }
        }
        section.card {
            (command(&html! { h2 { "One request" } }, "example", &curl_line(visit.base_url, "YOUR_TOKEN")))
            p { "The token is on your dashboard. These parameters go into the query, all of them optional:" }
            div.scroll {
                table.parameters {
                    thead { tr { th { "Parameter" } th { "Meaning" } th { "Default" } } }
                    tbody {
                        @for (name, meaning, default) in PARAMETERS {
                            tr { td { code { (name) } } td { (meaning) } td { (default) } }
                        }
                    }
                }
            }
        }
    };
    let viewer = match &session {
        Some(session) => Viewer::Account {
            email: &session.account.email,
            csrf: &session.csrf,
        },
        None => Viewer::Guest,
    };
    Ok(page(document("Pictures to WebP", viewer, &content)))
}

/// A command line under its heading, with a button that copies it.
pub fn command(heading: &Markup, id: &str, line: &str) -> Markup {
    html! {
        div.title {
            (heading)
            button.copy.secondary type="button" data-copy=(id) hidden { "Copy" }
        }
        pre tabindex="0" { code id=(id) { (line) } }
    }
}

/// A request that works once the file is there.
pub fn curl_line(base_url: &str, token: &str) -> String {
    format!(
        "curl -fsS '{base_url}/convert?token={token}' \\\n  -H 'Content-Type: image/png' --data-binary @picture.png \\\n  \
         -o picture.webp"
    )
}

/// The specification's parameter table and what was added to it, for people.
const PARAMETERS: [(&str, &str, &str); 13] = [
    (
        "quality",
        "0 to 100: higher looks better and is larger",
        "85",
    ),
    (
        "effort",
        "low, medium or high: more takes longer and looks better for the size",
        "medium",
    ),
    ("watermark", "Text to write onto the picture", "none"),
    ("watermark_size", "Its font size, 8 to 200", "24"),
    (
        "watermark_color",
        "white, black, red, blue, yellow, gray, #RRGGBB or #RGB; the # is written %23 in a URL, or left out",
        "white",
    ),
    (
        "watermark_outline",
        "none, outline or shadow: what sets the text off from its ground",
        "none",
    ),
    (
        "watermark_image",
        "URL of a PNG or JPEG to lay over the picture",
        "none",
    ),
    (
        "watermark_position",
        "topLeft, top, topRight, left, center, right, bottomLeft, bottom or bottomRight; bottom-right is read too",
        "bottomRight",
    ),
    ("watermark_opacity", "0 to 100", "50"),
    (
        "watermark_margin",
        "Pixels kept free beside it, or between tiles",
        "2 % of the shorter side",
    ),
    (
        "watermark_scale",
        "Percent of the picture's width that it takes, 1 to 100",
        "its own size",
    ),
    (
        "watermark_rotate",
        "Degrees to turn it clockwise, -360 to 360",
        "0",
    ),
    (
        "watermark_tile",
        "true or false: repeated over the whole picture",
        "false",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_outside_is_escaped() {
        let text = message("<script>alert(1)</script>", "a & \"b\" <img src=x>").into_string();
        assert!(
            !text.contains("<script>alert") && !text.contains("<img src=x"),
            "{text}"
        );
        assert!(
            text.contains("a &amp; &quot;b&quot; &lt;img src=x&gt;"),
            "{text}"
        );
        let viewer = Viewer::Account {
            email: "\"><b>@example.org",
            csrf: "\"x",
        };
        let text = document("t", viewer, &html! {}).into_string();
        assert!(
            !text.contains("<b>") && !text.contains("value=\"\"x\""),
            "{text}"
        );
    }

    #[test]
    fn nothing_is_inline_so_that_the_policy_can_forbid_it() {
        let text = message("t", "d").into_string();
        assert!(
            !text.contains("style=") && !text.contains("<style") && !text.contains("onclick"),
            "{text}"
        );
    }
}
