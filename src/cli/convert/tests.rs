//! Conversions of files in a temporary folder.

use super::*;
use std::ffi::OsString;
use std::process;

/// A folder of the test's own, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("towebp-convert-{name}-{}", process::id()));
        fs::create_dir_all(&path).expect("the temporary folder can be written");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0
            .join(name)
            .to_str()
            .expect("the temporary folder's name is UTF-8")
            .to_owned()
    }

    fn png(&self, name: &str, width: u32) -> String {
        let path = self.path(name);
        let file = fs::File::create(&path).expect("the temporary folder can be written");
        let mut encoder = png::Encoder::new(file, width, 8);
        encoder.set_color(png::ColorType::Rgb);
        let pixels = vec![200; width as usize * 24];
        encoder
            .write_header()
            .and_then(|mut writer| writer.write_image_data(&pixels))
            .expect("a valid picture");
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder exists");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("readable")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn convert(arguments: &[&str]) -> Result<(), String> {
    let arguments = ["convert"].iter().chain(arguments).map(OsString::from);
    let arguments: Vec<OsString> = arguments.collect();
    let towebp = crate::cli::read(&mut crate::cli::program(), &arguments);
    let crate::cli::Command::Convert(command) = towebp.expect("valid arguments").command else {
        panic!("{arguments:?}");
    };
    run(&command).map_err(|failure| failure.sentence().to_owned())
}

fn is_webp(path: &str) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"RIFF") && bytes[8..].starts_with(b"WEBP"))
}

#[test]
fn one_picture_goes_beside_itself_or_where_told() {
    let folder = Folder::new("one");
    let input = folder.png("a.png", 16);
    convert(&[&input]).expect("a valid picture");
    convert(&[&input, "-o", &folder.path("b.webp")]).expect("a valid picture");
    assert!(is_webp(&folder.path("a.webp")) && is_webp(&folder.path("b.webp")));
    assert_eq!(
        folder.names(),
        ["a.png", "a.webp", "b.webp"],
        "nothing unfinished is left"
    );
}

#[test]
fn many_pictures_go_into_a_folder_and_a_bad_one_does_not_stop_them() {
    let folder = Folder::new("many");
    let mut inputs: Vec<String> = (1..8)
        .map(|width| folder.png(&format!("{width}.png"), width))
        .collect();
    inputs.insert(3, folder.path("bad.png"));
    fs::write(&inputs[3], b"\x89PNG\r\n\x1a\nno").expect("the temporary folder can be written");
    inputs.push(folder.path("missing.gif"));
    let out = folder.path("out/deep");
    let mut arguments: Vec<&str> = inputs.iter().map(String::as_str).collect();
    arguments.extend(["-o", &out, "--threads", "3", "--quality", "20"]);
    let failures = convert(&arguments).expect_err("two of them cannot be read");
    for width in 1..8 {
        assert!(is_webp(&format!("{out}/{width}.webp")), "{width}.webp");
    }
    let lines: Vec<&str> = failures.lines().collect();
    assert_eq!(lines[0], "2 of 9 pictures were not converted:");
    assert!(
        lines[1].contains("bad.png: ") && lines[2].contains("missing.gif: "),
        "{failures}"
    );
}

#[test]
fn a_watermark_comes_from_a_file() {
    let folder = Folder::new("watermark");
    let input = folder.png("a.png", 64);
    let mark = folder.png("mark.png", 8);
    let plain = folder.path("plain.webp");
    let marked = folder.path("marked.webp");
    convert(&[&input, "-o", &plain]).expect("a valid picture");
    convert(&[
        &input,
        "-o",
        &marked,
        "--watermark-image",
        &mark,
        "--watermark",
        "x",
    ])
    .expect("valid pictures");
    assert_ne!(fs::read(plain).ok(), fs::read(marked).ok());
    let error = convert(&[&input, "--watermark-image", &folder.path("none.png")])
        .expect_err("no such file");
    assert!(
        error.starts_with("watermark picture ") && error.contains("none.png"),
        "{error}"
    );
}

#[test]
fn options_are_held_to_the_services_rules() {
    let error = convert(&["a.png", "--watermark-position", "middle"]).expect_err("unknown");
    assert!(
        error.starts_with("--watermark-position: \"middle\" was given"),
        "{error}"
    );
    let folder = Folder::new("limits");
    let input = folder.png("a.png", 16);
    convert(&[&input, "--max-pixels", "128"]).expect("16 x 8 is 128");
    let error = convert(&[&input, "--max-pixels", "127"]).expect_err("16 x 8 is 128");
    assert!(error.contains("at most 127"), "{error}");
}
