//! A request as the handlers see it: plain data, and a body that is read only when somebody asks for it.

use crate::front::Gone;
use percent_encoding::percent_decode;
use std::fmt;
use std::io::Read;
use std::net::IpAddr;

/// The head of a request.
pub struct Request {
    /// Names the request in the log and in the answer.
    pub id: RequestId,
    /// `GET`, `POST` ... as it was sent.
    pub method: String,
    /// The target's path, as it was sent, without the query.
    pub path: String,
    /// The query's decoded names and values, in order. Bytes that are not UTF-8 stand as U+FFFD; whoever takes
    /// parameters calls [`Request::check_query`] first.
    pub query: Vec<(String, String)>,
    /// The name of the first parameter whose name or value is not UTF-8.
    undecodable: Option<String>,
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
        let Pairs { pairs, undecodable } = decode_pairs(query.as_bytes());
        Request {
            id: RequestId::next(),
            method: method.to_owned(),
            path: path.to_owned(),
            query: pairs,
            undecodable,
            client,
            gone: Gone::default(),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect(),
        }
    }

    /// Holds the query to UTF-8.
    ///
    /// # Errors
    /// [`NotUtf8`], naming the first parameter that is not.
    pub fn check_query(&self) -> Result<(), NotUtf8> {
        self.undecodable
            .clone()
            .map_or(Ok(()), |name| Err(NotUtf8(name)))
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

/// The name or the value of this parameter, or field of a form, is not UTF-8 once it is decoded.
#[derive(Debug, PartialEq, Eq)]
pub struct NotUtf8(pub String);

/// The names and values of a query or a form.
pub struct Pairs {
    /// Decoded, in order; bytes that are not UTF-8 stand as U+FFFD.
    pub pairs: Vec<(String, String)>,
    /// The name of the first one whose name or value is not UTF-8.
    pub undecodable: Option<String>,
}

/// Decodes `application/x-www-form-urlencoded` (section 5.1 of the URL standard).
pub fn decode_pairs(text: &[u8]) -> Pairs {
    let mut pairs = Vec::new();
    let mut undecodable = None;
    for pair in text.split(|&byte| byte == b'&') {
        if pair.is_empty() {
            continue;
        }
        let name_end = pair.iter().position(|&byte| byte == b'=');
        let (name, value) = match name_end {
            Some(end) => (&pair[..end], &pair[end + 1..]),
            None => (pair, &[][..]),
        };
        let ((name, name_is_text), (value, value_is_text)) = (decode(name), decode(value));
        if !(name_is_text && value_is_text) {
            undecodable.get_or_insert_with(|| name.clone());
        }
        pairs.push((name, value));
    }
    Pairs { pairs, undecodable }
}

/// One name or value, and whether it is UTF-8.
fn decode(text: &[u8]) -> (String, bool) {
    let spaced: Vec<u8> = text
        .iter()
        .map(|&byte| if byte == b'+' { b' ' } else { byte })
        .collect();
    let bytes: Vec<u8> = percent_decode(&spaced).collect();
    match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (
            String::from_utf8_lossy(error.as_bytes()).into_owned(),
            false,
        ),
    }
}

/// Names one request: 128 random bits. The answer carries it, so one must not be guessed from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(String);

impl RequestId {
    fn next() -> RequestId {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .expect("the secret was drawn from the same source at the start");
        RequestId(format!("{:032x}", u128::from_be_bytes(bytes)))
    }

    /// 32 hexadecimal digits.
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
    fn request_ids_tell_nothing_of_each_other() {
        let ids: Vec<u128> = (0..64)
            .map(|_| {
                let id = request("/", &[]).id;
                assert_eq!(id.as_str().len(), 32, "{id}");
                u128::from_str_radix(id.as_str(), 16).expect("hexadecimal digits")
            })
            .collect();
        // No bit stays as it is: 64 equal ones come up once in 10 to the 17 runs.
        let (and, or) = ids
            .iter()
            .fold((u128::MAX, 0), |(and, or), id| (and & id, or | id));
        assert_eq!((and, or), (0, u128::MAX), "{and:032x} {or:032x}");
    }

    #[test]
    fn what_is_not_utf_8_is_found_by_name() {
        for (query, name) in [
            ("watermark=%ff%fe", "watermark"),
            ("a=1&watermark=x%C3", "watermark"),
            ("a=%C3%A4&b=%ED%A0%80&c=%ff", "b"),
            ("caf%e9=1", "caf\u{fffd}"),
            ("%ff", "\u{fffd}"),
        ] {
            let request = request(&format!("/convert?{query}"), &[]);
            let expected = Err(NotUtf8(name.to_owned()));
            assert_eq!(request.check_query(), expected, "{query}");
        }
        let fine = request(
            "/convert?a=%C3%A4&&b=%F0%9F%98%80%00&c=100%&d=%zz&e=a=b&=f&+g=",
            &[],
        );
        assert_eq!(fine.check_query(), Ok(()));
        let pairs = [
            ("a", "ä"),
            ("b", "\u{1f600}\0"),
            ("c", "100%"),
            ("d", "%zz"),
            ("e", "a=b"),
            ("", "f"),
            (" g", ""),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(fine.query, pairs);
    }

    #[test]
    fn queries_are_decoded_as_browsers_encode_them() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..2000 {
            let text: String = (0..random(30))
                .map(|_| char::from(b"ab=&+%20fF;/?"[random(13) as usize]))
                .collect();
            let expected: Vec<_> = form_urlencoded::parse(text.as_bytes())
                .into_owned()
                .collect();
            assert_eq!(decode_pairs(text.as_bytes()).pairs, expected, "{text}");
        }
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
