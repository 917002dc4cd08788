//! Peak memory of one encode beyond its input: resident pages, measured in a child process that
//! does nothing else.

use std::fs;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::str::FromStr;

use crate::peer::Peer;
use crate::picture::Picture;
use crate::{animation, output};

/// The first argument that makes this program the child.
pub const CHILD: &str = "__memory";

/// The argument behind it that makes it convert a GIF.
pub const ANIMATION: &str = "animation";

/// Bytes by which a process grows at most that encodes `picture`, output included. `None` where
/// Linux does not tell (no `/proc/self/clear_refs`).
///
/// # Errors
/// When the child cannot be started or fails.
pub fn peak(peer: Peer, picture: &Picture, quality: u8) -> Result<Option<u64>, String> {
    let numbers = [u32::from(quality), picture.width, picture.height].map(|n| n.to_string());
    let [quality, width, height] = &numbers;
    ask(
        &[&peer.to_string(), quality, width, height],
        &picture.pixels,
    )
}

/// The same of a child with other arguments ([`child`]) and `input`.
///
/// # Errors
/// When the child cannot be started or fails.
pub fn ask(arguments: &[&str], input: &[u8]) -> Result<Option<u64>, String> {
    let text = |error: io::Error| format!("memory of {arguments:?}: {error}");
    let mut child = Command::new(std::env::current_exe().map_err(text)?)
        .arg(CHILD)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(text)?;
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input).map_err(text)?;
    drop(stdin);
    let output = child.wait_with_output().map_err(text)?;
    if !output.status.success() {
        let status = output.status;
        return Err(format!(
            "memory of {arguments:?}: the child ended with {status}"
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
}

/// The child: arguments as [`peak`] gives them and raw RGB on standard input, or [`ANIMATION`], a
/// peer and a quality and a GIF; the answer on standard output.
///
/// # Errors
/// When an argument is missing or the encoder fails.
pub fn child(arguments: &[String]) -> Result<(), String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [ANIMATION, peer, quality] => animation(peer, number(quality)?),
        [peer, quality, width, height] => still(
            peer.parse()?,
            number(quality)?,
            (number(width)?, number(height)?),
        ),
        _ => Err("four arguments expected".to_owned()),
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no number that fits"))
}

fn still(peer: Peer, quality: u8, (width, height): (u32, u32)) -> Result<(), String> {
    // Code pages and tables belong to the program, not to the picture.
    let small = Picture {
        width: 32,
        height: 32,
        pixels: (0..32 * 32 * 3).map(|i| (i * 37 % 251) as u8).collect(),
    };
    peer.encode(&small, quality)?;
    let mut picture = Picture {
        width,
        height,
        pixels: vec![0; 3 * width as usize * height as usize],
    };
    io::stdin()
        .read_exact(&mut picture.pixels)
        .map_err(|error| error.to_string())?;
    tell(|| peer.encode(&picture, quality))
}

fn animation(peer: &str, quality: u8) -> Result<(), String> {
    /// Two pixels after one another, which bring the code in.
    const SMALL: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0,\0\0\0\0\x01\0\x01\0\0\x02\x02L\x01\0;";
    animation::convert(peer, SMALL, quality)?;
    let mut gif = Vec::new();
    io::stdin()
        .read_to_end(&mut gif)
        .map_err(|error| error.to_string())?;
    tell(|| animation::convert(peer, &gif, quality))
}

/// Prints by how much memory grows at most while `encode` works.
fn tell(encode: impl FnOnce() -> Result<Vec<u8>, String>) -> Result<(), String> {
    let reset = fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = status_bytes("VmRSS:");
    let file = encode()?;
    let after = status_bytes("VmHWM:");
    std::hint::black_box(file);
    match (reset, before, after) {
        (true, Some(before), Some(after)) => {
            output::print(&after.saturating_sub(before).to_string())
        }
        _ => output::print("unknown"),
    }
}

/// A line of `/proc/self/status` such as `VmRSS:  2048 kB`.
fn status_bytes(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}
