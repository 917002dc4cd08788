//! Contact sheets: what the metrics do not mind is for people to see. For each picture and quality
//! one PNG: a row for each crop, and in it the original, libwebp's method 4 at that quality, and
//! ours at the same bytes, magnified.

mod canvas;
mod crop;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::libwebp;
use crate::measure::Plan;
use crate::output;
use crate::peer::{Peer, REFERENCE};
use crate::picture::Picture;

use self::canvas::Canvas;

/// One column of a sheet.
struct Column {
    /// The encoder, its quality and the bytes of its file, for the list.
    name: String,
    picture: Picture,
}

/// Writes the sheets of a plan into `folder`, and lists them with the bytes of each column.
///
/// # Errors
/// A file that cannot be encoded, decoded or written.
pub fn write(plan: &Plan, folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (path, original) in &plan.pictures {
        let crops = crop::choose(original);
        let names: Vec<&str> = crops.iter().map(|crop| crop.name).collect();
        for &quality in &plan.qualities {
            let columns = columns(plan, original, quality)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let pictures: Vec<&Picture> = columns.iter().map(|column| &column.picture).collect();
            let mut canvas = Canvas::new(pictures.len(), crops.len());
            for (row, crop) in crops.iter().enumerate() {
                for (column, picture) in pictures.iter().enumerate() {
                    canvas.place(column, row, picture, crop.place);
                }
            }
            let file = sheet_path(folder, path, quality);
            canvas.save(&file)?;
            let mut line = format!("{}: rows {};", file.display(), names.join(", "));
            for column in &columns {
                write!(line, " | {}", column.name).expect("writing to a String does not fail");
            }
            output::print(&line)?;
        }
    }
    Ok(())
}

/// The original, the reference at `quality`, and each other peer at the reference's bytes.
fn columns(plan: &Plan, original: &Picture, quality: u8) -> Result<Vec<Column>, String> {
    let reference = REFERENCE.encode(original, quality)?;
    let mut columns = vec![
        Column {
            name: "original".to_owned(),
            picture: original.clone(),
        },
        Column {
            name: format!("{REFERENCE} at {quality}, {} bytes", reference.len()),
            picture: libwebp::decode_picture(&reference, original)?,
        },
    ];
    for &peer in plan.peers.iter().filter(|peer| **peer != REFERENCE) {
        let (quality, file) = at_most(peer, original, reference.len())?;
        columns.push(Column {
            name: format!("{peer} at {quality}, {} bytes", file.len()),
            picture: libwebp::decode_picture(&file, original)?,
        });
    }
    Ok(columns)
}

/// The greatest quality whose file has at most `bytes`, and that file; quality 0 if none has.
fn at_most(peer: Peer, picture: &Picture, bytes: usize) -> Result<(u8, Vec<u8>), String> {
    let mut best = (0, peer.encode(picture, 0)?);
    // `best` has at most `bytes`, and the file at `above` would have more.
    let mut above = 101;
    while above - best.0 > 1 {
        let quality = u8::midpoint(best.0, above);
        let file = peer.encode(picture, quality)?;
        if file.len() <= bytes {
            best = (quality, file);
        } else {
            above = quality;
        }
    }
    Ok(best)
}

/// `FOLDER/KIND-NAME-qQUALITY.png`.
fn sheet_path(folder: &Path, picture: &Path, quality: u8) -> PathBuf {
    let kind = picture.parent().and_then(Path::file_name);
    let name = picture.file_stem().unwrap_or_default().display();
    match kind {
        Some(kind) => folder.join(format!("{}-{name}-q{quality}.png", kind.display())),
        None => folder.join(format!("{name}-q{quality}.png")),
    }
}

#[cfg(test)]
mod tests {
    use towebp_encoder::Effort;

    use super::*;

    #[test]
    fn the_search_finds_the_last_quality_that_fits() {
        let pixels = (0..64 * 64_u32)
            .flat_map(|i| [i * 7 % 251, i / 64 * 3, i * i % 241].map(|value| value as u8))
            .collect();
        let picture = Picture {
            width: 64,
            height: 64,
            pixels,
        };
        let peer = Peer::Towebp(Effort::Low);
        let limit = peer.encode(&picture, 60).expect("it encodes").len();
        let (quality, file) = at_most(peer, &picture, limit).expect("it encodes");
        assert!(quality >= 60 && file.len() <= limit, "{quality}");
        let (quality, _) = at_most(peer, &picture, 0).expect("it encodes");
        assert_eq!(quality, 0);
        let (quality, _) = at_most(peer, &picture, usize::MAX).expect("it encodes");
        assert_eq!(quality, 100);
    }
}
