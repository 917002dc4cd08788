//! The second factor of an account: turned on and off, and given at sign-in.

use super::Store;
use super::account::Account;
use super::engine::{AccountChange, Command};
use super::error::{OwnerError, Result, SignInError, StoreError};
use super::rows::AccountRow;
use crate::auth::{AccountId, Email, Nonce, Password, Proof, SecondFactor, Ticket, TotpKey};

/// A second factor that an owner may turn on.
pub struct NewSecondFactor {
    /// The text that comes back with the first code.
    pub nonce: String,
    /// The key for an authenticator app, in base 32.
    pub key: String,
}

impl Store {
    /// A second factor for this account, with the nonce of a form that was sent, or with a new one.
    /// Nothing is stored yet.
    pub fn new_second_factor(&self, id: AccountId, nonce: &str) -> Result<NewSecondFactor> {
        let nonce = Nonce::parse(nonce).map_or_else(Nonce::random, Ok)?;
        Ok(NewSecondFactor {
            nonce: nonce.to_text(),
            key: TotpKey::new(&self.secret, id, nonce).base_32(),
        })
    }

    /// Turns the second factor on for the account that is signed in by this session cookie, and
    /// returns its recovery codes, which are shown once. Wrong passwords are slowed down as in
    /// [`Store::change_password`].
    ///
    /// # Errors
    /// [`OwnerError::WrongCode`] if the code does not belong to the nonce, or see [`OwnerError`].
    pub fn turn_on_second_factor(
        &self,
        cookie: &str,
        password: &str,
        nonce: &str,
        code: &str,
    ) -> Result<Vec<String>, OwnerError> {
        let (account, _) = self.verify_owner(cookie, password)?;
        let nonce = Nonce::parse(nonce).ok_or(OwnerError::WrongCode)?;
        let key = TotpKey::new(&self.secret, account.id, nonce);
        let period = key.period(code, self.clock.now());
        let made = SecondFactor::new(nonce, period.ok_or(OwnerError::WrongCode)?);
        let (factor, codes) = made.map_err(StoreError::from)?;
        self.change_own(account, AccountChange::SecondFactor(Some(factor)))?;
        Ok(codes)
    }

    /// Turns the second factor and the recovery codes off, for the account that is signed in by
    /// this session cookie.
    ///
    /// # Errors
    /// See [`OwnerError`].
    pub fn turn_off_second_factor(&self, cookie: &str, password: &str) -> Result<(), OwnerError> {
        let (account, _) = self.verify_owner(cookie, password)?;
        self.change_own(account, AccountChange::SecondFactor(None))
            .map(drop)
    }

    /// Turns the second factor of an account off. It is meant for the operator, who has to verify
    /// the owner's request by other means. Returns false if there is no such account.
    pub fn remove_second_factor(&self, id: AccountId) -> Result<bool> {
        let removed = self.writer.write(Command::ChangeAccount {
            account: id,
            change: AccountChange::SecondFactor(None),
            verified: None,
        })?;
        Ok(removed.changed())
    }

    /// How many recovery codes the account has left; `None` if it has no second factor.
    pub fn recovery_codes(&self, id: AccountId) -> Result<Option<usize>> {
        let account = self.read(|engine| engine.account(id))?;
        let factor = account.map(|account| factor(&account)).transpose()?;
        Ok(factor.flatten().map(|factor| factor.recovery_codes()))
    }

    /// The account of a ticket of [`Store::sign_in_from`], if the code is one of its second factor.
    /// Wrong codes count with wrong passwords.
    ///
    /// # Errors
    /// [`SignInError::Ended`] if the ticket is void, or see [`SignInError`].
    pub fn sign_in_by_code(
        &self,
        device_cookie: Option<&str>,
        ticket: &str,
        code: &str,
    ) -> Result<Account, SignInError> {
        let ticket = Ticket::parse(ticket).ok_or(SignInError::Ended)?;
        let account = self.read(|engine| engine.account(ticket.account))?;
        let account = account.ok_or(SignInError::Ended)?;
        let hash = account.password.as_deref().unwrap_or_default();
        let now = self.clock.now();
        if !ticket.is_valid(&self.secret, hash, now) {
            return Err(SignInError::Ended);
        }
        // An address that is stored was parsed before.
        let email = Email::parse(&account.email).map_err(StoreError::Failed)?;
        let origin = self.origin(device_cookie, Some(&account));
        self.begin_attempt(&email, origin)??;
        // The second factor may have been turned off meanwhile; whoever signs in again needs none.
        let factor = factor(&account)?.ok_or(SignInError::Ended)?;
        let key = TotpKey::new(&self.secret, account.id, factor.nonce);
        let period = key.period(code, now).map(Proof::Period);
        let proof = period.or_else(|| Proof::recovery(code));
        let account = self.spend(account.id, proof, None)?;
        self.forget_attempts(&email, origin)?;
        Ok(account)
    }

    /// Replaces a forgotten password by means of a recovery code, and ends all sessions. Wrong
    /// codes, and addresses without an account or without recovery codes, count as wrong passwords.
    ///
    /// # Errors
    /// [`SignInError::NewPassword`], or see [`SignInError`].
    pub fn reset_password(
        &self,
        device_cookie: Option<&str>,
        email: &str,
        code: &str,
        new: &str,
    ) -> Result<(), SignInError> {
        let new = Password::parse(new).map_err(SignInError::NewPassword)?;
        let email = Email::parse(email).map_err(|_| SignInError::Wrong)?;
        let account = self.read(|engine| engine.account_by_email(&email))?;
        let origin = self.origin(device_cookie, account.as_ref());
        self.begin_attempt(&email, origin)??;
        // The hash is computed whether the code is right or not, so that the time does not depend
        // on whether there is such an account.
        let hash = self.hash(&new)?;
        let account = account.ok_or(SignInError::Wrong)?;
        self.spend(account.id, Proof::recovery(code), Some(hash))?;
        self.forget_attempts(&email, origin)?;
        Ok(())
    }

    fn spend(
        &self,
        account: AccountId,
        proof: Option<Proof>,
        password_hash: Option<String>,
    ) -> Result<Account, SignInError> {
        let spent = self.writer.write(Command::ChangeAccount {
            account,
            change: AccountChange::SpendCode {
                proof: proof.ok_or(SignInError::Wrong)?,
                password_hash,
            },
            verified: None,
        })?;
        spent.account().ok_or(SignInError::Wrong)
    }
}

/// The account's second factor, if it is on.
fn factor(account: &AccountRow) -> Result<Option<SecondFactor>> {
    let Some(text) = &account.second_factor else {
        return Ok(None);
    };
    let damaged =
        || StoreError::Failed(format!("the second factor of {} is damaged", account.id.0));
    SecondFactor::parse(text).map(Some).ok_or_else(damaged)
}
