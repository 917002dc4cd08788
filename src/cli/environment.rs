//! The flags of `towebp serve` by environment variables: `TOWEBP_MAX_BODY=64MiB` is
//! `--max-body 64MiB`.
//!
//! The other commands that look after a server's data have them, too, if they have a flag of that
//! name, so that they find the same data. `towebp convert` reads none of them.

use super::arguments::{Prepared, Read};
use super::suggest;
use argh::{CommandInfoWithArgs, FlagInfo, FlagInfoKind, Optionality};
use std::env;
use std::ffi::OsString;

const PREFIX: &str = "TOWEBP_";

/// Commands that read no variables.
const WITHOUT: [&str; 4] = ["convert", "secret", "completions", "man"];

/// Variables that are no flags but have a meaning: of the store's password, of the examples, and
/// of the program's own tests.
const OTHERS: [&str; 10] = [
    "TOWEBP_STORE_PASSWORD",
    "TOWEBP_TOKEN",
    "TOWEBP_URL",
    "TOWEBP_AXE",
    "TOWEBP_BLESS",
    "TOWEBP_CHAOS_",
    "TOWEBP_PROFILE",
    "TOWEBP_SKIP_NOTHING",
    "TOWEBP_TEST_",
    "TOWEBP_BENCH_",
];

/// The variables that begin with `TOWEBP_`, and what is a flag of `towebp serve`.
#[derive(Debug, Default)]
pub struct Environment {
    variables: Vec<(String, OsString)>,
    /// The variables that stand for flags of `towebp serve`.
    known: Vec<String>,
}

/// The variable of a flag: `TOWEBP_MAX_BODY` for `--max-body`.
pub fn variable(flag: &str) -> String {
    let name = flag.trim_start_matches('-').replace('-', "_");
    format!("{PREFIX}{}", name.to_ascii_uppercase())
}

/// Whether the command with this path reads the variables.
pub fn is_read_by(path: &[String]) -> bool {
    path.first()
        .is_some_and(|name| !WITHOUT.contains(&name.as_str()))
}

/// The names of the variables that `towebp serve` reads.
pub fn variables(program: &CommandInfoWithArgs) -> Vec<String> {
    let mut commands = program.commands.iter();
    let serve = commands.find(|sub| sub.name == "serve");
    let flags = serve.into_iter().flat_map(|serve| serve.command.flags);
    flags.map(|flag| variable(flag.long)).collect()
}

impl Environment {
    /// The variables of this process.
    pub fn of_process(program: &CommandInfoWithArgs) -> Environment {
        Environment::new(program, env::vars_os())
    }

    fn new(
        program: &CommandInfoWithArgs,
        all: impl Iterator<Item = (OsString, OsString)>,
    ) -> Environment {
        let named = all.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let mut own: Vec<_> = named.filter(|(name, _)| name.starts_with(PREFIX)).collect();
        own.sort();
        Environment {
            variables: own,
            known: variables(program),
        }
    }

    /// Adds the flags that were not given. An empty variable is as none.
    ///
    /// # Errors
    /// A sentence for the user that names the variable.
    pub fn complete(&self, read: Read<'_>) -> Result<Prepared, String> {
        let mut prepared = read.prepared;
        if !is_read_by(&read.path) {
            return Ok(prepared);
        }
        // A file is checked by itself, wherever the accounts are.
        let has_file = read.path == ["check"] && read.positionals > 0;
        let mut added = Vec::new();
        for flag in read.command.flags {
            let name = variable(flag.long);
            let is_of_store = flag.long.starts_with("--store");
            if read.given.contains(&flag.long)
                || !self.known.contains(&name)
                || (has_file && is_of_store)
            {
                continue;
            }
            let found = self.variables.iter().find(|(own, _)| *own == name);
            let Some((_, value)) = found.filter(|(_, value)| !value.is_empty()) else {
                continue;
            };
            let value = value.to_str();
            let value = value.ok_or_else(|| format!("{name}: its value is not UTF-8"))?;
            let values = values(flag, &name, value)?;
            if values.is_empty() {
                continue;
            }
            for value in values {
                added.push(flag.long.to_owned());
                if flag.kind != FlagInfoKind::Switch {
                    prepared.values.push((flag.long, value.clone()));
                    added.push(value);
                }
            }
            prepared.from_environment.push((flag.long, name));
        }
        let at = read.flags_at;
        prepared.arguments.splice(at..at, added);
        prepared.warnings = self.unknown();
        Ok(prepared)
    }

    /// A sentence for each variable that has no meaning.
    fn unknown(&self) -> Vec<String> {
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        let unknown = self.variables.iter().filter(|(name, value)| {
            !known.contains(&name.as_str())
                && !OTHERS.iter().any(|other| name.starts_with(other))
                && !is_of_kubernetes(name, value)
        });
        let sentence = |(name, _): &(String, OsString)| {
            // Without what all have in common, which would count as near.
            let short = |name: &str| name.trim_start_matches(PREFIX).to_owned();
            let names: Vec<String> = known.iter().map(|name| short(name)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let meant = suggest::word(&short(name), &names);
            let meant = meant.replace("you mean ", "you mean TOWEBP_");
            format!("the variable {name} is ignored, since no flag has that name{meant}")
        };
        unknown.map(sentence).collect()
    }
}

/// Whether Kubernetes sets the variable in each container, to say where a service is whose name
/// begins with towebp: `TOWEBP_PORT=tcp://10.0.0.1:80`, `TOWEBP_SERVICE_HOST`.
fn is_of_kubernetes(name: &str, value: &OsString) -> bool {
    let is_address = || value.to_string_lossy().contains("://");
    name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.contains("_PORT_")
        || (name.ends_with("_PORT") && is_address())
}

/// What a variable gives its flag: nothing or one thing for a switch, several for a flag that may
/// be given more than once.
fn values(flag: &FlagInfo<'_>, name: &str, value: &str) -> Result<Vec<String>, String> {
    if flag.kind == FlagInfoKind::Switch {
        return match value.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Ok(vec![String::new()]),
            "0" | "false" | "no" | "off" => Ok(Vec::new()),
            _ => Err(format!(
                "{name}: {value:?} was given; allowed are 1 or true, and 0 or false"
            )),
        };
    }
    if flag.optionality == Optionality::Repeating {
        let parts = value.split([',', ' ', '\t', '\n']);
        let parts = parts.filter(|part| !part.is_empty());
        return Ok(parts.map(str::to_owned).collect());
    }
    Ok(vec![value.trim().to_owned()])
}

/// The sentence with variables in the place of the flags that come from them.
pub fn with_variables(sentence: &str, from_environment: &[(&str, String)]) -> String {
    let mut named = sentence.to_owned();
    for (flag, variable) in from_environment {
        let mut rest = std::mem::take(&mut named);
        while let Some(at) = rest.find(flag) {
            let end = at + flag.len();
            let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '-';
            named.push_str(&rest[..at]);
            named.push_str(if rest[end..].starts_with(goes_on) {
                flag
            } else {
                variable
            });
            rest = rest.split_off(end);
        }
        named.push_str(&rest);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Towebp;
    use crate::cli::arguments::{self, Request};
    use argh::ArgsInfo;

    fn prepared(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Prepared, String> {
        let program = Towebp::get_args_info();
        let variables = variables
            .iter()
            .map(|&(name, value)| (name.into(), value.into()));
        let environment = Environment::new(&program, variables);
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        match arguments::read(&arguments, &program)? {
            Request::Run(read) => environment.complete(read),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn assert_becomes(arguments: &[&str], variables: &[(&str, &str)], expected: &[&str]) {
        let prepared = prepared(arguments, variables).expect("valid");
        assert_eq!(prepared.arguments, expected, "{arguments:?} {variables:?}");
    }

    #[test]
    fn variables_stand_for_flags_that_are_not_given() {
        let listen = ("TOWEBP_LISTEN", "0.0.0.0:80, [::]:80");
        assert_becomes(
            &["serve", "--sniff"],
            &[listen, ("TOWEBP_MAX_BODY", "1MiB"), ("TOWEBP_SNIFF", "1")],
            &[
                "serve",
                "--listen",
                "0.0.0.0:80",
                "--listen",
                "[::]:80",
                "--max-body",
                "1MiB",
                "--sniff",
            ],
        );
        assert_becomes(
            &["serve", "--listen=127.0.0.1:1"],
            &[listen],
            &["serve", "--listen", "127.0.0.1:1"],
        );
        for (value, expected) in [
            ("1", &["serve", "--demo"][..]),
            ("True", &["serve", "--demo"]),
            ("0", &["serve"]),
            ("", &["serve"]),
        ] {
            assert_becomes(&["serve"], &[("TOWEBP_DEMO", value)], expected);
        }
        let error = prepared(&["serve"], &[("TOWEBP_DEMO", "maybe")]).expect_err("neither");
        assert!(error.starts_with("TOWEBP_DEMO: \"maybe\""), "{error}");
    }

    #[test]
    fn commands_have_the_variables_of_the_flags_that_serve_has_too() {
        let data = ("TOWEBP_DATA", "/data");
        let store = ("TOWEBP_STORE", "postgres://db1/towebp");
        assert_becomes(
            &["account", "token", "a@example.org", "--name", "x"],
            &[data, ("TOWEBP_NAME", "y")],
            &[
                "account",
                "token",
                "--data",
                "/data",
                "a@example.org",
                "--name",
                "x",
            ],
        );
        assert_becomes(&["check", "a.redb"], &[store], &["check", "a.redb"]);
        assert_becomes(&["check"], &[store], &["check", "--store", store.1]);
        assert_becomes(
            &["convert", "a.png"],
            &[("TOWEBP_THREADS", "1")],
            &["convert", "a.png"],
        );
        let listen = ("TOWEBP_LISTEN", "0.0.0.0:80");
        assert_becomes(&["health"], &[listen], &["health", "--listen", listen.1]);
    }

    #[test]
    fn unknown_variables_are_told_unless_they_are_somebody_elses() {
        let told = |name, value| {
            let prepared = prepared(&["serve"], &[(name, value)]).expect("valid");
            assert_eq!(prepared.arguments, ["serve"], "{name}");
            prepared.warnings.concat()
        };
        let warning = told("TOWEBP_LISTN", "x");
        assert!(
            warning.ends_with("did you mean TOWEBP_LISTEN?"),
            "{warning}"
        );
        let warning = told("TOWEBP_PORT", "8080");
        assert!(warning.contains("TOWEBP_PORT is ignored"), "{warning}");
        for (name, value) in [
            ("TOWEBP_PORT", "tcp://10.0.0.1:80"),
            ("TOWEBP_PORT_80_TCP_ADDR", "10.0.0.1"),
            ("TOWEBP_SERVICE_HOST", "10.0.0.1"),
            ("TOWEBP_METRICS_SERVICE_PORT_HTTP", "9090"),
            ("TOWEBP_STORE_PASSWORD", "x"),
            ("TOWEBP_TEST_STORE", "redb"),
            ("OTHER", "x"),
        ] {
            assert_eq!(told(name, value), "", "{name}");
        }
    }

    #[test]
    fn sentences_name_the_variable_that_a_flag_comes_from() {
        let from = [("--store", "TOWEBP_STORE".to_owned())];
        assert_eq!(
            with_variables("--store-ca without --store: --store", &from),
            "--store-ca without TOWEBP_STORE: TOWEBP_STORE"
        );
        let no_flags = prepared(&["serve"], &[]).expect("valid");
        assert_eq!(no_flags.from_environment, []);
    }
}
