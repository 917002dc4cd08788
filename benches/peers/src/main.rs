//! Our encoder beside libwebp's, in one process and one run. See `benches/README.md`.

mod animation;
mod arguments;
mod blocks;
mod cache;
mod curve;
mod drift;
mod half;
mod libwebp;
mod lossless;
mod measure;
mod memory;
mod metric;
mod ms_ssim;
mod output;
mod peer;
mod picture;
mod plot;
mod progress;
mod report;
mod scores;
mod search;
mod sheet;

use std::path::Path;
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::cache::Cache;
use crate::half::Half;
use crate::measure::Plan;
use crate::report::Results;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let result = match arguments.get(1) {
        Some(first) if first == memory::CHILD => memory::child(&arguments[2..]),
        _ => run(argh::from_env::<Arguments>()),
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
    if arguments.animation && arguments.lossless {
        return Err("--lossless and --animation are two comparisons: choose one".to_owned());
    }
    let (runs, jobs) = (arguments.runs(), arguments.jobs());
    if arguments.lossless {
        return lossless::run(&arguments.pictures, runs.max(1));
    }
    if arguments.animation {
        let quality = arguments.quality.and_then(|list| list.0.first().copied());
        let settings = animation::Settings {
            quality: quality.unwrap_or(75),
            runs,
            jobs,
        };
        return animation::run(&arguments.pictures, &settings);
    }
    if let Some(folder) = &arguments.scores {
        return scores::run(&arguments.pictures, folder);
    }
    if arguments.search.is_some() {
        return search(&arguments);
    }
    let plan = arguments.plan()?;
    match &arguments.sheet {
        Some(folder) => sheet::write(&plan, folder),
        None => compare(plan, &arguments),
    }
}

/// Searches on the tuning halves and judges by the acceptance halves.
fn search(arguments: &Arguments) -> Result<(), String> {
    if arguments.half != Half::All {
        return Err("--search takes both halves: leave --half away".to_owned());
    }
    let names = arguments.search.as_deref().unwrap_or_default();
    let settings = search::Settings {
        names: names
            .split(',')
            .filter(|name| *name != "all")
            .map(str::to_owned)
            .collect(),
        generations: arguments.generations,
        population: arguments.population,
        seed: arguments.seed,
        jobs: arguments.jobs(),
    };
    let [tuning, acceptance] = [Half::Tuning, Half::Acceptance].map(|half| arguments.plan_of(half));
    search::run(
        &tuning?,
        &acceptance?,
        &settings,
        &Cache::open(&libwebp::version()),
    )
}

/// Measures a plan, prints the tables and writes the files.
fn compare(plan: Plan, arguments: &Arguments) -> Result<(), String> {
    let runs = arguments.runs();
    let version = libwebp::version();
    let origin = report::origin(&version);
    output::print(&report::heading(&plan, &origin, &libwebp::simd(), runs))?;
    let points = measure::points(&plan, arguments.jobs(), &Cache::open(&version))?;
    let times = if runs == 0 {
        None
    } else {
        Some(measure::times(&plan, runs)?)
    };
    let memory = if arguments.quick {
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
    output::print(&results.text())?;
    if let Some(folder) = &arguments.plot {
        plot::write(&results, folder)?;
    }
    if let Some(path) = &arguments.tsv {
        write(path, &results.points_tsv())?;
    }
    if let Some(path) = &arguments.rates {
        write(path, &results.rates_tsv())?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
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
