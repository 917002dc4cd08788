//! Accounts under attack, over a real socket: guessing, filling up, and taking more than one's
//! share.

use crate::support::picture::Picture;
use crate::support::{Response, Server, read_response, store};
use std::thread;
use std::time::{Duration, Instant};

const PASSWORD: &str = "correct horse battery";

#[test]
fn an_address_has_so_many_attempts_to_sign_in_and_others_have_theirs() {
    let server = Server::start_with(&["--trusted-proxy", "127.0.0.1", "--signin-limit", "4"]);
    assert_eq!(sign_up(&server, "owner@example.org").status, 303);
    let sign_in = |client: &str, email: &str, password: &str| {
        server
            .request("POST", "/signin")
            .header("X-Forwarded-For", client)
            .form(&[("email", email), ("password", password)])
            .send()
    };
    let right = sign_in("192.0.2.1", "owner@example.org", PASSWORD);
    assert_eq!(right.status, 303);
    for i in 0..3 {
        let wrong = sign_in("192.0.2.1", &format!("{i}@example.org"), "wrong horse");
        assert_eq!(wrong.status, 400, "attempt {i}: {}", wrong.text());
    }
    for password in ["wrong horse", PASSWORD] {
        let refused = sign_in("192.0.2.1", "owner@example.org", password);
        assert_eq!(
            (refused.status, refused.json()["code"].as_str()),
            (429, Some("too_many_attempts")),
            "{password}"
        );
        let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!(
            (100..=150).contains(&wait),
            "a quarter of 10 minutes: {wait}"
        );
    }
    let other = sign_in("192.0.2.2", "owner@example.org", PASSWORD);
    assert_eq!(other.status, 303, "another address has its own attempts");
}

#[test]
fn an_address_has_so_many_sign_ups() {
    let server = Server::start_with(&["--trusted-proxy", "127.0.0.1", "--signup-limit", "2"]);
    let sign_up = |client: &str, email: &str| {
        server
            .request("POST", "/signup")
            .header("X-Forwarded-For", client)
            .header("Accept", "text/html")
            .form(&[("email", email), ("password", PASSWORD)])
            .send()
    };
    assert_eq!(sign_up("2001:db8::1", "a@example.org").status, 303);
    assert_eq!(sign_up("2001:db8::2", "b@example.org").status, 303);
    let refused = sign_up("2001:db8::3", "c@example.org");
    assert_eq!(refused.status, 429, "the same /64: {}", refused.text());
    assert!(refused.header("retry-after").is_some());
    assert!(
        refused.text().contains("Try again in"),
        "a page for browsers: {}",
        refused.text()
    );
    assert_eq!(sign_up("2001:db8:0:1::1", "c@example.org").status, 303);
}

#[test]
fn a_prefix_of_v6_addresses_does_not_multiply_the_attempts() {
    let server = Server::start_with(&["--trusted-proxy", "127.0.0.1", "--signin-limit", "1"]);
    let sign_in = |client: &str| {
        let answer = server
            .request("POST", "/signin")
            .header("X-Forwarded-For", client)
            // No account can have this address: no password is computed.
            .form(&[("email", "nobody"), ("password", PASSWORD)])
            .send();
        match answer.status {
            400 => true,
            429 => false,
            other => panic!("{client}: {other}"),
        }
    };
    let subnets = |step: usize| (0..20).map(move |i| format!("2001:db8:7:{:x}::1", i * step));
    let allowed = |step| subnets(step).filter(|client| sign_in(client)).count();
    assert_eq!(allowed(1), 4, "of a /56");
    assert_eq!(allowed(0x100), 12, "of the rest of its /48");
    assert!(sign_in("2001:db8:8::1"), "another /48 has its own");
    assert!(sign_in("192.0.2.1") && sign_in("192.0.2.2"), "IPv4 too");
}

#[test]
fn sign_up_can_be_by_invitation() {
    let server = Server::start_with(&["--signup", "invite"]);
    let output = std::process::Command::new(crate::support::TOWEBP)
        .args(["account", "invite"])
        .args(store::flags(&server.data()))
        .output()
        .expect("it starts");
    let code = String::from_utf8(output.stdout).expect("a code in ASCII");
    let code = code.trim();
    let page = server
        .request("GET", &format!("/signup?invite={code}"))
        .send();
    assert!(
        page.text().contains(&format!("value=\"{code}\"")),
        "{}",
        page.text()
    );
    server.create_account("owner@example.org");
    let sign_up = |email: &str, code: &str| {
        server
            .request("POST", "/signup")
            .form(&[("email", email), ("password", PASSWORD), ("invite", code)])
            .send()
    };
    let [known, unknown] =
        ["owner@example.org", "nobody@example.org"].map(|email| sign_up(email, "guess"));
    assert_eq!((known.status, unknown.status), (400, 400));
    assert_eq!(
        known.text().replace("owner@", "nobody@"),
        unknown.text(),
        "without an invitation the page tells who has an account"
    );
    assert_eq!(sign_up("guest@example.org", code).status, 303);
    assert_eq!(
        sign_up("second@example.org", code).status,
        400,
        "used twice"
    );
}

#[test]
fn a_rate_limit_is_told_and_holds_each_account_by_itself() {
    let server = Server::start_with(&["--rate-limit", "2"]);
    let [token, other] =
        ["owner@example.org", "other@example.org"].map(|email| server.create_account(email));
    let first = convert(&server, &token);
    assert_eq!(first.header("ratelimit-policy"), Some("\"rate\";q=2;w=60"));
    assert_eq!(first.header("ratelimit"), Some("\"rate\";r=1;t=30"));
    convert(&server, &token);
    // Its body never comes: the head is refused.
    let head = format!(
        "POST /convert?token={token} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: 5000\r\n\r\n"
    );
    let refused = read_response(&mut server.send_raw(head), false);
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (429, Some("rate_limited"))
    );
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=30).contains(&wait), "half of a minute: {wait}");
    let left = refused.header("ratelimit").expect("what is left");
    assert!(left.starts_with("\"rate\";r=0;t="), "{left}");
    convert(&server, &other);
}

#[test]
fn a_monthly_quota_counts_successes_and_the_dashboard_shows_it() {
    let server = Server::start_with(&["--monthly-quota", "2"]);
    let cookie = sign_up(&server, "owner@example.org").session_cookie();
    let token = server.token_of(&cookie, "0");
    let send = |body: &[u8]| {
        server
            .request("POST", &format!("/convert?token={token}"))
            .header("Content-Type", "image/png")
            .body(body)
            .send()
    };
    assert_eq!(send(b"no picture").status, 400);
    for left in [1, 0] {
        let answer = send(&Picture::waves(6, 4).png());
        assert_eq!(answer.status, 200, "{}", answer.text());
        let said = answer.header("ratelimit").expect("what is left");
        assert!(
            said.starts_with(&format!("\"month\";r={left};t=")),
            "{said}"
        );
    }
    let page = dashboard(&server, &cookie);
    assert!(page.contains("2 of 2 conversions"), "{page}");
    let refused = send(&Picture::waves(6, 4).png());
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (429, Some("quota_exceeded"))
    );
    let seconds = refused.header("retry-after").unwrap_or_default();
    assert!(seconds.parse::<u64>().is_ok(), "Retry-After: {seconds}");
    let json = refused.json();
    let detail = json["detail"].as_str().expect("a text");
    let (_, wait) = detail.split_once("begins in ").expect("when it begins");
    // The end of a month may be near.
    let unit = ["day", "hour", "minute"]
        .iter()
        .find(|unit| wait.contains(**unit));
    assert!(
        unit.is_some() || wait.len() <= "59 seconds.".len(),
        "{detail}"
    );
    let usage = server
        .request("GET", &format!("/api/usage?token={token}"))
        .send();
    assert_eq!(usage.json()["totals"]["conversions"], 2);
}

#[test]
fn what_is_left_of_a_quota_is_shown_before_it_is_used_up() {
    let server = Server::start_with(&["--monthly-quota", "5"]);
    let cookie = sign_up(&server, "owner@example.org").session_cookie();
    let token = server.token_of(&cookie, "0");
    for (used, notice) in [
        (0, None),
        (3, None),
        (4, Some("At least 80 % of the quota is used.")),
        (5, Some("The quota is used up")),
    ] {
        while !dashboard(&server, &cookie).contains(&format!("{used} of 5 conversions")) {
            convert(&server, &token);
        }
        let page = dashboard(&server, &cookie);
        assert!(page.contains(&format!("{} left", 5 - used)), "{page}");
        for text in ["At least 80 %", "The quota is used up"] {
            let is_told = notice.is_some_and(|notice| notice.starts_with(text));
            assert_eq!(page.contains(text), is_told, "{used}: {page}");
        }
    }
}

#[test]
fn limits_that_are_not_set_are_not_mentioned() {
    let server = Server::start();
    let token = server.create_account("owner@example.org");
    let answer = convert(&server, &token);
    assert_eq!(answer.header("ratelimit"), None);
    assert_eq!(answer.header("ratelimit-policy"), None);
    let page = dashboard(
        &server,
        &sign_up(&server, "second@example.org").session_cookie(),
    );
    assert!(!page.contains("This month"), "{page}");
}

#[test]
fn all_sessions_of_an_account_can_be_ended_at_once() {
    let server = Server::start();
    let cookie = sign_up(&server, "owner@example.org").session_cookie();
    let other_account = sign_up(&server, "other@example.org").session_cookie();
    let other_browser = server
        .request("POST", "/signin")
        .form(&[("email", "owner@example.org"), ("password", PASSWORD)])
        .send()
        .session_cookie();
    let end_all = |csrf: &str| {
        server
            .request("POST", "/signout/everywhere")
            .header("Cookie", &cookie)
            .form(&[("csrf", csrf)])
            .send()
    };
    assert_eq!(end_all("forged").status, 403);
    let page = page(&server, "/account", &other_browser);
    assert!(page.contains("/signout/everywhere"), "{page}");
    let page = dashboard(&server, &cookie);
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").expect("a form");
    let ended = end_all(&rest[..43]);
    assert_eq!((ended.status, ended.header("location")), (303, Some("/")));
    let removed = ended.header("set-cookie").expect("the browser forgets it");
    assert!(removed.contains("Max-Age=0"), "{removed}");
    for (cookie, expected) in [(&cookie, 303), (&other_browser, 303), (&other_account, 200)] {
        let page = server
            .request("GET", "/dashboard")
            .header("Cookie", cookie)
            .send();
        assert_eq!(page.status, expected);
    }
}

#[test]
fn the_owner_changes_the_password_and_the_other_browsers_are_signed_out() {
    const NEW: &str = "another horse battery";
    let server = Server::start();
    let cookies = sign_up_with_cookies(&server, "owner@example.org");
    let elsewhere = sign_in(&server, "", "owner@example.org", PASSWORD).session_cookie();
    let page = page(&server, "/account", &cookies);
    let csrf = csrf(&page);
    assert!(page.contains("action=\"/account/password\""), "{page}");
    let change = |csrf: &str, present: &str, new: &str| {
        server
            .request("POST", "/account/password")
            .header("Cookie", &cookies)
            .form(&[("csrf", csrf), ("present", present), ("new", new)])
            .send()
    };
    assert_eq!(change("forged", PASSWORD, NEW).status, 403);
    let cross_site = server
        .request("POST", "/account/password")
        .header("Cookie", &cookies)
        .header("Sec-Fetch-Site", "cross-site")
        .form(&[("csrf", csrf), ("present", PASSWORD), ("new", NEW)])
        .send();
    assert_eq!(cross_site.status, 403);
    for (present, new, reason) in [
        ("wrong horse", NEW, "The present password is wrong."),
        (PASSWORD, "short", "The password has 5 characters"),
    ] {
        let rejected = change(csrf, present, new);
        assert_eq!(rejected.status, 400, "{reason}");
        let text = rejected.text();
        assert!(
            text.contains("role=\"alert\"") && text.contains(reason),
            "{text}"
        );
        assert!(!text.contains(new), "a password is shown: {text}");
    }
    dashboard(&server, &elsewhere);

    let changed = change(csrf, PASSWORD, NEW);
    assert_eq!(changed.status, 303, "{}", changed.text());
    assert_eq!(changed.header("location"), Some("/account/changed"));
    assert!(cookies_of(&changed).starts_with("towebp_device="));
    dashboard(&server, &cookies);
    let told = server
        .request("GET", "/account/changed")
        .header("Cookie", &cookies)
        .send();
    assert_eq!(told.status, 200);
    assert!(told.text().contains("signed out"), "{}", told.text());
    let ended = server
        .request("GET", "/dashboard")
        .header("Cookie", &elsewhere)
        .send();
    assert_eq!(ended.header("location"), Some("/signin"));
    for (password, expected) in [(PASSWORD, 400), (NEW, 303)] {
        let answer = sign_in(&server, "", "owner@example.org", password);
        assert_eq!(answer.status, expected, "{password}");
    }
}

#[test]
fn the_owner_deletes_the_account_and_is_told_before_what_is_lost() {
    let server = Server::start();
    let cookies = sign_up_with_cookies(&server, "owner@example.org");
    let token = server.token_of(&cookies, "0");
    convert(&server, &token);
    let page = self::page(&server, "/account", &cookies);
    for told in [
        "conversions: 1",
        "There is no way back",
        "<strong>owner@example.org</strong>",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    let csrf = csrf(&page);
    let delete = |csrf: &str, password: &str, confirmed: &str| {
        server
            .request("POST", "/account/delete")
            .header("Cookie", &cookies)
            .form(&[
                ("csrf", csrf),
                ("password", password),
                ("confirmed", confirmed),
            ])
            .send()
    };
    for (csrf, password, confirmed, expected, reason) in [
        ("forged", PASSWORD, "yes", 403, "not made for this session"),
        (csrf, PASSWORD, "", 400, "tick the box"),
        (csrf, "wrong horse", "yes", 400, "password is wrong"),
    ] {
        let rejected = delete(csrf, password, confirmed);
        assert_eq!(rejected.status, expected, "{reason}");
        assert!(rejected.text().contains(reason), "{}", rejected.text());
    }
    convert(&server, &token);

    let deleted = delete(csrf, PASSWORD, "yes");
    assert_eq!(
        (deleted.status, deleted.header("location")),
        (303, Some("/account/deleted"))
    );
    let removed = deleted.headers.iter().filter(|(name, value)| {
        name == "set-cookie" && value.contains("=;") && value.contains("Max-Age=0")
    });
    // Those of the session, the device and the token.
    assert_eq!(removed.count(), 3, "{:?}", deleted.headers);
    let told = server.request("GET", "/account/deleted").send();
    assert_eq!(told.status, 200);
    let refused = server
        .request("POST", &format!("/convert?token={token}"))
        .header("Content-Type", "image/png")
        .body(Picture::waves(6, 4).png())
        .send();
    assert_eq!(refused.status, 401);
    assert_eq!(
        sign_in(&server, &cookies, "owner@example.org", PASSWORD).status,
        400
    );
    let again = sign_up_with_cookies(&server, "owner@example.org");
    let page = dashboard(&server, &again);
    assert!(page.contains("No conversions yet"), "a history: {page}");
}

#[test]
fn strangers_who_guess_do_not_lock_the_owner_out_of_a_known_browser() {
    let server = Server::start_with(&["--signin-limit", "0"]);
    let cookies = sign_up_with_cookies(&server, "owner@example.org");
    let device = cookies
        .split("; ")
        .find(|cookie| cookie.starts_with("towebp_device="));
    let device = device.unwrap_or_else(|| panic!("no device cookie: {cookies}"));
    // Until a stranger has to wait for long enough to see that the owner does not.
    loop {
        let refused = sign_in(&server, "", "owner@example.org", "wrong horse");
        let wait = refused.header("retry-after").map(str::parse::<u64>);
        match wait {
            None => assert_eq!(refused.status, 400, "{}", refused.text()),
            Some(Ok(8..)) => break,
            Some(Ok(seconds)) => thread::sleep(Duration::from_secs(seconds)),
            Some(Err(error)) => panic!("{error}"),
        }
    }
    let signed_in = sign_in(&server, device, "owner@example.org", PASSWORD);
    assert_eq!(signed_in.status, 303, "{}", signed_in.text());
    let renewed = cookies_of(&signed_in);
    assert!(
        renewed.contains("towebp_device=") && !renewed.contains(device),
        "each sign-in gives another: {renewed}"
    );
    let guess = sign_in(&server, device, "owner@example.org", "wrong horse");
    assert_eq!(guess.status, 400, "the device has a count of its own");
}

#[test]
fn behind_tls_the_cookie_is_bound_to_the_host_and_sent_by_tls_only() {
    let server = Server::start_with(&["--public-url", "https://webp.example.org"]);
    let signed_up = sign_up(&server, "owner@example.org");
    let cookie = signed_up.header("set-cookie").expect("a session");
    assert!(
        cookie.starts_with("__Host-towebp_session=")
            && cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );
    let cookie = signed_up.session_cookie();
    dashboard(&server, &cookie);
    let unbound = cookie.replace("__Host-", "");
    for (path, expected) in [("/dashboard", 303), ("/api/usage", 401)] {
        let answer = server
            .request("GET", path)
            .header("Cookie", &unbound)
            .send();
        assert_eq!(
            answer.status, expected,
            "{path}: a cookie that a neighbour could set"
        );
    }
    let usage = server
        .request("GET", "/api/usage")
        .header("Cookie", &cookie)
        .send();
    assert_eq!(usage.status, 200);
}

#[test]
fn every_page_and_answer_forbids_what_it_does_not_need() {
    let server = Server::start();
    let cookie = sign_up(&server, "owner@example.org").session_cookie();
    for path in ["/", "/signup", "/signin", "/dashboard", "/nothing"] {
        let page = server
            .request("GET", path)
            .header("Accept", "text/html")
            // Those who are signed in are led away from the forms.
            .header("Cookie", if path == "/dashboard" { &cookie } else { "" })
            .send();
        assert_ne!(page.status, 303, "{path}");
        let policy = page.header("content-security-policy").expect(path);
        for part in [
            "default-src 'none'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        // 'wasm-unsafe-eval' compiles WebAssembly alone, whose bytes come from this server.
        for loose in ["'unsafe", "*", "data:", "http"] {
            assert!(!policy.contains(loose), "{path}: {policy}");
        }
        let text = page.text();
        for inline in ["style=", "<style", "onclick=", "javascript:", "<script>"] {
            assert!(!text.contains(inline), "{path} has {inline}");
        }
        assert_eq!(
            page.header("cross-origin-opener-policy"),
            Some("same-origin")
        );
    }
    for path in [
        "/style.css",
        "/app.js",
        "/convert.js",
        "/icon.svg",
        "/healthz",
        "/api/usage",
        "/nothing",
    ] {
        let answer = server.request("GET", path).send();
        assert_eq!(
            answer.header("content-security-policy"),
            Some("default-src 'none'; frame-ancestors 'none'"),
            "{path}"
        );
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
    }
}

#[test]
fn unknown_and_known_accounts_are_refused_in_the_same_time() {
    let server = Server::start_with(&["--signin-limit", "0"]);
    sign_up(&server, "owner@example.org");
    server.create_account("machine@example.org");
    let refuse = |email: &str| {
        let asked = Instant::now();
        let refused = server
            .request("POST", "/signin")
            .form(&[("email", email), ("password", "wrong horse")])
            .send();
        assert_eq!(refused.status, 400, "{email}: {}", refused.text());
        asked.elapsed()
    };
    let emails = [
        "owner@example.org",
        "nobody@example.org",
        "machine@example.org",
    ];
    let rounds = [(); 5].map(|()| emails.map(refuse));
    let fastest = |index: usize| rounds.iter().map(|round| round[index]).min();
    let (known, others) = (fastest(0).expect("five rounds"), [1, 2].map(fastest));
    // Computing a password takes some 20 ms, and on a busy machine twice that; what is refused
    // without doing so takes less than one.
    for (email, unknown) in emails[1..].iter().zip(others) {
        assert!(
            unknown > Some(known / 8),
            "{email} took {unknown:?}, a known account {known:?}"
        );
    }
}

fn sign_up(server: &Server, email: &str) -> Response {
    server
        .request("POST", "/signup")
        .form(&[("email", email), ("password", PASSWORD)])
        .send()
}

/// Signs up, and gives the cookies of the session and of the device.
fn sign_up_with_cookies(server: &Server, email: &str) -> String {
    let signed_up = sign_up(server, email);
    assert_eq!(signed_up.status, 303, "{}", signed_up.text());
    cookies_of(&signed_up)
}

fn sign_in(server: &Server, cookies: &str, email: &str, password: &str) -> Response {
    server
        .request("POST", "/signin")
        .header("Cookie", cookies)
        .form(&[("email", email), ("password", password)])
        .send()
}

/// All cookies that the answer sets, as a `Cookie` header's value.
fn cookies_of(response: &Response) -> String {
    let set = response
        .headers
        .iter()
        .filter(|(name, _)| name == "set-cookie");
    let pairs = set.filter_map(|(_, value)| value.split(';').next());
    pairs.collect::<Vec<_>>().join("; ")
}

/// The secret of the first form on a page.
fn csrf(page: &str) -> &str {
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").expect("a form");
    &rest[..43]
}

/// Has to succeed.
#[track_caller]
fn convert(server: &Server, token: &str) -> Response {
    let answer = server
        .request("POST", &format!("/convert?token={token}"))
        .header("Content-Type", "image/png")
        .body(Picture::waves(6, 4).png())
        .send();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

fn dashboard(server: &Server, cookie: &str) -> String {
    page(server, "/dashboard", cookie)
}

fn page(server: &Server, path: &str, cookie: &str) -> String {
    let page = server.request("GET", path).header("Cookie", cookie).send();
    assert_eq!(page.status, 200);
    page.text().to_owned()
}
