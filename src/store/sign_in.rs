//! Signing in, and changes of an account: by its owner with the present password, or by the
//! operator.

use std::time::Instant;

use super::Store;
use super::account::Account;
use super::engine::{AccountChange, Command, Outcome};
use super::error::{OwnerError, Result, SignInError, StoreError};
use super::rows::AccountRow;
use crate::auth::{self, AccountId, Code, CodeHash, Email, Origin, Password, Ticket, Wait};

/// The outcome of a right password.
#[derive(Debug)]
pub enum SignIn {
    /// The account is signed in.
    Done(Account),
    /// It has a second factor: [`Store::sign_in_by_code`] takes this ticket.
    NeedsCode {
        /// The ticket.
        ticket: String,
    },
}

impl Store {
    /// Signs in with this e-mail address and this password.
    ///
    /// After five failures in a row, an address has to wait, longer each time and up to 15 minutes,
    /// whether there is such an account or not. Meanwhile even the right password is not accepted.
    /// A browser with a valid device cookie of the account ([`Store::device_cookie`]) has its own
    /// count of failures; all other browsers share one.
    ///
    /// # Errors
    /// The e-mail address or the password is wrong, there were too many attempts, or the store
    /// failed.
    pub fn sign_in_from(
        &self,
        device_cookie: Option<&str>,
        email: &str,
        password: &str,
    ) -> Result<SignIn, SignInError> {
        // No account can have such an address, so a quick answer reveals nothing.
        let email = Email::parse(email).map_err(|_| SignInError::Wrong)?;
        let account = self.read(|engine| engine.account_by_email(&email))?;
        let origin = self.origin(device_cookie, account.as_ref());
        self.begin_attempt(&email, origin)??;
        let hash = account.as_ref().and_then(|it| it.password.as_deref());
        if !self.is_right(password, hash)? {
            return Err(SignInError::Wrong);
        }
        let account = account.ok_or(SignInError::Wrong)?;
        if account.second_factor.is_some() {
            // The attempt counts on until the code is given: a thief who has the password must not
            // clear the count of wrong codes by it.
            let hash = account.password.as_deref().unwrap_or_default();
            let ticket = Ticket::issue(&self.secret, account.id, hash, self.clock.now());
            return Ok(SignIn::NeedsCode { ticket });
        }
        self.forget_attempts(&email, origin)?;
        Ok(SignIn::Done(account.into()))
    }

    /// Where an attempt comes from: a known browser, if the device cookie is one of the account's.
    pub(super) fn origin(
        &self,
        device_cookie: Option<&str>,
        account: Option<&AccountRow>,
    ) -> Origin {
        let device = device_cookie.zip(account).and_then(|(cookie, account)| {
            let hash = account.password.as_deref()?;
            auth::verify_device_cookie(cookie, &self.secret, account.id, hash)
        });
        device.map_or(Origin::Unknown, Origin::Device)
    }

    /// The value of a device cookie for a browser that has just signed in to the account: 43
    /// letters and digits, valid until the password changes. `None` if there is no such account, or
    /// if it has no password.
    pub fn device_cookie(&self, id: AccountId) -> Result<Option<String>> {
        let account = self.read(|engine| engine.account(id))?;
        let hash = account.and_then(|account| account.password);
        let cookie = hash.map(|hash| auth::issue_device_cookie(&self.secret, id, &hash));
        Ok(cookie.transpose()?)
    }

    /// Replaces the password of the account that is signed in by this session cookie, and ends all
    /// its other sessions. Wrong passwords are slowed down as at sign-in; the session has its own
    /// count.
    ///
    /// # Errors
    /// See [`OwnerError`].
    pub fn change_password(
        &self,
        cookie: &str,
        present: &str,
        new: &str,
    ) -> Result<Account, OwnerError> {
        let new = Password::parse(new).map_err(OwnerError::NewPassword)?;
        let (account, session) = self.verify_owner(cookie, present)?;
        let change = AccountChange::Password {
            hash: self.hash(&new)?,
            kept_session: Some(session),
        };
        self.change_own(account, change)
    }

    /// Gives the account a password, whether it had one or not, and ends all its sessions. It is
    /// meant for the operator, who has to verify the owner's request by other means. The wait after
    /// wrong passwords ends for unknown browsers.
    ///
    /// # Errors
    /// [`OwnerError::NewPassword`], [`OwnerError::NoAccount`], or the store failed.
    pub fn set_password(&self, id: AccountId, password: &str) -> Result<Account, OwnerError> {
        let password = Password::parse(password).map_err(OwnerError::NewPassword)?;
        let change = AccountChange::Password {
            hash: self.hash(&password)?,
            kept_session: None,
        };
        let account = self.change_account(id, change, None)?;
        let account = account.ok_or(OwnerError::NoAccount)?;
        if let Ok(email) = Email::parse(&account.email) {
            self.forget_attempts(&email, Origin::Unknown)?;
        }
        Ok(account)
    }

    /// Replaces the e-mail address of the account that is signed in by this session cookie. The
    /// password stays the same, so all sessions, tokens and device cookies stay valid. Wrong
    /// passwords are slowed down as in [`Store::change_password`]. Whether the address is taken is
    /// reported only with the right password.
    ///
    /// # Errors
    /// See [`OwnerError`].
    pub fn change_email(
        &self,
        cookie: &str,
        password: &str,
        new: &str,
    ) -> Result<Account, OwnerError> {
        let email = Email::parse(new).map_err(OwnerError::NewEmail)?;
        let (account, _) = self.verify_owner(cookie, password)?;
        self.change_own(account, AccountChange::Email(email))
    }

    /// Gives the account another e-mail address. It is meant for the operator. Sessions and tokens
    /// stay valid.
    ///
    /// # Errors
    /// [`OwnerError::NewEmail`], [`OwnerError::EmailTaken`], [`OwnerError::NoAccount`], or the
    /// store failed.
    pub fn set_email(&self, id: AccountId, email: &str) -> Result<Account, OwnerError> {
        let email = Email::parse(email).map_err(OwnerError::NewEmail)?;
        self.change_account(id, AccountChange::Email(email), None)?
            .ok_or(OwnerError::NoAccount)
    }

    /// Changes the account of [`Store::verify_owner`].
    pub(super) fn change_own(
        &self,
        account: AccountRow,
        change: AccountChange,
    ) -> Result<Account, OwnerError> {
        self.change_account(account.id, change, account.password)?
            // Another browser has replaced the password meanwhile, which has ended this session.
            .ok_or(OwnerError::SignedOut)
    }

    /// Changes an account; `None` if there is none, or its password is not the verified one.
    fn change_account(
        &self,
        account: AccountId,
        change: AccountChange,
        verified: Option<String>,
    ) -> Result<Option<Account>, OwnerError> {
        match self.writer.write(Command::ChangeAccount {
            account,
            change,
            verified,
        })? {
            Outcome::EmailTaken => Err(OwnerError::EmailTaken),
            outcome => Ok(outcome.account()),
        }
    }

    /// Deletes the account that is signed in by this session cookie, as [`Store::delete_account`]
    /// does. Wrong passwords are slowed down as in [`Store::change_password`].
    ///
    /// # Errors
    /// See [`OwnerError`].
    pub fn delete_own_account(&self, cookie: &str, password: &str) -> Result<(), OwnerError> {
        let (account, _) = self.verify_owner(cookie, password)?;
        self.delete_account(account.id)?;
        Ok(())
    }

    /// Hashes a password. This takes long: see [`crate::auth::Passwords`].
    pub(super) fn hash(&self, password: &Password) -> Result<String> {
        Ok(self.passwords.hash(password)?)
    }

    /// Whether the hash is that of the password; no password is right without one, and takes as
    /// long.
    fn is_right(&self, password: &str, hash: Option<&str>) -> Result<bool> {
        Ok(self.passwords.verify(password, hash)?)
    }

    /// The account that is signed in by this cookie and has this password, and the cookie's hash.
    pub(super) fn verify_owner(
        &self,
        cookie: &str,
        password: &str,
    ) -> Result<(AccountRow, CodeHash), OwnerError> {
        let session = Code::parse(cookie).ok_or(OwnerError::SignedOut)?.hash();
        let now = self.clock.now();
        let account = self
            .read(|engine| engine.session(&session))?
            .filter(|found| !found.times.is_over(now))
            .ok_or(OwnerError::SignedOut)?
            .account;
        // An address that is stored was parsed before, so this cannot fail unless the file is
        // damaged.
        let email = Email::parse(&account.email).map_err(StoreError::Failed)?;
        let origin = Origin::Session(session);
        self.begin_attempt(&email, origin)??;
        let hash = account.password.as_deref();
        if !self.is_right(password, hash)? {
            return Err(OwnerError::Wrong);
        }
        self.forget_attempts(&email, origin)?;
        Ok((account, session))
    }

    /// Begins an attempt with a password, which counts as failed until [`Store::forget_attempts`].
    pub(super) fn begin_attempt(&self, email: &Email, origin: Origin) -> Result<Result<(), Wait>> {
        if self.is_shared {
            let key = auth::attempt_key(&self.secret, email, origin);
            let now = self.clock.now();
            if let Some(begun) = self.read(|engine| engine.begin_attempt(&key, now))? {
                return Ok(begun);
            }
        }
        Ok(self.throttle.begin(email, origin, Instant::now()))
    }

    pub(super) fn forget_attempts(&self, email: &Email, origin: Origin) -> Result<()> {
        if self.is_shared {
            let key = auth::attempt_key(&self.secret, email, origin);
            self.read(|engine| engine.forget_attempts(&key))?;
        }
        self.throttle.forget(email, origin);
        Ok(())
    }
}
