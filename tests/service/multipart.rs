//! Pictures in forms: the same answers as to plain bodies, and what is no such form.

use crate::support::host::Host;
use crate::support::picture::Picture;
use crate::support::service::{OWNER, Service};
use crate::support::{Response, Server, TOWEBP, read_response, store};
use std::io::Write;
use std::net::Shutdown;
use std::process::Command;

const TYPE: &str = "multipart/form-data; boundary=\"--a:b\"";

/// A part with these headers, divided by CR LF.
fn part(headers: &str, bytes: &[u8]) -> Vec<u8> {
    [
        format!("----a:b\r\n{headers}\r\n\r\n").as_bytes(),
        bytes,
        b"\r\n",
    ]
    .concat()
}

fn field(name: &str, value: &str) -> Vec<u8> {
    let headers = format!("Content-Disposition: form-data; name=\"{name}\"");
    part(&headers, value.as_bytes())
}

fn file_of(media_type: &str, bytes: &[u8]) -> Vec<u8> {
    let name = "Content-Disposition: form-data; name=\"picture\"; filename=\"a b.png\"";
    part(&format!("{name}\r\nContent-Type: {media_type}"), bytes)
}

fn file(png: &[u8]) -> Vec<u8> {
    file_of("image/png", png)
}

fn form(parts: &[Vec<u8>]) -> Vec<u8> {
    [&parts.concat()[..], b"----a:b--\r\n"].concat()
}

fn send_with(server: &Server, token: &str, query: &str, body: Vec<u8>) -> Response {
    server
        .request("POST", &format!("/convert{query}"))
        .header("Authorization", &format!("Bearer {token}"))
        .header("Content-Type", TYPE)
        .body(body)
        .send()
}

fn send(service: &Service, query: &str, parts: &[Vec<u8>]) -> Response {
    send_with(&service.server, &service.token, query, form(parts))
}

#[test]
fn a_field_that_nobody_has_filled_in_counts_as_not_given() {
    let service = Service::start();
    let png = Picture::waves(90, 60).png();
    let names = ["quality", "max_bytes", "effort", "dpr", "watermark_image"];
    let empty = names.map(|name| field(name, "")).concat();
    let answer = send(&service, "", &[empty.clone(), file(&png)]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.body, service.webp(&[], &png).0);
    // Nor is it given twice.
    let answer = send(&service, "?quality=30", &[empty, file(&png)]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.body, service.webp(&[("quality", "30")], &png).0);
}

#[test]
fn a_browser_that_goes_to_the_answer_of_a_form_gets_problems_as_a_page() {
    let service = Service::start();
    let damaged = &Picture::waves(90, 60).png()[..60];
    let target = service.target(&[]);
    for (accept, kind) in [
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"),
        ("*/*", "application/problem+json"),
        ("text/html, */*", "application/problem+json"),
    ] {
        let headers = [("Content-Type", TYPE), ("Accept", accept)];
        let answer = service.request("POST", &target, &headers, &form(&[file(damaged)]));
        let given = answer.header("content-type").unwrap_or_default();
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(given.starts_with(kind), "{accept}: {given}");
        assert!(answer.text().contains("The picture cannot be read"));
    }
}

#[test]
fn fields_are_parameters() {
    let service = Service::start();
    let logo = Host::of(&Picture::flat(8, 8, [200, 10, 10]).png());
    let url = logo.url();
    let png = Picture::waves(90, 60).png();
    for parameters in [
        &[][..],
        &[("quality", "12"), ("width", "40"), ("effort", "low")],
        &[("watermark", "© 100 %\nü & +"), ("watermark_color", "#fc0")],
        &[("watermark_image", &*url), ("watermark_opacity", "100")],
    ] {
        let plain = service.convert(parameters, "image/png", &png);
        assert_eq!(plain.status, 200, "{}", plain.text());
        let fields = parameters.iter().map(|(name, value)| field(name, value));
        let mut parts: Vec<_> = fields.collect();
        for at in [0, parts.len()] {
            parts.insert(at, file(&png));
            let answer = send(&service, "", &parts);
            assert_eq!(answer.status, 200, "{parameters:?}: {}", answer.text());
            assert!(answer.body == plain.body, "{parameters:?}");
            let size = png.len().to_string();
            assert_eq!(answer.header("x-original-bytes"), Some(&*size));
            parts.remove(at);
        }
    }
    // Some in the query and some as fields, and the name of the answer.
    let both = send(
        &service,
        "?quality=12&width=40",
        &[
            field("effort", "low"),
            field("download", "a"),
            field("qualty", "1"),
            file(&png),
        ],
    );
    let plain = [("quality", "12"), ("width", "40"), ("effort", "low")];
    assert!(both.body == service.convert(&plain, "image/png", &png).body);
    let disposition = both.header("content-disposition");
    assert_eq!(disposition, Some("attachment; filename=\"a.webp\""));
    let warning = both.header("x-towebp-warning").expect("a warning");
    assert!(warning.contains("did you mean \"quality\""), "{warning}");
    let usage = service.usage();
    assert_eq!(usage["entries"][1]["input_bytes"], png.len());
    assert_eq!(usage["totals"]["conversions"], 4 * 3 + 2);
}

#[test]
fn chunks_and_boundaries_may_be_cut_anywhere() {
    let service = Service::start();
    // As a comment of the PNG's end, which readers pass over.
    let like = b"\r\n----a:\r\n----a;b--\r\n----a:b--".as_slice();
    let png = [&Picture::waves(30, 20).png(), &like[..21], b"\r\n--\r"].concat();
    let expected = service.webp(&[("quality", "5")], &png);
    let body = form(&[field("quality", "5"), file(&png)]);
    for portion in [1, 5, 1000] {
        let head = format!(
            "POST /convert HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: {TYPE}\r\nTransfer-Encoding: chunked\r\n\r\n",
            service.token
        );
        let mut stream = service.server.send_raw(head);
        let mut chunks = Vec::new();
        for bytes in body.chunks(portion) {
            write!(chunks, "{:x}\r\n", bytes.len()).expect("a Vec takes everything");
            chunks.extend_from_slice(bytes);
            chunks.extend_from_slice(b"\r\n");
        }
        chunks.extend_from_slice(b"0\r\n\r\n");
        stream.write_all(&chunks).expect("the server reads");
        let answer = read_response(&mut stream, false);
        assert_eq!(answer.status, 200, "{portion}: {}", answer.text());
        assert!(answer.body == expected.0, "{portion}");
    }
}

#[test]
fn what_is_no_such_form_is_told() {
    let service = Service::start();
    let png = Picture::waves(9, 6).png();
    let good = || file(&png);
    let quality = |value| field("quality", value);
    let disposition = "Content-Disposition: form-data; name=picture; filename=a";
    let cases: [(&str, Vec<Vec<u8>>, &str, &str); 15] = [
        (
            "",
            vec![good(), good()],
            "invalid_form",
            "two files, \"picture\" and \"picture\"",
        ),
        (
            "",
            vec![quality("8")],
            "body_empty",
            "-F 'file=@picture.png;type=image/png'",
        ),
        ("", vec![file(b"")], "body_empty", "-F 'file=@picture.png"),
        (
            "",
            vec![quality("high"), good()],
            "invalid_parameter",
            "a whole number from 0 to 100",
        ),
        (
            "?quality=7",
            vec![quality("8"), good()],
            "repeated_parameter",
            "quality",
        ),
        (
            "",
            vec![quality("8"), quality("8"), good()],
            "repeated_parameter",
            "quality",
        ),
        (
            "?target=50",
            vec![quality("8"), good()],
            "invalid_parameter",
            "both were given",
        ),
        (
            "?quality=high",
            vec![good()],
            "invalid_parameter",
            "a whole number from 0 to 100",
        ),
        (
            "",
            vec![field("download", "a"), field("download", "a"), good()],
            "repeated_parameter",
            "download",
        ),
        (
            "",
            vec![field("token", &service.token), good()],
            "invalid_form",
            "Authorization: Bearer",
        ),
        (
            "",
            vec![field("watermark", &"w".repeat(16 << 10)), good()],
            "invalid_form",
            "up to 16384 bytes",
        ),
        (
            "",
            vec![part(disposition, &png)],
            "content_type_missing",
            "-F 'file=@picture.png",
        ),
        (
            "",
            vec![file_of("application/octet-stream", &png)],
            "content_type_unsupported",
            "application/octet-stream",
        ),
        (
            "",
            vec![file_of("image/gif", &png)],
            "wrong_format",
            "type=image/png",
        ),
        (
            "",
            vec![good(), b"----a:b--\r\nmore".to_vec()],
            "invalid_form",
            "white space",
        ),
    ];
    for (query, parts, code, text) in cases {
        let detail = send(&service, query, &parts).problem(400, code);
        assert!(detail.contains(text), "{code}: {detail}");
    }
    assert_eq!(service.conversions(), 0);
}

#[test]
fn broken_forms_and_boundaries_are_told() {
    let service = Service::start();
    let whole = form(&[file(&Picture::waves(9, 6).png())]);
    for (body, text) in [
        (&whole[..whole.len() - 4], "ends before"),
        (&whole[2..], "does not begin"),
        (b"", "does not begin"),
    ] {
        let answer = send_with(&service.server, &service.token, "", body.to_vec());
        let detail = answer.problem(400, "invalid_form");
        assert!(detail.contains(text), "{detail}");
    }
    for media_type in ["multipart/form-data", "multipart/form-data; boundary=a*b"] {
        let answer = service.convert(&[], media_type, &whole);
        let detail = answer.problem(400, "invalid_form");
        assert!(detail.contains("boundary"), "{detail}");
    }
    let mixed = service.convert(&[], "multipart/mixed; boundary=\"--a:b\"", &whole);
    mixed.problem(400, "content_type_unsupported");
    assert_eq!(service.conversions(), 0);
}

#[test]
fn the_token_is_in_the_head() {
    let service = Service::start();
    let png = Picture::waves(9, 6).png();
    let body = form(&[field("token", &service.token), file(&png)]);
    let request = service.server.request("POST", "/convert");
    let answer = request.header("Content-Type", TYPE).body(body).send();
    let detail = answer.problem(401, "token_missing");
    assert!(detail.contains("field"), "{detail}");
    // In the query, as HTML's own forms give it.
    let answer = service.convert(&[], TYPE, &form(&[file(&png)]));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn presets_hold_for_fields_even_if_they_are_not_in_memory() {
    let mut service = Service::start();
    let set_token = |service: &Service, parameters: &[&str]| {
        let output = Command::new(TOWEBP)
            .args(["account", "set-token", OWNER, "page"])
            .args(store::flags(&service.data()))
            .args(parameters.iter().flat_map(|it| ["--preset", it]))
            .output()
            .expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let png = Picture::waves(60, 40).png();
    let marked = service.webp(&[("watermark", "page"), ("quality", "30")], &png);
    let kept = service.webp(&[("watermark", "page"), ("quality", "50")], &png);
    let token = set_token(&service, &["!watermark=page", "quality=50"]);
    for is_new in [false, true] {
        if is_new {
            let owner = std::mem::take(&mut service.token);
            service = Service::resume(service.server.kill(), owner);
        }
        let body = form(&[field("quality", "30"), file(&png)]);
        let answer = send_with(&service.server, &token, "", body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.body == marked.0);
        let body = form(&[file(&png), field("watermark", "other")]);
        let answer = send_with(&service.server, &token, "", body);
        answer.problem(400, "fixed_parameter");
        // What is empty is not given, and so takes no watermark away.
        let body = form(&[file(&png), field("watermark", "")]);
        let answer = send_with(&service.server, &token, "", body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.body == kept.0);
    }
}

#[test]
fn the_bytes_say_what_the_file_is_only_with_the_flag() {
    let service = Service::start_with(&["--sniff"]);
    let png = Picture::waves(9, 6).png();
    let disposition = "Content-Disposition: form-data; name=\"file\"";
    for part in [
        part(disposition, &png),
        file_of("application/octet-stream", &png),
    ] {
        let answer = send(&service, "", &[part]);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    send(&service, "", &[file_of("image/webp", &png)]).problem(400, "content_type_unsupported");
    send(&service, "", &[part(disposition, b"text")]).problem(400, "wrong_format");
}

#[test]
fn the_limit_of_the_body_is_that_of_the_whole_form() {
    let png = Picture::noise(60, 40).png();
    let body = form(&[file(&png)]);
    for (limit, expected) in [(body.len(), 200), (body.len() - 1, 413)] {
        let service = Service::start_with(&["--max-body", &limit.to_string()]);
        let answer = send_with(&service.server, &service.token, "", body.clone());
        assert_eq!(answer.status, expected, "{}", answer.text());
    }
}

#[test]
fn a_form_whose_client_stops_is_no_conversion() {
    let service = Service::start();
    let body = form(&[file(&Picture::waves(9, 6).png())]);
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Type: {TYPE}\r\nContent-Length: {}\r\n\r\n",
        service.target(&[]),
        body.len()
    );
    let mut stream = service.server.send_raw(head);
    stream.write_all(&body[..body.len() - 1]).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let answer = read_response(&mut stream, false);
    answer.problem(400, "body_cut_short");
    assert_eq!(service.conversions(), 0);
}

#[test]
fn pages_of_other_origins_read_what_is_wrong_with_a_form() {
    const APP: &str = "https://app.example.org";
    let service = Service::start_with(&["--allow-origin", APP]);
    let png = Picture::waves(9, 6).png();
    for (parts, status) in [(vec![file(&png)], 200), (vec![field("quality", "1")], 400)] {
        let request = service.server.request("POST", &service.target(&[]));
        let request = request.header("Origin", APP).header("Content-Type", TYPE);
        let answer = request.body(form(&parts)).send();
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(answer.header("access-control-allow-origin"), Some(APP));
    }
}
