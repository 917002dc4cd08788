//! Requests and answers: one JSON value a line, one request and one answer a connection.
//!
//! ```text
//! {"create":{"email":"a@example.org","password":null}}   {"token":"twp_..."}
//! "list"                                                 {"accounts":[{"email":...}, ...]}
//! {"token":{"email":"a@example.org"}}                    {"token":"twp_..."}
//! {"rotate":{"email":"a@example.org","overlap_hours":0}}  {"token":"twp_..."}
//! {"set_token":{"email":"a@example.org","name":"shop"}}  {"token":"twp_..."}
//! {"delete_token":{"email":"a@example.org", ...}}        "deleted"
//! {"usage":{"email":"a@example.org"}}                    {"usage":{"conversions":1, ...}}
//! {"restrict":{"email":"a@example.org","disable":true}}  "changed"
//! {"email":{"email":"a@example.org","new":"b@..."}}      "changed"
//! {"password":{"email":"a@example.org","password":"b"}}  "changed"
//! {"delete":{"email":"a@example.org"}}                   "deleted"
//! "invite"                                               {"invite":"a code"}
//! "check"                                                {"checked":{"accounts":1, ...}}
//! "backup"                                               "backup", then the rows
//! anything                                               {"refused":"a sentence"}
//! ```

use std::num::{NonZeroU32, NonZeroU64};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::store::{
    Account, ApiToken, CreateAccountError, Findings, Limits, SetEmailError, SetPasswordError,
    Store, StoreError, TokenNumber, TokenSettings, from_milliseconds, to_milliseconds,
};

/// A request. It has no `Debug`: a password must not reach a log.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// Make an account.
    Create {
        /// Its address.
        email: String,
        /// `None` for an account that cannot sign in to the dashboard.
        password: Option<String>,
    },
    /// List all accounts.
    List,
    /// Make an invitation.
    Invite,
    /// Check whether all rows are consistent.
    Check,
    /// Send all rows but those of sessions.
    Backup,
    /// Show a token of the account.
    Token {
        /// Its address.
        email: String,
        /// The token's name; `None` for `default`.
        name: Option<String>,
    },
    /// Replace a token of the account.
    Rotate {
        /// Its address.
        email: String,
        /// The token's name; `None` for `default`.
        name: Option<String>,
        /// For how many hours the present one goes on working.
        overlap_hours: u32,
    },
    /// Make a token, or replace what is set for the one of this name.
    #[serde(rename = "set_token")]
    SetToken {
        /// The account's address.
        email: String,
        /// The token's name.
        name: String,
        /// When it ends, in milliseconds since 1970-01-01 00:00 UTC.
        ends_milliseconds: Option<u64>,
        /// Conversions a minute.
        per_minute: Option<NonZeroU32>,
        /// Conversions a month.
        monthly: Option<NonZeroU64>,
        /// The preset.
        preset: String,
    },
    /// Delete a token of the account.
    #[serde(rename = "delete_token")]
    DeleteToken {
        /// Its address.
        email: String,
        /// The token's name.
        name: String,
    },
    /// Tell what the account has done, and may do.
    Usage {
        /// Its address.
        email: String,
    },
    /// Limit, disable or enable the account.
    Restrict {
        /// Its address.
        email: String,
        /// Conversions a minute.
        per_minute: LimitChange,
        /// Conversions a month.
        monthly: LimitChange,
        /// Whether it may not convert; `None` leaves that as it is.
        disable: Option<bool>,
    },
    /// Give the account another address.
    Email {
        /// Its address.
        email: String,
        /// The new one.
        new: String,
    },
    /// Give the account a password and end its sessions.
    Password {
        /// Its address.
        email: String,
        /// The new one.
        password: String,
    },
    /// Delete the account.
    Delete {
        /// Its address.
        email: String,
    },
}

/// A change of an account's limit.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitChange {
    /// It stays as it is.
    Keep,
    /// The server's limit holds.
    Server,
    /// This one holds; 0 is any number.
    Set(u64),
}

/// An answer. It has no `Debug`: a token must not reach a log.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The account's present token.
    Token(String),
    /// What an account has done, and may do.
    Usage(Box<AccountUsage>),
    /// All accounts, oldest first.
    Accounts(Vec<AccountSummary>),
    /// The code of a new invitation.
    Invite(String),
    /// The account was changed.
    Changed,
    /// The account is deleted.
    Deleted,
    /// What the check has found.
    Checked(Findings),
    /// The rows follow after the line.
    Backup,
    /// The request was not carried out: a sentence that says why.
    #[serde(rename = "refused")]
    Rejected(String),
}

/// An account in a list.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct AccountSummary {
    /// Its address.
    pub email: String,
    /// When the account was made, in milliseconds since 1970-01-01 00:00 UTC.
    pub created_milliseconds: u64,
    /// Whether the account can sign in to the dashboard.
    pub has_password: bool,
    /// The number of conversions in its history.
    pub conversions: u64,
}

/// What an account has done, and may do.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct AccountUsage {
    /// Conversions in its history.
    pub conversions: u64,
    /// Those of this calendar month (UTC).
    pub this_month: u64,
    /// The bytes of all inputs.
    pub input_bytes: u64,
    /// The bytes of all files that were sent.
    pub output_bytes: u64,
    /// Conversions a minute that the operator has set, 0 for any number; `None` for the server's.
    pub per_minute: Option<u32>,
    /// Conversions a month, likewise.
    pub monthly: Option<u64>,
    /// Whether it may not convert.
    pub is_disabled: bool,
    /// Its tokens, oldest first.
    pub tokens: Vec<TokenSummary>,
}

/// A token in a list.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TokenSummary {
    /// Its name.
    pub name: String,
    /// The conversions by it.
    pub conversions: u64,
    /// The end of the last of them, in milliseconds since 1970-01-01 00:00 UTC.
    pub last_used_milliseconds: Option<u64>,
    /// When it ends, likewise.
    pub ends_milliseconds: Option<u64>,
}

impl Request {
    /// Whether carrying it out means to read the whole store, for which other requests should not
    /// wait.
    pub fn takes_long(&self) -> bool {
        matches!(self, Request::Check | Request::Backup)
    }
}

impl AccountSummary {
    /// When the account was made.
    pub fn created(&self) -> SystemTime {
        from_milliseconds(self.created_milliseconds)
    }
}

/// Carries out a request. The rows of a backup are not part of this: the caller sends them.
pub fn answer(store: &Store, request: Request) -> Answer {
    let answer = try_answer(store, request).unwrap_or_else(Answer::Rejected);
    store.wait_until_in_force();
    answer
}

fn try_answer(store: &Store, request: Request) -> Result<Answer, String> {
    match request {
        Request::Create { email, password } => {
            let account = create(store, &email, password.as_deref())?;
            Ok(Answer::Token(token(store, &account)?))
        }
        Request::List => {
            let accounts = store.accounts().map_err(|error| error.to_string())?;
            let summaries = accounts
                .iter()
                .map(|account| summary(store, account))
                .collect::<Result<_, _>>();
            Ok(Answer::Accounts(
                summaries.map_err(|error| error.to_string())?,
            ))
        }
        Request::Check => {
            let findings = store.snapshot().and_then(|snapshot| snapshot.check());
            Ok(Answer::Checked(
                findings.map_err(|error| error.to_string())?,
            ))
        }
        Request::Backup => Ok(Answer::Backup),
        Request::Invite => Ok(Answer::Invite(
            store.invite().map_err(|error| error.to_string())?,
        )),
        Request::Token { email, name } => {
            let account = find(store, &email)?;
            let token = named(store, &account, name.as_deref())?;
            Ok(Answer::Token(store.token_text(account.id, &token)))
        }
        Request::SetToken {
            email,
            name,
            ends_milliseconds,
            per_minute,
            monthly,
            preset,
        } => {
            let account = find(store, &email)?;
            let settings = TokenSettings {
                name,
                ends: ends_milliseconds.map(from_milliseconds),
                limits: Limits {
                    per_minute,
                    monthly,
                },
                preset,
            };
            Ok(Answer::Token(set_token(store, &account, settings)?))
        }
        Request::DeleteToken { email, name } => {
            let account = find(store, &email)?;
            let token = named(store, &account, Some(&name))?;
            let deleted = store.delete_token(account.id, token.number);
            deleted.map_err(|error| error.to_string())?;
            Ok(Answer::Deleted)
        }
        Request::Usage { email } => {
            let account = find(store, &email)?;
            let usage = usage(store, &account).map_err(|error| error.to_string())?;
            Ok(Answer::Usage(Box::new(usage)))
        }
        Request::Restrict {
            email,
            per_minute,
            monthly,
            disable,
        } => {
            let account = find(store, &email)?;
            restrict(store, &account, per_minute, monthly, disable)?;
            Ok(Answer::Changed)
        }
        Request::Rotate {
            email,
            name,
            overlap_hours,
        } => {
            let account = find(store, &email)?;
            let token = rotate(store, &account, name.as_deref(), overlap_hours)?;
            Ok(Answer::Token(token))
        }
        Request::Email { email, new } => {
            set_email(store, &email, &new)?;
            Ok(Answer::Changed)
        }
        Request::Password { email, password } => {
            set_password(store, &email, &password)?;
            Ok(Answer::Changed)
        }
        Request::Delete { email } => {
            let account = find(store, &email)?;
            if !store
                .delete_account(account.id)
                .map_err(|error| error.to_string())?
            {
                return Err(unknown(&email));
            }
            Ok(Answer::Deleted)
        }
    }
}

fn create(store: &Store, email: &str, password: Option<&str>) -> Result<Account, String> {
    let created = store.create_account(email, password);
    created.map_err(|error| match error {
        CreateAccountError::Exists => taken(email),
        error => error.to_string(),
    })
}

/// Replaces a token. Returns its new text.
fn rotate(
    store: &Store,
    account: &Account,
    name: Option<&str>,
    overlap_hours: u32,
) -> Result<String, String> {
    let token = named(store, account, name)?.number;
    let overlap = Duration::from_secs(u64::from(overlap_hours) * 60 * 60);
    let rotated = store
        .rotate_token(account.id, token, overlap)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| unknown(&account.email))?;
    Ok(store.token_text(account.id, &rotated))
}

/// Makes a token, or replaces what is set for the one of this name. Returns its text.
fn set_token(store: &Store, account: &Account, settings: TokenSettings) -> Result<String, String> {
    let token = match named(store, account, Some(&settings.name)) {
        Ok(token) => store.change_token(account.id, token.number, settings),
        Err(_) => store.create_token(account.id, settings),
    };
    let token = token.map_err(|error| error.to_string())?;
    Ok(store.token_text(account.id, &token))
}

/// The account's token of this name, or `default`.
fn named(store: &Store, account: &Account, name: Option<&str>) -> Result<ApiToken, String> {
    let name = name.unwrap_or(TokenNumber::DEFAULT_NAME).trim();
    let all = store.tokens(account.id);
    let mut living = all
        .map_err(|error| error.to_string())?
        .into_iter()
        .filter(|usage| usage.deleted.is_none());
    let found = living.find(|usage| usage.token.settings.name == name);
    let missing = || format!("the account {} has no token {name:?}", account.email);
    found.map(|usage| usage.token).ok_or_else(missing)
}

fn usage(store: &Store, account: &Account) -> Result<AccountUsage, StoreError> {
    let id = account.id;
    let totals = store.usage_totals(id)?;
    let restrictions = store.restrictions(id)?.unwrap_or_default();
    let month = store.usage_in_month(id, None, store.now())?;
    let living = store.tokens(id)?.into_iter();
    let living = living.filter(|usage| usage.deleted.is_none());
    let tokens = living.map(|usage| TokenSummary {
        conversions: usage.totals.conversions,
        last_used_milliseconds: usage.last_used.map(to_milliseconds),
        ends_milliseconds: usage.token.settings.ends.map(to_milliseconds),
        name: usage.token.settings.name,
    });
    Ok(AccountUsage {
        conversions: totals.conversions,
        this_month: month.conversions,
        input_bytes: totals.input_bytes,
        output_bytes: totals.output_bytes,
        per_minute: restrictions.per_minute,
        monthly: restrictions.monthly,
        is_disabled: restrictions.disabled.is_some(),
        tokens: tokens.collect(),
    })
}

fn restrict(
    store: &Store,
    account: &Account,
    per_minute: LimitChange,
    monthly: LimitChange,
    disable: Option<bool>,
) -> Result<(), String> {
    let sentence = |error: StoreError| error.to_string();
    let mut restrictions = store
        .restrictions(account.id)
        .map_err(sentence)?
        .unwrap_or_default();
    match per_minute {
        LimitChange::Keep => {}
        LimitChange::Server => restrictions.per_minute = None,
        LimitChange::Set(number) => {
            let number = u32::try_from(number);
            let too_large = |_| format!("a rate is at most {} a minute", u32::MAX);
            restrictions.per_minute = Some(number.map_err(too_large)?);
        }
    }
    match monthly {
        LimitChange::Keep => {}
        LimitChange::Server => restrictions.monthly = None,
        LimitChange::Set(number) if number == u64::MAX => {
            return Err("that is no number of conversions".to_owned());
        }
        LimitChange::Set(number) => restrictions.monthly = Some(number),
    }
    match disable {
        None => {}
        Some(false) => restrictions.disabled = None,
        Some(true) => {
            let since = restrictions.disabled.unwrap_or_else(|| store.now());
            restrictions.disabled = Some(since);
        }
    }
    store.restrict(account.id, restrictions).map_err(sentence)?;
    Ok(())
}

fn token(store: &Store, account: &Account) -> Result<String, String> {
    store.token(account.id).map_err(|error| error.to_string())
}

fn find(store: &Store, email: &str) -> Result<Account, String> {
    store
        .account_by_email(email)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| unknown(email))
}

fn summary(store: &Store, account: &Account) -> Result<AccountSummary, StoreError> {
    Ok(AccountSummary {
        email: account.email.clone(),
        created_milliseconds: to_milliseconds(account.created),
        has_password: account.has_password,
        conversions: store.usage_totals(account.id)?.conversions,
    })
}

fn set_email(store: &Store, email: &str, new: &str) -> Result<(), String> {
    let account = find(store, email)?;
    match store.set_email(account.id, new) {
        Ok(_) => Ok(()),
        Err(SetEmailError::NoAccount) => Err(unknown(email)),
        Err(SetEmailError::Taken) => Err(taken(new)),
        Err(error) => Err(error.to_string()),
    }
}

fn set_password(store: &Store, email: &str, password: &str) -> Result<(), String> {
    let account = find(store, email)?;
    match store.set_password(account.id, password) {
        Ok(_) => Ok(()),
        Err(SetPasswordError::NoAccount) => Err(unknown(email)),
        Err(error) => Err(error.to_string()),
    }
}

fn taken(email: &str) -> String {
    format!("there is an account {} already", email.trim())
}

fn unknown(email: &str) -> String {
    format!("there is no account {}", email.trim())
}
