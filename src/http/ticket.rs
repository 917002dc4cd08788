//! A conversion from its admission until a worker has it. The watermark's picture is fetched meanwhile, so that no worker
//! and no reserved memory waits for its host.

use super::convert::Checked;
use super::error::Problem;
use super::metrics::Metrics;
use crate::fetch::{FetchError, Fetched, Fetcher, Pending};
use crate::front::{self, Preparation, Waker};
use crate::store::AccountId;
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

/// What admission has found out about a conversion.
pub struct Ticket {
    checked: Checked,
    watermark: Watermark,
    fetcher: Fetcher,
    metrics: Metrics,
}

/// The file behind `watermark_image`, if that is given, or why there is none.
pub type Picture = Result<Option<Arc<[u8]>>, Problem>;

/// How far the watermark's picture has come.
enum Watermark {
    /// None was asked for.
    None,
    /// The request is not whole yet.
    Later(String),
    Asked(Pending),
    Here(Result<Fetched, FetchError>),
}

impl Ticket {
    /// Of a request that was checked just now.
    pub fn new(checked: Checked, fetcher: Fetcher, metrics: Metrics) -> Ticket {
        let url = checked.params.picture_url.clone();
        Ticket {
            watermark: url.map_or(Watermark::None, Watermark::Later),
            checked,
            fetcher,
            metrics,
        }
    }

    /// The one that went with a request through the event loop.
    ///
    /// # Errors
    /// 500: there is none.
    pub fn from_front(ticket: Option<Box<dyn front::Ticket>>) -> Result<Ticket, Problem> {
        let ticket = ticket.map(|ticket| -> Box<dyn Any> { ticket });
        let ticket = ticket.and_then(|ticket| ticket.downcast().ok());
        ticket
            .map(|ticket| *ticket)
            .ok_or_else(|| Problem::internal("a conversion came without its ticket"))
    }

    /// Whose conversion it is.
    pub fn account(&self) -> AccountId {
        self.checked.account
    }

    /// What the head says, and the watermark's picture.
    pub fn into_parts(self) -> (Checked, Picture) {
        let picture = match self.watermark {
            Watermark::None => Ok(None),
            Watermark::Here(outcome) => outcome.map(|fetched| Some(fetched.bytes)),
            // The event loop hands over what is ready alone.
            Watermark::Later(_) | Watermark::Asked(_) => Err(FetchError::Failed),
        };
        (self.checked, picture.map_err(Problem::from))
    }

    fn arrived(&mut self, outcome: Result<Fetched, FetchError>) -> Preparation {
        self.metrics.fetched(&outcome);
        self.watermark = Watermark::Here(outcome);
        Preparation::Ready
    }
}

impl front::Ticket for Ticket {
    fn prepare(&mut self, waker: &Waker) -> Preparation {
        if let Watermark::Later(url) = &self.watermark {
            let waker = waker.clone();
            let wake = Box::new(move || waker.wake());
            match self.fetcher.begin(self.account().0, url, wake) {
                Ok(pending) => self.watermark = Watermark::Asked(pending),
                Err(error) => return self.arrived(Err(error)),
            }
        }
        let Watermark::Asked(pending) = &self.watermark else {
            return Preparation::Ready;
        };
        match (pending.outcome(Instant::now()), pending.deadline()) {
            (None, Some(until)) => Preparation::Pending { until },
            (outcome, _) => self.arrived(outcome.unwrap_or(Err(FetchError::Failed))),
        }
    }

    fn held(&self) -> usize {
        match &self.watermark {
            // Others may hold the same bytes: each counts them, since any may be the last to give them up.
            Watermark::Here(Ok(fetched)) => fetched.bytes.len(),
            _ => 0,
        }
    }
}
