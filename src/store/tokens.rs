//! API tokens: the store checks, makes, changes and lists them.

use std::sync::Arc;
use std::time::Duration;

use super::Store;
use super::engine::{Command, Outcome, TokenChange};
use super::error::{ChangeTokenError, Result, StoreError, TokenError};
use super::known::{self, TokenCheck};
use super::monotonic;
use super::token::{
    ApiToken, Caller, MAX_NAME, MAX_OVERLAP, MAX_PRESET_BYTES, Restrictions, TokenSettings,
    TokenUsage,
};
use super::token_number::TokenNumber;
use crate::auth::{AccountId, Token};

impl Store {
    /// The text of the account's token `default`: 53 characters that need no escaping in a URL.
    ///
    /// # Errors
    /// There is no such account, or the store failed.
    pub fn token(&self, id: AccountId) -> Result<String> {
        let access = self.read(|engine| engine.access(id))?;
        let token = access.as_ref();
        let token = token.and_then(|access| access.token(TokenNumber::DEFAULT));
        let missing = || StoreError::Failed(format!("account {} has no token", id.0));
        Ok(self.token_text(id, token.ok_or_else(missing)?))
    }

    /// The present text of a token of the account.
    pub fn token_text(&self, id: AccountId, token: &ApiToken) -> String {
        Token {
            account: id,
            serial: token.serial,
        }
        .text(&self.secret)
    }

    /// The account's tokens in the order in which they were made, with those that are deleted.
    pub fn tokens(&self, id: AccountId) -> Result<Vec<TokenUsage>> {
        self.read(|engine| engine.tokens(id))
    }

    /// Makes a token for the account.
    ///
    /// # Errors
    /// See [`ChangeTokenError`].
    pub fn create_token(
        &self,
        id: AccountId,
        settings: TokenSettings,
    ) -> Result<ApiToken, ChangeTokenError> {
        let change = TokenChange::Create {
            settings: acceptable(settings, None)?,
            now: self.clock.now(),
        };
        self.write_token(id, change)
    }

    /// Replaces the settings of a token. Requests that are admitted already keep the former ones.
    ///
    /// # Errors
    /// See [`ChangeTokenError`].
    pub fn change_token(
        &self,
        id: AccountId,
        token: TokenNumber,
        settings: TokenSettings,
    ) -> Result<ApiToken, ChangeTokenError> {
        let change = TokenChange::Set {
            token,
            settings: acceptable(settings, Some(token))?,
        };
        self.write_token(id, change)
    }

    /// Rotates a token: it gets a new text. The present text stays valid for `overlap`, at most 72
    /// hours. Only the last of several rotated texts stays valid. `None` if there is no such token.
    pub fn rotate_token(
        &self,
        id: AccountId,
        token: TokenNumber,
        overlap: Duration,
    ) -> Result<Option<ApiToken>> {
        let now = self.clock.now();
        let overlap = u64::try_from(overlap.as_millis()).unwrap_or(u64::MAX);
        let overlap = overlap.min(MAX_OVERLAP);
        let change = TokenChange::Rotate {
            token,
            overlap_ends: (overlap > 0).then_some(now.saturating_add(overlap)),
            now,
        };
        let outcome = self.write_change(id, change)?;
        Ok(token_of(outcome))
    }

    /// Deletes a token, which is invalid at once. Its conversions stay in the history.
    ///
    /// # Errors
    /// See [`ChangeTokenError`]; `default` cannot be deleted.
    pub fn delete_token(&self, id: AccountId, token: TokenNumber) -> Result<(), ChangeTokenError> {
        if token == TokenNumber::DEFAULT {
            return Err(ChangeTokenError::Default);
        }
        let now = self.clock.now();
        let deleted = self.write_change(id, TokenChange::Delete { token, now })?;
        if deleted.changed() {
            Ok(())
        } else {
            Err(ChangeTokenError::NoToken)
        }
    }

    /// The limits that the operator has set for the account; `None` if there is no such account.
    pub fn restrictions(&self, id: AccountId) -> Result<Option<Restrictions>> {
        let access = self.read(|engine| engine.access(id))?;
        Ok(access.map(|access| access.restrictions))
    }

    /// Replaces the limits that the operator has set for the account. Returns false if there is no
    /// such account.
    pub fn restrict(&self, id: AccountId, restrictions: Restrictions) -> Result<bool> {
        let outcome = self.write_change(id, TokenChange::Restrict(restrictions))?;
        Ok(outcome.changed())
    }

    /// Looks a token up in memory. The event loop may call this: it waits neither for a disk nor
    /// for a lock whose holder waits for one. The HMAC is compared in constant time.
    pub fn check_token(&self, token: &str) -> TokenCheck {
        Token::parse(token, &self.secret).map_or(TokenCheck::Invalid, |token| {
            self.known.check(token, self.clock.now())
        })
    }

    /// The caller of a request with this token. As [`Store::check_token`], but reads the token from
    /// the engine if it is not in memory. The engine is never queried for a mistyped or forged one.
    ///
    /// # Errors
    /// The token is invalid or has ended, or the store failed.
    pub fn authenticate(&self, token: &str) -> Result<Caller, TokenError> {
        let token = Token::parse(token, &self.secret).ok_or(TokenError::Invalid)?;
        let now = self.clock.now();
        let mut check = self.known.check(token, now);
        if let TokenCheck::Unknown { account, .. } = check {
            let (changes, queried) = (self.known.changes(), monotonic::now());
            let access = self.read(|engine| engine.access(account))?;
            self.known.learn(account, access.clone(), changes, queried);
            check = access.map_or(TokenCheck::Invalid, |access| {
                known::check(token, &Arc::new(access), now)
            });
        }
        match check {
            TokenCheck::Valid(caller) => Ok(caller),
            TokenCheck::Ended => Err(TokenError::Ended),
            TokenCheck::Invalid | TokenCheck::Unknown { .. } => Err(TokenError::Invalid),
        }
    }

    fn write_token(
        &self,
        account: AccountId,
        change: TokenChange,
    ) -> Result<ApiToken, ChangeTokenError> {
        match self.write_change(account, change)? {
            Outcome::NameTaken => Err(ChangeTokenError::NameTaken),
            Outcome::TooManyTokens => Err(ChangeTokenError::TooMany),
            outcome => token_of(outcome).ok_or(ChangeTokenError::NoToken),
        }
    }

    fn write_change(&self, account: AccountId, change: TokenChange) -> Result<Outcome> {
        self.write_in_force(Command::ChangeTokens { account, change })
    }
}

fn token_of(outcome: Outcome) -> Option<ApiToken> {
    match outcome {
        Outcome::Token { token, access } => access.token(token).cloned(),
        _ => None,
    }
}

/// The settings with a trimmed name, if a token can have them.
fn acceptable(
    settings: TokenSettings,
    token: Option<TokenNumber>,
) -> Result<TokenSettings, ChangeTokenError> {
    let name = settings.name.trim().to_owned();
    let length = name.chars().count();
    if length == 0 || length > MAX_NAME || name.chars().any(char::is_control) {
        return Err(ChangeTokenError::Name);
    }
    let of_default = token == Some(TokenNumber::DEFAULT);
    if of_default && (name != TokenNumber::DEFAULT_NAME || settings.ends.is_some()) {
        return Err(ChangeTokenError::Default);
    }
    if settings.preset.len() > MAX_PRESET_BYTES {
        return Err(ChangeTokenError::PresetTooLong(settings.preset.len()));
    }
    Ok(TokenSettings { name, ..settings })
}
