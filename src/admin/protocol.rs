//! Requests and answers: one JSON value a line, one request and one answer a connection.
//!
//! ```text
//! {"create":{"email":"a@example.org","password":null}}   {"text":"twp_..."}
//! "list"                                                 {"accounts":[[{"id":...}, 1], ...]}
//! {"token":{"email":"a@example.org"}}                    {"text":"twp_..."}
//! {"rotate":{"email":"a@example.org","overlap_hours":0}}  {"text":"twp_..."}
//! {"set_token":{"email":"a@example.org","settings":...}} {"text":"twp_..."}
//! {"delete_token":{"email":"a@example.org", ...}}        "changed"
//! {"usage":{"email":"a@example.org"}}                    {"usage":{"totals":..., ...}}
//! {"restrict":{"email":"a@example.org","disable":true}}  "changed"
//! {"email":{"email":"a@example.org","new":"b@..."}}      "changed"
//! {"password":{"email":"a@example.org","password":"b"}}  "changed"
//! {"second_factor_off":{"email":"a@example.org"}}        "changed"
//! {"delete":{"email":"a@example.org"}}                   "changed"
//! "invite"                                               {"text":"a code"}
//! "check"                                                {"checked":{"accounts":1, ...}}
//! "backup"                                               "backup", then the rows
//! anything                                               {"refused":"a sentence"}
//! ```

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::store::{
    Account, ApiToken, CreateAccountError, Findings, OwnerError, Restrictions, Store, StoreError,
    TokenNumber, TokenSettings, TokenUsage, UsageTotals,
};

/// A request. It has no `Debug`: a password must not reach a log.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AdminRequest {
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
        /// The hours for which the present text stays valid.
        overlap_hours: u32,
    },
    /// Make a token, or replace the settings of the one of this name.
    #[serde(rename = "set_token")]
    SetToken {
        /// The account's address.
        email: String,
        /// The token's name, limits, end and preset.
        settings: TokenSettings,
    },
    /// Delete a token of the account.
    #[serde(rename = "delete_token")]
    DeleteToken {
        /// Its address.
        email: String,
        /// The token's name.
        name: String,
    },
    /// Report the conversions of the account, and what it may do.
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
    /// Turn the account's second factor off.
    #[serde(rename = "second_factor_off")]
    SecondFactorOff {
        /// Its address.
        email: String,
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
    /// The text of a token, or the code of a new invitation.
    Text(String),
    /// The conversions of an account, and what it may do.
    Usage(Box<AccountUsage>),
    /// All accounts, oldest first, with the conversions in their histories.
    Accounts(Vec<(Account, u64)>),
    /// The account was changed or deleted.
    Changed,
    /// The result of a check.
    Checked(Findings),
    /// The rows follow after the line.
    Backup,
    /// The request was rejected: a sentence with the reason.
    #[serde(rename = "refused")]
    Rejected(String),
}

/// The conversions of an account, and what it may do.
#[derive(Debug, Deserialize, Serialize)]
pub struct AccountUsage {
    /// The sums over its history.
    pub totals: UsageTotals,
    /// The conversions of this calendar month (UTC).
    pub this_month: u64,
    /// The limits that the operator has set for it.
    pub restrictions: Restrictions,
    /// Whether signing in needs a code beside the password.
    pub has_second_factor: bool,
    /// Its tokens that are not deleted, oldest first.
    pub tokens: Vec<TokenUsage>,
}

impl AdminRequest {
    /// Whether it reads the whole store, for which other requests should not wait.
    pub fn takes_long(&self) -> bool {
        matches!(self, AdminRequest::Check | AdminRequest::Backup)
    }
}

/// Carries out a request. The rows of a backup are not part of this: the caller sends them.
pub fn answer(store: &Store, request: AdminRequest) -> Answer {
    let answer = try_answer(store, request).unwrap_or_else(Answer::Rejected);
    store.wait_until_in_force();
    answer
}

fn try_answer(store: &Store, request: AdminRequest) -> Result<Answer, String> {
    match request {
        AdminRequest::Create { email, password } => {
            let created = store.create_account(&email, password.as_deref());
            let account = created.map_err(|error| match error {
                CreateAccountError::Exists => taken(&email),
                error => error.to_string(),
            })?;
            Ok(Answer::Text(store.token(account.id).map_err(sentence)?))
        }
        AdminRequest::List => {
            let accounts = store.accounts().map_err(sentence)?.into_iter();
            let listed = accounts.map(|account| {
                let totals = store.usage_totals(account.id)?;
                Ok((account, totals.conversions))
            });
            let listed: Result<_, StoreError> = listed.collect();
            Ok(Answer::Accounts(listed.map_err(sentence)?))
        }
        AdminRequest::Check => {
            let findings = store.snapshot().and_then(|snapshot| snapshot.check());
            Ok(Answer::Checked(findings.map_err(sentence)?))
        }
        AdminRequest::Backup => Ok(Answer::Backup),
        AdminRequest::Invite => Ok(Answer::Text(store.invite().map_err(sentence)?)),
        AdminRequest::Token { email, name } => {
            let account = find(store, &email)?;
            let token = named(store, &account, name.as_deref())?;
            Ok(Answer::Text(store.token_text(account.id, &token)))
        }
        AdminRequest::SetToken { email, settings } => {
            let account = find(store, &email)?;
            let token = match named(store, &account, Some(&settings.name)) {
                Ok(token) => store.change_token(account.id, token.number, settings),
                Err(_) => store.create_token(account.id, settings),
            };
            let token = token.map_err(sentence)?;
            Ok(Answer::Text(store.token_text(account.id, &token)))
        }
        AdminRequest::DeleteToken { email, name } => {
            let account = find(store, &email)?;
            let token = named(store, &account, Some(&name))?;
            let deleted = store.delete_token(account.id, token.number);
            deleted.map_err(sentence)?;
            Ok(Answer::Changed)
        }
        AdminRequest::Usage { email } => {
            let account = find(store, &email)?;
            let usage = usage(store, &account).map_err(sentence)?;
            Ok(Answer::Usage(Box::new(usage)))
        }
        AdminRequest::Restrict {
            email,
            per_minute,
            monthly,
            disable,
        } => {
            let account = find(store, &email)?;
            restrict(store, &account, per_minute, monthly, disable)?;
            Ok(Answer::Changed)
        }
        AdminRequest::Rotate {
            email,
            name,
            overlap_hours,
        } => {
            let account = find(store, &email)?;
            rotate(store, &account, name.as_deref(), overlap_hours).map(Answer::Text)
        }
        AdminRequest::Email { email, new } => {
            let account = find(store, &email)?;
            let set = store.set_email(account.id, &new);
            set.map_err(|error| match error {
                OwnerError::NoAccount => unknown(&email),
                OwnerError::EmailTaken => taken(&new),
                error => error.to_string(),
            })?;
            Ok(Answer::Changed)
        }
        AdminRequest::Password { email, password } => {
            let account = find(store, &email)?;
            let set = store.set_password(account.id, &password);
            set.map_err(|error| match error {
                OwnerError::NoAccount => unknown(&email),
                error => error.to_string(),
            })?;
            Ok(Answer::Changed)
        }
        AdminRequest::SecondFactorOff { email } => {
            turn_off_second_factor(store, &find(store, &email)?)
        }
        AdminRequest::Delete { email } => {
            let account = find(store, &email)?;
            changed(store.delete_account(account.id), &email)
        }
    }
}

fn turn_off_second_factor(store: &Store, account: &Account) -> Result<Answer, String> {
    let email = &account.email;
    if !account.has_second_factor {
        return Err(format!("the account {email} has no second factor"));
    }
    changed(store.remove_second_factor(account.id), email)
}

/// The answer to a change, which is not made if there is no such account any more.
fn changed(done: Result<bool, StoreError>, email: &str) -> Result<Answer, String> {
    let is_done = done.map_err(sentence)?;
    is_done
        .then_some(Answer::Changed)
        .ok_or_else(|| unknown(email))
}

fn sentence(error: impl std::error::Error) -> String {
    error.to_string()
}

/// Rotates a token. Returns its new text.
fn rotate(
    store: &Store,
    account: &Account,
    name: Option<&str>,
    overlap_hours: u32,
) -> Result<String, String> {
    let token = named(store, account, name)?.number;
    let overlap = Duration::from_secs(u64::from(overlap_hours) * 60 * 60);
    let rotated = store.rotate_token(account.id, token, overlap);
    let rotated = rotated.map_err(sentence)?;
    let rotated = rotated.ok_or_else(|| unknown(&account.email))?;
    Ok(store.token_text(account.id, &rotated))
}

/// The account's token of this name, or `default`.
fn named(store: &Store, account: &Account, name: Option<&str>) -> Result<ApiToken, String> {
    let name = name.unwrap_or(TokenNumber::DEFAULT_NAME).trim();
    let mut tokens = tokens(store, account).map_err(sentence)?.into_iter();
    let found = tokens.find(|usage| usage.token.settings.name == name);
    let missing = || format!("the account {} has no token {name:?}", account.email);
    found.map(|usage| usage.token).ok_or_else(missing)
}

/// The account's tokens that are not deleted.
fn tokens(store: &Store, account: &Account) -> Result<Vec<TokenUsage>, StoreError> {
    let mut tokens = store.tokens(account.id)?;
    tokens.retain(|usage| usage.deleted.is_none());
    Ok(tokens)
}

fn usage(store: &Store, account: &Account) -> Result<AccountUsage, StoreError> {
    let id = account.id;
    Ok(AccountUsage {
        totals: store.usage_totals(id)?,
        this_month: store.usage_in_month(id, None, store.now())?.conversions,
        restrictions: store.restrictions(id)?.unwrap_or_default(),
        has_second_factor: account.has_second_factor,
        tokens: tokens(store, account)?,
    })
}

fn restrict(
    store: &Store,
    account: &Account,
    per_minute: LimitChange,
    monthly: LimitChange,
    disable: Option<bool>,
) -> Result<(), String> {
    let restrictions = store.restrictions(account.id).map_err(sentence)?;
    let mut restrictions = restrictions.unwrap_or_default();
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

fn find(store: &Store, email: &str) -> Result<Account, String> {
    let found = store.account_by_email(email).map_err(sentence)?;
    found.ok_or_else(|| unknown(email))
}

fn taken(email: &str) -> String {
    format!("there is an account {} already", email.trim())
}

fn unknown(email: &str) -> String {
    format!("there is no account {}", email.trim())
}
