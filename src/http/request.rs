//! A request as the handlers see it: plain data.

use super::pairs::{self, Pairs};
use crate::store::RequestId;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use towebp_pipeline::conversion::Cancel;

/// The head of a request.
pub struct Request {
    /// Names the request in the log and in the response.
    pub id: RequestId,
    /// `GET`, `POST` ... as it was sent.
    pub method: String,
    /// The target's path, as it was sent, without the query.
    pub path: String,
    /// The target's query, as it was sent, without its `?`.
    query: String,
    /// The address of the connection, or the one that a trusted proxy forwards.
    pub client: IpAddr,
    /// Bytes of the body as the head announces them; 0 for none, and for chunks.
    pub announced: u64,
    /// Set once nobody waits for the response any more.
    pub cancel: Arc<Cancel<'static>>,
    /// When the complete request began to wait for a worker.
    pub queued_since: Instant,
    /// When a worker began with it; `None` if none has.
    pub started: Option<Instant>,
    /// Bytes of the body that a worker has read.
    pub received: u64,
    /// The names of the fields of its form, once a worker has it.
    pub field_names: Vec<String>,
    /// Names in lower case, and values without white space around.
    headers: Vec<(String, String)>,
}

impl Request {
    /// Makes a request of a head. `target` is a path with an optional query.
    pub fn new<'a>(
        method: &str,
        target: &str,
        client: IpAddr,
        headers: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Request {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Request {
            id: RequestId::random(),
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            client,
            announced: 0,
            cancel: Arc::default(),
            queued_since: Instant::now(),
            started: None,
            received: 0,
            field_names: Vec::new(),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect(),
        }
    }

    /// The path and the query, as they were sent.
    pub fn target(&self) -> String {
        match &*self.query {
            "" => self.path.clone(),
            query => format!("{}?{query}", self.path),
        }
    }

    /// The query's names and values, decoded anew by each call.
    pub fn query(&self) -> Pairs {
        Pairs::decode(self.query.as_bytes())
    }

    /// The names of the query's parameters, each decoded on demand, and the names of the fields.
    pub fn parameter_names(&self) -> impl Iterator<Item = String> {
        pairs::names(self.query.as_bytes()).chain(self.field_names.iter().cloned())
    }

    /// The first header of this lower-case name.
    pub fn header(&self, name: &'static str) -> Option<&str> {
        self.headers(name).next()
    }

    /// All headers of this lower-case name.
    pub fn headers(&self, name: &'static str) -> impl Iterator<Item = &str> {
        self.headers
            .iter()
            .filter(move |(header, _)| header == name)
            .map(|(_, value)| value.as_str())
    }

    /// `Content-Type` without its parameters; empty if there is none.
    pub fn media_type(&self) -> &str {
        let given = self.header("content-type").unwrap_or_default();
        given.split(';').next().unwrap_or_default().trim()
    }

    /// The first cookie of this name.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.headers("cookie")
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(given, _)| *given == name)
            .map(|(_, value)| value)
    }

    /// Whether it comes from a browser that would rather show a page than JSON.
    pub fn wants_html(&self) -> bool {
        self.headers("accept")
            .any(|types| types.contains("text/html"))
    }

    /// Whether a browser shows the response in a window. All browsers name XHTML then, and nothing
    /// that `fetch` or, by itself, a library sends does: Java's names HTML alone.
    pub fn is_opened_by_browser(&self) -> bool {
        self.headers("accept")
            .any(|types| types.contains("text/html") && types.contains("application/xhtml+xml"))
    }

    /// The method if it is a known one, else `-`: others may be any text.
    pub fn loggable_method(&self) -> &str {
        const KNOWN: [&str; 9] = [
            "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE",
        ];
        let known = KNOWN.iter().find(|known| **known == self.method);
        known.copied().unwrap_or("-")
    }

    /// The path up to the first character that is not plain, and to the first token:
    /// `/convert&token=...` and `/convert/twp_...`, mistyped for `?token=...`, must not bring the
    /// token into the log, and control characters must not bring new lines.
    pub fn loggable_path(&self) -> &str {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
        let length = self.path.bytes().take(100).take_while(plain).count();
        let path = &self.path[..length];
        // Every token begins with this.
        path.split_once("twp_").map_or(path, |(before, _)| before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCALHOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn request(target: &str, headers: &[(&str, &str)]) -> Request {
        Request::new("POST", target, LOCALHOST, headers.iter().copied())
    }

    #[test]
    fn a_target_is_divided_into_path_and_query() {
        let request = request("/convert?a=b?c", &[]);
        assert_eq!(request.path, "/convert");
        assert_eq!(request.query().parameter("a"), Ok(Some("b?c")));
    }

    #[test]
    fn cookies_are_found_among_others() {
        let request = request(
            "/",
            &[("Cookie", "a=1; towebp_session=s=3"), ("Cookie", "b=2")],
        );
        assert_eq!(request.cookie("towebp_session"), Some("s=3"));
        assert_eq!(request.cookie("b"), Some("2"));
        assert_eq!(request.cookie("c"), None);
    }

    #[test]
    fn a_token_in_the_path_stays_out_of_the_log() {
        assert_eq!(
            request("/convert&token=abc", &[]).loggable_path(),
            "/convert"
        );
        assert_eq!(
            request("/convert/twp_abc", &[]).loggable_path(),
            "/convert/"
        );
        assert_eq!(request("/a\u{1b}[2J\nb", &[]).loggable_path(), "/a");
    }
}
