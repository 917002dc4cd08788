//! The way to the first conversion, for an account that has converted nothing yet.

use super::context::SignedIn;
use super::document::{command, curl_command};
use super::paths;
use super::token_field::{Label, masked, token_field};
use crate::store::TokenNumber;
use maud::{Markup, html};

/// Two ways, and the result. The script polls the usage until there is some, and shows it.
pub fn first_steps(context: &SignedIn<'_>, token: &str) -> Markup {
    let curl = curl_command(context.base_url, &masked(token));
    let label = Label::Above("Keep it to yourself: whoever has it converts in your name.");
    html! {
        section.card #first-steps {
            h2 { "Your first conversion" }
            ol.steps {
                li {
                    h3 { "In the browser" }
                    p.hint { "Drop pictures, compare, and download them." }
                    p { a.button href=(paths::CONVERTING) { "Convert pictures" } }
                }
                li {
                    h3 { "By API" }
                    (token_field(&context.session, TokenNumber::DEFAULT, token, "token", &label))
                    (command(&html! { h4 { "One request" } }, "curl", &curl))
                    p.hint { "Put any picture in place of " code { "picture.png" } " and its type." }
                }
                li {
                    h3 { "The result" }
                    p #waiting role="status" data-usage={ (paths::USAGE) "?limit=1" } {
                        "Your first conversion will be shown here."
                    }
                    p { a #look-again href=(paths::DASHBOARD) { "Look again" } }
                }
            }
        }
    }
}
