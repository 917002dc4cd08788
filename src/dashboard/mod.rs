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
mod token_field;
mod tokens;
mod trouble;
mod units;
mod usage;
mod way_back;

pub use account::{
    account, account_deleted, change_email, change_password, delete_account, email_changed,
    password_changed,
};
pub use browser::browser_name;
pub use context::{Form, PageContext, Signup};
pub use convert::convert;
pub use docs::{docs_index, docs_page};
pub use duration::duration;
pub use history_view::HistoryView;
pub use outcome::{Outcome, Page, PageStatus, SessionChange};
pub use overview::overview;
pub use sessions::{end_session, sessions, sign_out_everywhere};
pub use sign_in::{sign_in, sign_in_form, sign_out, sign_up, sign_up_form};
pub use start::start;
pub use token_field::reveal_token;
pub use tokens::{change_token, create_token, delete_token, rotate_token, tokens};
pub use trouble::{Again, Trouble, trouble};

/// Includes what the build script made of a row of `asset_list.rs`.
macro_rules! compressed {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".zlib"))
    };
}

/// The stylesheet of all pages, compressed by zlib.
pub const STYLE: &[u8] = compressed!("style");

/// What the page that converts has of its own beside [`STYLE`], compressed.
pub const CONVERT_STYLE: &[u8] = compressed!("convert-style");

/// The script of all pages but those that have one of their own, compressed. The pages work without
/// it.
pub const SCRIPT: &[u8] = compressed!("script");

/// The script of the dashboard, with that of all pages in it, compressed.
pub const USAGE_SCRIPT: &[u8] = compressed!("usage-script");

/// The script of the page that converts, with that of all pages in it, compressed.
pub const CONVERT_SCRIPT: &[u8] = compressed!("convert-script");

/// The icon in the browser's tab.
pub const ICON: &str = include_str!("icon.svg");
