//! Accounts in several browsers: the list of sessions, and a change of the e-mail address.

use crate::support::picture::Picture;
use crate::support::{Response, Server};

const OWNER: &str = "owner@example.org";
const PASSWORD: &str = "correct horse battery";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// A browser that is signed in.
struct Browser<'a> {
    server: &'a Server,
    cookie: String,
    user_agent: &'a str,
    address: &'a str,
}

impl<'a> Browser<'a> {
    fn sign(
        how: &str,
        server: &'a Server,
        email: &str,
        user_agent: &'a str,
        address: &'a str,
    ) -> Browser<'a> {
        let signed = server
            .request("POST", how)
            .header("User-Agent", user_agent)
            .header("X-Forwarded-For", address)
            .form(&[("email", email), ("password", PASSWORD)])
            .send();
        assert_eq!(signed.status, 303, "{}", signed.text());
        Browser {
            server,
            cookie: signed.session_cookie(),
            user_agent,
            address,
        }
    }

    fn get(&self, path: &str) -> Response {
        self.server
            .request("GET", path)
            .header("Cookie", &self.cookie)
            .header("User-Agent", self.user_agent)
            .header("X-Forwarded-For", self.address)
            .send()
    }

    fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        self.server
            .request("POST", path)
            .header("Cookie", &self.cookie)
            .header("X-Forwarded-For", self.address)
            .form(fields)
            .send()
    }

    #[track_caller]
    fn page(&self, path: &str) -> String {
        let page = self.get(path);
        assert_eq!(page.status, 200, "{path}: {}", page.text());
        page.text().to_owned()
    }

    fn csrf(&self) -> String {
        let page = self.page("/sessions");
        let (_, rest) = page.split_once("name=\"csrf\" value=\"").expect("a form");
        rest[..43].to_owned()
    }

    /// The names of the other sessions.
    fn others(&self) -> Vec<String> {
        let page = self.page("/sessions");
        let parts = page.split("name=\"session\" value=\"").skip(1);
        parts.map(|part| part[..32].to_owned()).collect()
    }

    fn is_signed_in(&self) -> bool {
        let page = self.get("/dashboard");
        if page.status == 303 {
            assert_eq!(page.header("location"), Some("/signin"));
        }
        page.status == 200
    }

    fn end(&self, csrf: &str, session: &str) -> Response {
        self.post("/session/end", &[("csrf", csrf), ("session", session)])
    }
}

fn server() -> Server {
    Server::start_with(&["--trusted-proxy", "127.0.0.1"])
}

#[test]
fn one_browser_ends_the_session_of_another() {
    let server = server();
    let here = Browser::sign("/signup", &server, OWNER, FIREFOX, "192.0.2.77");
    let there = Browser::sign(
        "/signin",
        &server,
        OWNER,
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 \
         (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1",
        "2001:db8:1234:5678::9",
    );
    let page = here.page("/sessions");
    for told in [
        "Firefox on Linux",
        "192.0.2.0/24",
        "Safari on iPhone",
        "2001:db8:1234:5600::/56",
        "This browser",
    ] {
        let cell = format!(">{told}<");
        assert_eq!(page.matches(&cell).count(), 1, "{told}: {page}");
    }
    for hidden in ["192.0.2.77", "5678", "Mozilla", &here.cookie, &there.cookie] {
        assert!(!page.contains(hidden), "{hidden}: {page}");
    }
    assert!(here.page("/account").contains("href=\"/sessions\""));
    let [other] = &here.others()[..] else {
        panic!("one other session: {page}");
    };
    let forged = here.end("forged", other);
    assert_eq!(forged.status, 403, "{}", forged.text());
    assert!(there.is_signed_in());
    let ended = here.end(&here.csrf(), other);
    assert_eq!(
        (ended.status, ended.header("location")),
        (303, Some("/sessions?done=ended"))
    );
    assert_eq!(ended.header("set-cookie"), None);
    assert!(!there.is_signed_in() && here.is_signed_in());
    assert_eq!(here.others(), [""; 0]);
    let again = here.end(&here.csrf(), other);
    assert_eq!(again.status, 400);
    assert!(again.text().contains("no such session"), "{}", again.text());
    let signed_out = there.get("/sessions");
    assert_eq!(
        (signed_out.status, signed_out.header("location")),
        (303, Some("/signin?next=%2Fsessions"))
    );
}

#[test]
fn a_browser_that_ends_its_own_session_is_signed_out() {
    let server = server();
    let here = Browser::sign("/signup", &server, OWNER, FIREFOX, "192.0.2.77");
    let there = Browser::sign("/signin", &server, OWNER, FIREFOX, "192.0.2.78");
    let [own] = &there.others()[..] else {
        panic!("one other session");
    };
    let ended = here.end(&here.csrf(), own);
    assert_eq!((ended.status, ended.header("location")), (303, Some("/")));
    let removed = ended.header("set-cookie").expect("the browser forgets it");
    assert!(removed.contains("Max-Age=0"), "{removed}");
    assert!(!here.is_signed_in() && there.is_signed_in());
}

#[test]
fn nobody_ends_the_session_of_another_account() {
    let server = server();
    let owner = Browser::sign("/signup", &server, OWNER, FIREFOX, "192.0.2.77");
    let second = Browser::sign("/signin", &server, OWNER, FIREFOX, "192.0.2.77");
    let thief = Browser::sign("/signup", &server, "thief@example.org", "", "192.0.2.1");
    let names = [owner.others(), second.others()].concat();
    assert_eq!(names.len(), 2);
    let long = "0".repeat(10_000);
    let others = [
        "",
        "0",
        "../../x",
        &long,
        "zz000000000000000000000000000000",
        &owner.cookie,
    ];
    for session in names.iter().map(String::as_str).chain(others) {
        let refused = thief.end(&thief.csrf(), session);
        assert_eq!(refused.status, 400, "{session}: {}", refused.text());
        assert!(refused.text().contains("role=\"alert\""));
    }
    assert!(owner.is_signed_in() && second.is_signed_in() && thief.is_signed_in());
    assert!(!thief.page("/sessions").contains("192.0.2.0/24 "));
}

#[test]
fn what_a_browser_sends_about_itself_does_no_harm() {
    let server = server();
    let long = format!("Firefox/{}", "9".repeat(6_000));
    let hostile = [
        "<script>alert(1)</script> Firefox/1 \"onload=x\" Linux",
        &long,
        "\u{202e}é Firefox\u{2028}",
        "",
    ];
    let mut first = None;
    for (i, user_agent) in hostile.iter().enumerate() {
        let how = if i == 0 { "/signup" } else { "/signin" };
        let browser = Browser::sign(how, &server, OWNER, user_agent, "192.0.2.77");
        first.get_or_insert(browser);
    }
    let page = first.expect("four of them").page("/sessions");
    assert!(page.contains("Firefox on Linux"), "{page}");
    assert!(page.contains("Unknown browser"), "{page}");
    for harm in ["alert(1)", "onload", "99999999", "\u{202e}"] {
        assert!(!page.contains(harm), "{harm}: {page}");
    }
}

#[test]
fn the_owner_changes_the_address_by_the_password() {
    const NEW: &str = "new@example.org";
    let server = server();
    let here = Browser::sign("/signup", &server, OWNER, FIREFOX, "192.0.2.77");
    let there = Browser::sign("/signin", &server, OWNER, FIREFOX, "192.0.2.77");
    Browser::sign("/signup", &server, "taken@example.org", "", "192.0.2.1");
    let page = here.page("/account");
    assert!(page.contains("action=\"/account/email\""), "{page}");
    let token = server.token_of(&here.cookie, "0");
    let csrf = here.csrf();
    let change = |csrf: &str, password: &str, new: &str| {
        let fields = [("csrf", csrf), ("password", password), ("new", new)];
        here.post("/account/email", &fields)
    };
    for (csrf, password, new, status, reason) in [
        ("forged", PASSWORD, NEW, 403, "not made for this session"),
        (&csrf, "wrong horse", NEW, 400, "password is wrong"),
        (
            &csrf,
            "wrong horse",
            "taken@example.org",
            400,
            "password is wrong",
        ),
        (
            &csrf,
            PASSWORD,
            "Taken@example.org",
            400,
            "Another account has this address",
        ),
        (&csrf, PASSWORD, "<b>", 400, "The e-mail address has no @."),
    ] {
        let refused = change(csrf, password, new);
        assert_eq!(refused.status, status, "{new}: {}", refused.text());
        assert!(refused.text().contains(reason), "{}", refused.text());
        assert!(!refused.text().contains("<b>"), "{}", refused.text());
    }
    let changed = change(&csrf, PASSWORD, "New@Example.org ");
    assert_eq!(
        (changed.status, changed.header("location")),
        (303, Some("/account/email/changed"))
    );
    let told = here.page("/account/email/changed");
    assert!(told.contains("<strong>new@example.org</strong>"), "{told}");
    assert!(here.is_signed_in() && there.is_signed_in());
    let converted = server
        .request("POST", &format!("/convert?token={token}"))
        .header("Content-Type", "image/png")
        .body(Picture::waves(6, 4).png())
        .send();
    assert_eq!(converted.status, 200, "{}", converted.text());
    let sign_in = |email: &str| {
        let form = [("email", email), ("password", PASSWORD)];
        server.request("POST", "/signin").form(&form).send().status
    };
    assert_eq!((sign_in(OWNER), sign_in(NEW)), (400, 303));
}

#[test]
fn attempts_to_change_the_address_are_counted() {
    let server = server();
    let here = Browser::sign("/signup", &server, OWNER, FIREFOX, "192.0.2.77");
    let csrf = here.csrf();
    let change = |password: &str, new: &str| {
        let fields = [("csrf", &*csrf), ("password", password), ("new", new)];
        here.post("/account/email", &fields)
    };
    // Five wrong passwords are free; then this session has to wait, with the right one too.
    for _ in 0..5 {
        assert_eq!(change("wrong horse", "new@example.org").status, 400);
    }
    let refused = change(PASSWORD, "new@example.org");
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.header("retry-after").is_some());
    // It tells whether an address is taken, so it is limited as sign-up is.
    let server = Server::start_with(&["--trusted-proxy", "127.0.0.1", "--signup-limit", "2"]);
    let here = Browser::sign("/signup", &server, OWNER, FIREFOX, "192.0.2.77");
    let csrf = here.csrf();
    for expected in [400, 429] {
        let fields = [("csrf", &*csrf), ("password", PASSWORD), ("new", "")];
        assert_eq!(here.post("/account/email", &fields).status, expected);
    }
}

#[test]
fn before_an_account_is_deleted_its_history_is_offered() {
    let server = server();
    let here = Browser::sign("/signup", &server, OWNER, FIREFOX, "192.0.2.77");
    let deletion = |page: &str| {
        let (_, form) = page
            .split_once("action=\"/account/delete\"")
            .expect("a form");
        form.split_once("</form>").expect("its end").0.to_owned()
    };
    let form = deletion(&here.page("/account"));
    assert!(!form.contains("/api/usage"), "there is none yet");
    let token = server.token_of(&here.cookie, "0");
    let converted = server
        .request("POST", &format!("/convert?token={token}"))
        .header("Content-Type", "image/png")
        .body(Picture::waves(6, 4).png())
        .send();
    assert_eq!(converted.status, 200);
    let form = deletion(&here.page("/account"));
    for path in ["/api/usage.csv", "/api/usage.ndjson"] {
        assert!(form.contains(&format!("href=\"{path}\"")), "{form}");
        assert_eq!(here.get(path).status, 200, "by the session alone");
    }
}

#[test]
fn a_form_without_a_session_is_led_to_the_sign_in_whatever_it_holds() {
    let server = server();
    for (path, next) in [
        ("/token/create", "tokens"),
        ("/token/change", "tokens"),
        ("/token/delete", "tokens"),
        ("/token/reveal", "tokens"),
        ("/session/end", "sessions"),
    ] {
        let to_sign_in = format!("/signin?ended=yes&next=%2F{next}");
        let answer = server
            .request("POST", path)
            .form(&[("monthly", "many"), ("preset", "quality=high")])
            .send();
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, Some(&*to_sign_in)),
            "{path}: {}",
            answer.text()
        );
    }
    let here = Browser::sign("/signup", &server, OWNER, FIREFOX, "192.0.2.77");
    let fields = [("csrf", "forged"), ("name", "shop"), ("monthly", "many")];
    assert_eq!(here.post("/token/create", &fields).status, 403);
}
