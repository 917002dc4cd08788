//! The one hand-over: a [`Job`] goes from the event loop to a worker through a queue, and its
//! [`Response`] comes back through the event loop's inbox.

use super::byte_queue::ByteQueue;
use super::kind::{Owner, WorkKind};
use super::rejection::Rejection;
use super::response::{Parts, Response};
use super::slab::Key;
use crate::admission::Share;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;
use towebp_encoder::Cancel;

/// A request that was admitted, with the results of admission and the way to its response. It waits
/// in the event loop until the request is complete; if the client leaves before, it is dropped.
pub trait Ticket: Send + 'static {
    /// Adds the next bytes of the request's body to `body`, which the worker gets: as they are,
    /// unless the worker wants something that is within them. `to_come` is how many are known to
    /// follow. The event loop calls it while the body arrives; it must not block.
    fn receive(&mut self, bytes: &[u8], to_come: Option<u64>, body: &mut ByteQueue) {
        body.push(bytes, to_come);
    }

    /// Returns whether a worker can begin. The event loop calls it once the request is complete,
    /// and again after `waker` was used or the time that it gave is over. It must not block.
    fn prepare(&mut self, waker: &Waker) -> Preparation;

    /// Bytes of memory that it holds.
    fn held(&self) -> usize;

    /// Answers the request on a worker's thread. `body` is the part of the body that the ticket
    /// kept.
    fn answer(self: Box<Self>, body: ByteQueue, handover: Handover);

    /// Makes the response that rejects the request. The event loop calls it; it must not block.
    fn reject(&self, rejection: Rejection) -> Response;
}

/// Whether a worker can begin with a request, or go on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// A worker can begin.
    Ready,
    /// A worker can go on. Its memory is reserved, so it goes before requests that are merely
    /// ready.
    Granted,
    /// Something is missing that arrives by itself.
    Pending {
        /// When to call [`Ticket::prepare`] again at the latest.
        until: Instant,
    },
    /// Other requests have the memory that it needs. It is woken when its turn comes; until then
    /// the time limit of the queue applies.
    Queued,
}

/// The way from a worker back to the event loop.
pub struct Handover {
    /// Set once nobody waits for the response any more: the client closed its connection, or its
    /// sending side.
    pub cancel: Arc<Cancel<'static>>,
    /// When the request began to wait for a worker: it was complete, and its ticket ready.
    pub queued_since: Instant,
    /// Makes the event loop call [`Ticket::prepare`] again, if the ticket goes back there.
    pub waker: Waker,
    /// The way back.
    pub reply: Reply,
}

/// Work for a worker.
pub(super) enum Work {
    /// A complete request.
    Request {
        ticket: Box<dyn Ticket>,
        body: ByteQueue,
    },
    /// The next part of a response that has begun.
    Parts(Parts),
}

impl Work {
    /// Bytes of memory that it holds.
    pub(super) fn held(&self) -> usize {
        match self {
            Work::Request { ticket, body } => body.held() + ticket.held(),
            Work::Parts(_) => 0,
        }
    }
}

/// The next piece of work of a worker.
pub(super) struct Job {
    pub work: Work,
    pub handover: Handover,
}

impl Job {
    /// Does it, on a worker's thread.
    pub(super) fn run(self) {
        let Job { work, handover } = self;
        match work {
            Work::Request { ticket, body } => ticket.answer(body, handover),
            Work::Parts(mut parts) => handover.reply.end(match parts.next() {
                Some(Ok(part)) => JobResult::Part(part, parts),
                Some(Err(_)) => JobResult::Failed,
                None => JobResult::LastPart,
            }),
        }
    }
}

/// The result of a job.
pub(super) enum JobResult {
    /// The response, or its head and first part.
    Response(Response),
    /// The request, which waits for memory that others have.
    Waiting(Box<dyn Ticket>),
    /// The next part of a response, and the iterator of the parts after it.
    Part(Vec<u8>, Parts),
    /// All parts of the response were given before.
    LastPart,
    /// There is nothing more to send.
    Failed,
}

impl std::fmt::Debug for JobResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            JobResult::Response(_) => "Response",
            JobResult::Waiting(_) => "Waiting",
            JobResult::Part(..) => "Part",
            JobResult::LastPart => "LastPart",
            JobResult::Failed => "Failed",
        })
    }
}

/// The way of a response back to the event loop. If it is dropped unused, by a panic, the client
/// gets a 500.
pub struct Reply {
    exchange: Key,
    inbox: Inbox,
    is_sent: bool,
}

impl Reply {
    pub(super) fn new(exchange: Key, inbox: &Inbox) -> Reply {
        Reply {
            exchange,
            inbox: inbox.clone(),
            is_sent: false,
        }
    }

    /// Hands the response to the event loop.
    pub fn send(self, response: Response) {
        self.end(JobResult::Response(response));
    }

    /// Hands the request back to the event loop, where it waits for memory that others have.
    pub fn wait(self, ticket: Box<dyn Ticket>) {
        self.end(JobResult::Waiting(ticket));
    }

    fn end(mut self, outcome: JobResult) {
        self.is_sent = true;
        self.inbox.push(Message::Reply(self.exchange, outcome));
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.is_sent {
            let failed = Message::Reply(self.exchange, JobResult::Failed);
            self.inbox.push(failed);
        }
    }
}

/// A job that a worker has, as the event loop remembers it.
pub(super) struct Exchange {
    /// The connection of the client that waits for the response; `None` once it is gone.
    pub client: Option<Key>,
    /// The owner of the request.
    pub owner: Owner,
    /// The kind of work.
    pub kind: WorkKind,
    /// When it was handed over.
    pub since: Instant,
    /// When it began to wait for a worker.
    pub queued_since: Instant,
    /// Stops the worker.
    pub cancel: Arc<Cancel<'static>>,
    /// The memory that the worker has of the request.
    pub share: Share,
}

/// Makes the event loop call [`Ticket::prepare`] of one request again, from any thread.
#[derive(Clone, Debug)]
pub struct Waker {
    key: Key,
    /// A request that waits for its turn has its own waker in the queue of those that wait. If it
    /// lay in an inbox that it kept, neither would ever go.
    inbox: Weak<Messages>,
}

impl Waker {
    pub(super) fn new(key: Key, inbox: &Inbox) -> Waker {
        Waker {
            key,
            inbox: Arc::downgrade(&inbox.0),
        }
    }

    /// Reports that the ticket may be ready.
    pub fn wake(&self) {
        if let Some(messages) = self.inbox.upgrade() {
            Inbox(messages).push(Message::Prepare(self.key));
        }
    }
}

/// A message of another thread to the event loop.
#[derive(Debug)]
pub(super) enum Message {
    /// The ticket of this connection's request is to be prepared again.
    Prepare(Key),
    /// A worker has ended this exchange.
    Reply(Key, JobResult),
}

/// The messages of other threads, in the order in which they came.
#[derive(Clone, Debug)]
pub(super) struct Inbox(Arc<Messages>);

#[derive(Debug)]
struct Messages {
    list: Mutex<Vec<Message>>,
    waker: Arc<mio::Waker>,
}

impl Inbox {
    pub(super) fn new(waker: Arc<mio::Waker>) -> Inbox {
        Inbox(Arc::new(Messages {
            list: Mutex::default(),
            waker,
        }))
    }

    /// Takes all that were added since the last call.
    pub(super) fn take(&self) -> Vec<Message> {
        // A Vec of messages is whole at all times, even after a panic.
        std::mem::take(&mut *self.0.list.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn push(&self, message: Message) {
        let mut messages = self.0.list.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = messages.is_empty();
        messages.push(message);
        drop(messages);
        // The thread that added the first one has woken it.
        if is_first && let Err(error) = self.0.waker.wake() {
            // The request goes on when its time is over.
            log::error!("the event loop cannot be woken: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::slab::Slab;

    /// A request in a queue that wakes it.
    struct Waits(Arc<Mutex<Vec<Waker>>>);

    impl Ticket for Waits {
        fn prepare(&mut self, waker: &Waker) -> Preparation {
            self.0.lock().unwrap().push(waker.clone());
            Preparation::Queued
        }

        fn held(&self) -> usize {
            0
        }

        fn answer(self: Box<Self>, _: ByteQueue, handover: Handover) {
            handover.reply.wait(self);
        }

        fn reject(&self, _: Rejection) -> Response {
            unreachable!("nobody is there any more")
        }
    }

    #[test]
    fn a_request_that_is_handed_back_after_the_end_is_dropped() {
        let poll = mio::Poll::new().unwrap();
        let key = Slab::new().insert_with(|_| Ok::<_, ()>(())).unwrap();
        let waker = mio::Waker::new(poll.registry(), key.token()).unwrap();
        let inbox = Inbox::new(Arc::new(waker));
        let queue = Arc::new(Mutex::new(Vec::new()));
        let mut ticket = Box::new(Waits(Arc::clone(&queue)));
        let waker = Waker::new(key, &inbox);
        assert_eq!(ticket.prepare(&waker), Preparation::Queued);
        let handover = Handover {
            cancel: Arc::default(),
            queued_since: Instant::now(),
            waker,
            reply: Reply::new(key, &inbox),
        };
        drop(inbox);
        ticket.answer(ByteQueue::default(), handover);
        assert_eq!(Arc::strong_count(&queue), 1, "the request keeps itself");
        queue.lock().unwrap()[0].wake();
    }
}
