//! Finding the end of a head while it arrives.

use super::types::HeadLimits;
use crate::front::rejection::Rejection;

/// Looks for the end of a head that grows, at each byte once.
#[derive(Debug, Default)]
pub struct HeadScanner {
    /// Bytes looked at.
    at: usize,
    /// Where the present line begins.
    line: usize,
    /// Lines so far, without empty ones before the request line.
    lines: usize,
}

impl HeadScanner {
    /// The number of bytes up to the end of the empty line after the headers, once it is there.
    /// `bytes` begins with the bytes of the last call.
    ///
    /// # Errors
    /// The fault, if the bytes cannot become a head any more.
    pub fn find_end(
        &mut self,
        bytes: &[u8],
        limits: HeadLimits,
    ) -> Result<Option<usize>, Rejection> {
        while let Some(&byte) = bytes.get(self.at) {
            if self.at == limits.bytes {
                let limit = limits.bytes;
                return Err(match self.lines {
                    0 => Rejection::TargetTooLong { limit },
                    _ => Rejection::HeadTooLarge { limit },
                });
            }
            self.check(bytes, byte)?;
            self.at += 1;
            if byte != b'\n' {
                continue;
            }
            let is_empty = self.at - self.line == 2;
            self.line = self.at;
            if !is_empty {
                self.lines += 1;
                if self.lines > limits.headers + 1 {
                    return Err(Rejection::TooManyHeaders {
                        limit: limits.headers,
                    });
                }
            } else if self.lines > 0 {
                return Ok(Some(self.at));
            }
        }
        Ok(None)
    }

    /// Lines end in CR LF, and neither of the two stands anywhere else.
    fn check(&self, bytes: &[u8], byte: u8) -> Result<(), Rejection> {
        let after_return = self.at > self.line && bytes[self.at - 1] == b'\r';
        let message = match byte {
            b'\n' if after_return => return Ok(()),
            b'\n' => "a line ends without a carriage return",
            _ if after_return => "a carriage return stands inside a line",
            b'\r' | b'\t' => return Ok(()),
            0..0x20 | 0x7f => "it contains a control character",
            // Said at once, since a client that speaks another protocol (TLS begins with 0x16) may
            // wait for a response.
            _ if self.lines == 0 && self.at == self.line && !is_token(byte) => {
                "it does not begin with a method"
            }
            _ => return Ok(()),
        };
        Err(Rejection::Malformed(message))
    }
}

/// Whether a token may contain this byte (RFC 9110 section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
