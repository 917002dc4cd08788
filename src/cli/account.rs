//! `towebp account`: accounts for machines without a browser, beside a running server too.

use std::io::{self, BufRead, Cursor, IsTerminal, Write};
use std::path::PathBuf;

use argh::{ArgsInfo, FromArgs};

use super::output::{Late, Output};
use super::terminal;
use crate::admin::AdminClient;
use crate::process::interrupt::Outputs;
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
    let mut input: Box<dyn BufRead> = if command.reads_password() && io::stdin().is_terminal() {
        Box::new(Cursor::new(terminal::ask_for_new_password()?))
    } else {
        Box::new(io::stdin().lock())
    };
    run_with(
        command,
        &mut *input,
        &mut io::stdout().lock(),
        &mut io::stderr().lock(),
    )
}

impl AccountCommand {
    fn reads_password(&self) -> bool {
        match &self.action {
            Action::Create(create) => create.password_stdin,
            Action::Password(_) => true,
            _ => false,
        }
    }
}

#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand)]
enum Action {
    Create(Create),
    List(List),
    Invite(Invite),
    Token(Token),
    Rotate(Rotate),
    Password(SetPassword),
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
    /// write the token into a new file that only its owner may read, instead of standard output
    #[argh(option, short = 'o', arg_name = "file")]
    output: Option<PathBuf>,
    /// replace the file of --output if it exists
    #[argh(switch)]
    force: bool,
    /// the data folder (default: towebp-data)
    #[argh(option, default = "super::default_data()")]
    data: PathBuf,
    /// the server's secret, if it is not the data folder's own
    #[argh(option)]
    secret_file: Option<PathBuf>,
    /// use a data folder that group or others may write
    #[argh(switch)]
    allow_shared_data: bool,
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
    /// use a data folder that group or others may write
    #[argh(switch)]
    allow_shared_data: bool,
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
    /// use a data folder that group or others may write
    #[argh(switch)]
    allow_shared_data: bool,
}

/// Print an account's token.
#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand, name = "token", help_triggers("-h", "--help", "help"))]
struct Token {
    /// its e-mail address
    #[argh(positional)]
    email: String,
    /// write the token into a new file that only its owner may read, instead of standard output
    #[argh(option, short = 'o', arg_name = "file")]
    output: Option<PathBuf>,
    /// replace the file of --output if it exists
    #[argh(switch)]
    force: bool,
    /// the data folder (default: towebp-data)
    #[argh(option, default = "super::default_data()")]
    data: PathBuf,
    /// the server's secret, if it is not the data folder's own
    #[argh(option)]
    secret_file: Option<PathBuf>,
    /// use a data folder that group or others may write
    #[argh(switch)]
    allow_shared_data: bool,
}

/// Give an account a new token and print it; the old one is refused at once.
#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand, name = "rotate", help_triggers("-h", "--help", "help"))]
struct Rotate {
    /// its e-mail address
    #[argh(positional)]
    email: String,
    /// write the token into a new file that only its owner may read, instead of standard output
    #[argh(option, short = 'o', arg_name = "file")]
    output: Option<PathBuf>,
    /// replace the file of --output if it exists
    #[argh(switch)]
    force: bool,
    /// the data folder (default: towebp-data)
    #[argh(option, default = "super::default_data()")]
    data: PathBuf,
    /// the server's secret, if it is not the data folder's own
    #[argh(option)]
    secret_file: Option<PathBuf>,
    /// use a data folder that group or others may write
    #[argh(switch)]
    allow_shared_data: bool,
}

/// Give an account a password, in the place of the one that it has; all its sessions end. The password is the first line of
/// standard input, or asked for twice at a terminal.
#[derive(Debug, FromArgs, ArgsInfo)]
#[argh(subcommand, name = "password", help_triggers("-h", "--help", "help"))]
struct SetPassword {
    /// its e-mail address
    #[argh(positional)]
    email: String,
    /// the data folder (default: towebp-data)
    #[argh(option, default = "super::default_data()")]
    data: PathBuf,
    /// the server's secret, if it is not the data folder's own
    #[argh(option)]
    secret_file: Option<PathBuf>,
    /// use a data folder that group or others may write
    #[argh(switch)]
    allow_shared_data: bool,
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
    /// use a data folder that group or others may write
    #[argh(switch)]
    allow_shared_data: bool,
}

fn run_with(
    command: AccountCommand,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), String> {
    match command.action {
        Action::Create(command) => create(command, input, output, notes),
        Action::List(List {
            data,
            secret_file,
            allow_shared_data,
        }) => open_existing(&settings(data, secret_file, allow_shared_data), notes)?
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
        Action::Invite(Invite {
            data,
            secret_file,
            allow_shared_data,
        }) => {
            let settings = settings(data, secret_file, allow_shared_data);
            print(output, &open_existing(&settings, notes)?.invite()?)
        }
        Action::Token(Token {
            email,
            output: file,
            force,
            data,
            secret_file,
            allow_shared_data,
        }) => {
            let place = TokenPlace::find(file, force)?;
            let settings = settings(data, secret_file, allow_shared_data);
            let token = open_existing(&settings, notes)?.token(&email)?;
            place.put(output, &email, &token)
        }
        Action::Rotate(Rotate {
            email,
            output: file,
            force,
            data,
            secret_file,
            allow_shared_data,
        }) => {
            let place = TokenPlace::find(file, force)?;
            let settings = settings(data, secret_file, allow_shared_data);
            let token = open_existing(&settings, notes)?.rotate(&email)?;
            place.put(output, &email, &token)
        }
        Action::Password(SetPassword {
            email,
            data,
            secret_file,
            allow_shared_data,
        }) => {
            let password = read_password(input)?;
            let settings = settings(data, secret_file, allow_shared_data);
            open_existing(&settings, notes)?.set_password(&email, &password)?;
            let email = email.trim();
            note(
                notes,
                &format!("the account {email} has a new password, and its sessions are ended"),
            );
            Ok(())
        }
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
            allow_shared_data,
        }) => {
            let settings = settings(data, secret_file, allow_shared_data);
            open_existing(&settings, notes)?.delete(&email)?;
            note(notes, &format!("the account {email} is deleted"));
            Ok(())
        }
    }
}

fn create(
    command: Create,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), String> {
    let Create {
        email,
        password_stdin,
        output: file,
        force,
        data,
        secret_file,
        allow_shared_data,
    } = command;
    let settings = settings(data, secret_file, allow_shared_data);
    let password = password_stdin.then(|| read_password(input)).transpose()?;
    let place = TokenPlace::find(file, force);
    let client = open(&settings, notes)?;
    // Twice the same command: the first has made the account, whatever has become of its token.
    if client.token(&email).is_ok() {
        let email = email.trim();
        return Err(format!(
            "there is an account {email} already; towebp account token {email} prints its token"
        ));
    }
    let place = place?;
    let token = client.create(&email, password.as_deref())?;
    place.put(output, &email, &token)
}

fn settings(data: PathBuf, secret_file: Option<PathBuf>, allow_shared_data: bool) -> Settings {
    Settings {
        data,
        secret_file,
        allow_shared_data,
    }
}

/// Where a token goes.
struct TokenPlace(Option<(PathBuf, Output, Late)>);

impl TokenPlace {
    /// Standard output, or a file, which is looked at before anything is done.
    ///
    /// # Errors
    /// A sentence: the file exists and is not to be replaced, or cannot be made.
    fn find(file: Option<PathBuf>, force: bool) -> Result<TokenPlace, String> {
        let Some(file) = file else {
            return Ok(TokenPlace(None));
        };
        let output =
            Output::find(&file).map_err(|error| format!("--output {}: {error}", file.display()))?;
        if let Some(existing) = output.replaces()
            && !force
        {
            return Err(format!(
                "--output {} exists; --force replaces it",
                existing.display()
            ));
        }
        let late = if force { Late::Replace } else { Late::Keep };
        Ok(TokenPlace(Some((file, output, late))))
    }

    fn put(self, standard_output: &mut dyn Write, email: &str, token: &str) -> Result<(), String> {
        let Some((file, output, late)) = self.0 else {
            return print(standard_output, token);
        };
        let line = format!("{token}\n");
        output
            .write(line.as_bytes(), 0o600, late, &Outputs::default())
            .map_err(|error| {
                format!(
                    "--output {}: {error}; towebp account token {} prints the token",
                    file.display(),
                    email.trim()
                )
            })
    }
}

fn open(settings: &Settings, notes: &mut dyn Write) -> Result<AdminClient, String> {
    let client = AdminClient::open(settings)?;
    if client.is_through_server() && settings.secret_file.is_some() {
        note(
            notes,
            "a server runs on this data folder: its own secret is used, not --secret-file",
        );
    }
    Ok(client)
}

/// As [`open`], but a mistyped `--data` does not make a new folder, in which nothing could be found.
fn open_existing(settings: &Settings, notes: &mut dyn Write) -> Result<AdminClient, String> {
    super::must_exist(&store::database_path(&settings.data), &settings.data)?;
    open(settings, notes)
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
        let owner = store.account_by_email("owner@example.org").unwrap();
        assert_eq!(
            store.authenticate(token.trim_end()).unwrap(),
            owner.unwrap().id
        );
        assert!(
            store.sign_in("owner@example.org", "correct horse").is_ok(),
            "the line's end is no part of it"
        );
        let set = account(&folder, &["password", "owner@example.org"], "another horse");
        set.unwrap();
        assert!(store.sign_in("owner@example.org", "another horse").is_ok());
        assert!(store.sign_in("owner@example.org", "correct horse").is_err());
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
        assert_eq!(
            error,
            "there is an account machine@example.org already; towebp account token machine@example.org prints its token"
        );

        let password = ["password", "Machine@example.org"];
        let set = account(folder, &password, "correct horse\nmore").unwrap();
        assert_eq!(set.output, "");
        assert!(set.notes.contains("new password"), "{}", set.notes);
        let listed = account(folder, &["list"], "").unwrap().output;
        assert!(listed.ends_with("\t0\tdashboard\n"), "{listed}");
        let error = account(folder, &password, "short\n").unwrap_err();
        assert!(error.contains("5 characters"), "{error}");
        let nobody = account(folder, &["password", "no@example.org"], "correct horse\n");
        assert_eq!(nobody.unwrap_err(), "there is no account no@example.org");
        let error = account(folder, &["delete", "machine@example.org"], "").unwrap_err();
        assert!(error.contains("--yes"), "{error}");
        account(folder, &["delete", "machine@example.org", "--yes"], "").unwrap();
        let error = account(folder, &["token", "machine@example.org"], "").unwrap_err();
        assert_eq!(error, "there is no account machine@example.org");
    }

    #[test]
    fn a_token_goes_into_a_file_that_is_not_emptied_by_a_second_time() {
        let folder = Folder::new();
        let path = folder.path().join("token");
        let file = path.to_str().unwrap();
        let read = || std::fs::read_to_string(&path).unwrap();
        let create = ["create", "machine@example.org", "-o", file];
        let created = account(&folder, &create, "").unwrap();
        assert_eq!((created.output, created.notes), Default::default());
        let token = account(&folder, &["token", "machine@example.org"], "").unwrap();
        assert_eq!(read(), token.output);
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(&path).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);

        let error = account(&folder, &create, "").unwrap_err();
        let helpful = "towebp account token machine@example.org prints its token";
        assert!(
            error.contains("already") && error.ends_with(helpful),
            "{error}"
        );
        for action in ["create", "rotate"] {
            let email = ["new@example.org", "machine@example.org"][usize::from(action == "rotate")];
            let error = account(&folder, &[action, email, "-o", file], "").unwrap_err();
            assert!(error.contains("exists; --force"), "{error}");
        }
        assert_eq!(read(), token.output, "it was emptied");
        let listed = account(&folder, &["list"], "").unwrap().output;
        assert_eq!(
            listed.lines().count(),
            1,
            "made without a place for its token"
        );

        let rotate = ["rotate", "machine@example.org", "-o", file, "--force"];
        account(&folder, &rotate, "").unwrap();
        let rotated = account(&folder, &["token", "machine@example.org"], "").unwrap();
        assert_eq!(read(), rotated.output);
        assert_ne!(rotated.output, token.output);
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
