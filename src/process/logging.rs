//! The format of the log: one line for each record, as text or as JSON. Messages are sentences, and
//! what programs look for is in fields beside them.

use env_logger::{Builder, Env};
use log::kv::{self, Key, Value, VisitSource};
use log::{LevelFilter, Record};
use std::io::{self, Write};
use std::time::SystemTime;

/// The format of a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people: a sentence, then `name=value` for each field.
    Text,
    /// For programs: a JSON object.
    Json,
}

/// Starts to log to standard error. The environment variable `RUST_LOG` chooses what is logged.
pub fn start(format: LogFormat) {
    Builder::from_env(Env::default().default_filter_or("warn,towebp=info"))
        // These log URLs with their queries, which may hold secrets.
        .filter_module("ureq", LevelFilter::Warn)
        .filter_module("ureq_proto", LevelFilter::Warn)
        .format(move |out, record| {
            let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
            write_line(out, format, &time, record)
        })
        .init();
}

fn write_line(
    out: &mut impl Write,
    format: LogFormat,
    time: &str,
    record: &Record<'_>,
) -> io::Result<()> {
    let mut line = match format {
        LogFormat::Text => format!(
            "[{time} {:5} {}] {}",
            record.level(),
            record.target(),
            record.args()
        ),
        LogFormat::Json => format!(
            "{{\"time\":{},\"level\":{},\"target\":{},\"message\":{}",
            quoted(time),
            quoted(&record.level().as_str().to_ascii_lowercase()),
            quoted(record.target()),
            quoted(&record.args().to_string())
        ),
    };
    let mut fields = Fields {
        format,
        line: &mut line,
    };
    record
        .key_values()
        .visit(&mut fields)
        .map_err(io::Error::other)?;
    if format == LogFormat::Json {
        line.push('}');
    }
    line.push('\n');
    out.write_all(line.as_bytes())
}

/// Appends the fields of a record to its line.
struct Fields<'l> {
    format: LogFormat,
    line: &'l mut String,
}

impl<'kvs> VisitSource<'kvs> for Fields<'_> {
    fn visit_pair(&mut self, name: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        let (name, text) = (name.as_str(), value.to_string());
        let shown = match self.format {
            LogFormat::Text => format!(" {name}={text}"),
            LogFormat::Json if value.to_f64().is_some_and(f64::is_finite) => {
                format!(",{}:{text}", quoted(name))
            }
            LogFormat::Json => format!(",{}:{}", quoted(name), quoted(&text)),
        };
        self.line.push_str(&shown);
        Ok(())
    }
}

/// The text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("every text can be a JSON string")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: LogFormat, message: &str) -> String {
        let fields: &[(&str, Value<'_>)] = &[
            ("path", Value::from("/a")),
            ("status", Value::from(200)),
            ("milliseconds", Value::from(1.5)),
        ];
        let mut out = Vec::new();
        // A record borrows its arguments, so that it cannot be kept in a variable.
        write_line(
            &mut out,
            format,
            "2026-11-21T08:00:00Z",
            &Record::builder()
                .level(log::Level::Info)
                .target("towebp::http")
                .args(format_args!("{message}"))
                .key_values(&fields)
                .build(),
        )
        .expect("a Vec takes everything");
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn text_has_the_fields_after_the_message() {
        assert_eq!(
            line(LogFormat::Text, "request"),
            "[2026-11-21T08:00:00Z INFO  towebp::http] request path=/a status=200 milliseconds=1.5\n"
        );
    }

    #[test]
    fn json_is_one_object_a_line_whatever_the_message() {
        let line = line(LogFormat::Json, "a \"quote\"\nand \u{1b} more");
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let object: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
        assert_eq!(object["level"], "info");
        assert_eq!(object["message"], "a \"quote\"\nand \u{1b} more");
        assert_eq!(object["path"], "/a");
        assert_eq!(object["status"], 200);
        assert_eq!(object["milliseconds"], 1.5);
    }
}
