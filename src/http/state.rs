//! The state that all workers and the event loop share.

use super::asset::Asset;
use super::metrics::Metrics;
use super::readiness::Readiness;
use super::settings::Settings;
use crate::admission::{ClientRateLimiter, MemoryBudget, Quotas, RateLimiter};
use crate::fetch::Fetcher;
use crate::store::{AccountId, Limits, Store};
use std::sync::Arc;
use towebp_pipeline::conversion::{CpuBudget, Fonts};
use towebp_pipeline::image;

/// The state that requests are answered from.
pub struct AppState {
    /// Accounts, sessions and usage.
    pub store: Arc<Store>,
    /// Fetches watermark pictures.
    pub fetcher: Fetcher,
    /// The fonts of text watermarks.
    pub fonts: Fonts,
    /// Bounds on pictures.
    pub limits: image::Limits,
    /// The cores that conversions share.
    pub cpu_budget: CpuBudget,
    /// The memory that conversions share.
    pub memory: MemoryBudget,
    /// The limiters by account and by client address.
    pub limiters: Limiters,
    /// The outcome of the last readiness check.
    pub readiness: Readiness,
    /// The metrics.
    pub metrics: Metrics,
    /// The description of the API: [`describe`](super::openapi::describe).
    pub openapi: Asset,
    /// The settings of the HTTP service.
    pub settings: Settings,
}

/// The limiters of the settings.
pub struct Limiters {
    /// Attempts to sign in, by client address.
    pub(super) signin: Option<ClientRateLimiter>,
    /// Attempts to sign up, by client address.
    pub(super) signup: Option<ClientRateLimiter>,
    /// Changes of tokens, by account.
    pub(super) token_changes: RateLimiter<AccountId>,
    /// Conversions, by account and token.
    pub(super) quotas: Quotas,
}

impl Limiters {
    /// With nothing counted yet.
    pub fn new(settings: &Settings) -> Limiters {
        Limiters {
            signin: settings.signin_rate.map(ClientRateLimiter::new),
            signup: settings.signup_rate.map(ClientRateLimiter::new),
            token_changes: RateLimiter::default(),
            quotas: Quotas::new(Limits {
                per_minute: settings.rate_limit,
                monthly: settings.monthly_quota,
            }),
        }
    }
}
