//! The numbered rules of `POST /convert` and of authentication, and the table of errors.

use crate::support::command::account;
use crate::support::host::Host;
use crate::support::picture::Picture;
use crate::support::service::{OWNER, Service};

#[test]
fn rule_1_method_other_than_post_is_405() {
    let server = Service::start();
    for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let answer = server.request(method, &server.target(&[]), &[], b"");
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), Some("POST"), "{method}");
    }
}

#[test]
fn rule_2_token_missing_or_invalid_is_401() {
    let server = Service::start();
    let png = Picture::waves(8, 8).png();
    let mut mistyped = server.token.clone();
    let last = mistyped.pop().expect("not empty");
    mistyped.push(if last == 'a' { 'b' } else { 'a' });
    let queries = [
        String::new(),
        "?token=".into(),
        "?token=x".into(),
        format!("?token={mistyped}"),
        "?token=%00%FF".into(),
    ];
    for query in queries {
        let answer = server.request(
            "POST",
            &format!("/convert{query}"),
            &[("Content-Type", "image/png")],
            &png,
        );
        assert_eq!(answer.status, 401, "{query}: {}", answer.text());
        let challenge = answer.header("www-authenticate").unwrap_or_default();
        assert!(
            challenge.starts_with("Bearer"),
            "{query}: WWW-Authenticate is {challenge:?}"
        );
    }
    assert_eq!(
        server.conversions(),
        0,
        "a refused conversion is in the history"
    );
}

#[test]
fn rule_2_token_of_another_generation_or_of_a_deleted_account_is_401() {
    let server = Service::start();
    let png = Picture::waves(8, 8).png();
    let with = |token: &str| {
        server
            .request(
                "POST",
                &format!("/convert?token={token}"),
                &[("Content-Type", "image/png")],
                &png,
            )
            .status
    };
    let rotated = account(&["rotate", OWNER], &server.data());
    assert_ne!(rotated, server.token);
    assert_eq!((with(&server.token), with(&rotated)), (401, 200));
    account(&["delete", OWNER, "--yes"], &server.data());
    assert_eq!(with(&rotated), 401);
}

#[test]
fn rule_3_unsupported_format_is_400() {
    let server = Service::start();
    let png = Picture::waves(8, 8).png();
    for content_type in [
        "image/tiff",
        "image/webp",
        "image/svg+xml",
        "text/plain",
        "image/",
        "png",
        "image/png2",
    ] {
        let answer = server.convert(&[], content_type, &png);
        assert_eq!(answer.status, 400, "{content_type}: {}", answer.text());
        for allowed in ["image/png", "image/jpeg", "image/gif", "image/bmp"] {
            assert!(
                answer.text().contains(allowed),
                "{content_type}: {allowed} is not named: {}",
                answer.text()
            );
        }
    }
    let answer = server.request("POST", &server.target(&[]), &[], &png);
    assert_eq!(answer.status, 400, "no Content-Type: {}", answer.text());
}

#[test]
fn rule_3_invalid_data_is_400() {
    let server = Service::start();
    let whole = Picture::waves(64, 64);
    let cut = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    let mut damaged = whole.png();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    let cases = [
        ("nothing", "image/png", vec![]),
        ("no picture", "image/png", b"hello, this is text".to_vec()),
        ("no picture", "image/jpeg", b"hello, this is text".to_vec()),
        ("no picture", "image/gif", b"hello, this is text".to_vec()),
        ("no picture", "image/bmp", b"hello, this is text".to_vec()),
        ("half a PNG", "image/png", cut(&whole.png())),
        ("a damaged PNG", "image/png", damaged),
        (
            "half a JPEG",
            "image/jpeg",
            cut(crate::support::picture::HALVES_JPEG),
        ),
        ("half a GIF", "image/gif", cut(&whole.gif())),
        ("half a BMP", "image/bmp", cut(&whole.bmp())),
    ];
    for (what, content_type, body) in cases {
        let answer = server.convert(&[], content_type, &body);
        assert_eq!(
            answer.status,
            400,
            "{what} as {content_type}: {}",
            answer.text()
        );
    }
    assert_eq!(
        server.conversions(),
        0,
        "a failed conversion is in the history"
    );
}

#[test]
fn rule_4_quality_outside_0_to_100_is_capped() {
    let server = Service::start();
    let png = Picture::waves(64, 48).png();
    let at = |quality: &str| server.webp(&[("quality", quality)], &png);
    assert_eq!(at("-1"), at("0"));
    assert_eq!(at("-1000"), at("0"));
    assert_eq!(at("101"), at("100"));
    assert_eq!(at("99999999999999999999"), at("100"));
    assert_ne!(at("0"), at("100"));
}

#[test]
fn rule_5_watermark_is_drawn_with_what_is_given_or_the_defaults() {
    let server = Service::start();
    let png = Picture::flat(200, 150, [90, 90, 90]).png();
    let plain = server.webp(&[], &png);
    let defaults = server.webp(&[("watermark", "Hallo")], &png);
    let spelled_out = [
        ("watermark", "Hallo"),
        ("watermark_size", "24"),
        ("watermark_color", "white"),
        ("watermark_position", "bottomRight"),
        ("watermark_opacity", "50"),
    ];
    assert_ne!(plain, defaults, "no watermark was drawn");
    assert_eq!(defaults, server.webp(&spelled_out, &png));
    for (index, other) in [(1, "40"), (2, "red"), (3, "topLeft"), (4, "80")] {
        let mut changed = spelled_out;
        changed[index].1 = other;
        assert_ne!(
            defaults,
            server.webp(&changed, &png),
            "{changed:?} makes no difference"
        );
    }
}

#[test]
fn rule_6_watermark_image_is_drawn_with_what_is_given_or_the_defaults() {
    let server = Service::start();
    let host = Host::of(&Picture::flat(30, 20, [250, 250, 0]).png());
    let url = host.url();
    let png = Picture::flat(200, 150, [90, 90, 90]).png();
    let defaults = server.webp(&[("watermark_image", &url)], &png);
    let spelled_out = [
        ("watermark_image", &*url),
        ("watermark_position", "bottomRight"),
        ("watermark_opacity", "50"),
    ];
    assert_ne!(server.webp(&[], &png), defaults, "no watermark was drawn");
    assert_eq!(defaults, server.webp(&spelled_out, &png));
    for (index, other) in [(1, "topLeft"), (2, "80")] {
        let mut changed = spelled_out;
        changed[index].1 = other;
        assert_ne!(
            defaults,
            server.webp(&changed, &png),
            "{changed:?} makes no difference"
        );
    }
}

#[test]
fn rule_7_each_successful_conversion_adds_an_entry_and_no_other_does() {
    let server = Service::start();
    let host = Host::of(&Picture::flat(5, 5, [250, 250, 0]).png());
    let picture = Picture::waves(40, 30);
    let (png, gif) = (picture.png(), picture.gif());
    let url = host.url();
    assert_eq!(
        server
            .convert(&[("quality", "x")], "image/png", &png)
            .status,
        400
    );
    let first = server.webp(&[], &png);
    assert_eq!(
        server
            .convert(&[("quality", "31"), ("watermark", "a")], "image/gif", &gif)
            .status,
        200
    );
    server.webp(&[("watermark_image", &url)], &png);
    server.webp(&[("watermark_image", &url), ("watermark", "a")], &png);
    assert_eq!(
        server
            .convert(&[("watermark_image", &host.missing())], "image/png", &png)
            .status,
        400
    );

    let usage = server.usage();
    let column = |name: &str| -> Vec<serde_json::Value> {
        usage["entries"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|entry| entry[name].clone())
            .collect()
    };
    assert_eq!(
        column("watermark"),
        ["both", "image", "text", "none"],
        "newest first: {usage}"
    );
    assert_eq!(column("format"), ["png", "png", "gif", "png"]);
    assert_eq!(column("quality"), [85, 85, 31, 85]);
    assert_eq!(column("width"), [40; 4]);
    assert_eq!(column("height"), [30; 4]);
    assert_eq!(
        column("input_bytes"),
        [png.len(), png.len(), gif.len(), png.len()]
    );
    assert_eq!(column("output_bytes")[3], first.0.len());
    assert_eq!(usage["totals"]["conversions"], 4);
    for entry in usage["entries"].as_array().expect("a list") {
        assert!(
            entry["time"]
                .as_str()
                .is_some_and(|time| time.starts_with("20") && time.ends_with('Z')),
            "{entry}"
        );
        assert!(entry["milliseconds"].is_u64(), "{entry}");
    }
}

#[test]
fn rule_7_the_entry_belongs_to_the_token_s_account_alone() {
    let server = Service::start();
    let other = account(&["create", "other@example.org"], &server.data());
    let png = Picture::waves(8, 8).png();
    let target = format!("/convert?token={other}");
    assert_eq!(
        server
            .request("POST", &target, &[("Content-Type", "image/png")], &png)
            .status,
        200
    );
    assert_eq!(server.conversions(), 0);
}

#[test]
fn authentication_1_every_request_needs_the_token() {
    let server = Service::start();
    for target in ["/convert", "/api/usage", "/api/usage.csv"] {
        let method = if target == "/convert" { "POST" } else { "GET" };
        assert_eq!(
            server.request(method, target, &[], b"").status,
            401,
            "{target}"
        );
    }
}

#[test]
fn authentication_2_the_token_is_also_taken_as_bearer() {
    let server = Service::start();
    let png = Picture::waves(8, 8).png();
    let bearer = format!("Bearer {}", server.token);
    let headers = [("Content-Type", "image/png"), ("Authorization", &*bearer)];
    assert_eq!(
        server.request("POST", "/convert", &headers, &png).status,
        200
    );
    let wrong = [("Content-Type", "image/png"), ("Authorization", "Bearer x")];
    assert_eq!(server.request("POST", "/convert", &wrong, &png).status, 401);
}

#[test]
fn errors_are_problems_that_clients_of_both_kinds_can_read() {
    let server = Service::start();
    let png = Picture::waves(8, 8).png();
    let (target, typed) = (server.target(&[]), [("Content-Type", "image/png")]);
    let cases = [
        (
            400,
            "Bad Request",
            server.request("POST", &target, &typed, b"x"),
        ),
        (
            401,
            "Unauthorized",
            server.request("POST", "/convert", &typed, &png),
        ),
        (405, "Method Not Allowed", server.get(&target, &[])),
    ];
    for (status, name, answer) in cases {
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
        let problem = answer.json();
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["error"], name, "{problem}");
        assert_eq!(problem["message"], problem["detail"], "{problem}");
        for field in ["type", "title", "detail", "code"] {
            assert!(
                problem[field].as_str().is_some_and(|text| !text.is_empty()),
                "{field}: {problem}"
            );
        }
        assert!(
            !answer.text().contains(&server.token),
            "{status}: the token is repeated"
        );
        assert!(
            answer
                .header("x-request-id")
                .is_some_and(|id| !id.is_empty()),
            "{status}: no X-Request-Id"
        );
    }
}
