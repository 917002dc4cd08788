//! Pages of other origins, as their browsers ask for them.

use crate::support::picture::Picture;
use crate::support::service::OWNER;
use crate::support::{Response, Server};

const APP: &str = "https://app.example.org";
const OTHER: &str = "https://other.example.org";

fn preflight(server: &Server, path: &str, origin: &str) -> Response {
    server
        .request("OPTIONS", path)
        .header("Origin", origin)
        .header("Access-Control-Request-Method", "POST")
        .header(
            "Access-Control-Request-Headers",
            "authorization,content-type",
        )
        .send()
}

fn convert(server: &Server, token: &str, origin: &str, in_url: bool) -> Response {
    let target = if in_url {
        format!("/convert?token={token}")
    } else {
        "/convert".to_owned()
    };
    let mut request = server
        .request("POST", &target)
        .header("Origin", origin)
        .header("Content-Type", "image/png");
    let bearer = format!("Bearer {token}");
    if !in_url {
        request = request.header("Authorization", &bearer);
    }
    request.body(Picture::waves(12, 8).png()).send()
}

#[test]
fn pages_of_an_allowed_origin_call_the_api_and_nothing_else() {
    let server = Server::start_with(&["--allow-origin", APP]);
    let token = server.create_account(OWNER);
    let asked = preflight(&server, "/convert", APP);
    assert_eq!(asked.status, 204, "{}", asked.text());
    assert_eq!(asked.header("access-control-allow-origin"), Some(APP));
    assert_eq!(asked.header("access-control-allow-methods"), Some("POST"));
    let allowed = asked.header("access-control-allow-headers");
    assert_eq!(allowed, Some("Authorization, Content-Type"));
    assert!(asked.body.is_empty());

    for in_url in [false, true] {
        let answer = convert(&server, &token, APP, in_url);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("access-control-allow-origin"), Some(APP));
        assert_eq!(answer.header("vary"), Some("Origin"));
        let exposed = answer.header("access-control-expose-headers");
        let exposed = exposed.unwrap_or_default().to_lowercase();
        let always = ["cache-control", "content-type", "content-length"];
        let unread = [
            "date",
            "connection",
            "server",
            "vary",
            "x-content-type-options",
        ];
        for (name, _) in &answer.headers {
            let is_told = exposed.split(", ").any(|it| it == name)
                || always.contains(&&**name)
                || unread.contains(&&**name)
                || name.starts_with("access-control-")
                || name.ends_with("-policy");
            assert!(is_told, "{name} is not exposed");
        }
    }
    // An error has to be readable, too, whether a worker gives it or the front door.
    let refused = convert(&server, "twp_forged", APP, false);
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("access-control-allow-origin"), Some(APP));

    assert_eq!(preflight(&server, "/convert", OTHER).status, 405);
    let other = convert(&server, &token, OTHER, false);
    assert_eq!(other.header("access-control-allow-origin"), None);
    for path in ["/dashboard", "/signin", "/"] {
        let asked = preflight(&server, path, APP);
        assert_eq!(asked.status, 405, "{path}");
        let page = server.request("GET", path).header("Origin", APP).send();
        assert_eq!(page.header("access-control-allow-origin"), None, "{path}");
    }
}

#[test]
fn of_all_origins_the_token_is_in_a_header() {
    let server = Server::start_with(&["--allow-origin", "*"]);
    let token = server.create_account(OWNER);
    let asked = preflight(&server, "/convert", OTHER);
    assert_eq!(asked.status, 204, "{}", asked.text());
    assert_eq!(asked.header("access-control-allow-origin"), Some("*"));
    let answer = convert(&server, &token, OTHER, false);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let refused = convert(&server, &token, OTHER, true);
    let code = refused.json()["code"].as_str().map(str::to_owned);
    assert_eq!(
        (refused.status, code.as_deref()),
        (403, Some("token_in_url"))
    );
    assert_eq!(refused.header("access-control-allow-origin"), Some("*"));
    assert_eq!(refused.header("access-control-allow-credentials"), None);
}

#[test]
fn without_the_flag_nothing_is_said_about_origins() {
    let server = Server::start();
    let token = server.create_account(OWNER);
    assert_eq!(preflight(&server, "/convert", APP).status, 405);
    let answer = convert(&server, &token, APP, true);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), None);
    assert_eq!(answer.header("vary"), None);
}
