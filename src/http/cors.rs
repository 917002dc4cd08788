//! Requests of pages from other origins (the Fetch standard, section 3.2): which origins may call
//! the API, and which headers their browsers get. No answer allows cookies, so the dashboard stays
//! out of reach of other origins.

use super::problem::{Kind, Problem};
use super::request::Request;
use super::response::Response;
use super::response_headers;
use std::str::FromStr;

/// The request headers that a page may set.
const REQUEST_HEADERS: &str = "Authorization, Content-Type";

/// How long a browser may cache the response to a preflight, in seconds: two hours, the most that
/// Chromium takes.
const MAX_AGE: &str = "7200";

/// An origin that may call the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedOrigin {
    /// Every origin, with tokens in headers alone: URLs are kept in the histories and logs of
    /// unknown machines.
    Any,
    /// This one, such as `https://app.example.org`.
    Origin(String),
}

impl FromStr for AllowedOrigin {
    type Err = String;

    /// Reads `*`, or an origin as browsers send it: scheme, host, and a port that is not the
    /// scheme's own.
    fn from_str(text: &str) -> Result<AllowedOrigin, String> {
        if text == "*" {
            return Ok(AllowedOrigin::Any);
        }
        let origin = text.to_ascii_lowercase();
        let (scheme, authority) = origin.split_once("://").unwrap_or_default();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        let own_port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => "",
        };
        let is_origin = !own_port.is_empty()
            && !authority.is_empty()
            && authority.bytes().all(is_plain)
            && !authority.ends_with(own_port);
        if is_origin {
            Ok(AllowedOrigin::Origin(origin))
        } else {
            Err(format!(
                "{text:?} was given; allowed is * or an origin as browsers send it, such as \
                 https://app.example.org or http://localhost:3000, without a slash at the end"
            ))
        }
    }
}

/// The response to a preflight; `None` if the request is none, or its origin may not call the API.
pub fn preflight(allowed: &[AllowedOrigin], request: &Request, methods: &str) -> Option<Response> {
    request.header("access-control-request-method")?;
    if request.method != "OPTIONS" {
        return None;
    }
    allowed_origin(allowed, request)?;
    Some(
        Response::new(204, "text/plain", Vec::new())
            .header("Access-Control-Allow-Methods", methods)
            .header("Access-Control-Allow-Headers", REQUEST_HEADERS)
            .header("Access-Control-Max-Age", MAX_AGE),
    )
}

/// Checks that a page of an origin that only `*` allows sends its token in a header.
///
/// # Errors
/// 403, if it is in the URL.
pub fn check(allowed: &[AllowedOrigin], request: &Request) -> Result<(), Problem> {
    // Only browsers set it, and no page can.
    let is_own = request.header("sec-fetch-site") == Some("same-origin");
    let is_one_of_all = allowed_origin(allowed, request) == Some("*");
    if is_one_of_all && !is_own && request.parameter_names().any(|name| name == "token") {
        return Err(Problem::new(
            Kind::TokenInUrl,
            "Pages of other origins give the token in the header Authorization: Bearer.",
        ));
    }
    Ok(())
}

/// Adds the headers that a browser needs to hand the response to the page.
pub fn allow(response: Response, allowed: &[AllowedOrigin], request: &Request) -> Response {
    let response = match allowed {
        [] => return response,
        [AllowedOrigin::Any] => response,
        _ => response.header("Vary", "Origin"),
    };
    match allowed_origin(allowed, request) {
        Some(origin) => response
            .header("Access-Control-Allow-Origin", origin)
            .header("Access-Control-Expose-Headers", &response_headers::NAMES),
        None => response,
    }
}

/// The request's origin if it is allowed by itself, or `*` if all are.
fn allowed_origin<'r>(allowed: &[AllowedOrigin], request: &'r Request) -> Option<&'r str> {
    let origin = request.header("origin")?;
    let is_it = |it: &AllowedOrigin| matches!(it, AllowedOrigin::Origin(one) if one == origin);
    if allowed.iter().any(is_it) {
        return Some(origin);
    }
    allowed.contains(&AllowedOrigin::Any).then_some("*")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const APP: &str = "https://app.example.org";

    fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Request {
        let client = Ipv4Addr::LOCALHOST.into();
        Request::new(method, target, client, headers.iter().copied())
    }

    fn headers(response: &Response) -> Vec<(&str, &str)> {
        let headers = response.headers.iter();
        let of_cors =
            |name: &str| name.starts_with("Access-Control-Allow-Origin") || name == "Vary";
        headers
            .filter(|(name, _)| of_cors(name))
            .map(|(name, value)| (*name, value.as_str()))
            .collect()
    }

    #[test]
    fn origins_are_as_browsers_send_them() {
        for good in [
            APP,
            "http://localhost:3000",
            "http://[::1]:8080",
            "HTTPS://App.Example.Org",
        ] {
            let origin = AllowedOrigin::Origin(good.to_ascii_lowercase());
            assert_eq!(good.parse(), Ok(origin));
        }
        assert_eq!("*".parse(), Ok(AllowedOrigin::Any));
        for bad in [
            "",
            "null",
            "app.example.org",
            "https://",
            "https://app.example.org/",
            "https://app.example.org:443",
            "http://app.example.org:80",
            "https://user@app.example.org",
            "https://*.example.org",
            "ftp://example.org",
            "https://a\r\nb",
        ] {
            let reason = bad.parse::<AllowedOrigin>().expect_err(bad);
            assert!(reason.contains("https://app.example.org"), "{reason}");
        }
    }

    #[test]
    fn an_origin_is_told_only_if_it_is_allowed() {
        let app = AllowedOrigin::Origin(APP.to_owned());
        let other = "https://evil.example.org";
        let vary = ("Vary", "Origin");
        let origin = |origin| ("Access-Control-Allow-Origin", origin);
        for (allowed, sent, expected) in [
            (&[][..], Some(APP), &[][..]),
            (std::slice::from_ref(&app), None, &[vary][..]),
            (std::slice::from_ref(&app), Some(other), &[vary]),
            (std::slice::from_ref(&app), Some(APP), &[vary, origin(APP)]),
            (&[AllowedOrigin::Any], Some(other), &[origin("*")]),
            (
                &[AllowedOrigin::Any, app.clone()],
                Some(APP),
                &[vary, origin(APP)],
            ),
        ] {
            let sent: Vec<_> = sent.into_iter().map(|sent| ("Origin", sent)).collect();
            let request = request("POST", "/convert", &sent);
            let response = allow(Response::new(200, "a/b", "c"), allowed, &request);
            assert_eq!(headers(&response), expected, "{allowed:?} {sent:?}");
            let all = format!("{:?}", response.headers);
            assert!(!all.contains("Credentials"), "{all}");
        }
    }

    #[test]
    fn a_preflight_is_answered_for_allowed_origins_alone() {
        let app = [AllowedOrigin::Origin(APP.to_owned())];
        let asks = ("Access-Control-Request-Method", "POST");
        for (method, headers, is_answered) in [
            ("OPTIONS", &[("Origin", APP), asks][..], true),
            ("OPTIONS", &[("Origin", APP)], false),
            (
                "OPTIONS",
                &[("Origin", "https://evil.example.org"), asks],
                false,
            ),
            ("OPTIONS", &[asks], false),
            ("POST", &[("Origin", APP), asks], false),
        ] {
            let request = request(method, "/convert", headers);
            let response = preflight(&app, &request, "POST");
            assert_eq!(response.is_some(), is_answered, "{method} {headers:?}");
        }
    }

    #[test]
    fn of_all_origins_a_token_in_the_url_is_refused() {
        let page = [("Origin", APP)];
        let in_url = request("POST", "/convert?token=twp_", &page);
        let in_header = request("POST", "/convert?quality=3", &page);
        let own = request("POST", "/convert?token=twp_", &[]);
        let any = [AllowedOrigin::Any];
        let kind = check(&any, &in_url).expect_err("it is in the URL").kind;
        assert_eq!(kind, Kind::TokenInUrl);
        assert_eq!(check(&any, &in_header), Ok(()));
        assert_eq!(check(&any, &own), Ok(()));
        let named = [AllowedOrigin::Any, AllowedOrigin::Origin(APP.to_owned())];
        assert_eq!(check(&named, &in_url), Ok(()), "it is named");
    }
}
