//! Requests and answers: one JSON value a line, one request and one answer a connection.
//!
//! ```text
//! {"create":{"email":"a@example.org","password":null}}   {"token":"twp_..."}
//! "list"                                                 {"accounts":[{"email":...}, ...]}
//! {"token":{"email":"a@example.org"}}                    {"token":"twp_..."}
//! {"rotate":{"email":"a@example.org"}}                   {"token":"twp_..."}
//! {"password":{"email":"a@example.org","password":"b"}}  "changed"
//! {"delete":{"email":"a@example.org"}}                   "deleted"
//! "invite"                                               {"invite":"a code"}
//! "check"                                                {"checked":{"accounts":1, ...}}
//! "backup"                                               "backup", then the rows
//! anything                                               {"refused":"a sentence"}
//! ```

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::store::{Account, CreateAccountError, Findings, SetPasswordError, Store, StoreError};

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
    /// Show the account's token.
    Token {
        /// Its address.
        email: String,
    },
    /// Replace the account's token.
    Rotate {
        /// Its address.
        email: String,
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

/// An answer. It has no `Debug`: a token must not reach a log.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The account's present token.
    Token(String),
    /// All accounts, oldest first.
    Accounts(Vec<AccountSummary>),
    /// The code of a new invitation.
    Invite(String),
    /// The account has the new password.
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
        UNIX_EPOCH
            .checked_add(Duration::from_millis(self.created_milliseconds))
            .unwrap_or(UNIX_EPOCH)
    }
}

/// Carries out a request. The rows of a backup are not part of this: the caller sends them.
pub fn answer(store: &Store, request: Request) -> Answer {
    try_answer(store, request).unwrap_or_else(Answer::Rejected)
}

fn try_answer(store: &Store, request: Request) -> Result<Answer, String> {
    match request {
        Request::Create { email, password } => {
            let account = store
                .create_account(&email, password.as_deref())
                .map_err(|error| match error {
                    CreateAccountError::Exists => {
                        format!("there is an account {} already", email.trim())
                    }
                    error => error.to_string(),
                })?;
            Ok(Answer::Token(store.token(&account)))
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
        Request::Token { email } => Ok(Answer::Token(store.token(&find(store, &email)?))),
        Request::Rotate { email } => {
            let account = find(store, &email)?;
            let rotated = store
                .rotate_token(account.id)
                .map_err(|error| error.to_string())?
                .ok_or_else(|| unknown(&email))?;
            Ok(Answer::Token(store.token(&rotated)))
        }
        Request::Password { email, password } => {
            let account = find(store, &email)?;
            match store.set_password(account.id, &password) {
                Ok(_) => Ok(Answer::Changed),
                Err(SetPasswordError::NoAccount) => Err(unknown(&email)),
                Err(error) => Err(error.to_string()),
            }
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

fn find(store: &Store, email: &str) -> Result<Account, String> {
    store
        .account_by_email(email)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| unknown(email))
}

fn summary(store: &Store, account: &Account) -> Result<AccountSummary, StoreError> {
    let since = account
        .created
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    Ok(AccountSummary {
        email: account.email.clone(),
        created_milliseconds: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        has_password: account.has_password,
        conversions: store.usage_totals(account.id)?.conversions,
    })
}

fn unknown(email: &str) -> String {
    format!("there is no account {}", email.trim())
}
