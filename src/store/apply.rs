//! The rules of the store: what each command does, once for all engines.
//!
//! An engine implements [`Transaction`], which reads and writes single rows. Its methods are
//! asynchronous because PostgreSQL answers over a network; those of redb are ready at once. Only
//! the recording of conversions is each engine's own, since PostgreSQL does it for many of them by
//! one statement.

use super::clock;
use super::engine::{AccountChange, Command, OldRows, Outcome, TokenChange};
use super::failure::Failure;
use super::rows::AccountRow;
use super::session::{MAX_SESSIONS, SessionId, StoredSession};
use super::token::{
    AccountAccess, ApiToken, MAX_DELETED_TOKENS, MAX_TOKENS, Restrictions, TokenSettings,
    next_serial,
};
use super::token_number::TokenNumber;
use crate::auth::{AccountId, CodeHash, Email, SecondFactor};

/// The rows of a transaction. If a method fails, nothing of the transaction takes effect.
pub trait Transaction {
    /// The error of a row that cannot be read or written.
    type Error;

    /// The account with this number.
    async fn account(&mut self, id: AccountId) -> Result<Option<AccountRow>, Self::Error>;

    /// The number of the account with this e-mail address.
    async fn account_of(&mut self, email: &str) -> Result<Option<AccountId>, Self::Error>;

    /// Writes an account, whose e-mail address no other one has.
    async fn put_account(&mut self, account: &AccountRow) -> Result<(), Self::Error>;

    /// Removes an account with all its rows. A long history may be removed later, step by step.
    async fn remove_account(&mut self, account: &AccountRow) -> Result<(), Self::Error>;

    /// The last account number given; 0 before the first.
    async fn last_account(&mut self) -> Result<u64, Self::Error>;

    /// Writes the last account number given.
    async fn set_last_account(&mut self, last: u64) -> Result<(), Self::Error>;

    /// When the invitation with this hash ends.
    async fn invite_end(&mut self, code: &CodeHash) -> Result<Option<u64>, Self::Error>;

    /// Writes an invitation.
    async fn put_invite(&mut self, code: &CodeHash, end: u64) -> Result<(), Self::Error>;

    /// Removes an invitation.
    async fn remove_invite(&mut self, code: &CodeHash) -> Result<(), Self::Error>;

    /// Removes the invitations that have ended.
    async fn remove_ended_invites(&mut self, now: u64) -> Result<(), Self::Error>;

    /// The tokens of an account by number, each with the time at which it was deleted, if it was.
    async fn tokens(
        &mut self,
        account: AccountId,
    ) -> Result<Vec<(ApiToken, Option<u64>)>, Self::Error>;

    /// Writes a token, which was deleted at this time, if it was.
    async fn put_token(
        &mut self,
        account: AccountId,
        token: &ApiToken,
        deleted: Option<u64>,
    ) -> Result<(), Self::Error>;

    /// Removes a token.
    async fn remove_token(
        &mut self,
        account: AccountId,
        token: TokenNumber,
    ) -> Result<(), Self::Error>;

    /// The limits that the operator has set for an account.
    async fn restrictions(&mut self, account: AccountId) -> Result<Restrictions, Self::Error>;

    /// Writes the limits that the operator has set for an account.
    async fn put_restrictions(
        &mut self,
        account: AccountId,
        restrictions: Restrictions,
    ) -> Result<(), Self::Error>;

    /// The session with this hash of its cookie, and its account.
    async fn session(
        &mut self,
        cookie: &CodeHash,
    ) -> Result<Option<(AccountId, StoredSession)>, Self::Error>;

    /// The sessions of an account with the hashes of their cookies.
    async fn sessions(
        &mut self,
        account: AccountId,
    ) -> Result<Vec<(CodeHash, StoredSession)>, Self::Error>;

    /// Some sessions that have ended; none if there is none.
    async fn ended_sessions(&mut self, now: u64) -> Result<Vec<CodeHash>, Self::Error>;

    /// Writes a session.
    async fn put_session(
        &mut self,
        cookie: &CodeHash,
        account: AccountId,
        session: &StoredSession,
    ) -> Result<(), Self::Error>;

    /// Removes these sessions, and returns how many of them existed.
    async fn remove_sessions(&mut self, cookies: &[CodeHash]) -> Result<u64, Self::Error>;

    /// Adds failed conversions, and removes the oldest of too many.
    async fn add_failures(
        &mut self,
        account: AccountId,
        failures: &[Failure],
    ) -> Result<(), Self::Error>;

    /// Removes some rows that are too old. Returns the account to go on with; `None` if no row is
    /// too old any more.
    async fn remove_old(&mut self, old: OldRows) -> Result<Option<AccountId>, Self::Error>;

    /// The tokens and limits of an account.
    async fn access(&mut self, account: AccountId) -> Result<AccountAccess, Self::Error> {
        let tokens = self.tokens(account).await?;
        Ok(AccountAccess::new(
            tokens,
            self.restrictions(account).await?,
        ))
    }
}

/// Carries out one command other than [`Command::RecordUsage`].
pub async fn apply<T: Transaction>(rows: &mut T, command: &Command) -> Result<Outcome, T::Error> {
    match command {
        Command::CreateAccount {
            email,
            password_hash,
            created,
            invite,
        } => {
            let hash = password_hash.as_deref();
            create_account(rows, email, hash, *created, invite.as_ref()).await
        }
        Command::AddInvite { code, end, now } => {
            rows.remove_ended_invites(*now).await?;
            rows.put_invite(code, *end).await?;
            Ok(Outcome::Changed)
        }
        Command::DeleteAccount(id) => {
            let account = rows.account(*id).await?;
            if let Some(account) = &account {
                rows.remove_account(account).await?;
            }
            Ok(Outcome::of_change(account.is_some()))
        }
        Command::ChangeTokens { account, change } => change_tokens(rows, *account, change).await,
        Command::ChangeAccount {
            account,
            change,
            verified,
        } => change_account(rows, *account, change, verified.as_ref()).await,
        Command::StartSession {
            cookie,
            account,
            session,
            now,
        } => {
            sweep(rows, *now).await?;
            if rows.account(*account).await?.is_none() {
                return Ok(Outcome::Unchanged);
            }
            make_room(rows, *account, cookie).await?;
            rows.put_session(cookie, *account, session).await?;
            Ok(Outcome::Changed)
        }
        Command::RenewSession {
            cookie,
            times,
            browser,
        } => {
            if let Some((account, mut session)) = rows.session(cookie).await? {
                session.times = *times;
                session.browser = browser.clone().unwrap_or(session.browser);
                rows.put_session(cookie, account, &session).await?;
            }
            Ok(Outcome::Changed)
        }
        Command::EndSession { cookie } => {
            let ended = rows.remove_sessions(&[*cookie]).await?;
            Ok(Outcome::of_change(ended > 0))
        }
        Command::EndSessionOf { account, session } => {
            let ended = end_sessions(rows, *account, |it| SessionId::of(it) == *session).await?;
            Ok(Outcome::of_change(ended > 0))
        }
        Command::EndSessionsOf(account) => {
            end_sessions(rows, *account, |_| true).await?;
            Ok(Outcome::Changed)
        }
        Command::SweepSessions { now } => Ok(Outcome::of_change(sweep(rows, *now).await? > 0)),
        Command::RecordFailures { account, failures } => {
            let exists = rows.account(*account).await?.is_some();
            if exists {
                rows.add_failures(*account, failures).await?;
            }
            Ok(Outcome::of_change(exists))
        }
        Command::RemoveOld(old) => Ok(Outcome::Removed {
            next: rows.remove_old(*old).await?,
        }),
        Command::RecordUsage { .. } => unreachable!("engines record conversions by themselves"),
    }
}

async fn create_account<T: Transaction>(
    rows: &mut T,
    email: &Email,
    password_hash: Option<&str>,
    created: u64,
    invite: Option<&CodeHash>,
) -> Result<Outcome, T::Error> {
    if let Some(code) = invite {
        let end = rows.invite_end(code).await?;
        if end.is_none_or(|end| end <= created) {
            return Ok(Outcome::Unchanged);
        }
    }
    if rows.account_of(email.as_str()).await?.is_some() {
        return Ok(Outcome::Unchanged);
    }
    let id = created.max(rows.last_account().await? + 1);
    let row = AccountRow {
        id: AccountId(id),
        email: email.as_str().to_owned(),
        created,
        password: password_hash.map(str::to_owned),
        ..AccountRow::default()
    };
    rows.set_last_account(id).await?;
    rows.put_account(&row).await?;
    let token = ApiToken::default_token(created, 0);
    rows.put_token(row.id, &token, None).await?;
    if let Some(code) = invite {
        rows.remove_invite(code).await?;
    }
    Ok(Outcome::Account(row.into()))
}

/// Changes an account, if it exists and its password is still the verified one.
async fn change_account<T: Transaction>(
    rows: &mut T,
    id: AccountId,
    change: &AccountChange,
    verified: Option<&String>,
) -> Result<Outcome, T::Error> {
    let account = rows.account(id).await?;
    let account = account.filter(|it| verified.is_none() || verified == it.password.as_ref());
    let Some(mut row) = account else {
        return Ok(Outcome::Unchanged);
    };
    match change {
        AccountChange::Password { hash, kept_session } => {
            row.password = Some(hash.clone());
            end_sessions(rows, id, |cookie| Some(cookie) != kept_session.as_ref()).await?;
        }
        AccountChange::Email(email) => {
            let owner = rows.account_of(email.as_str()).await?;
            if owner.is_some_and(|owner| owner != id) {
                return Ok(Outcome::EmailTaken);
            }
            email.as_str().clone_into(&mut row.email);
        }
        AccountChange::SecondFactor(factor) => {
            row.second_factor = factor.as_ref().map(SecondFactor::to_text);
        }
        AccountChange::SpendCode {
            proof,
            password_hash,
        } => {
            let factor = row.second_factor.as_deref().and_then(SecondFactor::parse);
            let spent = factor.and_then(|mut factor| factor.spend(*proof).then_some(factor));
            let Some(factor) = spent else {
                return Ok(Outcome::Unchanged);
            };
            row.second_factor = Some(factor.to_text());
            if let Some(hash) = password_hash {
                row.password = Some(hash.clone());
                end_sessions(rows, id, |_| true).await?;
            }
        }
    }
    rows.put_account(&row).await?;
    Ok(Outcome::Account(row.into()))
}

async fn change_tokens<T: Transaction>(
    rows: &mut T,
    id: AccountId,
    change: &TokenChange,
) -> Result<Outcome, T::Error> {
    let Some(mut account) = rows.account(id).await? else {
        return Ok(Outcome::Unchanged);
    };
    let access = rows.access(id).await?;
    let mut number = change.token();
    let token = number.and_then(|number| access.token(number).cloned());
    match (change, token) {
        (TokenChange::Create { settings, now }, _) => {
            if access.has_name(&settings.name, None) {
                return Ok(Outcome::NameTaken);
            }
            if access.tokens.len() >= MAX_TOKENS {
                return Ok(Outcome::TooManyTokens);
            }
            let serial = take_serial(rows, &mut account, *now).await?;
            let token = new_token(serial, settings, *now);
            rows.put_token(id, &token, None).await?;
            number = Some(token.number);
        }
        (TokenChange::Restrict(restrictions), _) => {
            rows.put_restrictions(id, *restrictions).await?;
        }
        (_, None) => return Ok(Outcome::Unchanged),
        (TokenChange::Set { settings, .. }, Some(mut token)) => {
            if access.has_name(&settings.name, number) {
                return Ok(Outcome::NameTaken);
            }
            token.settings = settings.clone();
            rows.put_token(id, &token, None).await?;
        }
        (
            TokenChange::Rotate {
                overlap_ends, now, ..
            },
            Some(mut token),
        ) => {
            let serial = take_serial(rows, &mut account, *now).await?;
            token.rotate(serial, *overlap_ends);
            rows.put_token(id, &token, None).await?;
        }
        (TokenChange::Delete { now, .. }, Some(token)) => {
            delete_token(rows, id, &token, *now).await?;
        }
    }
    Ok(Outcome::Token {
        token: number.unwrap_or(TokenNumber::DEFAULT),
        access: rows.access(id).await?,
    })
}

fn new_token(serial: u32, settings: &TokenSettings, now: u64) -> ApiToken {
    ApiToken {
        number: TokenNumber(serial),
        created: clock::from_milliseconds(now),
        serial,
        previous: None,
        settings: settings.clone(),
    }
}

/// Gives the account's next serial number of a token.
async fn take_serial<T: Transaction>(
    rows: &mut T,
    account: &mut AccountRow,
    now: u64,
) -> Result<u32, T::Error> {
    account.last_serial = next_serial(account.last_serial, now);
    rows.put_account(account).await?;
    Ok(account.last_serial)
}

/// Marks a token as deleted, and removes the oldest of more than [`MAX_DELETED_TOKENS`].
async fn delete_token<T: Transaction>(
    rows: &mut T,
    account: AccountId,
    token: &ApiToken,
    now: u64,
) -> Result<(), T::Error> {
    let deleted = Some(now.max(1));
    rows.put_token(account, &token.deleted(), deleted).await?;
    let tokens = rows.tokens(account).await?.into_iter();
    let mut deleted: Vec<_> = tokens
        .filter_map(|(token, deleted)| Some((deleted?, token.number)))
        .collect();
    deleted.sort_unstable();
    let surplus = deleted.len().saturating_sub(MAX_DELETED_TOKENS);
    for (_, number) in &deleted[..surplus] {
        rows.remove_token(account, *number).await?;
    }
    Ok(())
}

/// Ends the least recently used sessions of an account, so that it can have one more.
async fn make_room<T: Transaction>(
    rows: &mut T,
    account: AccountId,
    new: &CodeHash,
) -> Result<(), T::Error> {
    let sessions = rows.sessions(account).await?.into_iter();
    let mut others: Vec<_> = sessions
        .filter(|(cookie, _)| cookie != new)
        .map(|(cookie, session)| (session.times.used, cookie))
        .collect();
    others.sort_unstable();
    others.truncate((others.len() + 1).saturating_sub(MAX_SESSIONS));
    let ended: Vec<_> = others.into_iter().map(|(_, cookie)| cookie).collect();
    rows.remove_sessions(&ended).await.map(drop)
}

/// Ends the sessions of an account for whose cookie's hash `ends` is true. Returns their number.
async fn end_sessions<T: Transaction>(
    rows: &mut T,
    account: AccountId,
    ends: impl Fn(&CodeHash) -> bool,
) -> Result<u64, T::Error> {
    let sessions = rows.sessions(account).await?.into_iter();
    let ended = sessions.map(|(cookie, _)| cookie).filter(ends);
    let ended: Vec<_> = ended.collect();
    rows.remove_sessions(&ended).await
}

/// Removes some of the sessions that have ended, and returns their number.
async fn sweep<T: Transaction>(rows: &mut T, now: u64) -> Result<u64, T::Error> {
    let ended = rows.ended_sessions(now).await?;
    rows.remove_sessions(&ended).await
}
