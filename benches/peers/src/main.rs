//! Our encoder beside libwebp's, in one process and one run. See `benches/README.md`.

mod animation;
mod blocks;
mod cache;
mod curve;
mod libwebp;
mod lossless;
mod measure;
mod memory;
mod metric;
mod output;
mod peer;
mod picture;
mod plot;
mod progress;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use argh::FromArgs;

use crate::cache::Cache;
use crate::measure::Plan;
use crate::peer::{Peer, REFERENCE};
use crate::picture::Picture;
use crate::report::Results;

/// BD-rate, CPU time and memory of towebp's encoder beside libwebp's.
#[derive(FromArgs)]
struct Arguments {
    /// every 4th picture, qualities 30,50,75,92, no DSSIM, no Butteraugli, no memory, one timing
    /// run
    #[argh(switch)]
    quick: bool,
    /// without loss: bytes and CPU time beside cwebp -lossless and image-webp, of PNG files with
    /// their alpha
    #[argh(switch)]
    lossless: bool,
    /// animations beside gif2webp (by default, -mixed and -lossy): bytes, CPU time, memory,
    /// exactness and SSIMULACRA2, of GIF files, at the first of the qualities (default 75)
    #[argh(switch)]
    animation: bool,
    /// webP qualities, at least two (default 30,50,65,75,85,92)
    #[argh(option, from_str_fn(list))]
    quality: Option<List<u8>>,
    /// encoders: towebp-low, towebp (medium effort), towebp-high, m0 to m6 (libwebp's methods),
    /// m4s7 (method 4, sharpness 7) (default m0,m1,m2,m4,m4s7,m6,m6s7 and ours; quick
    /// m2,m4,m6,towebp)
    #[argh(option, from_str_fn(list))]
    peers: Option<List<Peer>>,
    /// timing runs of which the median counts; 0 takes no times (default 3)
    #[argh(option)]
    runs: Option<usize>,
    /// threads for the metrics (default: all cores); times are always taken on one
    #[argh(option)]
    jobs: Option<usize>,
    /// write every point to this file
    #[argh(option)]
    tsv: Option<PathBuf>,
    /// write rate-distortion.svg and frontier.svg into this folder
    #[argh(option)]
    plot: Option<PathBuf>,
    /// PNG and JPEG files, or folders of them; above 3 MP they are halved
    #[argh(positional)]
    pictures: Vec<PathBuf>,
}

struct List<T>(Vec<T>);

/// Enough for both pictures of `--plot`.
const PEERS: &str = "m0,m1,m2,m4,m4s7,m6,m6s7,towebp-low,towebp,towebp-high";
const QUICK_PEERS: &str = "m2,m4,m6,towebp";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let result = match arguments.get(1) {
        Some(first) if first == memory::CHILD => memory::child(&arguments[2..]),
        _ => run(argh::from_env()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(&format!("peers: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), String> {
    let quick = arguments.quick;
    if arguments.animation && arguments.lossless {
        return Err("--lossless and --animation are two comparisons: choose one".to_owned());
    }
    if arguments.lossless {
        let runs = arguments.runs.unwrap_or(3).max(1);
        return lossless::run(&arguments.pictures, runs);
    }
    let runs = arguments.runs.unwrap_or(if quick { 1 } else { 3 });
    let jobs = arguments
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    if arguments.animation {
        let quality = arguments.quality.and_then(|list| list.0.first().copied());
        let settings = animation::Settings {
            quality: quality.unwrap_or(75),
            runs,
            jobs,
        };
        return animation::run(&arguments.pictures, &settings);
    }
    let (tsv, folder) = (arguments.tsv.clone(), arguments.plot.clone());
    let plan = plan(arguments)?;
    let version = libwebp::version();
    let origin = report::origin(&version);
    output::print(&report::heading(&plan, &origin, &libwebp::simd(), runs))?;

    let mut cache = Cache::open(&version);
    let points = measure::points(&plan, jobs, &mut cache)?;
    let times = if runs == 0 {
        None
    } else {
        Some(measure::times(&plan, runs)?)
    };
    let memory = if quick {
        Vec::new()
    } else {
        memory_by_peer(&plan)?
    };
    let results = Results {
        origin,
        plan,
        points,
        times,
        memory,
    };
    output::print(&format!(
        "{}{}",
        results.summary(),
        results.by_quality() + &results.blocks()
    ))?;
    if let Some(folder) = folder {
        plot::write(&results, &folder)?;
    }
    if let Some(path) = tsv {
        std::fs::write(&path, results.tsv())
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn plan(arguments: Arguments) -> Result<Plan, String> {
    let default_qualities = if arguments.quick {
        vec![30, 50, 75, 92]
    } else {
        vec![30, 50, 65, 75, 85, 92]
    };
    let qualities = arguments.quality.map_or(default_qualities, |list| list.0);
    if let Some(wrong) = qualities.iter().find(|quality| **quality > 100) {
        return Err(format!("--quality: {wrong} is above 100"));
    }
    let default_peers = if arguments.quick { QUICK_PEERS } else { PEERS };
    let mut peers = match arguments.peers {
        Some(peers) => peers.0,
        None => list(default_peers)?.0,
    };
    if !peers.contains(&REFERENCE) {
        peers.insert(0, REFERENCE);
    }
    let files = picture::find(&arguments.pictures, picture::STILL)?;
    let step = if arguments.quick { 4 } else { 1 };
    let pictures = files
        .into_iter()
        .step_by(step)
        .map(|path| Picture::open(&path).map(|picture| (path, picture)))
        .collect::<Result<Vec<_>, _>>()?;
    if pictures.is_empty() {
        return Err("name at least one PNG or JPEG file, or a folder of them".to_owned());
    }
    Ok(Plan {
        pictures,
        peers,
        qualities,
        slow_metrics: !arguments.quick,
    })
}

/// Bytes per pixel beyond the input at quality 75, on the largest picture.
fn memory_by_peer(plan: &Plan) -> Result<Vec<Option<f64>>, String> {
    let largest = plan
        .pictures
        .iter()
        .map(|(_, picture)| picture)
        .max_by_key(|picture| picture.pixel_count());
    let picture = largest.expect("a plan has pictures");
    plan.peers
        .iter()
        .map(|peer| {
            Ok(memory::peak(*peer, picture, 75)?
                .map(|bytes| bytes as f64 / picture.pixel_count() as f64))
        })
        .collect()
}

fn list<T: std::str::FromStr>(text: &str) -> Result<List<T>, String> {
    let parse = |item: &str| {
        item.trim()
            .parse()
            .map_err(|_| format!("{item:?} is not allowed in this list"))
    };
    text.split(',')
        .map(parse)
        .collect::<Result<_, _>>()
        .map(List)
}
