//! What a viewer is shown, told by decoders that are not ours: GIFs by the crate image, WebP files
//! by libwebp.

use std::collections::BTreeSet;
use std::io::Cursor;

use image::codecs::gif::GifDecoder;
use image::{AnimationDecoder, RgbaImage};

use super::libwebp;

/// All that is shown.
pub struct Playback {
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// How often it is played, 0 for ever.
    pub loops: u32,
    /// One for each time that the looks change.
    pub states: Vec<State>,
}

/// What is shown between two moments.
pub struct State {
    /// Red, green, blue and alpha; all 0 where nothing is seen.
    pub pixels: Vec<u8>,
    /// Milliseconds from the beginning to its end.
    pub until: u32,
}

impl Playback {
    /// As [`play_gif`] draws it.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn of_gif(bytes: &[u8]) -> Result<Playback, String> {
        let mut playback = Playback {
            width: 0,
            height: 0,
            loops: loops(bytes),
            states: Vec::new(),
        };
        let mut until = 0;
        play_gif(bytes, |canvas, milliseconds| {
            until += milliseconds;
            (playback.width, playback.height) = canvas.dimensions();
            playback.show(canvas.into_raw(), until);
            Ok(())
        })?;
        Ok(playback)
    }

    /// What libwebp's decoder of animations makes of a file.
    ///
    /// # Errors
    /// When it refuses the file.
    pub fn of_webp(bytes: &[u8]) -> Result<Playback, String> {
        let mut playback = Playback {
            width: 0,
            height: 0,
            loops: 0,
            states: Vec::new(),
        };
        let info = libwebp::decode(bytes, |pixels, until| playback.show(pixels.to_vec(), until))?;
        (playback.width, playback.height) = info.size;
        playback.loops = info.loops;
        Ok(playback)
    }

    fn show(&mut self, mut pixels: Vec<u8>, until: u32) {
        for pixel in pixels.as_chunks_mut::<4>().0 {
            if pixel[3] == 0 {
                *pixel = [0; 4];
            }
        }
        match self.states.last_mut() {
            Some(last) if last.pixels == pixels => last.until = until,
            _ => self.states.push(State { pixels, until }),
        }
    }

    /// What `other` shows when each state of this playback begins.
    pub fn beside<'a>(&'a self, other: &'a Playback) -> Vec<(&'a State, &'a State)> {
        let begins = [0].into_iter().chain(self.states.iter().map(|s| s.until));
        let shown = |begin| other.states.iter().find(|state| state.until > begin);
        let pairs = self.states.iter().zip(begins);
        pairs
            .filter_map(|(state, begin)| Some((state, shown(begin)?)))
            .collect()
    }

    /// How `other` differs in all but colors: sides, repetitions, times, alpha. States may be
    /// missing, since they may look alike with loss, and no moment may be added.
    pub fn faults_of(&self, other: &Playback) -> Vec<String> {
        let mut faults = Vec::new();
        let mut differ = |what: &str, own: String, others: String| {
            if own != others {
                faults.push(format!("{what}: {others}, not {own}"));
            }
        };
        let size = |playback: &Playback| format!("{} x {}", playback.width, playback.height);
        differ("size", size(self), size(other));
        let loops = |playback: &Playback| playback.loops.to_string();
        differ("loops", loops(self), loops(other));
        let end = |playback: &Playback| {
            playback
                .states
                .last()
                .map_or(0, |state| state.until)
                .to_string()
        };
        differ("milliseconds", end(self), end(other));
        let moments: BTreeSet<u32> = self.states.iter().map(|state| state.until).collect();
        let added = other.states.iter().map(|state| state.until);
        let added = added.filter(|moment| !moments.contains(moment)).count();
        differ(
            "moments that are not the GIF's",
            "0".to_owned(),
            added.to_string(),
        );
        let alpha = |state: &State| {
            state
                .pixels
                .iter()
                .skip(3)
                .step_by(4)
                .copied()
                .collect::<Vec<u8>>()
        };
        let pairs = self.beside(other);
        let wrong = pairs
            .iter()
            .filter(|(own, other)| alpha(own) != alpha(other))
            .count();
        differ("states of other alpha", "0".to_owned(), wrong.to_string());
        faults
    }
}

/// Gives each canvas to `show`, with the milliseconds that browsers show it for: less than 20 are
/// 100.
///
/// # Errors
/// What is wrong with the file, or what `show` says.
pub fn play_gif(
    bytes: &[u8],
    mut show: impl FnMut(RgbaImage, u32) -> Result<(), String>,
) -> Result<(), String> {
    let text = |error: image::ImageError| error.to_string();
    let decoder = GifDecoder::new(Cursor::new(bytes)).map_err(text)?;
    for frame in decoder.into_frames() {
        let frame = frame.map_err(text)?;
        let (numerator, denominator) = frame.delay().numer_denom_ms();
        let milliseconds = match numerator / denominator {
            ..20 => 100,
            more => more,
        };
        show(frame.into_buffer(), milliseconds)?;
    }
    Ok(())
}

/// How often browsers play a GIF, by the extension that Netscape's brought: without it once, else
/// once more than it says, and 0 is for ever.
pub fn loops(gif: &[u8]) -> u32 {
    const NAME: &[u8] = b"NETSCAPE2.0\x03\x01";
    let at = gif.windows(NAME.len()).position(|window| window == NAME);
    match at.and_then(|at| gif.get(at + NAME.len()..)?.first_chunk()) {
        None => 1,
        Some([0, 0]) => 0,
        Some(times) => u32::from(u16::from_le_bytes(*times).saturating_add(1)),
    }
}
