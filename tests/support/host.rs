//! A host of watermark pictures on 127.0.0.1.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

/// Serves one file at `/file`; `/missing` is a 404.
pub struct Host(SocketAddr);

impl Host {
    pub fn of(file: &[u8]) -> Host {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let file = file.to_vec();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("accepted");
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                let (status, body) = if head.starts_with(b"GET /file") {
                    ("200 OK", &file[..])
                } else {
                    ("404 Not Found", &[][..])
                };
                // The client may have seen enough before the end: not a fault of this side.
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(body);
            }
        });
        Host(address)
    }

    pub fn url(&self) -> String {
        format!("http://{}/file", self.0)
    }

    pub fn missing(&self) -> String {
        format!("http://{}/missing", self.0)
    }
}
