//! Accounts, tokens, sessions and usage, in one redb file.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Names an account for good; never used again after the account is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(pub u64);

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name inside.
    pub id: AccountId,
    /// Its address, trimmed and lower-cased.
    pub email: String,
    /// When it was made.
    pub created: SystemTime,
    /// Counts the rotations of its token.
    pub token_generation: u32,
    /// Whether it can sign in to the dashboard.
    pub has_password: bool,
}

/// Where the data lies.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder; made if missing, readable by its owner only.
    pub data: PathBuf,
    /// The server's secret, if not `DIR/secret`.
    pub secret_file: Option<PathBuf>,
}

/// The store could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has it open.
    InUse(PathBuf),
    /// Anything else, as a sentence for the operator.
    Failed(String),
}

/// A read or write failed: disk full, damaged file. For the log, not for callers.
#[derive(Debug)]
pub struct StoreError(pub String);

/// An account was not made.
#[derive(Debug)]
pub enum CreateAccountError {
    /// Not an e-mail address; a sentence that says why.
    Email(String),
    /// The password is too short (under 8 characters) or too long (over 1024 bytes); a sentence.
    Password(String),
    /// There is such an account already.
    Exists,
    /// The store failed.
    Store(StoreError),
}

/// Sign-in was refused.
#[derive(Debug)]
pub enum SignInError {
    /// No such account or a wrong password: not told apart, in text or in time.
    Wrong,
    /// Too many attempts for this account: wait this many seconds.
    TooMany { retry_after: u64 },
    /// The store failed.
    Store(StoreError),
}

/// A token was refused.
#[derive(Debug)]
pub enum TokenError {
    /// Malformed or mistyped (checksum), forged, rotated away, or of a deleted account.
    Invalid,
    /// The store failed.
    Store(StoreError),
}

/// A signed-in browser.
#[derive(Clone, Debug)]
pub struct Session {
    /// Whose it is.
    pub account: Account,
    /// Must come back with every form.
    pub csrf: String,
}

/// What is remembered of one successful conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageEntry {
    /// When it ended.
    pub time: SystemTime,
    /// `png`, `jpeg`, `gif`, `bmp`.
    pub format: String,
    /// Bytes in.
    pub input_bytes: u64,
    /// Bytes out.
    pub output_bytes: u64,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// 0 to 100.
    pub quality: u8,
    /// `none`, `text`, `image`, `both`.
    pub watermark: WatermarkKind,
    /// From the first byte read to the entry being written.
    pub milliseconds: u32,
}

/// Which watermarks a conversion drew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatermarkKind {
    /// None.
    None,
    /// Text only.
    Text,
    /// A picture only.
    Image,
    /// Both.
    Both,
}

impl WatermarkKind {
    /// `none`, `text`, `image` or `both`.
    pub fn name(self) -> &'static str {
        todo!()
    }
}

/// Sums over an account's whole history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageTotals {
    /// How many.
    pub conversions: u64,
    /// Bytes in.
    pub input_bytes: u64,
    /// Bytes out.
    pub output_bytes: u64,
}

/// A page of history, newest first.
#[derive(Clone, Debug)]
pub struct UsagePage {
    /// The entries with their sequence numbers (1, 2, 3 ... per account).
    pub entries: Vec<(u64, UsageEntry)>,
    /// Pass as `before` to go on, if there is more.
    pub next_before: Option<u64>,
}

/// The open store; share it by reference or `Arc`.
pub struct Store {}

#[allow(missing_docs, clippy::missing_errors_doc, unused_variables)]
impl Store {
    pub fn open(settings: &Settings) -> Result<Store, OpenError> { todo!() }
    /// `password: None` makes an account that cannot sign in to the dashboard.
    pub fn create_account(&self, email: &str, password: Option<&str>) -> Result<Account, CreateAccountError> { todo!() }
    pub fn account_by_email(&self, email: &str) -> Result<Option<Account>, StoreError> { todo!() }
    pub fn accounts(&self) -> Result<Vec<Account>, StoreError> { todo!() }
    /// Its sessions and history go with it. False if there is none.
    pub fn delete_account(&self, id: AccountId) -> Result<bool, StoreError> { todo!() }
    /// The text of the account's present token.
    pub fn token(&self, account: &Account) -> String { todo!() }
    /// The account as it now is; the old token is refused at once.
    pub fn rotate_token(&self, id: AccountId) -> Result<Option<Account>, StoreError> { todo!() }
    /// Constant time; a mistyped token never reaches the database.
    pub fn authenticate(&self, token: &str) -> Result<Account, TokenError> { todo!() }
    pub fn sign_in(&self, email: &str, password: &str) -> Result<Account, SignInError> { todo!() }
    /// Returns the cookie's value.
    pub fn start_session(&self, id: AccountId) -> Result<String, StoreError> { todo!() }
    pub fn session(&self, cookie: &str) -> Result<Option<Session>, StoreError> { todo!() }
    pub fn end_session(&self, cookie: &str) -> Result<(), StoreError> { todo!() }
    /// Returns once the entry is on disk.
    pub fn record_usage(&self, id: AccountId, entry: &UsageEntry) -> Result<(), StoreError> { todo!() }
    pub fn usage(&self, id: AccountId, before: Option<u64>, limit: usize) -> Result<UsagePage, StoreError> { todo!() }
    pub fn usage_totals(&self, id: AccountId) -> Result<UsageTotals, StoreError> { todo!() }
}

/// Where the data folder's database lies.
pub fn database_path(data: &Path) -> PathBuf {
    data.join("towebp.redb")
}
