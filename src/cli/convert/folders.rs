//! The pictures in a folder and all folders below it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use towebp_pipeline::image::{AcceptedFormats, Format};

/// Endings of files that are taken for pictures, in small letters; others are looked into.
const ENDINGS: [&str; 12] = [
    "png", "apng", "jpg", "jpeg", "jpe", "jfif", "gif", "bmp", "dib", "webp", "tif", "tiff",
];

/// The pictures in a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The formats that are among them beside PNG, JPEG, GIF and BMP.
    accepts: AcceptedFormats,
    /// Pictures, in the order of their names, those of a folder before those of the folders in it.
    pub(super) pictures: Vec<PathBuf>,
    /// Folders and files that cannot be read, and why.
    pub(super) unreadable: Vec<(PathBuf, String)>,
}

/// Finds the PNG, JPEG, GIF and BMP files below `folder`, and WebP and TIFF files if those are
/// converted, by their endings or else their first bytes.
///
/// Names that begin with a point are hidden and skipped, and so is `left_out`. Links to files count
/// as files. Links to folders are not followed, so that no file is found twice and no cycle is
/// walked.
pub(super) fn find(folder: &Path, left_out: Option<&Path>, accepts: AcceptedFormats) -> Found {
    let mut found = Found {
        accepts,
        ..Found::default()
    };
    let left_out = left_out.and_then(|path| path.canonicalize().ok());
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if left_out.is_some() && folder.canonicalize().ok() == left_out {
            continue;
        }
        match entries(&folder) {
            Ok(entries) => {
                let below = found.add(entries);
                // The last one is taken first.
                folders.extend(below.into_iter().rev());
            }
            Err(error) => found.unreadable.push((folder, error.to_string())),
        }
    }
    found
}

impl Found {
    /// Adds the pictures of a folder, and returns the folders in it.
    fn add(&mut self, entries: Vec<PathBuf>) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for path in entries {
            let is_link = path.is_symlink();
            match fs::metadata(&path) {
                Ok(entry) if entry.is_dir() && !is_link => folders.push(path),
                Ok(entry) if entry.is_file() => match is_picture(&path, self.accepts) {
                    Ok(true) => self.pictures.push(path),
                    Ok(false) => {}
                    Err(error) => self.unreadable.push((path, error.to_string())),
                },
                // A device, a link to a folder, or one to nothing.
                _ => {}
            }
        }
        folders
    }
}

/// The entries of a folder that are not hidden, by name.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if !name.as_encoded_bytes().starts_with(b".") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn is_picture(path: &Path, accepts: AcceptedFormats) -> io::Result<bool> {
    let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
    if ENDINGS.iter().any(|known| *known == ending) {
        let is_tiff = ending == "tif" || ending == "tiff";
        return Ok((ending != "webp" || accepts.webp) && (!is_tiff || accepts.tiff));
    }
    let format = Format::sniff(&first_bytes(path)?);
    Ok(format.is_some_and(|format| format.is_accepted(accepts)))
}

/// Whether a file is a WebP, by its first bytes (RFC 9649, 2.4). Only regular files are opened,
/// since the output of others is lost then.
pub(super) fn is_webp(path: &Path) -> bool {
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    is_file && first_bytes(path).is_ok_and(|bytes| Format::sniff(&bytes) == Some(Format::Webp))
}

/// The first bytes of a file, as many as identify its format.
pub(super) fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(12).read_to_end(&mut bytes)?;
    Ok(bytes)
}
