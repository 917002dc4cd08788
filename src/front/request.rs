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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::settings::WINDOW;
    use crate::front::{Handover, Owner, Preparation, Response, Ticket, Waker, WorkKind};
    use std::time::Duration;

    /// It keeps the body as it is.
    struct Keeper;

    impl Ticket for Keeper {
        fn prepare(&mut self, _: &Waker) -> Preparation {
            Preparation::Ready
        }

        fn held(&self) -> usize {
            0
        }

        fn answer(self: Box<Self>, _: ByteQueue, _: Handover) {}

        fn reject(&self, rejection: Rejection) -> Response {
            panic!("{rejection:?}")
        }
    }

    fn incoming(body_limit: u64, remaining: Remaining, now: Instant) -> IncomingBody {
        let admitted = Admitted {
            body_limit,
            kind: WorkKind::Page,
            owner: Owner::Account(1),
            ticket: Box::new(Keeper),
        };
        let request = AdmittedRequest {
            admitted,
            body: ByteQueue::default(),
            length: 0,
        };
        IncomingBody::new(request, remaining, now)
    }

    #[test]
    fn a_body_ends_at_its_length_and_what_follows_is_left() {
        let now = Instant::now();
        let mut body = incoming(5, Remaining::Length(5), now);
        assert_eq!(body.take(b"abc", 1, now), Ok(3));
        assert_eq!((body.readable(), body.received()), (2, 3));
        assert!(!body.is_complete());
        assert_eq!(body.take(b"deGET /", 1, now), Ok(2));
        assert_eq!((body.readable(), body.received()), (0, 5));
        assert!(body.is_complete() && body.held() >= 5);
        assert_eq!(body.request.body.into_vec(), b"abcde");
    }

    #[test]
    fn chunks_are_held_to_the_limit_to_the_byte() {
        let now = Instant::now();
        let mut body = incoming(5, Remaining::Chunks(Chunked::START), now);
        let most = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        assert_eq!(body.take(&most[..9], 1, now), Ok(9));
        assert!(!body.is_complete());
        assert_eq!(body.take(&most[9..], 1, now), Ok(most.len() - 9));
        assert!(body.is_complete());
        assert_eq!((body.received(), body.readable()), (5, usize::MAX));
        let mut body = incoming(5, Remaining::Chunks(Chunked::START), now);
        assert_eq!(body.take(&most[..9], 1, now), Ok(9));
        let more = body.take(b"3\r\ndef\r\n", 1, now);
        assert_eq!(more, Err(Rejection::BodyTooLarge { limit: 5 }));
    }

    #[test]
    fn each_window_needs_its_bytes() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut body = incoming(12, Remaining::Length(12), begin);
        let needed = WINDOW.as_secs() as usize;
        for (count, now, since) in [(needed / 2 - 1, 1, 0), (needed / 2, 2, 0), (1, 3, 3)] {
            let bytes = [b'x'; 12];
            assert_eq!(body.take(&bytes[..count], 1, at(now)), Ok(count));
            assert_eq!(body.rate.deadline(), at(since) + WINDOW, "{count} bytes");
        }
    }
}
