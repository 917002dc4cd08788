//! The headers of a part (RFC 7578, section 4), and parameters of headers (RFC 9110, section
//! 5.6.6).

use super::error::FormError;

/// The contents of a part's headers.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// The name of the field or of the file's part.
    pub name: String,
    /// The kind of its bytes.
    pub kind: PartKind,
}

/// The kind of a part's bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum PartKind {
    /// The file: a part that has a `filename`, or is named `file`.
    File {
        /// Its `Content-Type`, without parameters; empty if there is none.
        media_type: String,
    },
    /// The value of a field.
    Field,
}

impl Part {
    /// Reads the headers of a part, with the empty line after them. Headers that have no meaning
    /// in a form are passed over (RFC 7578, section 4.8).
    ///
    /// # Errors
    /// [`FormError`], if they cannot be read or are not allowed.
    pub fn parse(headers: &[u8]) -> Result<Part, FormError> {
        let (mut disposition, mut content_type) = (None, None);
        let lines = headers.split(|&byte| byte == b'\n');
        for line in lines.filter(|line| !matches!(line, [] | [b'\r'])) {
            let (name, value) = header(line)?;
            let known = match &*name.to_ascii_lowercase() {
                "content-disposition" => &mut disposition,
                "content-type" => &mut content_type,
                "content-transfer-encoding" => {
                    check_encoding(value)?;
                    continue;
                }
                _ => continue,
            };
            if known.replace(value).is_some() {
                return Err(FormError::Header(format!("{name} is there twice")));
            }
        }
        let disposition = disposition.ok_or(FormError::NoName)?;
        let (name, has_filename) = name(disposition)?;
        let content_type = content_type.unwrap_or_default();
        let (media_type, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
        let media_type = media_type.trim();
        if is_multipart(media_type) {
            return Err(FormError::Nested(name));
        }
        if has_filename || name == "file" {
            let media_type = media_type.to_owned();
            let kind = PartKind::File { media_type };
            return Ok(Part { name, kind });
        }
        if name == "token" {
            return Err(FormError::Token);
        }
        if !media_type.is_empty() && !media_type.eq_ignore_ascii_case("text/plain") {
            return Err(FormError::FieldType(name, media_type.to_owned()));
        }
        check_charset(parameters)?;
        let kind = PartKind::Field;
        Ok(Part { name, kind })
    }
}

/// The name of a part by its `Content-Disposition`, and whether there is a `filename`.
fn name(disposition: &str) -> Result<(String, bool), FormError> {
    let (kind, parameters) = disposition.split_once(';').unwrap_or((disposition, ""));
    if !kind.trim().eq_ignore_ascii_case("form-data") {
        return Err(FormError::NoName);
    }
    let malformed = || FormError::Header("Content-Disposition cannot be read".to_owned());
    let parameters = Parameters::parse(parameters).map_err(|()| malformed())?;
    let mut names = parameters.values("name");
    let name = names.next().ok_or(FormError::NoName)?.to_owned();
    let mut file_names = parameters.values("filename");
    let has_filename = file_names.next().is_some();
    if names.next().is_some() || file_names.next().is_some() {
        return Err(malformed());
    }
    let has_filename = has_filename || parameters.values("filename*").next().is_some();
    Ok((name, has_filename))
}

/// The name and the value of one header line, with its CR.
fn header(line: &[u8]) -> Result<(&str, &str), FormError> {
    let fault = |what: &str| FormError::Header(what.to_owned());
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = std::str::from_utf8(line).map_err(|_| fault("a line is not UTF-8"))?;
    if line.chars().any(|c| c.is_control() && c != '\t') {
        return Err(fault("a line has a control character"));
    }
    if line.starts_with([' ', '\t']) {
        return Err(fault("a line begins with white space"));
    }
    let (name, value) = line
        .split_once(':')
        .ok_or_else(|| fault("a line has no colon"))?;
    if name.is_empty() || !name.chars().all(is_of_token) {
        return Err(fault("a line does not begin with the name of a header"));
    }
    Ok((name, value.trim_matches([' ', '\t'])))
}

fn check_encoding(encoding: &str) -> Result<(), FormError> {
    let allowed = ["7bit", "8bit", "binary"];
    if allowed.iter().any(|it| it.eq_ignore_ascii_case(encoding)) {
        Ok(())
    } else {
        Err(FormError::Encoding(encoding.to_owned()))
    }
}

fn check_charset(parameters: &str) -> Result<(), FormError> {
    let parameters = Parameters::parse(parameters)
        .map_err(|()| FormError::Header("Content-Type cannot be read".to_owned()))?;
    let is_utf_8 = |charset: &&str| {
        ["utf-8", "us-ascii"]
            .iter()
            .any(|it| it.eq_ignore_ascii_case(charset))
    };
    match parameters.values("charset").find(|it| !is_utf_8(it)) {
        Some(other) => Err(FormError::Charset(other.to_owned())),
        None => Ok(()),
    }
}

fn is_multipart(media_type: &str) -> bool {
    let prefix = media_type.get(..10);
    prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case("multipart/"))
}

/// A character of a token (RFC 9110, section 5.6.2).
fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// The parameters of a header: `name=value` or `name="value"`, divided by semicolons.
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads the parameters after the first semicolon. Within quotes, a backslash takes away the
    /// meaning of a quote or a backslash after it, and of nothing else: browsers write file names
    /// of Windows with plain ones.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn parse(mut text: &str) -> Result<Parameters, ()> {
        let mut pairs = Vec::new();
        loop {
            text = text.trim_start_matches([' ', '\t', ';']);
            if text.is_empty() {
                return Ok(Parameters(pairs));
            }
            let (name, rest) = text.split_once('=').ok_or(())?;
            if name.is_empty() || !name.chars().all(is_of_token) {
                return Err(());
            }
            let (value, rest) = if let Some(quoted) = rest.strip_prefix('"') {
                unquote(quoted).ok_or(())?
            } else {
                let end = rest.find([';', ' ', '\t']).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            };
            text = rest.trim_start_matches([' ', '\t']);
            if !text.is_empty() && !text.starts_with(';') {
                return Err(());
            }
            pairs.push((name.to_ascii_lowercase(), value));
        }
    }

    /// The values of this lower-case name.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The text up to the closing quote, and the rest; `None` if there is no such quote.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(
                characters
                    .next_if(|(_, next)| matches!(next, '"' | '\\'))
                    .map_or('\\', |(_, next)| next),
            ),
            _ => value.push(c),
        }
    }
    None
}
