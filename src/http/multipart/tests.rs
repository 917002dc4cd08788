//! Forms in portions of any size, and each limit from both sides.

use super::*;
use towebp_encoder::testing::Random;

const BOUNDARY: &str = "----x7MA4YWxkTrZu0gW";

/// A part with these headers, which end with CR LF, and these bytes.
fn part(headers: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!("--{BOUNDARY}\r\n{headers}\r\n");
    [head.as_bytes(), bytes, b"\r\n"].concat()
}

fn field(name: &str, value: &str) -> Vec<u8> {
    let disposition = format!("Content-Disposition: form-data; name=\"{name}\"\r\n");
    part(&disposition, value.as_bytes())
}

fn file(bytes: &[u8]) -> Vec<u8> {
    part(
        "Content-Disposition: form-data; name=\"picture\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n",
        bytes,
    )
}

fn end() -> Vec<u8> {
    format!("--{BOUNDARY}--\r\n").into_bytes()
}

/// Fields, the file's media type, and its bytes.
type Outcome = Result<(Vec<(String, String)>, Option<String>, Vec<u8>), FormError>;

/// Reads a body in portions of this many bytes.
fn read_by(body: &[u8], portion: usize) -> Outcome {
    let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let reader = FormReader::of_content_type(&content_type).expect("a good boundary");
    let mut reader = reader.expect("a form");
    let mut bytes = ByteQueue::default();
    let mut left = body.len() as u64;
    for portion in body.chunks(portion) {
        left -= portion.len() as u64;
        reader.read(portion, Some(left), &mut bytes);
    }
    let form = reader.finish()?;
    let media_type = form.file.map(|file| file.media_type);
    Ok((form.fields.into_inner(), media_type, bytes.into_vec()))
}

/// Reads a body at once, and holds the other ways to that.
#[track_caller]
fn read(body: &[u8]) -> Outcome {
    let whole = read_by(body, usize::MAX);
    for portion in [1, 2, 3, 7, 24, 25, 1000] {
        assert!(read_by(body, portion) == whole, "by {portion}");
    }
    whole
}

#[track_caller]
fn assert_error(parts: &[Vec<u8>], expected: &FormError) {
    let outcome = read(&parts.concat());
    assert_eq!(outcome.as_ref().err(), Some(expected));
    // What the client is told ends as a sentence, and on one line.
    let text = expected.to_string();
    assert!(text.ends_with('.') && !text.contains('\n'), "{text}");
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

#[test]
fn fields_and_the_file_are_found_in_any_order() {
    let (quality, mark) = (field("quality", "80"), field("watermark", "© a\r\nb"));
    let picture = file(b"\x89PNG\r\n\x1a\n");
    let fields = pairs(&[("quality", "80"), ("watermark", "© a\r\nb")]);
    let expected = (
        fields,
        Some("image/png".to_owned()),
        b"\x89PNG\r\n\x1a\n".to_vec(),
    );
    for order in [[&quality, &mark, &picture], [&quality, &picture, &mark]] {
        let body = [&order.map(Vec::as_slice).concat()[..], &end()].concat();
        assert_eq!(read(&body), Ok(expected.clone()));
        let with_line = [b"\r\n", &body[..]].concat();
        assert_eq!(read(&with_line), Ok(expected.clone()));
        // The line end after the last boundary is the sender's choice.
        assert_eq!(read(&body[..body.len() - 2]), Ok(expected.clone()));
    }
    let padded = String::from_utf8(field("a", "1")).expect("text");
    let padded = padded.replace("gW\r", "gW \t\r").into_bytes();
    let outcome = read(&[padded, end()].concat()).expect("a form");
    assert_eq!(outcome.0, pairs(&[("a", "1")]));
}

#[test]
fn bytes_like_a_boundary_are_bytes() {
    let delimiter = format!("\r\n--{BOUNDARY}");
    for length in 0..delimiter.len() {
        let like = &delimiter.as_bytes()[..length];
        for bytes in [
            like.to_vec(),
            [like, like].concat(),
            [b"\r", like, b"\r\n\r\n-", like, b"x"].concat(),
            [like, b"-", like, b"\r\n"].concat(),
        ] {
            let body = [file(&bytes), end()].concat();
            assert_eq!(read(&body).expect("a form").2, bytes, "{length}");
        }
    }
    // Without the line end before it, it is none.
    let bytes = format!("--{BOUNDARY}--\r\n\n--{BOUNDARY}\r--{BOUNDARY}").into_bytes();
    assert_eq!(
        read(&[file(&bytes), end()].concat()).expect("a form").2,
        bytes
    );
    assert_error(
        &[file(format!("a{delimiter}x").as_bytes()), end()],
        &FormError::BoundaryLine,
    );
}

#[test]
fn random_files_come_through_in_random_portions() {
    let mut random = Random::new(23);
    let delimiter = format!("\r\n--{BOUNDARY}");
    for _ in 0..300 {
        let mut bytes = Vec::new();
        for _ in 0..random.below(20) {
            match random.below(3) {
                0 => bytes.extend_from_slice(&delimiter.as_bytes()[..random.index(24)]),
                1 => bytes.push(b'\r'),
                _ => bytes.extend((0..random.below(40)).map(|_| random.below(256) as u8)),
            }
        }
        let body = [field("a", "b"), file(&bytes), end()].concat();
        let expected = (
            pairs(&[("a", "b")]),
            Some("image/png".to_owned()),
            bytes.clone(),
        );
        assert_eq!(read_by(&body, 1 + random.index(60)), Ok(expected));
    }
}

#[test]
fn a_file_is_what_has_a_file_name_or_is_named_so() {
    let kind = |headers: &str| {
        Part::parse(format!("{headers}\r\n\r\n").as_bytes()).map(|part| (part.name, part.kind))
    };
    let is_file = |media_type: &str| PartKind::File {
        media_type: media_type.to_owned(),
    };
    for (headers, name, expected) in [
        (
            "Content-Disposition: form-data; name=a",
            "a",
            PartKind::Field,
        ),
        (
            "content-disposition:form-data;name=\"a\";filename=\"\"\r\nContent-Type: application/octet-stream",
            "a",
            is_file("application/octet-stream"),
        ),
        (
            "Content-Disposition: form-data; name=\"file\"",
            "file",
            is_file(""),
        ),
        (
            "Content-Type: image/gif; x=y\r\nX-Other: 1\r\nContent-Disposition: Form-Data; filename*=UTF-8''a; NAME=b",
            "b",
            is_file("image/gif"),
        ),
        (
            "Content-Disposition: form-data; name=\"a\\\"; b\"; filename=\"C:\\d\\e.png\"",
            "a\"; b",
            is_file(""),
        ),
        (
            "Content-Disposition: form-data; name=q\r\nContent-Type: Text/Plain; charset=\"UTF-8\"\r\nContent-Transfer-Encoding: 8BIT",
            "q",
            PartKind::Field,
        ),
    ] {
        assert_eq!(kind(headers), Ok((name.to_owned(), expected)), "{headers}");
    }
}

#[test]
fn headers_that_are_not_allowed_are_told() {
    let header = |what: &str| FormError::Header(what.to_owned());
    let unreadable = || header("Content-Disposition cannot be read");
    let name = "Content-Disposition: form-data; name=a\r\n";
    for (headers, expected) in [
        ("", FormError::NoName),
        ("Content-Type: text/plain\r\n", FormError::NoName),
        (
            "Content-Disposition: attachment; name=a\r\n",
            FormError::NoName,
        ),
        (
            "Content-Disposition: form-data; filename=a\r\n",
            FormError::NoName,
        ),
        ("Content-Disposition: form-data; name=\"a\r\n", unreadable()),
        ("Content-Disposition: form-data; name=a b\r\n", unreadable()),
        ("Content-Disposition: form-data; name\r\n", unreadable()),
        (
            "Content-Disposition: form-data; name=a; name=a\r\n",
            unreadable(),
        ),
        (
            "Content-Disposition: form-data; name=a; filename=b; filename=c\r\n",
            unreadable(),
        ),
        (
            &name.repeat(2),
            header("Content-Disposition is there twice"),
        ),
        (
            &format!("{name} filename=b\r\n"),
            header("a line begins with white space"),
        ),
        (
            &format!("{name}B c: d\r\n"),
            header("a line does not begin with the name of a header"),
        ),
        (&format!("{name}b\r\n"), header("a line has no colon")),
        (
            &format!("{name}B: \0\r\n"),
            header("a line has a control character"),
        ),
        (
            &name.replace('\r', ""),
            header("a line ends with LF alone; allowed is CR LF"),
        ),
        (
            &format!("{name}Content-Transfer-Encoding: base64\r\n"),
            FormError::Encoding("base64".to_owned()),
        ),
        (
            &format!("{name}Content-Type: Multipart/Mixed; boundary=b\r\n"),
            FormError::Nested("a".to_owned()),
        ),
        (
            &format!("{name}Content-Type: image/png\r\n"),
            FormError::FieldType("a".to_owned(), "image/png".to_owned()),
        ),
        (
            &format!("{name}Content-Type: text/plain; charset=iso-8859-1\r\n"),
            FormError::Charset("iso-8859-1".to_owned()),
        ),
        (
            "Content-Disposition: form-data; name=token\r\n",
            FormError::Token,
        ),
    ] {
        assert_error(&[part(headers, b"1"), end()], &expected);
    }
    let latin = b"Content-Disposition: form-data; name=\xe9\r\n\r\n";
    assert_eq!(Part::parse(latin), Err(header("a line is not UTF-8")));
}

#[test]
fn fields_are_utf_8() {
    let name = "Content-Disposition: form-data; name=a\r\n";
    assert_error(
        &[part(name, b"\xff"), end()],
        &FormError::NotUtf8("a".to_owned()),
    );
    assert!(read(&[field("_charset_", "UTF-8"), end()].concat()).is_ok());
    assert_error(
        &[field("_charset_", "windows-1252"), end()],
        &FormError::Charset("windows-1252".to_owned()),
    );
}

#[test]
fn one_file_and_no_more() {
    assert_eq!(
        read(&[field("a", ""), end()].concat()).expect("a form").1,
        None
    );
    let second = part("Content-Disposition: form-data; name=file\r\n", b"");
    let names = FormError::TwoFiles("picture".to_owned(), "file".to_owned());
    assert_error(&[file(b"1"), second, end()], &names);
}

#[test]
fn what_is_cut_short_or_goes_on_is_no_form() {
    let body = [field("a", "1"), file(b"bytes"), end()].concat();
    for length in 0..body.len() - 2 {
        let expected = if length < BOUNDARY.len() + 2 {
            FormError::NoBoundary
        } else {
            FormError::CutShort
        };
        assert_eq!(read_by(&body[..length], 1000), Err(expected), "{length}");
    }
    assert_error(&[body.clone(), b" \r\n\tx".to_vec()], &FormError::AfterEnd);
    assert_error(
        &[b"preamble\r\n".to_vec(), body.clone()],
        &FormError::NoBoundary,
    );
    assert_error(
        &[b"\r\n\r\n".to_vec(), body.clone()],
        &FormError::NoBoundary,
    );
    assert_error(&[b"--other\r\n".to_vec()], &FormError::NoBoundary);
    let lf: Vec<u8> = body.iter().copied().filter(|byte| *byte != b'\r').collect();
    assert_error(&[lf], &FormError::BoundaryLine);
}

#[test]
fn limits_hold_from_both_sides() {
    let parts = |count: usize| [field("a", "").repeat(count), end()].concat();
    assert!(read(&parts(MAX_PARTS)).is_ok());
    assert_eq!(read(&parts(MAX_PARTS + 1)), Err(FormError::TooManyParts));

    let headers = |length: usize| {
        let name = "Content-Disposition: form-data; name=a; filename=\"";
        let filler = "f".repeat(length - name.len() - 5);
        part(&format!("{name}{filler}\"\r\n"), b"")
    };
    assert!(read(&[headers(MAX_PART_HEADERS), end()].concat()).is_ok());
    assert_error(
        &[headers(MAX_PART_HEADERS + 1), end()],
        &FormError::HeadersTooLarge,
    );

    let value = "v".repeat(MAX_FIELDS - 4);
    let whole = [field("ab", "c"), field("d", &value)];
    assert!(read(&[&whole.concat()[..], &end()].concat()).is_ok());
    let too_much = [field("ab", "ce"), field("d", &value), end()];
    assert_error(&too_much, &FormError::FieldsTooLarge("d".to_owned()));
    let by_name = [field("ab", "c"), field("d", &value), field("e", ""), end()];
    assert_error(&by_name, &FormError::FieldsTooLarge("e".to_owned()));
}

#[test]
fn what_cannot_be_read_holds_nothing() {
    let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let reader = FormReader::of_content_type(&content_type).expect("a good boundary");
    let (mut reader, mut queue) = (reader.expect("a form"), ByteQueue::default());
    reader.read(&file(&vec![7; 100_000]), None, &mut queue);
    assert!(queue.held() >= 100_000);
    reader.read(&file(&vec![7; 100_000]), None, &mut queue);
    assert_eq!((queue.held(), queue.is_empty()), (0, true));
    reader.read(&vec![7; 100_000], None, &mut queue);
    assert_eq!(queue.held(), 0);
    assert!(reader.held() < 1000, "{}", reader.held());
}

#[test]
fn boundaries_are_1_to_70_characters() {
    let read = |content_type: &str| {
        FormReader::of_content_type(content_type)
            .map(|reader| reader.map(|reader| reader.delimiter))
    };
    let found = |boundary: &str| Ok(Some(format!("\r\n--{boundary}").into_bytes()));
    assert_eq!(read("image/png"), Ok(None));
    assert_eq!(read(""), Ok(None));
    assert_eq!(read("multipart/mixed; boundary=a"), Ok(None));
    let longest = "b".repeat(70);
    for (given, boundary) in [
        ("multipart/form-data; boundary=a", "a"),
        (
            "Multipart/Form-Data;charset=utf-8;BOUNDARY=\"a b:c\"",
            "a b:c",
        ),
        ("multipart/form-data; boundary=a=b/c'?(); x=y", "a=b/c'?()"),
        (
            &format!("multipart/form-data; boundary={longest}"),
            &longest,
        ),
    ] {
        assert_eq!(read(given), found(boundary), "{given}");
    }
    let missing = Err(FormError::BoundaryMissing);
    assert_eq!(read("multipart/form-data"), missing);
    assert_eq!(read("multipart/form-data; charset=utf-8"), missing);
    for boundary in [
        "\"\"",
        "\"a \"",
        "\"a\\\"b\"",
        "\"a",
        "a*b",
        "ä",
        "a; boundary=b",
        &"b".repeat(71),
    ] {
        let error = read(&format!("multipart/form-data; boundary={boundary}"));
        let error = error.expect_err(boundary);
        assert!(
            matches!(error, FormError::BoundaryInvalid(_)),
            "{boundary}: {error}"
        );
        assert!(error.to_string().contains("1 to 70"), "{error}");
    }
}
