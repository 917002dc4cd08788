//! `towebp health`: checks whether a running server is ready, for supervisors and images without a
//! shell.

use super::failure::Failure;
use super::say;
use super::settings::AddressFlags;
use super::shared::{count, whole};
use crate::config::{self, Listen};
use crate::{fetch, tls};
use clap::{Args, ValueHint};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use ureq::Agent;

/// How much of an answer is read, in bytes.
const LONGEST_ANSWER: u64 = 16 << 10;

/// Ask a running server whether it is ready: exit code 0 if it is, 1 if it is not.
#[derive(Args)]
#[command(mut_arg("listen", |listen| {
    listen.help(
        "the address that the server listens on, as towebp serve has it; one that stands for all of the machine's is \
         asked as 127.0.0.1 or ::1 (default 127.0.0.1:8080)",
    )
}))]
pub(super) struct Health {
    #[arg(
        value_name = "URL",
        value_parser = config::public_url,
        value_hint = ValueHint::Url,
        help = "the server, such as https://webp.example.org (default: where --listen says)"
    )]
    url: Option<String>,

    /// ask whether it is alive (GET /healthz) instead of whether it can convert and record (GET
    /// /readyz)
    #[arg(long)]
    live: bool,

    /// how long it may take to answer, 1 to 300 (default 5)
    #[arg(long, value_name = "SECONDS", value_parser = timeout, default_value = "5", hide_default_value = true)]
    timeout: Duration,

    #[command(flatten)]
    settings: AddressFlags,
}

/// Carries out the command.
///
/// # Errors
/// The server does not answer, or is not ready; or there is no address.
pub(super) fn run(command: &Health) -> Result<(), Failure> {
    let base = match &command.url {
        Some(url) => url.clone(),
        None => format!("http://{}", address(&command.settings.0.config.listen)?),
    };
    let path = if command.live { "healthz" } else { "readyz" };
    let url = format!("{base}/{path}");
    let answer = ask(command, &url).map_err(|reason| format!("{url}: {reason}"))?;
    Ok(say::print(&format!("{url}: {answer}"))?)
}

/// The address of the first socket that a server with these `--listen` makes.
fn address(listen: &[Listen]) -> Result<SocketAddr, Failure> {
    let usage = |sentence: &str| Failure::Usage(sentence.to_owned());
    let mut addresses = listen.iter().filter_map(|listen| match listen {
        Listen::At(address) => Some(*address),
        Listen::StandardInput => None,
    });
    let mut address = addresses.next().ok_or_else(|| {
        usage("--listen stdin has no address: name the server, such as http://127.0.0.1:8080")
    })?;
    if address.port() == 0 {
        return Err(usage(
            "--listen with port 0 does not tell which port the server has: name the server, such as \
             http://127.0.0.1:8080",
        ));
    }
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Ok(address)
}

/// The text of an answer with status 200.
fn ask(command: &Health, url: &str) -> Result<String, String> {
    let is_https = url.starts_with("https:");
    if is_https && !tls::available() {
        return Err("this CPU lacks instructions that TLS needs here".to_owned());
    }
    let mut config = Agent::config_builder()
        .timeout_global(Some(command.timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        // The check is of the server, not of a proxy of the environment.
        .proxy(None)
        .user_agent(concat!("towebp/", env!("CARGO_PKG_VERSION")))
        .accept("*/*");
    if is_https {
        let ca_file = &command.settings.0.config.fetch.ca_file;
        config = config.tls_config(fetch::tls_config(ca_file.as_deref())?);
    }
    let agent = Agent::from(config.build());
    let mut response = agent.get(url).call().map_err(|error| match error {
        ureq::Error::Timeout(_) => {
            format!(
                "no answer within {}",
                count(command.timeout.as_secs(), "second")
            )
        }
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    })?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(LONGEST_ANSWER);
    let text = body.read_to_string().unwrap_or_default();
    if status == 200 {
        return Ok(text.lines().next().unwrap_or_default().to_owned());
    }
    let problem: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    let detail = problem.as_ref().and_then(|it| it.get("detail")?.as_str());
    Err(match detail {
        Some(detail) => format!("{status}: {detail}"),
        None => format!("{status} was answered, where 200 says that all is well"),
    })
}

/// Parses `--timeout`.
fn timeout(text: &str) -> Result<Duration, String> {
    whole(text, 1, 300).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_address_is_asked() {
        let asked = |listen: &[&str]| {
            let listen = listen
                .iter()
                .map(|text| config::listen(text).expect("an address"));
            address(&listen.collect::<Vec<_>>()).map(|address| address.to_string())
        };
        for (listen, expected) in [
            (&["127.0.0.1:8080"][..], "127.0.0.1:8080"),
            (&["0.0.0.0:80"], "127.0.0.1:80"),
            (&["[::]:80"], "[::1]:80"),
            (&["192.0.2.1:80", "127.0.0.1:81"], "192.0.2.1:80"),
            (&["stdin", "127.0.0.1:81"], "127.0.0.1:81"),
        ] {
            assert_eq!(asked(listen), Ok(expected.to_owned()), "{listen:?}");
        }
        for listen in [&["stdin"][..], &["127.0.0.1:0"]] {
            assert!(
                matches!(asked(listen), Err(Failure::Usage(_))),
                "{listen:?}"
            );
        }
    }
}
