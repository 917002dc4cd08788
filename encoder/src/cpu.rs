//! The vector instructions that the encoder uses. The file is the same bytes with all of them.

#[cfg(target_arch = "aarch64")]
use fearless_simd::aarch64::Neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use fearless_simd::wasm32::WasmSimd128;
#[cfg(target_arch = "x86_64")]
use fearless_simd::x86::{Avx2, Sse2, Sse4_2};
use std::mem::discriminant;

/// A choice of instructions that this machine has.
///
/// It is one of the encoder's options: only [`Simd::detect`] reads the processor's features.
#[derive(Clone, Copy, Debug)]
pub struct Simd(pub(super) Instructions);

/// The choices. Each value but `Scalar` holds the proof that the machine has its instructions.
#[derive(Clone, Copy, Debug)]
pub(super) enum Instructions {
    Scalar,
    /// x86-64's baseline, which every such processor has.
    #[cfg(target_arch = "x86_64")]
    Sse2(Sse2),
    /// x86-64-v2: SSE4.2, with SSSE3's byte shuffles.
    #[cfg(target_arch = "x86_64")]
    Sse4(Sse4_2),
    /// x86-64-v3: AVX2, with BMI and LZCNT, which speed up the code around the vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AArch64's baseline, which every such processor has.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
    /// WebAssembly compiled with `-C target-feature=+simd128`.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Wasm(WasmSimd128),
}

impl PartialEq for Simd {
    fn eq(&self, other: &Simd) -> bool {
        discriminant(&self.0) == discriminant(&other.0)
    }
}

impl Eq for Simd {}

impl Simd {
    /// Only the vector instructions that the compiler uses by itself.
    pub const SCALAR: Simd = Simd(Instructions::Scalar);

    /// The best instructions that this machine has.
    pub fn detect() -> Simd {
        vectors().last().unwrap_or(Simd::SCALAR)
    }

    /// All choices that this machine has, from [`Simd::SCALAR`] to the best.
    pub fn supported() -> Vec<Simd> {
        [Simd::SCALAR].into_iter().chain(vectors()).collect()
    }
}

/// Returns the choices with vectors that this machine has, the best last.
fn vectors() -> impl Iterator<Item = Simd> {
    let level = fearless_simd::Level::new();
    #[cfg(target_arch = "x86_64")]
    let all = [
        level.as_sse2().map(Instructions::Sse2),
        level.as_sse4_2().map(Instructions::Sse4),
        level.as_avx2().map(Instructions::Avx2),
    ];
    #[cfg(target_arch = "aarch64")]
    let all = [level.as_neon().map(Instructions::Neon)];
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    let all = [level.as_wasm_simd128().map(Instructions::Wasm)];
    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        all(target_arch = "wasm32", target_feature = "simd128")
    )))]
    let all = {
        let _ = level;
        [None]
    };
    all.into_iter().flatten().map(Simd)
}

/// Evaluates one of two expressions as a region of code that may use the instructions of a
/// [`Simd`]: the first without vectors, the second with the named token of the vectors.
///
/// Functions that the second one calls must be `#[inline(always)]` down to the vector operations,
/// and must not pass closures that hold any: code that is not inlined is compiled without the
/// instructions, and each operation becomes a call.
macro_rules! with_instructions {
    ($simd:expr, scalar => $scalar:expr, $token:ident => $vectors:expr $(,)?) => {
        match $simd.0 {
            $crate::cpu::Instructions::Scalar => $scalar,
            #[cfg(target_arch = "x86_64")]
            $crate::cpu::Instructions::Sse2($token) => $crate::cpu::region!($token, $vectors),
            #[cfg(target_arch = "x86_64")]
            $crate::cpu::Instructions::Sse4($token) => $crate::cpu::region!($token, $vectors),
            #[cfg(target_arch = "x86_64")]
            $crate::cpu::Instructions::Avx2($token) => $crate::cpu::region!($token, $vectors),
            #[cfg(target_arch = "aarch64")]
            $crate::cpu::Instructions::Neon($token) => $crate::cpu::region!($token, $vectors),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            $crate::cpu::Instructions::Wasm($token) => $crate::cpu::region!($token, $vectors),
        }
    };
}

/// Evaluates an expression as a region of code that may use the instructions of a token.
macro_rules! region {
    ($token:expr, $value:expr) => {
        fearless_simd::Simd::vectorize(
            $token,
            #[inline(always)]
            || $value,
        )
    };
}

pub(crate) use {region, with_instructions};
