//! The problems that a check finds, by kind.

use std::collections::BTreeMap;

/// How many rows are named for each kind of problem; the others are only counted.
const MAX_NAMED: usize = 5;

/// Problems by kind.
#[derive(Default)]
pub struct Problems(BTreeMap<&'static str, ProblemKind>);

#[derive(Default)]
struct ProblemKind {
    count: u64,
    names: Vec<String>,
}

impl Problems {
    /// Adds a problem of this kind with a row of this name.
    pub fn add(&mut self, what: &'static str, name: impl Into<String>) {
        let kind = self.0.entry(what).or_default();
        kind.count += 1;
        if kind.names.len() < MAX_NAMED {
            kind.names.push(name.into());
        }
    }

    /// Adds so many problems of this kind, of whose rows the first one has this name.
    #[cfg(feature = "postgres")]
    pub fn add_many(&mut self, what: &'static str, count: u64, name: impl Into<String>) {
        if count > 0 {
            self.add(what, name);
            self.0.entry(what).or_default().count += count - 1;
        }
    }

    /// One sentence for each kind, with a count and the first rows concerned.
    pub fn sentences(&self) -> Vec<String> {
        self.0.iter().map(sentence).collect()
    }
}

fn sentence((what, kind): (&&'static str, &ProblemKind)) -> String {
    let more = kind.count - kind.names.len() as u64;
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{what}: {} ({}{more})", kind.count, kind.names.join(", "))
}
