//! Which vector instructions the encoder uses. Results are the same bytes with all of them.

/// A choice of instructions that this machine has.
///
/// It is one of the encoder's options: only [`Simd::detect`] asks the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simd(pub(super) Instructions);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instructions {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

/// Proof that the machine has AVX2: only [`Avx2::detect`] makes one.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    fn detect() -> Option<Avx2> {
        // Every processor with AVX2 has the other three, which speed up the code around the
        // vectors.
        let has_all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt");
        has_all.then_some(Avx2(()))
    }
}

impl Simd {
    /// No vector instructions but those that the compiler uses by itself.
    pub const SCALAR: Simd = Simd(Instructions::Scalar);

    /// The best instructions that this machine has.
    pub fn detect() -> Simd {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::detect() {
            return Simd(Instructions::Avx2(avx2));
        }
        Simd::SCALAR
    }

    /// All choices that this machine has, [`Simd::SCALAR`] first.
    pub fn supported() -> Vec<Simd> {
        let mut all = vec![Simd::SCALAR];
        if Simd::detect() != Simd::SCALAR {
            all.push(Simd::detect());
        }
        all
    }
}
