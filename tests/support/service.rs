//! A running server with one account, as a user of the service meets it.

use super::picture::Picture;
use super::{Folder, Response, Server, TIMEOUT, try_read_response};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

/// The account's address.
pub const OWNER: &str = "owner@example.org";

/// A server and the token of an account on it.
pub struct Service {
    pub server: Server,
    pub token: String,
}

/// Width and height of a picture, by which a request is told from all others.
pub type Size = (u32, u32);

/// A WebP file; two of them are compared byte for byte, and shown by size alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Webp(pub Vec<u8>);

impl fmt::Debug for Webp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a WebP file of {} bytes", self.0.len())
    }
}

impl AsRef<[u8]> for Webp {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Service {
    /// With private watermark hosts allowed.
    pub fn start() -> Service {
        Service::start_with(&["--allow-private-watermark-hosts"])
    }

    /// With these flags.
    pub fn start_with(flags: &[&str]) -> Service {
        let server = Server::start_with(flags);
        let token = server.create_account(OWNER);
        Service { server, token }
    }

    /// On the data of a server before.
    pub fn resume(folder: Folder, token: String) -> Service {
        Service {
            server: Server::start_in(folder, &[]),
            token,
        }
    }

    /// Has a conversion wait in a worker for its watermark; gives the client's connection and that
    /// of the picture's host.
    pub fn begin_conversion(&self) -> (TcpStream, TcpStream) {
        let host = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/logo.png", host.local_addr().expect("bound"));
        let png = Picture::waves(16, 16).png();
        let target = self.target(&[("watermark_image", &url)]);
        let mut client = self.server.send_raw(format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: {}\r\n\r\n",
            png.len()
        ));
        client.write_all(&png).expect("the server reads");
        let (held, _) = host.accept().expect("the server asks for the watermark");
        (client, held)
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    pub fn data(&self) -> PathBuf {
        self.server.data()
    }

    /// `POST /convert` with the account's token and these parameters.
    pub fn convert(
        &self,
        parameters: &[(&str, &str)],
        content_type: &str,
        body: &[u8],
    ) -> Response {
        let headers = [("Content-Type", content_type)];
        self.request("POST", &self.target(parameters), &headers, body)
    }

    /// As [`Service::convert`], of a PNG, and it has to succeed.
    #[track_caller]
    pub fn webp(&self, parameters: &[(&str, &str)], png: &[u8]) -> Webp {
        let answer = self.convert(parameters, "image/png", png);
        assert_eq!(answer.status, 200, "{parameters:?}: {}", answer.text());
        Webp(answer.body)
    }

    /// `/convert` with the account's token and these parameters.
    pub fn target(&self, parameters: &[(&str, &str)]) -> String {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", &self.token)
            .extend_pairs(parameters)
            .finish();
        format!("/convert?{query}")
    }

    pub fn get(&self, target: &str, headers: &[(&str, &str)]) -> Response {
        self.request("GET", target, headers, b"")
    }

    /// Any request; a POST has a body, be it empty.
    pub fn request(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let mut request = self.server.request(method, target);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if method == "POST" || !body.is_empty() {
            request = request.body(body);
        }
        request.send()
    }

    /// `GET /api/usage`, of a history that fits one page.
    #[track_caller]
    pub fn usage(&self) -> serde_json::Value {
        let bearer = format!("Bearer {}", self.token);
        let answer = self.get("/api/usage?limit=1000", &[("Authorization", &bearer)]);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// How often each size of a picture stands in the history, however long that is.
    #[track_caller]
    pub fn sizes(&self) -> HashMap<Size, usize> {
        let bearer = format!("Bearer {}", self.token);
        let answer = self.get("/api/usage.csv", &[("Authorization", &bearer)]);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let mut sizes = HashMap::new();
        for row in answer.text().lines().skip(1) {
            let fields: Vec<u32> = row.split(',').flat_map(str::parse).collect();
            // The numbers of a row: id, bytes in, bytes out, width, height, quality, milliseconds.
            assert_eq!(fields.len(), 7, "{row}");
            *sizes.entry((fields[3], fields[4])).or_default() += 1;
        }
        sizes
    }

    /// A whole request for the conversion of a picture of this size.
    pub fn message(&self, (width, height): Size) -> Vec<u8> {
        let png = Picture::waves(width, height).png();
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: image/png\r\n\
             Content-Length: {}\r\n\r\n",
            self.target(&[]),
            self.address(),
            png.len()
        );
        [head.as_bytes(), &png].concat()
    }

    /// How many conversions the history holds.
    #[track_caller]
    pub fn conversions(&self) -> usize {
        self.usage()["entries"].as_array().expect("a list").len()
    }
}

/// Sends these bytes to a server that may refuse them before it has read them all, or end before it
/// answers.
pub fn send(address: SocketAddr, message: &[u8]) -> io::Result<Response> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let written = stream.write_all(message);
    try_read_response(&mut stream, false).map_err(|error| written.err().unwrap_or(error))
}

impl Response {
    /// Checks that it is a problem of this status and code, and gives its detail.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(
            problem["error"], self.reason,
            "the status line says otherwise"
        );
        problem["detail"].as_str().expect("a text").to_owned()
    }
}
