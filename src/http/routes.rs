//! The one table of paths. Whatever depends on a path stands in its row: methods, body limit,
//! parameters, who reads its errors, and who answers it.

use super::cors::AllowedOrigin;
use super::problem::{Kind, Problem, Scope};
use super::request::{Body, Request};
use super::response::Response;
use super::settings::Settings;
use super::state::AppState;
use super::{convert, cors, docs, failures, health, pages, suggestion, usage};
use crate::dashboard::paths;
use towebp_pipeline::conversion::{PARAMETERS, Parameter, TOKEN};

/// How one path is answered.
pub struct Route {
    /// The path.
    pub path: &'static str,
    /// The methods that it is answered by, as in `Allow`.
    pub methods: &'static str,
    /// Most bytes of a body.
    pub body_limit: BodyLimit,
    /// Lists of its parameters, if a mistyped one is pointed out.
    pub parameters: &'static [&'static [Parameter]],
    /// Who reads its errors.
    audience: Audience,
    /// Who answers it.
    pub handler: Handler,
    /// What the description of the API says of it, if programs call it.
    pub operation: Option<Operation>,
}

/// What the description of the API says of a path, beside what the other columns do.
pub struct Operation {
    /// By which generated clients name it.
    pub id: &'static str,
    /// The group that it belongs to.
    pub tag: &'static str,
    /// A few words.
    pub summary: &'static str,
    /// Sentences in Markdown.
    pub description: &'static str,
    /// What shows whose the request is.
    pub credentials: Credentials,
    /// The body of a success.
    pub success: Success,
    /// The problems that it is answered with.
    pub scopes: &'static [Scope],
}

/// What shows whose a request is.
pub enum Credentials {
    /// Nothing is needed.
    None,
    /// A token.
    Token,
    /// A token, or the session of a browser.
    TokenOrSession,
}

/// The body of a success.
pub enum Success {
    /// A picture.
    Picture,
    /// This text.
    Text(&'static str),
    /// A page of the usage history.
    History,
    /// A history as CSV.
    HistoryCsv,
    /// The usage history, one JSON object a line.
    HistoryLines,
    /// Sums, in the schema of this name.
    Sums(&'static str),
    /// A page of failed conversions.
    Failures,
    /// The description of the API.
    Description,
}

/// Who answers a path.
#[derive(Clone, Copy)]
pub enum Handler {
    /// The event loop answers at once, however busy the workers are.
    EventLoop(fn() -> Response),
    /// [`convert`] admits the request, and a worker answers it.
    Conversion,
    /// A worker that is kept for it answers it.
    Readiness(PageHandler),
    /// A worker answers it.
    Page {
        /// Checks the head; called by the event loop, so it waits for nothing.
        admit: fn(&AppState, &Request) -> Result<(), Problem>,
        /// Answers the request.
        answer: PageHandler,
    },
}

/// Answers a request on a worker.
pub type PageHandler = fn(&AppState, &Request, &mut Body) -> Result<Response, Problem>;

/// Most bytes of a body.
#[derive(Clone, Copy)]
pub enum BodyLimit {
    /// [`Settings::max_body`].
    Picture,
    /// 16 KiB. The longest field of a form, a password, has up to 1024 bytes, three times that in
    /// percent encoding. A request that needs no body may have one of that size: it does no harm.
    Form,
}

impl BodyLimit {
    /// The limit in bytes.
    pub fn bytes(self, settings: &Settings) -> u64 {
        match self {
            BodyLimit::Picture => settings.max_body,
            BodyLimit::Form => 16 << 10,
        }
    }
}

/// Who reads the errors of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// Programs: errors are JSON, but pages for browsers that would show them.
    Programs,
    /// People: errors are pages for who takes HTML, and JSON for everybody else.
    People,
}

/// The methods of what can only be read. The front leaves out the body of an answer to HEAD.
const READ: &str = "GET, HEAD";

/// The methods of a page with a form.
const FORM: &str = "GET, HEAD, POST";

/// The liveness check.
const HEALTH: &str = "/healthz";

/// The readiness check.
const READINESS: &str = "/readyz";

/// Where password managers look for the form that changes the password.
const CHANGE_PASSWORD_FORM: &str = "/.well-known/change-password";

/// The sums of days.
const USAGE_DAYS: &str = "/api/usage/days";

/// The sums of months.
const USAGE_MONTHS: &str = "/api/usage/months";

/// Failed conversions, page by page.
const FAILURES: &str = "/api/failures";

/// All paths. Any other path is a 404, whatever the method and the body.
pub const ROUTES: &[Route] = &[
    Route {
        path: paths::CONVERT,
        methods: "POST",
        body_limit: BodyLimit::Picture,
        parameters: &[&PARAMETERS, &[convert::DOWNLOAD]],
        audience: Audience::Programs,
        handler: Handler::Conversion,
        operation: Some(CONVERSION),
    },
    Route {
        handler: Handler::EventLoop(health::alive),
        ..api(HEALTH, &[], health::ready, ALIVE)
    },
    Route {
        handler: Handler::Readiness(health::ready),
        ..api(READINESS, &[], health::ready, READY)
    },
    api(
        paths::USAGE,
        &[&[TOKEN], &usage::PAGE, &usage::FILTERS],
        usage::json,
        HISTORY,
    ),
    api(
        paths::USAGE_CSV,
        &[&[TOKEN], &usage::FILTERS],
        usage::csv,
        HISTORY_CSV,
    ),
    api(
        paths::USAGE_LINES,
        &[&[TOKEN], &usage::FILTERS],
        usage::ndjson,
        HISTORY_LINES,
    ),
    api(
        USAGE_DAYS,
        &[&[TOKEN], &usage::FILTERS],
        usage::days,
        HISTORY_DAYS,
    ),
    api(
        USAGE_MONTHS,
        &[&[TOKEN], &usage::FILTERS],
        usage::months,
        HISTORY_MONTHS,
    ),
    api(
        FAILURES,
        &[&[TOKEN], &usage::PAGE, &failures::FILTERS],
        failures::json,
        FAILED,
    ),
    api(
        paths::FAILURES_CSV,
        &[&[TOKEN], &failures::FILTERS],
        failures::csv,
        FAILED_CSV,
    ),
    api(
        paths::OPENAPI,
        &[],
        |state, request, _| Ok(state.openapi.answer(request)),
        DESCRIPTION,
    ),
    page(paths::START, READ, pages::start),
    page(paths::DASHBOARD, READ, pages::overview),
    page(paths::CONVERTING, READ, pages::convert),
    page(paths::SIGN_UP, FORM, pages::sign_up),
    page(paths::SIGN_IN, FORM, pages::sign_in),
    page(paths::SIGN_OUT, "POST", pages::sign_out),
    page(
        paths::SIGN_OUT_EVERYWHERE,
        "POST",
        pages::sign_out_everywhere,
    ),
    page(paths::SESSIONS, READ, pages::sessions),
    page(paths::END_SESSION, "POST", pages::end_session),
    page(paths::TOKENS, READ, pages::tokens),
    page(paths::CREATE_TOKEN, "POST", pages::create_token),
    page(paths::CHANGE_TOKEN, "POST", pages::change_token),
    page(paths::ROTATE_TOKEN, "POST", pages::rotate_token),
    page(paths::DELETE_TOKEN, "POST", pages::delete_token),
    page(paths::REVEAL_TOKEN, "POST", pages::reveal_token),
    page(paths::ACCOUNT, READ, pages::account),
    page(paths::CHANGE_EMAIL, "POST", pages::change_email),
    page(paths::EMAIL_CHANGED, READ, pages::email_changed),
    page(paths::CHANGE_PASSWORD, "POST", pages::change_password),
    page(CHANGE_PASSWORD_FORM, READ, pages::change_password_form),
    page(paths::DELETE_ACCOUNT, "POST", pages::delete_account),
    page(paths::PASSWORD_CHANGED, READ, pages::password_changed),
    page(paths::ACCOUNT_DELETED, READ, pages::account_deleted),
    page(paths::DOCS, READ, docs::index),
    page(paths::DOCS_API, READ, docs::page),
    page(paths::DOCS_FORMATS, READ, docs::page),
    page(paths::DOCS_COMMAND_LINE, READ, docs::page),
    page(paths::DOCS_INSTALL, READ, docs::page),
    page(paths::DOCS_OPERATING, READ, docs::page),
    page(paths::DOCS_DEPLOY, READ, docs::page),
    page(paths::DOCS_CLUSTER, READ, docs::page),
    page(paths::DOCS_SECURITY, READ, docs::page),
    page(paths::STYLE, READ, pages::style),
    page(paths::CONVERT_STYLE, READ, pages::convert_style),
    page(paths::SCRIPT, READ, pages::script),
    page(paths::USAGE_SCRIPT, READ, pages::usage_script),
    page(paths::CONVERT_SCRIPT, READ, pages::convert_script),
    page(paths::ICON, READ, pages::icon),
];

const CONVERSION: Operation = Operation {
    id: "convert",
    tag: "conversion",
    summary: "Converts a picture to WebP",
    description: "The body is the picture's bytes, and `Content-Type` says what they are. Of `quality`, \
        `max_bytes` and `target` one may be given. A success adds one entry to the usage history.",
    credentials: Credentials::Token,
    success: Success::Picture,
    scopes: &[
        Scope::Connection,
        Scope::Worker,
        Scope::Token,
        Scope::Conversion,
    ],
};

const ALIVE: Operation = Operation {
    id: "getHealth",
    tag: "server",
    summary: "Whether the process runs",
    description: "It needs no worker, so that it is answered however busy the server is.",
    credentials: Credentials::None,
    success: Success::Text("ok"),
    scopes: &[Scope::Connection],
};

const READY: Operation = Operation {
    id: "getReadiness",
    tag: "server",
    summary: "Whether the server can do its work",
    description: "It converts a tiny picture and commits to the database. An outcome is reused for a second.",
    credentials: Credentials::None,
    success: Success::Text("ready"),
    scopes: &[Scope::Connection, Scope::Worker, Scope::Readiness],
};

const HISTORY: Operation = Operation {
    id: "getHistory",
    tag: "history",
    summary: "A page of the usage history",
    description: "Newest first. Of an account's tokens only `default` reads it.",
    credentials: Credentials::TokenOrSession,
    success: Success::History,
    scopes: HISTORY_SCOPES,
};

const HISTORY_CSV: Operation = Operation {
    id: "getHistoryCsv",
    summary: "The whole usage history as CSV",
    description: "As of the moment of the request, newest first, however long it is: it is sent in chunks.",
    success: Success::HistoryCsv,
    ..HISTORY
};

const HISTORY_LINES: Operation = Operation {
    id: "getHistoryLines",
    summary: "The whole usage history, one JSON object a line",
    success: Success::HistoryLines,
    ..HISTORY_CSV
};

const HISTORY_DAYS: Operation = Operation {
    id: "getDays",
    summary: "Conversions and bytes by day",
    description: "Oldest first; days without conversions are left out. Without `from`, of the last ten years. Sums \
        stay when old entries are removed.",
    success: Success::Sums("Days"),
    ..HISTORY
};

const HISTORY_MONTHS: Operation = Operation {
    id: "getMonths",
    summary: "Conversions and bytes by month",
    description: "As the days. A month is summed up over those of its days that are asked for.",
    success: Success::Sums("Months"),
    ..HISTORY
};

const FAILED: Operation = Operation {
    id: "getFailures",
    summary: "A page of the conversions that failed",
    description: "Newest first, of the last 30 days, at most 10,000. They count nowhere.",
    success: Success::Failures,
    ..HISTORY
};

const FAILED_CSV: Operation = Operation {
    id: "getFailuresCsv",
    summary: "The conversions that failed as CSV",
    success: Success::HistoryCsv,
    ..FAILED
};

const HISTORY_SCOPES: &[Scope] = &[
    Scope::Connection,
    Scope::Worker,
    Scope::Token,
    Scope::History,
];

const DESCRIPTION: Operation = Operation {
    id: "getDescription",
    tag: "server",
    summary: "The description of the API",
    description: "This document.",
    credentials: Credentials::None,
    success: Success::Description,
    scopes: &[Scope::Connection, Scope::Worker],
};

/// A path that programs read.
const fn api(
    path: &'static str,
    parameters: &'static [&'static [Parameter]],
    answer: PageHandler,
    operation: Operation,
) -> Route {
    Route {
        path,
        methods: READ,
        body_limit: BodyLimit::Form,
        parameters,
        audience: Audience::Programs,
        handler: Handler::Page {
            admit: |_, _| Ok(()),
            answer,
        },
        operation: Some(operation),
    }
}

/// A path for people. Whatever is sent to it by POST is a form.
const fn page(path: &'static str, methods: &'static str, answer: PageHandler) -> Route {
    Route {
        path,
        methods,
        body_limit: BodyLimit::Form,
        parameters: &[],
        audience: Audience::People,
        handler: Handler::Page {
            admit: pages::admit,
            answer,
        },
        operation: None,
    }
}

/// The route of a request.
///
/// # Errors
/// 404, if its path is not in the table; 405, if the path is not answered by its method.
pub fn find(request: &Request) -> Result<&'static Route, Problem> {
    let route = by_path(&request.path).ok_or_else(|| {
        Problem::new(
            Kind::NotFound,
            "Pictures are converted by POST /convert; the start page is at /.",
        )
    })?;
    if route
        .methods
        .split(", ")
        .any(|method| method == request.method)
    {
        return Ok(route);
    }
    Err(Problem::method_not_allowed(&request.method, route.methods))
}

/// A problem in the form that suits the readers of its path. People come to those of programs, too:
/// by a link to a file after their session has ended, or by a form without script.
pub fn problem_response(request: &Request, problem: Problem) -> Response {
    let route = by_path(&request.path);
    let is_page = match route.map_or(Audience::People, |route| route.audience) {
        Audience::People => request.wants_html(),
        Audience::Programs => request.is_opened_by_browser(),
    };
    if is_page {
        let methods = route.map_or("", |route| route.methods);
        pages::problem(request, methods, problem)
    } else {
        problem.into()
    }
}

/// Whether programs read the path of the request, and so pages of other origins may.
pub fn is_for_programs(request: &Request) -> bool {
    by_path(&request.path).is_some_and(|route| route.audience == Audience::Programs)
}

/// Whether the request is answered by a conversion.
pub fn is_conversion(request: &Request) -> bool {
    let route = by_path(&request.path);
    route.is_some_and(|route| matches!(route.handler, Handler::Conversion))
}

/// The response to a preflight of a page from another origin, which needs no worker; `None` if the
/// request is none.
pub fn preflight(request: &Request, allowed: &[AllowedOrigin]) -> Option<Response> {
    let route = by_path(&request.path)?;
    if route.audience == Audience::People {
        return None;
    }
    cors::preflight(allowed, request, route.methods)
}

/// The parameters of a request that are probably mistyped, as text for `X-Towebp-Warning`.
pub fn warning(request: &Request) -> Option<String> {
    let rows = by_path(&request.path)?.parameters.iter().copied().flatten();
    let known: Vec<&str> = rows.map(|row| row.name).collect();
    suggestion::warning(request.parameter_names(), &known)
}

fn by_path(path: &str) -> Option<&'static Route> {
    ROUTES.iter().find(|route| route.path == path)
}

/// The paths that forms are sent to.
#[cfg(test)]
pub fn forms() -> impl Iterator<Item = &'static str> {
    let takes_forms =
        |route: &&Route| route.audience == Audience::People && route.methods.contains("POST");
    ROUTES.iter().filter(takes_forms).map(|route| route.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard;
    use crate::http::asset::inflated;
    use std::collections::HashSet;
    use std::net::Ipv4Addr;

    fn request(method: &str, target: &str) -> Request {
        let client = Ipv4Addr::LOCALHOST.into();
        Request::new(method, target, client, std::iter::empty())
    }

    fn found(method: &str, target: &str) -> Result<(), (Kind, Option<&'static str>)> {
        find(&request(method, target))
            .map(drop)
            .map_err(|problem| (problem.kind, problem.allow))
    }

    #[test]
    fn a_wrong_path_is_not_found_and_a_wrong_method_not_allowed() {
        for method in ["GET", "POST", "PUT", "BREW"] {
            for path in [
                "/convert/",
                "/shrink",
                "/Convert",
                "",
                "*",
                "/api",
                "/api/usage/",
            ] {
                let outcome = found(method, path);
                assert_eq!(outcome, Err((Kind::NotFound, None)), "{method} {path}");
            }
        }
        assert_eq!(found("POST", "/convert"), Ok(()));
        assert_eq!(found("POST", "/convert?a=b"), Ok(()));
        let rejected = Err((Kind::MethodNotAllowed, Some("POST")));
        assert_eq!(found("GET", "/convert"), rejected);
        for Route { path, methods, .. } in ROUTES {
            for method in methods.split(", ") {
                assert_eq!(found(method, path), Ok(()), "{method} {path}");
            }
            let rejected = Err((Kind::MethodNotAllowed, Some(*methods)));
            assert_eq!(found("DELETE", path), rejected, "{path}");
        }
    }

    #[test]
    fn every_path_is_answered_once_and_every_link_leads_somewhere() {
        let answered: HashSet<&str> = ROUTES.iter().map(|route| route.path).collect();
        assert_eq!(answered.len(), ROUTES.len());
        for path in paths::ALL {
            assert!(answered.contains(path), "{path}");
        }
        for script in [
            dashboard::SCRIPT,
            dashboard::USAGE_SCRIPT,
            dashboard::CONVERT_SCRIPT,
        ]
        .map(inflated)
        {
            assert!(
                !script.contains("fetch(\""),
                "a script has a path of its own"
            );
        }
    }

    #[test]
    fn each_path_has_its_own_parameters() {
        let warned = |target: &str| warning(&request("POST", target));
        let limit = "unknown parameter \"limt\", did you mean \"limit\"?";
        assert_eq!(warned("/api/usage?limt=1").as_deref(), Some(limit));
        assert_eq!(warned("/api/usage?qualty=1"), None);
        assert_eq!(warned("/convert?limt=1"), None);
        assert!(warned("/convert?qualty=1").is_some());
        assert_eq!(warned("/dashboard?tokn=1"), None);
    }
}
