//! Keys of histories: UUIDs of version 7 (RFC 9562, section 5.7).
//!
//! ```text
//! 48 bits  milliseconds since the epoch, never less than in the key before
//!  4 bits  version 7
//! 12 bits  how many keys there were before with these milliseconds, its high bits
//!  2 bits  variant 2
//! 14 bits  its low bits
//! 48 bits  random, so that keys of two replicas differ
//! ```
//!
//! So the keys of one process are in the order in which they were made, and those of several are as
//! far out of it as their clocks differ, and their entries were under way.

use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

use crate::store::error::StoreError;

/// Makes keys.
#[derive(Default)]
pub struct Ids(Mutex<Keys>);

/// How many keys have the same milliseconds at most; then the next millisecond is used.
pub const MAX_COUNT: u32 = (1 << 26) - 1;

impl Ids {
    /// A key for an event at this time.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn next(&self, milliseconds: u64) -> Result<Uuid, StoreError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random[2..]).map_err(|error| StoreError::Failed(error.to_string()))?;
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(keys.next(milliseconds, u64::from_be_bytes(random)))
    }
}

/// Keys in their order, of which this is the last one so far.
#[derive(Default)]
pub struct Keys {
    milliseconds: u64,
    count: u32,
}

impl Keys {
    /// The key for an event at this time, with these 48 bits as its random ones.
    pub fn next(&mut self, time: u64, random: u64) -> Uuid {
        if time > self.milliseconds {
            (self.milliseconds, self.count) = (time, 0);
        } else if self.count == MAX_COUNT {
            (self.milliseconds, self.count) = (self.milliseconds + 1, 0);
        } else {
            self.count += 1;
        }
        key(self.milliseconds, self.count, random)
    }
}

/// A key of its three parts; `count` has 26 bits, `random` 48.
pub fn key(milliseconds: u64, count: u32, random: u64) -> Uuid {
    let high = u128::from(count >> 14 & 0xfff);
    let low = u128::from(count & 0x3fff);
    Uuid::from_u128(
        u128::from(milliseconds) << 80
            | 7 << 76
            | high << 64
            | 2 << 62
            | low << 48
            | u128::from(random & 0xffff_ffff_ffff),
    )
}

/// The milliseconds in a key.
pub fn milliseconds(key: Uuid) -> u64 {
    // 48 bits are left.
    (key.as_u128() >> 80) as u64
}

/// No key of this time or a later one is less.
pub fn first_at(milliseconds: u64) -> Uuid {
    Uuid::from_u128(u128::from(milliseconds.min((1 << 48) - 1)) << 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_grow_whatever_the_clock_does() {
        let ids = Ids::default();
        let times = [5, 5, 5, 4, 0, 6, 6, 1_795_000_000_000, 7];
        let keys: Vec<_> = times.map(|time| ids.next(time).unwrap()).to_vec();
        assert!(keys.is_sorted() && keys[0] >= first_at(5) && keys[5] >= first_at(6));
        for key in &keys {
            assert_eq!(key.get_version_num(), 7, "{key}");
        }
        let (seconds, nanos) = keys[7].get_timestamp().unwrap().to_unix();
        assert_eq!((seconds, nanos), (1_795_000_000, 0));
    }

    #[test]
    fn a_key_has_its_parts_where_rfc_9562_has_them() {
        let key = key(0x0123_4567_89ab, 0x03ff_ffff, 0);
        assert_eq!(key.as_u128(), 0x0123_4567_89ab_7fff_bfff_0000_0000_0000);
        assert_eq!(milliseconds(key), 0x0123_4567_89ab);
        let largest = u128::from(u64::MAX >> 16) << 80;
        for (time, expected) in [(1, 1 << 80), (u64::MAX >> 16, largest), (u64::MAX, largest)] {
            assert_eq!(first_at(time).as_u128(), expected, "{time}");
        }
    }

    #[test]
    fn counts_keep_the_order_over_their_gap() {
        let keys = [0, 1, 0x3fff, 0x4000, MAX_COUNT].map(|count| key(9, count, u64::MAX));
        assert!(keys.is_sorted());
        assert!(key(9, MAX_COUNT, u64::MAX) < key(10, 0, 0));
        assert!(first_at(10) < key(10, 0, 0) && first_at(10) > keys[4]);
        let ids = Ids(Mutex::new(Keys {
            milliseconds: 9,
            count: MAX_COUNT,
        }));
        assert!(ids.next(1).unwrap() > key(10, 0, 0));
    }
}
