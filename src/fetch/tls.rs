//! The configuration of ureq for https: what [`crate::tls`] has, and the root certificates.

use std::path::Path;
use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::tls;

/// The configuration of ureq for https: graviola, and the roots of Mozilla and of `ca_file` (PEM).
///
/// # Errors
/// A sentence for the operator: `ca_file` cannot be read, or holds something other than
/// certificates.
pub fn config(ca_file: Option<&Path>) -> Result<TlsConfig, String> {
    let mut roots: Vec<Certificate<'static>> = webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .map(|der| Certificate::from_der(der))
        .collect();
    if let Some(path) = ca_file {
        let more = tls::read_roots(path)?;
        roots.extend(more.iter().map(|der| Certificate::from_der(der).to_owned()));
    }
    Ok(TlsConfig::builder()
        .unversioned_rustls_crypto_provider(tls::provider())
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .build())
}
