//! Options of the lossless encoder (RFC 9649, section 3).

use crate::Effort;
use crate::cpu::Simd;
use crate::threads::Workers;

/// Options of a lossless image.
#[derive(Clone, Copy, Debug)]
pub struct LosslessOptions<'a> {
    /// How many transforms, copies and groups of codes are tried.
    pub effort: Effort,
    /// Vector instructions to use. The bytes do not depend on them.
    pub simd: Simd,
    /// Threads to use, and the cancellation of the work. The bytes do not depend on the number of
    /// threads.
    pub workers: Workers<'a>,
}
