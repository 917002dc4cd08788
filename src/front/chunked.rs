//! Chunked bodies (RFC 9112 section 7.1), read strictly: whatever two servers could read
//! differently is an error.

use super::rejection::Rejection;

/// Most bytes of a chunk's extension, which has no use here but must be accepted.
const MAX_EXTENSION: u16 = 256;

/// Most bytes of the trailers, which are dropped.
const MAX_TRAILERS: u16 = 4 << 10;

/// A decoder in the middle of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunked(State);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Within the digits of a size.
    Size { value: u64, digits: u8 },
    /// Between a size and the end of its line.
    Extension { value: u64, length: u16 },
    /// The line feed after a size is next.
    SizeEnd { value: u64 },
    /// This many bytes of a chunk are to come.
    Data { left: u64 },
    /// The end of line after a chunk's data is next; after its carriage return if `line_feed`.
    DataEnd { line_feed: bool },
    /// Within the trailers, after `length` bytes of them, `line` of which are in the present line.
    Trailers { length: u16, line: u16 },
    /// The line feed after a trailer is next.
    TrailerEnd { length: u16, line: u16 },
    /// All of the body was read.
    Done,
}

impl Chunked {
    /// Before the first chunk.
    pub const START: Chunked = Chunked(State::START);

    /// Reads on, gives the data to `data` in pieces, and returns how many of the bytes belong to
    /// the body: all of them, unless the body ends among them.
    ///
    /// # Errors
    /// [`Rejection::Malformed`].
    pub fn read(&mut self, bytes: &[u8], mut data: impl FnMut(&[u8])) -> Result<usize, Rejection> {
        let mut at = 0;
        while at < bytes.len() && !self.is_complete() {
            if let State::Data { left } = self.0 {
                let count = left.min((bytes.len() - at) as u64) as usize;
                data(&bytes[at..at + count]);
                at += count;
                self.0 = match left - count as u64 {
                    0 => State::DataEnd { line_feed: false },
                    left => State::Data { left },
                };
                continue;
            }
            self.0 = self.0.after(bytes[at])?;
            at += 1;
        }
        Ok(at)
    }

    /// Whether all of the body was read.
    pub fn is_complete(&self) -> bool {
        self.0 == State::Done
    }
}

impl State {
    const START: State = State::Size {
        value: 0,
        digits: 0,
    };

    fn after(self, byte: u8) -> Result<State, Rejection> {
        const WRONG: Rejection = Rejection::Malformed("the chunked body cannot be read");
        Ok(match (self, byte) {
            (State::Size { value, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char)
                    .to_digit(16)
                    .expect("it is a hexadecimal digit");
                // A u64 has up to 16 digits.
                if digits == 16 {
                    return Err(WRONG);
                }
                State::Size {
                    value: value << 4 | u64::from(digit),
                    digits: digits + 1,
                }
            }
            (State::Size { digits: 0, .. }, _) => return Err(WRONG),
            (State::Size { value, .. } | State::Extension { value, .. }, b'\r') => {
                State::SizeEnd { value }
            }
            (State::Size { value, .. }, b';') => State::Extension { value, length: 0 },
            (State::Extension { value, length }, b' '..=b'~' | b'\t') if length < MAX_EXTENSION => {
                State::Extension {
                    value,
                    length: length + 1,
                }
            }
            (State::SizeEnd { value: 0 }, b'\n') => State::Trailers { length: 0, line: 0 },
            (State::SizeEnd { value }, b'\n') => State::Data { left: value },
            (State::DataEnd { line_feed: false }, b'\r') => State::DataEnd { line_feed: true },
            (State::DataEnd { line_feed: true }, b'\n') => State::START,
            (State::Trailers { length, line }, b'\r') => State::TrailerEnd { length, line },
            (State::Trailers { length, line }, b' '..=b'~' | b'\t' | 0x80..)
                if length < MAX_TRAILERS =>
            {
                State::Trailers {
                    length: length + 1,
                    line: line + 1,
                }
            }
            (State::TrailerEnd { line: 0, .. }, b'\n') => State::Done,
            (State::TrailerEnd { length, .. }, b'\n') => State::Trailers { length, line: 0 },
            _ => return Err(WRONG),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data, and how many bytes follow the body. Reading in one piece and byte by byte must
    /// give the same.
    fn read(bytes: &[u8]) -> Result<(Vec<u8>, usize), Rejection> {
        let mut whole = (Chunked::START, Vec::new());
        let used = whole.0.read(bytes, |data| whole.1.extend_from_slice(data));
        let mut single = (Chunked::START, Vec::new());
        let mut outcome = Ok(0);
        for byte in bytes {
            match single
                .0
                .read(&[*byte], |data| single.1.extend_from_slice(data))
            {
                Ok(used) => outcome = outcome.map(|sum: usize| sum + used),
                Err(rejection) => {
                    outcome = Err(rejection);
                    break;
                }
            }
        }
        assert_eq!(used, outcome, "portions make no difference: {bytes:?}");
        let used = used?;
        assert_eq!(whole, single, "portions make no difference: {bytes:?}");
        assert!(whole.0.is_complete() || used == bytes.len());
        Ok((whole.1, bytes.len() - used))
    }

    #[test]
    fn chunks_become_one_body_and_what_follows_is_left() {
        let body = b"3\r\nabc\r\nA;name=value\r\n0123456789\r\n0\r\n\r\nGET /";
        assert_eq!(read(body), Ok((b"abc0123456789".to_vec(), 5)));
        assert_eq!(read(b"0\r\n\r\n"), Ok((Vec::new(), 0)));
        assert_eq!(read(b"000\r\nX: y\r\nZ: w\r\n\r\n!"), Ok((Vec::new(), 1)));
    }

    #[test]
    fn whatever_could_be_read_differently_is_rejected() {
        let extended = |length| format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(length));
        let with_trailers = |lines| format!("0\r\n{}\r\n", "A: b\r\n".repeat(lines));
        for longest in [extended(256), with_trailers(1024)] {
            let read = read(longest.as_bytes());
            assert!(read.is_ok(), "{read:?} of {} bytes", longest.len());
        }
        let (long_extension, trailers) = (extended(257), with_trailers(1025));
        let cases: &[&[u8]] = &[
            b"\r\n",
            b" 3\r\nabc\r\n",
            b"3 \r\nabc\r\n",
            b"3\nabc\r\n",
            b"3\r\nabcd\r\n",
            b"3\r\nabc\n0\r\n\r\n",
            b"3\r\nabc0\r\n\r\n",
            b"0x3\r\nabc\r\n",
            b"+3\r\nabc\r\n",
            b"-1\r\nabc\r\n",
            b"g\r\n",
            b"00000000000000003\r\nabc\r\n",
            b"3;a\nb\r\nabc\r\n",
            b"3;a\rb\r\nabc\r\n",
            b"3;\x00\r\nabc\r\n",
            b"0\r\nX: y\nZ: w\r\n\r\n",
            b"0\r\n\n",
            long_extension.as_bytes(),
            trailers.as_bytes(),
        ];
        for case in cases {
            let read = read(case);
            assert!(
                matches!(read, Err(Rejection::Malformed(_))),
                "{read:?} of {:?}",
                case.escape_ascii().to_string()
            );
        }
    }

    #[test]
    fn sizes_go_up_to_what_64_bits_hold() {
        let mut decoder = Chunked::START;
        assert_eq!(decoder.read(b"ffffffffffffffff\r\n", |_| ()), Ok(18));
        assert_eq!(decoder.0, State::Data { left: u64::MAX });
    }
}
