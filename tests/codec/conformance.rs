//! Made-up pictures with the pixels that a color-managed viewer shows: `conformance/make.py` makes
//! both, from numbers and not by a decoder. Public collections are tried too, by the ignored tests,
//! where the environment names their folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use towebp_encoder::Workers;
use towebp_pipeline::conversion::Cancel;
use towebp_pipeline::image::{
    DecodeError, Format, Image, Keep, Layout, Limits, Luma, Planes, decode, open,
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/codec/conformance")
}

fn read(path: &Path) -> Result<Image, DecodeError> {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // By the name: the bytes may be broken from the first on.
    let format = match path.extension().and_then(|ending| ending.to_str()) {
        Some("png") => Format::Png,
        Some("jpg") => Format::Jpeg,
        Some("bmp") => Format::Bmp,
        _ => panic!("{} is not of these formats", path.display()),
    };
    decode(&bytes, format, &Limits::default(), &Cancel::never())
}

/// A JPEG that stays in `Y'CbCr`, as a decoder of WebP shows it.
fn read_planes(path: &Path) -> Option<Image> {
    let bytes = fs::read(path).expect("it was read before");
    let format = Format::sniff(&bytes).expect("one of the four formats");
    let limits = Limits::default();
    let opened = open(&bytes, format, &limits).expect("it was decoded before");
    let never = Cancel::never();
    let planes = opened.decode_planes(Keep::NOTHING, Luma::AsStored, Workers::new(2, None, &never));
    let (planes, _) = planes.expect("it was decoded before")?;
    Some(rgb(&planes))
}

/// By RFC 6386, section 9.2, each chroma sample over its 2x2 pixels.
fn rgb(planes: &Planes) -> Image {
    let (width, stride) = (planes.width, planes.width.next_multiple_of(16));
    let places = (0..planes.height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let pixel = |(x, y)| {
        let chroma = (y / 2 * (stride / 2) + x / 2) as usize;
        let y = 1.164 * (f32::from(planes.luma[(y * stride + x) as usize]) - 16.0);
        let [u, v] = [0, 1].map(|plane| f32::from(planes.chroma[plane][chroma]) - 128.0);
        [y + 1.596 * v, y - 0.391 * u - 0.813 * v, y + 2.018 * u].map(|sample| sample.round() as u8)
    };
    Image {
        width,
        height: planes.height,
        layout: Layout::Rgb,
        pixels: places.flat_map(pixel).collect(),
    }
}

/// The sample of every pixel as red, green, blue and alpha.
fn rgba(image: &Image) -> Vec<[u8; 4]> {
    let pixels = image.pixels.chunks_exact(image.layout.channels());
    let opaque = image.layout == Layout::Rgb;
    pixels
        .map(|pixel| {
            [
                pixel[0],
                pixel[1],
                pixel[2],
                if opaque { 255 } else { pixel[3] },
            ]
        })
        .collect()
}

#[test]
fn every_made_up_picture_comes_out_as_viewers_show_it() {
    let expected = fs::read_to_string(folder().join("expected.tsv")).expect("it is shipped");
    let mut failures = Vec::new();
    let mut names = BTreeSet::new();
    let mut in_yuv = Vec::new();
    for line in expected.lines().filter(|line| !line.starts_with('#')) {
        let (name, expectation) = line.split_once('\t').expect("a name comes first");
        names.insert(name.to_owned());
        match check(name, expectation) {
            Ok(Checked::Rgb) => {}
            Ok(Checked::RgbAndPlanes) => in_yuv.push(name),
            Err(failure) => failures.push(format!("{name}: {failure}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let pictures = fs::read_dir(folder()).expect("it is shipped").map(|entry| {
        let entry = entry.expect("it can be listed");
        entry.file_name().to_string_lossy().into_owned()
    });
    let pictures: BTreeSet<String> = pictures
        .filter(|name| name != "make.py" && name != "expected.tsv")
        .collect();
    assert_eq!(names, pictures, "each picture has its line");
    in_yuv.sort_unstable();
    let stay = ["jpeg-420.jpg", "jpeg-grey.jpg", "jpeg-restarts.jpg"];
    assert_eq!(in_yuv, stay, "what can stay in YUV does");
}

/// What was compared with the expectation.
enum Checked {
    Rgb,
    RgbAndPlanes,
}

fn check(name: &str, expectation: &str) -> Result<Checked, String> {
    let mut fields = expectation.split('\t');
    let mut field = || fields.next().expect("a line has four fields, or three");
    let outcome = read(&folder().join(name));
    let tolerance = match field() {
        "refused" => {
            let reason = outcome.err().ok_or("it was not refused")?.to_string();
            let word = field();
            return if reason.contains(word) {
                Ok(Checked::Rgb)
            } else {
                Err(format!("no {word:?} in: {reason}"))
            };
        }
        tolerance => tolerance.parse::<u8>().expect("a number"),
    };
    let image = outcome.map_err(|error| error.to_string())?;
    let (size, cells) = (field(), field());
    check_cells(&image, tolerance, size, cells)?;
    match read_planes(&folder().join(name)) {
        None => Ok(Checked::Rgb),
        Some(image) => {
            // Of the narrower range, a step is more than a step.
            check_cells(&image, tolerance + 2, size, cells)?;
            Ok(Checked::RgbAndPlanes)
        }
    }
}

/// Compares the middle of each cell.
fn check_cells(image: &Image, tolerance: u8, size: &str, cells: &str) -> Result<(), String> {
    let (width, height) = size.split_once('x').expect("width and height");
    let [width, height] = [width, height].map(|side| side.parse::<u32>().expect("a number"));
    let cell = image.width / width;
    if (image.width, image.height) != (width * cell, height * cell) {
        return Err(format!(
            "{} x {} pixels for {width} x {height} cells",
            image.width, image.height
        ));
    }
    let shown = rgba(image);
    for (index, hex) in (0..).zip(cells.split(' ')) {
        let color = u32::from_str_radix(hex, 16)
            .expect("eight digits")
            .to_be_bytes();
        let (x, y) = (
            index % width * cell + cell / 2,
            index / width * cell + cell / 2,
        );
        let pixel = shown[(y * image.width + x) as usize];
        if pixel
            .iter()
            .zip(color)
            .any(|(got, wanted)| got.abs_diff(wanted) > tolerance)
        {
            return Err(format!(
                "cell {index} is {pixel:?} instead of {color:?}, up to {tolerance}"
            ));
        }
    }
    Ok(())
}

/// The folder that this variable of the environment names.
fn suite(variable: &str) -> PathBuf {
    let folder = std::env::var_os(variable);
    PathBuf::from(folder.unwrap_or_else(|| panic!("{variable} is to name the collection's folder")))
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no {ending} in {}", folder.display());
    paths
}

fn name(path: &Path) -> String {
    path.file_name()
        .expect("a file")
        .to_string_lossy()
        .into_owned()
}

/// Largest difference of a sample; colors of pixels that are transparent in both do not count.
fn difference(a: &Image, b: &Image) -> u8 {
    if (a.width, a.height) != (b.width, b.height) {
        return u8::MAX;
    }
    let pairs = rgba(a).into_iter().zip(rgba(b));
    let visible = pairs.filter(|(a, b)| a[3] != 0 || b[3] != 0);
    let differences =
        visible.flat_map(|(a, b)| [0, 1, 2, 3].map(|sample| a[sample].abs_diff(b[sample])));
    differences.max().unwrap_or(0)
}

/// The page of the collection names the pictures that a file may look like.
#[test]
#[ignore = "wants the folder of bmpsuite in TOWEBP_BMPSUITE, with html, g, q and b in it"]
fn bmpsuite_looks_as_its_page_shows_it() {
    let suite = suite("TOWEBP_BMPSUITE");
    let page = fs::read(suite.join("html/bmpsuite.html")).expect("the collection's page");
    let page = String::from_utf8_lossy(&page);
    let mut failures = Vec::new();
    for path in ["g", "q"]
        .iter()
        .flat_map(|kind| files(&suite.join(kind), "bmp"))
    {
        let name = name(&path);
        let row = page
            .split("<tr>")
            .find(|row| row.contains(&format!("/{name}</td>")));
        let shown = row.into_iter().flat_map(|row| row.split("src=\"").skip(1));
        let shown: Vec<&str> = shown.filter_map(|rest| rest.split('"').next()).collect();
        let pictures = shown
            .iter()
            .filter(|shown| shown.strip_suffix(".png").is_some());
        match read(&path) {
            // No browser shows these.
            Err(error) if ["rgb24jpeg.bmp", "rgb24png.bmp"].contains(&name.as_str()) => drop(error),
            Err(error) => failures.push(format!("{name}: {error}")),
            Ok(image) => {
                let looks_like = |picture: &&str| {
                    let expected = read(&suite.join("html").join(picture)).expect("a good PNG");
                    difference(&image, &expected) <= 1
                };
                if pictures.clone().count() > 0 && !pictures.clone().any(looks_like) {
                    failures.push(format!("{name}: not as {shown:?}"));
                }
            }
        }
    }
    for path in files(&suite.join("b"), "bmp") {
        // A picture or an error, and no crash.
        drop(read(&path));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Files whose names begin with x are broken; interlaced ones (basi) show the same as others
/// (basn).
#[test]
#[ignore = "wants the folder of PngSuite in TOWEBP_PNGSUITE"]
fn pngsuite_is_read_and_refused_as_its_names_say() {
    let mut failures = Vec::new();
    for path in files(&suite("TOWEBP_PNGSUITE"), "png") {
        let (name, outcome) = (name(&path), read(&path));
        match outcome {
            Ok(_) if name.starts_with('x') => failures.push(format!("{name}: was not refused")),
            Err(error) if !name.starts_with('x') => failures.push(format!("{name}: {error}")),
            Ok(image) if name.starts_with("basi") => {
                let twin = path.with_file_name(name.replace("basi", "basn"));
                if twin.exists() && difference(&image, &read(&twin).expect("a good PNG")) != 0 {
                    failures.push(format!("{name}: differs from {}", twin.display()));
                }
            }
            _ => {}
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// All of `..._1.jpg` to `..._8.jpg` show the same.
#[test]
#[ignore = "wants a folder of pictures in all eight orientations in TOWEBP_ORIENTATIONS"]
fn pictures_of_every_orientation_come_out_upright() {
    for path in files(&suite("TOWEBP_ORIENTATIONS"), "jpg") {
        let name = name(&path);
        let stem = name.trim_end_matches(".jpg");
        let number = stem.rsplit('_').next().unwrap_or_default();
        let first = path.with_file_name(format!("{}1.jpg", stem.trim_end_matches(number)));
        let (image, first) = (
            read(&path).expect("a good JPEG"),
            read(&first).expect("a good JPEG"),
        );
        assert_eq!(
            (image.width, image.height),
            (first.width, first.height),
            "{name}"
        );
        let differences = image
            .pixels
            .iter()
            .zip(&first.pixels)
            .map(|(a, b)| u64::from(a.abs_diff(*b)));
        let mean = differences.sum::<u64>() as f64 / image.pixels.len() as f64;
        assert!(mean < 12.0, "{name} differs by {mean} in the mean");
    }
}

/// Beside each picture, `NAME.png` or `NAME.jpg`, stands `NAME.srgb.png`, what another color
/// management makes of it by a profile of a matrix and curves, colorimetrically. By `ImageCms` of
/// Pillow that is `profileToProfile(image, profile, createProfile("sRGB"), renderingIntent=1,
/// outputMode="RGB")`. Profiles with tables have one for each intent, of which ours is the
/// perceptual one, without black point compensation.
#[test]
#[ignore = "wants a folder of pictures with profiles, and of what they are in sRGB, in TOWEBP_ICC"]
fn profiles_are_applied_as_others_apply_them() {
    let folder = suite("TOWEBP_ICC");
    let mut failures = Vec::new();
    for reference in files(&folder, "png") {
        let name = name(&reference);
        let Some(stem) = name.strip_suffix(".srgb.png") else {
            continue;
        };
        let picture = ["png", "jpg"].map(|ending| folder.join(format!("{stem}.{ending}")));
        let picture = picture.iter().find(|path| path.exists());
        let picture = picture.unwrap_or_else(|| panic!("nothing belongs to {name}"));
        let [shown, expected] =
            [picture, &reference].map(|path| rgba(&read(path).expect("a good file")));
        let pairs = shown.as_flattened().iter().zip(expected.as_flattened());
        let sum: u64 = pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
        let mean = sum as f64 / expected.as_flattened().len() as f64;
        println!("{stem}: {mean:.2} in the mean");
        if shown.len() != expected.len() || mean > 1.0 {
            failures.push(format!("{stem} differs by {mean} in the mean"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
