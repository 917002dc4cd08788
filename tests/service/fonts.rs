//! The flag `--font` of the server and of `towebp convert`.

use crate::support::Folder;
use crate::support::command::{run, towebp};
use crate::support::picture::Picture;
use crate::support::service::Service;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn files_that_are_no_font_are_refused_at_the_start_naming_flag_and_file() {
    let folder = Folder::new();
    let photograph = "testdata/astronaut.png";
    let whole = fs::read("fonts/NotoSansDevanagari-Regular.ttf").expect("it is shipped");
    let cut = folder.path.join("cut.ttf");
    fs::write(&cut, &whole[..3000]).expect("a file in our own folder");
    let empty = folder.path.join("empty.otf");
    fs::write(&empty, b"").expect("a file in our own folder");
    let missing = folder.path.join("missing.ttf");
    let files = [Path::new(photograph), &cut, &empty, &missing, &folder.path];
    for file in files {
        for command in [
            &["serve", "--listen", "127.0.0.1:0"][..],
            &["convert", "--watermark", "a", photograph],
        ] {
            let output = run(
                towebp()
                    .args(command)
                    .args(["--font", "fonts/DejaVuSans.ttf", "--font"])
                    .arg(file),
                b"",
            );
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{command:?}: {complaint}");
            let expected = format!("towebp: --font {}: ", file.display());
            assert!(complaint.starts_with(&expected), "{command:?}: {complaint}");
        }
    }
}

#[test]
fn a_font_is_asked_before_the_bundled_ones() {
    let png = Picture::flat(200, 100, [90, 90, 90]).png();
    let text = [("watermark", "१२३ 123 ।")];
    let plain = Service::start_with(&[]).webp(&text, &png);
    let devanagari = ["--font", "fonts/NotoSansDevanagari-Regular.ttf"];
    let dejavu = ["--font", "fonts/DejaVuSans.ttf"];
    assert_eq!(Service::start_with(&dejavu).webp(&text, &png), plain);
    // It has spaces of another width.
    assert_ne!(Service::start_with(&devanagari).webp(&text, &png), plain);
    let both = [dejavu, devanagari].concat();
    assert_eq!(Service::start_with(&both).webp(&text, &png), plain);
}

/// With `TOWEBP_TEST_FONTS`, a folder that is searched for NotoSansCJK-Regular.ttc (a collection of
/// CFF fonts) and NotoSansThai-Regular.ttf.
#[test]
fn chinese_japanese_korean_and_thai_come_with_their_fonts() {
    let Some(folder) = std::env::var_os("TOWEBP_TEST_FONTS").map(PathBuf::from) else {
        eprintln!("skipped: TOWEBP_TEST_FONTS names no folder of fonts");
        return;
    };
    let font = |name: &str| {
        let path = find(&folder, name).unwrap_or_else(|| panic!("{name} is not in the folder"));
        path.to_str().expect("UTF-8").to_owned()
    };
    let [cjk, thai] = ["NotoSansCJK-Regular.ttc", "NotoSansThai-Regular.ttf"].map(font);
    let png = Picture::flat(300, 100, [90, 90, 90]).png();
    let texts = ["漢字", "ひらがな", "한국어", "ที่นี่"];
    let without = Service::start_with(&[]);
    for text in texts {
        let answer = without.convert(&[("watermark", text)], "image/png", &png);
        answer.problem(400, "missing_characters");
    }
    let with = Service::start_with(&["--font", &cjk, "--font", &thai]);
    // It has alpha and an accent, but not where to put it: the next font has both as one.
    let accented = [("watermark", "ά")];
    assert_eq!(with.webp(&accented, &png), without.webp(&accented, &png));
    let plain = with.webp(&[], &png);
    for text in texts {
        assert_ne!(with.webp(&[("watermark", text)], &png), plain, "{text}");
    }
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .find_map(|entry| {
            let path = entry.path();
            if path.is_dir() {
                find(&path, name)
            } else {
                path.ends_with(name).then_some(path)
            }
        })
}
