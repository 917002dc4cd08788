//! Forms with a file and fields. Whatever comes in, reading it does not panic, and portions make no
//! difference; what was read and is written anew is read as the same.

#![cfg_attr(fuzzing, no_main)]

use libfuzzer_sys::fuzz_target;
use towebp::front::ByteQueue;
use towebp::http::FormReader;

/// Short, so that the fuzzer finds it.
const CONTENT_TYPE: &str = "multipart/form-data; boundary=b";

/// Names and values of fields, the file's media type, and its bytes; or what is wrong.
type Outcome = Result<(Vec<(String, String)>, Option<String>, Vec<u8>), String>;

fuzz_target!(|input: (u8, &[u8])| {
    let (portion, bytes) = input;
    let whole = read(bytes, usize::MAX);
    assert_eq!(whole, read(bytes, usize::from(portion) + 1));
    let Ok((fields, media_type, file)) = whole else {
        return;
    };
    assert!(file.len() <= bytes.len());
    assert!(!file.windows(5).any(|window| window == b"\r\n--b"));
    let size: usize = fields
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    assert!(size <= 16 << 10 && fields.len() <= 64);
    let mut again = Vec::new();
    for (name, value) in &fields {
        let name = name.replace('\\', "\\\\").replace('"', "\\\"");
        let head = format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        again.extend_from_slice(head.as_bytes());
        again.extend_from_slice(value.as_bytes());
        again.extend_from_slice(b"\r\n");
    }
    if let Some(media_type) = &media_type {
        let head = format!(
            "--b\r\nContent-Disposition: form-data; name=file\r\nContent-Type: {media_type}\r\n\r\n"
        );
        again.extend_from_slice(head.as_bytes());
        again.extend_from_slice(&file);
        again.extend_from_slice(b"\r\n");
    }
    if again.is_empty() {
        return;
    }
    again.extend_from_slice(b"--b--");
    assert_eq!(read(&again, usize::MAX), Ok((fields, media_type, file)));
});

fn read(bytes: &[u8], portion: usize) -> Outcome {
    let reader = FormReader::of_content_type(CONTENT_TYPE).expect("a good boundary");
    let mut reader = reader.expect("a form");
    let mut file = ByteQueue::default();
    for portion in bytes.chunks(portion) {
        reader.read(portion, None, &mut file);
    }
    let form = reader.finish().map_err(|error| error.to_string())?;
    let media_type = form.file.map(|file| file.media_type);
    Ok((form.fields.into_inner(), media_type, file.into_vec()))
}
