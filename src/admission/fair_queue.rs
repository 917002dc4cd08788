//! A queue in which owners take turns: first in, first out for each owner, and round robin among
//! owners. One owner's many items delay another owner's only item by a single turn.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// A queue of items of type `T`, each of which has an owner of type `K`.
#[derive(Debug)]
pub struct FairQueue<K, T> {
    /// The owners that have items, each once, in the order of their turns.
    turns: VecDeque<K>,
    items: HashMap<K, VecDeque<T>>,
    count: usize,
}

impl<K, T> Default for FairQueue<K, T> {
    fn default() -> FairQueue<K, T> {
        FairQueue {
            turns: VecDeque::new(),
            items: HashMap::new(),
            count: 0,
        }
    }
}

impl<K: Copy + Eq + Hash, T> FairQueue<K, T> {
    /// Adds an item behind all others of its owner.
    pub fn push(&mut self, owner: K, item: T) {
        let items = self.items.entry(owner).or_default();
        if items.is_empty() {
            self.turns.push_back(owner);
        }
        items.push_back(item);
        self.count += 1;
    }

    /// Takes the first item of the first owner in turn for which `is_allowed` is true. That owner's
    /// next turn comes after those of all others.
    pub fn pop(&mut self, mut is_allowed: impl FnMut(K, &T) -> bool) -> Option<(K, T)> {
        self.pop_within(1, &mut is_allowed)
    }

    /// Takes the first item of the owner with the least `weight` among those for which `is_allowed`
    /// is true; of equal ones, of the first in turn.
    pub fn pop_least(
        &mut self,
        weight: impl Fn(K) -> f64,
        is_allowed: impl Fn(K, &T) -> bool,
    ) -> Option<(K, T)> {
        let first = |owner: &K| self.items.get(owner).and_then(VecDeque::front);
        let allowed = self.turns.iter().copied();
        let allowed = allowed.filter(|owner| first(owner).is_some_and(|it| is_allowed(*owner, it)));
        let least = allowed.min_by(|&a, &b| weight(a).total_cmp(&weight(b)))?;
        self.pop(|owner, _| owner == least)
    }

    /// The owners that have items, in the order of their turns.
    pub fn owners(&self) -> impl Iterator<Item = &K> {
        self.turns.iter()
    }

    /// Like [`FairQueue::pop`], but of an owner whose first item is not allowed, a later one may be
    /// taken.
    pub fn pop_any(&mut self, mut is_allowed: impl FnMut(K, &T) -> bool) -> Option<(K, T)> {
        self.pop_within(usize::MAX, &mut is_allowed)
    }

    /// Looks at up to `depth` items of each owner.
    fn pop_within(
        &mut self,
        depth: usize,
        is_allowed: &mut impl FnMut(K, &T) -> bool,
    ) -> Option<(K, T)> {
        let found = self.turns.iter().enumerate().find_map(|(turn, &owner)| {
            let mut items = self.items.get(&owner)?.iter().take(depth);
            let index = items.position(|item| is_allowed(owner, item))?;
            Some((turn, owner, index))
        });
        let (turn, owner, index) = found?;
        let item = self.items.get_mut(&owner)?.remove(index)?;
        self.turns.remove(turn);
        self.turns.push_back(owner);
        self.count -= 1;
        self.forget_if_empty(owner);
        Some((owner, item))
    }

    /// Removes the items of this owner for which `matches` is true.
    pub fn remove(&mut self, owner: K, mut matches: impl FnMut(&T) -> bool) {
        let Some(items) = self.items.get_mut(&owner) else {
            return;
        };
        let before = items.len();
        items.retain(|item| !matches(item));
        self.count -= before - items.len();
        self.forget_if_empty(owner);
    }

    /// Removes all items but those for which `is_kept` is true.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&T) -> bool) {
        for owner in self.turns.clone() {
            self.remove(owner, |item| !is_kept(item));
        }
    }

    /// The first item of each owner, in the order of their turns.
    pub fn firsts(&self) -> impl Iterator<Item = (K, &T)> {
        let first = |owner: &K| Some((*owner, self.items.get(owner)?.front()?));
        self.turns.iter().filter_map(first)
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The number of this owner's items.
    pub fn len_of(&self, owner: K) -> usize {
        self.items.get(&owner).map_or(0, VecDeque::len)
    }

    fn forget_if_empty(&mut self, owner: K) {
        if self.items.get(&owner).is_some_and(VecDeque::is_empty) {
            self.items.remove(&owner);
            self.turns.retain(|other| *other != owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(items: &[(char, u32)]) -> FairQueue<char, u32> {
        let mut queue = FairQueue::default();
        for &(owner, item) in items {
            queue.push(owner, item);
        }
        queue
    }

    fn drained(mut queue: FairQueue<char, u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(|_, _| true))
            .map(|(_, item)| item)
            .collect()
    }

    #[test]
    fn one_owner_is_served_in_order() {
        assert_eq!(drained(queue(&[('a', 1), ('a', 2), ('a', 3)])), [1, 2, 3]);
    }

    #[test]
    fn owners_take_turns_however_many_items_one_has() {
        let many = [('a', 1), ('a', 2), ('a', 3), ('a', 4), ('b', 10), ('c', 20)];
        assert_eq!(drained(queue(&many)), [1, 10, 20, 2, 3, 4]);
    }

    #[test]
    fn an_owner_that_was_served_is_behind_one_that_comes_later() {
        let mut queue = queue(&[('a', 1), ('a', 2), ('b', 10), ('b', 11)]);
        assert_eq!(queue.pop(|_, _| true), Some(('a', 1)));
        queue.push('c', 20);
        assert_eq!(drained(queue), [10, 2, 20, 11]);
    }

    #[test]
    fn an_owner_that_may_not_go_keeps_its_turn_and_its_order() {
        let mut queue = queue(&[('a', 1), ('a', 2), ('b', 10)]);
        assert_eq!(queue.pop(|owner, _| owner != 'a'), Some(('b', 10)));
        assert_eq!(queue.pop(|_, item| *item == 2), None, "1 is before it");
        assert_eq!(queue.pop_any(|_, item| *item == 2), Some(('a', 2)));
        assert_eq!(
            (queue.len(), queue.len_of('a'), queue.len_of('b')),
            (1, 1, 0)
        );
        assert_eq!(drained(queue), [1]);
    }

    #[test]
    fn what_is_removed_leaves_nothing_behind() {
        let mut queue = queue(&[('a', 1), ('b', 10), ('a', 2)]);
        queue.remove('a', |item| *item == 1);
        queue.remove('b', |_| true);
        queue.remove('c', |_| true);
        assert_eq!(
            (queue.len(), queue.turns.len(), queue.items.len()),
            (1, 1, 1)
        );
        assert_eq!(queue.firsts().collect::<Vec<_>>(), [('a', &2)]);
        queue.push('b', 11);
        queue.retain(|item| *item == 11);
        assert_eq!(drained(queue), [11]);
    }
}
