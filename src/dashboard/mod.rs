//! The pages for people: start, sign-up, sign-in, and the dashboard with token and history.
//!
//! Each action takes a [`PageContext`] and gives an [`Outcome`]: plain data, and markup that is
//! escaped by its type. `http` turns the outcome into a response.

mod account;
mod asset_list;
mod browser;
mod chart;
mod context;
mod convert;
mod convert_fields;
mod docs;
mod docs_list;
mod docs_search;
mod document;
mod duration;
mod failures;
mod first_steps;
mod forms;
#[cfg(test)]
mod highlight; // the build script has it
mod history;
mod history_view;
mod outcome;
mod overview;
pub mod paths;
mod qr_code;
mod recovery;
mod second_factor;
mod sessions;
mod sign_in;
mod signed_in;
mod start;
mod token_field;
mod tokens;
mod trouble;
mod units;
mod usage;
mod way_back;

pub use asset_list::Asset;

pub use account::{
    account, account_deleted, change_email, change_password, delete_account, email_changed,
    password_changed,
};
pub use browser::browser_name;
pub use context::{Form, PageContext, SignedIn, Signup};
pub use convert::convert;
pub use docs::{docs_index, docs_page, is_docs_page};
pub use duration::duration;
#[cfg(test)]
pub use failures::advised;
pub use history_view::HistoryView;
pub use outcome::{Outcome, Page, PageStatus, SessionChange};
pub use overview::overview;
pub use recovery::{recover, recovery_form};
pub use second_factor::{second_factor, turn_off_second_factor, turn_on_second_factor};
pub use sessions::{end_session, sessions, sign_out_everywhere};
pub use sign_in::{sign_in, sign_in_by_code, sign_in_form, sign_out, sign_up, sign_up_form};
pub use signed_in::{SessionAction, act_signed_in, show_signed_in};
pub use start::start;
pub use token_field::reveal_token;
pub use tokens::{change_token, create_token, delete_token, rotate_token, tokens};
pub use trouble::{Again, Trouble, trouble};

use asset_list::ASSETS;

/// The files of [`ASSETS`], compressed by zlib, in its order.
const COMPRESSED_ASSETS: [&[u8]; ASSETS.len()] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The module by which browsers convert, compressed by zlib; `None` if `scripts/wasm` did not run
/// before the program was built.
pub const MODULE: Option<&[u8]> = include!(concat!(env!("OUT_DIR"), "/module.rs"));

/// Where the package looks for the module and the fonts.
pub const MODULE_PATHS: [&str; 2] = ["/browser/towebp.wasm", "/browser/fonts.bin"];

/// The files that pages load, each with its bytes, compressed by zlib.
pub fn assets() -> impl Iterator<Item = (&'static Asset, &'static [u8])> {
    ASSETS.iter().zip(COMPRESSED_ASSETS)
}

/// Whether the path is that of a file that pages load.
pub fn is_asset(path: &str) -> bool {
    ASSETS.iter().any(|asset| asset.path == path)
        || (MODULE.is_some() && MODULE_PATHS.contains(&path))
}
