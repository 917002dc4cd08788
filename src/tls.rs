//! TLS without C: rustls with graviola, for watermarks' hosts and for the database.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Whether this CPU has the instructions that graviola 0.4 asserts on first use
/// (`low/x86_64/cpu.rs`, `low/aarch64/cpu.rs`). Without them it panics: on machines older than
/// Broadwell, and under the default CPU models of QEMU.
pub fn available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("aes")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("adx")
        && is_x86_feature_detected!("avx")
        && is_x86_feature_detected!("avx2");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("neon")
        && std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull")
        && std::arch::is_aarch64_feature_detected!("sha2");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// The cryptography that rustls is to use.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls_graviola::default_provider())
}

/// The root certificates of a PEM file, at least one.
///
/// # Errors
/// A sentence for the operator: the file cannot be read, or holds something other than
/// certificates.
pub fn read_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let name = path.display();
    let ders = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("The certificates' file {name} cannot be read: {error}."))?;
    if ders.is_empty() {
        return Err(format!(
            "The certificates' file {name} holds no certificate in PEM form."
        ));
    }
    // ureq skips a root that it cannot read, and the operator would learn of it from failed
    // connections.
    let mut probe = RootCertStore::empty();
    for (index, der) in ders.iter().enumerate() {
        probe.add(der.clone()).map_err(|error| {
            format!(
                "Certificate {} of {name} cannot be used: {error}.",
                index + 1
            )
        })?;
    }
    Ok(ders)
}
