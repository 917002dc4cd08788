//! Where the specification is silent: the answers that this service gives, one test for each.

use crate::support::host::Host;
use crate::support::picture::{Area, HALVES_JPEG, Picture};
use crate::support::service::{Service, Webp, send};
use std::net::TcpListener;

fn small() -> Vec<u8> {
    Picture::waves(40, 30).png()
}

#[test]
fn order_of_checks_is_405_then_401_then_400() {
    let server = Service::start();
    let wrong_type = [("Content-Type", "text/plain")];
    assert_eq!(
        server
            .request("PUT", "/convert?quality=x", &wrong_type, b"x")
            .status,
        405
    );
    assert_eq!(
        server
            .request("POST", "/convert?quality=x", &wrong_type, b"x")
            .status,
        401
    );
    assert_eq!(
        server
            .request(
                "POST",
                &server.target(&[("quality", "x")]),
                &wrong_type,
                b"x"
            )
            .status,
        400
    );
}

#[test]
fn body_is_not_read_before_the_token_is_known_good() {
    let server = Service::start();
    for (method, status) in [("POST", 401), ("PUT", 405)] {
        let head = format!(
            "{method} /convert?token=x HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: image/png\r\n\
             Content-Length: 1000000\r\n\r\n",
            server.address()
        );
        let answer = send(server.address(), head.as_bytes())
            .expect("an answer although the body is withheld");
        assert_eq!(answer.status, status, "{}", answer.text());
    }
}

#[test]
fn numbers_out_of_range_are_capped() {
    let server = Service::start();
    let png = Picture::flat(300, 250, [90, 90, 90]).png();
    let with = |name, value| server.webp(&[("watermark", "Hi"), (name, value)], &png);
    let cases = [
        ("watermark_size", "7", "8"),
        ("watermark_size", "-5", "8"),
        ("watermark_size", "201", "200"),
        ("watermark_size", "99999999999999999999", "200"),
        ("watermark_opacity", "-1", "0"),
        ("watermark_opacity", "101", "100"),
        ("watermark_opacity", "-99999999999999999999", "0"),
        ("watermark_margin", "-1", "0"),
        ("watermark_margin", "16384", "16383"),
        ("watermark_scale", "0", "1"),
        ("watermark_scale", "101", "100"),
        ("watermark_size", "0%", "0.1%"),
        ("watermark_size", "101%", "100%"),
        ("watermark_margin", "-1%", "0%"),
        ("watermark_margin", "26%", "25%"),
        ("watermark_scale", "0%", "1%"),
        ("watermark_scale", "101%", "100"),
        ("watermark_rotate", "-361", "-360"),
        ("watermark_rotate", "99999999999999999999", "360"),
    ];
    for (name, given, taken) in cases {
        assert_eq!(
            with(name, given),
            with(name, taken),
            "{name}={given} is not {taken}"
        );
    }
}

#[test]
fn numbers_that_are_not_whole_are_400() {
    let server = Service::start();
    for name in [
        "quality",
        "alpha_quality",
        "near_lossless",
        "watermark_size",
        "watermark_opacity",
        "watermark_margin",
        "watermark_scale",
        "watermark_rotate",
    ] {
        for value in ["8.5", "abc", "1e2", "0x10", "50 %", "5 0", ""] {
            let answer = server.convert(&[(name, value)], "image/png", &small());
            let detail = answer.problem(400, "invalid_parameter");
            assert!(
                detail.contains(name),
                "{name}={value}: the parameter is not named: {detail}"
            );
        }
    }
}

#[test]
fn unknown_words_are_400_naming_the_allowed_ones() {
    let server = Service::start();
    let positions = [
        "topLeft",
        "top,",
        "topRight",
        "left,",
        "center",
        "right,",
        "bottomLeft",
        "bottom or",
        "bottomRight",
    ];
    let colors = [
        "white", "black", "red", "blue", "yellow", "gray", "#RRGGBB", "#RGB",
    ];
    let cases: [(&str, &[&str], &[&str]); 4] = [
        (
            "watermark_position",
            &["middle", "right-bottom", "north", ""],
            &positions,
        ),
        (
            "watermark_color",
            &[
                "pink",
                "#12345",
                "#1234567",
                "#GGGGGG",
                "12345",
                "rgb(1,2,3)",
                "",
            ],
            &colors,
        ),
        (
            "watermark_outline",
            &["glow", "None", "black", ""],
            &["none", "outline", "shadow"],
        ),
        (
            "watermark_tile",
            &["1", "yes", "True", ""],
            &["true", "false"],
        ),
    ];
    for (name, values, allowed) in cases {
        for value in values {
            let answer =
                server.convert(&[("watermark", "a"), (name, value)], "image/png", &small());
            let detail = answer.problem(400, "invalid_parameter");
            for word in [&[name], allowed].concat() {
                assert!(
                    detail.contains(word),
                    "{name}={value}: {word} is not named: {detail}"
                );
            }
        }
    }
}

#[test]
fn usual_spellings_of_colors_and_positions_are_understood() {
    let server = Service::start();
    let png = small();
    let spellings = [
        (
            "watermark_color",
            "#ffcc00",
            ["#FFCC00", "ffcc00", "#fc0", "FC0"],
        ),
        (
            "watermark_color",
            "white",
            ["#ffffff", "#fff", "FFFFFF", "White"],
        ),
        (
            "watermark_position",
            "topLeft",
            ["top-left", "TOP_LEFT", "topleft", "Top-Left"],
        ),
        (
            "watermark_position",
            "center",
            ["Center", "CENTER", "cenTER", "center"],
        ),
    ];
    for (name, usual, others) in spellings {
        let expected = server.webp(&[("watermark", "a"), (name, usual)], &png);
        for other in others {
            let webp = server.webp(&[("watermark", "a"), (name, other)], &png);
            assert_eq!(webp, expected, "{name}={other} is not {usual}");
        }
    }
    let cut_off = format!("{}&watermark=a&watermark_color=", server.target(&[]));
    let answer = server.request("POST", &cut_off, &[("Content-Type", "image/png")], &png);
    let detail = answer.problem(400, "invalid_parameter");
    assert!(detail.contains("%23"), "nobody is told of %23: {detail}");
}

#[test]
fn effort_is_low_medium_high_or_max_and_medium_by_default() {
    let server = Service::start();
    let picture = Picture::waves(160, 120);
    let png = picture.png();
    let [low, medium, high, max] =
        ["low", "medium", "high", "max"].map(|effort| server.webp(&[("effort", effort)], &png));
    assert_eq!(server.webp(&[], &png), medium, "the default is not medium");
    assert_ne!(low, medium);
    assert_ne!(medium, high);
    let difference = |webp: &Webp| Picture::decode(webp).difference(&picture);
    let usual = difference(&medium);
    for (name, webp) in [("low", &low), ("high", &high), ("max", &max)] {
        let difference = difference(webp);
        assert!(
            (usual * 0.8..usual * 1.25).contains(&difference),
            "{name} is another quality: mean difference {difference}, medium's is {usual}"
        );
    }
    for value in ["", "High", "fast", "6"] {
        let answer = server.convert(&[("effort", value)], "image/png", &png);
        let detail = answer.problem(400, "invalid_parameter");
        for word in ["effort", value, "low", "medium", "high", "max"] {
            assert!(
                detail.contains(word),
                "effort={value}: {word:?} is not named: {detail}"
            );
        }
    }
}

#[test]
fn names_of_colors_are_case_insensitive() {
    let server = Service::start();
    let with = |color| server.webp(&[("watermark", "a"), ("watermark_color", color)], &small());
    assert_eq!(with("RED"), with("red"));
    assert_eq!(with("Yellow"), with("yellow"));
    assert_ne!(with("red"), with("yellow"));
}

#[test]
fn both_watermarks_are_drawn_text_over_picture() {
    let server = Service::start();
    let host = Host::of(&Picture::flat(160, 120, [200, 0, 0]).png());
    let png = Picture::flat(240, 180, [90, 90, 90]).png();
    let webp = server.webp(
        &[
            ("quality", "100"),
            ("watermark_image", &host.url()),
            ("watermark", "HHH"),
            ("watermark_size", "48"),
            ("watermark_position", "center"),
            ("watermark_opacity", "100"),
        ],
        &png,
    );
    let picture = Picture::decode(&webp);
    let Area(left, top, right, bottom) = picture
        .extent(|[red, green, blue, _]| red > 160 && green < 50 && blue < 50)
        .expect("the picture is there");
    let text = picture
        .extent(|pixel| pixel[..3].iter().all(|&sample| sample > 220))
        .expect("the text is on top");
    assert!(
        text.0 > left && text.1 > top && text.2 < right && text.3 < bottom,
        "the text at {text:?} is not on the picture at {left},{top} to {right},{bottom}"
    );
}

#[test]
fn empty_watermark_is_no_watermark() {
    let server = Service::start();
    assert_eq!(
        server.webp(&[("watermark", "")], &small()),
        server.webp(&[], &small())
    );
    assert_eq!(server.usage()["entries"][1]["watermark"], "none");
}

#[test]
fn the_same_parameter_twice_is_400() {
    let server = Service::start();
    let names = [
        "quality",
        "effort",
        "mode",
        "lossless",
        "near_lossless",
        "alpha_quality",
        "animation",
        "metadata",
        "if_larger",
        "width",
        "height",
        "fit",
        "gravity",
        "enlarge",
        "dpr",
        "watermark",
        "watermark_size",
        "watermark_opacity",
        "watermark_position",
        "watermark_color",
        "watermark_outline",
        "watermark_margin",
        "watermark_scale",
        "watermark_rotate",
        "watermark_tile",
    ];
    let values = [
        "50", "low", "auto", "true", "60", "60", "first", "keep", "webp", "9", "9", "fill", "top",
        "true", "2", "a", "24", "50", "center", "red", "none", "9", "9", "9", "true",
    ];
    for (name, value) in names.into_iter().zip(values) {
        let answer = server.convert(&[(name, value), (name, value)], "image/png", &small());
        let detail = answer.problem(400, "repeated_parameter");
        assert!(detail.contains(name), "{name} is not named: {detail}");
    }
    let url = "http://127.0.0.1/logo.png";
    let answer = server.convert(
        &[("watermark_image", url), ("watermark_image", url)],
        "image/png",
        &small(),
    );
    answer.problem(400, "repeated_parameter");
    let other_token = server.convert(&[("token", "x")], "image/png", &small());
    assert!(
        [400, 401].contains(&other_token.status),
        "which account is meant? {}",
        other_token.text()
    );
}

#[test]
fn unknown_parameters_are_ignored() {
    let server = Service::start();
    let unknown = [
        ("foo", "1"),
        ("foo", "2"),
        ("Quality", "x"),
        ("", ""),
        ("watermark_", "x"),
    ];
    assert_eq!(server.webp(&unknown, &small()), server.webp(&[], &small()));
}

#[test]
fn content_type_is_case_insensitive_and_its_parameters_are_ignored() {
    let server = Service::start();
    let plain = server.webp(&[], &small());
    for content_type in [
        "IMAGE/PNG",
        "image/png; charset=utf-8",
        "Image/Png;q=1;x=\"y\"",
        "image/png ;",
    ] {
        let answer = server.convert(&[], content_type, &small());
        assert_eq!(answer.status, 200, "{content_type}: {}", answer.text());
        assert_eq!(Webp(answer.body), plain, "{content_type}");
    }
}

#[test]
fn image_jpg_is_image_jpeg() {
    let server = Service::start();
    let [jpg, jpeg] =
        ["image/jpg", "image/jpeg"].map(|kind| server.convert(&[], kind, HALVES_JPEG));
    assert_eq!(
        (jpg.status, jpeg.status),
        (200, 200),
        "{} {}",
        jpg.text(),
        jpeg.text()
    );
    assert_eq!(Webp(jpg.body), Webp(jpeg.body));
}

#[test]
fn content_type_and_bytes_that_differ_are_400_saying_what_the_bytes_look_like() {
    let server = Service::start();
    let picture = Picture::waves(10, 10);
    let files = [
        ("image/png", picture.png()),
        ("image/jpeg", HALVES_JPEG.to_vec()),
        ("image/gif", picture.gif()),
        ("image/bmp", picture.bmp()),
    ];
    for (real, bytes) in &files {
        for (declared, _) in files.iter().filter(|(declared, _)| declared != real) {
            let detail = server
                .convert(&[], declared, bytes)
                .problem(400, "wrong_format");
            assert!(detail.contains(real), "{real} sent as {declared}: {detail}");
        }
    }
}

#[test]
fn curls_default_form_type_is_400_showing_the_right_flag() {
    let server = Service::start();
    let answer = server.convert(&[], "application/x-www-form-urlencoded", &small());
    assert_eq!(answer.status, 400);
    for part in ["-H", "Content-Type: image/png", "--data-binary"] {
        assert!(
            answer.text().contains(part),
            "{part} is not shown: {}",
            answer.text()
        );
    }
}

#[test]
fn watermark_pictures_that_cannot_be_had_are_400_with_a_code_that_tells_why() {
    let server = Service::start();
    let closed = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nobody = format!("http://{}/logo.png", closed.local_addr().expect("bound"));
    drop(closed);
    let text = Host::of(b"not a picture");
    let mut cut = Picture::waves(50, 50).png();
    cut.truncate(cut.len() / 2);
    let cut = Host::of(&cut);
    let large = Host::of(&vec![0; (8 << 20) + 1]);
    let cases = [
        (nobody, "watermark_unreachable"),
        (
            "http://nobody.invalid/logo.png".to_string(),
            "watermark_unreachable",
        ),
        (text.missing(), "watermark_status"),
        (text.url(), "watermark_not_png_or_jpeg"),
        (cut.url(), "watermark_not_png_or_jpeg"),
        (large.url(), "watermark_too_large"),
        (
            "ftp://127.0.0.1/logo.png".to_string(),
            "watermark_url_invalid",
        ),
        ("logo.png".to_string(), "watermark_url_invalid"),
        (
            "http://user:s3cret@127.0.0.1/logo.png".to_string(),
            "watermark_url_invalid",
        ),
        (
            "http://0x7f.1/logo.png".to_string(),
            "watermark_url_invalid",
        ),
    ];
    for (url, code) in cases {
        let answer = server.convert(&[("watermark_image", &url)], "image/png", &small());
        assert_eq!(answer.status, 400, "{url}: {}", answer.text());
        let detail = answer.problem(400, code);
        assert!(detail.contains("watermark_image"), "{url}: {detail}");
        assert!(
            !detail.contains("s3cret"),
            "the password is repeated: {detail}"
        );
    }
    assert_eq!(
        server.conversions(),
        0,
        "a failed conversion is in the history"
    );
}

#[test]
fn watermark_pictures_at_private_addresses_are_refused_by_default() {
    let server = Service::start_with(&[]);
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:10.0.0.1]",
        "169.254.169.254",
        "192.168.1.1",
        "0.0.0.0",
    ] {
        let url = format!("http://{host}/logo.png");
        let answer = server.convert(&[("watermark_image", &url)], "image/png", &small());
        answer.problem(400, "watermark_forbidden");
    }
}

#[test]
fn characters_that_no_font_has_are_400_naming_them() {
    let server = Service::start();
    // U+E123 is for private use: no font should claim it.
    let answer = server.convert(&[("watermark", "a\u{e123}b")], "image/png", &small());
    let detail = answer.problem(400, "missing_characters");
    assert!(detail.contains("U+E123"), "{detail}");
}

#[test]
fn watermarks_larger_than_the_picture_are_scaled_down_to_fit() {
    let server = Service::start();
    let host = Host::of(&Picture::flat(400, 100, [250, 250, 0]).png());
    let url = host.url();
    let gray = Picture::flat(96, 64, [90, 90, 90]);
    for (kind, value) in [
        ("watermark_image", &*url),
        ("watermark", "A long line of text that cannot fit"),
    ] {
        let all = [
            ("quality", "100"),
            (kind, value),
            ("watermark_opacity", "100"),
            ("watermark_position", "center"),
        ];
        let picture = Picture::decode(server.webp(&all, &gray.png()));
        assert_eq!((picture.width, picture.height), (96, 64));
        let foreign = |pixel: [u8; 4]| (0..3).any(|i| pixel[i].abs_diff(90) > 40);
        let Area(left, _, right, _) = picture.extent(foreign).expect("a watermark");
        assert!(
            right - left >= 40,
            "{kind} takes {} of 96 columns",
            right - left
        );
        let space = (left, 96 - right);
        assert!(
            space.0.abs_diff(space.1) <= 8,
            "{kind} is cut off: {space:?} columns are free at the sides"
        );
    }
    assert_eq!(
        server
            .convert(
                &[("watermark", "Hello")],
                "image/png",
                &Picture::flat(1, 1, [1; 3]).png()
            )
            .status,
        200
    );
}

#[test]
fn other_paths_are_404_and_healthz_is_200() {
    let server = Service::start();
    for path in [
        "/convert/",
        "/Convert",
        "/convert.php",
        "/api",
        "/favicon.txt",
        "/../etc/passwd",
        "/%63onvert",
    ] {
        for method in ["GET", "POST"] {
            let answer = server.request(method, path, &[], b"");
            assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text());
        }
    }
    assert!(
        !server
            .get("/nothing", &[])
            .problem(404, "not_found")
            .is_empty()
    );
    assert_eq!(server.get("/healthz", &[]).status, 200);
}

#[test]
fn browsers_get_their_errors_as_pages() {
    let server = Service::start();
    let answer = server.get("/nothing", &[("Accept", "text/html,application/xhtml+xml")]);
    assert_eq!(answer.status, 404);
    let content_type = answer.header("content-type").unwrap_or_default();
    assert!(content_type.starts_with("text/html"), "{content_type}");
}

#[test]
fn mistyped_parameters_are_named_beside_the_answer() {
    let server = Service::start();
    let png = small();
    let convert = |target: &str| {
        let answer = server.request("POST", target, &[("Content-Type", "image/png")], &png);
        let warning = answer.header("x-towebp-warning").unwrap_or_default();
        assert!(!warning.contains(&server.token), "{warning}");
        (answer.status, warning.to_owned())
    };
    let target = server.target(&[]);
    let said = "unknown parameter \"qualty\", did you mean \"quality\"?".to_owned();
    assert_eq!(convert(&format!("{target}&qualty=9")), (200, said.clone()));
    let fine = format!("{target}&quality=9&utm_source=mail");
    assert_eq!(convert(&fine), (200, String::new()));
    // Refused by the event loop, and by a worker.
    let refused = format!("{target}&qualty=9&effort=6");
    assert_eq!(convert(&refused), (400, said.clone()));
    let refused = format!("{target}&qualty=9&watermark=%EF%BF%BF");
    assert_eq!(convert(&refused), (400, said));
    let said = "unknown parameter \"tokn\", did you mean \"token\"?".to_owned();
    let mistyped = format!("/convert?tokn={}", server.token);
    assert_eq!(convert(&mistyped), (401, said));
}

#[test]
fn short_names_of_other_services_are_named_beside_the_answer() {
    let server = Service::start();
    let warning = |query: &str| {
        let target = format!("{}&{query}", server.target(&[]));
        let answer = server.request("POST", &target, &[("Content-Type", "image/png")], &small());
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        answer
            .header("x-towebp-warning")
            .unwrap_or_default()
            .to_owned()
    };
    for (name, meant) in [("w", "width"), ("h", "height"), ("q", "quality")] {
        let said = format!("unknown parameter \"{name}\", did you mean \"{meant}\"?");
        assert_eq!(warning(&format!("{name}=400")), said);
    }
    let said = "unknown parameter \"format\": the answer is always WebP.";
    assert_eq!(warning("format=webp"), said);
    assert_eq!(warning("width=4&utm_source=mail"), "");
    // Of a path where it has a meaning, nothing is said.
    let bearer = format!("Bearer {}", server.token);
    let page = server.get("/api/usage?format=png", &[("Authorization", &bearer)]);
    assert_eq!((page.status, page.header("x-towebp-warning")), (200, None));
}

#[test]
fn one_content_type_and_no_coding_of_the_body_are_allowed() {
    let server = Service::start();
    let answer = |headers: &[(&str, &str)]| {
        let target = server.target(&[]);
        server.request("POST", &target, headers, &small())
    };
    let png = ("Content-Type", "image/png");
    for second in ["image/png", "image/jpeg", ""] {
        let detail = answer(&[png, ("Content-Type", second)]).problem(400, "content_type_repeated");
        assert!(detail.contains("Content-Type"), "{detail}");
    }
    for coding in ["gzip", "br", "identity, gzip", "GZIP", "x"] {
        let refused = answer(&[png, ("Content-Encoding", coding)]);
        let detail = refused.problem(415, "content_encoding_unsupported");
        assert!(detail.contains("without Content-Encoding"), "{detail}");
        // RFC 9110, section 15.5.16.
        assert_eq!(refused.header("accept-encoding"), Some("identity"));
    }
    let twice = [
        png,
        ("Content-Encoding", "identity"),
        ("Content-Encoding", "gzip"),
    ];
    answer(&twice).problem(415, "content_encoding_unsupported");
    for coding in ["identity", "Identity", "", "identity, identity"] {
        let converted = answer(&[png, ("Content-Encoding", coding)]);
        assert_eq!(converted.status, 200, "{coding}: {}", converted.text());
    }
    // A bad token is said first.
    let headers = [png, ("Content-Encoding", "gzip")];
    let refused = server.request("POST", "/convert?token=twp_no", &headers, &small());
    refused.problem(401, "token_invalid");
}
