//! Who makes WebP files of GIFs: the whole job, from the bytes of the one to the bytes of the
//! other.

use std::fmt;
use std::str::FromStr;

use towebp_pipeline::conversion::{self, Cancel, Fonts, Job, Params};
use towebp_pipeline::image::{Format, Limits};

use super::libwebp::{Encoder, Way};
use super::playback;

/// A program in one of its ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// libwebp's encoder as `gif2webp` sets it, of canvases that the crate image draws.
    Gif2webp(Way),
    /// Ours, which chooses for each frame.
    Towebp,
    /// Ours with `mode=lossless`.
    TowebpLossless,
}

/// In the order of the table.
pub const PEERS: [Peer; 5] = [
    Peer::Gif2webp(Way::Lossless),
    Peer::Gif2webp(Way::Mixed),
    Peer::Gif2webp(Way::Lossy),
    Peer::Towebp,
    Peer::TowebpLossless,
];

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Peer::Gif2webp(Way::Lossless) => "gif2webp",
            Peer::Gif2webp(Way::Mixed) => "gif2webp-mixed",
            Peer::Gif2webp(Way::Lossy) => "gif2webp-lossy",
            Peer::Towebp => "towebp",
            Peer::TowebpLossless => "towebp-lossless",
        })
    }
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(name: &str) -> Result<Peer, String> {
        let mut peers = PEERS.into_iter();
        peers
            .find(|peer| peer.to_string() == name)
            .ok_or_else(|| format!("{name:?} makes no animations"))
    }
}

impl Peer {
    /// A WebP of a GIF, on one thread.
    ///
    /// # Errors
    /// Why not.
    pub fn convert(self, gif: &[u8], quality: u8) -> Result<Vec<u8>, String> {
        match self {
            Peer::Gif2webp(way) => by_libwebp(gif, way, quality),
            Peer::Towebp => by_towebp(gif, "auto", quality),
            Peer::TowebpLossless => by_towebp(gif, "lossless", quality),
        }
    }
}

fn by_libwebp(gif: &[u8], way: Way, quality: u8) -> Result<Vec<u8>, String> {
    let mut encoder: Option<Encoder> = None;
    playback::play_gif(gif, |canvas, milliseconds| {
        let encoder = match &mut encoder {
            Some(encoder) => encoder,
            none => none.insert(Encoder::new(
                way,
                canvas.dimensions(),
                playback::loops(gif),
                quality,
            )?),
        };
        encoder.add(canvas.as_raw(), milliseconds)
    })?;
    encoder.ok_or("the GIF has no frame")?.finish()
}

fn by_towebp(gif: &[u8], mode: &str, quality: u8) -> Result<Vec<u8>, String> {
    let quality = quality.to_string();
    let params = Params::parse([("quality", quality.as_str()), ("mode", mode)].into_iter());
    let job = Job {
        bytes: gif,
        format: Format::Gif,
        params: &params.map_err(|error| error.to_string())?,
        watermark_picture: None,
        fonts: Fonts::bundled(),
        limits: &Limits::default(),
        threads: 1,
        cpu_budget: None,
        cancel: &Cancel::never(),
    };
    let converted = conversion::run(&job).map_err(|error| error.to_string())?;
    Ok(converted.webp)
}
