//! Whether a request of a browser comes from a page of this service.

use super::request::Request;
use super::settings::Settings;

/// Whether it does, by `Sec-Fetch-Site`, or by `Origin` where that is missing (plain http outside
/// of localhost). A request with neither does not come from a browser of today, and so carries
/// nobody's cookies against their will.
pub fn is_same_site(settings: &Settings, request: &Request) -> bool {
    if let Some(site) = request.header("sec-fetch-site") {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = request.header("origin") else {
        return true;
    };
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    settings.public_url.as_deref() == Some(origin)
        || (authority.is_some() && authority == request.header("host"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn same_site(public_url: Option<&str>, headers: &[(&str, &str)]) -> bool {
        let settings = Settings {
            public_url: public_url.map(str::to_owned),
            ..Settings::default()
        };
        is_same_site(
            &settings,
            &Request::new(
                "POST",
                "/signin",
                Ipv4Addr::LOCALHOST.into(),
                headers.iter().copied(),
            ),
        )
    }

    #[test]
    fn forms_of_other_sites_are_told_by_what_browsers_say() {
        let host = ("Host", "localhost:8080");
        assert!(same_site(
            None,
            &[host, ("Sec-Fetch-Site", "same-origin"), ("Origin", "null")]
        ));
        assert!(!same_site(None, &[host, ("Sec-Fetch-Site", "cross-site")]));
        assert!(
            !same_site(None, &[host, ("Sec-Fetch-Site", "same-site")]),
            "another port of the same host"
        );
        assert!(same_site(
            None,
            &[host, ("Origin", "http://localhost:8080")]
        ));
        assert!(!same_site(
            None,
            &[host, ("Origin", "http://localhost:9090")]
        ));
        assert!(!same_site(None, &[host, ("Origin", "null")]));
        assert!(same_site(None, &[host]), "curl says neither");
        let behind_proxy = [
            ("Host", "127.0.0.1:8080"),
            ("Origin", "https://webp.example.org"),
        ];
        assert!(same_site(Some("https://webp.example.org"), &behind_proxy));
        assert!(!same_site(None, &behind_proxy));
    }
}
