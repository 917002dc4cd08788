//! Bytes in transit, in blocks: growing copies nothing, and bytes that were passed on are freed at
//! once, so that a body is never held twice.

use std::collections::VecDeque;

/// Bytes of the first block of a body of unknown length. A thousand clients that only begin one
/// cost 4 MB.
const SMALLEST: usize = 4 << 10;

/// Bytes of the largest block. Allocators give blocks of this size back to the system as soon as
/// they are freed.
const LARGEST: usize = 1 << 20;

/// A queue of bytes.
#[derive(Default)]
pub struct ByteQueue {
    queue: VecDeque<Vec<u8>>,
    /// Bytes of the first block that were consumed.
    consumed: usize,
    held: usize,
}

impl ByteQueue {
    /// Adds bytes at the end. `to_come` is how many are known to follow, so that the last block is
    /// no larger than needed.
    pub fn push(&mut self, mut bytes: &[u8], to_come: Option<u64>) {
        while !bytes.is_empty() {
            let space = self
                .queue
                .back()
                .map_or(0, |last| last.capacity() - last.len());
            if space == 0 {
                self.grow(bytes.len(), to_come);
                continue;
            }
            let (now, later) = bytes.split_at(space.min(bytes.len()));
            self.queue
                .back_mut()
                .expect("there is space in it")
                .extend_from_slice(now);
            bytes = later;
        }
    }

    /// Adds a block at the end, without copying it.
    pub fn push_block(&mut self, block: Vec<u8>) {
        if !block.is_empty() {
            self.held += block.capacity();
            self.queue.push_back(block);
        }
    }

    /// The bytes at the front that lie together in memory; empty only if nothing is left.
    pub fn first(&self) -> &[u8] {
        self.queue
            .front()
            .map_or(&[], |first| &first[self.consumed..])
    }

    /// Removes `count` of the bytes that [`ByteQueue::first`] gave.
    pub fn consume(&mut self, count: usize) {
        self.consumed += count;
        if self
            .queue
            .front()
            .is_some_and(|first| self.consumed == first.len())
        {
            let first = self.queue.pop_front().expect("seen just now");
            self.held -= first.capacity();
            self.consumed = 0;
        }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.queue.iter().map(Vec::len).sum::<usize>() - self.consumed
    }

    /// Whether no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// All bytes together. Each block is freed once it is copied.
    pub fn into_vec(mut self) -> Vec<u8> {
        if self.queue.len() == 1 && self.consumed == 0 {
            return self.queue.pop_front().expect("there is one");
        }
        let mut bytes = Vec::with_capacity(self.len());
        while !self.is_empty() {
            bytes.extend_from_slice(self.first());
            self.consume(self.first().len());
        }
        bytes
    }

    /// Bytes of memory that it holds.
    pub fn held(&self) -> usize {
        self.held
    }

    fn grow(&mut self, now: usize, to_come: Option<u64>) {
        let doubled = self.held.clamp(SMALLEST, LARGEST);
        let size = match to_come {
            Some(to_come) => {
                doubled.min(now.saturating_add(usize::try_from(to_come).unwrap_or(LARGEST)))
            }
            None => doubled,
        };
        let block = Vec::with_capacity(size);
        self.held += block.capacity();
        self.queue.push_back(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &mut ByteQueue) -> Vec<u8> {
        let mut bytes = Vec::new();
        while !queue.is_empty() {
            let first = queue.first().to_vec();
            // In two portions, as a socket takes them.
            let part = first.len().div_ceil(2);
            bytes.extend_from_slice(&first[..part]);
            queue.consume(part);
        }
        bytes
    }

    #[test]
    fn gives_what_it_was_given_and_then_holds_nothing() {
        for length in [0, 1, 4095, 4096, 4097, 100_000, 5_000_000] {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8 ^ (at >> 8) as u8).collect();
            for portion in [1 << 10, 64 << 10] {
                let mut queue = ByteQueue::default();
                let mut left = length as u64;
                for bytes in bytes.chunks(portion) {
                    left -= bytes.len() as u64;
                    queue.push(bytes, Some(left));
                }
                assert!(
                    queue.held() <= length + LARGEST,
                    "{} held for {length}",
                    queue.held()
                );
                assert!(drain(&mut queue) == bytes, "{length} bytes by {portion}");
                assert_eq!(queue.held(), 0, "{length} bytes by {portion}");
                queue.push_block(bytes.clone());
                queue.push(&bytes, None);
                assert!(
                    drain(&mut queue) == [&bytes[..], &bytes].concat(),
                    "{length} by blocks"
                );
                assert_eq!(queue.held(), 0, "{length} bytes by blocks");
                queue.push(&bytes, None);
                let together = queue.into_vec();
                assert!(together == bytes, "{length} bytes together");
                assert!(together.capacity() <= length.max(SMALLEST), "{length}");
            }
        }
    }

    #[test]
    fn a_beginning_costs_one_small_block() {
        let mut queue = ByteQueue::default();
        queue.push(b"GIF89a", Some(32 << 20));
        assert_eq!(queue.held(), SMALLEST);
        let mut short = ByteQueue::default();
        short.push(b"email=", Some(10));
        assert_eq!(short.held(), 16, "no longer than what is to come");
    }
}
