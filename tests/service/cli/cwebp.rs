//! The command lines of cwebp and gif2webp, as other programs call them.

use super::{failed, succeeded, write};
use crate::support::command::{run, towebp};
use crate::support::picture::{Picture, chunks};
use crate::support::tiff::Tiff;
use crate::support::{Folder, TOWEBP};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

fn cwebp(folder: &Folder, line: &str, input: &[u8]) -> Output {
    let mut command = towebp();
    let command = command.arg("cwebp").args(line.split_whitespace());
    run(command.current_dir(&folder.path), input)
}

fn complaint(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// The command lines of programs that call cwebp, with their usual settings.
#[test]
fn other_programs_get_what_they_call_for() {
    let folder = Folder::new();
    let picture = Picture::waves(64, 48);
    let (png, bmp) = (picture.png(), picture.bmp());
    write(&folder, "in.png", &png);
    write(&folder, "in.tif", &Tiff::default().file(&picture));
    // imagemin-webp, which next-optimized-images uses as well.
    for line in [
        "-quiet -mt -o - -- -",
        "-quiet -mt -preset photo -q 75 -alpha_q 90 -m 6 -size 9000 -sns 80 -f 30 -af -sharpness 2 -lossless -o - -- -",
        "-quiet -mt -near_lossless 60 -crop 2 4 30 20 -resize 15 0 -metadata exif,icc -o - -- -",
    ] {
        let output = cwebp(&folder, line, &png);
        succeeded(&output);
        assert_eq!(complaint(&output), "", "{line}");
        let decoded = Picture::decode(&output.stdout);
        let is_cropped = line.contains("-crop");
        let expected = if is_cropped { (15, 10) } else { (64, 48) };
        assert_eq!((decoded.width, decoded.height), expected, "{line}");
        let is_lossless = line.contains("lossless");
        assert_eq!(chunks(&output.stdout)[0] == "VP8L", is_lossless, "{line}");
    }
    // webp-convert, webp-converter, grunt-webp, and the order of cwebp's manual.
    for line in [
        "-metadata none -q 85 -alpha_q 85 -m 6 -low_memory in.png -o out.webp",
        "-q 80 in.png -o out.webp",
        "-q 80 in.tif -o out.webp",
        "-preset photo -sns 80 -f 40 -segments 4 -pass 1 -strong in.png -q 80 -v -o out.webp",
        "in.png -o out.webp -q 80 -noalpha -exact -jpeg_like -hint photo -map 0 -print_ssim -progress",
    ] {
        fs::remove_file(folder.path.join("out.webp")).ok();
        let output = cwebp(&folder, line, b"");
        succeeded(&output);
        let size = fs::metadata(folder.path.join("out.webp"))
            .expect("written")
            .len();
        let said = complaint(&output);
        let is_tiff = line.contains("in.tif");
        let input = if is_tiff { "in.tif" } else { "in.png" };
        for words in [
            "Saving file 'out.webp'".to_owned(),
            format!("File:      {input}\nDimension: 64 x 48\n"),
            format!("Output:    {size} bytes"),
        ] {
            assert!(said.contains(&words), "{line}: {said}");
        }
        assert_eq!(
            said.contains("Time to encode"),
            line.contains("-v "),
            "{said}"
        );
        assert_eq!(
            said.contains("SSIM: B:"),
            line.contains("-print_ssim"),
            "{said}"
        );
        assert_eq!(said.contains("100 %"), line.contains("-progress"), "{said}");
    }
    let wider = cwebp(&folder, "-resize 128 96 -o - -", &bmp);
    let decoded = Picture::decode(&wider.stdout);
    assert_eq!((decoded.width, decoded.height), (128, 96));
}

#[test]
fn a_size_and_the_distortion_are_kept_and_printed() {
    let folder = Folder::new();
    write(&folder, "in.png", &Picture::waves(160, 120).png());
    let output = cwebp(&folder, "-size 2500 -short in.png -o a.webp", b"");
    let said = complaint(&output);
    let mut words = said.split_whitespace();
    let size: u64 = words
        .next()
        .and_then(|word| word.parse().ok())
        .expect("a size");
    assert!(size <= 2500, "{said}");
    let total = |line: &str| {
        let said = complaint(&cwebp(&folder, line, b""));
        let (_, total) = said.trim().rsplit_once("Total:").expect("a total");
        total.parse::<f64>().expect("a number")
    };
    let [low, high] = [30, 95].map(|quality| {
        let line = |what| format!("in.png -print_{what} -q {quality}");
        (total(&line("psnr")), total(&line("ssim")))
    });
    assert!(low.0 > 20.0 && high.0 > low.0 + 2.0, "{low:?} {high:?}");
    assert!(low.1 > 3.0 && high.1 > low.1 + 2.0, "{low:?} {high:?}");
    assert!(total("in.png -print_psnr -lossless") >= 99.0);
}

#[test]
fn the_programs_run_by_their_names() {
    let folder = Folder::new();
    for name in ["cwebp", "gif2webp"] {
        symlink(TOWEBP, folder.path.join(name)).expect("a link in our own folder");
    }
    let picture = Picture::waves(40, 30);
    write(&folder, "in.png", &picture.png());
    write(&folder, "in.gif", &picture.gif());
    let call = |name: &str, line: &str| {
        let mut command = Command::new(folder.path.join(name));
        run(command.args(line.split(' ')).current_dir(&folder.path), b"")
    };
    succeeded(&call("cwebp", "-quiet in.png -o out.webp"));
    let output = call("gif2webp", "-q 70 -m 4 -kmin 3 in.gif -o moving.webp");
    succeeded(&output);
    assert!(complaint(&output).starts_with("Saved output file ("));
    let webp = fs::read(folder.path.join("moving.webp")).expect("written");
    assert!(
        chunks(&webp).contains(&"VP8L".to_owned()) || chunks(&webp).contains(&"ANMF".to_owned())
    );
    let version = call("cwebp", "-version");
    assert_eq!(version.stdout, b"1.6.0\n");
    let help = call("gif2webp", "-h");
    assert!(String::from_utf8_lossy(&help.stdout).contains("-min_size"));
}

#[test]
fn failures_have_the_exit_code_of_cwebp() {
    let folder = Folder::new();
    write(&folder, "in.png", &Picture::waves(40, 30).png());
    write(&folder, "bad.png", b"not a picture");
    for (line, words) in [
        ("-nope in.png", "Unknown option '-nope'"),
        ("-q 80", "No input file specified!"),
        (
            "missing.png -o out.webp",
            "Cannot read input picture file 'missing.png'",
        ),
        (
            "bad.png -o out.webp",
            "Cannot read input picture file 'bad.png'",
        ),
        (
            "in.png -crop 0 0 400 10 -o out.webp",
            "Cannot encode picture as WebP",
        ),
        (
            "in.png -o missing/out.webp",
            "Cannot open output file 'missing/out.webp'",
        ),
        ("-s 4 4 in.yuv", "are not read"),
    ] {
        let output = cwebp(&folder, line, b"");
        failed(&output, &[words]);
        assert_eq!(output.status.code(), Some(255), "{line}");
    }
    assert!(!folder.path.join("out.webp").exists());
}
