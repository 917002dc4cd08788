//! TLS without C: rustls with graviola, and the root certificates that it trusts.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;
use std::sync::Arc;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Whether this CPU has the instructions that graviola 0.4 asserts on first use
/// (`low/x86_64/cpu.rs`, `low/aarch64/cpu.rs`). Without them it panics: on machines older than
/// Broadwell, and under the default CPU models of QEMU.
pub(super) fn available() -> bool {
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

/// The configuration of ureq for https: graviola, and the roots of Mozilla and of `ca_file` (PEM).
///
/// # Errors
/// A sentence for the operator: `ca_file` cannot be read, or holds something other than
/// certificates.
pub(super) fn config(ca_file: Option<&Path>) -> Result<TlsConfig, String> {
    let mut roots: Vec<Certificate<'static>> = webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .map(|der| Certificate::from_der(der))
        .collect();
    if let Some(path) = ca_file {
        roots.extend(read_roots(path)?);
    }
    Ok(TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls_graviola::default_provider()))
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .build())
}

fn read_roots(path: &Path) -> Result<Vec<Certificate<'static>>, String> {
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
    // fetches.
    let mut probe = RootCertStore::empty();
    for (index, der) in ders.iter().enumerate() {
        probe.add(der.clone()).map_err(|error| {
            format!(
                "Certificate {} of {name} cannot be used: {error}.",
                index + 1
            )
        })?;
    }
    Ok(ders
        .iter()
        .map(|der| Certificate::from_der(der).to_owned())
        .collect())
}
