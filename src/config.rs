//! The settings of a server: one table of them ([`SETTINGS`]), the configuration that they give,
//! and the checks of values that depend on each other.

mod address;
mod given;
mod memory;
mod table;
mod value;

pub use address::{Listen, address, listen, public_url};
pub use given::{Config, Given, PREFIX, Setting};
pub use table::{Has, SETTINGS};
pub use value::{Field, Kind};

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    /// The values of these flags.
    pub(super) fn given(flags: &[(&str, &str)]) -> Result<Given, String> {
        let mut given = Given::default();
        for (name, value) in flags {
            let row = SETTINGS.iter().find(|row| row.name == *name);
            given.set(row.expect("a setting"), &[OsStr::new(value)], false)?;
        }
        Ok(given)
    }

    fn config(flags: &[(&str, &str)]) -> Result<Config, String> {
        given(flags)?.config(4 << 30)
    }

    #[test]
    fn the_defaults_pass() {
        config(&[]).expect("the defaults are sensible");
    }

    #[test]
    fn every_setting_has_a_range_that_suits_its_place_and_holds_its_default() {
        for row in SETTINGS {
            let (Kind::Number(least, most)
            | Kind::Pixels(least, most)
            | Kind::Bytes(least, most)
            | Kind::Seconds(least, most)
            | Kind::Days(least, most)) = row.kind
            else {
                continue;
            };
            for number in [least, most] {
                let set = given(&[(row.name, &number.to_string())]);
                set.unwrap_or_else(|error| panic!("{error}"));
            }
            if row.default.is_none() {
                let default = row.default_text();
                given(&[(row.name, &default)]).unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }

    #[test]
    fn invalid_values_are_rejected_with_the_name_of_the_flag() {
        for (name, value) in [
            ("max-body", "0"),
            ("max-body", "1024GiB"),
            ("max-pixels", "0"),
            ("max-frames", "0"),
            ("max-animation-pixels", "0"),
            ("conversion-timeout", "3601"),
            ("watermark-timeout", "0"),
            ("watermark-fetches", "0"),
            ("watermark-fetches-per-account", "1025"),
            ("watermark-queue", "18446744073709551615"),
            ("watermark-queue-per-account", "18446744073709551615"),
            ("watermark-cache", "1073741825"),
            ("ca-file", "no-such-file.pem"),
            ("threads", "18446744073709551615"),
            ("threads", "many"),
            ("max-connections", "0"),
            ("max-head", "1000"),
            ("max-headers", "0"),
            ("idle-timeout", "0"),
            ("min-rate", "9223372036854775807"),
            ("buffer", "32MiB"),
            ("signup", "perhaps"),
            ("public-url", "example.org"),
            ("sniff", "perhaps"),
            ("trusted-proxy", "everybody"),
        ] {
            let error = config(&[(name, value)]).expect_err(name);
            assert!(error.starts_with(&format!("--{name} ")), "{error}");
        }
    }

    #[test]
    fn sizes_have_the_same_units_everywhere() {
        for (value, expected) in [
            ("1048576", 1 << 20),
            ("1MiB", 1 << 20),
            ("1M", 1_000_000),
            ("1MB", 1_000_000),
            ("500kB", 500_000),
            ("500k", 500_000),
        ] {
            let config = config(&[("max-body", value)]).expect("a size");
            assert_eq!(config.http.max_body, expected, "{value}");
        }
        let limits = config(&[("max-pixels", "10M")]).expect("a size").limits;
        assert_eq!(limits.max_pixels, 10_000_000);
        for wrong in ["", "MiB", "-1", "1.5M", "1X", "99999999999G"] {
            config(&[("max-body", wrong)]).expect_err(wrong);
        }
    }

    #[test]
    fn a_sentence_names_the_variable_that_a_value_comes_from() {
        let row = SETTINGS.iter().find(|row| row.name == "store-ca");
        let mut given = Given::default();
        let set = given.set(row.expect("a setting"), &[OsStr::new("ca.pem")], true);
        set.expect("any file");
        let error = given.store().expect_err("there is no store");
        assert_eq!(error, "TOWEBP_STORE_CA without --store");
    }

    #[test]
    fn lists_have_commas_or_spaces_in_between() {
        let listen = config(&[("listen", "127.0.0.1:80, [::]:80 stdin")]);
        let listen = listen.expect("three of them").listen;
        assert_eq!(listen.len(), 3);
        assert_eq!(listen[2], Listen::StandardInput);
    }

    #[test]
    fn flags_of_the_store_need_a_store() {
        for name in ["password-file", "ca", "tls", "connections", "timeout"] {
            let name = format!("store-{name}");
            let value = if name.ends_with("tls") { "on" } else { "5" };
            let error = given(&[(&name, value)]).and_then(|given| given.store());
            assert_eq!(error.unwrap_err(), format!("--{name} without --store"));
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn flags_of_the_store_are_read_and_checked() {
        let store = ("store", "postgres://towebp@db1,db2:5433/towebp");
        let postgres = |flags: &[(&str, &str)]| {
            let settings = given(&[&[store], flags].concat())?.store()?;
            Ok::<_, String>(settings.postgres.expect("there is a URL"))
        };
        let settings = postgres(&[]).unwrap();
        assert!(settings.tls);
        // As the table says in words.
        for (name, default) in [
            ("store-connections", settings.connections as u64),
            ("store-timeout", settings.timeout.as_secs()),
        ] {
            let row = SETTINGS.iter().find(|row| row.name == name);
            assert_eq!(row.unwrap().default_text(), default.to_string());
        }
        let settings = postgres(&[
            ("store-password-file", "password"),
            ("store-ca", "ca.pem"),
            ("store-tls", "on"),
            ("store-connections", "9"),
            ("store-timeout", "7"),
        ]);
        let settings = settings.unwrap();
        assert_eq!(settings.password_file, Some("password".into()));
        assert_eq!(settings.ca, Some("ca.pem".into()));
        assert_eq!(settings.connections, 9);
        assert_eq!(settings.timeout, std::time::Duration::from_secs(7));
        for wrong in [
            ("store", "postgres://towebp:hunter2@db1/towebp"),
            ("store-tls", "off"),
            ("store-connections", "1"),
            ("store-timeout", "0"),
        ] {
            let error = postgres(&[wrong]).unwrap_err();
            assert!(error.starts_with("--store"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn public_urls_have_no_path() {
        assert_eq!(
            public_url("https://WebP.example.org/"),
            Ok("https://webp.example.org".to_owned())
        );
        assert_eq!(
            public_url("http://[::1]:8080"),
            Ok("http://[::1]:8080".to_owned())
        );
        for wrong in [
            "",
            "example.org",
            "https://",
            "https://example.org/a",
            "ftp://example.org",
            "https://a'b",
        ] {
            public_url(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn standard_input_is_accepted_as_a_listener() {
        assert_eq!(listen("stdin"), Ok(Listen::StandardInput));
        assert_eq!(listen("[::1]:80"), address("[::1]:80").map(Listen::At));
        listen("stdout").expect_err("it is no listener");
    }

    #[test]
    fn addresses_name_a_port() {
        assert_eq!(address("localhost:80"), address("127.0.0.1:80"));
        for wrong in ["", "8080", "127.0.0.1", "example.org:80"] {
            address(wrong).expect_err(wrong);
        }
    }
}
