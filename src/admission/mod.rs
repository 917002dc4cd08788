//! Resources that requests share, and the limits of one account or one address: memory and workers
//! ([`MemoryBudget`], [`AccountShares`]), turns ([`FairQueue`]), attempts ([`RateLimiter`]),
//! conversions a minute and a month ([`Quotas`]), connections ([`ConnectionCounts`]).

mod account_shares;
mod client_networks;
mod fair_queue;
mod memory_budget;
mod quota;
mod rate_limit;

pub use account_shares::{AccountShares, Share};
pub use client_networks::{
    CLIENT_FACTORS, ConnectionCounts, Network, client_group, client_networks, surrounding_network,
};
pub(crate) use fair_queue::FairQueue;
pub use memory_budget::{
    MemoryBudget, MemoryUsage, Need, PendingReservation, Reservation, ReserveError,
};
pub use quota::{
    ExceededLimit, LimitScope, LimitStatus, QuotaError, QuotaExceeded, QuotaGuard, Quotas,
    RemainingQuota,
};
pub use rate_limit::{ClientRateLimiter, Rate, RateExceeded, RateLimiter, seconds};
