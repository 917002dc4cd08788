//! The arguments of `towebp account`.

use crate::cli::shared::default_data;
use crate::store::Settings;
use argh::{ArgsInfo, FromArgs};
use std::path::PathBuf;

/// Make and look after accounts, beside a running server too.
#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand, name = "account", help_triggers("-h", "--help", "help"))]
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
    Password(SetPassword),
    Delete(Delete),
}

/// Defines the arguments of an action, and adds the options that all actions have.
macro_rules! action {
    ($(#[$($doc:tt)*])+ $type:ident = $name:tt { $($fields:tt)* }) => {
        $(#[$($doc)*])+
        #[derive(Debug, FromArgs, ArgsInfo)]
        #[argh(subcommand, name = $name, help_triggers("-h", "--help", "help"))]
        pub(super) struct $type {
            $($fields)*
            /// the data folder (default: towebp-data)
            #[argh(option, default = "default_data()")]
            data: PathBuf,
            /// the server's secret, if it is not the data folder's own
            #[argh(option)]
            secret_file: Option<PathBuf>,
            /// use a data folder that group or others may write
            #[argh(switch)]
            allow_shared_data: bool,
        }

        impl $type {
            pub(super) fn settings(&self) -> Settings {
                Settings {
                    data: self.data.clone(),
                    secret_file: self.secret_file.clone(),
                    allow_shared_data: self.allow_shared_data,
                }
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
        /// write the token into a new file that only its owner may read, instead of standard output
        #[argh(option, short = 'o', arg_name = "file")]
        pub(super) output: Option<PathBuf>,
        /// replace the file of --output if it exists
        #[argh(switch)]
        pub(super) force: bool,
    }
}

action! {
    /// Give an account a new token and print it; the old one is rejected at once.
    Rotate = "rotate" {
        /// its e-mail address
        #[argh(positional)]
        pub(super) email: String,
        /// write the token into a new file that only its owner may read, instead of standard output
        #[argh(option, short = 'o', arg_name = "file")]
        pub(super) output: Option<PathBuf>,
        /// replace the file of --output if it exists
        #[argh(switch)]
        pub(super) force: bool,
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
