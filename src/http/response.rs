//! A response as the handlers give it: plain data, handed to the front by [`super::exchange`].

use super::problem::{Problem, ProblemRow};
use crate::admission::Reservation;
use crate::dashboard::paths;
use crate::store::RequestId;
use serde::Serialize;
use std::time::Instant;

/// A response.
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names and values, printable ASCII only.
    pub headers: Vec<(&'static str, String)>,
    /// The body, or its first part.
    pub body: Vec<u8>,
    /// Makes the further parts of the body, if there are any.
    pub parts: Option<TextParts>,
    /// When it is to be sent; `None` for at once.
    pub due: Option<Instant>,
    /// The cause of an internal error, for the log alone.
    pub cause: Option<String>,
    /// The memory of a large body, given back when the body was handed to the front.
    pub memory: Option<Box<Reservation>>,
}

/// The parts of a body after the first one; see [`front::Parts`](crate::front::Parts).
pub type TextParts = Box<dyn Iterator<Item = Result<String, Problem>> + Send>;

impl Response {
    /// A response with a body of this media type, which, shown by itself, may load and run nothing.
    pub fn new(status: u16, media_type: &str, body: impl Into<Vec<u8>>) -> Response {
        Response::with_policy(
            status,
            media_type,
            body,
            "default-src 'none'; frame-ancestors 'none'",
        )
    }

    /// A response with a body of this media type under this `Content-Security-Policy`.
    pub fn with_policy(
        status: u16,
        media_type: &str,
        body: impl Into<Vec<u8>>,
        policy: &str,
    ) -> Response {
        Response {
            status,
            headers: Vec::new(),
            body: body.into(),
            parts: None,
            due: None,
            cause: None,
            memory: None,
        }
        .header("Content-Type", media_type)
        .header("Content-Security-Policy", policy)
        .header("X-Content-Type-Options", "nosniff")
        .header("Server", "towebp")
    }

    /// 200 with JSON that caches do not keep.
    pub fn json(value: &impl Serialize) -> Response {
        let body = serde_json::to_vec(value)
            .expect("the answers' types have string keys and no failing parts");
        Response::new(200, "application/json", body).header("Cache-Control", "private, no-store")
    }

    /// 303: the browser goes on with GET.
    pub fn see_other(to: &str) -> Response {
        Response::new(303, "text/plain; charset=utf-8", "").header("Location", to)
    }

    /// Adds the headers that every response has: the request's id, which parameters were probably
    /// mistyped, and, where browsers reach the service by https, that they shall not try it without
    /// for a year (RFC 6797). Subdomains are left alone: they may be somebody else's.
    pub fn for_request(self, id: RequestId, warning: Option<String>, is_https: bool) -> Response {
        let transport = is_https.then_some("max-age=31536000");
        self.header("X-Request-Id", &id.to_string())
            .header_if("X-Towebp-Warning", warning)
            .header_if("Strict-Transport-Security", transport)
    }

    /// Adds one header. Characters other than printable ASCII become `_`: a line break would split
    /// the response.
    pub fn header(mut self, name: &'static str, value: &str) -> Response {
        let plain = |c: char| {
            if c == ' ' || c.is_ascii_graphic() {
                c
            } else {
                '_'
            }
        };
        self.headers
            .push((name, value.chars().map(plain).collect()));
        self
    }

    /// Adds one header, as [`Response::header`] does, if there is a value.
    pub fn header_if(self, name: &'static str, value: Option<impl ToString>) -> Response {
        match value {
            Some(value) => self.header(name, &value.to_string()),
            None => self,
        }
    }
}

impl From<Problem> for Response {
    /// `application/problem+json` (RFC 9457), with `TinyPNG`'s `error` and `message` beside.
    fn from(problem: Problem) -> Response {
        #[derive(Serialize)]
        struct Body<'a> {
            r#type: String,
            title: &'a str,
            status: u16,
            detail: &'a str,
            code: &'a str,
            error: &'a str,
            message: &'a str,
        }
        let row = problem.kind.row();
        let body = Body {
            r#type: problem_type(&row),
            title: row.title,
            status: row.status,
            detail: &problem.detail,
            code: row.code,
            error: problem.kind.status_name(),
            message: &problem.detail,
        };
        let body = serde_json::to_vec(&body).expect("text and one number");
        with_problem_headers(
            Response::new(row.status, "application/problem+json", body),
            problem,
        )
    }
}

/// The `type` of a problem, a URN that names it.
pub fn problem_type(row: &ProblemRow) -> String {
    format!("urn:towebp:error:{}", row.code)
}

/// Adds the headers that belong to a problem, whatever the body looks like, and passes its cause on
/// to the log.
///
/// `Link` leads to the problem in the description of the API (the relation of the W3C's POWDER,
/// section 4.1.4, by which JSON Schema, too, links instances to their schemas). The link's context
/// is the problem itself: a response that is an error stands for no resource (RFC 8288, section
/// 3.2; RFC 9110, section 6.4.2).
pub fn with_problem_headers(response: Response, problem: Problem) -> Response {
    let row = problem.kind.row();
    let link = format!(
        "<{}#/components/responses/{}>; rel=\"describedby\"",
        paths::OPENAPI,
        row.code
    );
    let challenge = (row.status == 401).then_some("Bearer realm=\"towebp\"");
    let mut response = response
        .header("Cache-Control", "no-store")
        .header("Link", &link)
        .header_if("WWW-Authenticate", challenge)
        .header_if("Accept-Encoding", (row.status == 415).then_some("identity"))
        .header_if("Allow", problem.allow)
        .header_if("Retry-After", problem.retry_after);
    response.headers.extend(problem.headers);
    response.cause = problem.cause;
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::problem::Kind;

    #[test]
    fn header_values_cannot_split_the_response() {
        let response = Response::see_other("/a\r\nSet-Cookie: x=1\u{e9}");
        let location = response
            .headers
            .iter()
            .find(|(name, _)| *name == "Location")
            .unwrap();
        assert_eq!(location.1, "/a__Set-Cookie: x=1_");
    }

    #[test]
    fn a_problem_has_the_fields_of_rfc_9457_and_of_tinypng() {
        let problem = Problem::new(Kind::TokenInvalid, "The token is \"wrong\".")
            .with_cause("secret".to_owned());
        let response = Response::from(problem);
        let body: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(response.status, 401);
        assert_eq!(body["type"], "urn:towebp:error:token_invalid");
        assert_eq!(body["status"], 401);
        assert_eq!(body["code"], "token_invalid");
        assert_eq!(body["error"], "Unauthorized");
        assert_eq!(body["detail"], "The token is \"wrong\".");
        assert_eq!(body["message"], body["detail"]);
        assert!(
            !body.to_string().contains("secret"),
            "the cause is for the log alone"
        );
        assert!(
            response
                .headers
                .contains(&("WWW-Authenticate", "Bearer realm=\"towebp\"".to_owned()))
        );
    }
}
