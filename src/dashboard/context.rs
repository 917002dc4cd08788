//! The input of a dashboard action: the visitor, the service's settings, and a form.

use crate::store::{Browser, Session, Store, StoreError};
use std::num::NonZeroU64;
use std::ops::Deref;

/// The visitor's cookies, and the parts of the service that pages need.
pub struct PageContext<'a> {
    /// Accounts, sessions and usage.
    pub store: &'a Store,
    /// The session cookie's value, unchecked.
    pub session_cookie: Option<&'a str>,
    /// The device cookie's value, unchecked: it marks a browser that has signed in before.
    pub device_cookie: Option<&'a str>,
    /// The browser's name and network.
    pub browser: Browser,
    /// The path and the query of the request.
    pub target: &'a str,
    /// The beginning of the service's URLs, without a slash at the end.
    pub base_url: &'a str,
    /// Who may create an account.
    pub signup: Signup,
    /// Conversions of an account in a month; `None` for no limit.
    pub monthly_quota: Option<NonZeroU64>,
    /// Most bytes of a picture's file.
    pub max_body: u64,
    /// Whether the service converts WebP files, too.
    pub accepts_webp: bool,
    /// Whether the service converts TIFF files, too.
    pub accepts_tiff: bool,
    /// The types of pictures for a file dialog, with WebP and TIFF or without.
    pub picture_types: fn([bool; 2]) -> String,
    /// Reads a token's preset, and returns the text to store, or a sentence with its fault.
    pub check_preset: fn(&str) -> Result<String, String>,
    /// The title of the problem of a code, such as `body_too_large`.
    pub problem_title: fn(&str) -> Option<&'static str>,
}

/// Who may create an account on the sign-up page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signup {
    /// Anybody.
    Open,
    /// Nobody: accounts are made on the command line.
    Closed,
    /// People with an invitation, made on the command line.
    Invite,
}

impl PageContext<'_> {
    /// The session cookie's value, unchecked; empty if there is none.
    pub fn session_cookie(&self) -> &str {
        self.session_cookie.unwrap_or_default()
    }

    /// The visitor's session, if there is one.
    pub fn session(&self) -> Result<Option<Session>, StoreError> {
        self.session_cookie.map_or(Ok(None), |cookie| {
            self.store.session_of(cookie, Some(&self.browser))
        })
    }
}

/// The context of a visitor who is signed in.
pub struct SignedIn<'a> {
    /// The cookies and the settings.
    pub context: &'a PageContext<'a>,
    /// The session.
    pub session: Session,
}

impl<'a> Deref for SignedIn<'a> {
    type Target = PageContext<'a>;

    fn deref(&self) -> &PageContext<'a> {
        self.context
    }
}

/// The fields of a form that was sent.
pub struct Form {
    fields: Vec<(String, String)>,
}

impl Form {
    /// Takes decoded names and values.
    pub fn new(fields: Vec<(String, String)>) -> Form {
        Form { fields }
    }

    /// The first field of this name; empty if there is none.
    pub fn field(&self, name: &str) -> &str {
        self.fields
            .iter()
            .find(|(given, _)| given == name)
            .map_or("", |(_, value)| value)
    }
}
