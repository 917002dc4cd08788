//! Connections by number. A number is used again, but with another generation, so that an event
//! that was pending when its connection ended does not reach the next one.

use mio::Token;

// A token holds both numbers of a key.
const _: () = assert!(usize::BITS == 64, "the event loop needs 64-bit tokens");

/// Kinds of event sources that are no client's connection and stay to the end.
const KINDS: u32 = 2;

/// Names one connection, and never another one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The key of an event source that is no client's connection and stays to the end. `kind` is
    /// below [`KINDS`].
    pub fn fixed(kind: u32, index: usize) -> Key {
        Key {
            index: index as u32,
            generation: u32::MAX - kind,
        }
    }

    /// The kind and index that were given to [`Key::fixed`].
    pub fn as_fixed(self) -> Option<(u32, usize)> {
        let kind = u32::MAX - self.generation;
        (kind < KINDS).then_some((kind, self.index as usize))
    }

    /// The token by which readiness of the socket is reported.
    pub fn token(self) -> Token {
        Token((u64::from(self.generation) << 32 | u64::from(self.index)) as usize)
    }
}

impl From<Token> for Key {
    fn from(Token(number): Token) -> Key {
        Key {
            index: number as u32,
            generation: (number as u64 >> 32) as u32,
        }
    }
}

/// Values by [`Key`].
pub struct Slab<T> {
    entries: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    /// A slab without values.
    pub fn new() -> Slab<T> {
        Slab {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Adds the value that `make` makes for its key.
    ///
    /// # Errors
    /// The error of `make`; nothing is added then.
    pub fn insert_with<E>(&mut self, make: impl FnOnce(Key) -> Result<T, E>) -> Result<Key, E> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push((0, None));
            self.entries.len() as u32 - 1
        });
        let (generation, entry) = &mut self.entries[index as usize];
        let key = Key {
            index,
            generation: *generation,
        };
        match make(key) {
            Ok(value) => {
                *entry = Some(value);
                Ok(key)
            }
            Err(error) => {
                self.free.push(index);
                Err(error)
            }
        }
    }

    /// The value, unless it was removed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.entries.get_mut(key.index as usize) {
            Some((generation, value)) if *generation == key.generation => value.as_mut(),
            _ => None,
        }
    }

    /// Removes and returns the value.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let value = self
            .get_mut(key)
            .is_some()
            .then(|| self.entries[key.index as usize].1.take())?;
        let generation = &mut self.entries[key.index as usize].0;
        // The highest generations belong to fixed keys.
        *generation = (*generation + 1) % (u32::MAX - KINDS + 1);
        self.free.push(key.index);
        value
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// All values with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(index, (generation, value))| {
                let key = Key {
                    index: index as u32,
                    generation: *generation,
                };
                value.as_ref().map(|value| (key, value))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_used_again_is_another_key() {
        fn insert(slab: &mut Slab<char>, value: char) -> Key {
            slab.insert_with(|_| Ok::<_, ()>(value)).unwrap()
        }
        let mut slab = Slab::new();
        let first = insert(&mut slab, 'a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = insert(&mut slab, 'b');
        assert_eq!(
            first.token().0 as u32,
            second.token().0 as u32,
            "the number is used again"
        );
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get_mut(Key::from(second.token())), Some(&mut 'b'));
        assert_eq!(slab.iter().collect::<Vec<_>>(), [(second, &'b')]);
        assert_eq!((slab.len(), second.as_fixed()), (1, None));
        assert_eq!(Key::from(Key::fixed(1, 7).token()).as_fixed(), Some((1, 7)));
    }
}
