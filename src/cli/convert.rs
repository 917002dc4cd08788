//! `towebp convert`: files through the same [`conversion::run`] as the server, by the same parameters.

mod plan;

use super::output::{Late, Output};
use super::{cores, say};
use crate::conversion::{self, Cancel, Conversion, CpuBudget, Fonts, Job, Params};
use crate::fetch::{Fetcher, Settings};
use crate::image::{Format, Limits};
use crate::process::interrupt::{self, Outputs};
use argh::{ArgsInfo, FromArgs};
use indicatif::{HumanBytes, ProgressBar};
pub use plan::STANDARD_INPUT;
use plan::{Source, Step, Target, plan};
use std::io::{self, IsTerminal, Read, Write};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, thread};

/// Convert pictures (PNG, JPEG, GIF, BMP) to WebP. An existing file is replaced if its name ends in
/// .webp, else only with --force; an input never is.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "convert", help_triggers("-h", "--help", "help"))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct ConvertCommand {
    /// pictures to convert; - is standard input
    #[argh(positional, arg_name = "in")]
    inputs: Vec<String>,

    /// where to: a file for one picture, a folder for many (made if missing), - for standard
    /// output; by default beside each picture, with the ending .webp
    #[argh(option, short = 'o', arg_name = "out")]
    output: Option<String>,

    /// replace an existing file whose name does not end in .webp, too
    #[argh(switch)]
    force: bool,

    /// never replace a file: pictures whose WebP exists are passed over in silence, and the exit code is 0
    #[argh(switch)]
    no_clobber: bool,

    /// do not convert pictures whose WebP exists, and say so
    #[argh(switch)]
    skip_existing: bool,

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

    /// color of the text: white (the default), black, red, blue, yellow, gray, #RRGGBB or #RGB
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
    let existing = command.existing()?;
    let steps = plan(&command.inputs, command.output.as_deref())?;
    let threads = command.threads.unwrap_or_else(cores);
    let work = Work {
        cpu_budget: CpuBudget::new(threads),
        watermark: params
            .picture_url
            .as_deref()
            .map(load_watermark)
            .transpose()?,
        params,
        fonts: super::fonts(&command.font)?,
        limits: command.limits(),
        existing,
        outputs: Outputs::default(),
    };
    make_folders(&steps)?;
    convert_all(&work, &steps)
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

    fn existing(&self) -> Result<Existing, String> {
        match (self.force, self.no_clobber, self.skip_existing) {
            (true, false, false) => Ok(Existing::Replace),
            (true, ..) => Err(
                "--force replaces files and --no-clobber and --skip-existing keep them: \
                     give only one of these"
                    .to_owned(),
            ),
            (false, _, true) => Ok(Existing::Skip),
            (false, true, false) => Ok(Existing::SkipInSilence),
            (false, false, false) => Ok(Existing::ReplaceWebp),
        }
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
    cpu_budget: CpuBudget,
    existing: Existing,
    outputs: Outputs,
}

/// What becomes of a regular file that is at a target's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Existing {
    Replace,
    /// It is replaced if its name ends in `.webp`, else the picture fails.
    ReplaceWebp,
    Skip,
    SkipInSilence,
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

/// What became of one input.
enum Outcome {
    /// With the line that says so.
    Converted(String),
    /// With the line that says so, if it should be said.
    Skipped(Option<String>),
}

/// How far a batch is.
struct Progress {
    bar: ProgressBar,
    total: usize,
    /// Places of inputs that failed, each with a line that says why.
    failures: Mutex<Vec<(usize, String)>>,
}

impl Progress {
    fn new(total: usize) -> Progress {
        let bar = if total > 1 && io::stderr().is_terminal() {
            ProgressBar::new(total as u64)
        } else {
            ProgressBar::hidden()
        };
        Progress {
            bar,
            total,
            failures: Mutex::default(),
        }
    }

    fn add_failure(&self, index: usize, line: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push((index, line));
    }

    /// The lines of those that failed, in the order of the inputs.
    fn failures(&self) -> Vec<String> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.sort();
        failures.iter().map(|(_, line)| line.clone()).collect()
    }

    /// What is said when a signal ends the batch.
    fn say_interrupted(&self, converted: usize) {
        self.bar.finish_and_clear();
        let total = self.total;
        let mut lines = vec![format!(
            "towebp: interrupted when {converted} of {total} pictures were converted"
        )];
        lines.extend(self.failures());
        say::note(&lines.join("\n"));
    }
}

/// Converts as many at a time as there are cores.
fn convert_all(work: &Work, steps: &[Step]) -> Result<(), String> {
    let progress = Arc::new(Progress::new(steps.len()));
    interrupt::catch(&work.outputs, {
        let progress = Arc::clone(&progress);
        move |converted| progress.say_interrupted(converted)
    })?;
    let next = AtomicUsize::new(0);
    let convert_until_done = || {
        while let Some((index, step)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            steps.get(index).map(|step| (index, step))
        } {
            match catch_unwind(AssertUnwindSafe(|| convert(work, step))) {
                Ok(Ok(Outcome::Converted(line) | Outcome::Skipped(Some(line)))) => {
                    progress.bar.suspend(|| say::note(&line));
                }
                Ok(Ok(Outcome::Skipped(None))) => {}
                Ok(Err(reason)) => {
                    progress.add_failure(index, format!("{}: {reason}", step.source));
                }
                Err(_) => {
                    progress.add_failure(index, format!("{}: the conversion failed", step.source));
                }
            }
            progress.bar.inc(1);
        }
    };
    thread::scope(|scope| {
        for _ in 1..work.cpu_budget.total().min(steps.len()) {
            scope.spawn(convert_until_done);
        }
        convert_until_done();
    });
    progress.bar.finish_and_clear();
    match progress.failures().as_slice() {
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

/// Converts one input. What its target is gets looked at first: a picture that is not to be written is not read.
fn convert(work: &Work, step: &Step) -> Result<Outcome, String> {
    let output = match &step.target {
        Target::StandardOutput => None,
        Target::File(path) => {
            let found = Output::find(path);
            let output = found.map_err(|error| format!("{}: {error}", step.target))?;
            if let Some(file) = output.replaces()
                && let Some(skipped) = work.existing.skips(step, file)?
            {
                return Ok(skipped);
            }
            Some(output)
        }
    };
    let bytes = read(&step.source).map_err(|error| error.to_string())?;
    let format = Format::sniff(&bytes).ok_or("it looks like none of PNG, JPEG, GIF and BMP")?;
    let job = Job {
        bytes: &bytes,
        format,
        params: &work.params,
        watermark_picture: work.watermark.as_deref(),
        fonts: &work.fonts,
        limits: &work.limits,
        threads: work.cpu_budget.total(),
        cpu_budget: Some(&work.cpu_budget),
        cancel: &Cancel::never(),
    };
    let own_core = work.cpu_budget.occupy();
    let conversion = conversion::run(&job).map_err(|error| error.to_string())?;
    drop(own_core);
    let written = match &output {
        None => write_standard_output(&conversion.webp, &work.outputs),
        Some(output) => output.write(&conversion.webp, 0o666, work.existing.late(), &work.outputs),
    };
    match written {
        Ok(()) => Ok(Outcome::Converted(describe(step, bytes.len(), &conversion))),
        // It was made while the picture was converted.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let skipped = match &step.target {
                Target::File(path) => work.existing.skips(step, path)?,
                Target::StandardOutput => None,
            };
            skipped.ok_or_else(|| format!("{}: {error}", step.target))
        }
        Err(error) => Err(format!("{}: {error}", step.target)),
    }
}

impl Existing {
    /// Whether a picture is passed over because of the regular file that would be replaced.
    ///
    /// # Errors
    /// The file is not to be replaced, and the picture therefore not converted.
    fn skips(self, step: &Step, file: &Path) -> Result<Option<Outcome>, String> {
        let is_webp = file
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("webp"));
        match self {
            Existing::Skip => Ok(Some(Outcome::Skipped(Some(format!(
                "{}: skipped, since {} exists",
                step.source, step.target
            ))))),
            Existing::SkipInSilence => Ok(Some(Outcome::Skipped(None))),
            Existing::ReplaceWebp if !is_webp => Err(format!(
                "{} exists, and its name does not end in .webp: give --force to replace it, or another -o",
                file.display()
            )),
            Existing::Replace | Existing::ReplaceWebp => Ok(None),
        }
    }

    /// What becomes of a file that appears while the picture is converted.
    fn late(self) -> Late {
        match self {
            Existing::Replace | Existing::ReplaceWebp => Late::Replace,
            Existing::Skip | Existing::SkipInSilence => Late::Keep,
        }
    }
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

fn write_standard_output(webp: &[u8], outputs: &Outputs) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(webp)?;
    output.flush()?;
    outputs.count_finished();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process;

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
}
