//! Peak memory of one encode beyond its input: resident pages, measured in a child process that does nothing else.

use std::fs;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

use crate::output;
use crate::peer::Peer;
use crate::picture::Picture;

/// The first argument that makes this program the child.
pub const CHILD: &str = "__memory";

/// Bytes by which the process grew at most, output included. `None` where Linux does not tell (no
/// `/proc/self/clear_refs`).
///
/// # Errors
/// When the child cannot be started or fails.
pub fn peak(peer: Peer, picture: &Picture, quality: u8) -> Result<Option<u64>, String> {
    let text = |error: io::Error| format!("memory of {peer}: {error}");
    let mut child = Command::new(std::env::current_exe().map_err(text)?)
        .args([
            CHILD,
            &peer.to_string(),
            &quality.to_string(),
            &picture.width.to_string(),
            &picture.height.to_string(),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(text)?;
    child
        .stdin
        .take()
        .expect("it is piped")
        .write_all(&picture.pixels)
        .map_err(text)?;
    let output = child.wait_with_output().map_err(text)?;
    if !output.status.success() {
        return Err(format!(
            "memory of {peer}: the child ended with {}",
            output.status
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
}

/// The child: arguments as [`peak`] gives them, raw RGB on standard input, the answer on standard output.
///
/// # Errors
/// When an argument is missing or the encoder fails.
pub fn child(arguments: &[String]) -> Result<(), String> {
    let [peer, quality, width, height] = arguments else {
        return Err("four arguments expected".to_owned());
    };
    let peer: Peer = peer.parse()?;
    let quality = quality.parse().map_err(|_| "quality")?;
    let width = width.parse().map_err(|_| "width")?;
    let height = height.parse().map_err(|_| "height")?;
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

    let reset = fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = status_bytes("VmRSS:");
    let file = peer.encode(&picture, quality)?;
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
