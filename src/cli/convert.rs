//! `towebp convert`: files through the same [`conversion::run`] as the server, by the same parameters.

mod plan;

use super::cores;
use crate::conversion::{self, Conversion, Cores, Fonts, Job, Params};
use crate::fetch::{Fetcher, Settings};
use crate::image::{Format, Limits};
use argh::FromArgs;
use indicatif::{HumanBytes, ProgressBar};
use plan::{Source, Step, Target, plan};
use std::io::{self, IsTerminal, Read, Write};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::{fs, process, thread};

/// Convert pictures (PNG, JPEG, GIF, BMP) to WebP. An existing WebP file of the same name is
/// replaced; an input never is.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "convert")]
pub struct ConvertCommand {
    /// pictures to convert; - is standard input
    #[argh(positional, arg_name = "in")]
    inputs: Vec<String>,

    /// where to: a file for one picture, a folder for many (made if missing), - for standard
    /// output; by default beside each picture, with the ending .webp
    #[argh(option, short = 'o', arg_name = "out")]
    output: Option<String>,

    /// from 0 (smallest) to 100 (best), default 85
    #[argh(option, arg_name = "number")]
    quality: Option<String>,

    /// low (quickest), medium (the default) or high (slowest): how much work goes into each file;
    /// the more, the better it looks for its size
    #[argh(option, arg_name = "name")]
    effort: Option<String>,

    /// how pixels are coded: auto (the default), lossy or lossless
    #[argh(option, arg_name = "mode")]
    mode: Option<String>,

    /// the same as --mode lossless
    #[argh(switch)]
    lossless: bool,

    /// how near pixels coded without loss stay to what they were, 0 to 100, default 100: exactly
    #[argh(option, arg_name = "number")]
    near_lossless: Option<String>,

    /// quality of alpha beside lossy pixels, 0 to 100, default 100: without loss
    #[argh(option, arg_name = "number")]
    alpha_quality: Option<String>,

    /// what becomes of a GIF: all (its frames, the default) or first
    #[argh(option, arg_name = "all|first")]
    animation: Option<String>,

    /// what becomes of Exif, XMP and the ICC profile: strip (the default) or keep
    #[argh(option, arg_name = "strip|keep")]
    metadata: Option<String>,

    /// cores to use, each for a picture or several for one; by default all of them
    #[argh(option, arg_name = "number")]
    threads: Option<NonZeroUsize>,

    /// text to draw onto each picture
    #[argh(option, arg_name = "text")]
    watermark: Option<String>,

    /// height of the text's em in pixels, 8 to 200, default 24
    #[argh(option, arg_name = "pixels")]
    watermark_size: Option<String>,

    /// colour of the text: white (the default), black, red, blue, yellow, gray or #RRGGBB
    #[argh(option, arg_name = "color")]
    watermark_color: Option<String>,

    /// what sets the text off from its ground: none (the default), outline or shadow
    #[argh(option, arg_name = "name")]
    watermark_outline: Option<String>,

    /// font for the text (TrueType, OpenType, the first of a collection), may be given more than
    /// once; asked in this order, before the bundled ones
    #[argh(option, arg_name = "file")]
    font: Vec<PathBuf>,

    /// picture to draw onto each picture: a PNG or JPEG file, or its http or https URL
    #[argh(option, arg_name = "file-or-url")]
    watermark_image: Option<String>,

    /// topLeft, top, topRight, left, center, right, bottomLeft, bottom or bottomRight (the default)
    #[argh(option, arg_name = "position")]
    watermark_position: Option<String>,

    /// opacity of watermarks, 0 to 100, default 50
    #[argh(option, arg_name = "number")]
    watermark_opacity: Option<String>,

    /// pixels between watermarks and the edges, or between tiles, by default 2 % of the shorter side
    #[argh(option, arg_name = "pixels")]
    watermark_margin: Option<String>,

    /// percent of each picture's width that watermarks take, 1 to 100, by default their own size
    #[argh(option, arg_name = "percent")]
    watermark_scale: Option<String>,

    /// degrees to turn watermarks clockwise, -360 to 360, default 0
    #[argh(option, arg_name = "degrees")]
    watermark_rotate: Option<String>,

    /// repeat watermarks over the whole picture
    #[argh(switch)]
    watermark_tile: bool,

    /// most pixels that a picture may have, default 100000000
    #[argh(option, arg_name = "number")]
    max_pixels: Option<u64>,
}

/// Converts every input; one that fails does not stop the others.
///
/// # Errors
/// What is wrong with the command, before anything is converted; or which inputs failed and why.
#[expect(clippy::needless_pass_by_value, reason = "a command is run once")]
pub fn run(command: ConvertCommand) -> Result<(), String> {
    let params = command.params()?;
    let steps = plan(&command.inputs, command.output.as_deref())?;
    let threads = command.threads.unwrap_or_else(cores);
    let work = Work {
        cores: Cores::new(threads),
        watermark: params
            .picture_url
            .as_deref()
            .map(load_watermark)
            .transpose()?,
        params,
        fonts: super::fonts(&command.font)?,
        limits: command.limits(),
    };
    make_folders(&steps)?;
    let failures = convert_all(&work, &steps);
    match failures.as_slice() {
        [] => Ok(()),
        [failure] if steps.len() == 1 => Err(failure.clone()),
        many => Err(format!(
            "{} of {} pictures were not converted:\n{}",
            many.len(),
            steps.len(),
            many.join("\n")
        )),
    }
}

/// Makes a lone `-` that stands for an input readable to argh, which takes it for an option. One that follows an option
/// is that option's value and stays.
pub fn name_standard_input(arguments: &mut [String]) {
    for index in 1..arguments.len() {
        if arguments[index] == "-" && !arguments[index - 1].starts_with('-') {
            plan::STANDARD_INPUT.clone_into(&mut arguments[index]);
        }
    }
}

impl ConvertCommand {
    /// The options through the service's own parser.
    fn params(&self) -> Result<Params, String> {
        let tile = self.watermark_tile.then(|| "true".to_owned());
        let lossless = self.lossless.then(|| "true".to_owned());
        let pairs = [
            ("quality", &self.quality),
            ("effort", &self.effort),
            ("mode", &self.mode),
            ("lossless", &lossless),
            ("near_lossless", &self.near_lossless),
            ("alpha_quality", &self.alpha_quality),
            ("animation", &self.animation),
            ("metadata", &self.metadata),
            ("watermark", &self.watermark),
            ("watermark_size", &self.watermark_size),
            ("watermark_color", &self.watermark_color),
            ("watermark_image", &self.watermark_image),
            ("watermark_position", &self.watermark_position),
            ("watermark_outline", &self.watermark_outline),
            ("watermark_opacity", &self.watermark_opacity),
            ("watermark_margin", &self.watermark_margin),
            ("watermark_scale", &self.watermark_scale),
            ("watermark_rotate", &self.watermark_rotate),
            ("watermark_tile", &tile),
        ];
        let given = pairs
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)));
        Params::parse(given).map_err(|error| error.to_string())
    }

    fn limits(&self) -> Limits {
        let default = Limits::default();
        Limits {
            max_pixels: self.max_pixels.unwrap_or(default.max_pixels),
            ..default
        }
    }
}

/// What all conversions share.
struct Work {
    params: Params,
    fonts: Fonts,
    limits: Limits,
    /// The file of the watermark's picture.
    watermark: Option<Arc<[u8]>>,
    /// What pictures share, and the last one has to itself.
    cores: Cores,
}

fn load_watermark(place: &str) -> Result<Arc<[u8]>, String> {
    if !place.starts_with("http://") && !place.starts_with("https://") {
        return fs::read(place)
            .map(Arc::from)
            .map_err(|error| format!("watermark picture {place}: {error}"));
    }
    // Whoever types the command may reach whatever this machine reaches.
    let settings = Settings {
        allow_private: true,
        ..Settings::default()
    };
    Fetcher::new(&settings)?
        .fetch(place, &|| true)
        .map(|fetched| fetched.bytes)
        .map_err(|error| format!("watermark picture {place}: {error}"))
}

fn make_folders(steps: &[Step]) -> Result<(), String> {
    for step in steps {
        if let Target::File(path) = &step.target
            && let Some(folder) = path.parent()
        {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
    }
    Ok(())
}

/// Converts as many at a time as there are cores; returns a line for each failure, in the order of the inputs.
fn convert_all(work: &Work, steps: &[Step]) -> Vec<String> {
    let bar = if steps.len() > 1 && io::stderr().is_terminal() {
        ProgressBar::new(steps.len() as u64)
    } else {
        ProgressBar::hidden()
    };
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let convert_until_done = || {
        while let Some((index, step)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            steps.get(index).map(|step| (index, step))
        } {
            match catch_unwind(AssertUnwindSafe(|| convert(work, step))) {
                Ok(Ok(line)) => bar.suspend(|| eprintln!("{line}")),
                Ok(Err(reason)) => push(&failures, index, format!("{}: {reason}", step.source)),
                Err(_) => push(
                    &failures,
                    index,
                    format!("{}: the conversion failed", step.source),
                ),
            }
            bar.inc(1);
        }
    };
    thread::scope(|scope| {
        for _ in 1..work.cores.total().min(steps.len()) {
            scope.spawn(convert_until_done);
        }
        convert_until_done();
    });
    bar.finish_and_clear();
    let mut failures = failures
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    failures.sort();
    failures.into_iter().map(|(_, line)| line).collect()
}

fn push(failures: &Mutex<Vec<(usize, String)>>, index: usize, line: String) {
    failures
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .push((index, line));
}

/// Converts one input; returns the line that says so.
fn convert(work: &Work, step: &Step) -> Result<String, String> {
    let bytes = read(&step.source).map_err(|error| error.to_string())?;
    let format = Format::sniff(&bytes).ok_or("it looks like none of PNG, JPEG, GIF and BMP")?;
    let job = Job {
        bytes: &bytes,
        format,
        params: &work.params,
        watermark_picture: work.watermark.as_deref(),
        fonts: &work.fonts,
        limits: &work.limits,
        threads: work.cores.total(),
        caller: &work.cores,
    };
    let own_core = work.cores.occupy();
    let conversion = conversion::run(&job).map_err(|error| error.to_string())?;
    drop(own_core);
    write(&step.target, &conversion.webp).map_err(|error| format!("{}: {error}", step.target))?;
    Ok(describe(step, bytes.len(), &conversion))
}

fn describe(step: &Step, input_bytes: usize, conversion: &Conversion) -> String {
    let Conversion {
        webp,
        width,
        height,
        coding,
        timing,
    } = conversion;
    let spent = timing.decode + timing.watermark + timing.encode;
    format!(
        "{} -> {}: {width} x {height}, {}, {} -> {} ({} %), {} ms",
        step.source,
        step.target,
        coding.name(),
        HumanBytes(input_bytes as u64),
        HumanBytes(webp.len() as u64),
        webp.len() * 100 / input_bytes.max(1),
        spent.as_millis()
    )
}

fn read(source: &Source) -> io::Result<Vec<u8>> {
    match source {
        Source::File(path) => fs::read(path),
        Source::StandardInput => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes)?;
            Ok(bytes)
        }
    }
}

fn write(target: &Target, webp: &[u8]) -> io::Result<()> {
    match target {
        Target::File(path) => write_whole(path, webp),
        Target::StandardOutput => {
            let mut output = io::stdout().lock();
            output.write_all(webp)?;
            output.flush()
        }
    }
}

/// Writes beside the target and renames, so that nobody ever sees half a file.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = path.with_file_name(format!(".{name}.{}.tmp", process::id()));
    let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished); // the first error is the one to tell
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of the test's own, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path =
                std::env::temp_dir().join(format!("towebp-convert-{name}-{}", process::id()));
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
        run(ConvertCommand::from_args(&["convert"], arguments).expect("valid arguments"))
    }

    fn is_webp(path: &str) -> bool {
        fs::read(path)
            .is_ok_and(|bytes| bytes.starts_with(b"RIFF") && bytes[8..].starts_with(b"WEBP"))
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
            error.starts_with("Parameter watermark_position: \"middle\" was given"),
            "{error}"
        );
        let folder = Folder::new("limits");
        let input = folder.png("a.png", 16);
        convert(&[&input, "--max-pixels", "128"]).expect("16 x 8 is 128");
        let error = convert(&[&input, "--max-pixels", "127"]).expect_err("16 x 8 is 128");
        assert!(error.contains("at most 127"), "{error}");
    }

    #[test]
    fn a_lone_dash_is_an_input_unless_it_is_an_options_value() {
        let mut arguments =
            ["towebp", "convert", "-", "-o", "-", "--quality", "5", "-"].map(str::to_owned);
        name_standard_input(&mut arguments);
        let expected = [
            "towebp",
            "convert",
            "/dev/stdin",
            "-o",
            "-",
            "--quality",
            "5",
            "/dev/stdin",
        ];
        assert_eq!(arguments, expected);
    }
}
