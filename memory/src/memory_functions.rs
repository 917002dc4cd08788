//! `memcpy`, `memmove`, `memcmp` and `bcmp` for musl on x86-64, whose own take small steps: `rep
//! movsq` costs some 30 cycles before its first byte and then single bytes, and `memcmp` goes byte
//! by byte. Most copies and comparisons of a conversion have less than 64 bytes: the decoder of a
//! JPEG of 0.24 megapixels makes 25,600 copies of 4 bytes.
//!
//! A program that defines these symbols uses its own in place of the C library's, which every call
//! that the compiler inserts goes to as well. Nothing in here may be turned into such a call: no
//! loop copies single elements, and all loads of a step come before its stores.

#![expect(
    unsafe_code,
    reason = "these are the functions that safe code stands on"
)]

use std::arch::asm;
use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8};
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// The symbols that the program gets with this module.
#[cfg(target_env = "musl")]
mod symbols {
    use super::{c_int, compare, copy, differs};
    use std::ffi::c_void;

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut c_void, from: *const c_void, size: usize) -> *mut c_void {
        // SAFETY: as the caller promises.
        unsafe { copy(to.cast(), from.cast(), size) };
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut c_void, from: *const c_void, size: usize) -> *mut c_void {
        // SAFETY: as the caller promises.
        unsafe { copy(to.cast(), from.cast(), size) };
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(a: *const c_void, b: *const c_void, size: usize) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { compare(a.cast(), b.cast(), size) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(a: *const c_void, b: *const c_void, size: usize) -> c_int {
        // SAFETY: as the caller promises.
        c_int::from(unsafe { differs(a.cast(), b.cast(), size) })
    }
}

/// From this size on, one instruction copies faster than a loop.
const LARGE: usize = 2048;

/// Copies bytes as `memmove` does: source and destination may overlap.
///
/// # Safety
///
/// Both have `size` bytes.
#[inline(always)]
unsafe fn copy(to: *mut u8, from: *const u8, size: usize) {
    // SAFETY: All offsets are within `size`, and everything is loaded before anything is stored, or
    // is stored where no byte is that is still to be loaded.
    unsafe {
        match size {
            0 => {}
            1 => copy_ends::<u8>(to, from, size),
            2..=3 => copy_ends::<u16>(to, from, size),
            4..=7 => copy_ends::<u32>(to, from, size),
            8..=15 => copy_ends::<u64>(to, from, size),
            16..=32 => copy_ends::<__m128i>(to, from, size),
            33..=64 => copy_ends::<[__m128i; 2]>(to, from, size),
            65..=128 => copy_ends::<[__m128i; 4]>(to, from, size),
            _ if to.addr().wrapping_sub(from.addr()) < size => copy_down(to, from, size),
            // An overlap that is near behind makes the instruction slow.
            LARGE.. if from.addr().wrapping_sub(to.addr()) >= size && !cfg!(miri) => {
                copy_large(to, from, size);
            }
            _ => copy_up(to, from, size),
        }
    }
}

/// Copies between one and two times the size of a `T`: the first and the last `T`, which overlap.
#[inline(always)]
unsafe fn copy_ends<T>(to: *mut u8, from: *const u8, size: usize) {
    let end = size - size_of::<T>();
    // SAFETY: see `copy`.
    unsafe {
        let first = load::<T>(from);
        let last = load::<T>(from.add(end));
        store(to, first);
        store(to.add(end), last);
    }
}

/// Bytes as they are: padding, which has no value, and pointers with their provenance.
#[inline(always)]
unsafe fn load<T>(from: *const u8) -> MaybeUninit<T> {
    // SAFETY: the caller has a `T` there.
    unsafe { from.cast::<MaybeUninit<T>>().read_unaligned() }
}

#[inline(always)]
unsafe fn store<T>(to: *mut u8, bytes: MaybeUninit<T>) {
    // SAFETY: the caller has a `T` there.
    unsafe { to.cast::<MaybeUninit<T>>().write_unaligned(bytes) }
}

/// Copies more than 64 bytes from the first to the last. The destination does not begin within the
/// source.
#[inline(always)]
unsafe fn copy_up(to: *mut u8, from: *const u8, size: usize) {
    // SAFETY: see `copy`; the last 64 bytes are loaded before the loop stores over them.
    unsafe {
        let last = load64(from.add(size - 64));
        let mut at = 0;
        while at < size - 64 {
            store64(to.add(at), load64(from.add(at)));
            at += 64;
        }
        store64(to.add(size - 64), last);
    }
}

/// Copies more than 64 bytes from the last to the first.
#[inline(always)]
unsafe fn copy_down(to: *mut u8, from: *const u8, size: usize) {
    // SAFETY: see `copy`; the first 64 bytes are loaded before the loop stores over them.
    unsafe {
        let first = load64(from);
        let mut end = size;
        while end > 64 {
            store64(to.add(end - 64), load64(from.add(end - 64)));
            end -= 64;
        }
        store64(to, first);
    }
}

#[inline(always)]
unsafe fn load64(from: *const u8) -> [MaybeUninit<__m128i>; 4] {
    // SAFETY: the caller has 64 bytes there.
    unsafe {
        [
            load(from),
            load(from.add(16)),
            load(from.add(32)),
            load(from.add(48)),
        ]
    }
}

#[inline(always)]
unsafe fn store64(to: *mut u8, [a, b, c, d]: [MaybeUninit<__m128i>; 4]) {
    // SAFETY: the caller has 64 bytes there.
    unsafe {
        store(to, a);
        store(to.add(16), b);
        store(to.add(32), c);
        store(to.add(48), d);
    }
}

/// Copies by `rep movsb`, for which processors choose the widest loads and stores that they have.
#[inline(always)]
unsafe fn copy_large(to: *mut u8, from: *const u8, size: usize) {
    // SAFETY: see `copy`; the ABI keeps the direction flag clear.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") size => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Whether two ranges of bytes differ.
///
/// # Safety
///
/// Both have `size` bytes.
#[inline(always)]
unsafe fn differs(a: *const u8, b: *const u8, size: usize) -> bool {
    // SAFETY: all offsets are within `size`.
    unsafe {
        match size {
            0 => false,
            1 => *a != *b,
            2..=3 => ends_differ::<u16>(a, b, size),
            4..=7 => ends_differ::<u32>(a, b, size),
            8..=16 => ends_differ::<u64>(a, b, size),
            _ => {
                let mut at = 0;
                while at < size - 16 {
                    if equal_bytes(a.add(at), b.add(at)) != 0xffff {
                        return true;
                    }
                    at += 16;
                }
                equal_bytes(a.add(size - 16), b.add(size - 16)) != 0xffff
            }
        }
    }
}

/// Whether the first or the last `T` of two ranges differ.
#[inline(always)]
unsafe fn ends_differ<T: PartialEq>(a: *const u8, b: *const u8, size: usize) -> bool {
    let end = size - size_of::<T>();
    // SAFETY: see `differs`.
    unsafe {
        a.cast::<T>().read_unaligned() != b.cast::<T>().read_unaligned()
            || a.add(end).cast::<T>().read_unaligned() != b.add(end).cast::<T>().read_unaligned()
    }
}

/// One bit for each of 16 bytes: whether they are equal.
#[inline(always)]
unsafe fn equal_bytes(a: *const u8, b: *const u8) -> u32 {
    // SAFETY: the caller has 16 bytes at both places.
    unsafe {
        let equal = _mm_cmpeq_epi8(_mm_loadu_si128(a.cast()), _mm_loadu_si128(b.cast()));
        _mm_movemask_epi8(equal) as u32
    }
}

/// Compares bytes as `memcmp` does: by the first that differs.
///
/// # Safety
///
/// Both have `size` bytes.
#[inline(always)]
unsafe fn compare(a: *const u8, b: *const u8, size: usize) -> c_int {
    // SAFETY: all offsets are within `size`.
    unsafe {
        let at = |at: usize| c_int::from(*a.add(at)) - c_int::from(*b.add(at));
        if size < 16 {
            let mut place = 0;
            while place < size {
                if at(place) != 0 {
                    return at(place);
                }
                place += 1;
            }
            return 0;
        }
        let mut begin = 0;
        loop {
            let equal = equal_bytes(a.add(begin), b.add(begin));
            if equal != 0xffff {
                return at(begin + equal.trailing_ones() as usize);
            }
            if begin == size - 16 {
                return 0;
            }
            begin = (begin + 16).min(size - 16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest size.
    const MOST: usize = if cfg!(miri) { 300 } else { 5000 };

    /// Sizes around every border between two ways.
    fn sizes() -> impl Iterator<Item = usize> {
        let small: Vec<usize> = if cfg!(miri) {
            vec![0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 32, 33, 64, 65, 128, 129]
        } else {
            (0..300).collect()
        };
        small
            .into_iter()
            .chain([511, 512, 513, 2047, 2048, 2049, 2111, 2112, MOST])
            .filter(|size| *size <= MOST)
    }

    fn bytes(size: usize) -> Vec<u8> {
        (0..size as u32)
            .map(|index| (index.wrapping_mul(0x9e37_79b1) >> 24) as u8)
            .collect()
    }

    #[test]
    fn copies_move_exactly_their_bytes_however_they_overlap() {
        for size in sizes() {
            for distance in [
                0,
                1,
                2,
                7,
                8,
                15,
                16,
                17,
                31,
                63,
                64,
                65,
                100,
                MOST / 5,
                MOST,
            ] {
                for (from, to) in [(3, 3 + distance), (3 + distance, 3), (4 + distance, 5)] {
                    let mut memory = bytes(2 * MOST + 10);
                    let mut expected = memory.clone();
                    let moved = expected[from..from + size].to_vec();
                    for (index, byte) in moved.into_iter().enumerate() {
                        expected[to + index] = byte;
                    }
                    let start = memory.as_mut_ptr();
                    // SAFETY: both ranges are within the vector.
                    unsafe { copy(start.add(to), start.add(from), size) };
                    assert!(memory == expected, "{size} bytes from {from} to {to}");
                }
            }
        }
    }

    /// As the bytes of a type with padding, and as a pointer with its provenance.
    #[test]
    fn copies_keep_what_is_no_number() {
        type Padded = (u8, u32, &'static str);
        let values: [Padded; 12] = std::array::from_fn(|at| (at as u8, 7, "pointed to"));
        for count in 0..=values.len() {
            let mut copied: [MaybeUninit<Padded>; 12] = [const { MaybeUninit::uninit() }; 12];
            let size = count * size_of::<Padded>();
            // SAFETY: both have this many bytes, and what is read was written.
            unsafe {
                copy(copied.as_mut_ptr().cast(), values.as_ptr().cast(), size);
                for (copied, value) in copied.iter().zip(&values).take(count) {
                    assert_eq!(copied.assume_init_read(), *value, "{count} of them");
                }
            }
        }
    }

    #[test]
    fn the_first_byte_that_differs_decides() {
        for size in sizes() {
            let left = bytes(size + 1);
            let mut right = left.clone();
            // Bytes beyond the ranges do not count.
            right[size] ^= 0xff;
            // SAFETY: both have more bytes.
            let (order, differ) = unsafe {
                let (left, right) = (left.as_ptr(), right.as_ptr());
                (compare(left, right, size), differs(left, right, size))
            };
            assert_eq!((order, differ), (0, false), "{size} bytes");
            for place in (0..size.min(300)).chain(size.checked_sub(1)) {
                let mut right = left.clone();
                right[place] ^= 0x80;
                // A later difference the other way.
                if place + 1 < size {
                    right[place + 1] = !left[place + 1];
                }
                // SAFETY: both have more bytes.
                let (order, differ) = unsafe {
                    let (left, right) = (left.as_ptr(), right.as_ptr());
                    (compare(left, right, size), differs(left, right, size))
                };
                let expected = left[place].cmp(&right[place]);
                assert_eq!(
                    (order.cmp(&0), differ),
                    (expected, true),
                    "{place} of {size} bytes"
                );
            }
        }
    }
}
