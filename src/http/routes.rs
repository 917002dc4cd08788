//! The one table of paths. Its row has everything that depends on a path: methods, body limit,
//! parameters, the readers of its errors, and its handler.

use super::cors::AllowedOrigin;
use super::pages::{
    Act, FormAction, FormLimit, PageActions, PublicAction, PublicPage, Show, SignedInPage,
};
use super::problem::{Kind, Problem, Scope};
use super::request::Request;
use super::response::Response;
use super::settings::Settings;
use super::state::AppState;
use super::{asset, convert, cors, csv, failures, health, pages, suggestion, usage};
use crate::dashboard::{self, Outcome, SessionAction, paths};
use crate::front::ByteQueue;
use towebp_pipeline::conversion::{PARAMETERS, Parameter, TOKEN};

/// How one path is answered.
pub struct Route {
    /// The path, perhaps with a name in braces that stands for several.
    pub path: &'static str,
    /// Whether a path is one of several that the route answers; `None` if it answers one.
    is_at: Option<fn(&str) -> bool>,
    /// The methods that it is answered by, as in `Allow`.
    pub methods: &'static str,
    /// Most bytes of a body.
    pub body_limit: BodyLimit,
    /// Lists of its parameters, if a mistyped one is pointed out.
    pub parameters: &'static [&'static [Parameter]],
    /// The readers of its errors.
    audience: Audience,
    /// Its handler.
    pub handler: Handler,
    /// Its entry in the description of the API, if programs call it.
    pub operation: Option<Operation>,
}

/// The entry of a path in the description of the API, beside the other columns.
pub struct Operation {
    /// The name in generated clients.
    pub id: &'static str,
    /// The group that it belongs to.
    pub tag: &'static str,
    /// A few words.
    pub summary: &'static str,
    /// Sentences in Markdown.
    pub description: &'static str,
    /// The credentials that it needs.
    pub credentials: Credentials,
    /// The body of a success.
    pub success: Success,
    /// The problems that it is answered with.
    pub scopes: &'static [Scope],
}

/// The credentials that a request needs.
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
    /// JSON: its description, and the name of its schema.
    Json(&'static str, &'static str),
    /// A history as a file: its description, and its media type.
    File(&'static str, &'static str),
    /// The description of the API.
    Description,
}

/// The handler of a path.
#[derive(Clone, Copy)]
pub enum Handler {
    /// The event loop answers at once, however busy the workers are.
    EventLoop(fn() -> Response),
    /// [`convert`] admits the request, and a worker answers it.
    Conversion,
    /// A worker answers it.
    Worker(Task),
}

/// The work of a worker that is no conversion.
#[derive(Clone, Copy)]
pub enum Task {
    /// A worker that is kept for it answers.
    Readiness,
    /// An answer for programs.
    Api(fn(&AppState, &Request) -> Result<Response, Problem>),
    /// A page for people.
    Page(PageActions),
    /// A file that pages load.
    Asset,
}

impl Task {
    /// Checks the head; called by the event loop, so it waits for nothing.
    ///
    /// # Errors
    /// See [`pages::admit`].
    pub fn admit(self, state: &AppState, request: &Request) -> Result<(), Problem> {
        match self {
            Task::Page(_) => pages::admit(state, request),
            _ => Ok(()),
        }
    }

    /// Answers the request on a worker.
    ///
    /// # Errors
    /// The problem with which it fails.
    pub fn answer(
        self,
        state: &AppState,
        request: &Request,
        body: &mut ByteQueue,
    ) -> Result<Response, Problem> {
        match self {
            Task::Readiness => health::ready(state),
            Task::Api(answer) => answer(state, request),
            Task::Page(actions) => actions.answer(state, request, body),
            Task::Asset => asset::answer(request),
        }
    }
}

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

/// The readers of a path's errors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// Programs: errors are JSON, but pages for browsers that would show them.
    Programs,
    /// People: errors are pages if the client takes HTML, and JSON otherwise.
    People,
}

/// The methods of a path that is only read. The front leaves out the body of an answer to HEAD.
const READ: &str = "GET, HEAD";

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

/// The description of the files of the usage history.
const EXPORT: &str =
    "As of the moment of the request, newest first, however long it is: it is sent in chunks.";

/// The description of a file of CSV.
const CSV_FILE: &str = "All rows, after a first one of names.";

/// The description of the failed conversions.
const FAILED: &str = "Newest first, of the last 30 days, at most 10,000. They count nowhere.";

/// A path that programs read, with its operation.
macro_rules! api {
    ($path:expr, $task:expr, [$($parameters:expr),*], $tag:literal $id:literal, $credentials:ident,
        [$($scope:ident)+], $success:expr, $summary:literal, $description:expr) => {
        Route {
            path: $path,
            is_at: None,
            methods: READ,
            body_limit: BodyLimit::Form,
            parameters: &[$($parameters),*],
            audience: Audience::Programs,
            handler: Handler::Worker($task),
            operation: Some(Operation {
                id: $id,
                tag: $tag,
                summary: $summary,
                description: $description,
                credentials: Credentials::$credentials,
                success: $success,
                scopes: &[$(Scope::$scope),+],
            }),
        }
    };
}

/// A path that describes the server.
macro_rules! server {
    ($path:expr => $task:expr, $id:literal [$($scope:ident)+] $($rest:tt)+) => {
        api!($path, $task, [], "server" $id, None, [$($scope)+], $($rest)+)
    };
}

/// A path of an account's history.
macro_rules! history {
    ($path:expr => $answer:path [$($parameters:expr),*], $id:literal $($rest:tt)+) => {
        api!($path, Task::Api($answer), [&[TOKEN], $($parameters),*], "history" $id,
            TokenOrSession, [Connection Worker Token History], $($rest)+)
    };
}

/// A path that takes a form of this page, for people who are signed in; made by [`form`] or
/// [`change`].
macro_rules! sent {
    ($path:ident of $page:ident [$($limit:ident)*] $make:ident $act:ident) => {
        sent(paths::$path, $make(paths::$page, &[$(FormLimit::$limit),*], dashboard::$act))
    };
}

/// All paths. Any other path is a 404, whatever the method and the body.
pub const ROUTES: &[Route] = &[
    Route {
        path: paths::CONVERT,
        methods: "POST",
        body_limit: BodyLimit::Picture,
        is_at: None,
        parameters: &[&PARAMETERS, &[convert::DOWNLOAD]],
        audience: Audience::Programs,
        handler: Handler::Conversion,
        operation: Some(Operation {
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
        }),
    },
    Route {
        handler: Handler::EventLoop(health::alive),
        ..server! { HEALTH => Task::Readiness, "getHealth" [Connection] Success::Text("ok"),
        "Whether the process runs",
        "It needs no worker, so that it is answered however busy the server is." }
    },
    server! { READINESS => Task::Readiness,
    "getReadiness" [Connection Worker Readiness] Success::Text("ready"),
    "Whether the server can do its work",
    "It converts a tiny picture and commits to the database. An outcome is reused for a second." },
    history! { paths::USAGE => usage::json [&usage::PAGE, &usage::FILTERS],
    "getHistory" Success::Json("A page of the history.", "History"), "A page of the usage history",
    "Newest first. Of an account's tokens only `default` reads it." },
    history! { paths::USAGE_CSV => usage::csv [&usage::FILTERS],
    "getHistoryCsv" Success::File(CSV_FILE, csv::MEDIA_TYPE),
        "The whole usage history as CSV", EXPORT },
    history! { paths::USAGE_LINES => usage::ndjson [&usage::FILTERS],
    "getHistoryLines" Success::File("The whole history.", usage::NDJSON),
    "The whole usage history, one JSON object a line", EXPORT },
    history! { USAGE_DAYS => usage::days [&usage::FILTERS],
    "getDays" Success::Json("The sums.", "Days"), "Conversions and bytes by day",
    "Oldest first; days without conversions are left out. Without `from`, of the last ten years. Sums stay when \
     old entries are removed." },
    history! { USAGE_MONTHS => usage::months [&usage::FILTERS],
    "getMonths" Success::Json("The sums.", "Months"), "Conversions and bytes by month",
    "As the days. A month is summed up over those of its days that are asked for." },
    history! { FAILURES => failures::json [&usage::PAGE, &failures::FILTERS],
    "getFailures" Success::Json("A page of failed conversions.", "Failures"),
        "A page of the conversions that failed", FAILED },
    history! { paths::FAILURES_CSV => failures::csv [&failures::FILTERS],
    "getFailuresCsv" Success::File(CSV_FILE, csv::MEDIA_TYPE),
        "The conversions that failed as CSV", FAILED },
    server! { paths::OPENAPI => Task::Api(|state, request| Ok(state.openapi.answer(request))),
    "getDescription" [Connection Worker] Success::Description,
    "The description of the API", "This document." },
    shown(paths::START, |context, _| Ok(dashboard::start(context)?)),
    for_signed_in(paths::DASHBOARD, pages::overview),
    for_signed_in(paths::CONVERTING, |context, _| {
        Ok(dashboard::convert(context)?)
    }),
    page(
        paths::SIGN_UP,
        PageActions {
            // `invite` fills in an invitation's code.
            show: Some(Show::Public(|context, query| {
                let invite = query.parameter("invite")?.unwrap_or_default();
                Ok(dashboard::sign_up_form(context, invite)?)
            })),
            form: Some(public_form(&[FormLimit::SignUp], dashboard::sign_up)),
        },
    ),
    page(
        paths::SIGN_IN,
        PageActions {
            // `ended` is there if a form of a session that has ended led here, and `recovered` if a
            // recovery code has set the password; `next` is the path to go to after the sign-in.
            show: Some(Show::Public(|context, query| {
                let has_ended = query.parameter("ended")?.is_some();
                let is_recovered = query.parameter("recovered")?.is_some();
                let next = query.parameter("next")?.unwrap_or_default();
                let form = dashboard::sign_in_form(context, has_ended, is_recovered, next);
                Ok(form?)
            })),
            form: Some(public_form(&[FormLimit::SignIn], dashboard::sign_in)),
        },
    ),
    sent(
        paths::SIGN_IN_CODE,
        public_form(&[FormLimit::SignIn], dashboard::sign_in_by_code),
    ),
    page(
        paths::RECOVER,
        PageActions {
            show: Some(Show::Public(|_, _| Ok(dashboard::recovery_form()))),
            form: Some(public_form(&[FormLimit::SignIn], dashboard::recover)),
        },
    ),
    sent(paths::SIGN_OUT, public_form(&[], dashboard::sign_out)),
    sent! { SIGN_OUT_EVERYWHERE of SESSIONS [] form sign_out_everywhere },
    // `done` is there if a session was just ended.
    for_signed_in(paths::SESSIONS, |context, query| {
        let has_ended = query.parameter("done")? == Some("ended");
        Ok(dashboard::sessions(context, has_ended)?)
    }),
    sent! { END_SESSION of SESSIONS [] form end_session },
    // `done` and `number` name the last change and the token that it was made to.
    for_signed_in(paths::TOKENS, |context, query| {
        let done = query.parameter("done")?.unwrap_or_default();
        let number = query.parameter("number")?.unwrap_or_default();
        Ok(dashboard::tokens(context, done, number)?)
    }),
    sent! { CREATE_TOKEN of TOKENS [TokenChanges] change create_token },
    sent! { CHANGE_TOKEN of TOKENS [TokenChanges] change change_token },
    sent! { ROTATE_TOKEN of TOKENS [TokenChanges] change rotate_token },
    sent! { DELETE_TOKEN of TOKENS [TokenChanges] change delete_token },
    sent! { REVEAL_TOKEN of TOKENS [] form reveal_token },
    for_signed_in(paths::ACCOUNT, |context, _| {
        Ok(dashboard::account(context)?)
    }),
    // The form needs the password, so attempts count as those to sign in; and it reveals whether an
    // address is taken, so they count as those to sign up, too.
    sent! { CHANGE_EMAIL of ACCOUNT [SignIn SignUp] form change_email },
    for_signed_in(paths::EMAIL_CHANGED, |context, _| {
        Ok(dashboard::email_changed(&context.session))
    }),
    sent! { CHANGE_PASSWORD of ACCOUNT [SignIn] form change_password },
    page(
        paths::SECOND_FACTOR,
        PageActions {
            show: Some(Show::SignedIn(|context, _| {
                Ok(dashboard::second_factor(context)?)
            })),
            form: Some(form(
                paths::SECOND_FACTOR,
                &[FormLimit::SignIn],
                dashboard::turn_on_second_factor,
            )),
        },
    ),
    sent! { SECOND_FACTOR_OFF of SECOND_FACTOR [SignIn] form turn_off_second_factor },
    // The W3C's "A Well-Known URL for Changing Passwords".
    shown(CHANGE_PASSWORD_FORM, |_, _| {
        Ok(Outcome::redirect("/account#password"))
    }),
    sent! { DELETE_ACCOUNT of ACCOUNT [SignIn] change delete_account },
    for_signed_in(paths::PASSWORD_CHANGED, |context, _| {
        Ok(dashboard::password_changed(&context.session))
    }),
    shown(paths::ACCOUNT_DELETED, |_, _| {
        Ok(dashboard::account_deleted())
    }),
    // `q` is a search.
    shown(paths::DOCS, |context, query| {
        let query = query.parameter("q")?.unwrap_or_default();
        Ok(dashboard::docs_index(context, query)?)
    }),
    Route {
        is_at: Some(dashboard::is_docs_page),
        ..shown("/docs/{page}", |context, _| {
            Ok(dashboard::docs_page(context)?)
        })
    },
    Route {
        is_at: Some(dashboard::is_asset),
        ..for_people("/{asset}", READ, Task::Asset)
    },
];

/// A path for people that shows a page.
const fn shown(path: &'static str, show: PublicPage) -> Route {
    let (show, form) = (Some(Show::Public(show)), None);
    page(path, PageActions { show, form })
}

/// A path for people who are signed in that shows a page.
const fn for_signed_in(path: &'static str, show: SignedInPage) -> Route {
    let (show, form) = (Some(Show::SignedIn(show)), None);
    page(path, PageActions { show, form })
}

/// A path for people that only takes a form.
const fn sent(path: &'static str, form: FormAction) -> Route {
    let (show, form) = (None, Some(form));
    page(path, PageActions { show, form })
}

/// A path for people with a page, a form or both.
const fn page(path: &'static str, actions: PageActions) -> Route {
    for_people(path, actions.methods(), Task::Page(actions))
}

/// A path for people. The body of a POST is a form.
const fn for_people(path: &'static str, methods: &'static str, task: Task) -> Route {
    Route {
        path,
        is_at: None,
        methods,
        body_limit: BodyLimit::Form,
        parameters: &[],
        audience: Audience::People,
        handler: Handler::Worker(task),
        operation: None,
    }
}

/// A form for everybody.
const fn public_form(limits: &'static [FormLimit], act: PublicAction) -> FormAction {
    FormAction {
        limits,
        act: Act::Public(act),
        is_due_in_force: false,
    }
}

/// A form of the page at this path, for visitors who are signed in.
const fn form(page: &'static str, limits: &'static [FormLimit], act: SessionAction) -> FormAction {
    FormAction {
        limits,
        act: Act::SignedIn(page, act),
        is_due_in_force: false,
    }
}

/// A form whose response is due once the change is in force on all servers.
const fn change(
    page: &'static str,
    limits: &'static [FormLimit],
    act: SessionAction,
) -> FormAction {
    FormAction {
        is_due_in_force: true,
        ..form(page, limits, act)
    }
}

/// The route of a path.
pub fn by_path(path: &str) -> Option<&'static Route> {
    ROUTES.iter().find(|route| match route.is_at {
        Some(is_at) => is_at(path),
        None => route.path == path,
    })
}

impl Route {
    /// The route of a request, if it is answered by the method.
    ///
    /// # Errors
    /// 404, if the path of the request has no route; 405, if it is not answered by the method.
    pub fn check(
        route: Option<&'static Route>,
        request: &Request,
    ) -> Result<&'static Route, Problem> {
        let route = route.ok_or_else(|| {
            Problem::new(
                Kind::NotFound,
                "Pictures are converted by POST /convert; the start page is at /.",
            )
        })?;
        let mut methods = route.methods.split(", ");
        if methods.any(|method| method == request.method) {
            return Ok(route);
        }
        Err(Problem::method_not_allowed(&request.method, route.methods))
    }

    /// Whether programs read the path, and so pages of other origins may.
    pub fn is_for_programs(&self) -> bool {
        self.audience == Audience::Programs
    }

    /// Whether the path is answered by a conversion.
    pub fn is_conversion(&self) -> bool {
        matches!(self.handler, Handler::Conversion)
    }

    /// The response to a preflight of a page from another origin, which needs no worker; `None` if
    /// the request is none.
    pub fn preflight(&self, request: &Request, allowed: &[AllowedOrigin]) -> Option<Response> {
        let is_for_programs = self.is_for_programs();
        is_for_programs.then(|| cors::preflight(allowed, request, self.methods))?
    }

    /// The parameters of a request that are probably mistyped, as text for `X-Towebp-Warning`.
    pub fn warning(&self, request: &Request) -> Option<String> {
        let rows = self.parameters.iter().copied().flatten();
        let known: Vec<&str> = rows.map(|row| row.name).collect();
        suggestion::warning(request.parameter_names(), &known)
    }
}

/// A problem in the form that suits the readers of its path. People come to paths of programs, too:
/// by a link to a file after their session has ended, or by a form without script.
pub fn problem_response(route: Option<&Route>, request: &Request, problem: Problem) -> Response {
    let is_page = if route.is_some_and(Route::is_for_programs) {
        request.is_opened_by_browser()
    } else {
        request.wants_html()
    };
    if is_page {
        let methods = route.map_or("", |route| route.methods);
        pages::problem(request, methods, problem)
    } else {
        problem.into()
    }
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
        let request = request(method, target);
        let route = Route::check(by_path(&request.path), &request).map(drop);
        route.map_err(|problem| (problem.kind, problem.allow))
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
                "/docs/",
                "/docs/nothing",
                "/docs/{page}",
                "/{asset}",
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
            let path = path.replace("{page}", "api").replace("{asset}", "app.js");
            for method in methods.split(", ") {
                assert_eq!(found(method, &path), Ok(()), "{method} {path}");
            }
            let rejected = Err((Kind::MethodNotAllowed, Some(*methods)));
            assert_eq!(found("DELETE", &path), rejected, "{path}");
        }
    }

    #[test]
    fn every_path_is_answered_once_and_every_link_leads_somewhere() {
        let answered: HashSet<&str> = ROUTES.iter().map(|route| route.path).collect();
        assert_eq!(answered.len(), ROUTES.len());
        for path in paths::ALL {
            assert!(by_path(path).is_some(), "{path}");
        }
        let pictures = [paths::SAMPLE, paths::SAMPLE_WEBP];
        for (row, zlib) in dashboard::assets().filter(|(row, _)| !pictures.contains(&row.path)) {
            assert!(
                !inflated(zlib).contains("fetch(\""),
                "{} has a path of its own",
                row.path
            );
        }
    }

    #[test]
    fn each_path_has_its_own_parameters() {
        let warned = |target: &str| {
            let request = request("POST", target);
            by_path(&request.path).and_then(|route| route.warning(&request))
        };
        let limit = "unknown parameter \"limt\", did you mean \"limit\"?";
        assert_eq!(warned("/api/usage?limt=1").as_deref(), Some(limit));
        assert_eq!(warned("/api/usage?qualty=1"), None);
        assert_eq!(warned("/convert?limt=1"), None);
        assert!(warned("/convert?qualty=1").is_some());
        assert_eq!(warned("/dashboard?tokn=1"), None);
    }
}
