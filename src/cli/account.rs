//! `towebp account`: accounts for machines without a browser, beside a running server too.

mod command;

pub(super) use command::Account;

use super::failure::Failure;
use super::names::{escaped, shown};
use super::output::{IfCreated, Output};
use super::shared::must_exist;
use super::terminal;
use crate::admin::{AccountSummary, AccountUsage, AdminClient, LimitChange, TokenSummary};
use crate::process::interrupt::Outputs;
use crate::store::{
    self, Limits, Settings, TokenSettings, end_of_day, from_milliseconds, saved_percent,
};
use command::{Action, Create, Rotate, SetToken};
use std::io::{self, BufRead, Cursor, IsTerminal, Write};
use std::path::PathBuf;
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

/// What a command reads and writes.
struct Streams<'a> {
    input: &'a mut dyn BufRead,
    /// For results.
    output: &'a mut dyn Write,
    /// For messages to people.
    notes: &'a mut dyn Write,
}

fn run_with(command: &Account, streams: &mut Streams<'_>) -> Result<(), Failure> {
    let settings = command.settings.0.store().map_err(Failure::Usage)?;
    let open = |streams: &mut Streams<'_>| open_existing(&settings, streams);
    match &command.action {
        Action::Create(create) => create_account(create, &settings, streams),
        Action::List => {
            let accounts = open(streams)?.list()?;
            for account in &accounts {
                print_account(account, streams)?;
            }
            Ok(())
        }
        Action::Invite => {
            let code = open(streams)?.invite()?;
            Ok(streams.print(&code)?)
        }
        Action::Token(action) => {
            let email = &action.account.email;
            let output = TokenOutput::find(&action.file)?;
            let token = open(streams)?.token(email, action.name.as_deref())?;
            Ok(output.write(streams, email, &token)?)
        }
        Action::Rotate(action) => {
            let Rotate { token, overlap } = action;
            let email = &token.account.email;
            let output = TokenOutput::find(&token.file)?;
            let rotated = open(streams)?.rotate(email, token.name.as_deref(), *overlap)?;
            Ok(output.write(streams, email, &rotated)?)
        }
        Action::SetToken(action) => {
            let token = token_settings(action).map_err(Failure::Usage)?;
            let client = open(streams)?;
            Ok(streams.print(&client.set_token(&action.account.email, token)?)?)
        }
        Action::DeleteToken(action) => {
            let client = open(streams)?;
            client.delete_token(&action.account.email, &action.name)?;
            streams.note(&format!("the token {:?} is deleted", action.name.trim()));
            Ok(())
        }
        Action::Usage(action) => {
            let client = open(streams)?;
            Ok(print_usage(&client.usage(&action.email)?, streams)?)
        }
        Action::Limit(action) => {
            if action.rate.or(action.monthly).is_none() {
                return Err(Failure::Usage(
                    "say --rate or --monthly, with a number or server".to_owned(),
                ));
            }
            let client = open(streams)?;
            let keep = |change: Option<LimitChange>| change.unwrap_or(LimitChange::Keep);
            let (rate, monthly) = (keep(action.rate), keep(action.monthly));
            client.restrict(&action.account.email, rate, monthly, None)?;
            streams.note(&format!(
                "the account {} is limited so",
                action.account.email.trim()
            ));
            Ok(())
        }
        Action::Disable(action) => {
            let client = open(streams)?;
            let keep = LimitChange::Keep;
            client.restrict(&action.email, keep, keep, Some(true))?;
            streams.note(&format!("the account {} is disabled", action.email.trim()));
            Ok(())
        }
        Action::Enable(action) => {
            let client = open(streams)?;
            let keep = LimitChange::Keep;
            client.restrict(&action.email, keep, keep, Some(false))?;
            streams.note(&format!("the account {} may convert", action.email.trim()));
            Ok(())
        }
        Action::SetEmail(action) => {
            let client = open(streams)?;
            client.set_email(&action.account.email, &action.new)?;
            let (old, new) = (action.account.email.trim(), action.new.trim());
            streams.note(&format!("the account {old} is {new} now"));
            Ok(())
        }
        Action::Password(action) => {
            let password = streams.read_password()?;
            let client = open(streams)?;
            client.set_password(&action.email, &password)?;
            streams.note(&format!(
                "the account {} has a new password, and its sessions are ended",
                action.email.trim()
            ));
            Ok(())
        }
        Action::Delete(action) if !action.yes => Err(Failure::Usage(format!(
            "deleting {} deletes its usage history too, for good: say --yes to do it",
            action.account.email
        ))),
        Action::Delete(action) => {
            open(streams)?.delete(&action.account.email)?;
            streams.note(&format!("the account {} is deleted", action.account.email));
            Ok(())
        }
    }
}

fn print_account(account: &AccountSummary, streams: &mut Streams<'_>) -> Result<(), String> {
    let created = humantime::format_rfc3339_seconds(account.created());
    let dashboard = if account.has_password {
        "dashboard"
    } else {
        "no dashboard"
    };
    streams.print(&format!(
        "{}\t{created}\t{}\t{dashboard}",
        account.email, account.conversions
    ))
}

/// What is set for a token by its options.
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
    let time = |milliseconds: Option<u64>| match milliseconds {
        Some(milliseconds) => {
            let time = from_milliseconds(milliseconds);
            humantime::format_rfc3339_seconds(time).to_string()
        }
        None => "-".to_owned(),
    };
    let saved = saved_percent(usage.input_bytes, usage.output_bytes);
    let saved = saved.map_or_else(|| "-".to_owned(), |percent| percent.to_string());
    for (name, value) in [
        ("conversions", usage.conversions.to_string()),
        ("this month", usage.this_month.to_string()),
        ("bytes in", usage.input_bytes.to_string()),
        ("bytes out", usage.output_bytes.to_string()),
        ("percent saved", saved),
        ("limit a minute", limit(usage.per_minute.map(u64::from))),
        ("limit a month", limit(usage.monthly)),
        ("disabled", usage.is_disabled.to_string()),
    ] {
        streams.print(&format!("{name}\t{value}"))?;
    }
    for token in &usage.tokens {
        let (used, ends) = (
            time(token.last_used_milliseconds),
            time(token.ends_milliseconds),
        );
        let TokenSummary {
            name, conversions, ..
        } = token;
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
    let output = TokenOutput::find(&create.file);
    let client = open(settings, streams)?;
    // Looked at before the file: if the same command was run twice, this message tells more.
    if client.token(email, None).is_ok() {
        let email = email.trim();
        return Err(Failure::Failed(format!(
            "there is an account {email} already; towebp account token {email} prints its token"
        )));
    }
    let output = output?;
    let token = client.create(email, password.as_deref())?;
    Ok(output.write(streams, email, &token)?)
}

impl Streams<'_> {
    fn print(&mut self, line: &str) -> Result<(), String> {
        writeln!(self.output, "{line}")
            .map_err(|error| format!("standard output cannot be written: {error}"))
    }

    fn note(&mut self, line: &str) {
        // What was asked for is done; a closed standard error does not undo it.
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
    output: Output,
    if_created: IfCreated,
}

impl TokenOutput {
    /// Looks at the file, if one is named, so that nothing is done if it cannot be written.
    ///
    /// # Errors
    /// A sentence: the file exists and must not be replaced, or it cannot be made.
    fn find(file: &command::TokenFile) -> Result<TokenOutput, String> {
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
            output,
            if_created: if force {
                IfCreated::Replace
            } else {
                IfCreated::Fail
            },
        })))
    }

    fn write(self, streams: &mut Streams<'_>, email: &str, token: &str) -> Result<(), String> {
        let Some(file) = self.0 else {
            return streams.print(token);
        };
        let line = format!("{token}\n");
        file.output
            .write(line.as_bytes(), 0o600, file.if_created, &Outputs::default())
            .map_err(|error| {
                format!(
                    "--output {}: {error}; towebp account token {} prints the token",
                    shown(&file.path),
                    email.trim()
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
