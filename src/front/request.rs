//! A request that was admitted, and a body on its way in.

use super::admission::Admitted;
use super::byte_queue::ByteQueue;
use super::chunked::Chunked;
use super::min_rate::MinRate;
use super::rejection::Rejection;
use super::settings::Settings;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// A request that was admitted.
pub struct AdmittedRequest {
    /// The decision of admission.
    pub admitted: Admitted,
    /// The part of its body that its ticket keeps, without any coding.
    pub body: ByteQueue,
    /// Bytes of the body that have arrived.
    pub length: u64,
}

/// A request whose body is on its way in.
pub struct IncomingBody {
    request: AdmittedRequest,
    remaining: Remaining,
    began: Instant,
    rate: MinRate,
}

/// The rest of a body.
pub enum Remaining {
    /// This number of bytes.
    Length(u64),
    /// The rest of the chunks.
    Chunks(Chunked),
}

impl IncomingBody {
    /// A body of which nothing has arrived.
    pub fn new(request: AdmittedRequest, remaining: Remaining, now: Instant) -> IncomingBody {
        IncomingBody {
            request,
            remaining,
            began: now,
            rate: MinRate::new(now),
        }
    }

    /// The request.
    pub fn request(&self) -> &AdmittedRequest {
        &self.request
    }

    /// Takes the bytes that belong to the body, and returns how many they are.
    ///
    /// # Errors
    /// The body is too large, or its chunks cannot be read.
    pub fn take(&mut self, bytes: &[u8], rate: u64, now: Instant) -> Result<usize, Rejection> {
        let limit = self.request.admitted.body_limit;
        let AdmittedRequest {
            admitted,
            body,
            length,
            ..
        } = &mut self.request;
        let mut keep = |bytes: &[u8], to_come| admitted.ticket.receive(bytes, to_come, body);
        let before = *length;
        let remaining = &mut self.remaining;
        // A fault of the ticket ends this request alone.
        let taken = catch_unwind(AssertUnwindSafe(|| match remaining {
            Remaining::Length(left) => {
                let count = (*left).min(bytes.len() as u64);
                *left -= count;
                *length += count;
                keep(&bytes[..count as usize], Some(*left));
                Ok(count as usize)
            }
            Remaining::Chunks(decoder) => decoder.read(bytes, |data| {
                *length += data.len() as u64;
                keep(data, None);
            }),
        }));
        let used = taken.unwrap_or(Err(Rejection::WorkerFailed))?;
        if *length > limit {
            return Err(Rejection::BodyTooLarge { limit });
        }
        self.rate.record((*length - before) as usize, rate, now);
        Ok(used)
    }

    /// Whether all of it has arrived.
    pub fn is_complete(&self) -> bool {
        match &self.remaining {
            Remaining::Length(left) => *left == 0,
            Remaining::Chunks(decoder) => decoder.is_complete(),
        }
    }

    /// Most bytes that may be read from the socket, so that the next request stays there.
    pub fn readable(&self) -> usize {
        match self.remaining {
            Remaining::Length(left) => usize::try_from(left).unwrap_or(usize::MAX),
            Remaining::Chunks(_) => usize::MAX,
        }
    }

    /// Bytes that have arrived, without any coding.
    pub fn received(&self) -> u64 {
        self.request.length
    }

    /// Bytes of memory that it holds.
    pub fn held(&self) -> usize {
        self.request.body.held()
    }

    /// When it began.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// When its time is over.
    pub fn deadline(&self, settings: &Settings) -> Instant {
        self.rate.deadline().min(self.began + settings.body_time)
    }

    /// The request with the received part of its body.
    pub fn into_request(self) -> AdmittedRequest {
        self.request
    }
}
