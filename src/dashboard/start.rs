//! The start page.

use super::MODULE;
use super::context::{PageContext, Signup};
use super::document::{Viewer, command, curl_command, document_with};
use super::outcome::Outcome;
use super::paths;
use super::units::size;
use crate::store::StoreError;
use maud::{Markup, html};
use towebp_pipeline::conversion::{DefaultValue, PARAMETERS, Parameter};

/// The parameters that most requests need; the documentation has all of them.
const SHOWN: [&str; 5] = ["quality", "max_bytes", "width", "effort", "watermark"];

/// What the encoder was measured at, in `benches/README.md`.
const FIGURES: [(&str, &str); 3] = [
    (
        "19 %",
        "fewer bytes than libwebp's default at the same look, at medium effort, for photographs that nobody tuned on",
    ),
    (
        "90 %",
        "of the bytes of cwebp -lossless for screenshots and charts without loss",
    ),
    (
        "1 file",
        "to install: no C library, no database, no container that has to be",
    ),
];

/// Bytes of the picture that the start page shows, before and after.
const SAMPLE_BYTES: [u64; 2] = [
    include_bytes!("../../testdata/chelsea.jpg").len() as u64,
    include_bytes!("../../testdata/chelsea.webp").len() as u64,
];

/// The start page: what the service is, and how to begin.
///
/// # Errors
/// The store failed.
pub fn start(context: &PageContext<'_>) -> Result<Outcome, StoreError> {
    let session = context.session()?;
    let curl = curl_command(context.base_url, "YOUR_TOKEN");
    let content = html! {
        section.hero {
            div {
                h1 { "Pictures to WebP," br; "by one HTTP call." }
                p.lead {
                    "Send a PNG, JPEG, GIF or BMP, get a WebP back: smaller, with transparency and animation kept, and with \
                     a text or picture watermark if you like."
                }
                p.actions {
                    @if session.is_some() {
                        a.button href=(paths::CONVERTING) { "Convert pictures" }
                        a.button.secondary href=(paths::DASHBOARD) { "Open the dashboard" }
                    } @else {
                        @if context.signup != Signup::Closed {
                            a.button href=(paths::SIGN_UP) { "Create an account" }
                        }
                        a.button.secondary href=(paths::SIGN_IN) { "Sign in" }
                    }
                }
            }
            (comparison(context, MODULE.map(|_| paths::BROWSER)))
        }
        dl.claims {
            @for (figure, meaning) in FIGURES { div { dt { (figure) } dd { (meaning) } } }
        }
        section.card {
            (command(&html! { h2 { "One request" } }, "example", &curl))
            p { "The token is on your dashboard. Parameters go into the query, and all of them are optional:" }
            div.scroll {
                table.parameters {
                    thead { tr { th { "Parameter" } th { "Meaning" } th { "Default" } } }
                    tbody { @for row in shown() { (parameter(row)) } }
                }
            }
            p.hint {
                a href={ (paths::DOCS_API) "#parameters" } { "All parameters" } " · " a href=(paths::DOCS) { "Documentation" }
                " · " a href=(paths::OPENAPI) { "OpenAPI" }
            }
        }
    };
    let viewer = session.as_ref().map_or(Viewer::Guest, Viewer::of);
    let title = "Pictures to WebP";
    let page = document_with(paths::START_SCRIPT, title, viewer, &content);
    Ok(Outcome::page_that_converts(page, None))
}

/// A picture that the service has converted, before and after. With the module, the visitor's own
/// browser converts and compares another one in its place, without an account.
fn comparison(context: &PageContext<'_>, module: Option<&str>) -> Markup {
    let [before, after] = SAMPLE_BYTES;
    html! {
        section.card.try #try data-module=[module] {
            div.labels {
                p.badge #before-label { "JPEG · " (size(before)) }
                p.badge #after-label { "WebP · " (size(after)) " · −" ((before - after) * 100 / before) " %" }
            }
            div.stage #stage tabindex="0" role="group" aria-label="A picture before and after" {
                div.layer { img #before src=(paths::SAMPLE) width="451" height="300" alt="A cat, as a JPEG" draggable="false"; }
                div.layer { img #after src=(paths::SAMPLE_WEBP) width="451" height="300" alt="The same cat, as a WebP" draggable="false"; }
                div.divider #divider aria-hidden="true" {}
            }
            label.visually-hidden for="slider" { "How much of the picture before is shown" }
            input #slider type="range" min="0" max="100" value="50" step="1";
            @if module.is_some() {
                p.choose {
                    input.visually-hidden #try-file type="file" accept=((context.picture_types)([true, false]));
                    label.button for="try-file" { "Try one of yours" }
                    span.hint { "or drop it anywhere. Your browser converts it: it is not sent." }
                }
                progress #try-progress max="1" value="0" aria-label="Progress" hidden {}
                p #try-result role="status" {}
            }
        }
    }
}

fn shown() -> impl Iterator<Item = &'static Parameter> {
    let find = |name: &&str| PARAMETERS.iter().find(|row| row.name == *name);
    SHOWN.iter().filter_map(find)
}

fn parameter(row: &Parameter) -> Markup {
    let (DefaultValue::Given(default) | DefaultValue::Other(default)) = row.default;
    html! {
        tr {
            td { code { (row.name) } }
            td {
                // What stands between backticks is code.
                @for (index, part) in row.meaning.split('`').enumerate() {
                    @if index % 2 == 1 { code { (part) } } @else { (part) }
                }
            }
            td { (default) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_that_is_shown_exists() {
        let names: Vec<&str> = shown().map(|row| row.name).collect();
        assert_eq!(names, SHOWN);
    }

    #[test]
    fn code_in_a_meaning_is_code() {
        let rows: String = shown().map(|row| parameter(row).into_string()).collect();
        assert!(rows.contains("<code>medium</code>"), "{rows}");
        assert!(!rows.contains('`'), "{rows}");
    }
}
