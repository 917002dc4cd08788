//! The pages for people: start, sign-up, sign-in, and the dashboard with token and history.
//!
//! Each action takes a [`PageContext`] and gives an [`Outcome`]: plain data, and markup that is
//! escaped by its type. `http` turns the outcome into a response.

mod account;
mod browser;
mod chart;
mod context;
mod convert;
mod convert_fields;
mod docs;
mod docs_list;
mod document;
mod duration;
mod failures;
mod first_steps;
mod forms;
mod history;
mod history_view;
mod outcome;
mod overview;
pub mod paths;
mod sessions;
mod sign_in;
mod start;
mod tokens;
mod trouble;
mod units;
mod usage;

pub use account::{
    account, account_deleted, change_email, change_password, delete_account, email_changed,
    password_changed,
};
pub use browser::browser_name;
pub use context::{Form, PageContext, Signup};
pub use convert::convert;
pub use docs::{docs_index, docs_page};
pub use duration::duration;
pub use history_view::{HistoryError, HistoryView};
pub use outcome::{Outcome, Page, PageStatus, SessionChange};
pub use overview::overview;
pub use sessions::{end_session, sessions, sign_out_everywhere};
pub use sign_in::{sign_in, sign_in_form, sign_out, sign_up, sign_up_form};
pub use start::start;
pub use tokens::{change_token, create_token, delete_token, rotate_token, tokens};
pub use trouble::{Again, Trouble, trouble};

/// The stylesheet of all pages.
pub const STYLE: &str = concat!(
    include_str!("style/base.css"),
    include_str!("style/usage.css"),
    include_str!("style/docs.css"),
);

/// What the page that converts has of its own beside [`STYLE`].
pub const CONVERT_STYLE: &str = include_str!("style/convert.css");

/// The script of all pages but those that have one of their own. The pages work without it.
pub const SCRIPT: &str = include_str!("script/base.js");

/// The script of the dashboard, with that of all pages in it, so that a page asks for one.
pub const USAGE_SCRIPT: &str = concat!(
    include_str!("script/base.js"),
    include_str!("script/usage.js")
);

/// The script of the page that converts, with that of all pages in it, so that a page asks for one.
pub const CONVERT_SCRIPT: &str = concat!(
    include_str!("script/base.js"),
    include_str!("script/snippets.js"),
    include_str!("script/convert.js"),
);

/// The icon in the browser's tab.
pub const ICON: &str = include_str!("icon.svg");
