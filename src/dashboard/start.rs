//! The start page.

use super::context::{PageContext, Signup};
use super::document::{Viewer, command, curl_command, document};
use super::outcome::Outcome;
use super::paths;
use crate::store::StoreError;
use maud::html;

/// The start page: what the service is, and how to begin.
///
/// # Errors
/// The store failed.
pub fn start(context: &PageContext<'_>) -> Result<Outcome, StoreError> {
    let session = context.session()?;
    let curl = curl_command(context.base_url, "YOUR_TOKEN");
    let content = html! {
        section.hero {
            h1 { "Pictures to WebP," br; "by one HTTP call." }
            p.lead {
                "Send a PNG, JPEG, GIF or BMP, get a WebP back: smaller, with transparency kept, and with a text or \
                 picture watermark if you like."
            }
            p.actions {
                @if session.is_some() {
                    a.button href=(paths::DASHBOARD) { "Open the dashboard" }
                } @else {
                    @if context.signup != Signup::Closed {
                        a.button href=(paths::SIGN_UP) { "Create an account" }
                    }
                    a.button.secondary href=(paths::SIGN_IN) { "Sign in" }
                }
            }
        }
        section.card {
            (command(&html! { h2 { "One request" } }, "example", &curl))
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
    let viewer = session.as_ref().map_or(Viewer::Guest, Viewer::of);
    Ok(Outcome::page(document(
        "Pictures to WebP",
        viewer,
        &content,
    )))
}

/// The parameters for people: name, meaning and default. A test holds names and defaults to those
/// of the conversion.
pub const PARAMETERS: [(&str, &str, &str); 15] = [
    (
        "quality",
        "0 to 100: higher looks better and is larger",
        "85",
    ),
    (
        "max_bytes",
        "The most bytes of the file, as 100k or 2M: the best quality that fits is taken",
        "none",
    ),
    (
        "target",
        "30 to 95: the smallest file that looks at least so good, by SSIMULACRA2",
        "none",
    ),
    (
        "effort",
        "low, medium, high or max: more takes longer and looks better for the size",
        "medium",
    ),
    ("watermark", "Text to write onto the picture", "none"),
    (
        "watermark_size",
        "Its font size: 8 to 200, auto, or a percentage of the shorter side such as 3%; the % is written %25 in a URL",
        "24",
    ),
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
        "Pixels kept free beside it, or between tiles, or a percentage of the shorter side",
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
