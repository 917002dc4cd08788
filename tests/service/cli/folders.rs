//! `towebp convert` on folders, and what it leaves alone.

use super::{assert_webp, convert, failed, names, succeeded, write};
use crate::support::Folder;
use crate::support::picture::Picture;
use crate::support::tiff::Tiff;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

/// Pictures in folders, and much that is none.
fn tree() -> Folder {
    let folder = Folder::new();
    let path = |name: &str| folder.path.join(name);
    for name in ["in/sub/deep", "in/.hidden", "elsewhere"] {
        fs::create_dir_all(path(name)).expect("our own folder");
    }
    let picture = Picture::waves(30, 20);
    for name in [
        "in/b.png",
        "in/sub/c.PNG",
        "in/.hidden/x.png",
        "in/.y.png",
        "elsewhere/far.png",
    ] {
        write(&folder, name, &picture.png());
    }
    write(&folder, "in/a.gif", &picture.gif());
    // By its bytes, without an ending that tells.
    write(&folder, "in/sub/deep/d", &picture.bmp());
    write(&folder, "in/notes.txt", b"no picture");
    write(&folder, "in/old.webp", b"RIFF0000WEBP");
    symlink("..", path("in/sub/cycle")).expect("our own folder");
    symlink("../elsewhere", path("in/linked")).expect("our own folder");
    symlink("../elsewhere/far.png", path("in/link.png")).expect("our own folder");
    symlink("nowhere", path("in/dangling.png")).expect("our own folder");
    folder
}

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_folder_is_mirrored_with_all_below() {
    let folder = tree();
    let output = convert(&folder, &["-r", "in", "-o", "out", "--threads=1"], b"");
    succeeded(&output);
    let out = folder.path.join("out");
    assert_eq!(names(&out), ["a.webp", "b.webp", "link.webp", "sub"]);
    assert_eq!(names(&out.join("sub")), ["c.webp", "deep"]);
    assert_webp(&out.join("sub/deep/d.webp"), 30, 20);
    let said = said(&output);
    let order: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split(" -> ").next())
        .collect();
    let expected = [
        "in/a.gif",
        "in/b.png",
        "in/link.png",
        "in/sub/c.PNG",
        "in/sub/deep/d",
    ];
    assert_eq!(order[..5], expected, "{said}");
    assert!(
        said.lines()
            .last()
            .is_some_and(|line| line.starts_with("5 pictures in ")),
        "{said}"
    );
    // Without -o each goes beside its picture, and a folder of outputs within is no input.
    succeeded(&convert(&folder, &["-r", "in"], b""));
    assert_webp(&folder.path.join("in/sub/deep/d.webp"), 30, 20);
    succeeded(&convert(
        &folder,
        &["-r", ".", "-o", "./out", "--if-larger=original"],
        b"",
    ));
    assert!(!out.join("out").exists(), "its own outputs were converted");
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_converted() {
    let folder = tree();
    failed(&convert(&folder, &["in"], b""), &["in: it is a folder; -r"]);
    failed(
        &convert(&folder, &["in/b.png", "-r", "-o", "in/notes.txt"], b""),
        &["in/notes.txt is a file"],
    );
    write(&folder, "in/bad.png", b"not a picture");
    let output = convert(&folder, &["-r", "in", "none", "-o", "out"], b"");
    failed(
        &output,
        &["2 of 7 pictures", "in/bad.png: ", "none: ", "2 failed"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert_webp(&folder.path.join("out/sub/c.webp"), 30, 20);
    // Root may read every folder.
    let closed = folder.path.join("in/sub");
    fs::set_permissions(&closed, PermissionsExt::from_mode(0o000)).expect("our own folder");
    let may_read = fs::read_dir(&closed).is_ok();
    let output = convert(&folder, &["-r", "in", "-o", "other"], b"");
    fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).expect("our own folder");
    if !may_read {
        failed(&output, &["in/sub: Permission denied"]);
        assert_webp(&folder.path.join("other/b.webp"), 30, 20);
    }
    let empty = Folder::new();
    let output = convert(&empty, &["-r", "."], b"");
    succeeded(&output);
    assert!(said(&output).contains("no pictures were found"));
}

#[test]
fn webp_files_are_passed_over() {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(30, 20).png());
    succeeded(&convert(&folder, &["a.png"], b""));
    let output = convert(&folder, &["a.png", "a.webp"], b"");
    succeeded(&output);
    let told = said(&output);
    assert!(
        told.contains("a.webp: skipped, since it is a WebP already"),
        "{told}"
    );
    assert!(told.contains("1 picture, 1 skipped in "), "{told}");
    let alone = convert(&folder, &["a.webp", "-o", "b.webp"], b"");
    succeeded(&alone);
    assert_eq!(names(&folder.path), ["a.png", "a.webp"]);
    // Nobody who waits at the pipe gets a file.
    let webp = fs::read(folder.path.join("a.webp")).expect("written");
    failed(&convert(&folder, &["-"], &webp), &["it is a WebP already"]);
}

#[test]
fn webp_files_are_converted_if_that_is_asked_for() {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(30, 20).png());
    succeeded(&convert(&folder, &["a.png"], b""));
    fs::remove_file(folder.path.join("a.png")).expect("it is there");
    let convert_small = |more: &[&str]| {
        let flags = [&["--accept", "webp", "--width", "15"], more].concat();
        succeeded(&convert(&folder, &flags, b""));
    };
    convert_small(&["a.webp", "-o", "b.webp"]);
    assert_webp(&folder.path.join("b.webp"), 15, 10);
    convert_small(&["-r", ".", "-o", "out"]);
    assert_webp(&folder.path.join("out/a.webp"), 15, 10);
    let itself = convert(&folder, &["a.webp", "--accept", "webp"], b"");
    failed(&itself, &["a.webp would overwrite an input"]);
}

#[test]
fn tiffs_are_converted_with_the_flag_alone() {
    let folder = Folder::new();
    fs::create_dir(folder.path.join("in")).expect("our own folder");
    let tiff = Tiff::default().file(&Picture::waves(30, 20));
    write(&folder, "in/a.tif", &tiff);
    write(&folder, "in/b", &tiff);
    let without = convert(&folder, &["in/a.tif"], b"");
    failed(
        &without,
        &["in/a.tif: it is a TIFF, which takes --accept tiff"],
    );
    succeeded(&convert(&folder, &["-r", "in", "--accept", "tiff"], b""));
    for name in ["in/a.webp", "in/b.webp"] {
        assert_webp(&folder.path.join(name), 30, 20);
    }
}

#[test]
fn pictures_are_converted_again_only_if_they_are_newer() {
    let folder = Folder::new();
    for name in ["a.png", "b.png"] {
        write(&folder, name, &Picture::waves(30, 20).png());
    }
    let newer = || said(&convert(&folder, &["a.png", "b.png", "--newer"], b""));
    assert!(newer().contains("2 pictures in "));
    let told = newer();
    assert!(
        told.contains("a.png: skipped, since a.webp is not older"),
        "{told}"
    );
    assert!(told.contains("0 pictures, 2 skipped"), "{told}");
    let later = SystemTime::now() + Duration::from_hours(1);
    let file = File::options().write(true).open(folder.path.join("b.png"));
    file.and_then(|file| file.set_modified(later))
        .expect("our own file");
    let told = newer();
    assert!(
        told.contains("b.png -> b.webp") && told.contains("1 picture, 1 skipped"),
        "{told}"
    );
}

#[test]
fn nothing_is_written_that_is_larger_than_its_picture() {
    let folder = Folder::new();
    write(&folder, "a.jpg", super::JPEG);
    write(&folder, "b.png", &Picture::waves(90, 60).png());
    let all = [
        "a.jpg",
        "b.png",
        "--lossless",
        "--effort=low",
        "--skip-if-larger",
    ];
    let output = convert(&folder, &all, b"");
    succeeded(&output);
    assert!(said(&output).contains("a.jpg: skipped, since its WebP would take "));
    assert_eq!(names(&folder.path), ["a.jpg", "b.png", "b.webp"]);
}

#[test]
fn names_are_made_as_told_and_collisions_found_before() {
    let folder = Folder::new();
    write(&folder, "a.png", &Picture::waves(30, 20).png());
    write(&folder, "a.gif", &Picture::waves(30, 20).gif());
    let both = ["a.png", "a.gif", "-o", "out"];
    let refused = convert(&folder, &both, b"");
    failed(
        &refused,
        &["out/a.webp would be made of", "--name '{stem}.{ext}.webp'"],
    );
    assert!(!folder.path.join("out").exists());
    succeeded(&convert(
        &folder,
        &[&both[..], &["--name", "{stem}.{ext}.webp"]].concat(),
        b"",
    ));
    assert_eq!(
        names(&folder.path.join("out")),
        ["a.gif.webp", "a.png.webp"]
    );
}

#[test]
fn a_dry_run_says_all_and_writes_nothing() {
    let folder = tree();
    write(&folder, "in/bad.png", b"not a picture");
    let output = convert(&folder, &["-r", "in", "-o", "out", "--dry-run"], b"");
    failed(
        &output,
        &["in/bad.png: it looks like none of PNG, JPEG, GIF and BMP"],
    );
    let told = said(&output);
    assert!(told.contains("in/sub/c.PNG -> out/sub/c.webp"), "{told}");
    assert!(
        told.contains("5 pictures would be converted, 1 failed"),
        "{told}"
    );
    assert!(!folder.path.join("out").exists());
}
