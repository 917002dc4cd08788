//! What is asked and answered: one JSON object a line, one request and one answer a connection.
//!
//! ```text
//! {"create":{"email":"owner@example.org","password":null}}   {"token":"twp_..."}
//! "list"                                                     {"accounts":[{"email":...}, ...]}
//! {"token":{"email":"owner@example.org"}}                    {"token":"twp_..."}
//! {"rotate":{"email":"owner@example.org"}}                   {"token":"twp_..."}
//! {"delete":{"email":"owner@example.org"}}                   "deleted"
//! "invite"                                                   {"invite":"a code"}
//! anything                                                   {"refused":"a sentence"}
//! ```

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::store::{Account, CreateAccountError, Store, StoreError};

/// What is asked. No `Debug`: a password must not reach a log.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// Make an account.
    Create {
        /// Its address.
        email: String,
        /// None for one that cannot sign in to the dashboard.
        password: Option<String>,
    },
    /// Name all accounts.
    List,
    /// Make an invitation.
    Invite,
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
    /// Delete the account.
    Delete {
        /// Its address.
        email: String,
    },
}

/// What is answered. No `Debug`: a token must not reach a log.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The account's present token.
    Token(String),
    /// All accounts, oldest first.
    Accounts(Vec<AccountLine>),
    /// The code of a new invitation.
    Invite(String),
    /// It is gone.
    Deleted,
    /// A sentence that says why not.
    Refused(String),
}

/// One account in a list.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct AccountLine {
    /// Its address.
    pub email: String,
    /// When it was made: milliseconds since 1970-01-01 00:00 UTC.
    pub created_milliseconds: u64,
    /// Whether it can sign in to the dashboard.
    pub has_password: bool,
    /// Conversions in its history.
    pub conversions: u64,
}

impl AccountLine {
    /// When it was made.
    pub fn created(&self) -> SystemTime {
        UNIX_EPOCH
            .checked_add(Duration::from_millis(self.created_milliseconds))
            .unwrap_or(UNIX_EPOCH)
    }
}

/// Does what is asked.
pub fn answer(store: &Store, request: Request) -> Answer {
    carry_out(store, request).unwrap_or_else(Answer::Refused)
}

fn carry_out(store: &Store, request: Request) -> Result<Answer, String> {
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
            let accounts = store.accounts().map_err(sentence)?;
            let lines = accounts
                .iter()
                .map(|account| line(store, account))
                .collect::<Result<_, _>>();
            Ok(Answer::Accounts(lines.map_err(sentence)?))
        }
        Request::Invite => Ok(Answer::Invite(store.invite().map_err(sentence)?)),
        Request::Token { email } => Ok(Answer::Token(store.token(&find(store, &email)?))),
        Request::Rotate { email } => {
            let account = find(store, &email)?;
            let rotated = store
                .rotate_token(account.id)
                .map_err(sentence)?
                .ok_or_else(|| unknown(&email))?;
            Ok(Answer::Token(store.token(&rotated)))
        }
        Request::Delete { email } => {
            let account = find(store, &email)?;
            if !store.delete_account(account.id).map_err(sentence)? {
                return Err(unknown(&email));
            }
            Ok(Answer::Deleted)
        }
    }
}

fn find(store: &Store, email: &str) -> Result<Account, String> {
    store
        .account_by_email(email)
        .map_err(sentence)?
        .ok_or_else(|| unknown(email))
}

fn line(store: &Store, account: &Account) -> Result<AccountLine, StoreError> {
    let since = account
        .created
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    Ok(AccountLine {
        email: account.email.clone(),
        created_milliseconds: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        has_password: account.has_password,
        conversions: store.usage_totals(account.id)?.conversions,
    })
}

fn unknown(email: &str) -> String {
    format!("there is no account {}", email.trim())
}

fn sentence(error: StoreError) -> String {
    error.to_string()
}
