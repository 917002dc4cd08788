//! A link that can fail: a proxy of TCP connections between a replica and PostgreSQL.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

/// How the link behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Link {
    /// Bytes go through as they come.
    Pass,
    /// Connections end, and new ones end at once.
    Cut,
    /// Connections stay, and nothing goes through. Held bytes go on with the next `Pass`.
    Hold,
    /// Each direction carries a byte every [`DRIP`].
    Drip,
    /// As `Cut`, for good.
    Gone,
}

/// Between two bytes: 50 a second.
const DRIP: Duration = Duration::from_millis(20);

/// How often a connection that has nothing to carry looks at the state of the link.
const LOOK: Duration = Duration::from_millis(20);

/// Listens on a port of its own, and passes connections on to another one. Ends with the value.
pub struct Proxy {
    port: u16,
    link: Arc<AtomicU8>,
}

impl Proxy {
    pub fn to(target: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let link = Arc::new(AtomicU8::new(Link::Pass as u8));
        let seen = Arc::clone(&link);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if is(&seen, Link::Gone) {
                    return;
                }
                // While nothing goes through, no handshake with the other side ends either.
                let link = Arc::clone(&seen);
                thread::spawn(move || connect(near, target, &link));
            }
        });
        Proxy { port, link }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn set(&self, link: Link) {
        self.link.store(link as u8, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.set(Link::Gone);
        // The listener wakes up.
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok();
    }
}

fn connect(near: TcpStream, target: u16, link: &Arc<AtomicU8>) {
    while is(link, Link::Hold) {
        thread::sleep(LOOK);
    }
    if is(link, Link::Cut) {
        return;
    }
    let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)) else {
        return;
    };
    let (Ok(from), Ok(to)) = (near.try_clone(), far.try_clone()) else {
        return;
    };
    let back = Arc::clone(link);
    thread::spawn(move || carry(far, near, &back));
    carry(from, to, link);
}

/// Carries bytes in one direction until either side or the link ends.
fn carry(mut from: TcpStream, mut to: TcpStream, link: &AtomicU8) {
    from.set_read_timeout(Some(LOOK)).expect("a positive time");
    for stream in [&from, &to] {
        stream.set_nodelay(true).ok();
    }
    let mut bytes = [0; 16 * 1024];
    loop {
        let count = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
            Err(_) => break,
        };
        if !pass_on(&bytes[..count], &mut to, link) {
            break;
        }
    }
    from.shutdown(Shutdown::Both).ok();
    to.shutdown(Shutdown::Both).ok();
}

/// Whether the connection goes on.
fn pass_on(mut bytes: &[u8], to: &mut TcpStream, link: &AtomicU8) -> bool {
    loop {
        if is(link, Link::Cut) || is(link, Link::Gone) {
            return false;
        }
        if bytes.is_empty() {
            return true;
        }
        let now = if is(link, Link::Hold) {
            thread::sleep(LOOK);
            continue;
        } else if is(link, Link::Drip) {
            thread::sleep(DRIP);
            1
        } else {
            bytes.len()
        };
        if to.write_all(&bytes[..now]).is_err() {
            return false;
        }
        bytes = &bytes[now..];
    }
}

fn is(link: &AtomicU8, state: Link) -> bool {
    link.load(Ordering::SeqCst) == state as u8
}
