//! The pages for people: start, sign-up, sign-in, and the dashboard with token and history.
//!
//! Each action takes a [`Visit`] and gives an [`Outcome`]: plain data and markup that is escaped by its type. What
//! the outcome is in HTTP, [`crate::http`] says.

mod account;
mod duration;
mod layout;
mod overview;
mod own_account;

use crate::store::{Session, Store, StoreError};
use maud::Markup;
use std::num::NonZeroU64;

pub use account::{sign_in, sign_in_form, sign_out, sign_out_everywhere, sign_up, sign_up_form};
pub use duration::duration;
pub use layout::{landing, message};
pub use overview::{overview, rotate_token};
pub use own_account::{change_password, delete_account, deleted, password_changed};

/// The one stylesheet.
pub const STYLE: &str = include_str!("style.css");

/// The one script: copying and trying out. The pages work without it.
pub const SCRIPT: &str = include_str!("app.js");

/// The icon in the browser's tab.
pub const ICON: &str = include_str!("icon.svg");

/// Who asks, and what for.
pub struct Visit<'a> {
    /// Accounts, sessions and usage.
    pub store: &'a Store,
    /// The session cookie's value, as it came.
    pub session_cookie: Option<&'a str>,
    /// The device cookie's value, as it came: it tells browsers that have signed in before.
    pub device_cookie: Option<&'a str>,
    /// What the service's URLs begin with, without a slash at the end.
    pub base_url: &'a str,
    /// Who may create an account.
    pub signup: Signup,
    /// Conversions of an account in a month; `None` for no limit.
    pub monthly_quota: Option<NonZeroU64>,
}

/// Who may create an account on the sign-up page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signup {
    /// Anybody.
    Open,
    /// Nobody: accounts come from the command line.
    Closed,
    /// Whoever has an invitation, made on the command line.
    Invite,
}

impl Visit<'_> {
    fn session(&self) -> Result<Option<Session>, StoreError> {
        self.session_cookie
            .map_or(Ok(None), |cookie| self.store.session(cookie))
    }
}

/// The fields of a form that was sent.
pub struct Form {
    fields: Vec<(String, String)>,
}

impl Form {
    /// Decoded names and values.
    pub fn new(fields: Vec<(String, String)>) -> Form {
        Form { fields }
    }

    /// The first field of this name; empty if there is none.
    fn field(&self, name: &str) -> &str {
        self.fields
            .iter()
            .find(|(given, _)| given == name)
            .map_or("", |(_, value)| value)
    }
}

/// What an action comes to.
pub enum Outcome {
    /// A page to show.
    Page(Page),
    /// Another page to go to.
    Redirect {
        /// Its path.
        to: &'static str,
        /// What becomes of the browser's session.
        session: SessionChange,
    },
}

/// A page to show.
pub struct Page {
    /// The whole document.
    pub markup: Markup,
    /// How what was asked for turned out.
    pub verdict: Verdict,
}

/// How what was asked for turned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it was asked for.
    Fine,
    /// Something that was given cannot be used; the page says what.
    Rejected,
    /// It may not be done.
    Forbidden,
    /// It may be done later.
    TooMany {
        /// In so many seconds.
        retry_after: u64,
    },
}

/// What becomes of the browser's session.
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
    /// It goes on, and the browser is known by another device cookie, if it still is.
    Renew {
        /// The device cookie's value.
        device: Option<String>,
    },
    /// It ends.
    End,
    /// It ends, and the browser is not known any more.
    Forget,
}

fn page(markup: Markup) -> Outcome {
    Outcome::Page(Page {
        markup,
        verdict: Verdict::Fine,
    })
}

fn go(to: &'static str) -> Outcome {
    Outcome::Redirect {
        to,
        session: SessionChange::Keep,
    }
}
