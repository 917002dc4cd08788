//! `towebp serve --demo`: makes an account, and converts one picture over HTTP.

use super::output::Output;
use crate::process::interrupt::Outputs;
use crate::store::{Account, Store, StoreError, saved_percent};
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// The e-mail address of the demo account; example.org belongs to nobody (RFC 2606).
const EMAIL: &str = "demo@example.org";

/// NASA's portrait of Eileen Collins: public domain.
const PICTURE: &[u8] = include_bytes!("../../testdata/astronaut.jpg");

/// Makes or reuses the demo account, converts the picture over HTTP at `address`, writes both
/// pictures into the folder `data`, and prints the result and how to go on.
///
/// # Errors
/// A sentence for the operator.
pub fn run(store: &Store, address: SocketAddr, data: &Path) -> Result<(), String> {
    let (account, password) = account(store)?;
    let token = store.token(account.id).map_err(|error| error.to_string())?;

    let started = Instant::now();
    let webp = convert(address, &token)?;
    let spent = started.elapsed();
    // An absolute path, so that the curl line works from every folder.
    let data = data
        .canonicalize()
        .map_err(|error| format!("{}: {error}", data.display()))?;
    let (before, after) = (data.join("demo.jpg"), data.join("demo.webp"));
    for (file, bytes) in [(&before, PICTURE), (&after, &webp[..])] {
        Output::find(file)
            .and_then(|output| output.write(bytes, 0o666, true, &Outputs::default()))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }

    let text = format!(
        "\nDemo: {} ({} bytes) became\n      {} ({} bytes), {} % smaller, in {} ms.\n\n\
         Convert it yourself:\n  curl -fsS 'http://{address}/convert?token={token}' -H 'Content-Type: image/jpeg' \
         --data-binary @{} -o demo.webp\n\n\
         Dashboard: http://{address}/signin\n  E-mail:   {EMAIL}\n  Password: {}\n",
        before.display(),
        PICTURE.len(),
        after.display(),
        webp.len(),
        saved_percent(PICTURE.len() as u64, webp.len() as u64).expect("the picture has bytes"),
        spent.as_millis(),
        shell_quoted(&before.to_string_lossy()),
        password.as_deref().unwrap_or(
            "as printed when the account was made (towebp account password demo@example.org, with --data, sets another)"
        ),
    );
    io::stdout().write_all(text.as_bytes()).ok();
    Ok(())
}

/// The demo account, and its password if the account was made just now.
fn account(store: &Store) -> Result<(Account, Option<String>), String> {
    let failed = |error: StoreError| format!("--demo: the store failed: {error}");
    if let Some(account) = store.account_by_email(EMAIL).map_err(failed)? {
        return Ok((account, None));
    }
    let password = random_password()?;
    let account = store
        .create_account(EMAIL, Some(&password))
        .map_err(|error| format!("--demo: the account was not made: {error:?}"))?;
    Ok((account, Some(password)))
}

/// 80 random bits, as hexadecimal digits.
fn random_password() -> Result<String, String> {
    let mut bytes = [0; 10];
    getrandom::fill(&mut bytes).map_err(|error| format!("--demo: no random numbers: {error}"))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    }))
}

/// POSTs the picture as any client would, and returns the body of the response.
fn convert(address: SocketAddr, token: &str) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("--demo: the request failed: {error}");
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    // The picture is small: a longer wait means that something hangs.
    stream
        .set_read_timeout(Some(Duration::from_mins(1)))
        .map_err(failed)?;
    write!(
        stream,
        "POST /convert HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: image/jpeg\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        PICTURE.len()
    )
    .and_then(|()| stream.write_all(PICTURE))
    .map_err(failed)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(failed)?;
    let head_end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .ok_or("--demo: the answer has no end of its head")?;
    let body = answer.split_off(head_end + 4);
    if !answer.starts_with(b"HTTP/1.1 200 ") {
        return Err(format!(
            "--demo: the picture was not converted: {}",
            String::from_utf8_lossy(&body)
        ));
    }
    Ok(body)
}

/// The text as one word of a POSIX shell.
fn shell_quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_one_word() {
        assert_eq!(shell_quoted("/tmp/demo.jpg"), "/tmp/demo.jpg");
        assert_eq!(shell_quoted("/my data/it's.jpg"), r"'/my data/it'\''s.jpg'");
    }
}
