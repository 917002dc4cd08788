//! Connections by number. A number is given again, but never with the same generation, so that an event which was under
//! way when its connection ended does not reach the next one.

use mio::Token;

// A token holds both numbers of a key.
const _: () = assert!(usize::BITS == 64, "the front door needs 64-bit tokens");

/// Kinds of sources that are no connections and stay to the end.
const KINDS: u32 = 3;

/// Names one connection for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// For a source that is no connection and stays to the end. `kind` is below [`KINDS`].
    pub fn fixed(kind: u32, index: usize) -> Key {
        Key {
            index: index as u32,
            generation: u32::MAX - kind,
        }
    }

    /// The kind and index of such a source.
    pub fn as_fixed(self) -> Option<(u32, usize)> {
        let kind = u32::MAX - self.generation;
        (kind < KINDS).then_some((kind, self.index as usize))
    }

    /// For the readiness of its socket.
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
    /// Without any.
    pub fn new() -> Slab<T> {
        Slab {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Takes in the value that is made for a key.
    ///
    /// # Errors
    /// That of `make`; nothing is taken in then.
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

    /// The value, if it is there still.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.entries.get_mut(key.index as usize) {
            Some((generation, value)) if *generation == key.generation => value.as_mut(),
            _ => None,
        }
    }

    /// Gives the value away.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let value = self
            .get_mut(key)
            .is_some()
            .then(|| self.entries[key.index as usize].1.take())?;
        let generation = &mut self.entries[key.index as usize].0;
        // The highest are for what is fixed.
        *generation = (*generation + 1) % (u32::MAX - KINDS + 1);
        self.free.push(key.index);
        value
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// All of them.
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
