//! What admission decides of a request by its head, and what the event loop keeps of it until a worker has the request.

use std::net::IpAddr;

/// A request that is worth its body.
#[derive(Clone, Copy, Debug)]
pub struct Admitted {
    /// Most bytes that the body may have.
    pub body_limit: u64,
    /// The workers that answer it.
    pub pool: Pool,
    /// With whose requests it waits in one queue, and with whose it takes turns.
    pub owner: Owner,
}

/// Workers that answer one kind of request. No pool waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Conversions: seconds of work each.
    Conversions,
    /// Everything else: milliseconds each.
    Pages,
}

impl Pool {
    /// All of them, in the order of their numbers.
    pub const ALL: [Pool; 2] = [Pool::Conversions, Pool::Pages];
}

/// Among whom workers are shared fairly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// An account, by its number.
    Account(u64),
    /// Whoever sends from this address, or from this IPv6 network, where nobody has signed in.
    Address(IpAddr),
}
