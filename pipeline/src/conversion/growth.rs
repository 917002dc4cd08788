//! Memory beyond the estimate: the size of an animation's file follows from its frames alone. The
//! file begins with the bytes that the estimate has for it, and reserves more as it grows.

use std::cell::Cell;

/// Decides, without waiting, whether a conversion may hold this many bytes in all, in place of the
/// bytes of its estimate ([`Plan::memory`](super::Plan::memory)).
pub type MayHold<'a> = dyn Fn(u64) -> bool + 'a;

/// The memory of the files of an animation: of one, or of a search as many as it keeps.
pub(super) struct FileMemory<'a> {
    may_hold: &'a MayHold<'a>,
    /// The bytes of the conversion beside these files.
    others: u64,
    /// The most files at a time. Each is taken to be as large as the largest.
    files: u64,
    /// The bytes that were estimated or granted for the files.
    granted: Cell<u64>,
}

impl<'a> FileMemory<'a> {
    /// Memory for so many files, for each of which the estimate of the conversion, `memory` bytes,
    /// has `bytes`.
    pub(super) fn new(
        may_hold: &'a MayHold<'a>,
        memory: u64,
        files: u64,
        bytes: u64,
    ) -> FileMemory<'a> {
        let granted = files * bytes;
        FileMemory {
            may_hold,
            others: memory.saturating_sub(granted),
            files,
            granted: Cell::new(granted),
        }
    }

    /// Whether a file may take so many bytes in all.
    pub(super) fn may_take(&self, bytes: usize) -> bool {
        let needed = self.files.saturating_mul(bytes as u64);
        let granted = self.granted.get();
        let may_take = needed <= granted || (self.may_hold)(self.others.saturating_add(needed));
        if may_take {
            self.granted.set(needed.max(granted));
        }
        may_take
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_grow_are_granted_as_many_bytes_as_all_of_them_need() {
        let asked = Cell::new(0);
        let allows = Cell::new(true);
        let may_hold = |bytes| {
            asked.set(bytes);
            allows.get()
        };
        // Two files of 100 bytes each beside 300 others.
        let memory = FileMemory::new(&may_hold, 500, 2, 100);
        assert!(memory.may_take(100));
        assert_eq!(asked.get(), 0, "they were estimated");
        assert!(memory.may_take(150));
        assert_eq!(asked.replace(0), 600);
        allows.set(false);
        assert!(
            memory.may_take(150) && memory.may_take(20),
            "they are granted"
        );
        assert!(!memory.may_take(151));
        assert_eq!(asked.replace(0), 602);
        assert!(memory.may_take(150) && asked.get() == 0);
    }
}
