//! Blocks of memory from the system: small ones by the C library, those above 1.25 MiB as mappings
//! of their own that the system may fill with huge pages.
//!
//! A page of 4 KiB that is touched first costs a page fault, and a virtual machine makes that
//! dearer: 6 MB took 2.6 ms, by huge pages 0.15 ms. Linux uses them where a program requests them,
//! unless it is set to `never` (`/sys/kernel/mm/transparent_hugepage/enabled`).

#![expect(
    unsafe_code,
    reason = "the C library's huge pages are a setting of the environment, or are not there"
)]

use rustix::mm::{self, Advice, MapFlags, MremapFlags, ProtFlags};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr;

/// The size and alignment of a huge page of x86-64, and of aarch64 with pages of 4 KiB.
const HUGE: usize = 2 << 20;

/// A multiple of every processor's page size.
const PAGE: usize = 64 << 10;

/// Larger blocks are mappings of their own. One that is smaller than a huge page gets one, so that
/// up to three quarters of a MiB are resident that no program requested.
const LARGEST_UNMAPPED: usize = 5 << 18;

/// Whether a block is a mapping of its own. Miri has no mappings of parts of others.
fn is_mapped(layout: Layout) -> bool {
    layout.size() > LARGEST_UNMAPPED && layout.align() <= PAGE && !cfg!(miri)
}

/// A new block; null if there is no memory.
///
/// # Safety
///
/// The layout has a size that is not 0.
pub unsafe fn alloc(layout: Layout) -> *mut u8 {
    if is_mapped(layout) {
        return map(layout.size());
    }
    // SAFETY: as the caller promises.
    unsafe { System.alloc(layout) }
}

/// A new block of zeros; null if there is no memory.
///
/// # Safety
///
/// The layout has a size that is not 0.
pub unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    if is_mapped(layout) {
        // The system maps zeros.
        return map(layout.size());
    }
    // SAFETY: as the caller promises.
    unsafe { System.alloc_zeroed(layout) }
}

/// Gives a block back.
///
/// # Safety
///
/// The block came from here with this layout, and nothing uses it anymore.
pub unsafe fn dealloc(block: *mut u8, layout: Layout) {
    if is_mapped(layout) {
        // SAFETY: it is a mapping of this length.
        let _ = unsafe { mm::munmap(block.cast(), mapped_length(layout.size())) };
        return;
    }
    // SAFETY: as the caller promises.
    unsafe { System.dealloc(block, layout) }
}

/// Gives a block another size; null, and the block stays, if there is no memory.
///
/// # Safety
///
/// The block came from here with this layout, and the new size is valid for its alignment and not
/// 0.
pub unsafe fn realloc(block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    // SAFETY: as the caller promises.
    let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
    match (is_mapped(layout), is_mapped(new)) {
        // SAFETY: as the caller promises.
        (false, false) => unsafe { System.realloc(block, layout, size) },
        (true, true) => {
            let (from, to) = (mapped_length(layout.size()), mapped_length(size));
            // SAFETY: the block is a mapping of this length.
            unsafe { mm::mremap(block.cast(), from, to, MremapFlags::MAYMOVE) }
                .map_or(ptr::null_mut(), <*mut c_void>::cast)
        }
        _ => {
            // SAFETY: both blocks have this many bytes, and the old one came from here.
            unsafe {
                let moved = alloc(new);
                if !moved.is_null() {
                    moved.copy_from_nonoverlapping(block, layout.size().min(size));
                    dealloc(block, layout);
                }
                moved
            }
        }
    }
}

/// The length of the mapping of a block.
fn mapped_length(size: usize) -> usize {
    // Sizes of layouts are at most `isize::MAX`.
    size.next_multiple_of(PAGE).max(HUGE)
}

/// A mapping of zeros at a multiple of [`HUGE`]; null if there is no memory.
fn map(size: usize) -> *mut u8 {
    let length = mapped_length(size);
    let whole = length + HUGE;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the system chooses a place where nothing is.
    let mapped = unsafe { mm::mmap_anonymous(ptr::null_mut(), whole, access, MapFlags::PRIVATE) };
    let Ok(mapped) = mapped else {
        return ptr::null_mut();
    };
    let before = mapped.addr().wrapping_neg() % HUGE;
    // SAFETY: these ranges are within the new mapping, and nothing uses them. If the calls fail,
    // some addresses stay taken, or the pages are small.
    unsafe {
        let block = mapped.byte_add(before);
        if before > 0 {
            let _ = mm::munmap(mapped, before);
        }
        if before < HUGE {
            let _ = mm::munmap(block.byte_add(length), HUGE - before);
        }
        let _ = mm::madvise(block, length, Advice::LinuxHugepage);
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_on_both_sides_of_the_border_keep_their_bytes_in_another_size() {
        let sizes = [
            1,
            LARGEST_UNMAPPED - 1,
            LARGEST_UNMAPPED,
            LARGEST_UNMAPPED + 1,
            HUGE,
            3 * HUGE + 5,
        ];
        for (before, after) in sizes.iter().flat_map(|&a| sizes.map(|b| (a, b))) {
            let layout = Layout::from_size_align(before, 16).expect("a valid layout");
            let both = before.min(after);
            // SAFETY: every access is within the block's size at that time.
            unsafe {
                let block = alloc_zeroed(layout);
                assert!(!block.is_null() && block.addr().is_multiple_of(16));
                assert_eq!((*block, *block.add(before - 1)), (0, 0));
                *block = 7;
                *block.add(both / 2) = 8;
                *block.add(both - 1) = 9;
                let block = realloc(block, layout, after);
                assert!(!block.is_null() && block.addr().is_multiple_of(16));
                assert_eq!(*block.add(both - 1), 9, "{before} to {after}");
                assert!(both < 3 || (*block, *block.add(both / 2)) == (7, 8));
                *block.add(after - 1) = 1;
                let layout = Layout::from_size_align_unchecked(after, 16);
                dealloc(block, layout);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends where there is no memory")]
    fn a_block_that_cannot_be_had_is_null() {
        let layout =
            Layout::from_size_align(isize::MAX as usize - PAGE, 1).expect("a valid layout");
        // SAFETY: the size is not 0.
        unsafe {
            assert!(alloc(layout).is_null());
            let small = Layout::new::<[u8; HUGE]>();
            let block = alloc(small);
            assert!(realloc(block, small, layout.size()).is_null());
            *block = 1;
            dealloc(block, small);
        }
    }
}
