//! The arguments of `towebp account`.

use crate::admin::LimitChange;
use crate::cli::settings::AccountFlags;
use crate::cli::shared::whole;
use clap::{Args, Subcommand, ValueHint};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

/// Make and look after accounts, beside a running server too.
#[derive(Debug, Args)]
pub(crate) struct Account {
    #[command(flatten)]
    pub(super) settings: AccountFlags,
    #[command(subcommand)]
    pub(super) action: Action,
}

impl Account {
    pub(super) fn reads_password(&self) -> bool {
        match &self.action {
            Action::Create(create) => create.password_stdin,
            Action::Password(_) => true,
            _ => false,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    Create(Create),
    /// List all accounts: e-mail, creation, conversions, dashboard; separated by tabs.
    List,
    /// Make an invitation and print its code: for one account on the sign-up page, within 14 days.
    Invite,
    Token(Token),
    Rotate(Rotate),
    SetToken(SetToken),
    DeleteToken(DeleteToken),
    /// Show what an account has done, its limits and its tokens; by tabs.
    Usage(Email),
    Limit(Limit),
    /// Refuse all conversions of an account from now on.
    Disable(Email),
    /// Allow the conversions of a disabled account again.
    Enable(Email),
    SetEmail(SetEmail),
    /// Give an account a password, in the place of the one that it has; all its sessions end.
    ///
    /// The password is the first line of standard input, or asked for twice at a terminal.
    Password(Email),
    /// Turn the second factor of an account off, for an owner who has lost it.
    ///
    /// The recovery codes become void with it.
    SecondFactorOff(Email),
    Delete(Delete),
}

#[derive(Debug, Args)]
pub(super) struct Email {
    /// the account's e-mail address
    #[arg(value_name = "EMAIL", value_hint = ValueHint::EmailAddress)]
    pub(super) email: String,
}

/// Where a token is written.
#[derive(Debug, Args)]
pub(super) struct TokenFile {
    /// write the token into a new file that only its owner may read, instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) output: Option<PathBuf>,

    /// replace the file of --output if it exists
    #[arg(long)]
    pub(super) force: bool,
}

/// Make an account and print its token.
#[derive(Debug, Args)]
pub(super) struct Create {
    #[command(flatten)]
    pub(super) account: Email,

    /// read a password from the first line of standard input; without one the account has no
    /// dashboard
    #[arg(long)]
    pub(super) password_stdin: bool,

    #[command(flatten)]
    pub(super) file: TokenFile,
}

/// Print an account's token.
#[derive(Debug, Args)]
pub(super) struct Token {
    #[command(flatten)]
    pub(super) account: Email,

    /// the token's name (default: default)
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,

    #[command(flatten)]
    pub(super) file: TokenFile,
}

/// Replace an account's token and print the new one.
///
/// The old one is refused at once, or after --overlap.
#[derive(Debug, Args)]
pub(super) struct Rotate {
    #[command(flatten)]
    pub(super) token: Token,

    /// hours for which the old one goes on working, 0 to 72 (default: 0)
    #[arg(long, value_name = "HOURS", value_parser = overlap, default_value = "0", hide_default_value = true)]
    pub(super) overlap: u32,
}

/// Make a token of this name for an account, or replace what is set for it, and print it.
#[derive(Debug, Args)]
pub(super) struct SetToken {
    #[command(flatten)]
    pub(super) account: Email,

    /// the token's name, 1 to 40 characters
    #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
    pub(super) name: String,

    /// its last day (UTC), such as 2026-12-31 (default: it does not end)
    #[arg(long, value_name = "DAY")]
    pub(super) ends: Option<String>,

    /// its conversions a minute (default: no limit of its own)
    #[arg(long, value_name = "NUMBER", value_parser = per_minute)]
    pub(super) rate: Option<NonZeroU32>,

    /// its conversions a calendar month, UTC (default: no limit of its own)
    #[arg(long, value_name = "NUMBER", value_parser = per_month)]
    pub(super) monthly: Option<NonZeroU64>,

    /// a parameter that its requests need not give, such as quality=80, or !quality=80 that they
    /// may not give; repeatable
    #[arg(long, value_name = "PARAMETER=VALUE")]
    pub(super) preset: Vec<String>,
}

/// Delete a token of an account; it is refused at once.
#[derive(Debug, Args)]
pub(super) struct DeleteToken {
    #[command(flatten)]
    pub(super) account: Email,

    /// the token's name
    #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
    pub(super) name: String,
}

/// Limit the conversions of one account, whatever the server's limits are.
#[derive(Debug, Args)]
pub(super) struct Limit {
    #[command(flatten)]
    pub(super) account: Email,

    /// conversions a minute: a number, 0 for any number, or server for the server's own limit
    #[arg(long, value_name = "NUMBER|server", value_parser = limit_change)]
    pub(super) rate: Option<LimitChange>,

    /// conversions a calendar month, likewise
    #[arg(long, value_name = "NUMBER|server", value_parser = limit_change)]
    pub(super) monthly: Option<LimitChange>,
}

/// Give an account another e-mail address; its tokens, sessions and history stay.
#[derive(Debug, Args)]
pub(super) struct SetEmail {
    #[command(flatten)]
    pub(super) account: Email,

    /// the new one
    #[arg(value_name = "NEW", value_hint = ValueHint::EmailAddress)]
    pub(super) new: String,
}

/// Delete an account with its sessions and history.
#[derive(Debug, Args)]
pub(super) struct Delete {
    #[command(flatten)]
    pub(super) account: Email,

    /// really delete it
    #[arg(long)]
    pub(super) yes: bool,
}

fn overlap(text: &str) -> Result<u32, String> {
    whole(text, 0, 72)
}

fn per_minute(text: &str) -> Result<NonZeroU32, String> {
    let most = NonZeroU32::MAX.get();
    whole(text, 1, most).map(|number| NonZeroU32::new(number).expect("at least 1"))
}

fn per_month(text: &str) -> Result<NonZeroU64, String> {
    whole(text, 1, u64::MAX).map(|number| NonZeroU64::new(number).expect("at least 1"))
}

fn limit_change(text: &str) -> Result<LimitChange, String> {
    if text == "server" {
        return Ok(LimitChange::Server);
    }
    let number = text.parse().map(LimitChange::Set);
    number.map_err(|_| "expected a whole number, 0 for any number, or server".to_owned())
}
