//! The report about each picture and about all: lines for people, or JSON for programs.

use super::tasks::{Input, Target};
use crate::cli::names::percent_encoded;
use crate::cli::shared::count;
use crate::store::saved_percent;
use indicatif::HumanBytes;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fmt;
use std::time::Duration;

/// The outcome of a picture.
pub(super) enum Outcome {
    Converted(Converted),
    /// It would be converted, without `--dry-run`.
    Planned,
    /// It was not converted.
    Skipped {
        /// The reason, as a part of a sentence after "since".
        reason: String,
        /// Whether no line reports it.
        silently: bool,
    },
}

/// A picture that was converted.
pub(super) struct Converted {
    pub(super) bytes: Bytes,
    /// The size of the WebP, whether it was written or not.
    pub(super) webp_bytes: u64,
    /// Whether the input was written in place of the WebP.
    pub(super) is_original: bool,
    pub(super) width: u32,
    pub(super) height: u32,
    /// How the pixels are coded.
    pub(super) coding: &'static str,
    /// The quality, if pixels are coded lossy.
    pub(super) quality: Option<u8>,
    /// Whether the quality was looked for.
    pub(super) is_found: bool,
    /// The score of SSIMULACRA2, if one was the target.
    pub(super) score: Option<f64>,
    /// The ThumbHash in base64, if one was asked for.
    pub(super) placeholder: Option<String>,
    pub(super) spent: Duration,
}

/// The bytes of a picture, or of several.
#[derive(Clone, Copy, Default)]
pub(super) struct Bytes {
    pub(super) before: u64,
    pub(super) after: u64,
}

/// The line of a picture for people; `None` if there is none.
pub(super) fn line(input: &dyn fmt::Display, target: &Target, outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Converted(converted) => Some(format!("{input} -> {target}: {converted}")),
        Outcome::Planned => Some(format!("{input} -> {target}")),
        Outcome::Skipped { silently: true, .. } => None,
        Outcome::Skipped { reason, .. } => Some(format!("{input}: skipped, since {reason}")),
    }
}

/// The object of a picture for programs.
pub(super) fn object(input: &Input, target: &Target, outcome: &Outcome) -> Value {
    let mut object = json!({});
    add(&mut object, named("input", input.name()));
    add(&mut object, named("output", target.name()));
    let more = match outcome {
        Outcome::Converted(converted) => converted.object(),
        Outcome::Planned => json!({ "state": "planned" }),
        Outcome::Skipped { reason, .. } => {
            if let Value::Object(object) = &mut object {
                object.remove("output_escaped");
            }
            json!({ "state": "skipped", "output": null, "reason": reason })
        }
    };
    add(&mut object, more);
    object
}

/// The name of a file, with an escaped one if its bytes are not UTF-8.
fn named(field: &str, name: &OsStr) -> Value {
    let mut object = json!({ field: name.to_string_lossy() });
    if let Some(escaped) = percent_encoded(name) {
        object[format!("{field}_escaped")] = escaped.into();
    }
    object
}

/// The object of an input that failed.
pub(super) fn object_of_failure(input: &Input, error: &str) -> Value {
    let mut object = named("input", input.name());
    add(
        &mut object,
        json!({ "output": null, "state": "failed", "error": error }),
    );
    object
}

fn add(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

impl Converted {
    fn object(&self) -> Value {
        json!({
            "state": if self.is_original { "original" } else { "converted" },
            "input_bytes": self.bytes.before,
            "output_bytes": self.bytes.after,
            "saved_percent": saved_percent(self.bytes.before, self.bytes.after),
            "width": self.width,
            "height": self.height,
            "milliseconds": milliseconds(self.spent),
            "coding": self.coding,
            "quality": self.quality,
            "score": self.score,
            "placeholder": self.placeholder,
        })
    }
}

impl fmt::Display for Converted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}, ", self.width, self.height)?;
        if self.is_original {
            write!(
                f,
                "original, since WebP takes {}",
                HumanBytes(self.webp_bytes)
            )?;
        } else {
            f.write_str(self.coding)?;
            if let Some(quality) = self.quality.filter(|_| self.is_found) {
                write!(f, " at quality {quality}")?;
            }
            if let Some(score) = self.score {
                write!(f, ", score {score:.1}")?;
            }
        }
        write!(f, ", {}, {} ms", self.bytes, self.spent.as_millis())?;
        match &self.placeholder {
            Some(hash) => write!(f, ", placeholder {hash}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bytes { before, after } = *self;
        write!(f, "{} -> {}", HumanBytes(before), HumanBytes(after))?;
        match saved_percent(before, after) {
            Some(percent) => write!(f, " ({percent} % saved)"),
            None => Ok(()),
        }
    }
}

/// The total of all pictures.
#[derive(Clone, Copy, Default)]
pub(super) struct Total {
    pub(super) converted: usize,
    pub(super) planned: usize,
    pub(super) skipped: usize,
    pub(super) failed: usize,
    pub(super) bytes: Bytes,
}

impl Total {
    pub(super) fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Converted(converted) => {
                self.converted += 1;
                self.bytes.before += converted.bytes.before;
                self.bytes.after += converted.bytes.after;
            }
            Outcome::Planned => self.planned += 1,
            Outcome::Skipped { .. } => self.skipped += 1,
        }
    }

    /// `3 pictures, 1 skipped, 1 failed in 2.1 s: 3 MiB -> 1 MiB (66 % saved)`
    pub(super) fn line(&self, spent: Duration, is_dry_run: bool) -> String {
        let pictures = |number: usize| count(number as u64, "picture");
        let mut line = if is_dry_run {
            format!("{} would be converted", pictures(self.planned))
        } else {
            pictures(self.converted)
        };
        for (number, what) in [(self.skipped, "skipped"), (self.failed, "failed")] {
            if number > 0 {
                line = format!("{line}, {number} {what}");
            }
        }
        if !is_dry_run {
            line = format!("{line} in {:.1} s", spent.as_secs_f64());
        }
        if self.converted > 0 {
            line = format!("{line}: {}", self.bytes);
        }
        line
    }

    pub(super) fn object(&self, spent: Duration) -> Value {
        let Bytes { before, after } = self.bytes;
        json!({ "total": {
            "pictures": self.converted + self.planned + self.skipped + self.failed,
            "converted": self.converted,
            "planned": self.planned,
            "skipped": self.skipped,
            "failed": self.failed,
            "input_bytes": before,
            "output_bytes": after,
            "saved_percent": saved_percent(before, after),
            "milliseconds": milliseconds(spent),
        } })
    }
}

fn milliseconds(spent: Duration) -> u64 {
    u64::try_from(spent.as_millis()).unwrap_or(u64::MAX)
}
