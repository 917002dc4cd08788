//! `multipart/form-data` (RFC 7578, in the syntax of RFC 2046, section 5.1) with one file and
//! parameters as fields, read while it arrives.
//!
//! The event loop gives the body in portions of any size. The file's bytes go straight to where
//! the bytes of a plain body go, so that a picture is held once and scanned once; only fields and
//! the headers of a part are kept here. A form that cannot be read keeps nothing from there on: the
//! worker answers it once it is complete.
//!
//! Deviations that other readers pass over in silence are errors here, so that no two readers see
//! different forms: bytes before the first boundary or after the last, lines that begin with the
//! boundary and go on, line ends without CR, headers in several lines, and parts within parts.

mod boundary;
mod error;
mod limits;
mod part;

#[cfg(test)]
mod tests;

pub use error::FormError;

use super::pairs::Pairs;
use crate::front::ByteQueue;
use limits::{MAX_FIELDS, MAX_PART_HEADERS, MAX_PARTS};
use memchr::{memchr, memmem, memrchr};
use part::{Part, PartKind};

/// A form that arrives.
pub struct FormReader {
    /// CR, LF, two hyphens and the boundary. There is no other CR in it, so that a place where it
    /// begins and does not go on is never within another such place.
    delimiter: Vec<u8>,
    state: FormState,
    form: Form,
    parts: usize,
    /// The bytes of the names and values of all fields so far.
    field_bytes: usize,
}

/// The parts of a form.
#[derive(Default)]
pub struct Form {
    /// The fields.
    pub fields: Pairs,
    /// The file, if there is one. Its bytes are elsewhere.
    pub file: Option<FormFile>,
}

/// A form's file.
pub struct FormFile {
    /// The name of the part, not of the file.
    pub name: String,
    /// Its `Content-Type`, without parameters; empty if there is none.
    pub media_type: String,
}

/// The place of the next byte in the form.
enum FormState {
    /// The first boundary, or the empty line that may come before it. So many bytes of the
    /// delimiter are there; its CR LF need not be.
    Begin { matched: usize, had_line: bool },
    /// The rest of a line that begins with the boundary.
    BoundaryLine(LineEnd),
    /// The headers of a part, as far as they have arrived.
    Headers(Vec<u8>),
    /// The bytes of a part. The last ones, which are the first `matched` ones of the delimiter, are
    /// not passed on yet.
    Bytes { part: OpenPart, matched: usize },
    /// After the last boundary.
    End,
    /// It cannot be read.
    Failed(FormError),
}

/// The progress of a boundary's line.
#[derive(Clone, Copy)]
enum LineEnd {
    /// Nothing follows the boundary yet.
    Start,
    /// The first of the two hyphens of the last boundary.
    Hyphen,
    /// White space, which some programs on the way may add.
    Padding,
    /// The CR.
    Return,
}

/// A part whose bytes arrive.
enum OpenPart {
    File,
    Field { name: String, value: Vec<u8> },
}

impl FormReader {
    /// Reads a form of this `Content-Type`; `None` if that names something other than
    /// `multipart/form-data`.
    ///
    /// # Errors
    /// [`FormError`], if the boundary is missing or cannot be used.
    pub fn of_content_type(content_type: &str) -> Result<Option<FormReader>, FormError> {
        let Some(boundary) = boundary::of_content_type(content_type)? else {
            return Ok(None);
        };
        Ok(Some(FormReader {
            delimiter: [b"\r\n--", boundary.as_bytes()].concat(),
            state: FormState::Begin {
                matched: 2,
                had_line: false,
            },
            form: Form::default(),
            parts: 0,
            field_bytes: 0,
        }))
    }

    /// Reads the next bytes of the body, and adds those of the file to `file`. `to_come` is how
    /// many are known to follow.
    pub fn read(&mut self, mut bytes: &[u8], to_come: Option<u64>, file: &mut ByteQueue) {
        while !bytes.is_empty() {
            if matches!(self.state, FormState::Failed(_)) {
                return;
            }
            match self.step(bytes, to_come, file) {
                Ok(used) => bytes = &bytes[used..],
                Err(error) => {
                    self.state = FormState::Failed(error);
                    self.form = Form::default();
                    *file = ByteQueue::default();
                }
            }
        }
    }

    /// The parts, once the whole body was read.
    ///
    /// # Errors
    /// [`FormError`], the first that there was.
    pub fn finish(self) -> Result<Form, FormError> {
        match self.state {
            FormState::End => Ok(self.form),
            FormState::Failed(error) => Err(error),
            FormState::Begin { .. } => Err(FormError::NoBoundary),
            _ => Err(FormError::CutShort),
        }
    }

    /// Bytes of memory that it holds, beside the file.
    pub fn held(&self) -> usize {
        let arriving = match &self.state {
            FormState::Headers(headers) => headers.capacity(),
            _ => 0,
        };
        // Vectors grow by doubling.
        self.parts * 2 * size_of::<(String, String)>() + 2 * self.field_bytes + arriving
    }

    /// Reads some of the bytes, at least one, and returns how many.
    fn step(
        &mut self,
        bytes: &[u8],
        to_come: Option<u64>,
        file: &mut ByteQueue,
    ) -> Result<usize, FormError> {
        match &mut self.state {
            FormState::Begin { matched, had_line } => {
                let first = bytes[0];
                if first == b'\r' && *matched == 2 && !*had_line {
                    (*matched, *had_line) = (1, true);
                } else if self.delimiter[*matched] == first {
                    *matched += 1;
                } else {
                    return Err(FormError::NoBoundary);
                }
                if *matched == self.delimiter.len() {
                    self.state = FormState::BoundaryLine(LineEnd::Start);
                }
                Ok(1)
            }
            FormState::BoundaryLine(line_end) => {
                self.state = match (*line_end, bytes[0]) {
                    (LineEnd::Start, b'-') => FormState::BoundaryLine(LineEnd::Hyphen),
                    (LineEnd::Hyphen, b'-') => FormState::End,
                    (LineEnd::Start | LineEnd::Padding, b' ' | b'\t') => {
                        FormState::BoundaryLine(LineEnd::Padding)
                    }
                    (LineEnd::Start | LineEnd::Padding, b'\r') => {
                        FormState::BoundaryLine(LineEnd::Return)
                    }
                    (LineEnd::Return, b'\n') => self.begin_part()?,
                    _ => return Err(FormError::BoundaryLine),
                };
                Ok(1)
            }
            FormState::Headers(headers) => {
                let line = memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
                headers.extend_from_slice(&bytes[..line]);
                if headers.len() > MAX_PART_HEADERS {
                    return Err(FormError::HeadersTooLarge);
                }
                if headers.ends_with(b"\n") && !headers.ends_with(b"\r\n") {
                    let what = "a line ends with LF alone; allowed is CR LF";
                    return Err(FormError::Header(what.to_owned()));
                }
                if headers == b"\r\n" || headers.ends_with(b"\r\n\r\n") {
                    let headers = std::mem::take(headers);
                    self.begin_bytes(&headers)?;
                }
                Ok(line)
            }
            FormState::Bytes { .. } => self.read_bytes(bytes, to_come, file),
            FormState::End => match bytes.iter().find(|byte| !b" \t\r\n".contains(byte)) {
                Some(_) => Err(FormError::AfterEnd),
                None => Ok(bytes.len()),
            },
            FormState::Failed(_) => Ok(bytes.len()),
        }
    }

    fn begin_part(&mut self) -> Result<FormState, FormError> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(FormError::TooManyParts);
        }
        Ok(FormState::Headers(Vec::new()))
    }

    fn begin_bytes(&mut self, headers: &[u8]) -> Result<(), FormError> {
        let Part { name, kind } = Part::parse(headers)?;
        let part = match (kind, &self.form.file) {
            (PartKind::File { .. }, Some(first)) => {
                return Err(FormError::TwoFiles(first.name.clone(), name));
            }
            (PartKind::File { media_type }, None) => {
                self.form.file = Some(FormFile { name, media_type });
                OpenPart::File
            }
            (PartKind::Field, _) => {
                self.count_field_bytes(name.len(), &name)?;
                let value = Vec::new();
                OpenPart::Field { name, value }
            }
        };
        self.state = FormState::Bytes { part, matched: 0 };
        Ok(())
    }

    /// Reads bytes of a part, up to its end.
    fn read_bytes(
        &mut self,
        bytes: &[u8],
        to_come: Option<u64>,
        file: &mut ByteQueue,
    ) -> Result<usize, FormError> {
        let FormState::Bytes { matched, .. } = &mut self.state else {
            return Ok(0);
        };
        if *matched > 0 {
            let rest = &self.delimiter[*matched..];
            let same = rest.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            if same == rest.len() {
                self.end_part()?;
                return Ok(same);
            }
            *matched += same;
            if same == bytes.len() {
                return Ok(same);
            }
            // None of the bytes held back begins a delimiter but their first, which does not.
            let held_back = self.delimiter[..std::mem::take(matched)].to_vec();
            self.keep(&held_back, to_come, file)?;
            return Ok(same);
        }
        let end = memmem::find(bytes, &self.delimiter);
        if let Some(end) = end {
            self.keep(&bytes[..end], to_come, file)?;
            self.end_part()?;
            return Ok(end + self.delimiter.len());
        }
        let last = bytes.len().saturating_sub(self.delimiter.len() - 1);
        let begun = memrchr(b'\r', &bytes[last..]).map(|at| last + at);
        let begun = begun.filter(|at| self.delimiter.starts_with(&bytes[*at..]));
        let begun = begun.unwrap_or(bytes.len());
        *matched = bytes.len() - begun;
        self.keep(&bytes[..begun], to_come, file)?;
        Ok(bytes.len())
    }

    /// Adds bytes to the part that arrives.
    fn keep(
        &mut self,
        bytes: &[u8],
        to_come: Option<u64>,
        file: &mut ByteQueue,
    ) -> Result<(), FormError> {
        let FormState::Bytes { part, .. } = &mut self.state else {
            return Ok(());
        };
        match part {
            OpenPart::File => file.push(bytes, to_come),
            OpenPart::Field { name, value } => {
                if self.field_bytes + bytes.len() > MAX_FIELDS {
                    return Err(FormError::FieldsTooLarge(name.clone()));
                }
                self.field_bytes += bytes.len();
                value.extend_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn end_part(&mut self) -> Result<(), FormError> {
        let line = FormState::BoundaryLine(LineEnd::Start);
        if let FormState::Bytes {
            part: OpenPart::Field { name, value },
            ..
        } = std::mem::replace(&mut self.state, line)
        {
            let value = String::from_utf8(value).map_err(|_| FormError::NotUtf8(name.clone()))?;
            // RFC 7578, section 4.6.
            if name == "_charset_" && !value.eq_ignore_ascii_case("utf-8") {
                return Err(FormError::Charset(value));
            }
            // Browsers send the fields that nobody has filled in, too.
            if !value.is_empty() {
                self.form.fields.push(name, value);
            }
        }
        Ok(())
    }

    fn count_field_bytes(&mut self, count: usize, name: &str) -> Result<(), FormError> {
        self.field_bytes += count;
        if self.field_bytes > MAX_FIELDS {
            return Err(FormError::FieldsTooLarge(name.to_owned()));
        }
        Ok(())
    }
}
