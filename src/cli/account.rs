//! `towebp account`: accounts for machines without a browser, beside a running server too.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use argh::{ArgsInfo, FromArgs};

use crate::admin::Session;
use crate::store::{self, Settings};

/// Make and look after accounts, beside a running server too.
#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand, name = "account", help_triggers("-h", "--help", "help"))]
pub struct AccountCommand {
    #[argh(subcommand)]
    action: Action,
}

/// Carries it out. A token goes to standard output alone, so that a script can take it from there.
///
/// # Errors
/// A sentence for standard error; the process should end with status 1.
pub fn run(command: AccountCommand) -> Result<(), String> {
    run_with(
        command,
        &mut io::stdin().lock(),
        &mut io::stdout().lock(),
        &mut io::stderr().lock(),
    )
}

#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand)]
enum Action {
    Create(Create),
    List(List),
    Invite(Invite),
    Token(Token),
    Rotate(Rotate),
    Delete(Delete),
}

/// Make an account and print its token.
#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand, name = "create", help_triggers("-h", "--help", "help"))]
struct Create {
    /// its e-mail address
    #[argh(positional)]
    email: String,
    /// read a password from the first line of standard input; without one the account has no dashboard
    #[argh(switch)]
    password_stdin: bool,
    /// the data folder (default: towebp-data)
    #[argh(option, default = "super::default_data()")]
    data: PathBuf,
    /// the server's secret, if it is not the data folder's own
    #[argh(option)]
    secret_file: Option<PathBuf>,
}

/// List all accounts: e-mail, creation, conversions, dashboard; separated by tabs.
#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand, name = "list", help_triggers("-h", "--help", "help"))]
struct List {
    /// the data folder (default: towebp-data)
    #[argh(option, default = "super::default_data()")]
    data: PathBuf,
    /// the server's secret, if it is not the data folder's own
    #[argh(option)]
    secret_file: Option<PathBuf>,
}

/// Make an invitation and print its code: for one account on the sign-up page, within 14 days.
#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand, name = "invite", help_triggers("-h", "--help", "help"))]
struct Invite {
    /// the data folder (default: towebp-data)
    #[argh(option, default = "super::default_data()")]
    data: PathBuf,
    /// the server's secret, if it is not the data folder's own
    #[argh(option)]
    secret_file: Option<PathBuf>,
}

/// Print an account's token.
#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand, name = "token", help_triggers("-h", "--help", "help"))]
struct Token {
    /// its e-mail address
    #[argh(positional)]
    email: String,
    /// the data folder (default: towebp-data)
    #[argh(option, default = "super::default_data()")]
    data: PathBuf,
    /// the server's secret, if it is not the data folder's own
    #[argh(option)]
    secret_file: Option<PathBuf>,
}

/// Give an account a new token and print it; the old one is refused at once.
#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand, name = "rotate", help_triggers("-h", "--help", "help"))]
struct Rotate {
    /// its e-mail address
    #[argh(positional)]
    email: String,
    /// the data folder (default: towebp-data)
    #[argh(option, default = "super::default_data()")]
    data: PathBuf,
    /// the server's secret, if it is not the data folder's own
    #[argh(option)]
    secret_file: Option<PathBuf>,
}

/// Delete an account with its sessions and history.
#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand, name = "delete", help_triggers("-h", "--help", "help"))]
struct Delete {
    /// its e-mail address
    #[argh(positional)]
    email: String,
    /// really delete it
    #[argh(switch)]
    yes: bool,
    /// the data folder (default: towebp-data)
    #[argh(option, default = "super::default_data()")]
    data: PathBuf,
    /// the server's secret, if it is not the data folder's own
    #[argh(option)]
    secret_file: Option<PathBuf>,
}

fn run_with(
    command: AccountCommand,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), String> {
    match command.action {
        Action::Create(Create {
            email,
            password_stdin,
            data,
            secret_file,
        }) => {
            let password = if password_stdin {
                Some(read_password(input)?)
            } else {
                None
            };
            let token = open(data, secret_file, notes)?.create(&email, password.as_deref())?;
            print(output, &token)
        }
        Action::List(List { data, secret_file }) => open_existing(data, secret_file, notes)?
            .list()?
            .iter()
            .try_for_each(|account| {
                let created = humantime::format_rfc3339_seconds(account.created());
                let dashboard = if account.has_password {
                    "dashboard"
                } else {
                    "no dashboard"
                };
                print(
                    output,
                    &format!(
                        "{}\t{created}\t{}\t{dashboard}",
                        account.email, account.conversions
                    ),
                )
            }),
        Action::Invite(Invite { data, secret_file }) => {
            print(output, &open_existing(data, secret_file, notes)?.invite()?)
        }
        Action::Token(Token {
            email,
            data,
            secret_file,
        }) => print(
            output,
            &open_existing(data, secret_file, notes)?.token(&email)?,
        ),
        Action::Rotate(Rotate {
            email,
            data,
            secret_file,
        }) => print(
            output,
            &open_existing(data, secret_file, notes)?.rotate(&email)?,
        ),
        Action::Delete(Delete {
            email, yes: false, ..
        }) => Err(format!(
            "deleting {email} deletes its usage history too, for good: say --yes to do it"
        )),
        Action::Delete(Delete {
            email,
            yes: true,
            data,
            secret_file,
        }) => {
            open_existing(data, secret_file, notes)?.delete(&email)?;
            note(notes, &format!("the account {email} is deleted"));
            Ok(())
        }
    }
}

fn open(
    data: PathBuf,
    secret_file: Option<PathBuf>,
    notes: &mut dyn Write,
) -> Result<Session, String> {
    let own_secret = secret_file.is_none();
    let session = Session::open(&Settings { data, secret_file })?;
    if session.is_through_server() && !own_secret {
        note(
            notes,
            "a server runs on this data folder: its own secret is used, not --secret-file",
        );
    }
    Ok(session)
}

/// As [`open`], but a mistyped `--data` does not make a new folder, in which nothing could be found.
fn open_existing(
    data: PathBuf,
    secret_file: Option<PathBuf>,
    notes: &mut dyn Write,
) -> Result<Session, String> {
    super::must_exist(&store::database_path(&data), &data)?;
    open(data, secret_file, notes)
}

fn read_password(input: &mut dyn BufRead) -> Result<String, String> {
    let mut line = String::new();
    input
        .read_line(&mut line)
        .map_err(|error| format!("the password cannot be read from standard input: {error}"))?;
    let line = line.strip_suffix('\n').unwrap_or(&line);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

fn print(output: &mut dyn Write, line: &str) -> Result<(), String> {
    writeln!(output, "{line}")
        .map_err(|error| format!("standard output cannot be written: {error}"))
}

fn note(notes: &mut dyn Write, line: &str) {
    // What was asked for is done; a closed standard error does not undo it.
    let _ = writeln!(notes, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin;
    use crate::store::tests::Folder;
    use std::sync::Arc;

    #[test]
    fn an_accounts_life_without_a_server() {
        let folder = Folder::new();
        live(&folder);
    }

    #[test]
    fn an_accounts_life_beside_a_server() {
        let folder = Folder::new();
        let store = Arc::new(folder.store());
        let _socket = admin::serve(Arc::clone(&store), &folder.settings().data).unwrap();
        live(&folder);

        let token = account(
            &folder,
            &["create", "owner@example.org", "--password-stdin"],
            "correct horse\r\n",
        );
        let token = token.unwrap().output;
        assert_eq!(
            store.authenticate(token.trim_end()).unwrap().email,
            "owner@example.org"
        );
        assert!(
            store.sign_in("owner@example.org", "correct horse").is_ok(),
            "the line's end is no part of it"
        );
        let said = account(&folder, &["list", "--secret-file", "elsewhere"], "").unwrap();
        assert!(said.notes.contains("--secret-file"), "{}", said.notes);
        assert!(said.output.ends_with("\t0\tdashboard\n"), "{}", said.output);
    }

    #[test]
    fn a_mistyped_folder_is_not_made() {
        let folder = Folder::new();
        for args in [
            &["list"][..],
            &["token", "a@example.org"],
            &["rotate", "a@example.org"],
        ] {
            let error = account(&folder, args, "").unwrap_err();
            assert!(error.starts_with("there are no accounts in "), "{error}");
        }
        assert!(!folder.settings().data.exists());
    }

    fn live(folder: &Folder) {
        let created = account(folder, &["create", "machine@example.org"], "").unwrap();
        assert!(
            created.output.starts_with("twp_") && created.output.lines().count() == 1,
            "{}",
            created.output
        );
        assert_eq!(created.notes, "");
        let shown = account(folder, &["token", "Machine@example.org"], "").unwrap();
        assert_eq!(shown.output, created.output);
        let rotated = account(folder, &["rotate", "machine@example.org"], "").unwrap();
        assert_ne!(rotated.output, created.output);
        let listed = account(folder, &["list"], "").unwrap().output;
        assert!(
            listed.starts_with("machine@example.org\t2") && listed.ends_with("\t0\tno dashboard\n"),
            "{listed}"
        );

        let invites = [(); 2].map(|()| account(folder, &["invite"], "").unwrap().output);
        assert!(
            invites[0].len() == 44 && invites[0] != invites[1],
            "{invites:?}"
        );

        let error = account(folder, &["create", "machine@example.org"], "").unwrap_err();
        assert_eq!(error, "there is an account machine@example.org already");
        let error = account(folder, &["delete", "machine@example.org"], "").unwrap_err();
        assert!(error.contains("--yes"), "{error}");
        account(folder, &["delete", "machine@example.org", "--yes"], "").unwrap();
        let error = account(folder, &["token", "machine@example.org"], "").unwrap_err();
        assert_eq!(error, "there is no account machine@example.org");
    }

    #[derive(Debug)]
    struct Said {
        output: String,
        notes: String,
    }

    fn account(folder: &Folder, args: &[&str], input: &str) -> Result<Said, String> {
        let data = folder.settings().data;
        let args = [args, &["--data", data.to_str().unwrap()]].concat();
        let command = AccountCommand::from_args(&["account"], &args)
            .unwrap_or_else(|exit| panic!("{}", exit.output));
        let (mut output, mut notes) = (Vec::new(), Vec::new());
        run_with(command, &mut input.as_bytes(), &mut output, &mut notes)?;
        Ok(Said {
            output: String::from_utf8(output).unwrap(),
            notes: String::from_utf8(notes).unwrap(),
        })
    }
}
