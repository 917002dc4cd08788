//! A cache of freed blocks of memory in front of the system's allocator, for musl.
//!
//! musl takes each block of 128 KiB and more from the system and gives it back when it is freed,
//! and most of the groups that it cuts smaller ones from as well. Each page of a new block then
//! costs a page fault, in which the system clears it: an animation of 300 frames of a megapixel had
//! 506,000. Conversions allocate blocks of the same sizes again and again, so that a few MiB of
//! freed blocks serve most of their requests.
//!
//! With it, and with huge pages for large blocks, a small photograph has no page faults where musl
//! has 380, and an animation of 125 frames of 0.7 megapixels 27,000 where musl has 146,000 and
//! glibc 70,000.
//!
//! Blocks are kept by size classes, four for each power of two. All of them come from the system's
//! allocator one by one, with the size of their class, and any of them can be given back to it at
//! any time; nothing is cut or joined here.

#![expect(
    unsafe_code,
    reason = "an allocator is unsafe to write, and freed blocks are linked through their own bytes"
)]

use crate::system_memory;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Larger blocks are not kept. The blocks of an animation's canvases are smaller.
const LARGEST: usize = 4 << 20;

/// Classes of 16, 32, 48 and 64 bytes, then four for each power of two up to [`LARGEST`].
const CLASSES: usize = 4 + 4 * (LARGEST.ilog2() - 6) as usize;

/// The alignment of every block of a class: the alignment of `max_align_t`.
const ALIGN: usize = 16;

/// The bytes that are kept while no conversion runs: a conversion of a small picture takes as much.
/// No block that has a huge page fits.
const LEAST_KEPT: usize = (3 << 19) - 1;

/// The most bytes that are kept while conversions run.
const MOST_KEPT: usize = 8 << 20;

/// Blocks of this size and larger count as being in use, which shows whether conversions run.
const COUNTED: usize = 4096;

/// Freed blocks in front of the system's allocator. Blocks above 4 MiB or of a larger alignment
/// than 16 go to the system's allocator alone.
///
/// The cache keeps as many bytes as larger blocks in use have, but at least 1.5 MiB and at most 8
/// MiB: when a conversion ends, its memory goes back to the system.
///
/// No thread waits for another: where a list is in use, the system's allocator serves.
pub struct BlockCache {
    lists: [FreeList; CLASSES],
    /// The bytes of all blocks in the lists, and of blocks that are just being put there.
    kept: AtomicUsize,
    /// The bytes in use in blocks of [`COUNTED`] bytes and more.
    used: AtomicUsize,
    /// The next class that has to give up a block.
    next: AtomicUsize,
}

impl BlockCache {
    /// A cache without blocks.
    pub const fn empty() -> Self {
        Self {
            lists: [const { FreeList::new() }; CLASSES],
            kept: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
        }
    }

    /// Whether no more is kept than should be.
    fn has_room(&self) -> bool {
        let limit = self
            .used
            .load(Ordering::Relaxed)
            .clamp(LEAST_KEPT, MOST_KEPT);
        self.kept.load(Ordering::Relaxed) <= limit
    }

    /// Counts a block that was handed out, if there is one.
    fn count_used(&self, block: *mut u8, size: usize) -> *mut u8 {
        if size >= COUNTED && !block.is_null() {
            self.used.fetch_add(size, Ordering::Relaxed);
        }
        block
    }

    /// Counts a block that came back.
    fn count_freed(&self, size: usize) {
        if size >= COUNTED {
            self.used.fetch_sub(size, Ordering::Relaxed);
        }
    }

    /// Takes a block of the class from its list, or null if there is none.
    fn take(&self, class: usize) -> *mut u8 {
        let block = self.lists[class].pop();
        if !block.is_null() {
            self.lists[class].wanted.store(true, Ordering::Relaxed);
            self.kept.fetch_sub(class_size(class), Ordering::Relaxed);
        }
        block.cast()
    }

    /// Keeps a block, or gives it to the system.
    ///
    /// # Safety
    ///
    /// The block came from the system's allocator with the layout of this class, and nothing uses
    /// it anymore.
    unsafe fn keep(&self, block: *mut u8, class: usize) {
        let size = class_size(class);
        self.kept.fetch_add(size, Ordering::Relaxed);
        let fits = self.has_room() || self.make_room();
        // SAFETY: the block has at least 16 bytes, aligned to 16, and belongs to nobody else.
        if fits && unsafe { self.lists[class].push(block.cast()) } {
            return;
        }
        self.kept.fetch_sub(size, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { system_memory::dealloc(block, class_layout(class)) };
    }

    /// Gives blocks to the system until no more is kept than should be; false if that did not
    /// succeed. A class whose blocks were used since its last turn is spared at first.
    fn make_room(&self) -> bool {
        for _ in 0..2 * CLASSES {
            let class = self.next.fetch_add(1, Ordering::Relaxed) % CLASSES;
            if !self.lists[class].wanted.swap(false, Ordering::Relaxed) {
                while self.give_up(class) {
                    if self.has_room() {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Gives one block of the class to the system; false if there is none, or the list is in use.
    fn give_up(&self, class: usize) -> bool {
        let block = self.lists[class].pop();
        if block.is_null() {
            return false;
        }
        self.kept.fetch_sub(class_size(class), Ordering::Relaxed);
        // SAFETY: the list has blocks that came from there with this layout, and nobody else has
        // it.
        unsafe { system_memory::dealloc(block.cast(), class_layout(class)) };
        true
    }
}

// SAFETY: A layout alone decides whether a block has a class, and which. Each block of a class
// comes from the system with the size and the alignment of the class, which are at least those of
// the layout, and goes back there with the same. It is either in one list or in use. All other
// blocks go to the system as they came from it.
unsafe impl GlobalAlloc for BlockCache {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = class_of(layout);
        let mut block = class.map_or(ptr::null_mut(), |class| self.take(class));
        if block.is_null() {
            // SAFETY: the caller promises a size that is not 0, and no class has size 0.
            block = unsafe { system_memory::alloc(class.map_or(layout, class_layout)) };
        }
        self.count_used(block, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let class = class_of(layout);
        let mut block = class.map_or(ptr::null_mut(), |class| self.take(class));
        if block.is_null() {
            // SAFETY: as in `alloc`.
            block = unsafe { system_memory::alloc_zeroed(class.map_or(layout, class_layout)) };
        } else {
            // SAFETY: a block of this class has at least so many bytes.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        self.count_used(block, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.count_freed(layout.size());
        if let Some(class) = class_of(layout) {
            // SAFETY: the caller promises that it came from here with this layout.
            unsafe { self.keep(block, class) };
        } else {
            // SAFETY: as the caller promises.
            unsafe { system_memory::dealloc(block, layout) };
            let _ = self.has_room() || self.make_room();
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size, rounded up to the alignment, is valid.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let moved = match (class_of(layout), class_of(new)) {
            (Some(old), Some(new)) if old == new => block,
            (Some(old), Some(new)) => {
                let kept = self.take(new);
                if kept.is_null() {
                    // SAFETY: the block came from there with the layout of its class.
                    unsafe { system_memory::realloc(block, class_layout(old), class_size(new)) }
                } else {
                    // SAFETY: both blocks have this many bytes, and the caller gives the old one
                    // away.
                    unsafe {
                        kept.copy_from_nonoverlapping(block, layout.size().min(size));
                        self.keep(block, old);
                    }
                    kept
                }
            }
            (old, new) => {
                let from = old.map_or(layout, class_layout);
                // SAFETY: The block came from there with this layout. Where one of the two has a
                // class, the alignment is at most 16, which all blocks of this allocator have.
                unsafe { system_memory::realloc(block, from, new.map_or(size, class_size)) }
            }
        };
        if !moved.is_null() {
            self.count_freed(layout.size());
        }
        self.count_used(moved, size)
    }
}

/// Freed blocks of one class.
struct FreeList {
    /// The block that was freed last, null if there is none, or [`IN_USE`].
    top: AtomicPtr<FreeBlock>,
    /// Whether a block was taken since the class last had to give one up.
    wanted: AtomicBool,
}

/// The beginning of a freed block.
struct FreeBlock {
    below: *mut FreeBlock,
}

/// The top of a list that a thread just changes. No block has this address.
const IN_USE: *mut FreeBlock = ptr::without_provenance_mut(1);

impl FreeList {
    const fn new() -> Self {
        Self {
            top: AtomicPtr::new(ptr::null_mut()),
            wanted: AtomicBool::new(false),
        }
    }

    /// Takes the block that was put last; null if there is none, or if the list is in use.
    fn pop(&self) -> *mut FreeBlock {
        if self.top.load(Ordering::Relaxed).is_null() {
            return ptr::null_mut();
        }
        let top = self.top.swap(IN_USE, Ordering::Acquire);
        if top == IN_USE {
            return ptr::null_mut();
        }
        let below = if top.is_null() {
            top
        } else {
            // SAFETY: the block was pushed, and is this thread's alone: others see `IN_USE`.
            unsafe { (*top).below }
        };
        self.top.store(below, Ordering::Release);
        top
    }

    /// Puts a block on top; false if the list is in use.
    ///
    /// # Safety
    ///
    /// The block belongs to nobody else, and is large and aligned enough for a [`FreeBlock`].
    unsafe fn push(&self, block: *mut FreeBlock) -> bool {
        let below = self.top.swap(IN_USE, Ordering::Acquire);
        if below == IN_USE {
            return false;
        }
        // SAFETY: as the caller promises.
        unsafe { block.write(FreeBlock { below }) };
        self.top.store(block, Ordering::Release);
        true
    }
}

/// The class of a layout, if it has one.
fn class_of(layout: Layout) -> Option<usize> {
    if layout.align() > ALIGN || layout.size() > LARGEST {
        return None;
    }
    let last = layout.size().saturating_sub(1);
    if last < 64 {
        return Some(last / 16);
    }
    let power = last.ilog2();
    Some(4 * (power as usize - 5) + (last >> (power - 2)) % 4)
}

/// The size of all blocks of a class in bytes, which is a multiple of 16.
const fn class_size(class: usize) -> usize {
    if class < 4 {
        return (class + 1) * 16;
    }
    (class % 4 + 5) << (class / 4 + 3)
}

fn class_layout(class: usize) -> Layout {
    Layout::from_size_align(class_size(class), ALIGN).expect("at most 4 MiB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).expect("a valid layout")
    }

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        assert_eq!(class_size(CLASSES - 1), LARGEST);
        let most = if cfg!(miri) { 700 } else { 70_000 };
        for size in (1..most).chain(LARGEST - 100..=LARGEST) {
            let class = class_of(layout(size, 1)).expect("it is kept");
            assert!(class_size(class) >= size, "{size}");
            assert!(class == 0 || class_size(class - 1) < size, "{size}");
            assert!(class_size(class).is_multiple_of(ALIGN), "{size}");
        }
        assert_eq!(class_of(layout(LARGEST + 1, 1)), None);
        assert_eq!(class_of(layout(64, 32)), None);
    }

    #[test]
    fn a_freed_block_serves_again_and_is_zeroed_if_asked_for() {
        let cache = BlockCache::empty();
        for size in [1, 16, 100, 5000, if cfg!(miri) { 9000 } else { 300_000 }] {
            let layout = layout(size, 8);
            // SAFETY: every access is within the block.
            unsafe {
                let first = cache.alloc(layout);
                first.write_bytes(0xff, size);
                cache.dealloc(first, layout);
                let second = cache.alloc_zeroed(layout);
                assert_eq!(second, first, "{size} bytes");
                assert!((0..size).all(|at| *second.add(at) == 0), "{size} bytes");
                cache.dealloc(second, layout);
            }
        }
        while (0..CLASSES).any(|class| cache.give_up(class)) {}
    }

    #[test]
    fn what_conversions_used_goes_back_to_the_system_when_they_end() {
        let cache = BlockCache::empty();
        let blocks = [
            5 << 20,
            3 << 20,
            2 << 20,
            1 << 20,
            300_000,
            40_000,
            4096,
            100,
        ];
        // SAFETY: the blocks are written within their sizes, and freed once.
        unsafe {
            let live: Vec<_> = (0..40)
                .map(|number| layout(blocks[number % blocks.len()], 16))
                .map(|layout| (cache.alloc(layout), layout))
                .collect();
            for &(block, layout) in &live {
                *block.add(layout.size() - 1) = 1;
            }
            for (block, layout) in live {
                cache.dealloc(block, layout);
                assert!(cache.kept.load(Ordering::Relaxed) <= MOST_KEPT);
            }
        }
        assert_eq!(cache.used.load(Ordering::Relaxed), 0);
        assert!(cache.kept.load(Ordering::Relaxed) <= LEAST_KEPT);
        while (0..CLASSES).any(|class| cache.give_up(class)) {}
        assert_eq!(cache.kept.load(Ordering::Relaxed), 0);
    }

    /// Threads that grow, shrink and free blocks, some of which another one allocated, find in them
    /// what they wrote.
    #[test]
    fn no_two_threads_get_the_same_block() {
        let cache = BlockCache::empty();
        let work = |seed: u64| -> Vec<(AtomicPtr<u8>, Layout, u8)> {
            let mut state = seed;
            let mut random = |below: usize| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 33) as usize % below
            };
            // What may go to another thread, as a bare pointer may not.
            let mut live: Vec<(AtomicPtr<u8>, Layout, u8)> = Vec::new();
            for turn in 0..if cfg!(miri) { 300 } else { 20_000 } {
                let most = 1 << (4 + random(15));
                let size = 1 + random(most);
                let mark = turn as u8;
                // SAFETY: every access is within the block's size at that time, and a block is
                // freed once.
                unsafe {
                    let check = |block: *mut u8, size: usize, mark: u8| {
                        assert_eq!((*block, *block.add(size - 1)), (mark, mark));
                    };
                    if live.len() < 50 {
                        let layout = layout(size, 1 << random(6));
                        let block = cache.alloc(layout);
                        assert!(block.addr().is_multiple_of(layout.align()));
                        block.write_bytes(mark, size);
                        live.push((AtomicPtr::new(block), layout, mark));
                        continue;
                    }
                    let (block, old, was) = live.swap_remove(random(live.len()));
                    let block = block.into_inner();
                    check(block, old.size(), was);
                    if random(2) == 0 {
                        cache.dealloc(block, old);
                        continue;
                    }
                    let block = cache.realloc(block, old, size);
                    assert_eq!(*block, was);
                    assert_eq!(*block.add(size.min(old.size()) - 1), was);
                    block.write_bytes(mark, size);
                    live.push((AtomicPtr::new(block), layout(size, old.align()), mark));
                }
            }
            live
        };
        let left = thread::scope(|scope| {
            let threads = [1, 2, 3, 4].map(|seed| scope.spawn(move || work(seed)));
            threads.map(|thread| thread.join().expect("it does not panic"))
        });
        for (block, layout, mark) in left.into_iter().flatten() {
            let block = block.into_inner();
            // SAFETY: the block was handed over by a thread that ended.
            unsafe {
                assert_eq!((*block, *block.add(layout.size() - 1)), (mark, mark));
                cache.dealloc(block, layout);
            }
        }
        assert_eq!(cache.used.load(Ordering::Relaxed), 0);
        while (0..CLASSES).any(|class| cache.give_up(class)) {}
    }
}
