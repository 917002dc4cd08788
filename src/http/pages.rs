//! The pages for people: from requests to [`dashboard`] actions, and from their outcomes to answers.

use super::error::{Kind, Problem};
use super::request::{Body, Pairs, Request, decode_pairs};
use super::response::{Response, with_problem_headers};
use super::router::not_found;
use super::{Rooms, Settings};
use crate::admission::{ClientRateLimiter, seconds};
use crate::dashboard::{self, Form, Outcome, Page, SessionChange, Verdict, Visit};
use std::time::Instant;

/// Where the browser keeps its session. Behind TLS the name has a prefix by which browsers take the cookie from this very
/// host and by TLS alone, so that no neighbour under the same domain can set it (RFC 6265bis, section 4.1.3.2).
pub fn session_cookie(settings: &Settings) -> &'static str {
    if is_behind_tls(settings) {
        "__Host-towebp_session"
    } else {
        "towebp_session"
    }
}

/// Where the browser keeps what tells that it has signed in before, under a name as that of [`session_cookie`].
fn device_cookie(settings: &Settings) -> &'static str {
    if is_behind_tls(settings) {
        "__Host-towebp_device"
    } else {
        "towebp_device"
    }
}

/// How long a browser keeps the device cookie, in seconds: 400 days, the longest that browsers allow (RFC 6265bis,
/// section 5.5). It opens nothing, and ends with the password.
const DEVICE_COOKIE_AGE: u64 = 400 * 24 * 60 * 60;

/// Most bytes of a form. The longest field, a password, has up to 1024, three times that in percent encoding.
const MAX_FORM: u64 = 16 << 10;

/// Only what this server itself serves; nothing inline. `blob:` is the converted picture of the try-it form.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' blob:; \
      connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Decides by the head alone. Whatever is no form has no use for a body; a small one does no harm.
///
/// # Errors
/// The form is not one of our own.
pub fn admit(rooms: &Rooms, request: &Request) -> Result<u64, Problem> {
    if request.method == "POST" {
        check_form(rooms, request)?;
    }
    Ok(MAX_FORM)
}

/// A page for browsers, and JSON for everybody else.
pub fn refusal(request: &Request, problem: Problem) -> Response {
    if request.wants_html() {
        problem_page(problem)
    } else {
        problem.into()
    }
}

/// Answers everything that is not part of the API. The method is one of the path's.
///
/// # Errors
/// 404, or why a form is not taken.
pub fn answer(rooms: &Rooms, request: &Request, body: &mut Body<'_>) -> Result<Response, Problem> {
    request.check_query()?;
    let base_url = base_url(&rooms.settings, request);
    let visit = Visit {
        store: &rooms.store,
        session_cookie: request.cookie(session_cookie(&rooms.settings)),
        device_cookie: request.cookie(device_cookie(&rooms.settings)),
        base_url: &base_url,
        signup: rooms.settings.signup,
        monthly_quota: rooms.settings.monthly_quota,
    };
    let outcome = match request.path.as_str() {
        "/" => dashboard::landing(&visit),
        "/signup" => match posted(rooms, request, body)? {
            None => {
                let invite = request.parameter("invite")?.unwrap_or_default();
                dashboard::sign_up_form(&visit, invite)
            }
            Some(form) => {
                take(rooms.limiters.signup.as_ref(), request)?;
                dashboard::sign_up(&visit, &form)
            }
        },
        "/signin" => match posted(rooms, request, body)? {
            None => dashboard::sign_in_form(&visit),
            Some(form) => {
                take(rooms.limiters.signin.as_ref(), request)?;
                dashboard::sign_in(&visit, &form)
            }
        },
        "/signout" => dashboard::sign_out(&visit, &form(rooms, request, body)?),
        "/signout/everywhere" => {
            dashboard::sign_out_everywhere(&visit, &form(rooms, request, body)?)
        }
        "/token/rotate" => dashboard::rotate_token(&visit, &form(rooms, request, body)?),
        "/account/password" => {
            let form = form(rooms, request, body)?;
            take(rooms.limiters.signin.as_ref(), request)?;
            dashboard::change_password(&visit, &form)
        }
        "/account/delete" => {
            let form = form(rooms, request, body)?;
            take(rooms.limiters.signin.as_ref(), request)?;
            dashboard::delete_account(&visit, &form)
        }
        "/account/changed" => dashboard::password_changed(&visit),
        "/account/deleted" => Ok(dashboard::deleted()),
        "/dashboard" => {
            let before = request
                .parameter("before")?
                .and_then(|number| number.parse().ok());
            dashboard::overview(&visit, before)
        }
        "/style.css" => {
            return Ok(asset("text/css; charset=utf-8", dashboard::STYLE));
        }
        "/app.js" => {
            return Ok(asset("text/javascript; charset=utf-8", dashboard::SCRIPT));
        }
        "/icon.svg" => return Ok(asset("image/svg+xml", dashboard::ICON)),
        _ => return Err(not_found()),
    };
    Ok(match outcome? {
        Outcome::Page(page) => shown(page),
        Outcome::Redirect { to, session } => redirect(&rooms.settings, to, &session),
    })
}

/// The form, if one was sent; none, if the page is only to be shown.
fn posted(rooms: &Rooms, request: &Request, body: &mut Body<'_>) -> Result<Option<Form>, Problem> {
    if request.method == "POST" {
        form(rooms, request, body).map(Some)
    } else {
        Ok(None)
    }
}

/// Counts an attempt of the client's address, before it costs anything: two passwords are computed at a time, and
/// everybody else waits.
fn take(limiter: Option<&ClientRateLimiter>, request: &Request) -> Result<(), Problem> {
    let Some(limiter) = limiter else {
        return Ok(());
    };
    match limiter.take(request.client, Instant::now()) {
        Ok(()) => Ok(()),
        Err(wait) => Err(Problem::too_many_attempts(seconds(wait.next_after))),
    }
}

/// Reads a form that one of our own pages sent.
///
/// The sign-in and sign-up forms have no session yet that could carry a secret against forged requests, so every form
/// is held to where it comes from, as browsers tell it: `Sec-Fetch-Site`, or `Origin` where that is missing (plain
/// http outside of localhost). A request with neither does not come from a browser of today, and so carries nobody's
/// cookies against their will. Forms behind the sign-in also carry the session's secret, which `dashboard` checks.
fn form(rooms: &Rooms, request: &Request, body: &mut Body<'_>) -> Result<Form, Problem> {
    check_form(rooms, request)?;
    let bytes = body.read(MAX_FORM)?;
    let Pairs { pairs, undecodable } = decode_pairs(&bytes);
    match undecodable {
        // Two passwords would be the same that differ in such bytes alone.
        Some(_) => Err(Problem::new(
            Kind::InvalidForm,
            "A field is not UTF-8; send all of them as text in UTF-8, percent-encoded.",
        )),
        None => Ok(Form::new(pairs)),
    }
}

/// What the head of a form shows.
fn check_form(rooms: &Rooms, request: &Request) -> Result<(), Problem> {
    if !is_same_site(&rooms.settings, request) {
        return Err(Problem::new(
            Kind::CrossSiteForm,
            "Open the page here and send the form from there.",
        ));
    }
    if !request
        .media_type()
        .eq_ignore_ascii_case("application/x-www-form-urlencoded")
    {
        return Err(Problem::new(
            Kind::InvalidForm,
            "Send the form as application/x-www-form-urlencoded.",
        ));
    }
    Ok(())
}

fn is_same_site(settings: &Settings, request: &Request) -> bool {
    if let Some(site) = request.header("sec-fetch-site") {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = request.header("origin") else {
        return true;
    };
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    settings.public_url.as_deref() == Some(origin)
        || (authority.is_some() && authority == request.header("host"))
}

/// What curl lines on the pages begin with.
fn base_url(settings: &Settings, request: &Request) -> String {
    if let Some(url) = &settings.public_url {
        return url.clone();
    }
    let harmless = |host: &&str| {
        !host.is_empty()
            && host
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b".:-[]".contains(&b))
    };
    format!(
        "http://{}",
        request
            .header("host")
            .filter(harmless)
            .unwrap_or("localhost")
    )
}

fn shown(page: Page) -> Response {
    let (status, retry_after) = match page.verdict {
        Verdict::Fine => (200, None),
        Verdict::Rejected => (400, None),
        Verdict::Forbidden => (403, None),
        Verdict::TooMany { retry_after } => (429, Some(retry_after)),
    };
    let response = html(status, page.markup.into_string()).header("Cache-Control", "no-store");
    match retry_after {
        Some(seconds) => response.header("Retry-After", &seconds.to_string()),
        None => response,
    }
}

fn problem_page(problem: Problem) -> Response {
    let row = problem.kind.row();
    let markup = dashboard::message(row.title, &problem.detail);
    with_problem_headers(html(row.status, markup.into_string()), problem)
}

fn html(status: u16, text: String) -> Response {
    Response::with_policy(
        status,
        "text/html; charset=utf-8",
        text,
        CONTENT_SECURITY_POLICY,
    )
    // Nobody who opened the page in a window of theirs keeps a hold on it.
    .header("Cross-Origin-Opener-Policy", "same-origin")
    // Not no-referrer: that makes browsers send `Origin: null` with our own forms.
    .header("Referrer-Policy", "same-origin")
}

fn asset(media_type: &str, text: &'static str) -> Response {
    // Short, so that a new version of the server is seen soon.
    Response::new(200, media_type, text).header("Cache-Control", "max-age=300")
}

fn redirect(settings: &Settings, to: &str, session: &SessionChange) -> Response {
    let response = Response::see_other(to).header("Cache-Control", "no-store");
    let secure = if is_behind_tls(settings) {
        "; Secure"
    } else {
        ""
    };
    let attributes = format!("Path=/; HttpOnly; SameSite=Lax{secure}");
    let set = |response: Response, name: &str, value: &str, age: Option<u64>| {
        let age = age.map_or(String::new(), |seconds| format!("; Max-Age={seconds}"));
        response.header("Set-Cookie", &format!("{name}={value}; {attributes}{age}"))
    };
    let (session_name, device_name) = (session_cookie(settings), device_cookie(settings));
    let with_device = |response: Response, device: &Option<String>| match device {
        Some(value) => set(response, device_name, value, Some(DEVICE_COOKIE_AGE)),
        None => response,
    };
    match session {
        SessionChange::Keep => response,
        SessionChange::Start { session, device } => {
            with_device(set(response, session_name, session, None), device)
        }
        SessionChange::Renew { device } => with_device(response, device),
        SessionChange::End => set(response, session_name, "", Some(0)),
        SessionChange::Forget => {
            let response = set(response, session_name, "", Some(0));
            set(response, device_name, "", Some(0))
        }
    }
}

/// Whether browsers reach the service by https.
pub fn is_behind_tls(settings: &Settings) -> bool {
    let url = settings.public_url.as_deref();
    url.is_some_and(|url| url.starts_with("https://"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn same_site(public_url: Option<&str>, headers: &[(&str, &str)]) -> bool {
        let settings = Settings {
            public_url: public_url.map(str::to_owned),
            ..Settings::default()
        };
        is_same_site(
            &settings,
            &Request::new(
                "POST",
                "/signin",
                Ipv4Addr::LOCALHOST.into(),
                headers.iter().copied(),
            ),
        )
    }

    #[test]
    fn forms_of_other_sites_are_told_by_what_browsers_say() {
        let host = ("Host", "localhost:8080");
        assert!(same_site(
            None,
            &[host, ("Sec-Fetch-Site", "same-origin"), ("Origin", "null")]
        ));
        assert!(!same_site(None, &[host, ("Sec-Fetch-Site", "cross-site")]));
        assert!(
            !same_site(None, &[host, ("Sec-Fetch-Site", "same-site")]),
            "another port of the same host"
        );
        assert!(same_site(
            None,
            &[host, ("Origin", "http://localhost:8080")]
        ));
        assert!(!same_site(
            None,
            &[host, ("Origin", "http://localhost:9090")]
        ));
        assert!(!same_site(None, &[host, ("Origin", "null")]));
        assert!(same_site(None, &[host]), "curl says neither");
        let behind_proxy = [
            ("Host", "127.0.0.1:8080"),
            ("Origin", "https://webp.example.org"),
        ];
        assert!(same_site(Some("https://webp.example.org"), &behind_proxy));
        assert!(!same_site(None, &behind_proxy));
    }

    #[test]
    fn cookies_are_out_of_reach_of_scripts_and_secure_behind_https() {
        let cookies = |public_url: Option<&str>, change: SessionChange| {
            let settings = Settings {
                public_url: public_url.map(str::to_owned),
                ..Settings::default()
            };
            let response = redirect(&settings, "/dashboard", &change);
            let cookies = response
                .headers
                .into_iter()
                .filter(|(name, _)| *name == "Set-Cookie");
            cookies.map(|(_, value)| value).collect::<Vec<_>>()
        };
        let start = SessionChange::Start {
            session: "abc".to_owned(),
            device: Some("xyz".to_owned()),
        };
        assert_eq!(
            cookies(None, start.clone()),
            [
                "towebp_session=abc; Path=/; HttpOnly; SameSite=Lax",
                "towebp_device=xyz; Path=/; HttpOnly; SameSite=Lax; Max-Age=34560000"
            ]
        );
        assert_eq!(
            cookies(Some("https://example.org"), start),
            [
                "__Host-towebp_session=abc; Path=/; HttpOnly; SameSite=Lax; Secure",
                "__Host-towebp_device=xyz; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=34560000"
            ]
        );
        let ended = "towebp_session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0";
        let forgotten = "towebp_device=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0";
        assert_eq!(cookies(None, SessionChange::End), [ended]);
        assert_eq!(cookies(None, SessionChange::Forget), [ended, forgotten]);
        let renewed = SessionChange::Renew {
            device: Some("new".to_owned()),
        };
        assert_eq!(
            cookies(None, renewed),
            ["towebp_device=new; Path=/; HttpOnly; SameSite=Lax; Max-Age=34560000"]
        );
    }

    /// The API's words name curl's flags and the server's.
    #[test]
    fn the_try_it_form_has_its_own_words_for_problems() {
        for kind in [
            Kind::BodyEmpty,
            Kind::BodyTooLarge,
            Kind::Busy,
            Kind::ContentTypeMissing,
            Kind::ContentTypeUnsupported,
            Kind::ConversionTimeout,
            Kind::ImageTooWide,
            Kind::InternalError,
            Kind::InvalidImage,
            Kind::StorageUnavailable,
            Kind::TokenInvalid,
            Kind::TokenMissing,
            Kind::TooManyFrames,
            Kind::TooManyPixels,
            Kind::TooMuchMemory,
            Kind::WrongFormat,
        ] {
            let key = format!("{}: ", kind.row().code);
            assert!(
                dashboard::SCRIPT.contains(&key),
                "there are no words for {key}"
            );
        }
        for flag in ["curl", "-H '", "--data", "--memory"] {
            assert!(!dashboard::SCRIPT.contains(flag), "{flag}");
        }
    }

    #[test]
    fn a_host_that_would_break_out_of_the_curl_line_is_not_repeated() {
        let base = |host| {
            base_url(
                &Settings::default(),
                &Request::new(
                    "GET",
                    "/",
                    Ipv4Addr::LOCALHOST.into(),
                    [("Host", host)].into_iter(),
                ),
            )
        };
        assert_eq!(base("127.0.0.1:8080"), "http://127.0.0.1:8080");
        assert_eq!(base("[::1]:80"), "http://[::1]:80");
        assert_eq!(base("x';rm -rf ~;'"), "http://localhost");
    }
}
