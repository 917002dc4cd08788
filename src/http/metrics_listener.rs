//! `GET /metrics` on an address of its own. Its event loop answers by itself, without workers, so
//! that a scrape works however busy the service is.

use super::metrics::{Gauges, Metrics};
use super::problem::Problem;
use crate::front::{self, Admission, Head, Listeners, Rejection, Response};
use std::net::{IpAddr, SocketAddr, TcpListener};

/// The one path.
const METRICS: &str = "/metrics";

/// Connections at a time: scrapers are few, and near by.
const MAX_CONNECTIONS: usize = 16;

/// Begins to answer `GET /metrics` at this address, and gives the address that it really got.
///
/// # Errors
/// A sentence for the operator: the address cannot be had.
pub fn serve_metrics(
    address: SocketAddr,
    metrics: Metrics,
    gauges: Gauges,
) -> Result<SocketAddr, String> {
    let cannot = |error| format!("--metrics {address}: cannot listen there: {error}");
    let listener = TcpListener::bind(address).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let settings = front::Settings {
        connections: MAX_CONNECTIONS,
        connections_per_address: MAX_CONNECTIONS,
        ..front::Settings::default()
    };
    let mut listeners = Listeners::bind(&[], settings)?;
    listeners.add(listener)?;
    // Its event loop runs until the process ends.
    listeners.serve([0; 3], MetricsAdmission { metrics, gauges })?;
    Ok(address)
}

struct MetricsAdmission {
    metrics: Metrics,
    gauges: Gauges,
}

impl Admission for MetricsAdmission {
    fn admit(&self, head: &Head, _client: IpAddr) -> Result<front::Admitted, Response> {
        let path = head.target.split('?').next().unwrap_or_default();
        Err(if head.method == "GET" && path == METRICS {
            text(200, self.metrics.to_text(&self.gauges))
        } else {
            text(404, "Metrics are at GET /metrics.\n".to_owned())
        })
    }

    fn reject(&self, rejection: Rejection, _head: Option<&Head>, _client: IpAddr) -> Response {
        let problem = Problem::from(rejection);
        let mut response = text(problem.kind.row().status, format!("{}\n", problem.detail));
        if let Some(seconds) = problem.retry_after {
            response.headers.push(("Retry-After", seconds.to_string()));
        }
        response
    }
}

fn text(status: u16, text: String) -> Response {
    let media_type = "text/plain; version=0.0.4; charset=utf-8".to_owned();
    Response {
        status,
        headers: vec![("Content-Type", media_type)],
        body: text.into_bytes(),
        parts: None,
        due: None,
    }
}
