//! `towebp cwebp` and `towebp gif2webp`: the command lines of libwebp's programs, by the conversion
//! of this one. They also run by those names, as links to the program.

mod flags;

use super::names::shown;
use super::output::Output;
use super::say;
use super::shared::cores;
use crate::process::interrupt::Outputs;
use clap::Args;
use flags::{CWEBP, Call, Flag, GIF2WEBP, Measure, Print, Switch};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs};
use towebp_pipeline::conversion::{
    self, Cancel, Coding, Conversion, CpuBudget, Fonts, Job, Params,
};
use towebp_pipeline::image::{self, Format, Image, Limits};

/// The arguments of a command that reads them by itself.
#[derive(Args)]
pub(super) struct Arguments {
    /// the arguments of that program
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    _arguments: Vec<OsString>,
}

/// The version of libwebp whose flags these are.
const VERSION: &str = "1.6.0";

/// The exit code of a failure: these programs return -1.
const FAILURE: u8 = 255;

/// A program of libwebp.
struct Program {
    name: &'static str,
    flags: &'static [Flag],
    usage: &'static str,
    /// The parameters without a flag.
    defaults: &'static [(&'static str, &'static str)],
}

static PROGRAMS: [Program; 2] = [
    Program {
        name: "cwebp",
        flags: CWEBP,
        usage: "Usage:\n\n   cwebp [options] -q quality input.png -o output.webp\n\nwhere quality is between 0 (poor) to \
                100 (very good).\nTypical value is around 80.\n\nTry -longhelp for an exhaustive list of advanced options.",
        defaults: &[("mode", "lossy"), ("animation", "first")],
    },
    Program {
        name: "gif2webp",
        flags: GIF2WEBP,
        usage: "Usage:\n gif2webp [options] gif_file -o webp_file",
        defaults: &[("mode", "lossless"), ("metadata", "keep")],
    },
];

/// Runs one of these programs if the process has its name, or its name is the first argument.
pub(super) fn run_by_name(arguments: &[OsString]) -> Option<ExitCode> {
    let started = env::args_os().next().unwrap_or_default();
    let find = |name: &Path| {
        let stem = name.file_stem()?;
        PROGRAMS.iter().find(|program| stem == program.name)
    };
    let (program, arguments) = if let Some(program) = find(Path::new(&started)) {
        (program, arguments)
    } else {
        let (first, rest) = arguments.split_first()?;
        let mut programs = PROGRAMS.iter();
        (programs.find(|program| *first == *program.name)?, rest)
    };
    let arguments: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
    Some(match program.run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            say::note(&line);
            ExitCode::from(FAILURE)
        }
    })
}

impl Program {
    fn run(&self, arguments: &[PathBuf]) -> Result<(), String> {
        if arguments.is_empty() {
            return say::print(self.usage);
        }
        let mut call = flags::read(self.flags, arguments)?;
        match call.prints {
            Some(Print::Help) => return say::print(self.usage),
            Some(Print::LongHelp) => return say::print(&self.long_help()),
            Some(Print::Version) if self.name == "cwebp" => return say::print(VERSION),
            Some(Print::Version) => {
                let versions =
                    format!("WebP Encoder version: {VERSION}\nWebP Mux version: {VERSION}");
                return say::print(&versions);
            }
            None => {}
        }
        let Some(input) = call.input.take() else {
            return Err(format!("No input file specified!\n{}", self.usage));
        };
        self.complete(&mut call);
        self.convert(&call, &input)
    }

    fn long_help(&self) -> String {
        let mut help = format!("{}\n\nOptions:", self.usage);
        for flag in self.flags {
            let values = " <value>".repeat(flag.values);
            let meaning = flag.meaning.replace('`', "");
            help += &["\n  ", &flag.names.join(" / "), &values, "  ", &meaning].concat();
        }
        help
    }

    /// Adds the defaults, and takes out what excludes each other: here the last flag does not win.
    fn complete(&self, call: &mut Call) {
        for &(name, value) in self.defaults {
            if !call.has(name) {
                call.set(name, value);
            }
        }
        // As libwebp has it: a size goes before a PSNR, and both before a quality. None of them
        // counts without loss.
        let goals = ["max_bytes", "target", "quality"];
        if call.is_lossless() {
            if !call.is(Switch::Quiet) && (call.has("max_bytes") || call.has("target")) {
                say::note(
                    "Encoding for specified size or PSNR is not supported for lossless encoding. Ignoring such option(s)!",
                );
            }
            call.parameters
                .retain(|(name, _)| !goals.contains(name) && *name != "best_effort");
        } else if let Some(first) = goals.iter().position(|goal| call.has(goal)) {
            call.parameters
                .retain(|(name, _)| !goals[first + 1..].contains(name));
        } else {
            call.set("quality", "75");
        }
    }

    fn convert(&self, call: &Call, input: &Path) -> Result<(), String> {
        let note = |line: String| {
            if !call.is(Switch::Quiet) {
                say::note(&line);
            }
        };
        let unreadable = |reason: &str| {
            format!(
                "Error! Cannot read input picture file '{}': {reason}",
                shown(input)
            )
        };
        let started = Instant::now();
        let bytes = read(input).map_err(|error| unreadable(&error.to_string()))?;
        let format = Format::sniff(&bytes)
            .ok_or_else(|| unreadable("it is no PNG, JPEG, GIF, BMP, WebP or TIFF"))?;
        if call.is(Switch::Verbose) {
            note(format!(
                "Time to read input: {:.3}s",
                started.elapsed().as_secs_f64()
            ));
        }
        let is_gif2webp = self.name == "gif2webp";
        match &call.output {
            None if !call.is(Switch::Short) && !is_gif2webp => note(
                "No output file specified (no -o flag). Encoding will\nbe performed, but its results discarded.\n".to_owned(),
            ),
            Some(output) if !call.is(Switch::Short) && !is_gif2webp => {
                note(format!("Saving file '{}'", shown(output)));
            }
            _ => {}
        }
        if call.is(Switch::Progress) {
            note(format!("[{}]:   0 %", shown(input)));
        }
        let started = Instant::now();
        let converted = encode(&bytes, format, &call.parameters)?;
        if call.is(Switch::Progress) {
            note(format!("[{}]: 100 %", shown(input)));
        }
        if call.is(Switch::Verbose) {
            note(format!(
                "Time to encode picture: {:.3}s",
                started.elapsed().as_secs_f64()
            ));
        }
        let file = if converted.prefers_original {
            &bytes
        } else {
            &converted.webp
        };
        if let Some(output) = &call.output {
            write(output, file).map_err(|error| {
                format!(
                    "Error! Cannot open output file '{}': {error}",
                    shown(output)
                )
            })?;
        }
        if call.is(Switch::Quiet) {
            return Ok(());
        }
        if is_gif2webp {
            let size = file.len();
            note(match &call.output {
                Some(output) => format!("Saved output file ({size} bytes): {}", shown(output)),
                None => format!("Nothing written; use -o flag to save the result ({size} bytes)."),
            });
            return Ok(());
        }
        if !call.is(Switch::Short) {
            let is_lossless = converted.coding == Coding::Lossless;
            let coding = if is_lossless { " (lossless)" } else { "" };
            let (width, height, size) = (converted.width, converted.height, file.len());
            note(format!(
                "File:      {}\nDimension: {width} x {height}\nOutput:    {size} bytes{coding}",
                shown(input)
            ));
        }
        let of_short = call.is(Switch::Short).then_some(Measure::Psnr);
        if let Some(measure) = call.measure.or(of_short) {
            let exact = encode(&bytes, format, &exact(&call.parameters))?;
            note(measured(call, &decode(&exact.webp)?, file, measure)?);
        }
        Ok(())
    }
}

/// The line with a measure of the file, beside the picture without loss.
fn measured(call: &Call, exact: &Image, file: &[u8], measure: Measure) -> Result<String, String> {
    let [red, green, blue, alpha, all] = values(exact, &decode(file)?, measure);
    if call.is(Switch::Short) {
        return Ok(format!("{:7} {all:2.2}", file.len()));
    }
    let name = match measure {
        Measure::Psnr => "PSNR",
        Measure::Ssim => "SSIM",
    };
    Ok(format!(
        "{name}: B:{blue:.2} G:{green:.2} R:{red:.2} A:{alpha:.2}  Total:{all:.2}"
    ))
}

/// The parameters of the same picture without loss, to which the file is compared.
fn exact(parameters: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    const SHAPE: [&str; 7] = [
        "animation",
        "crop",
        "width",
        "height",
        "fit",
        "enlarge",
        "background",
    ];
    let mut kept: Vec<_> = parameters
        .iter()
        .filter(|(name, _)| SHAPE.contains(name))
        .cloned()
        .collect();
    kept.push(("mode", "lossless".to_owned()));
    kept.push(("effort", "low".to_owned()));
    kept
}

fn encode(
    bytes: &[u8],
    format: Format,
    parameters: &[(&'static str, String)],
) -> Result<Conversion, String> {
    let pairs = parameters
        .iter()
        .map(|(name, value)| (*name, value.as_str()));
    let failed =
        |reason: &dyn std::fmt::Display| format!("Error! Cannot encode picture as WebP\n{reason}");
    let params = Params::parse(pairs).map_err(|error| failed(&error.detail))?;
    let cpu_budget = CpuBudget::new(cores());
    let job = Job {
        bytes,
        format,
        params: &params,
        watermark_picture: None,
        fonts: Fonts::bundled(),
        limits: &Limits::DEFAULT,
        threads: cores().get(),
        cpu_budget: Some(&cpu_budget),
        cancel: &Cancel::never(),
    };
    conversion::run(&job).map_err(|error| failed(&error.detail()))
}

fn decode(webp: &[u8]) -> Result<Image, String> {
    image::decode(webp, Format::Webp, &Limits::DEFAULT, &Cancel::never())
        .map_err(|error| error.to_string())
}

/// The measure of red, green, blue, alpha and all, in dB; 99 for no difference.
fn values(before: &Image, after: &Image, measure: Measure) -> [f64; 5] {
    let channels = |image: &Image, channel: usize| -> Vec<f64> {
        let count = image.layout.channels();
        let sample = |pixel: &[u8]| f64::from(pixel.get(channel).copied().unwrap_or(255));
        image.pixels.chunks_exact(count).map(sample).collect()
    };
    let decibels = |error: f64| {
        if error > 0.0 {
            (-10.0 * error.log10()).min(99.0)
        } else {
            99.0
        }
    };
    let errors = [0, 1, 2, 3].map(|channel| {
        let (before_samples, after_samples) = (channels(before, channel), channels(after, channel));
        match measure {
            Measure::Psnr => {
                let squares = before_samples
                    .iter()
                    .zip(&after_samples)
                    .map(|(a, b)| (a - b).powi(2));
                squares.sum::<f64>() / before_samples.len() as f64 / 255.0_f64.powi(2)
            }
            Measure::Ssim => {
                1.0 - similarity(&before_samples, &after_samples, before.width as usize)
            }
        }
    });
    let [red, green, blue, alpha] = errors.map(decibels);
    [
        red,
        green,
        blue,
        alpha,
        decibels(errors.iter().sum::<f64>() / 4.0),
    ]
}

/// The mean structural similarity of blocks of 8 by 8 samples.
fn similarity(before: &[f64], after: &[f64], width: usize) -> f64 {
    const SIDE: usize = 8;
    const C1: f64 = 6.5025;
    const C2: f64 = 58.5225;
    let height = before.len() / width;
    let (mut sum, mut count) = (0.0, 0.0);
    for top in (0..height).step_by(SIDE) {
        for left in (0..width).step_by(SIDE) {
            let rows = top..height.min(top + SIDE);
            let places: Vec<usize> = rows
                .flat_map(|y| (left..width.min(left + SIDE)).map(move |x| y * width + x))
                .collect();
            let mean = |of: &dyn Fn(usize) -> f64| {
                places.iter().map(|at| of(*at)).sum::<f64>() / places.len() as f64
            };
            let (a, b) = (mean(&|at| before[at]), mean(&|at| after[at]));
            let covariance = mean(&|at| (before[at] - a) * (after[at] - b));
            let variances = mean(&|at| (before[at] - a).powi(2) + (after[at] - b).powi(2));
            sum += (2.0 * a * b + C1) * (2.0 * covariance + C2)
                / ((a * a + b * b + C1) * (variances + C2));
            count += 1.0;
        }
    }
    sum / count
}

fn read(input: &Path) -> io::Result<Vec<u8>> {
    if input != Path::new("-") {
        return fs::read(input);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(output: &Path, file: &[u8]) -> io::Result<()> {
    if output == Path::new("-") {
        let mut out = io::stdout().lock();
        return out.write_all(file).and_then(|()| out.flush());
    }
    Output::find(output)?.write(file, 0o666, true, &Outputs::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page has a row for each flag, with the words of the table.
    #[test]
    fn the_page_has_each_flag() {
        let page = include_str!("../../docs/cwebp.md");
        for program in &PROGRAMS {
            let heading = format!("## {}\n", program.name);
            let (_, section) = page
                .split_once(&heading)
                .expect("a heading for each program");
            let section = section.split("\n## ").next().unwrap_or_default();
            let rows: Vec<String> = program.flags.iter().map(row).collect();
            let table: Vec<&str> = section
                .lines()
                .filter(|line| line.starts_with("| `-"))
                .collect();
            assert_eq!(table, rows, "expected:\n{}", rows.join("\n"));
        }
    }

    fn row(flag: &Flag) -> String {
        format!("| `{}` | {} |", flag.names.join("`, `"), flag.meaning)
    }

    fn read_cwebp(line: &str) -> Result<Call, String> {
        let arguments: Vec<PathBuf> = line.split(' ').map(PathBuf::from).collect();
        let mut call = flags::read(CWEBP, &arguments)?;
        PROGRAMS[0].complete(&mut call);
        Ok(call)
    }

    #[test]
    fn flags_become_parameters() {
        for (line, expected) in [
            ("a.png", "animation=first mode=lossy quality=75"),
            (
                "-q 80.4 -m 6 a.png",
                "animation=first effort=max mode=lossy quality=80",
            ),
            ("a.png -lossless -q 3", "animation=first mode=lossless"),
            ("-z 9 a.png", "animation=first effort=max mode=lossless"),
            (
                "-near_lossless 60 a.png",
                "animation=first mode=lossless near_lossless=60",
            ),
            (
                "-size 30000 -psnr 42 -q 5 a",
                "animation=first best_effort=true max_bytes=30000 mode=lossy",
            ),
            ("-psnr 44 a", "animation=first mode=lossy target=88"),
            (
                "-crop 1 2 30 40 -resize 400 0 a",
                "animation=first crop=1,2,30,40 enlarge=true fit=fill height=0 mode=lossy quality=75 width=400",
            ),
            (
                "-metadata exif,icc -blend_alpha 0xFF8000 -noalpha a",
                "animation=first background=#ff8000 metadata=keep mode=lossy quality=75",
            ),
            (
                "-metadata icc -alpha_q 010 a",
                "alpha_quality=8 animation=first metadata=icc mode=lossy quality=75",
            ),
        ] {
            let call = read_cwebp(line).expect("valid flags");
            let mut parameters: Vec<String> = call
                .parameters
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            parameters.sort();
            assert_eq!(parameters.join(" "), expected, "{line}");
            let pairs = call
                .parameters
                .iter()
                .map(|(name, value)| (*name, value.as_str()));
            Params::parse(pairs).expect("they are parameters");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (line, expected) in [
            ("-nope a", "Unknown option '-nope'"),
            ("a -q", "Unknown option '-q'"),
            ("-q high a", "'high' is not a floating point number"),
            ("-q 101 a", "'101' was given; allowed is 0 to 100"),
            ("-m 7 a", "'7' was given; allowed is 0 to 6"),
            ("-crop 1 2 3 x a", "'x' is not an integer"),
            ("-preset nice a", "Unrecognized value of -preset: nice"),
            ("-metadata gps a", "Unknown metadata type 'gps'"),
        ] {
            let error = read_cwebp(line).expect_err("a mistake");
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
