//! Markdown as the files of `docs/` are written in, to HTML for the service's pages.

use super::highlight::{escaped, highlight};
use super::paths;
use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};
use std::collections::HashMap;
use std::fmt::Write as _;

/// A page, rendered.
pub struct Rendered {
    /// Links to its sections.
    pub contents: String,
    /// The text itself.
    pub article: String,
}

/// Where a link to a file leads.
pub struct Target {
    /// The page's path.
    pub path: String,
    /// The page's title, which is shown where a link's text is the file's name.
    pub title: &'static str,
}

/// Finds where a link to a file leads; nowhere, if only its text is shown.
pub type Resolve<'r> = &'r dyn Fn(&str) -> Result<Option<Target>, String>;

/// Renders a file. Its own list of contents, a list of nothing but links to its sections, is left
/// out: the page has one beside the text.
///
/// # Errors
/// The sentence names the element that the page cannot show.
pub fn render(text: &str, resolve: Resolve<'_>) -> Result<Rendered, String> {
    let mut page = Page {
        out: Vec::new(),
        contents: String::new(),
        ids: HashMap::new(),
        section: String::new(),
        blocks: 0,
        resolve,
    };
    let events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    page.all(&events)?;
    let mut article = String::new();
    html::push_html(&mut article, page.out.into_iter());
    Ok(Rendered {
        contents: page.contents,
        article,
    })
}

struct Page<'t, 'r> {
    /// The events of the page, with its own HTML between them.
    out: Vec<Event<'t>>,
    contents: String,
    /// How often each id of a heading occurred.
    ids: HashMap<String, usize>,
    /// The text of the last heading.
    section: String,
    /// Blocks of code so far.
    blocks: usize,
    resolve: Resolve<'r>,
}

impl<'t> Page<'t, '_> {
    fn all(&mut self, events: &[Event<'t>]) -> Result<(), String> {
        let mut rest = events;
        while let [event, after @ ..] = rest {
            rest = after;
            match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    let (inside, after) = element(after, &TagEnd::Heading(*level));
                    self.heading(*level, inside)?;
                    rest = after;
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let (inside, after) = element(after, &TagEnd::CodeBlock);
                    self.code(kind, &text_of(inside));
                    rest = after;
                }
                Event::Start(Tag::Link { dest_url, .. }) => {
                    let (inside, after) = element(after, &TagEnd::Link);
                    self.link(dest_url, inside)?;
                    rest = after;
                }
                Event::Start(Tag::List(None)) => {
                    let (inside, after) = element(after, &TagEnd::List(false));
                    if is_contents(inside) {
                        rest = after;
                    } else {
                        self.out.push(event.clone());
                    }
                }
                _ => self.one(event, after)?,
            }
        }
        Ok(())
    }

    fn one(&mut self, event: &Event<'t>, following: &[Event<'t>]) -> Result<(), String> {
        match event {
            Event::Start(Tag::Table(_)) => {
                let label = escaped(&self.section);
                self.html(format!(
                    "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"{label}\">"
                ));
                self.out.push(event.clone());
            }
            Event::End(TagEnd::Table) => {
                self.out.push(event.clone());
                self.html("</div>\n".to_owned());
            }
            Event::Start(Tag::TableHead) if has_empty_cell(following) => {
                return Err(format!(
                    "screen readers name a cell by its column, and one of a table in `{}` has no name",
                    self.section
                ));
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                return Err(format!("pages show no pictures, and so not {dest_url}"));
            }
            Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => {}
            // The marks of `scripts/docs` are comments.
            Event::Html(text) | Event::InlineHtml(text) => {
                let text = text.trim();
                if !(text.starts_with("<!--") && text.ends_with("-->")) {
                    return Err(format!("pages pass no HTML through, and so not {text}"));
                }
            }
            _ => self.out.push(event.clone()),
        }
        Ok(())
    }

    /// A heading with the id that GitHub gives it, so that links work in both places.
    fn heading(&mut self, level: HeadingLevel, inside: &[Event<'t>]) -> Result<(), String> {
        self.section = text_of(inside);
        let mut id: String = self.section.to_lowercase().replace(' ', "-");
        id.retain(|c| c.is_alphanumeric() || c == '-' || c == '_');
        let count = self.ids.entry(id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            id = format!("{id}-{}", *count - 1);
        }
        if matches!(level, HeadingLevel::H2 | HeadingLevel::H3) {
            let label = escaped(&self.section);
            let item = format!("<li class=\"{level}\"><a href=\"#{id}\">{label}</a></li>");
            self.contents += &item;
        }
        self.html(format!("<{level} id=\"{id}\">"));
        self.all(inside)?;
        self.html(format!("</{level}>\n"));
        Ok(())
    }

    /// A block of code, with a button that copies it if it is something to type.
    fn code(&mut self, kind: &CodeBlockKind<'_>, text: &str) {
        self.blocks += 1;
        let mut html = "<div class=\"code\">".to_owned();
        let is_typed = matches!(kind, CodeBlockKind::Fenced(language) if &**language != "text");
        let id = format!("code-{}", self.blocks);
        if is_typed {
            write!(
                html,
                "<button class=\"copy secondary\" type=\"button\" data-copy=\"{id}\" hidden>Copy</button>"
            )
            .expect("a String takes all");
        }
        if let Some(query) = converted_query(text) {
            write!(
                html,
                "<a class=\"copy\" href=\"{}#{}\">Try it</a>",
                paths::CONVERTING,
                escaped(query)
            )
            .expect("a String takes all");
        }
        let language = match kind {
            CodeBlockKind::Fenced(language) => language,
            CodeBlockKind::Indented => "",
        };
        let text = highlight(language, text.trim_end());
        writeln!(
            html,
            "<pre tabindex=\"0\"><code id=\"{id}\">{text}</code></pre></div>"
        )
        .expect("a String takes all");
        self.html(html);
    }

    /// A link: to a page or a section, or its text alone if it leads to no page.
    fn link(&mut self, written: &str, inside: &[Event<'t>]) -> Result<(), String> {
        if written.starts_with('#') || written.starts_with("http") {
            self.html(format!("<a href=\"{}\">", escaped(written)));
            self.all(inside)?;
            self.html("</a>".to_owned());
            return Ok(());
        }
        let (file, section) = match written.find('#') {
            Some(at) => written.split_at(at),
            None => (written, ""),
        };
        let Some(target) = (self.resolve)(file)? else {
            return self.all(inside);
        };
        self.html(format!("<a href=\"{}{}\">", target.path, escaped(section)));
        if text_of(inside) == file {
            self.html(escaped(target.title));
        } else {
            self.all(inside)?;
        }
        self.html("</a>".to_owned());
        Ok(())
    }

    fn html(&mut self, text: String) {
        self.out.push(Event::InlineHtml(CowStr::from(text)));
    }
}

/// Divides events at the end of an element whose start was before them, and drops that end.
fn element<'e, 't>(events: &'e [Event<'t>], end: &TagEnd) -> (&'e [Event<'t>], &'e [Event<'t>]) {
    let start = |event: &Event<'_>| matches!(event, Event::Start(tag) if tag.to_end() == *end);
    let mut depth = 1;
    let at = events.iter().position(|event| {
        depth += i32::from(start(event));
        depth -= i32::from(*event == Event::End(*end));
        depth == 0
    });
    let at = at.expect("the parser ends what it starts");
    (&events[..at], &events[at + 1..])
}

/// Whether the row that begins with these events has a cell without content.
fn has_empty_cell(row: &[Event<'_>]) -> bool {
    let end = row
        .iter()
        .position(|event| matches!(event, Event::End(TagEnd::TableHead)));
    let empty = [Event::Start(Tag::TableCell), Event::End(TagEnd::TableCell)];
    row[..end.expect("the parser ends what it starts")]
        .windows(2)
        .any(|two| two == empty)
}

/// Whether a list is of nothing but links within the page.
fn is_contents(list: &[Event<'_>]) -> bool {
    let mut in_link = false;
    let only_links = list.iter().all(|event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => {
            in_link = true;
            dest_url.starts_with('#')
        }
        Event::End(TagEnd::Link) => {
            in_link = false;
            true
        }
        Event::Text(_) | Event::Code(_) => in_link,
        _ => true,
    });
    only_links && list.iter().any(|event| matches!(event, Event::Text(_)))
}

/// The query of the conversion that a block of code asks for, which the page that converts reads as
/// its settings.
fn converted_query(code: &str) -> Option<&str> {
    let (_, rest) = code.split_once("/convert?")?;
    let query = rest.split(['"', '\'', ' ', '\n']).next()?;
    query.contains('=').then_some(query)
}

fn text_of(events: &[Event<'_>]) -> String {
    let text = events.iter().map(|event| match event {
        Event::Text(text) | Event::Code(text) => &**text,
        Event::SoftBreak | Event::HardBreak => " ",
        _ => "",
    });
    text.collect()
}
