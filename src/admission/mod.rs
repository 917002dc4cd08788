//! What requests share, and who may have how much of it: memory and workers ([`MemoryBudget`]), turns
//! ([`FairQueue`]), attempts and conversions in a span of time ([`RateLimiter`]).

mod client_networks;
mod fair_queue;
mod memory_budget;
mod rate_limit;

pub use client_networks::{CLIENT_FACTORS, ConnectionCounts, Network, client_networks, group};
pub use fair_queue::FairQueue;
pub use memory_budget::{MemoryBudget, MemoryUsage, Reservation, ReserveError};
pub use rate_limit::{ClientRateLimiter, Rate, RateExceeded, RateLimiter, seconds};
