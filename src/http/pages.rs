//! The pages for people: from requests to actions of [`dashboard`], and from their outcomes to
//! responses.

use super::credentials::session_cookie;
use super::pairs::Pairs;
use super::problem::{Kind, PROBLEMS, Problem};
use super::request::Request;
use super::response::{Response, with_problem_headers};
use super::same_site::is_same_site;
use super::settings::Settings;
use super::state::AppState;
use super::usage::filter_texts;
use crate::admission::{Rate, seconds, surrounding_network};
use crate::dashboard::{
    self, Again, Form, HistoryView, Outcome, Page, PageContext, PageStatus, SessionAction,
    SessionChange, SignedIn, Trouble, paths,
};
use crate::front::ByteQueue;
use crate::store::{Browser, EntryId, StoreError};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};
use towebp_pipeline::conversion::Preset;
use towebp_pipeline::image::{AcceptedFormats, Format};

/// How long a browser keeps the device cookie, in seconds: 400 days, the longest that browsers
/// allow (RFC 6265bis, section 5.5). The cookie signs nobody in, and becomes void with the
/// password.
const DEVICE_COOKIE_AGE: u64 = 400 * 24 * 60 * 60;

/// Changes of the tokens of one account. Each is a write, which all servers on the store learn.
const TOKEN_CHANGES: Rate = Rate {
    times: NonZeroU32::new(60).expect("it is not 0"),
    window: Duration::from_mins(10),
};

/// Allows files of this server, and nothing inline. `blob:` is the pictures on the pages that
/// convert, whose browsers compile the WebAssembly that this server serves.
fn content_security_policy(converts: bool) -> String {
    let [webassembly, pictures] = if converts {
        [" 'wasm-unsafe-eval'", " blob:"]
    } else {
        ["", ""]
    };
    format!(
        "default-src 'none'; style-src 'self'; script-src 'self'{webassembly}; img-src 'self'{pictures}; \
         connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
}

/// Checks the head of a form; the event loop calls it.
///
/// The sign-in and sign-up forms have no session yet that could carry a secret against forged
/// requests, so the origin of every form is checked by `Sec-Fetch-Site`, or by `Origin` where that
/// is missing (plain http outside of localhost). A request with neither does not come from a
/// browser of today, and so carries nobody's cookies against their will. Forms behind the sign-in
/// also carry the session's secret, which `dashboard` checks.
///
/// # Errors
/// 403, if the form comes from another site; 400, if it is not form-encoded.
pub fn admit(state: &AppState, request: &Request) -> Result<(), Problem> {
    if request.method != "POST" {
        return Ok(());
    }
    if !is_same_site(&state.settings, request) {
        return Err(cross_site_form());
    }
    if !request
        .media_type()
        .eq_ignore_ascii_case("application/x-www-form-urlencoded")
    {
        return Err(invalid_form());
    }
    Ok(())
}

/// 403 for a form that another site has sent.
pub fn cross_site_form() -> Problem {
    Problem::new(
        Kind::CrossSiteForm,
        "Open the page here and send the form from there.",
    )
}

/// 400 for a form in another encoding.
pub fn invalid_form() -> Problem {
    Problem::new(
        Kind::InvalidForm,
        "Send the form as application/x-www-form-urlencoded.",
    )
}

/// Makes a page from the parameters of the query.
pub type PublicPage = fn(&PageContext<'_>, &Pairs) -> Result<Outcome, Problem>;

/// Makes a page for a visitor who is signed in.
pub type SignedInPage = fn(&SignedIn<'_>, &Pairs) -> Result<Outcome, Problem>;

/// Makes a page.
#[derive(Clone, Copy)]
pub enum Show {
    /// For everybody.
    Public(PublicPage),
    /// For a visitor who is signed in.
    SignedIn(SignedInPage),
}

/// Carries out a form that needs no session.
pub type PublicAction = fn(&PageContext<'_>, &Form) -> Result<Outcome, StoreError>;

/// Carries out a form.
#[derive(Clone, Copy)]
pub enum Act {
    /// For everybody.
    Public(PublicAction),
    /// For a visitor who is signed in; if the session has ended, the visitor signs in and comes
    /// back to the page at this path.
    SignedIn(&'static str, SessionAction),
}

/// The functions of a path for people: its page, and its form.
#[derive(Clone, Copy)]
pub struct PageActions {
    /// The page; `None` if the path only takes a form.
    pub show: Option<Show>,
    /// The form; `None` if there is none.
    pub form: Option<FormAction>,
}

/// The action of a form, and its limits.
#[derive(Clone, Copy)]
pub struct FormAction {
    /// The limits that an attempt counts for before the action costs anything: two passwords are
    /// computed at a time, and everybody else waits.
    pub limits: &'static [FormLimit],
    /// Carries out the form.
    pub act: Act,
    /// Whether the response is due only once all servers on the store have learned of the change.
    pub is_due_in_force: bool,
}

/// A limit of forms.
#[derive(Clone, Copy)]
pub enum FormLimit {
    /// Attempts to sign in, by client address.
    SignIn,
    /// Attempts to sign up, by client address.
    SignUp,
    /// Changes of tokens, by account.
    TokenChanges,
}

impl PageActions {
    /// The methods that the path is answered by.
    pub const fn methods(&self) -> &'static str {
        match (&self.show, &self.form) {
            (Some(_), Some(_)) => "GET, HEAD, POST",
            (None, Some(_)) => "POST",
            (_, None) => "GET, HEAD",
        }
    }

    /// Answers a request of one of the methods.
    ///
    /// # Errors
    /// The problem of the page or of the form.
    pub fn answer(
        &self,
        state: &AppState,
        request: &Request,
        body: &mut ByteQueue,
    ) -> Result<Response, Problem> {
        let query = request.query();
        query.check()?;
        let base_url = base_url(&state.settings, request);
        let target = request.target();
        let context = context(state, request, &target, &base_url);
        let outcome = match (self.form, self.show) {
            (Some(form), _) if request.method == "POST" => {
                form.outcome(state, request, body, &context)?
            }
            (_, Some(Show::Public(show))) => show(&context, &query)?,
            (_, Some(Show::SignedIn(show))) => {
                dashboard::show_signed_in(&context, |context| show(context, &query))?
            }
            _ => return Err(Problem::method_not_allowed(&request.method, self.methods())),
        };
        let is_due_in_force = self.form.is_some_and(|form| form.is_due_in_force);
        Ok(Response {
            due: is_due_in_force.then(|| state.store.in_force_at()).flatten(),
            ..response(&state.settings, outcome)
        })
    }
}

impl FormAction {
    fn outcome(
        &self,
        state: &AppState,
        request: &Request,
        body: &mut ByteQueue,
        context: &PageContext<'_>,
    ) -> Result<Outcome, Problem> {
        let fields = Pairs::decode(&std::mem::take(body).into_vec());
        // Two passwords that differ only in bytes that are not UTF-8 would be the same.
        fields.check().map_err(|_| {
            Problem::new(
                Kind::InvalidForm,
                "A field is not UTF-8; send all of them as text in UTF-8, percent-encoded.",
            )
        })?;
        for limit in self.limits {
            limit.take(state, request)?;
        }
        let form = Form::new(fields.into_inner());
        Ok(match self.act {
            Act::Public(act) => act(context, &form)?,
            Act::SignedIn(page, act) => dashboard::act_signed_in(context, &form, page, act)?,
        })
    }
}

impl FormLimit {
    /// Counts an attempt.
    fn take(self, state: &AppState, request: &Request) -> Result<(), Problem> {
        let (limiters, now) = (&state.limiters, Instant::now());
        let by_address = match self {
            FormLimit::SignIn => limiters.signin.as_ref(),
            FormLimit::SignUp => limiters.signup.as_ref(),
            FormLimit::TokenChanges => {
                let cookie = session_cookie(request, &state.settings);
                let session = cookie.map(|cookie| state.store.session(cookie));
                if let Some(session) = session.transpose()?.flatten() {
                    let key = [(session.account.id, TOKEN_CHANGES)];
                    let taken = limiters.token_changes.take(&key, now);
                    taken
                        .map_err(|(_, wait)| Problem::too_many_changes(seconds(wait.next_after)))?;
                }
                None
            }
        };
        by_address.map_or(Ok(()), |limiter| {
            let taken = limiter.take(request.client, now);
            taken.map_err(|wait| Problem::too_many_attempts(seconds(wait.next_after)))
        })
    }
}

/// Shows the dashboard. The parameters `before`, `newer` and `failed_before` turn to later pages
/// of the history, and those of `/api/usage` filter it.
///
/// # Errors
/// 400, if a parameter is wrong.
pub fn overview(context: &SignedIn<'_>, query: &Pairs) -> Result<Outcome, Problem> {
    let id = |name| -> Result<Option<EntryId>, Problem> {
        Ok(query.parameter(name)?.and_then(|text| text.parse().ok()))
    };
    let view = HistoryView {
        texts: filter_texts(query)?,
        before: id("before")?,
        newer: query
            .parameter("newer")?
            .into_iter()
            .flat_map(|ids| ids.split(','))
            .filter_map(|id| id.parse().ok())
            .collect(),
        failed_before: id("failed_before")?,
    };
    Ok(dashboard::overview(context, &view)?)
}

/// A problem as a page. `methods` are those that the path is answered by; empty if it is not.
pub fn problem(request: &Request, methods: &str, problem: Problem) -> Response {
    let row = problem.kind.row();
    let is_read = matches!(request.method.as_str(), "GET" | "HEAD");
    let again = match (request.path.as_str(), is_read) {
        (paths::CONVERT, _) => Again::At(paths::CONVERTING, "To the page that converts"),
        _ if !methods.contains("GET") => Again::Nowhere,
        (_, true) => Again::Here,
        (_, false) => Again::At("", "Back to the form"),
    };
    let markup = dashboard::trouble(&Trouble {
        status: row.status,
        code: row.code,
        title: row.title,
        detail: &problem.detail,
        retry_after: problem.retry_after,
        request_id: request.id,
        again,
    });
    with_problem_headers(html(row.status, markup.into_string(), false), problem)
}

fn context<'a>(
    state: &'a AppState,
    request: &'a Request,
    target: &'a str,
    base_url: &'a str,
) -> PageContext<'a> {
    PageContext {
        store: &state.store,
        session_cookie: session_cookie(request, &state.settings),
        device_cookie: request.cookie(state.settings.device_cookie()),
        browser: Browser {
            name: dashboard::browser_name(request.header("user-agent").unwrap_or_default()),
            network: surrounding_network(request.client).to_string(),
        },
        target,
        base_url,
        max_body: state.settings.max_body,
        accepts_webp: state.settings.accepts.webp,
        accepts_tiff: state.settings.accepts.tiff,
        picture_types,
        signup: state.settings.signup,
        monthly_quota: state.settings.monthly_quota,
        check_preset,
        problem_title,
    }
}

/// The title of the problem of a code.
fn problem_title(code: &str) -> Option<&'static str> {
    let row = PROBLEMS.iter().find(|row| row.code == code);
    row.map(|row| row.title)
}

/// The types of pictures, with WebP and TIFF or without, as file dialogs offer them.
fn picture_types([webp, tiff]: [bool; 2]) -> String {
    let accepted = AcceptedFormats { webp, tiff };
    let formats = Format::ALL.into_iter();
    let formats = formats.filter(|format| format.is_accepted(accepted));
    let types = |format| {
        let types = Format::MEDIA_TYPES.into_iter();
        types.filter(move |(_, other)| *other == format)
    };
    let names = formats
        .clone()
        .flat_map(types)
        .map(|(name, _)| name.to_owned());
    let endings = formats.map(|format| format!(".{}", format.ending()));
    let others = [".jpeg"].into_iter().chain(tiff.then_some(".tiff"));
    let others = others.map(str::to_owned);
    let all: Vec<String> = names.chain(endings).chain(others).collect();
    all.join(",")
}

/// The text of a preset to store.
fn check_preset(text: &str) -> Result<String, String> {
    let preset = Preset::parse(text).map_err(|error| error.detail)?;
    Ok(preset.text())
}

/// The beginning of the URLs in the curl commands on the pages, without a slash at the end.
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

fn response(settings: &Settings, outcome: Outcome) -> Response {
    match outcome {
        Outcome::Page(page) => shown(settings, page),
        Outcome::Redirect { to, session } => redirect(settings, &to, session),
    }
}

fn shown(settings: &Settings, page: Page) -> Response {
    let (status, retry_after) = match page.status {
        PageStatus::Shown => (200, None),
        PageStatus::Invalid => (400, None),
        PageStatus::Forbidden => (403, None),
        PageStatus::TooManyAttempts { retry_after } => (429, Some(retry_after)),
    };
    // As the assets: caches keep a public page for clients without cookies.
    let (caching, vary) = if page.is_public {
        ("max-age=300", Some("Cookie"))
    } else {
        ("no-store", None)
    };
    let name = settings.token_cookie();
    let cookie = |token: String| set_cookie(settings, name, &token, "Strict", None);
    html(status, page.markup.into_string(), page.converts)
        .header("Cache-Control", caching)
        .header_if("Vary", vary)
        .header_if("Set-Cookie", page.token.map(cookie))
        .header_if("Retry-After", retry_after)
}

fn html(status: u16, text: String, converts: bool) -> Response {
    Response::with_policy(
        status,
        "text/html; charset=utf-8",
        text,
        &content_security_policy(converts),
    )
    // A site that opened the page in a new window cannot reach that window.
    .header("Cross-Origin-Opener-Policy", "same-origin")
    // Not no-referrer: that makes browsers send `Origin: null` with our own forms.
    .header("Referrer-Policy", "same-origin")
}

fn redirect(settings: &Settings, to: &str, change: SessionChange) -> Response {
    // The value of the session cookie, if it changes, and that of the device cookie; empty values
    // remove the cookies.
    let (session, device) = match change {
        SessionChange::Keep => (None, None),
        SessionChange::Start { session, device } => (Some(session), device),
        SessionChange::Renew { device } => (None, device),
        SessionChange::End => (Some(String::new()), None),
        SessionChange::Forget => (Some(String::new()), Some(String::new())),
    };
    let cookie = |name, value: &str, same_site, age| {
        let age = if value.is_empty() { Some(0) } else { age };
        set_cookie(settings, name, value, same_site, age)
    };
    // The token belongs to the account that was signed in until now.
    let token = session
        .as_ref()
        .map(|_| cookie(settings.token_cookie(), "", "Strict", None));
    let session = session.map(|value| cookie(settings.session_cookie(), &value, "Lax", None));
    let device_age = Some(DEVICE_COOKIE_AGE);
    let device = device.map(|value| cookie(settings.device_cookie(), &value, "Lax", device_age));
    Response::see_other(to)
        .header("Cache-Control", "no-store")
        .header_if("Set-Cookie", session)
        .header_if("Set-Cookie", token)
        .header_if("Set-Cookie", device)
}

/// The text of a cookie that no script reads; `age` is in seconds, and without it the cookie ends
/// with the browser.
fn set_cookie(
    settings: &Settings,
    name: &str,
    value: &str,
    same_site: &str,
    age: Option<u64>,
) -> String {
    let secure = if settings.is_behind_tls() {
        "; Secure"
    } else {
        ""
    };
    let age = age.map_or(String::new(), |seconds| format!("; Max-Age={seconds}"));
    format!("{name}={value}; Path=/; HttpOnly; SameSite={same_site}{secure}{age}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::asset::inflated;
    use std::net::Ipv4Addr;

    #[test]
    fn cookies_are_out_of_reach_of_scripts_and_secure_behind_https() {
        let cookies = |public_url: Option<&str>, change: SessionChange| {
            let settings = Settings {
                public_url: public_url.map(str::to_owned),
                ..Settings::default()
            };
            let response = redirect(&settings, "/dashboard", change);
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
                "towebp_token=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0",
                "towebp_device=xyz; Path=/; HttpOnly; SameSite=Lax; Max-Age=34560000"
            ]
        );
        assert_eq!(
            cookies(Some("https://example.org"), start),
            [
                "__Host-towebp_session=abc; Path=/; HttpOnly; SameSite=Lax; Secure",
                "__Host-towebp_token=; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0",
                "__Host-towebp_device=xyz; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=34560000"
            ]
        );
        let ended = "towebp_session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0";
        let token = "towebp_token=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0";
        let forgotten = "towebp_device=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0";
        assert_eq!(cookies(None, SessionChange::End), [ended, token]);
        assert_eq!(
            cookies(None, SessionChange::Forget),
            [ended, token, forgotten]
        );
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
    fn the_page_that_converts_has_its_own_words_for_problems() {
        let script = dashboard::assets().find(|(row, _)| row.path == paths::CONVERT_SCRIPT);
        let script = inflated(script.expect("it is an asset").1);
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
            assert!(script.contains(&key), "there are no words for {key}");
        }
        let (_, words) = script.split_once("const HELP = {").expect("the words");
        let (words, _) = words.split_once("};").expect("their end");
        for flag in ["curl", "-H '", "--data", "--memory"] {
            assert!(!words.contains(flag), "{flag}");
        }
    }

    #[test]
    fn advice_is_about_problems_that_exist() {
        for start in dashboard::advised() {
            let is_known = PROBLEMS.iter().any(|row| row.code.starts_with(start));
            assert!(is_known, "{start} is no code of a problem");
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
