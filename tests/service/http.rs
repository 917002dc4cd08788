//! What the server promises beyond the specification, over a real socket.

use crate::support::{Response, Server, read_response};
use std::io::Write;
use std::time::{Duration, Instant};

const PASSWORD: &str = "correct horse battery";

#[test]
fn healthz_answers_get_and_head() {
    let server = Server::start();
    let get = server.request("GET", "/healthz").send();
    assert_eq!((get.status, get.text()), (200, "ok"));
    let head = server.request("HEAD", "/healthz").send();
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some("2"))
    );
    let post = server.request("POST", "/healthz").send();
    assert_eq!(
        (post.status, post.header("allow")),
        (405, Some("GET, HEAD"))
    );
}

#[test]
fn unknown_paths_are_404_as_json_for_programs_and_as_a_page_for_browsers() {
    let server = Server::start();
    for path in [
        "/nothing",
        "/convert/",
        "/Convert",
        "/dashboard/x",
        "//",
        "*",
    ] {
        let answer = server.request("GET", path).send();
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json"),
            "{path}"
        );
        assert_eq!(answer.json()["code"], "not_found", "{path}");
    }
    let page = server
        .request("GET", "/nothing")
        .header("Accept", "text/html,*/*;q=0.8")
        .send();
    assert_eq!(
        (page.status, page.header("content-type")),
        (404, Some("text/html; charset=utf-8"))
    );
    assert!(
        page.text().contains("There is nothing here"),
        "{}",
        page.text()
    );
}

#[test]
fn wrong_methods_are_told_the_right_ones() {
    let server = Server::start();
    let cases = [
        ("DELETE", "/convert", "POST"),
        ("HEAD", "/convert", "POST"),
        ("OPTIONS", "/convert", "POST"),
        ("POST", "/", "GET, HEAD"),
        ("PUT", "/signin", "GET, HEAD, POST"),
        ("GET", "/signout", "POST"),
        ("GET", "/token/rotate", "POST"),
        ("POST", "/api/usage", "GET, HEAD"),
        ("POST", "/style.css", "GET, HEAD"),
    ];
    for (method, path, allow) in cases {
        let answer = server.request(method, path).send();
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, Some(allow)),
            "{method} {path}"
        );
    }
}

#[test]
fn every_answer_names_its_request() {
    let server = Server::start();
    let ids = ["/", "/healthz", "/nothing", "/style.css", "/api/usage"].map(|path| {
        let answer = server.request("GET", path).send();
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(answer.header("strict-transport-security"), None, "{path}");
        let id = answer.header("x-request-id");
        let id = id.unwrap_or_else(|| panic!("{path} has no id")).to_owned();
        let is_random = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(is_random, "{path}: {id}");
        id
    });
    let distinct: std::collections::HashSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
}

#[test]
fn huge_declared_bodies_are_rejected_and_the_server_goes_on() {
    let mut server = Server::start();
    // A server that believes the length allocates 200 GB at once, overflows a Vec with 2^64 - 1, or
    // reads 3 GB when it drops the request.
    for length in [
        "200000000000",
        "18446744073709551615",
        "9223372036854775807",
        "3000000000",
    ] {
        for method in ["POST", "HEAD", "GET"] {
            let head = format!(
                "{method} /convert?token=wrong HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"
            );
            let mut stream = server.send_raw(head);
            let answer = read_response(&mut stream, method == "HEAD");
            assert_eq!(
                answer.status,
                if method == "POST" { 401 } else { 405 },
                "{method} {length}"
            );
            assert!(
                answer
                    .headers
                    .contains(&("connection".into(), "close".into())),
                "{answer:?}"
            );
            stream
                .write_all(b"some bytes of it")
                .expect("the connection is read on");
            drop(stream);
            assert!(
                server.is_alive(),
                "the process ended after {method} with Content-Length {length}"
            );
        }
    }
    // This length does not fit a u64; tiny_http takes it for no number.
    let mut stream = server.send_raw(
        "POST /convert HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
    );
    assert_eq!(read_response(&mut stream, false).status, 401);
    drop(stream);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(server.request("GET", "/healthz").send().status, 200);
}

#[test]
fn rejected_requests_that_withhold_their_bodies_delay_nobody() {
    let server = Server::start();
    let heads = [
        "POST /convert?token=wrong HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n",
        "POST /convert?token=wrong HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\nExpect: 100-continue\r\n\r\n",
        "POST /convert?token=wrong HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    ];
    let mut held = Vec::new();
    for head in heads.iter().cycle().take(12) {
        let mut stream = server.send_raw(head);
        assert_eq!(read_response(&mut stream, false).status, 401, "{head}");
        held.push(stream);
    }
    let asked = Instant::now();
    assert_eq!(server.request("GET", "/healthz").send().status, 200);
    assert!(
        asked.elapsed() < Duration::from_secs(10),
        "two workers must not wait for twelve silent clients"
    );
}

#[test]
fn a_rejected_body_does_not_become_the_next_request() {
    let server = Server::start();
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n".repeat(40);
    let requests = format!(
        "POST /convert?token=wrong HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{smuggled}\
         GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        smuggled.len()
    );
    let mut stream = server.send_raw(requests);
    let answers = String::from_utf8(crate::support::read_all(&mut stream)).expect("heads and JSON");
    let statuses: Vec<&str> = answers
        .lines()
        .filter(|line| line.contains("HTTP/1.1 "))
        .collect();
    assert_eq!(statuses.len(), 2, "{answers}");
    assert!(
        statuses[0].contains(" 401 ") && statuses[1].contains(" 200 "),
        "{statuses:?}"
    );
}

#[test]
fn a_body_over_the_limit_is_413_declared_or_not() {
    let server = Server::start_with(&["--max-body", "2000"]);
    let target = format!(
        "/convert?token={}",
        server.create_account("owner@example.org")
    );
    let declared = server
        .request("POST", &target)
        .header("Content-Type", "image/png")
        .body(vec![0; 2001])
        .send();
    assert_eq!(
        (declared.status, declared.json()["code"].as_str()),
        (413, Some("body_too_large"))
    );
    let chunked = format!("{:x}\r\n{}\r\n0\r\n\r\n", 3000, "x".repeat(3000));
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let mut stream = server.send_raw(head + &chunked);
    assert_eq!(read_response(&mut stream, false).status, 413);
}

#[test]
fn bodies_must_be_whole_and_not_empty() {
    let server = Server::start();
    let target = format!(
        "/convert?token={}",
        server.create_account("owner@example.org")
    );
    let empty = server
        .request("POST", &target)
        .header("Content-Type", "image/png")
        .send();
    assert_eq!(
        (empty.status, empty.json()["code"].as_str()),
        (400, Some("body_empty"))
    );
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: 9000\r\n\r\nfew"
    );
    let mut stream = server.send_raw(head);
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("half of a connection can be closed");
    let cut = read_response(&mut stream, false);
    assert_eq!(
        (cut.status, cut.json()["code"].as_str()),
        (400, Some("body_cut_short"))
    );
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nfew"
    );
    let twice = read_response(&mut server.send_raw(head), false);
    assert_eq!(
        (twice.status, twice.json()["code"].as_str()),
        (400, Some("content_length_invalid"))
    );
}

#[test]
fn chunked_bodies_are_converted() {
    let server = Server::start();
    let target = format!(
        "/convert?token={}",
        server.create_account("owner@example.org")
    );
    let png = small_png();
    let (first, second) = png.split_at(20);
    let mut request = format!(
        "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    for chunk in [first, second, &[]] {
        request.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        request.extend_from_slice(chunk);
        request.extend_from_slice(b"\r\n");
    }
    let answer = read_response(&mut server.send_raw(request), false);
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("image/webp"))
    );
}

#[test]
fn a_conversion_s_headers_say_what_came_out() {
    let server = Server::start();
    let token = server.create_account("owner@example.org");
    let plain = convert(&server, &token, "");
    assert_eq!(
        (plain.header("image-width"), plain.header("image-height")),
        (Some("6"), Some("4"))
    );
    assert_eq!(
        plain.header("content-length"),
        Some(plain.body.len().to_string().as_str())
    );
    assert_eq!(plain.header("cache-control"), Some("private, no-store"));
    assert_eq!(plain.header("content-disposition"), None);
    let timing = plain.header("server-timing").expect("Server-Timing");
    for stage in ["decode;dur=", "watermark;dur=", "encode;dur="] {
        assert!(timing.contains(stage), "{timing}");
    }
    let named = convert(&server, &token, "&download=my%20cat%0d%0aX:%20y");
    let disposition = named.header("content-disposition");
    assert_eq!(
        disposition,
        Some("attachment; filename=\"my cat__X_ y.webp\"")
    );
}

#[test]
fn tokens_come_by_header_too_and_must_agree() {
    let server = Server::start();
    let token = server.create_account("owner@example.org");
    let with = |target: &str, bearer: &str| {
        let request = server
            .request("POST", target)
            .header("Content-Type", "image/png")
            .body(small_png());
        request
            .header("Authorization", &format!("Bearer {bearer}"))
            .send()
    };
    assert_eq!(with("/convert", &token).status, 200);
    assert_eq!(with(&format!("/convert?token={token}"), &token).status, 200);
    let differing = with("/convert?token=other", &token);
    assert_eq!(
        (differing.status, differing.json()["code"].as_str()),
        (401, Some("tokens_differ"))
    );
    assert_eq!(
        differing.header("www-authenticate"),
        Some("Bearer realm=\"towebp\"")
    );
    let twice = with(&format!("/convert?token={token}&token={token}"), &token);
    assert_eq!(
        (twice.status, twice.json()["code"].as_str()),
        (400, Some("repeated_parameter"))
    );
}

#[test]
fn from_sign_up_to_dashboard_rotation_and_usage() {
    let server = Server::start();
    let cookie = sign_up(&server, "owner@example.org");
    let page = dashboard(&server, &cookie);
    let old = server.token_of(&cookie, "0");
    let masked = format!(
        "Authorization: Bearer twp_••••••••{}",
        &old[old.len() - 4..]
    );
    assert!(
        page.contains(&format!("http://{}/convert?", server.address)) && page.contains(&masked),
        "the curl line is ready: {page}"
    );
    assert!(!page.contains(&old), "the token is behind its mask: {page}");
    assert!(page.contains("No conversions yet"), "{page}");
    convert(&server, &old, "&quality=40");

    let page = dashboard(&server, &cookie);
    assert_eq!(
        server.token_of(&cookie, "0"),
        old,
        "it is shown again whenever it is asked for"
    );
    assert!(
        page.contains("6 × 4"),
        "the history has the conversion: {page}"
    );

    let rotate = |csrf: &str| {
        server
            .request("POST", "/token/rotate")
            .header("Cookie", &cookie)
            .form(&[("csrf", csrf)])
            .send()
    };
    assert_eq!(rotate("forged").status, 403);
    assert_eq!(
        server.token_of(&cookie, "0"),
        old,
        "a forged form changes nothing"
    );
    let rotated = rotate(&csrf(&page));
    assert_eq!(
        (rotated.status, rotated.header("location")),
        (303, Some("/tokens?done=rolled&number=0"))
    );
    let new = server.token_of(&cookie, "0");
    assert_ne!(new, old);
    assert_eq!(
        server
            .request("GET", &format!("/api/usage?token={old}"))
            .send()
            .status,
        401
    );

    let by_token = server
        .request("GET", &format!("/api/usage?token={new}"))
        .send()
        .json();
    let by_session = server
        .request("GET", "/api/usage")
        .header("Cookie", &cookie)
        .send()
        .json();
    assert_eq!(by_token, by_session);
    assert_eq!(by_token["totals"]["conversions"], 1);
    let entry = &by_token["entries"][0];
    assert_eq!(
        (&entry["format"], &entry["quality"], &entry["width"]),
        (&"png".into(), &40.into(), &6.into())
    );
    assert_eq!(
        (&entry["watermark"], &entry["input_bytes"]),
        (&"none".into(), &small_png().len().into())
    );
    let csv = server
        .request("GET", "/api/usage.csv")
        .header("Cookie", &cookie)
        .send();
    assert_eq!(csv.text().lines().count(), 2, "{}", csv.text());
    assert!(
        csv.text()
            .starts_with("id,time,format,input_bytes,output_bytes,width,height,quality,watermark,")
    );

    let secret = csrf(&page);
    let out = server
        .request("POST", "/signout")
        .header("Cookie", &cookie)
        .form(&[("csrf", &secret)])
        .send();
    assert_eq!((out.status, out.header("location")), (303, Some("/")));
    let after = server
        .request("GET", "/dashboard")
        .header("Cookie", &cookie)
        .send();
    assert_eq!(
        (after.status, after.header("location")),
        (303, Some("/signin"))
    );
}

#[test]
fn usage_is_paged_by_before_and_limit() {
    let server = Server::start();
    let token = server.create_account("owner@example.org");
    for _ in 0..3 {
        convert(&server, &token, "");
    }
    let page = |query: &str| {
        server
            .request("GET", &format!("/api/usage?token={token}{query}"))
            .send()
    };
    let first = page("&limit=2").json();
    let ids = |page: &serde_json::Value| -> Vec<String> {
        page["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids(&first), ["3", "2"]);
    let second = page(&format!(
        "&limit=2&before={}",
        first["next_before"].as_str().unwrap()
    ))
    .json();
    assert_eq!(
        (ids(&second), &second["next_before"]),
        (vec!["1".to_owned()], &serde_json::Value::Null)
    );
    assert_eq!(
        ids(&page("&limit=0").json()),
        ["3"],
        "a limit out of range is capped"
    );
    assert_eq!(page("&limit=many").status, 400);
    assert_eq!(page("&before=first").status, 400);
    assert_eq!(server.request("GET", "/api/usage").send().status, 401);
}

#[test]
fn signing_in_starts_a_session_and_failures_all_read_the_same() {
    let server = Server::start();
    let first = sign_up(&server, "owner@example.org");
    let sign_in = |email: &str, password: &str| {
        server
            .request("POST", "/signin")
            .form(&[("email", email), ("password", password)])
            .send()
    };
    let wrong = sign_in("owner@example.org", "not the password");
    let unknown = sign_in("nobody@example.org", PASSWORD);
    assert_eq!((wrong.status, unknown.status), (400, 400));
    let text = |answer: &Response| answer.text().replace("owner@", "").replace("nobody@", "");
    assert_eq!(text(&wrong), text(&unknown));
    let right = sign_in(" Owner@Example.org", PASSWORD);
    assert_eq!(
        (right.status, right.header("location")),
        (303, Some("/dashboard"))
    );
    assert_ne!(right.session_cookie(), first);
    let cookie = right.header("set-cookie").unwrap();
    assert!(
        cookie.contains("HttpOnly")
            && cookie.contains("SameSite=Lax")
            && !cookie.contains("Secure"),
        "{cookie}"
    );
}

#[test]
fn guessing_a_password_is_slowed_down() {
    let server = Server::start();
    sign_up(&server, "owner@example.org");
    let guess = || {
        server
            .request("POST", "/signin")
            .form(&[("email", "owner@example.org"), ("password", "a guess")])
            .send()
    };
    let rejected = (0..50)
        .map(|_| guess())
        .find(|answer| answer.status != 400)
        .expect("50 guesses in a row");
    assert_eq!(rejected.status, 429, "{}", rejected.text());
    let wait = rejected
        .header("retry-after")
        .and_then(|seconds| seconds.parse::<u64>().ok());
    assert!(wait.is_some_and(|seconds| seconds > 0), "{rejected:?}");
}

#[test]
fn forms_from_other_sites_are_rejected() {
    let server = Server::start();
    let fields = [("email", "owner@example.org"), ("password", PASSWORD)];
    for (name, value) in [
        ("Sec-Fetch-Site", "cross-site"),
        ("Origin", "https://evil.example.org"),
        ("Origin", "null"),
    ] {
        let answer = server
            .request("POST", "/signup")
            .header(name, value)
            .form(&fields)
            .send();
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (403, Some("cross_site_form")),
            "{name}: {value}"
        );
    }
    let origin = format!("http://{}", server.address);
    assert_eq!(
        server
            .request("POST", "/signup")
            .header("Origin", &origin)
            .form(&fields)
            .send()
            .status,
        303
    );
}

#[test]
fn sign_up_can_be_closed() {
    let server = Server::start_with(&["--signup", "closed"]);
    let fields = [("email", "owner@example.org"), ("password", PASSWORD)];
    assert_eq!(
        server
            .request("POST", "/signup")
            .form(&fields)
            .send()
            .status,
        403
    );
    assert!(
        server
            .request("GET", "/signup")
            .send()
            .text()
            .contains("Sign-up is closed")
    );
    assert!(!server.request("GET", "/").send().text().contains("/signup"));
    let sign_in = server.request("GET", "/signin").send();
    assert!(
        sign_in.text().contains("Sign-up is closed"),
        "{}",
        sign_in.text()
    );
}

#[test]
fn sign_up_says_what_is_wrong() {
    let server = Server::start();
    let sign_up = |email: &str, password: &str| {
        server
            .request("POST", "/signup")
            .form(&[("email", email), ("password", password)])
            .send()
    };
    assert_eq!(sign_up("no address", PASSWORD).status, 400);
    assert_eq!(sign_up("owner@example.org", "short").status, 400);
    let escaped = sign_up("\"><script>alert(1)</script>", PASSWORD);
    assert!(
        !escaped.text().contains("<script>alert"),
        "{}",
        escaped.text()
    );
    let long = "x".repeat(17_000);
    assert_eq!(
        sign_up("owner@example.org", &long).status,
        413,
        "forms are small"
    );
}

#[test]
fn pages_forbid_what_they_do_not_need() {
    let server = Server::start_with(&["--public-url", "https://webp.example.org"]);
    let page = server.request("GET", "/").send();
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(
        policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert!(!policy.contains("'unsafe"), "{policy}");
    assert_eq!(page.header("referrer-policy"), Some("same-origin"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert!(
        page.text()
            .contains("https://webp.example.org/convert?quality="),
        "{}",
        page.text()
    );
    let fields = [("email", "owner@example.org"), ("password", PASSWORD)];
    let signed_up = server.request("POST", "/signup").form(&fields).send();
    assert!(signed_up.header("set-cookie").unwrap().contains("; Secure"));
}

#[test]
fn the_demo_shows_a_conversion_and_a_request_that_works() {
    let server = Server::start_with(&["--demo"]);
    let output = server.output_with("Password: ");
    assert!(
        output.contains(&format!("Dashboard: http://{}/signin", server.address)),
        "{output}"
    );
    assert_eq!(output.matches("Dashboard: ").count(), 1, "{output}");
    let webp = std::fs::read(server.data().join("demo.webp")).expect("the result is kept");
    assert_eq!((&webp[..4], &webp[8..12]), (&b"RIFF"[..], &b"WEBP"[..]));
    let jpeg =
        std::fs::read(server.data().join("demo.jpg")).expect("the curl line's file is there");
    let line = output
        .lines()
        .find(|line| line.contains("curl"))
        .expect("a curl line");
    assert!(
        line.contains("demo.jpg") && line.contains("Content-Type: image/jpeg"),
        "{line}"
    );
    let target = line
        .split('\'')
        .nth(1)
        .and_then(|url| url.split_once(&server.address.to_string()));
    let target = target.unwrap_or_else(|| panic!("no address in {line}")).1;
    let again = server
        .request("POST", target)
        .header("Content-Type", "image/jpeg")
        .body(jpeg)
        .send();
    assert!(
        (again.status, again.body) == (200, webp),
        "the same request gives the same bytes"
    );
    let password = output
        .lines()
        .find_map(|line| line.trim().strip_prefix("Password: "))
        .expect("a password");
    let form = [("email", "demo@example.org"), ("password", password)];
    assert_eq!(
        server.request("POST", "/signin").form(&form).send().status,
        303
    );

    let folder = server.kill();
    let second = Server::start_in(folder, &["--demo"]);
    let output = second.output_with("Password: ");
    assert!(
        output.contains("as printed when the account was made"),
        "the account is used again: {output}"
    );
}

fn convert(server: &Server, token: &str, query: &str) -> Response {
    let target = format!("/convert?token={token}{query}");
    let answer = server
        .request("POST", &target)
        .header("Content-Type", "image/png")
        .body(small_png())
        .send();
    assert_eq!(
        answer.status,
        200,
        "{:?}",
        String::from_utf8_lossy(&answer.body)
    );
    answer
}

/// A PNG of 6 by 4 pixels.
fn small_png() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 6, 4);
    encoder.set_color(png::ColorType::Rgb);
    let pixels: Vec<u8> = (0..6 * 4 * 3).map(|sample| sample * 3).collect();
    encoder
        .write_header()
        .unwrap()
        .write_image_data(&pixels)
        .unwrap();
    bytes
}

fn sign_up(server: &Server, email: &str) -> String {
    let answer = server
        .request("POST", "/signup")
        .form(&[("email", email), ("password", PASSWORD)])
        .send();
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some("/dashboard")),
        "{}",
        answer.text()
    );
    answer.session_cookie()
}

fn dashboard(server: &Server, cookie: &str) -> String {
    let answer = server
        .request("GET", "/dashboard")
        .header("Cookie", cookie)
        .send();
    assert_eq!(answer.status, 200);
    answer.text().to_owned()
}

fn csrf(page: &str) -> String {
    between(page, "name=\"csrf\" value=\"")
}

fn between(page: &str, start: &str) -> String {
    let rest = page
        .split_once(start)
        .unwrap_or_else(|| panic!("no {start:?} in {page}"))
        .1;
    rest.split_once('"')
        .expect("the attribute ends")
        .0
        .to_owned()
}
