//! The outcome of an action: a page, or another page to go to.

use super::paths;
use maud::Markup;
use std::borrow::Cow;

/// The outcome of an action.
pub enum Outcome {
    /// A page to show.
    Page(Page),
    /// Another page to go to.
    Redirect {
        /// Its path, perhaps with a query.
        to: Cow<'static, str>,
        /// What happens to the browser's session.
        session: SessionChange,
    },
}

/// A page to show.
pub struct Page {
    /// The whole document.
    pub markup: Markup,
    /// Whether the action was done.
    pub status: PageStatus,
    /// Whether everybody without cookies gets the same, so that caches may keep it.
    pub is_public: bool,
    /// Whether it converts by the WebAssembly that this server serves.
    pub converts: bool,
    /// The token of the page's own conversions.
    pub token: Option<String>,
}

/// Whether an action was done; if not, the page has the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageStatus {
    /// It was.
    Shown,
    /// Something that was given cannot be used.
    Invalid,
    /// It may not be done.
    Forbidden,
    /// It may be done later.
    TooManyAttempts {
        /// After this many seconds.
        retry_after: u64,
    },
}

/// What happens to the browser's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// Nothing.
    Keep,
    /// It begins.
    Start {
        /// The session cookie's value.
        session: String,
        /// The device cookie's value, if the account has a password to sign in by.
        device: Option<String>,
    },
    /// It goes on, and the browser gets another device cookie, if the account still exists.
    Renew {
        /// The device cookie's value.
        device: Option<String>,
    },
    /// It ends.
    End,
    /// It ends, and the browser's device cookie is removed.
    Forget,
}

impl Page {
    fn new(markup: Markup, status: PageStatus) -> Page {
        Page {
            markup,
            status,
            is_public: false,
            converts: false,
            token: None,
        }
    }
}

impl Outcome {
    /// A page that shows the result.
    pub fn page(markup: Markup) -> Outcome {
        Outcome::page_with(markup, PageStatus::Shown)
    }

    /// A page with a status.
    pub fn page_with(markup: Markup, status: PageStatus) -> Outcome {
        Outcome::Page(Page::new(markup, status))
    }

    /// A page that converts in the browser, and with this token by the server.
    pub fn page_that_converts(markup: Markup, token: Option<String>) -> Outcome {
        Outcome::Page(Page {
            token,
            converts: true,
            ..Page::new(markup, PageStatus::Shown)
        })
    }

    /// A page that is the same for everybody without cookies.
    pub fn public_page(markup: Markup) -> Outcome {
        Outcome::Page(Page {
            is_public: true,
            ..Page::new(markup, PageStatus::Shown)
        })
    }

    /// Another page to go to, which leaves the session as it is.
    pub fn redirect(to: impl Into<Cow<'static, str>>) -> Outcome {
        Outcome::redirect_with(to, SessionChange::Keep)
    }

    /// Another page to go to, with a change of the session.
    pub fn redirect_with(to: impl Into<Cow<'static, str>>, session: SessionChange) -> Outcome {
        let to = to.into();
        Outcome::Redirect { to, session }
    }

    /// The end of the browser's session; it goes on to the start page.
    pub fn signed_out() -> Outcome {
        Outcome::redirect_with(paths::START, SessionChange::End)
    }
}
