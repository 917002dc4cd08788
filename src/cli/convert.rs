//! `towebp convert`: converts files with the same [`crate::conversion`] as the server, by the same
//! parameters.

mod batch;
mod existing;
mod folders;
mod naming;
mod progress;
mod report;
mod tasks;

pub use tasks::STANDARD_INPUT;

use super::failure::Failure;
use super::shared::{cores, fonts};
use crate::conversion::{CpuBudget, IfLarger, Params};
use crate::fetch::{Fetcher, Settings};
use crate::image::Limits;
use crate::process::interrupt::Outputs;
use argh::{ArgsInfo, FromArgs};
use batch::{Batch, Rules};
use existing::Existing;
use naming::Name;
use progress::Messages;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use tasks::{Destination, Plan, Target, plan};

/// Convert pictures (PNG, JPEG, GIF, BMP) to WebP. An existing file is replaced if its name ends in
/// .webp, else only with --force; an input never is. What is a WebP already is passed over.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "convert", help_triggers("-h", "--help"))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct ConvertCommand {
    /// pictures to convert, and with -r folders; - is standard input
    #[argh(positional, arg_name = "in")]
    inputs: Vec<String>,

    /// where to: a folder (made if missing) if OUT ends in /, is one, or there are several inputs
    /// or -r; else a file; - is standard output. By default beside each picture
    #[argh(option, short = 'o', arg_name = "out")]
    output: Option<String>,

    /// convert the pictures in folders and all folders below, hidden ones apart; with -o the same
    /// folders are made in OUT
    #[argh(switch, short = 'r')]
    recursive: bool,

    /// the names of the WebP files, with {stem} for the input's name without its ending and
    /// {ext} for the ending (default {stem}.webp)
    #[argh(option, arg_name = "name")]
    name: Option<String>,

    /// replace an existing file whose name does not end in .webp, too
    #[argh(switch)]
    force: bool,

    /// never replace a file: pictures whose WebP exists are skipped in silence, and the exit
    /// code is 0
    #[argh(switch)]
    no_clobber: bool,

    /// do not convert pictures whose WebP exists, and say so
    #[argh(switch)]
    skip_existing: bool,

    /// convert only pictures that were changed after their WebP was written, or have none
    #[argh(switch)]
    newer: bool,

    /// write no WebP that is not smaller than its picture, and say so
    #[argh(switch)]
    skip_if_larger: bool,

    /// say what would be done, and write nothing
    #[argh(switch)]
    dry_run: bool,

    /// from 0 (smallest) to 100 (best), default 85
    #[argh(option, arg_name = "number")]
    quality: Option<String>,

    /// most bytes of each file, with the best quality that fits: 100k is 100000, 2M is 2000000
    #[argh(option, arg_name = "bytes")]
    max_bytes: Option<String>,

    /// write the smallest file if none has as few bytes as --max-bytes
    #[argh(switch)]
    best_effort: bool,

    /// least score of SSIMULACRA2, 30 to 95, of the smallest file that looks at least so good
    #[argh(option, arg_name = "score")]
    target: Option<String>,

    /// low (quickest), medium (the default), high or max (slowest): how much work goes into each
    /// file; the more, the better it looks for its size
    #[argh(option, arg_name = "low|medium|high|max")]
    effort: Option<String>,

    /// how pixels are coded: auto (the default), lossy or lossless
    #[argh(option, arg_name = "auto|lossy|lossless")]
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

    /// what becomes of an animated GIF or PNG: all (its frames, the default) or first
    #[argh(option, arg_name = "all|first")]
    animation: Option<String>,

    /// what becomes of Exif, XMP and the ICC profile: strip (the default) or keep
    #[argh(option, arg_name = "strip|keep")]
    metadata: Option<String>,

    /// what is kept of a picture whose WebP is not smaller: webp (the default) or original, which
    /// is copied under the WebP's name, but with its own ending
    #[argh(option, arg_name = "webp|original")]
    if_larger: Option<String>,

    /// width of the box in pixels that each picture is resized to, 1 to 16383; alone, the height
    /// follows from the proportions
    #[argh(option, arg_name = "pixels")]
    width: Option<String>,

    /// height of that box, 1 to 16383; alone, the width follows
    #[argh(option, arg_name = "pixels")]
    height: Option<String>,

    /// how pictures are fitted to the box: contain (all of the picture within it, the default;
    /// inside is the same), cover (it is filled, the rest is cut off) or fill (by stretching)
    #[argh(option, arg_name = "contain|cover|fill")]
    fit: Option<String>,

    /// the part that stays with --fit cover, a name as of --watermark-position, default center
    #[argh(option, arg_name = "position")]
    gravity: Option<String>,

    /// let pictures become larger than they are
    #[argh(switch)]
    enlarge: bool,

    /// pixels of the device for each of --width and --height, 0.1 to 8, default 1
    #[argh(option, arg_name = "number")]
    dpr: Option<String>,

    /// text to draw onto each picture
    #[argh(option, arg_name = "text")]
    watermark: Option<String>,

    /// height of the text's em: pixels, 8 to 200, default 24; or a share of each picture's shorter
    /// side such as 3%; or auto, 2.5 % of it and at least 12 pixels. Of the latter two, long lines
    /// are broken at spaces
    #[argh(option, arg_name = "pixels|percent|auto")]
    watermark_size: Option<String>,

    /// color of the text: white (the default), black, red, blue, yellow, gray, #RRGGBB or #RGB
    #[argh(option, arg_name = "color")]
    watermark_color: Option<String>,

    /// what sets the text off from the picture: none (the default), outline or shadow
    #[argh(option, arg_name = "none|outline|shadow")]
    watermark_outline: Option<String>,

    /// font for the text (TrueType, OpenType, the first of a collection), may be given more than
    /// once; used in this order, before the bundled ones
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

    /// pixels between watermarks and the edges, or between tiles, or a share of each picture's
    /// shorter side such as 2.5%; by default 2 % of it
    #[argh(option, arg_name = "pixels|percent")]
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

    /// say nothing but what failed
    #[argh(switch, short = 'q')]
    quiet: bool,

    /// print an object of JSON for each picture, and one with the total
    #[argh(switch)]
    json: bool,

    /// cores to use, each for a picture or several for one; by default all of them
    #[argh(option, arg_name = "number")]
    threads: Option<NonZeroUsize>,

    /// most pixels that a picture may have, default 100000000
    #[argh(option, arg_name = "number")]
    max_pixels: Option<u64>,
}

/// Converts every input; one that fails does not stop the others.
///
/// # Errors
/// What is wrong with the command, before anything is converted; or which inputs failed and why.
#[expect(clippy::needless_pass_by_value, reason = "a command is run once")]
pub fn run(command: ConvertCommand) -> Result<(), Failure> {
    let prepared = command.prepare().map_err(Failure::Usage)?;
    let picture = prepared.params.picture_url.as_deref();
    let batch = Batch {
        watermark: picture.map(load_watermark).transpose()?,
        params: prepared.params,
        fonts: fonts(&command.font)?,
        limits: command.limits(),
        cpu_budget: CpuBudget::new(command.threads.unwrap_or_else(cores)),
        existing: prepared.existing,
        rules: Rules {
            newer: command.newer,
            skip_if_larger: command.skip_if_larger,
            dry_run: command.dry_run,
        },
        messages: command.messages(),
        outputs: Outputs::default(),
    };
    Ok(batch.convert_all(&prepared.plan)?)
}

/// What the flags say, after it was checked.
struct Prepared {
    params: Params,
    existing: Existing,
    plan: Plan,
}

impl ConvertCommand {
    /// Checks all that can be wrong with the command, before anything is done.
    fn prepare(&self) -> Result<Prepared, String> {
        let params = self.params()?;
        let existing = self.existing()?;
        if self.skip_if_larger && params.if_larger == IfLarger::Original {
            return Err(
                "--skip-if-larger writes nothing in place of a WebP, and --if-larger original a copy: \
                        give one of the two"
                    .to_owned(),
            );
        }
        let destination = Destination {
            output: self.output.clone(),
            recursive: self.recursive,
            name: self.name.as_deref().map(Name::parse).transpose()?,
        };
        let plan = plan(&self.inputs, &destination)?;
        let prints = |task: &tasks::Task| task.target == Target::StandardOutput;
        if plan.tasks.iter().any(prints) {
            for (flag, is_given) in [
                ("--json", self.json),
                ("--skip-if-larger", self.skip_if_larger),
                ("--dry-run", self.dry_run),
            ] {
                if is_given {
                    return Err(format!(
                        "{flag} and a WebP on standard output were given; give -o FILE, or no {flag}"
                    ));
                }
            }
        }
        Ok(Prepared {
            params,
            existing,
            plan,
        })
    }

    fn messages(&self) -> Messages {
        if self.json {
            Messages::Json
        } else if self.quiet {
            Messages::None
        } else {
            Messages::Lines
        }
    }

    /// Parses the options as the service parses its parameters.
    fn params(&self) -> Result<Params, String> {
        let tile = self.watermark_tile.then(|| "true".to_owned());
        let lossless = self.lossless.then(|| "true".to_owned());
        let enlarge = self.enlarge.then(|| "true".to_owned());
        let best_effort = self.best_effort.then(|| "true".to_owned());
        let pairs = [
            ("quality", &self.quality),
            ("max_bytes", &self.max_bytes),
            ("best_effort", &best_effort),
            ("target", &self.target),
            ("effort", &self.effort),
            ("mode", &self.mode),
            ("lossless", &lossless),
            ("near_lossless", &self.near_lossless),
            ("alpha_quality", &self.alpha_quality),
            ("animation", &self.animation),
            ("metadata", &self.metadata),
            ("if_larger", &self.if_larger),
            ("width", &self.width),
            ("height", &self.height),
            ("fit", &self.fit),
            ("gravity", &self.gravity),
            ("enlarge", &enlarge),
            ("dpr", &self.dpr),
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
        Params::parse(given).map_err(|error| in_flags(&error.to_string()))
    }

    fn existing(&self) -> Result<Existing, String> {
        if self.newer && (self.no_clobber || self.skip_existing) {
            return Err(
                "--newer replaces files and --no-clobber and --skip-existing keep them: \
                 give only one of these"
                    .to_owned(),
            );
        }
        Existing::new(self.force, self.no_clobber, self.skip_existing)
    }

    fn limits(&self) -> Limits {
        let default = Limits::default();
        Limits {
            max_pixels: self.max_pixels.unwrap_or(default.max_pixels),
            ..default
        }
    }
}

/// What the service says of its parameters, for the flags of the same names.
fn in_flags(sentence: &str) -> String {
    let names = sentence.strip_prefix("Parameters ");
    let names = names.or_else(|| sentence.strip_prefix("Parameter "));
    let Some((names, rest)) = names.and_then(|names| names.split_once(": ")) else {
        return sentence.to_owned();
    };
    let names = names.split(" and ");
    let flags: Vec<String> = names
        .map(|name| format!("--{}", name.replace('_', "-")))
        .collect();
    // No URL has to be written here.
    let rest = rest.replace(", whose % a URL needs as %25", "");
    let rest = rest.replace(", which a URL needs as %25", "");
    format!("{}: {rest}", flags.join(" and "))
}

/// Reads the watermark's picture from a file or an http or https URL.
fn load_watermark(place: &str) -> Result<Arc<[u8]>, String> {
    if !place.starts_with("http://") && !place.starts_with("https://") {
        return fs::read(place)
            .map(Arc::from)
            .map_err(|error| format!("watermark picture {place}: {error}"));
    }
    // The user of the command line may reach whatever this machine reaches.
    let settings = Settings {
        allow_private: true,
        ..Settings::default()
    };
    Fetcher::new(&settings)?
        .fetch(place, &|| true)
        .map(|fetched| fetched.bytes)
        .map_err(|error| format!("watermark picture {place}: {error}"))
}

#[cfg(test)]
mod tests;
