//! An allocator that tells how much more or less memory is held.

#![expect(
    unsafe_code,
    reason = "an allocator is unsafe to write; this one passes all on to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, which tells the function of each change: in bytes, negative for those that are freed.
pub struct Counting(pub fn(isize));

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        (self.0)(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        (self.0)(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        (self.0)(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        (self.0)(size as isize - layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(block, layout, size) }
    }
}
