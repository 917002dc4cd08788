//! The units and ranges of settings, and how a value is read into its place and shown.

use super::address::{Listen, address, listen};
use crate::admission::{Network, Rate};
use crate::http::{AllowedOrigin, Signup, nearest};
use crate::process::logging::LogFormat;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;
use towebp_pipeline::conversion::size;
use towebp_pipeline::image::AcceptedFormats;

/// The unit and the range of a value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// On or off.
    Switch,
    /// A whole number.
    Number(u64, u64),
    /// A number of pixels, perhaps with the unit `k` or `M`.
    Pixels(u64, u64),
    /// A number of bytes, perhaps with a unit such as `kB` or `MiB`.
    Bytes(u64, u64),
    /// A whole number of seconds.
    Seconds(u64, u64),
    /// A whole number of days.
    Days(u64, u64),
    /// One of a few words.
    Words(&'static [&'static str]),
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A text whose form its field checks; this is the name of the value.
    Text(&'static str),
    /// As `Text`, and may be given more than once.
    List(&'static str),
    /// Files, which may be given more than once.
    Files,
}

impl Kind {
    /// The name of the value in help texts; nothing for a switch.
    pub fn value_name(self) -> Option<String> {
        let name = match self {
            Kind::Switch => return None,
            Kind::Number(..) => "NUMBER",
            Kind::Pixels(..) => "PIXELS",
            Kind::Bytes(..) => "BYTES",
            Kind::Seconds(..) => "SECONDS",
            Kind::Days(..) => "DAYS",
            Kind::Words(words) => return Some(words.join("|")),
            Kind::File | Kind::Files => "FILE",
            Kind::Folder => "FOLDER",
            Kind::Text(name) | Kind::List(name) => name,
        };
        Some(name.to_owned())
    }

    /// The range, as it would be given; nothing if there is none.
    pub fn range(self) -> String {
        match self {
            Kind::Number(least, most) if most == u64::MAX => format!("{least} or more"),
            Kind::Bytes(least, most) => format!("{} to {}", bytes(least), bytes(most)),
            Kind::Number(least, most)
            | Kind::Pixels(least, most)
            | Kind::Seconds(least, most)
            | Kind::Days(least, most) => format!("{least} to {most}"),
            _ => String::new(),
        }
    }

    /// Reads one of a few words, and returns its index.
    fn word(self, value: &OsStr) -> Result<usize, String> {
        let Kind::Words(words) = self else {
            unreachable!("{self:?} has no words");
        };
        let text = value.to_string_lossy();
        let index = words.iter().position(|word| *word == text.trim());
        index.ok_or_else(|| {
            let meant = nearest(&text, words);
            let meant = meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"));
            let (last, others) = words.split_last().expect("there are words");
            format!("{text:?}: expected {} or {last}{meant}", others.join(", "))
        })
    }

    /// Reads a number, which has to be in the range.
    ///
    /// # Errors
    /// The end of a sentence that begins with the flag.
    pub fn number(self, value: &OsStr) -> Result<u64, String> {
        let text = value.to_str().map(str::trim);
        let plain = |text: &str| text.parse().ok();
        let (what, number, least, most) = match self {
            Kind::Pixels(least, most) => ("a number such as 10M", text.and_then(size), least, most),
            Kind::Bytes(least, most) => {
                let what = "a number of bytes, such as 33554432, 500kB or 32MiB";
                (what, text.and_then(size), least, most)
            }
            Kind::Seconds(least, most) => {
                let what = "a whole number of seconds, such as 10";
                (what, text.and_then(plain), least, most)
            }
            Kind::Number(least, most) | Kind::Days(least, most) => {
                ("a whole number", text.and_then(plain), least, most)
            }
            _ => unreachable!("{self:?} is no number"),
        };
        let number = number.ok_or_else(|| {
            let (given, range) = (value.to_string_lossy(), self.range());
            format!("{given:?}: expected {what}, {range}")
        })?;
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        Err(format!("{}: allowed are {}", value.display(), self.range()))
    }
}

/// The field of a setting's value.
pub trait Field {
    /// Reads the values that are given.
    ///
    /// # Errors
    /// The end of a sentence that begins with the flag.
    fn set(&mut self, kind: Kind, values: &[&OsStr]) -> Result<(), String>;

    /// The present value, as it would be given.
    fn text(&self, kind: Kind) -> String;
}

/// A number that may be a setting.
trait Number: Copy {
    /// `None` if 0 stands for none.
    fn of(number: u64) -> Option<Self>;
    fn number(self) -> u64;
}

fn last<'v>(values: &[&'v OsStr]) -> &'v OsStr {
    values.last().expect("a setting that is given has a value")
}

/// A number of bytes in the largest binary unit that it is a multiple of.
fn bytes(number: u64) -> String {
    let mut units = [(30, "GiB"), (20, "MiB"), (10, "KiB")].into_iter();
    let unit = units.find(|(bits, _)| number > 0 && number.trailing_zeros() >= *bits);
    unit.map_or(number.to_string(), |(bits, name)| {
        format!("{}{name}", number >> bits)
    })
}

impl Field for bool {
    fn set(&mut self, kind: Kind, values: &[&OsStr]) -> Result<(), String> {
        let value = last(values);
        if let Kind::Words(_) = kind {
            *self = kind.word(value)? == 0;
            return Ok(());
        }
        let word = value.to_string_lossy().trim().to_ascii_lowercase();
        *self = match word.as_str() {
            "1" | "true" | "yes" | "on" => true,
            "0" | "false" | "no" | "off" => false,
            _ => {
                return Err(format!(
                    "{:?}: allowed are 1, true or on, and 0, false or off",
                    value.to_string_lossy()
                ));
            }
        };
        Ok(())
    }

    fn text(&self, _: Kind) -> String {
        if *self { "on" } else { "off" }.to_owned()
    }
}

macro_rules! numbers {
    ($($type:ty: $from:expr, $to:expr;)*) => {$(
        impl Number for $type {
            fn of(number: u64) -> Option<$type> {
                let from: fn(u64) -> Option<$type> = $from;
                from(number)
            }

            fn number(self) -> u64 {
                let to: fn($type) -> u64 = $to;
                to(self)
            }
        }
    )*};
}

numbers! {
    u32: |number| number.try_into().ok(), u64::from;
    u64: Some, |number| number;
    usize: |number| number.try_into().ok(), |number| number as u64;
    NonZeroU32: |number| NonZeroU32::new(number.try_into().ok()?), |number| number.get().into();
    NonZeroU64: NonZeroU64::new, NonZeroU64::get;
    NonZeroUsize: |number| NonZeroUsize::new(number.try_into().ok()?), |number| number.get() as u64;
    Duration: |seconds| Some(Duration::from_secs(seconds)), |time| time.as_secs();
}

impl<N: Number> Field for N {
    fn set(&mut self, kind: Kind, values: &[&OsStr]) -> Result<(), String> {
        let number = N::of(kind.number(last(values))?);
        *self = number.expect("the row's range suits its place");
        Ok(())
    }

    fn text(&self, kind: Kind) -> String {
        match kind {
            Kind::Bytes(..) => bytes(self.number()),
            _ => self.number().to_string(),
        }
    }
}

impl<N: Number> Field for Option<N> {
    fn set(&mut self, kind: Kind, values: &[&OsStr]) -> Result<(), String> {
        *self = N::of(kind.number(last(values))?);
        Ok(())
    }

    fn text(&self, _: Kind) -> String {
        self.map_or(0, Number::number).to_string()
    }
}

/// The number of times in the window that the default has; 0 is no limit.
impl Field for Option<Rate> {
    fn set(&mut self, kind: Kind, values: &[&OsStr]) -> Result<(), String> {
        let times = NonZeroU32::of(kind.number(last(values))?);
        let window = self.map(|rate| rate.window);
        let window = window.expect("a setting is set once, and has a default");
        *self = times.map(|times| Rate { times, window });
        Ok(())
    }

    fn text(&self, _: Kind) -> String {
        self.map_or(0, |rate| rate.times.get()).to_string()
    }
}

macro_rules! fields {
    ($($type:ty: $from:expr, $text:expr;)*) => {$(
        impl Field for $type {
            fn set(&mut self, kind: Kind, values: &[&OsStr]) -> Result<(), String> {
                let from: fn(Kind, &[&OsStr]) -> Result<$type, String> = $from;
                *self = from(kind, values)?;
                Ok(())
            }

            fn text(&self, _: Kind) -> String {
                let text: fn(&$type) -> String = $text;
                text(self)
            }
        }
    )*};
}

fields! {
    PathBuf: |_, values| Ok(last(values).into()), |path| path.display().to_string();
    Option<PathBuf>: |_, values| Ok(Some(last(values).into())), |_| "none".to_owned();
    Vec<PathBuf>: |_, values| Ok(values.iter().map(PathBuf::from).collect()), |_| "none".to_owned();
    Option<String>: |_, values| read(last(values), |text| Ok(Some(text.to_owned()))), |_| "none".to_owned();
    Option<SocketAddr>: |_, values| read(last(values), |text| address(text).map(Some)), |_| "none".to_owned();
    Vec<Listen>: |_, values| list(values, listen), |listen| match listen[..] {
        [Listen::At(address)] => address.to_string(),
        _ => "stdin".to_owned(),
    };
    Vec<AllowedOrigin>: |_, values| list(values, str::parse), |_| "none".to_owned();
    Vec<Network>: |_, values| list(values, |text| text.parse().map_err(str::to_owned)), |_| "none".to_owned();
    Signup: |kind, values| Ok([Signup::Open, Signup::Closed, Signup::Invite][kind.word(last(values))?]),
        |_| "open".to_owned();
    AcceptedFormats: |kind, values| {
        let word = kind.word(last(values))?;
        Ok(AcceptedFormats { webp: [0, 2].contains(&word), tiff: [1, 2].contains(&word) })
    }, |_| "none".to_owned();
    LogFormat: |kind, values| Ok([LogFormat::Text, LogFormat::Json][kind.word(last(values))?]),
        |_| "text".to_owned();
}

/// Reads a text, and begins its error with it.
fn read<T>(value: &OsStr, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    let text = value.to_str().ok_or("it is not UTF-8".to_owned());
    text.and_then(|text| parse(text.trim()))
        .map_err(|reason| format!("{:?}: {reason}", value.to_string_lossy()))
}

/// Reads lists with commas or spaces in between.
fn list<T>(values: &[&OsStr], parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    for value in values {
        let texts = read(value, |text| Ok(text.to_owned()))?;
        let texts = texts.split([',', ' ', '\t', '\n']);
        for text in texts.filter(|text| !text.is_empty()) {
            all.push(read(OsStr::new(text), &parse)?);
        }
    }
    Ok(all)
}
