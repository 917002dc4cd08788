//! The queue of complete requests of one kind, shared fairly between their owners.

use super::kind::Owner;
use super::slab::Key;
use crate::admission::FairQueue;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// The requests of one kind that wait for workers, and how many of each owner workers have.
#[derive(Debug)]
pub struct WorkerQueue {
    queue: FairQueue<Owner, Key>,
    /// Requests whose memory was granted; they go first.
    granted: VecDeque<Key>,
    working: HashMap<Owner, usize>,
    /// The number of workers that this kind may still get.
    free: usize,
    workers: usize,
    /// Mean time that a worker has a request.
    service_time: Duration,
}

impl WorkerQueue {
    /// An empty queue of a kind that may have so many workers.
    pub fn new(workers: usize) -> WorkerQueue {
        WorkerQueue {
            queue: FairQueue::default(),
            granted: VecDeque::new(),
            working: HashMap::new(),
            free: workers,
            workers,
            service_time: Duration::from_millis(100),
        }
    }

    /// Adds a request.
    pub fn push(&mut self, owner: Owner, key: Key) {
        self.queue.push(owner, key);
    }

    /// Adds a request whose memory was granted.
    pub fn push_granted(&mut self, key: Key) {
        self.granted.push_back(key);
    }

    /// Removes a request whose client left or whose time is over.
    pub fn remove(&mut self, owner: Owner, key: Key) {
        self.granted.retain(|other| *other != key);
        self.queue.remove(owner, |other| *other == key);
    }

    /// Takes the next request to be handed over, if a worker is free. An owner gets another worker
    /// only while it has fewer than are free: alone it has half of them at most, and another owner
    /// that comes finds some.
    pub fn pop(&mut self) -> Option<Key> {
        let (working, free) = (&self.working, self.free);
        if free == 0 {
            return None;
        }
        if let Some(key) = self.granted.pop_front() {
            return Some(key);
        }
        let has_few = |owner, _: &Key| working.get(&owner).copied().unwrap_or(0) < free;
        self.queue.pop(has_few).map(|(_, key)| key)
    }

    /// Counts a request of this owner as handed over.
    pub fn begin(&mut self, owner: Owner) {
        self.free -= 1;
        *self.working.entry(owner).or_default() += 1;
    }

    /// Counts a request of this owner as answered; a worker had it for `spent`.
    pub fn end(&mut self, owner: Owner, spent: Duration) {
        self.free += 1;
        if let Some(count) = self.working.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.working.remove(&owner);
            }
        }
        // An average over about the last ten requests.
        self.service_time = (self.service_time * 7 + spent) / 8;
    }

    /// How many requests wait.
    pub fn len(&self) -> usize {
        self.queue.len() + self.granted.len()
    }

    /// How long a request that comes now may wait for a worker.
    pub fn expected_wait(&self) -> Duration {
        let ahead = self.queue.len() as u32 + 1;
        self.service_time.saturating_mul(ahead) / self.workers.max(1) as u32
    }
}
