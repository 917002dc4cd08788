//! The document around every page, and parts that several pages have.

use super::paths;
use crate::store::Session;
use maud::{DOCTYPE, Markup, html};

/// The visitor of a page, on whom its header depends.
#[derive(Clone, Copy)]
pub enum Viewer<'a> {
    /// Somebody who is signed in.
    Account {
        /// The account's address.
        email: &'a str,
        /// The session's secret, for the sign-out form.
        csrf: &'a str,
    },
    /// Somebody who is not signed in.
    Guest,
}

impl Viewer<'_> {
    /// The owner of this session.
    pub fn of(session: &Session) -> Viewer<'_> {
        Viewer::Account {
            email: &session.account.email,
            csrf: &session.csrf,
        }
    }
}

/// The pages that every page of somebody who is signed in links to. The link to the page whose
/// title is this name is marked as the current one.
const LINKS: &[(&str, &str)] = &[
    ("Dashboard", paths::DASHBOARD),
    ("Convert", paths::CONVERTING),
    ("Tokens", paths::TOKENS),
    ("Account", paths::ACCOUNT),
    ("Docs", paths::DOCS),
];

/// The pages that every page of a guest links to, before the sign-in.
const GUEST_LINKS: &[(&str, &str)] = &[("Docs", paths::DOCS)];

/// A whole document with the script of most pages.
pub fn document(title: &str, viewer: Viewer<'_>, content: &Markup) -> Markup {
    document_with(paths::SCRIPT, title, viewer, content)
}

/// A whole document with the script of this path.
pub fn document_with(script: &str, title: &str, viewer: Viewer<'_>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="description" content="PNG, JPEG, GIF and BMP to WebP by one HTTP call: smaller, with watermarks.";
                title { (title) " · towebp" }
                link rel="icon" href=(paths::ICON) type="image/svg+xml";
                // It runs before the page is painted, so that no other theme is seen first.
                script src=(paths::THEME_SCRIPT) {}
                link rel="stylesheet" href=(paths::STYLE);
                script src=(script) defer {}
            }
            body {
                a.skip href="#content" { "Skip to content" }
                header {
                    nav aria-label="Main" {
                        a.brand href=(paths::START) {
                            img src=(paths::ICON) alt="" width="28" height="28"; "towebp"
                        }
                        @match viewer {
                            Viewer::Account { email, csrf } => {
                                (links(title, LINKS))
                                div.who data-account=(paths::ACCOUNT) data-reveal=(paths::REVEAL_TOKEN) {
                                    span title=(email) { (email) }
                                    form method="post" action=(paths::SIGN_OUT) {
                                        input type="hidden" name="csrf" value=(csrf);
                                        button.quiet type="submit" { "Sign out" }
                                    }
                                }
                            }
                            Viewer::Guest => {
                                (links(title, GUEST_LINKS))
                                div.who { (link(title, "Sign in", paths::SIGN_IN)) }
                            }
                        }
                    }
                }
                main #content { (content) }
                footer {
                    span { "towebp " (env!("CARGO_PKG_VERSION")) " · PNG, JPEG, GIF and BMP to WebP" }
                    (theme_switch())
                }
            }
        }
    }
}

/// The choice of a theme, which the scripts show and the browser keeps.
fn theme_switch() -> Markup {
    html! {
        fieldset.theme {
            legend.visually-hidden { "Theme" }
            div.segments {
                @for name in ["System", "Light", "Dark"] {
                    label { input type="radio" name="theme" value=(name.to_lowercase()) autocomplete="off"; (name) }
                }
            }
        }
    }
}

fn links(title: &str, links: &[(&str, &str)]) -> Markup {
    html! { div.links { @for (name, path) in links { (link(title, name, path)) } } }
}

fn link(title: &str, name: &str, path: &str) -> Markup {
    html! { a href=(path) aria-current=[(title == name).then_some("page")] { (name) } }
}

/// A page with one narrow card, which begins with the page's title.
pub fn card(title: &str, viewer: Viewer<'_>, content: &Markup) -> Markup {
    let content = html! { section.card.narrow { h1 { (title) } (content) } };
    document(title, viewer, &content)
}

/// A page with one sentence, for example why there is no other page.
pub fn message(title: &str, detail: &str) -> Markup {
    let content = html! {
        p { (detail) }
        p { a href=(paths::START) { "To the start page" } }
    };
    card(title, Viewer::Guest, &content)
}

/// A command under its heading, with a button that copies it; a masked token in it is copied as the
/// true one.
pub fn command(heading: &Markup, id: &str, line: &str) -> Markup {
    html! {
        div.title {
            (heading)
            button.copy.secondary type="button" data-copy=(id) hidden { "Copy" }
        }
        pre tabindex="0" { code id=(id) { (line) } }
    }
}

/// The curl command that converts `picture.png`.
pub fn curl_command(base_url: &str, token: &str) -> String {
    format!(
        "curl -sS --fail-with-body \"{base_url}{}?quality=80\" \\\n  -H \"Authorization: Bearer {token}\" \\\n  \
         -H \"Content-Type: image/png\" --data-binary @picture.png -o picture.webp",
        paths::CONVERT
    )
}

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
