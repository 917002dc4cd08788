//! The watermark's picture, fetched while its request waits in the event loop, so that no worker
//! and no reserved memory waits for its host.

use super::metrics::Metrics;
use super::problem::Problem;
use crate::fetch::{FetchError, Fetched, Fetcher, Pending};
use crate::front::{Preparation, Waker};
use crate::store::AccountId;
use std::sync::Arc;
use std::time::Instant;

/// The fetch of one request's watermark picture.
pub struct WatermarkFetch {
    account: AccountId,
    progress: Progress,
    fetcher: Fetcher,
    metrics: Metrics,
}

/// The progress of the fetch.
enum Progress {
    /// The request needs no picture.
    NotNeeded,
    /// The fetch of this URL begins once the request is whole.
    Planned(String),
    /// The fetch is under way.
    Started(Pending),
    /// The fetch has ended.
    Done(Result<Fetched, FetchError>),
}

impl WatermarkFetch {
    /// Plans the fetch of this URL, if one is given, for a request of `account`.
    pub fn new(
        account: AccountId,
        url: Option<String>,
        fetcher: Fetcher,
        metrics: Metrics,
    ) -> WatermarkFetch {
        WatermarkFetch {
            account,
            progress: url.map_or(Progress::NotNeeded, Progress::Planned),
            fetcher,
            metrics,
        }
    }

    /// Plans the fetch of this URL instead, if one is given.
    pub fn plan(&mut self, url: Option<String>) {
        self.progress = url.map_or(Progress::NotNeeded, Progress::Planned);
    }

    /// Begins the fetch if it is planned, and returns whether it is over. `waker` is used when it
    /// is.
    pub fn prepare(&mut self, waker: &Waker) -> Preparation {
        if let Progress::Planned(url) = &self.progress {
            let waker = waker.clone();
            let wake = Box::new(move || waker.wake());
            match self.fetcher.begin(self.account.0, url, wake) {
                Ok(pending) => self.progress = Progress::Started(pending),
                Err(error) => return self.end(Err(error)),
            }
        }
        let Progress::Started(pending) = &self.progress else {
            return Preparation::Ready;
        };
        match (pending.outcome(Instant::now()), pending.deadline()) {
            (None, Some(until)) => Preparation::Pending { until },
            (outcome, _) => self.end(outcome.unwrap_or(Err(FetchError::Failed))),
        }
    }

    /// Bytes of memory that the picture takes. Other requests may hold the same bytes: each counts
    /// them, since any may be the last to give them up.
    pub fn held(&self) -> usize {
        match &self.progress {
            Progress::Done(Ok(fetched)) => fetched.bytes.len(),
            _ => 0,
        }
    }

    /// Takes the picture's file; `None` if the request needs none.
    ///
    /// # Errors
    /// Why it could not be fetched.
    pub fn take_picture(&mut self) -> Result<Option<Arc<[u8]>>, Problem> {
        match std::mem::replace(&mut self.progress, Progress::NotNeeded) {
            Progress::NotNeeded => Ok(None),
            Progress::Done(outcome) => Ok(Some(outcome?.bytes)),
            // The event loop hands over no request whose fetch is not over.
            Progress::Planned(_) | Progress::Started(_) => Err(FetchError::Failed.into()),
        }
    }

    fn end(&mut self, outcome: Result<Fetched, FetchError>) -> Preparation {
        self.metrics.fetched(&outcome);
        self.progress = Progress::Done(outcome);
        Preparation::Ready
    }
}
