//! Pictures that were fetched lately, by their exact URL; the least recently used are removed first
//! (LRU).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The least number of bytes that an entry is counted as. It bounds the number of entries, and so
/// the memory that they take besides their pictures.
pub(super) const MIN_COST: usize = 4 << 10;

/// A cache with a limit in bytes, from which the least recently used entries are removed.
#[derive(Debug)]
pub(super) struct Cache {
    max_bytes: usize,
    /// The cost of all entries together.
    cost: usize,
    /// The number of uses so far, which serves as the time of a use.
    uses: u64,
    entries: HashMap<Arc<str>, Entry>,
    /// The URL of each entry by the time of its last use.
    by_use: BTreeMap<u64, Arc<str>>,
}

#[derive(Debug)]
struct Entry {
    picture: Arc<[u8]>,
    fresh_until: Instant,
    last_use: u64,
}

impl Entry {
    fn cost(&self, url: &str) -> usize {
        cost(url, &self.picture)
    }
}

/// The bytes that an entry is counted as.
fn cost(url: &str, picture: &[u8]) -> usize {
    picture.len().saturating_add(url.len()).max(MIN_COST)
}

impl Cache {
    /// An empty cache; with a limit of 0 it stays empty.
    pub(super) fn new(max_bytes: usize) -> Cache {
        Cache {
            max_bytes,
            cost: 0,
            uses: 0,
            entries: HashMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    /// The picture of this URL, unless it is missing or stale.
    pub(super) fn find(&mut self, url: &str, now: Instant) -> Option<Arc<[u8]>> {
        let entry = self.entries.get_mut(url)?;
        if entry.fresh_until <= now {
            self.remove(url);
            return None;
        }
        self.uses += 1;
        let key = self.by_use.remove(&entry.last_use);
        entry.last_use = self.uses;
        self.by_use
            .insert(self.uses, key.expect("each entry's last use is there"));
        Some(Arc::clone(&entry.picture))
    }

    /// Keeps a picture for so long, and removes the one that the URL had before. A picture without
    /// a lifetime or larger than the limit is not kept.
    pub(super) fn keep(
        &mut self,
        url: &str,
        picture: &Arc<[u8]>,
        lifetime: Duration,
        now: Instant,
    ) {
        self.remove(url);
        let cost = cost(url, picture);
        if lifetime.is_zero() || cost > self.max_bytes {
            return;
        }
        while self.cost + cost > self.max_bytes {
            let (_, oldest) = self.by_use.first_key_value().expect("something costs");
            self.remove(&Arc::clone(oldest));
        }
        self.uses += 1;
        self.cost += cost;
        let url: Arc<str> = url.into();
        self.by_use.insert(self.uses, Arc::clone(&url));
        let entry = Entry {
            picture: Arc::clone(picture),
            fresh_until: now + lifetime,
            last_use: self.uses,
        };
        self.entries.insert(url, entry);
    }

    fn remove(&mut self, url: &str) {
        if let Some(entry) = self.entries.remove(url) {
            self.cost -= entry.cost(url);
            self.by_use.remove(&entry.last_use);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn picture(bytes: usize) -> Arc<[u8]> {
        vec![7; bytes].into()
    }

    #[test]
    fn pictures_are_found_until_they_are_stale() {
        let mut cache = Cache::new(1 << 20);
        let start = Instant::now();
        cache.keep("a", &picture(9), MINUTE, start);
        let last = start + Duration::from_nanos(59_999_999_999);
        assert_eq!(cache.find("a", last), Some(picture(9)));
        assert_eq!(cache.find("b", start), None);
        assert_eq!(cache.find("a", start + MINUTE), None);
        assert_eq!(cache.cost, 0, "it is gone");
        cache.keep("a", &picture(9), Duration::ZERO, start);
        assert_eq!(cache.find("a", start), None, "nothing to keep it for");
    }

    #[test]
    fn a_new_picture_replaces_the_one_before() {
        let mut cache = Cache::new(1 << 20);
        let now = Instant::now();
        cache.keep("a", &picture(9), MINUTE, now);
        cache.keep("a", &picture(5), MINUTE, now);
        assert_eq!(cache.find("a", now), Some(picture(5)));
        cache.keep("a", &picture(5), Duration::ZERO, now);
        assert_eq!(cache.find("a", now), None, "the host wants it no more");
    }

    #[test]
    fn bytes_are_held_to_the_bound_and_the_longest_unused_goes() {
        let mut cache = Cache::new(30_000);
        let now = Instant::now();
        for url in ["a", "b", "c"] {
            cache.keep(url, &picture(9_999), MINUTE, now);
        }
        assert!(cache.find("a", now).is_some(), "three fit exactly");
        cache.keep("d", &picture(10), MINUTE, now);
        let is_there = ["a", "b", "c", "d"].map(|url| cache.find(url, now).is_some());
        assert_eq!(is_there, [true, false, true, true]);
        cache.keep("e", &picture(29_999), MINUTE, now);
        assert_eq!((cache.entries.len(), cache.cost), (1, 30_000));
        cache.keep("f", &picture(30_000), MINUTE, now);
        assert!(cache.find("f", now).is_none(), "it would not fit");
        assert!(cache.find("e", now).is_some(), "nothing went for it");
        assert_eq!(cache.by_use.len(), 1);
    }

    #[test]
    fn tiny_pictures_are_bounded_in_number() {
        let mut cache = Cache::new(10 * MIN_COST);
        let now = Instant::now();
        for number in 0..100 {
            cache.keep(&number.to_string(), &picture(1), MINUTE, now);
        }
        assert_eq!((cache.entries.len(), cache.by_use.len()), (10, 10));
    }

    #[test]
    fn without_bytes_nothing_is_kept() {
        let mut cache = Cache::new(0);
        cache.keep("a", &picture(0), MINUTE, Instant::now());
        assert_eq!(cache.find("a", Instant::now()), None);
    }
}
