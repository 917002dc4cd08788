//! Classes of PostgreSQL's errors: the table of faults as code.

use std::error::Error as _;
use std::io;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::store::error::StoreError;

/// The class of a fault: how it is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The connection is lost, and the last statement may have taken effect or not. An idempotent
    /// one is sent again on another connection.
    Lost,
    /// Nothing happened, because other transactions changed the same rows. It is retried after a
    /// short pause.
    Conflict,
    /// The host takes no writes, or starts or stops. Another host is tried, or the same one later.
    NotReady,
    /// Disk, memory or connections are used up. The storage is unavailable until that changes.
    Full,
    /// The role, the password, the database or the certificate is not accepted: an operator has to
    /// correct something.
    Refused,
    /// As [`Class::Lost`], but the statement is not idempotent, and is not sent again.
    Unknown,
    /// Anything else, which is a fault of the program.
    Unexpected,
}

impl Class {
    /// The names in metrics, in the order of the classes.
    pub const NAMES: [&str; 7] = [
        "lost",
        "conflict",
        "not_ready",
        "full",
        "refused",
        "unknown",
        "unexpected",
    ];
}

/// The result of a query.
pub type Result<T, E = Fault> = std::result::Result<T, E>;

/// A fault, with a text for the log, which holds no values of rows.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Its class.
    pub class: Class,
    /// A sentence without a capital or a period.
    pub text: String,
}

impl Fault {
    /// A fault that is not from PostgreSQL.
    pub fn new(class: Class, text: impl Into<String>) -> Fault {
        let text = text.into();
        Fault { class, text }
    }

    /// The error of a call that gives up because of this fault.
    pub fn into_error(self) -> StoreError {
        match self.class {
            Class::Unexpected => StoreError::Failed(self.text),
            _ => StoreError::Unavailable(self.text),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        let class = match error.code() {
            Some(state) => of_state(state),
            None if is_of_certificate(&error) => Class::Refused,
            None if is_of_network(&error) => Class::Lost,
            None => Class::Unexpected,
        };
        let text = match error.as_db_error() {
            // `detail` may hold values of rows, such as e-mail addresses.
            Some(error) => format!(
                "PostgreSQL says {}: {}",
                error.code().code(),
                error.message()
            ),
            None => whole_text(&error),
        };
        Fault { class, text }
    }
}

fn of_state(state: &SqlState) -> Class {
    match state.code() {
        // The last two occur if two programs make the same table at once, although each of them
        // checks whether it exists.
        "40001" | "40P01" | "55P03" | "57014" | "23505" | "42710" | "42P07" => Class::Conflict,
        "40003" | "57P01" | "57P02" | "57P05" => Class::Lost,
        "25006" | "57P03" => Class::NotReady,
        "53100" | "53200" | "53300" | "53400" => Class::Full,
        "3D000" | "3F000" | "42501" | "42P01" => Class::Refused,
        code => match &code[..2] {
            "08" => Class::Lost,
            "28" => Class::Refused,
            "58" => Class::Full,
            _ => Class::Unexpected,
        },
    }
}

/// Whether the error is one of the network, and not of the protocol.
fn is_of_network(error: &Error) -> bool {
    error.is_closed() || causes(error).iter().any(|cause| cause.is::<io::Error>())
}

/// Whether the server's certificate is not accepted, or it has none.
fn is_of_certificate(error: &Error) -> bool {
    let text = whole_text(error);
    // rustls's errors are inside of `std::io::Error`, which does not always hand them out.
    text.contains("invalid peer certificate") || text.contains("server does not support TLS")
}

fn causes(error: &Error) -> Vec<&(dyn std::error::Error + 'static)> {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause);
        next = cause.source();
    }
    causes
}

fn whole_text(error: &Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_class() {
        for (state, class) in [
            ("40001", Class::Conflict),
            ("40P01", Class::Conflict),
            ("57014", Class::Conflict),
            ("40003", Class::Lost),
            ("08006", Class::Lost),
            ("57P01", Class::Lost),
            ("57P03", Class::NotReady),
            ("25006", Class::NotReady),
            ("53100", Class::Full),
            ("53300", Class::Full),
            ("58030", Class::Full),
            ("28P01", Class::Refused),
            ("3D000", Class::Refused),
            ("42501", Class::Refused),
            ("22012", Class::Unexpected),
            ("42601", Class::Unexpected),
        ] {
            assert_eq!(of_state(&SqlState::from_code(state)), class, "{state}");
        }
    }
}
