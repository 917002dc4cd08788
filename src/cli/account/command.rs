//! The arguments of `towebp account`.

use crate::admin::LimitChange;
use crate::cli::failure::Failure;
use crate::cli::shared::default_data;
use crate::cli::store_flags::with_store_flags;
use crate::store::Settings;
use argh::{ArgsInfo, FromArgs};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

/// Make and look after accounts, beside a running server too.
#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand, name = "account", help_triggers("-h", "--help"))]
pub struct AccountCommand {
    #[argh(subcommand)]
    pub(super) action: Action,
}

impl AccountCommand {
    pub(super) fn reads_password(&self) -> bool {
        match &self.action {
            Action::Create(create) => create.password_stdin,
            Action::Password(_) => true,
            _ => false,
        }
    }
}

#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand)]
pub(super) enum Action {
    Create(Create),
    List(List),
    Invite(Invite),
    Token(Token),
    Rotate(Rotate),
    SetToken(SetToken),
    DeleteToken(DeleteToken),
    Usage(Usage),
    Limit(Limit),
    Disable(Disable),
    Enable(Enable),
    SetEmail(SetEmail),
    Password(SetPassword),
    Delete(Delete),
}

/// Defines the arguments of an action, and adds the options that all actions have.
macro_rules! action {
    ($(#[$($doc:tt)*])+ $type:ident = $name:tt { $($fields:tt)* }) => {
        with_store_flags! {
            $(#[$($doc)*])+
            #[derive(Debug, FromArgs, ArgsInfo)]
            #[argh(subcommand, name = $name, help_triggers("-h", "--help"))]
            pub(super) struct $type {
                $($fields)*
                /// the data folder (default: towebp-data)
                #[argh(option, arg_name = "folder", default = "default_data()")]
                data: PathBuf,
                /// the server's secret, if it is not the data folder's own
                #[argh(option, arg_name = "file")]
                secret_file: Option<PathBuf>,
                /// use a data folder that group or others may write
                #[argh(switch)]
                allow_shared_data: bool,
                #[argh(
                    option,
                    arg_name = "url",
                    description = "the database that several servers share, such as postgres://towebp@db1,db2/towebp \
                                   (default: none, the data folder has all)"
                )]
                store: Option<String>,
            }
        }

        impl $type {
            /// # Errors
            /// A sentence for standard error: a flag is wrong.
            pub(super) fn settings(&self) -> Result<Settings, Failure> {
                let postgres = self.flags_of(self.store.as_deref()).settings();
                Ok(Settings {
                    data: self.data.clone(),
                    secret_file: self.secret_file.clone(),
                    allow_shared_data: self.allow_shared_data,
                    history_keep: None,
                    postgres: postgres.map_err(Failure::Usage)?,
                })
            }
        }
    };
}

action! {
    /// Make an account and print its token.
    Create = "create" {
        /// its e-mail address
        #[argh(positional)]
        pub(super) email: String,
        /// read a password from the first line of standard input; without one the account has no
        /// dashboard
        #[argh(switch)]
        pub(super) password_stdin: bool,
        /// write the token into a new file that only its owner may read, instead of standard output
        #[argh(option, short = 'o', arg_name = "file")]
        pub(super) output: Option<PathBuf>,
        /// replace the file of --output if it exists
        #[argh(switch)]
        pub(super) force: bool,
    }
}

action! {
    /// List all accounts: e-mail, creation, conversions, dashboard; separated by tabs.
    List = "list" {}
}

action! {
    /// Make an invitation and print its code: for one account on the sign-up page, within 14 days.
    Invite = "invite" {}
}

action! {
    /// Print an account's token.
    Token = "token" {
        /// its e-mail address
        #[argh(positional)]
        pub(super) email: String,
        /// the token's name (default: default)
        #[argh(option)]
        pub(super) name: Option<String>,
        /// write the token into a new file that only its owner may read, instead of standard output
        #[argh(option, short = 'o', arg_name = "file")]
        pub(super) output: Option<PathBuf>,
        /// replace the file of --output if it exists
        #[argh(switch)]
        pub(super) force: bool,
    }
}

action! {
    /// Replace an account's token and print the new one; the old one is refused at once, or after
    /// --overlap.
    Rotate = "rotate" {
        /// its e-mail address
        #[argh(positional)]
        pub(super) email: String,
        /// the token's name (default: default)
        #[argh(option)]
        pub(super) name: Option<String>,
        /// hours for which the old one goes on working, 0 to 72 (default: 0)
        #[argh(option, arg_name = "hours", default = "0")]
        pub(super) overlap: u32,
        /// write the token into a new file that only its owner may read, instead of standard output
        #[argh(option, short = 'o', arg_name = "file")]
        pub(super) output: Option<PathBuf>,
        /// replace the file of --output if it exists
        #[argh(switch)]
        pub(super) force: bool,
    }
}

action! {
    /// Make a token of this name for an account, or replace what is set for it, and print it.
    SetToken = "set-token" {
        /// the account's e-mail address
        #[argh(positional)]
        pub(super) email: String,
        /// the token's name, 1 to 40 characters
        #[argh(positional)]
        pub(super) name: String,
        /// its last day (UTC), such as 2026-12-31 (default: it does not end)
        #[argh(option, arg_name = "day")]
        pub(super) ends: Option<String>,
        /// its conversions a minute (default: no limit of its own)
        #[argh(option, arg_name = "number")]
        pub(super) rate: Option<NonZeroU32>,
        /// its conversions a calendar month, UTC (default: no limit of its own)
        #[argh(option, arg_name = "number")]
        pub(super) monthly: Option<NonZeroU64>,
        /// a parameter that its requests need not give, such as quality=80, or !quality=80 that
        /// they may not give; repeatable
        #[argh(option, arg_name = "parameter=value")]
        pub(super) preset: Vec<String>,
    }
}

action! {
    /// Delete a token of an account; it is refused at once.
    DeleteToken = "delete-token" {
        /// the account's e-mail address
        #[argh(positional)]
        pub(super) email: String,
        /// the token's name
        #[argh(positional)]
        pub(super) name: String,
    }
}

action! {
    /// Show what an account has done, its limits and its tokens; by tabs.
    Usage = "usage" {
        /// its e-mail address
        #[argh(positional)]
        pub(super) email: String,
    }
}

action! {
    /// Limit the conversions of one account, whatever the server's limits are.
    Limit = "limit" {
        /// its e-mail address
        #[argh(positional)]
        pub(super) email: String,
        /// conversions a minute: a number, 0 for any number, or server for the server's own limit
        #[argh(
            option,
            arg_name = "number|server",
            from_str_fn(limit_change),
            default = "LimitChange::Keep"
        )]
        pub(super) rate: LimitChange,
        /// conversions a calendar month, likewise
        #[argh(
            option,
            arg_name = "number|server",
            from_str_fn(limit_change),
            default = "LimitChange::Keep"
        )]
        pub(super) monthly: LimitChange,
    }
}

action! {
    /// Refuse all conversions of an account from now on.
    Disable = "disable" {
        /// its e-mail address
        #[argh(positional)]
        pub(super) email: String,
    }
}

action! {
    /// Allow the conversions of a disabled account again.
    Enable = "enable" {
        /// its e-mail address
        #[argh(positional)]
        pub(super) email: String,
    }
}

action! {
    /// Give an account another e-mail address; its tokens, sessions and history stay.
    SetEmail = "set-email" {
        /// its e-mail address
        #[argh(positional)]
        pub(super) email: String,
        /// the new one
        #[argh(positional)]
        pub(super) new: String,
    }
}

action! {
    /// Give an account a password, in the place of the one that it has; all its sessions end. The
    /// password is the first line of standard input, or asked for twice at a terminal.
    SetPassword = "password" {
        /// its e-mail address
        #[argh(positional)]
        pub(super) email: String,
    }
}

action! {
    /// Delete an account with its sessions and history.
    Delete = "delete" {
        /// its e-mail address
        #[argh(positional)]
        pub(super) email: String,
        /// really delete it
        #[argh(switch)]
        pub(super) yes: bool,
    }
}

fn limit_change(text: &str) -> Result<LimitChange, String> {
    if text == "server" {
        return Ok(LimitChange::Server);
    }
    let number = text.parse().map(LimitChange::Set);
    number.map_err(|_| {
        format!("{text:?} was given; allowed is a whole number, 0 for any number, or server")
    })
}
