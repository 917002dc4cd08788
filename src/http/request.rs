//! A request as the handlers see it: plain data, and a body that is read only when somebody asks for it.

use crate::front::Gone;
use std::fmt;
use std::io::Read;
use std::net::IpAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The head of a request.
pub struct Request {
    /// Names the request in the log and in the answer.
    pub id: RequestId,
    /// `GET`, `POST` ... as it was sent.
    pub method: String,
    /// The target's path, as it was sent, without the query.
    pub path: String,
    /// The query's decoded names and values, in order.
    pub query: Vec<(String, String)>,
    /// Where it comes from: the peer's address, or what a trusted proxy says.
    pub client: IpAddr,
    /// Whether anybody still waits for the answer.
    pub gone: Gone,
    /// Names in lower case.
    headers: Vec<(String, String)>,
}

impl Request {
    /// Reads a head. `target` is a path with an optional query.
    pub fn new<'a>(
        method: &str,
        target: &str,
        client: IpAddr,
        headers: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Request {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Request {
            id: RequestId::next(),
            method: method.to_owned(),
            path: path.to_owned(),
            query: form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
            client,
            gone: Gone::default(),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect(),
        }
    }

    /// The first header of this lower-case name.
    pub fn header(&self, name: &'static str) -> Option<&str> {
        self.headers(name).next()
    }

    /// `Content-Type` without its parameters; empty if there is none.
    pub fn media_type(&self) -> &str {
        let given = self.header("content-type").unwrap_or_default();
        given.split(';').next().unwrap_or_default().trim()
    }

    /// All headers of this lower-case name.
    pub fn headers(&self, name: &'static str) -> impl Iterator<Item = &str> {
        self.headers
            .iter()
            .filter(move |(header, _)| header == name)
            .map(|(_, value)| value.as_str())
    }

    /// The one value of this parameter.
    ///
    /// # Errors
    /// [`Repeated`], if it is given more than once.
    pub fn parameter(&self, name: &'static str) -> Result<Option<&str>, Repeated> {
        let mut values = self
            .query
            .iter()
            .filter(|(given, _)| given == name)
            .map(|(_, value)| value.as_str());
        let first = values.next();
        if values.next().is_some() {
            Err(Repeated(name))
        } else {
            Ok(first)
        }
    }

    /// The API token, from the `token` parameter or from `Authorization: Bearer`. An empty one counts as none.
    ///
    /// # Errors
    /// [`TokensDiffer`], if more than one is given and they are not all the same: which account is meant?
    pub fn token(&self) -> Result<Option<&str>, TokensDiffer> {
        let in_query = self
            .query
            .iter()
            .filter(|(name, _)| name == "token")
            .map(|(_, value)| value.as_str());
        let mut tokens = in_query
            .chain(self.headers("authorization").filter_map(bearer))
            .filter(|t| !t.is_empty());
        let Some(first) = tokens.next() else {
            return Ok(None);
        };
        if tokens.all(|other| other == first) {
            Ok(Some(first))
        } else {
            Err(TokensDiffer)
        }
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

    /// The method, if it is one that is known: others may be anything.
    pub fn loggable_method(&self) -> &str {
        const KNOWN: [&str; 9] = [
            "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE",
        ];
        let known = KNOWN.iter().find(|known| **known == self.method);
        known.copied().unwrap_or("-")
    }

    /// The path as far as it is plain: `/convert&token=...` and `/convert/twp_...`, mistyped for `?token=...`, must not
    /// bring the token into the log, and control characters must not bring new lines.
    pub fn loggable_path(&self) -> &str {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
        let length = self.path.bytes().take(100).take_while(plain).count();
        let path = &self.path[..length];
        // What every token begins with.
        path.split_once("twp_").map_or(path, |(before, _)| before)
    }
}

/// More than one token was given, and they differ.
#[derive(Debug, PartialEq, Eq)]
pub struct TokensDiffer;

/// This parameter was given more than once.
#[derive(Debug, PartialEq, Eq)]
pub struct Repeated(pub &'static str);

/// Names one request: a random number of the process and the request's number in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(String);

impl RequestId {
    fn next() -> RequestId {
        static PROCESS: LazyLock<u32> =
            LazyLock::new(|| getrandom::u32().unwrap_or_else(|_| std::process::id()));
        static COUNT: AtomicU64 = AtomicU64::new(1);
        RequestId(format!(
            "{:08x}-{}",
            *PROCESS,
            COUNT.fetch_add(1, Ordering::Relaxed)
        ))
    }

    /// Hexadecimal digits, a hyphen, digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyError {
    /// Over the limit; refused unread.
    TooLarge {
        /// In bytes.
        limit: u64,
    },
    /// It ended before its end; a body cut short must not pass for a whole one.
    CutShort {
        /// Bytes that came.
        received: u64,
    },
}

/// The body of a request, unread so far.
pub struct Body<'r> {
    source: &'r mut dyn Read,
    declared: u64,
    received: u64,
}

impl<'r> Body<'r> {
    /// A body of the declared length that nobody has read from.
    pub fn new(source: &'r mut dyn Read, declared: u64) -> Body<'r> {
        Body {
            source,
            declared,
            received: 0,
        }
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub fn read(&mut self, limit: u64) -> Result<Vec<u8>, BodyError> {
        if self.declared > limit {
            return Err(BodyError::TooLarge { limit });
        }
        // With room for the read that finds the end.
        let mut bytes = Vec::with_capacity(self.declared as usize + 1);
        let outcome = self.source.take(self.declared).read_to_end(&mut bytes);
        self.received = bytes.len() as u64;
        if outcome.is_err() || self.received != self.declared {
            return Err(BodyError::CutShort {
                received: self.received,
            });
        }
        Ok(bytes)
    }

    /// Bytes read so far.
    pub fn received(&self) -> u64 {
        self.received
    }
}

/// The token of `Bearer TOKEN`; the scheme's case does not matter (RFC 9110 section 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCALHOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn request(target: &str, headers: &[(&str, &str)]) -> Request {
        Request::new("POST", target, LOCALHOST, headers.iter().copied())
    }

    #[test]
    fn query_is_decoded_once_and_keeps_repetitions() {
        let request = request(
            "/convert?watermark=a+b%20c%2Bd%26&x=1&x=2&watermark_color=%23FF0000&flag",
            &[],
        );
        assert_eq!(request.path, "/convert");
        assert_eq!(request.parameter("watermark"), Ok(Some("a b c+d&")));
        assert_eq!(request.parameter("watermark_color"), Ok(Some("#FF0000")));
        assert_eq!(request.parameter("flag"), Ok(Some("")));
        assert_eq!(request.parameter("x"), Err(Repeated("x")));
        assert_eq!(request.parameter("absent"), Ok(None));
    }

    #[test]
    fn token_comes_from_query_or_bearer_and_must_not_be_ambiguous() {
        let bearer = ("Authorization", "bearer  abc");
        assert_eq!(request("/?token=abc", &[]).token(), Ok(Some("abc")));
        assert_eq!(request("/", &[bearer]).token(), Ok(Some("abc")));
        assert_eq!(request("/?token=abc", &[bearer]).token(), Ok(Some("abc")));
        assert_eq!(request("/?token=", &[bearer]).token(), Ok(Some("abc")));
        assert_eq!(request("/?token=", &[]).token(), Ok(None));
        assert_eq!(
            request("/", &[("Authorization", "Basic abc")]).token(),
            Ok(None)
        );
        assert_eq!(request("/?token=xyz", &[bearer]).token(), Err(TokensDiffer));
        assert_eq!(
            request("/?token=xyz&token=abc", &[]).token(),
            Err(TokensDiffer)
        );
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

    #[test]
    fn request_ids_differ() {
        assert_ne!(request("/", &[]).id, request("/", &[]).id);
    }

    #[test]
    fn a_body_is_whole_or_an_error() {
        let read = |mut bytes: &[u8], declared, limit| {
            let mut body = Body::new(&mut bytes, declared);
            (body.read(limit), body.received())
        };
        assert_eq!(read(b"abcnext", 3, 3), (Ok(b"abc".to_vec()), 3));
        assert_eq!(read(b"next", 0, 3), (Ok(Vec::new()), 0));
        let cut_short = BodyError::CutShort { received: 3 };
        assert_eq!(read(b"abc", 4, 9), (Err(cut_short), 3));
        let too_large = BodyError::TooLarge { limit: 3 };
        assert_eq!(read(b"abcd", 4, 3), (Err(too_large), 0), "nothing is read");
    }
}
