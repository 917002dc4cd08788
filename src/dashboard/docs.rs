//! The documentation: an index, and the files of `docs/` as pages. Examples of conversions have
//! this server's address, and, for a visitor who is signed in, the account's token.

use super::context::PageContext;
use super::docs_list::{DOC_PAGES, DocPage, Reader};
use super::docs_search::{Section, results, search_form, sections};
use super::document::{Viewer, command, curl_command, document};
use super::outcome::Outcome;
use super::paths;
use super::token_field::masked;
use crate::store::{Session, StoreError};
use maud::{Markup, PreEscaped, html};
use std::borrow::Cow;
use std::sync::LazyLock;

/// The placeholder of a token in examples.
const YOUR_TOKEN: &str = "YOUR_TOKEN";

/// A page of [`DOC_PAGES`] as the build script rendered it, in HTML.
struct Rendered {
    /// Items of a list of links to its sections.
    contents: String,
    article: String,
}

/// In the order of [`DOC_PAGES`].
static RENDERED: LazyLock<Vec<Rendered>> = LazyLock::new(|| {
    let compressed = include_bytes!(concat!(env!("OUT_DIR"), "/docs.zlib"));
    let all = fdeflate::decompress_to_vec(compressed).expect("the build script compressed it");
    let all = String::from_utf8(all).expect("the build script wrote text");
    let mut parts = all.split('\0').map(str::to_owned);
    let mut part = || {
        parts
            .next()
            .expect("the build script wrote two of each page")
    };
    let page = |_| Rendered {
        contents: part(),
        article: part(),
    };
    DOC_PAGES.iter().map(page).collect()
});

/// The sections of all pages, for searches.
static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(|| {
    let pages = DOC_PAGES.iter().zip(&*RENDERED);
    pages
        .flat_map(|(page, rendered)| sections(&path_of(page), page.title, &rendered.article))
        .collect()
});

/// The index of the documentation, and the sections that a search finds, if there is a query.
pub fn docs_index(context: &PageContext<'_>, query: &str) -> Result<Outcome, StoreError> {
    let session = context.session()?;
    let token = token_for(context, session.as_ref())?;
    let curl = curl_command(context.base_url, &token);
    let content = html! {
        h1 { "Documentation" }
        (search_form(paths::DOCS, query))
        @if !query.trim().is_empty() { (results(&SECTIONS, query)) }
        section.card {
            (command(&html! { h2 { "One request" } }, "example", &curl))
            p.hint {
                @if session.is_some() {
                    "The token in it is yours, behind a mask: what "
                    i { "Copy" } " copies works as it stands, here and on all of these pages."
                } @else {
                    a href=(paths::SIGN_IN) { "Sign in" }
                    ", and the examples on these pages have your token."
                }
            }
        }
        (list_of_pages("For whoever converts", Reader::User))
        (list_of_pages("For whoever runs the service", Reader::Operator))
    };
    Ok(shown("Docs", session.as_ref(), &content))
}

fn list_of_pages(heading: &str, reader: Reader) -> Markup {
    html! {
        section.card {
            h2 { (heading) }
            dl.pages {
                @for page in DOC_PAGES.iter().filter(|page| page.reader == reader) {
                    dt { a href=(path_of(page)) { (page.title) } }
                    dd { (page.about) }
                }
                @if reader == Reader::User {
                    dt { a href=(paths::OPENAPI) { "openapi.json" } }
                    dd { "The API for tools that generate clients, in OpenAPI 3.1." }
                }
            }
        }
    }
}

/// Whether the path is that of a page.
pub fn is_docs_page(path: &str) -> bool {
    index_of(path).is_some()
}

/// The place in [`DOC_PAGES`] of the page at this path.
fn index_of(path: &str) -> Option<usize> {
    DOC_PAGES.iter().position(|page| path_of(page) == path)
}

/// The page at the path of the request; the index, if it is none of [`DOC_PAGES`].
pub fn docs_page(context: &PageContext<'_>) -> Result<Outcome, StoreError> {
    let path = context.target.split('?').next().unwrap_or_default();
    let Some(index) = index_of(path) else {
        return docs_index(context, "");
    };
    let (page, rendered) = (&DOC_PAGES[index], &RENDERED[index]);
    let session = context.session()?;
    let article: Cow<'_, str> = match page.reader {
        Reader::User => {
            let token = token_for(context, session.as_ref())?;
            filled_in(&rendered.article, context.base_url, &token).into()
        }
        Reader::Operator => rendered.article.as_str().into(),
    };
    let content = html! {
        div.docs {
            aside {
                (search_form(paths::DOCS, ""))
                nav aria-label="Documentation" {
                    a href=(paths::DOCS) { "Documentation" }
                    ul {
                        @for other in DOC_PAGES {
                            @let is_current = std::ptr::eq(other, page);
                            li { a href=(path_of(other)) aria-current=[is_current.then_some("page")] { (other.title) } }
                        }
                    }
                }
                nav aria-label="On this page" {
                    p { "On this page" }
                    ul { (PreEscaped(&rendered.contents)) }
                }
            }
            article { (PreEscaped(article)) }
        }
    };
    Ok(shown(page.title, session.as_ref(), &content))
}

/// The page for guests is the same for all of them; with a token it is one person's.
fn shown(title: &str, session: Option<&Session>, content: &Markup) -> Outcome {
    match session {
        Some(session) => Outcome::page(document(title, Viewer::of(session), content)),
        None => Outcome::public_page(document(title, Viewer::Guest, content)),
    }
}

fn token_for<'t>(
    context: &PageContext<'_>,
    session: Option<&Session>,
) -> Result<Cow<'t, str>, StoreError> {
    Ok(match session {
        Some(session) => masked(&context.store.token(session.account.id)?).into(),
        None => YOUR_TOKEN.into(),
    })
}

/// Fills in the places that the build script left in examples.
fn filled_in(article: &str, base_url: &str, token: &str) -> String {
    let escaped = |text: &str| html! { (text) }.into_string();
    article
        .replace("{{server}}", &escaped(base_url))
        .replace("{{token}}", &escaped(token))
}

fn path_of(page: &DocPage) -> String {
    format!("{}/{}", paths::DOCS, page.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in_and_what_fills_them_is_escaped() {
        let html = filled_in(
            "<b>{{server}}/convert?token={{token}}</b>",
            "https://a\"<b>",
            "t&1",
        );
        assert_eq!(
            html,
            "<b>https://a&quot;&lt;b&gt;/convert?token=t&amp;1</b>"
        );
    }
}
