//! Each problem, provoked at a running server.

use super::document::Document;
use crate::support::animation::moving_squares;
use crate::support::host::Host;
use crate::support::hostile::{ihdr, png};
use crate::support::picture::Picture;
use crate::support::service::{OWNER, Service};
use crate::support::{Response, TOWEBP, read_response};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::net::{Shutdown, TcpListener};
use std::process::Command;

/// Problems that are not provoked here, and why.
const UNPROVOKED: [(&str, &str); 2] = [
    (
        "internal_error",
        "it takes a fault of the program; tests of `src/http/exchange.rs` have one",
    ),
    (
        "watermark_tls_unavailable",
        "it takes a processor without AVX2; tests of `src/fetch/` have one",
    ),
];

/// The path of conversions.
const CONVERT: &str = "/convert";

#[test]
fn every_problem_is_as_it_is_described() {
    let mut provoked = Provoked::start();
    provoked.tokens_and_paths();
    provoked.queries_and_types();
    provoked.pictures();
    provoked.watermarks();
    provoked.limits_of_accounts();
    provoked.connections();
    provoked.forms();
    provoked.busy_servers();
    provoked.disks();
    let described = &provoked.document.0["components"]["examples"];
    let described = described.as_object().expect("there are examples").keys();
    let described: BTreeSet<&str> = described.map(String::as_str).collect();
    let known = UNPROVOKED.iter().map(|(code, _)| *code);
    let met: BTreeSet<&str> = provoked
        .codes
        .iter()
        .map(String::as_str)
        .chain(known)
        .collect();
    assert_eq!(met, described);
}

/// A server with low limits, and the problems that were met so far.
struct Provoked {
    service: Service,
    document: Document,
    codes: BTreeSet<String>,
}

impl Provoked {
    fn start() -> Provoked {
        let service = Service::start_with(&[
            "--allow-private-watermark-hosts",
            "--max-body",
            "60000",
            "--max-pixels",
            "30000",
            "--max-frames",
            "2",
            "--max-headers",
            "20",
            "--watermark-timeout",
            "1",
            "--head-timeout",
            "1",
            "--signin-limit",
            "1",
            "--allow-origin",
            "*",
        ]);
        Provoked {
            document: Document::of(&service.server),
            service,
            codes: BTreeSet::new(),
        }
    }

    /// Holds an answer to the description of its problem, and of the operation on a path if one is
    /// given.
    #[track_caller]
    fn met(&mut self, code: &str, path: Option<&str>, answer: &Response) {
        assert_eq!(self.document.check_problem(answer, code), code);
        if let Some(path) = path {
            let item = self.document.0["paths"][path].as_object();
            let operation = item.expect("it is described").values().next();
            let operation = operation.expect("it has a method").clone();
            self.document.check(&operation, answer, code);
        }
        self.codes.insert(code.to_owned());
    }

    /// Sends a conversion with the account's token, which has to fail.
    #[track_caller]
    fn convert(&mut self, code: &str, parameters: &[(&str, &str)], media_type: &str, body: &[u8]) {
        let answer = self.service.convert(parameters, media_type, body);
        self.met(code, Some(CONVERT), &answer);
    }

    /// Sends bytes as they are, and reads the answer.
    #[track_caller]
    fn raw(&mut self, code: &str, bytes: impl AsRef<[u8]>) {
        let mut stream = self.service.server.send_raw(bytes);
        stream.shutdown(Shutdown::Write).ok();
        let answer = read_response(&mut stream, false);
        self.met(code, None, &answer);
    }

    fn tokens_and_paths(&mut self) {
        let bearer = format!("Bearer {}", self.service.token);
        let (target, other) = (self.service.target(&[]), "/convert?token=twp_other");
        for (code, target, headers) in [
            ("token_missing", CONVERT, &[][..]),
            ("token_invalid", other, &[]),
            ("tokens_differ", other, &[("Authorization", &*bearer)]),
            (
                "token_in_url",
                &target,
                &[("Origin", "https://app.example.org")],
            ),
        ] {
            let answer = self.service.request("POST", target, headers, b"");
            self.met(code, Some(CONVERT), &answer);
        }
        let answer = self.service.get("/shrink", &[]);
        self.met("not_found", None, &answer);
        let answer = self.service.get(CONVERT, &[]);
        self.met("method_not_allowed", None, &answer);
        let public = self.account(&["set-token", OWNER, "public"]);
        let bearer = format!("Bearer {public}");
        for path in ["/api/usage", "/api/usage.csv"] {
            let answer = self.service.get(path, &[("Authorization", &bearer)]);
            self.met("token_converts_only", Some(path), &answer);
        }
        let ended = self.account(&["set-token", OWNER, "old", "--ends", "2001-01-01"]);
        let answer = self.convert_by(&ended, "");
        self.met("token_expired", Some(CONVERT), &answer);
    }

    fn queries_and_types(&mut self) {
        let body = Picture::waves(24, 16).png();
        let twice = [("quality", "80"), ("quality", "90")];
        self.convert("repeated_parameter", &twice, "image/png", &body);
        let middle = [("watermark_position", "middle")];
        self.convert("invalid_parameter", &middle, "image/png", &body);
        let least = [("max_bytes", "1")];
        self.convert("max_bytes_unreachable", &least, "image/png", &body);
        let han = [("watermark", "漢")];
        self.convert("missing_characters", &han, "image/png", &body);
        let form = "application/x-www-form-urlencoded";
        self.convert("content_type_missing", &[], form, &body);
        self.convert("content_type_unsupported", &[], "image/webp", &body);
        self.convert("body_empty", &[], "image/png", b"");
        for (code, headers) in [
            (
                "content_type_repeated",
                &[("Content-Type", "image/png"), ("Content-Type", "image/png")][..],
            ),
            (
                "content_encoding_unsupported",
                &[("Content-Type", "image/png"), ("Content-Encoding", "gzip")],
            ),
        ] {
            let target = self.service.target(&[]);
            let answer = self.service.request("POST", &target, headers, &body);
            self.met(code, Some(CONVERT), &answer);
        }
        let fixed = self.account(&["set-token", OWNER, "fixed", "--preset", "!quality=80"]);
        let answer = self.convert_by(&fixed, "&quality=90");
        self.met("fixed_parameter", Some(CONVERT), &answer);
    }

    fn pictures(&mut self) {
        let body = Picture::waves(24, 16).png();
        self.convert("wrong_format", &[], "image/gif", &body);
        self.convert("invalid_image", &[], "image/png", &body[..60]);
        let wide = png(&[ihdr(20_000, 1, false)]);
        self.convert("image_too_wide", &[], "image/png", &wide);
        let many = Picture::flat(300, 200, [1, 2, 3]).png();
        self.convert("too_many_pixels", &[], "image/png", &many);
        let frames = moving_squares(64, 48, 4);
        self.convert("too_many_frames", &[], "image/gif", &frames);
        self.convert("body_too_large", &[], "image/png", &vec![0; 60_001]);
        let small = Service::start_with(&[
            "--memory",
            "240MiB",
            "--buffer",
            "2MiB",
            "--max-body",
            "1MiB",
        ]);
        let large = Picture::flat(4000, 3000, [1, 2, 3]).png();
        let answer = small.convert(&[], "image/png", &large);
        self.met("too_much_memory", Some(CONVERT), &answer);
        let hurried = Service::start_with(&["--conversion-timeout", "1"]);
        let long = [("effort", "max"), ("target", "90")];
        let noise = Picture::noise(1600, 1600).png();
        let answer = hurried.convert(&long, "image/png", &noise);
        self.met("conversion_timeout", Some(CONVERT), &answer);
    }

    fn watermarks(&mut self) {
        let body = Picture::waves(24, 16).png();
        let logo = Host::of(&body);
        let (large, text) = (Host::of(&vec![0; 9 << 20]), Host::of(b"no picture"));
        // It accepts connections, and answers nothing.
        let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let silent = (silent.local_addr().expect("bound"), silent);
        for (code, url) in [
            ("watermark_url_invalid", "logo.png".to_owned()),
            ("watermark_unreachable", "http://127.0.0.1:1/".to_owned()),
            ("watermark_status", logo.missing()),
            ("watermark_too_large", large.url()),
            ("watermark_timeout", format!("http://{}/logo.png", silent.0)),
            ("watermark_not_png_or_jpeg", text.url()),
        ] {
            self.convert(code, &[("watermark_image", &url)], "image/png", &body);
        }
        let strict = Service::start_with(&[]);
        let answer = strict.convert(
            &[("watermark_image", "http://127.0.0.1/logo.png")],
            "image/png",
            &body,
        );
        self.met("watermark_forbidden", Some(CONVERT), &answer);
    }

    fn limits_of_accounts(&mut self) {
        for (code, limit) in [("rate_limited", "--rate"), ("quota_exceeded", "--monthly")] {
            let email = format!("{code}@example.org");
            let token = self.service.server.create_account(&email);
            self.account(&["limit", &email, limit, "1"]);
            assert_eq!(self.convert_by(&token, "").status, 200);
            let answer = self.convert_by(&token, "");
            self.met(code, Some(CONVERT), &answer);
        }
        let token = self.service.server.create_account("disabled@example.org");
        self.account(&["disable", "disabled@example.org"]);
        let answer = self.convert_by(&token, "");
        self.met("account_disabled", Some(CONVERT), &answer);
    }

    fn connections(&mut self) {
        let target = self.service.target(&[]);
        let post = format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\n");
        self.raw("malformed_request", "GET / HTTP/1.1\r\n\r\n");
        self.raw("http_version_unsupported", "GET / HTTP/2.0\r\n\r\n");
        self.raw("length_required", format!("POST {target} HTTP/1.0\r\n\r\n"));
        self.raw("expectation_failed", format!("{post}Expect: tea\r\n\r\n"));
        let gzip = format!("{post}Transfer-Encoding: gzip\r\n\r\n");
        self.raw("transfer_encoding_unsupported", gzip);
        let lengths = "Content-Length: 3\r\nContent-Length: 4\r\n\r\nfew";
        self.raw("content_length_invalid", format!("{post}{lengths}"));
        self.raw(
            "body_cut_short",
            format!("{post}Content-Length: 9\r\n\r\nfew"),
        );
        let headers = "A: b\r\n".repeat(30);
        self.raw("head_too_large", format!("{post}{headers}\r\n"));
        let long = "x".repeat(20_000);
        self.raw("target_too_long", format!("GET /{long} HTTP/1.1\r\n\r\n"));
        let mut stream = self.service.server.send_raw("GET / HT");
        let answer = read_response(&mut stream, false);
        self.met("request_timeout", None, &answer);
        let crowded = Service::start_with(&["--max-connections-per-address", "1"]);
        let _held = crowded.server.send_raw("GET /healthz HT");
        let mut stream = crowded.server.send_raw("");
        let answer = read_response(&mut stream, false);
        self.met("too_many_connections", None, &answer);
    }

    fn forms(&mut self) {
        let fields = [("email", OWNER), ("password", "not the password")];
        let post = || self.service.server.request("POST", "/signin");
        let from_elsewhere = post().header("Sec-Fetch-Site", "cross-site").form(&fields);
        let of_json = post().header("Content-Type", "application/json").body("{}");
        let answers = [from_elsewhere.send(), of_json.send()];
        post().form(&fields).send();
        let again = post().form(&fields).send();
        self.met("cross_site_form", None, &answers[0]);
        self.met("invalid_form", None, &answers[1]);
        self.met("too_many_attempts", None, &again);
    }

    fn busy_servers(&mut self) {
        let service = Service::start_with(&[
            "--allow-private-watermark-hosts",
            "--watermark-fetches",
            "1",
            "--watermark-queue",
            "0",
        ]);
        let _held = service.begin_conversion();
        let host = Host::of(&Picture::waves(8, 8).png());
        let answer = service.convert(
            &[("watermark_image", &host.url())],
            "image/png",
            &Picture::waves(24, 16).png(),
        );
        self.met("busy", Some(CONVERT), &answer);
    }

    /// A limit on the size of files is what a full disk is to the database.
    fn disks(&mut self) {
        let service = Service::start();
        let process = i32::try_from(service.server.process_id()).expect("Linux has no more");
        let limit = Rlimit {
            current: Some(64 << 10),
            maximum: None,
        };
        prlimit(Pid::from_raw(process), Resource::Fsize, limit).expect("it is our own process");
        let body = Picture::waves(24, 16).png();
        let mut answers = (0..1000).map(|_| service.convert(&[], "image/png", &body));
        let answer = answers.find(|answer| answer.status != 200);
        let answer = answer.expect("the database cannot grow");
        self.met("storage_unavailable", Some(CONVERT), &answer);
        let answer = service.get("/readyz", &[]);
        self.met("not_ready", Some("/readyz"), &answer);
    }

    /// Converts a picture by this token.
    fn convert_by(&self, token: &str, query: &str) -> Response {
        let target = format!("/convert?token={token}{query}");
        let headers = [("Content-Type", "image/png")];
        let body = Picture::waves(24, 16).png();
        self.service.request("POST", &target, &headers, &body)
    }

    /// Runs `towebp account`, and gives what it prints.
    #[track_caller]
    fn account(&self, args: &[&str]) -> String {
        let output = Command::new(TOWEBP)
            .arg("account")
            .args(args)
            .arg("--data")
            .arg(self.service.data())
            .output()
            .expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {error}");
        String::from_utf8(output.stdout)
            .expect("text")
            .trim()
            .to_owned()
    }
}

/// Every reason is of a problem that there is.
#[test]
fn only_described_problems_are_left_out() {
    let service = Service::start();
    let document = Document::of(&service.server);
    for (code, reason) in UNPROVOKED {
        let example = &document.0["components"]["examples"][code];
        assert!(example != &Json::Null, "{code}: {reason}");
    }
}
