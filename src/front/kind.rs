//! The kind of work of a request, and its owner.

use std::net::IpAddr;

/// A kind of work. All kinds share the worker threads, of which each may have so many that none
/// waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// A conversion: milliseconds to seconds.
    Conversion,
    /// A page: milliseconds.
    Page,
    /// Whether the service can do its work, which must not wait for it.
    Readiness,
}

impl WorkKind {
    /// All, in the order of their numbers.
    pub const ALL: [WorkKind; 3] = [WorkKind::Conversion, WorkKind::Page, WorkKind::Readiness];
}

/// Among whom workers and memory are shared fairly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// An account, by its number.
    Account(u64),
    /// The client's IPv4 address or IPv6 /64, for a request without an account.
    Address(IpAddr),
}

impl Owner {
    /// The number of the account, if it is one.
    pub fn account(self) -> Option<u64> {
        match self {
            Owner::Account(number) => Some(number),
            Owner::Address(_) => None,
        }
    }
}
