//! The encoders that are compared.

use std::fmt;
use std::str::FromStr;

use towebp_encoder::{self as webp, ColorType, Constants, Effort, Encoder};

use crate::libwebp::{self, Settings};
use crate::picture::Picture;

/// One encoder with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Ours.
    Towebp(Effort),
    /// Theirs.
    Libwebp(Settings),
}

/// What everything is compared with: the default of `cwebp`.
pub const REFERENCE: Peer = Peer::Libwebp(Settings {
    method: 4,
    sharpness: 0,
});

impl Peer {
    /// RGB in, WebP file out, one thread.
    ///
    /// # Errors
    /// The encoder's own words.
    pub fn encode(self, picture: &Picture, quality: u8) -> Result<Vec<u8>, String> {
        match self {
            Self::Libwebp(settings) => libwebp::encode(picture, quality, settings),
            Self::Towebp(effort) => encode(picture, quality, effort, effort.constants()),
        }
    }
}

/// The same by our encoder with other constants.
///
/// # Errors
/// The encoder's own words.
pub fn encode(
    picture: &Picture,
    quality: u8,
    effort: Effort,
    constants: &Constants,
) -> Result<Vec<u8>, String> {
    let (width, height) = (picture.width, picture.height);
    let encoder = Encoder::lossy(quality).effort(effort).constants(constants);
    webp::Picture::new(width, height, ColorType::Rgb8, &picture.pixels)
        .and_then(|input| encoder.encode(&input))
        .map(|encoded| encoded.file)
        .map_err(|error| format!("towebp: {error:?}"))
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Towebp(Effort::Low) => "towebp-low".to_owned(),
            Self::Towebp(Effort::Medium) => "towebp".to_owned(),
            Self::Towebp(Effort::High) => "towebp-high".to_owned(),
            Self::Towebp(Effort::Max) => "towebp-max".to_owned(),
            Self::Libwebp(Settings {
                method,
                sharpness: 0,
            }) => format!("m{method}"),
            Self::Libwebp(Settings { method, sharpness }) => format!("m{method}s{sharpness}"),
        };
        f.pad(&name)
    }
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "towebp-low" => return Ok(Self::Towebp(Effort::Low)),
            "towebp" => return Ok(Self::Towebp(Effort::Medium)),
            "towebp-high" => return Ok(Self::Towebp(Effort::High)),
            "towebp-max" => return Ok(Self::Towebp(Effort::Max)),
            _ => {}
        }
        let digit = |text: &str, max: u8| {
            text.parse::<u8>()
                .ok()
                .filter(|n| *n <= max && text.len() == 1)
        };
        let settings = name.strip_prefix('m').and_then(|rest| {
            let (method, sharpness) = rest.split_once('s').unwrap_or((rest, "0"));
            Some(Settings {
                method: digit(method, 6)?,
                sharpness: digit(sharpness, 7)?,
            })
        });
        settings.map(Self::Libwebp).ok_or_else(|| {
            format!("no peer is called {name:?}: towebp-low, towebp, towebp-high, towebp-max, m0 to m6 (libwebp's methods), or m0s1 to m6s7 (with -sharpness)")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_they_are_written() {
        for name in [
            "towebp-low",
            "towebp",
            "towebp-high",
            "towebp-max",
            "m0",
            "m4",
            "m6s7",
        ] {
            assert_eq!(
                name.parse::<Peer>().map(|peer| peer.to_string()).as_deref(),
                Ok(name)
            );
        }
        for wrong in ["", "m", "m7", "m4s8", "m4s", "m+4", "webp", "towebp-medium"] {
            assert!(wrong.parse::<Peer>().is_err(), "{wrong:?} is no peer");
        }
    }
}
