//! The documentation inside the service: every link leads somewhere, and a token is shown to its
//! owner alone.

use crate::support::service::OWNER;
use crate::support::{Response, Server};
use std::collections::{BTreeMap, BTreeSet};

const INDEX: &str = "/docs";

/// The pages whose examples have a token and the server's address.
const FILLED_IN: [&str; 4] = [INDEX, "/docs/api", "/docs/formats", "/docs/command-line"];

/// A browser, signed in or not.
struct Visitor<'s> {
    server: &'s Server,
    cookie: Option<String>,
}

impl Visitor<'_> {
    fn get(&self, path: &str) -> Response {
        let request = self.server.request("GET", path);
        match &self.cookie {
            Some(cookie) => request.header("Cookie", cookie).send(),
            None => request.send(),
        }
    }

    /// All pages of the documentation by their paths, found from link to link. Every other path of
    /// this server that they link to has to be answered.
    fn pages(&self) -> BTreeMap<String, Response> {
        let mut pages = BTreeMap::new();
        let mut others = BTreeSet::new();
        let mut open = vec![INDEX.to_owned()];
        while let Some(path) = open.pop() {
            if pages.contains_key(&path) {
                continue;
            }
            let page = self.get(&path);
            assert_eq!(page.status, 200, "{path}");
            for link in values(page.text(), " href=\"") {
                let target = link.split('#').next().unwrap_or_default();
                if target.starts_with(INDEX) {
                    open.push(target.to_owned());
                } else if target.starts_with('/') {
                    others.insert(target.to_owned());
                }
            }
            pages.insert(path, page);
        }
        for path in others {
            let status = self.get(&path).status;
            assert!(matches!(status, 200 | 303), "{path}: {status}");
        }
        pages
    }
}

/// What stands between `before` and the next quotation mark, wherever it occurs.
fn values<'t>(text: &'t str, before: &str) -> Vec<&'t str> {
    let ends = text.split(before).skip(1);
    ends.map(|rest| rest.split('"').next().expect("split gives at least one"))
        .collect()
}

/// The page with its examples as they are read.
fn without_highlights(page: &str) -> String {
    let classes = ["comment", "name", "text"];
    let tags = classes.map(|class| format!("<span class=\"{class}\">"));
    let text = tags
        .iter()
        .fold(page.to_owned(), |text, tag| text.replace(tag, ""));
    text.replace("</span>", "")
}

/// A server, a browser that is signed in there, and the account's token.
fn signed_in(server: &Server) -> (Visitor<'_>, String) {
    let answer = server
        .request("POST", "/signup")
        .form(&[("email", OWNER), ("password", "correct horse battery")])
        .send();
    assert_eq!(answer.status, 303, "{}", answer.text());
    let cookie = answer.session_cookie();
    let token = server.token_of(&cookie, "0");
    let cookie = Some(cookie);
    (Visitor { server, cookie }, token)
}

#[test]
fn every_link_leads_to_a_page_and_to_a_section_of_it() {
    let server = Server::start();
    let guest = Visitor {
        server: &server,
        cookie: None,
    };
    let pages = guest.pages();
    assert!(pages.len() > 6, "{:?}", pages.keys());
    let mut ids = BTreeMap::new();
    for (path, page) in &pages {
        let all = values(page.text(), " id=\"");
        let distinct: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), distinct.len(), "{path} has an id twice: {all:?}");
        ids.insert(path.as_str(), distinct);
    }
    for (path, page) in &pages {
        for link in values(page.text(), " href=\"") {
            let (target, section) = link.split_once('#').unwrap_or((link, ""));
            let target = if target.is_empty() { path } else { target };
            if let (Some(ids), false) = (ids.get(target), section.is_empty()) {
                assert!(
                    ids.contains(section),
                    "{path} links to {link}, which has no such section"
                );
            }
        }
        for copied in values(page.text(), " data-copy=\"") {
            assert!(
                ids[path.as_str()].contains(copied),
                "{path} copies {copied}"
            );
        }
        assert!(!page.text().contains("<!--"), "{path} has raw HTML");
    }
}

#[test]
fn examples_have_the_masked_token_of_whoever_is_signed_in_and_of_nobody_else() {
    let server = Server::start();
    let (owner, token) = signed_in(&server);
    let masked = format!("twp_••••••••{}", &token[token.len() - 4..]);
    let line = format!(
        "http://{}/convert?quality=80&quot; \\\n     -H &quot;Authorization: Bearer {masked}&quot;",
        server.address
    );
    for (path, page) in owner.pages() {
        assert_eq!(page.header("cache-control"), Some("no-store"), "{path}");
        for text in ["YOUR_TOKEN", "token=twp_", &*token] {
            assert!(!page.text().contains(text), "{path} has {text}");
        }
    }
    let api = without_highlights(owner.get("/docs/api").text());
    assert!(api.contains(&line), "no {line}");
    let guest = Visitor {
        server: &server,
        cookie: None,
    };
    let line = line.replace(&masked, "YOUR_TOKEN");
    for (path, page) in guest.pages() {
        assert_eq!(page.header("cache-control"), Some("max-age=300"), "{path}");
        assert_eq!(page.header("vary"), Some("Cookie"), "{path}");
        assert!(
            !page.text().contains(&masked),
            "{path} has somebody's token"
        );
        // Operators have their token in a file, and their examples are shown as they are written.
        for inside in ["cat token", "{{"] {
            let is_there = FILLED_IN.contains(&path.as_str()) && page.text().contains(inside);
            assert!(!is_there, "{path} has {inside}");
        }
    }
    let api = without_highlights(guest.get("/docs/api").text());
    assert!(api.contains(&line), "no {line}");
}

#[test]
fn a_search_finds_sections_of_all_pages_and_leads_to_them() {
    let server = Server::start();
    let guest = Visitor {
        server: &server,
        cookie: None,
    };
    let found = guest.get("/docs?q=RECOVERY+codes");
    let link = "/docs/security#second-factor-and-recovery-codes";
    let first = values(found.text(), "<h3><a href=\"")[0];
    assert_eq!(first, link, "{}", found.text());
    let pages = guest.pages();
    // Every page has its first section, and what links say is there.
    for query in ["the", "webp", "a+b", "&quot;", "%C3%A9"] {
        let found = guest.get(&format!("/docs?q={query}"));
        assert_eq!(found.status, 200, "{query}");
        for link in values(found.text(), "<h3><a href=\"") {
            let (path, id) = link.split_once('#').unwrap_or((link, ""));
            let page = pages[path].text();
            assert!(
                id.is_empty() || page.contains(&format!(" id=\"{id}\"")),
                "{link}"
            );
        }
    }
    let nothing = guest.get("/docs?q=%3Cscript%3Enothing");
    assert!(
        nothing
            .text()
            .contains("No section has all of these words.")
    );
    assert!(!nothing.text().contains("<script>nothing"));
    let long = guest.get(&format!("/docs?q={}", "x".repeat(1000)));
    assert_eq!(long.status, 200);
}

#[test]
fn code_is_highlighted() {
    let server = Server::start();
    let guest = Visitor {
        server: &server,
        cookie: None,
    };
    let page = guest.get("/docs/api");
    for token in [
        "<span class=\"name\">-H</span>",
        "<span class=\"name\">&quot;",
        "<span class=\"text\">&quot;",
    ] {
        assert!(page.text().contains(token), "{token}");
    }
}
