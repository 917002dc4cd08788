//! A browser's name and system in words, such as `Firefox on Linux`.
//!
//! A client sends any `User-Agent`. Only words of the tables here are shown, so it brings nothing
//! else into the database or a page, however long or odd it is.

/// The most bytes that are looked at; browsers send some 100.
const MAX_BYTES: usize = 512;

/// A word of a browser's `User-Agent`, and the browser's name. Most of them also have what those
/// below them have.
const BROWSERS: [(&str, &str); 20] = [
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("Edge/", "Edge"),
    ("OPR/", "Opera"),
    ("OPT/", "Opera"),
    ("Opera", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Vivaldi/", "Vivaldi"),
    ("DuckDuckGo/", "DuckDuckGo"),
    ("Epiphany/", "GNOME Web"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("Trident/", "Internet Explorer"),
    ("curl/", "curl"),
    ("Wget/", "Wget"),
];

/// A word of a system in `User-Agent`, and the system's name. iPhones mention macOS, and Android
/// mentions Linux.
const SYSTEMS: [(&str, &str); 9] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
    ("FreeBSD", "FreeBSD"),
    ("OpenBSD", "OpenBSD"),
];

/// The name of the browser that sends this `User-Agent`; empty if it is unknown.
pub fn browser_name(user_agent: &str) -> String {
    let looked_at = user_agent.floor_char_boundary(MAX_BYTES);
    let told = &user_agent[..looked_at];
    let find = |table: &[(&str, &'static str)]| {
        let found = table.iter().find(|(sign, _)| told.contains(sign));
        found.map(|(_, name)| *name)
    };
    match (find(&BROWSERS), find(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, Some(system)) => format!("Unknown browser on {system}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_told_by_name_and_system() {
        for (user_agent, name) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                "Firefox on Linux",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/141.0.0.0 Safari/537.36",
                "Chrome on Windows",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) \
                 Version/26.0 Safari/605.1.15",
                "Safari on macOS",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 \
                 (KHTML, like Gecko) CriOS/141.0.0.0 Mobile/15E148 Safari/604.1",
                "Chrome on iPhone",
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; SM-S921B) AppleWebKit/537.36 (KHTML, like Gecko) \
                 SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36",
                "Samsung Internet on Android",
            ),
            (
                "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/141.0.0.0 Safari/537.36 OPR/120.0.0.0",
                "Opera on ChromeOS",
            ),
            ("curl/8.14.1", "curl"),
            ("a browser of Linux", "Unknown browser on Linux"),
            ("python-requests/2.32", ""),
            ("", ""),
        ] {
            assert_eq!(browser_name(user_agent), name, "{user_agent}");
        }
    }

    #[test]
    fn odd_texts_are_harmless() {
        let long = "é".repeat(100_000);
        for (user_agent, name) in [
            (long.as_str(), ""),
            ("<script>alert(1)</script>", ""),
            ("Firefox/<script>\r\n\0\u{202e}", "Firefox"),
            (&format!("{long}Firefox/1"), ""),
            (&format!("a{}", &long[..520]), ""),
        ] {
            assert_eq!(browser_name(user_agent), name);
        }
        for (_, browser) in BROWSERS {
            for (_, system) in SYSTEMS {
                let longest = format!("{browser} on {system}");
                assert!(longest.len() <= crate::store::MAX_BROWSER_NAME, "{longest}");
            }
        }
    }
}
