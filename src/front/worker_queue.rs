//! One pool's queue of complete requests, shared fairly between their owners.

use super::admission::Owner;
use super::slab::Key;
use crate::admission::FairQueue;
use std::collections::HashMap;
use std::time::Duration;

/// The requests that wait for the workers of one pool, and how many requests of each owner these
/// workers have.
#[derive(Debug)]
pub struct WorkerQueue {
    queue: FairQueue<Owner, Key>,
    working: HashMap<Owner, usize>,
    /// Mean time that a worker has a request.
    service_time: Duration,
}

impl Default for WorkerQueue {
    fn default() -> WorkerQueue {
        WorkerQueue {
            queue: FairQueue::default(),
            working: HashMap::new(),
            service_time: Duration::from_millis(100),
        }
    }
}

impl WorkerQueue {
    /// Adds a request.
    pub fn push(&mut self, owner: Owner, key: Key) {
        self.queue.push(owner, key);
    }

    /// Removes a request whose client left or whose time is over.
    pub fn remove(&mut self, owner: Owner, key: Key) {
        self.queue.remove(owner, |other| *other == key);
    }

    /// Takes the next request to be handed over, with `free` workers free. An owner gets another
    /// worker only while it has fewer than are free: alone it has half of them at most, and another
    /// owner that comes finds some.
    pub fn pop(&mut self, free: usize) -> Option<Key> {
        let working = &self.working;
        let has_few = |owner, _: &Key| working.get(&owner).copied().unwrap_or(0) < free;
        self.queue.pop(has_few).map(|(_, key)| key)
    }

    /// Counts a request of this owner as handed over.
    pub fn begin(&mut self, owner: Owner) {
        *self.working.entry(owner).or_default() += 1;
    }

    /// Counts a request of this owner as answered; a worker had it for `spent`.
    pub fn end(&mut self, owner: Owner, spent: Duration) {
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
        self.queue.len()
    }

    /// How long a request that comes now may wait for one of `workers`.
    pub fn expected_wait(&self, workers: usize) -> Duration {
        let ahead = self.queue.len() as u32 + 1;
        self.service_time.saturating_mul(ahead) / workers.max(1) as u32
    }
}
