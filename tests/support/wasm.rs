//! Conversions with random parameters, and what the native program makes of them, to compare the
//! program as WebAssembly with: in Node, and in Chromium.

use crate::support::picture::Picture;
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use towebp_encoder::testing::Random;
use towebp_pipeline::conversion::{self, Cancel, Fonts, Job, PARAMETERS, Parameter, Params, Value};
use towebp_pipeline::image::{Format, Limits};

/// The pictures that random conversions have, by their names: shipped files, and made-up ones.
pub fn pictures() -> Vec<(&'static str, Vec<u8>)> {
    let shipped = [
        "alpha.png",
        "animated.gif",
        "graphic.png",
        "grey16.png",
        "palette8.bmp",
        "rgb24.bmp",
        "rotated.jpg",
    ];
    let read = |name| (name, std::fs::read(testdata(name)).expect("it is shipped"));
    let mut pictures: Vec<_> = shipped.into_iter().map(read).collect();
    pictures.push(("waves", Picture::waves(150, 90).png()));
    pictures.push(("noise", Picture::noise(45, 33).png()));
    pictures.push(("cut", pictures[0].1[..100].to_vec()));
    pictures
}

/// A file of the folder `testdata`.
pub fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(name)
}

/// The folder of the npm package, if scripts/wasm has made it.
pub fn package() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("wasm/built");
    folder.join("towebp.wasm").is_file().then_some(folder)
}

/// A conversion.
pub struct Case {
    /// The name of its picture among [`pictures`].
    pub picture: &'static str,
    /// Names and values of its parameters.
    pub parameters: Vec<(&'static str, String)>,
}

impl Case {
    /// So many conversions, the same each time.
    pub fn random(count: usize) -> Vec<Case> {
        let mut random = Random::new(33);
        let pictures: Vec<_> = pictures().into_iter().map(|(name, _)| name).collect();
        let mut case = || {
            let picture = pictures[random.index(pictures.len())];
            let mut parameters: Vec<(&str, String)> = Vec::new();
            for _ in 0..random.below(6) {
                let row = &PARAMETERS[random.index(PARAMETERS.len())];
                let is_given = parameters.iter().any(|(name, _)| *name == row.name);
                if row.name != "token" && !is_given {
                    parameters.push((row.name, value(row, &mut random)));
                }
            }
            Case {
                picture,
                parameters,
            }
        };
        (0..count).map(|_| case()).collect()
    }

    /// As JavaScript takes it.
    pub fn to_json(&self) -> Json {
        json!([self.picture, self.parameters])
    }

    /// What the native program makes of it: the file's length and hash, or a problem.
    pub fn outcome(&self, bytes: &[u8], mark: &[u8]) -> String {
        let pairs = self
            .parameters
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let params = match Params::parse(pairs) {
            Ok(params) => params,
            Err(error) => return format!("{}: {}", error.code, error.detail),
        };
        let converted = conversion::run(&Job {
            bytes,
            format: Format::sniff(bytes).expect("its beginning is whole"),
            watermark_picture: params.picture_url.as_ref().map(|_| mark),
            params: &params,
            fonts: Fonts::bundled(),
            limits: &Limits::default(),
            threads: 2,
            cpu_budget: None,
            cancel: &Cancel::never(),
        });
        match converted {
            Ok(converted) if converted.prefers_original => file(bytes),
            Ok(converted) => file(&converted.webp),
            Err(error) => format!("{}: {}", error.code(), error.detail()),
        }
    }
}

/// What stands for a file in comparisons, as `wasm.mjs` writes it.
fn file(bytes: &[u8]) -> String {
    format!("{} {:08x}", bytes.len(), fnv1a(bytes))
}

/// The 32-bit FNV-1a hash.
pub fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

fn value(row: &Parameter, random: &mut Random) -> String {
    let mut between = |min: i32, max: i32| min + random.below((max - min + 1) as u32) as i32;
    match row.value {
        // Sizes of moderate pictures.
        Value::Number(min, 16383) => between(min, 200).to_string(),
        Value::Number(min, max) | Value::Percent(min, max) => {
            between(min - 5, max + 5).max(0).to_string()
        }
        Value::Decimal(..) => format!("{}.{}", between(0, 2), between(1, 9)),
        Value::Size(..) => between(50, 5000).to_string(),
        Value::Length {
            pixels: (_, most), ..
        } => match between(0, 2) {
            0 => format!("{}%", between(1, 20)),
            1 => "auto".to_owned(),
            _ => between(0, most.min(60)).to_string(),
        },
        Value::Word(allowed) => {
            let words = allowed.split(", ").flat_map(|part| part.split(" or "));
            let words: Vec<_> = words.chain(["nothing"]).collect();
            words[between(0, words.len() as i32 - 1) as usize].to_owned()
        }
        Value::Color(_) => ["red", "#fc0", "12ab9f", "reddish"][between(0, 3) as usize].to_owned(),
        Value::Rectangle => {
            let [left, top] = [between(0, 9), between(0, 9)];
            format!("{left},{top},{},{}", between(1, 20), between(1, 20))
        }
        Value::Text => {
            ["© example.org", "हिन्दी a", "two\nlines", "漢"][between(0, 3) as usize].to_owned()
        }
        _ => "https://example.org/a.png".to_owned(),
    }
}
