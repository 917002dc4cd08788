//! What is sent with a type, a tag or a place of its own.

use crate::support::Server;
use crate::support::picture::Picture;

#[test]
fn the_pages_files_are_sent_again_only_if_they_changed() {
    let server = Server::start();
    for path in ["/style.css", "/app.js", "/convert.js", "/icon.svg"] {
        let first = server.request("GET", path).send();
        let tag = first.header("etag").expect("a tag").to_owned();
        assert!(!first.body.is_empty());
        for known in [tag.clone(), format!("\"other\", W/{tag}")] {
            let request = server.request("GET", path);
            let again = request.header("If-None-Match", &known).send();
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
            assert_eq!(again.header("etag"), Some(&*tag));
        }
        let request = server.request("GET", path);
        let other = request.header("If-None-Match", "\"other\"").send();
        assert_eq!((other.status, &other.body), (200, &first.body), "{path}");
    }
}

#[test]
fn password_managers_find_the_form() {
    let server = Server::start();
    let answer = server.request("GET", "/.well-known/change-password").send();
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), Some("/account#password"));
}

#[test]
fn a_picture_without_a_type_is_converted_only_with_the_flag() {
    for (flags, expected) in [(&[][..], 400), (&["--sniff"], 200)] {
        let server = Server::start_with(flags);
        let token = server.create_account("owner@example.org");
        let send = |media_type: Option<&str>, body: &[u8]| {
            let mut request = server.request("POST", &format!("/convert?token={token}"));
            if let Some(media_type) = media_type {
                request = request.header("Content-Type", media_type);
            }
            request.body(body.to_vec()).send()
        };
        let png = Picture::waves(6, 4).png();
        for media_type in [None, Some("application/octet-stream")] {
            let answer = send(media_type, &png);
            assert_eq!(answer.status, expected, "{media_type:?}: {}", answer.text());
            for nothing in [&b"no picture"[..], b""] {
                let answer = send(media_type, nothing);
                assert_eq!(answer.status, 400, "{media_type:?}");
            }
        }
        for media_type in ["application/x-www-form-urlencoded", "image/webp"] {
            assert_eq!(send(Some(media_type), &png).status, 400, "{media_type}");
        }
    }
}
