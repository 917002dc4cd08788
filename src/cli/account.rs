//! `towebp account`: accounts for machines without a browser, beside a running server too.

mod command;

pub(super) use command::Account;

use super::failure::Failure;
use super::names::{escaped, shown};
use super::output::Output;
use super::shared::must_exist;
use super::terminal;
use crate::admin::{AccountUsage, AdminClient, AdminRequest, Answer, LimitChange, unexpected};
use crate::process::interrupt::Outputs;
use crate::store::{self, Limits, Settings, TokenSettings, end_of_day};
use command::{Action, Create, Delete, DeleteToken, Email, Rotate, SetEmail, SetToken};
use std::io::{self, BufRead, Cursor, IsTerminal, Write};
use std::path::PathBuf;
use std::time::SystemTime;
use towebp_pipeline::conversion::Preset;

/// Carries out the command. A token is the only thing that goes to standard output, so that a
/// script can take it from there.
///
/// # Errors
/// A sentence for standard error.
pub(super) fn run(command: &Account) -> Result<(), Failure> {
    let mut input: Box<dyn BufRead> = if command.reads_password() && io::stdin().is_terminal() {
        Box::new(Cursor::new(terminal::ask_for_new_password()?))
    } else {
        Box::new(io::stdin().lock())
    };
    // They are not locked meanwhile: the store logs to standard error by a thread of its own, for
    // which the command waits.
    let mut streams = Streams {
        input: &mut *input,
        output: &mut io::stdout(),
        notes: &mut io::stderr(),
    };
    run_with(command, &mut streams)
}

/// The streams of a command.
struct Streams<'a> {
    input: &'a mut dyn BufRead,
    /// For results.
    output: &'a mut dyn Write,
    /// For messages to people.
    notes: &'a mut dyn Write,
}

fn run_with(command: &Account, streams: &mut Streams<'_>) -> Result<(), Failure> {
    let settings = command.settings.0.store().map_err(Failure::Usage)?;
    if let Action::Create(create) = &command.action {
        return create_account(create, &settings, streams);
    }
    let (request, note) = request(&command.action, streams)?;
    let output = match &command.action {
        Action::Token(token) | Action::Rotate(Rotate { token, .. }) => TokenOutput::find(token)?,
        _ => TokenOutput(None),
    };
    match open_existing(&settings, streams)?.send(request)? {
        Answer::Accounts(accounts) => {
            for (account, conversions) in &accounts {
                print_account(account, *conversions, streams)?;
            }
            Ok(())
        }
        Answer::Text(text) => Ok(output.write(streams, &text)?),
        Answer::Usage(usage) => Ok(print_usage(&usage, streams)?),
        Answer::Changed => {
            streams.note(&note);
            Ok(())
        }
        other => Err(Failure::Failed(unexpected(other))),
    }
}

/// The request of an action other than [`Action::Create`], and the line for people once it is
/// carried out, if it has no other result.
fn request(action: &Action, streams: &mut Streams<'_>) -> Result<(AdminRequest, String), Failure> {
    let result = |request| Ok((request, String::new()));
    let email = |email: &Email| email.email.clone();
    let restrict = |account: &Email, per_minute, monthly, disable| AdminRequest::Restrict {
        email: email(account),
        per_minute,
        monthly,
        disable,
    };
    let keep = LimitChange::Keep;
    match action {
        Action::Create(_) => unreachable!("the caller carries it out"),
        Action::List => result(AdminRequest::List),
        Action::Invite => result(AdminRequest::Invite),
        Action::Token(token) => result(AdminRequest::Token {
            email: email(&token.account),
            name: token.name.clone(),
        }),
        Action::Rotate(Rotate { token, overlap }) => result(AdminRequest::Rotate {
            email: email(&token.account),
            name: token.name.clone(),
            overlap_hours: *overlap,
        }),
        Action::SetToken(token) => result(AdminRequest::SetToken {
            email: email(&token.account),
            settings: token_settings(token).map_err(Failure::Usage)?,
        }),
        Action::DeleteToken(DeleteToken { account, name }) => Ok((
            AdminRequest::DeleteToken {
                email: email(account),
                name: name.clone(),
            },
            format!("the token {:?} is deleted", name.trim()),
        )),
        Action::Usage(account) => result(AdminRequest::Usage {
            email: email(account),
        }),
        Action::Limit(limit) if limit.rate.or(limit.monthly).is_none() => Err(Failure::Usage(
            "say --rate or --monthly, with a number or server".to_owned(),
        )),
        Action::Limit(limit) => {
            let (rate, monthly) = (limit.rate.unwrap_or(keep), limit.monthly.unwrap_or(keep));
            let name = limit.account.email.trim();
            let note = format!("the account {name} is limited so");
            Ok((restrict(&limit.account, rate, monthly, None), note))
        }
        Action::Disable(account) => Ok((
            restrict(account, keep, keep, Some(true)),
            format!("the account {} is disabled", account.email.trim()),
        )),
        Action::Enable(account) => Ok((
            restrict(account, keep, keep, Some(false)),
            format!("the account {} may convert", account.email.trim()),
        )),
        Action::SetEmail(SetEmail { account, new }) => Ok((
            AdminRequest::Email {
                email: email(account),
                new: new.clone(),
            },
            format!("the account {} is {} now", account.email.trim(), new.trim()),
        )),
        Action::Password(account) => Ok((
            AdminRequest::Password {
                email: email(account),
                password: streams.read_password()?,
            },
            format!(
                "the account {} has a new password, and its sessions are ended",
                account.email.trim()
            ),
        )),
        Action::SecondFactorOff(account) => Ok((
            AdminRequest::SecondFactorOff {
                email: email(account),
            },
            format!(
                "the second factor of {} is off: its password alone signs in",
                account.email.trim()
            ),
        )),
        Action::Delete(Delete { account, yes }) => {
            let name = &account.email;
            if !yes {
                return Err(Failure::Usage(format!(
                    "deleting {name} deletes its usage history too, for good: say --yes to do it"
                )));
            }
            let note = format!("the account {name} is deleted");
            let email = name.clone();
            Ok((AdminRequest::Delete { email }, note))
        }
    }
}

fn print_account(
    account: &store::Account,
    conversions: u64,
    streams: &mut Streams<'_>,
) -> Result<(), String> {
    let created = humantime::format_rfc3339_seconds(account.created);
    let dashboard = if account.has_password {
        "dashboard"
    } else {
        "no dashboard"
    };
    streams.print(&format!(
        "{}\t{created}\t{conversions}\t{dashboard}",
        account.email
    ))
}

/// The settings of a token that its options give.
fn token_settings(action: &SetToken) -> Result<TokenSettings, String> {
    let ends = action.ends.as_deref().map(|day| {
        end_of_day(day).ok_or_else(|| {
            format!("--ends: {day:?} was given; allowed is a day such as 2026-12-31")
        })
    });
    let preset = Preset::parse(&action.preset.join("\n"));
    let preset = preset.map_err(|error| format!("--preset: {}", error.detail))?;
    Ok(TokenSettings {
        name: action.name.clone(),
        ends: ends.transpose()?,
        limits: Limits {
            per_minute: action.rate,
            monthly: action.monthly,
        },
        preset: preset.text(),
    })
}

fn print_usage(usage: &AccountUsage, streams: &mut Streams<'_>) -> Result<(), String> {
    let limit = |limit: Option<u64>| match limit {
        None => "server".to_owned(),
        Some(0) => "any number".to_owned(),
        Some(number) => number.to_string(),
    };
    let time = |time: Option<SystemTime>| match time {
        Some(time) => humantime::format_rfc3339_seconds(time).to_string(),
        None => "-".to_owned(),
    };
    let AccountUsage {
        totals,
        this_month,
        restrictions,
        has_second_factor,
        tokens,
    } = usage;
    let saved = totals.saved_percent();
    let saved = saved.map_or_else(|| "-".to_owned(), |percent| percent.to_string());
    let per_minute = restrictions.per_minute.map(u64::from);
    for (name, value) in [
        ("conversions", totals.conversions.to_string()),
        ("this month", this_month.to_string()),
        ("bytes in", totals.input_bytes.to_string()),
        ("bytes out", totals.output_bytes.to_string()),
        ("percent saved", saved),
        ("limit a minute", limit(per_minute)),
        ("limit a month", limit(restrictions.monthly)),
        ("disabled", restrictions.disabled.is_some().to_string()),
        ("second factor", has_second_factor.to_string()),
    ] {
        streams.print(&format!("{name}\t{value}"))?;
    }
    for usage in tokens {
        let settings = &usage.token.settings;
        let (name, conversions) = (&settings.name, usage.totals.conversions);
        let (used, ends) = (time(usage.last_used), time(settings.ends));
        streams.print(&format!("token\t{name}\t{conversions}\t{used}\t{ends}"))?;
    }
    Ok(())
}

fn create_account(
    create: &Create,
    settings: &Settings,
    streams: &mut Streams<'_>,
) -> Result<(), Failure> {
    let email = &create.account.email;
    let password = create
        .password_stdin
        .then(|| streams.read_password())
        .transpose()?;
    let output = TokenOutput::at(&create.file, email);
    let client = open(settings, streams)?;
    let token = AdminRequest::Token {
        email: email.clone(),
        name: None,
    };
    // This is checked before the file: if the same command is run twice, this message helps more.
    if client.send(token).is_ok() {
        let email = email.trim();
        return Err(Failure::Failed(format!(
            "there is an account {email} already; towebp account token {email} prints its token"
        )));
    }
    let output = output?;
    let email = email.clone();
    match client.send(AdminRequest::Create { email, password })? {
        Answer::Text(token) => Ok(output.write(streams, &token)?),
        other => Err(Failure::Failed(unexpected(other))),
    }
}

impl Streams<'_> {
    fn print(&mut self, line: &str) -> Result<(), String> {
        writeln!(self.output, "{line}")
            .map_err(|error| format!("standard output cannot be written: {error}"))
    }

    fn note(&mut self, line: &str) {
        // The command is carried out, and a closed standard error does not undo it.
        writeln!(self.notes, "{}", escaped(line)).ok();
    }

    /// Reads a line, and removes its end.
    fn read_password(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.input
            .read_line(&mut line)
            .map_err(|error| format!("the password cannot be read from standard input: {error}"))?;
        let line = line.strip_suffix('\n').unwrap_or(&line);
        Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
    }
}

/// Where a token is written: standard output, or a file.
struct TokenOutput(Option<TokenFile>);

struct TokenFile {
    path: PathBuf,
    /// The address of the token's account.
    email: String,
    output: Output,
    /// Whether a file is replaced that another program creates meanwhile.
    replaces: bool,
}

impl TokenOutput {
    fn find(token: &command::Token) -> Result<TokenOutput, String> {
        TokenOutput::at(&token.file, &token.account.email)
    }

    /// Looks at the file, if one is named, so that nothing is done if it cannot be written.
    ///
    /// # Errors
    /// A sentence: the file exists and must not be replaced, or it cannot be made.
    fn at(file: &command::TokenFile, email: &str) -> Result<TokenOutput, String> {
        let force = file.force;
        let Some(path) = &file.output else {
            return Ok(TokenOutput(None));
        };
        let output =
            Output::find(path).map_err(|error| format!("--output {}: {error}", shown(path)))?;
        if let Some(existing) = output.replaces()
            && !force
        {
            return Err(format!(
                "--output {} exists; --force replaces it",
                shown(existing)
            ));
        }
        Ok(TokenOutput(Some(TokenFile {
            path: path.to_owned(),
            email: email.trim().to_owned(),
            output,
            replaces: force,
        })))
    }

    fn write(self, streams: &mut Streams<'_>, token: &str) -> Result<(), String> {
        let Some(file) = self.0 else {
            return streams.print(token);
        };
        let line = format!("{token}\n");
        file.output
            .write(line.as_bytes(), 0o600, file.replaces, &Outputs::default())
            .map_err(|error| {
                format!(
                    "--output {}: {error}; towebp account token {} prints the token",
                    shown(&file.path),
                    file.email
                )
            })
    }
}

fn open(settings: &Settings, streams: &mut Streams<'_>) -> Result<AdminClient, String> {
    let client = AdminClient::open(settings)?;
    if client.is_through_server() && settings.secret_file.is_some() {
        streams
            .note("a server runs on this data folder: its own secret is used, not --secret-file");
    }
    Ok(client)
}

/// Opens the accounts like [`open`], unless the data folder does not exist. A mistyped `--data`
/// would otherwise make a new folder, in which nothing could be found.
fn open_existing(settings: &Settings, streams: &mut Streams<'_>) -> Result<AdminClient, String> {
    if settings.postgres.is_none() {
        must_exist(&store::database_path(&settings.data), &settings.data)?;
    }
    open(settings, streams)
}

#[cfg(test)]
mod tests;
