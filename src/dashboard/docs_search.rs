//! Search over the sections of the documentation.

use maud::{Markup, html};

/// The most characters of a search that count.
pub const MAX_QUERY: usize = 100;
/// The most sections that are shown.
const MAX_FOUND: usize = 20;
/// The bytes of text before the first word that was found, and after it.
const AROUND: [usize; 2] = [60, 140];

/// A section of a page.
pub struct Section {
    /// The path of the page, with the section's id.
    link: String,
    /// The page's title.
    page: &'static str,
    heading: String,
    text: String,
    /// All of the three, in lower case.
    searched: String,
}

/// The sections of a page whose article the build script rendered. The text before the first
/// heading of level 2 is one, too.
pub fn sections(path: &str, page: &'static str, article: &str) -> Vec<Section> {
    let article = article
        .replace("hidden>Copy</button>", "hidden></button>")
        .replace("{{token}}", "$(cat token)")
        .replace("{{server}}", "http://127.0.0.1:8080");
    let starts = article.match_indices("<h").map(|(at, _)| at);
    let is_start = |at: &usize| {
        ["<h2 id=\"", "<h3 id=\""]
            .iter()
            .any(|it| article[*at..].starts_with(it))
    };
    let starts: Vec<usize> = starts.filter(is_start).collect();
    let ends = starts.iter().copied().chain([article.len()]);
    let all = std::iter::once(0).chain(starts.iter().copied()).zip(ends);
    let section = |(start, end): (usize, usize)| {
        let part = &article[start..end];
        let (heading, text) = part.split_once("</h").unwrap_or(("", part));
        let id = heading.split('"').nth(1).filter(|_| start > 0);
        let (heading, text) = (
            plain(heading),
            plain(&text[text.find('>').map_or(0, |at| at + 1)..]),
        );
        Section {
            link: id.map_or_else(|| path.to_owned(), |id| format!("{path}#{id}")),
            page,
            searched: format!("{page} {heading} {text}").to_ascii_lowercase(),
            heading,
            text,
        }
    };
    all.map(section).collect()
}

/// HTML without its tags, on one line.
fn plain(html: &str) -> String {
    let mut text = String::new();
    for (index, part) in html.split('<').enumerate() {
        let after_tag = part.split_once('>').map_or("", |(_, after)| after);
        // Tags of inline elements (a, code, span, strong) divide no words, as in a URL. Those that
        // begin a block do, and so do the ends of table cells.
        let begins_block = index > 0 && !part.starts_with(['a', 'c', 's', '/']);
        if begins_block || part.starts_with("/t") {
            text.push(' ');
        }
        text += if index == 0 { part } else { after_tag };
    }
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The sections that have all words of the query, those with the most of them in the heading first.
pub fn results(sections: &[Section], query: &str) -> Markup {
    let query: String = query.chars().take(MAX_QUERY).collect();
    let words = query.to_ascii_lowercase();
    let words: Vec<&str> = words.split_whitespace().collect();
    let has_all = |section: &&Section| words.iter().all(|word| section.searched.contains(word));
    let mut found: Vec<&Section> = sections.iter().filter(has_all).collect();
    found.sort_by_key(|section| {
        let heading = section.heading.to_ascii_lowercase();
        std::cmp::Reverse(words.iter().filter(|word| heading.contains(**word)).count())
    });
    let total = found.len();
    html! {
        section.card #found {
            h2 { "Found: " (total) }
            @if total == 0 { p { "No section has all of these words." } }
            @if total > MAX_FOUND { p.hint { "These are the first " (MAX_FOUND) ". More words find fewer." } }
            @for section in found.into_iter().take(MAX_FOUND) {
                h3 { a href=(section.link) { (section.page) @if !section.heading.is_empty() { ": " (section.heading) } } }
                p.hint { (excerpt(&section.text, words[0])) }
            }
        }
    }
}

/// The text around the first place of a word; the beginning, if the heading alone has it.
fn excerpt(text: &str, word: &str) -> Markup {
    // Both texts have the same length in bytes.
    let found = text.to_ascii_lowercase().find(word);
    let (at, length) = found.map_or((0, 0), |at| (at, word.len()));
    let start = text.floor_char_boundary(at.saturating_sub(AROUND[0]));
    let end = text.floor_char_boundary(at + length + AROUND[1]);
    html! {
        @if start > 0 { "… " }
        (text[start..at]) mark { (text[at..at + length]) } (text[at + length..end])
        @if end < text.len() { " …" }
    }
}

/// The field for a search.
pub fn search_form(path: &str, query: &str) -> Markup {
    html! {
        form.search role="search" action=(path) {
            label.visually-hidden for="q" { "Search the documentation" }
            input #q type="search" name="q" value=(query) required maxlength=(MAX_QUERY) placeholder="Search";
            button.secondary type="submit" { "Search" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARTICLE: &str = "<h1 id=\"api\">HTTP API</h1>\n<p>Intro &amp; <code>more</code></p>\
        <h2 id=\"errors\">Errors</h2>\n<table><tr><td>413</td><td>Größe</td></tr></table>\
        <h3 id=\"size-of-errors\">Size of <code>errors</code></h3>\n<button hidden>Copy</button>\
        <pre><code><span class=\"text\">\"{{server}}\"</span> &lt;x&gt;</code></pre>";

    #[test]
    fn sections_have_their_links_and_plain_texts() {
        let sections = sections("/docs/api", "HTTP API", ARTICLE);
        let found: Vec<_> = sections
            .iter()
            .map(|it| (&*it.link, &*it.heading, &*it.text))
            .collect();
        let expected = [
            ("/docs/api", "HTTP API", "Intro & more"),
            ("/docs/api#errors", "Errors", "413 Größe"),
            (
                "/docs/api#size-of-errors",
                "Size of errors",
                "\"http://127.0.0.1:8080\" <x>",
            ),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn all_words_are_found_in_any_case_and_headings_come_first() {
        let sections = sections("/docs/api", "HTTP API", ARTICLE);
        let search = |query: &str| results(&sections, query).into_string();
        let found = search("ERRORS");
        let first = found.find("#errors").expect("found");
        assert!(
            first < found.find("#size-of-errors").expect("found"),
            "{found}"
        );
        assert!(
            search("größe 413").contains("Found: 1") && search("413 intro").contains("Found: 0")
        );
        assert!(
            search("413").contains("<mark>413</mark> Größe"),
            "{}",
            search("413")
        );
        assert!(!search("<x>").contains("<x>"));
    }
}
