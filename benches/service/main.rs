//! Requests a second, latency, CPU time and memory of servers under clients that keep their
//! connections: the built server, other binaries of towebp, the peer in Node, and oximg, which take
//! turns.
//! `cargo bench --bench service -- [OPTIONS] [PICTURES]`; see `benches/README.md`.

mod client;
#[path = "../../tests/support/postgres.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod postgres;
mod server;

use client::{Client, Picture, Turn, latencies_beside, saturate};
use server::{Program, Server};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

const USAGE: &str = "cargo bench --bench service -- [OPTIONS] [PICTURES]
  --server FILE[@THREADS]
                     a binary of towebp; may be given more than once (default: the built one)
  --replicas N@THREADS
                     N servers of the built binary over one PostgreSQL, which has to be installed,
                     with THREADS each; clients spread over them; may be given more than once
  --peer FOLDER[@CONCURRENCY/POOL]
                     the peer, installed in FOLDER, with sharp.concurrency and UV_THREADPOOL_SIZE
                     (default 1/4); may be given more than once
  --oximg FILE       a binary of oximg, which serves the pictures from a folder; may be given more than
                     once
  --clients N,N      clients at a time (default 1,4)
  --turns N          turns of each server (default 8)
  --seconds N        length of a turn (default 5)
  --beside PICTURE   instead: how long one client waits for each of PICTURES alone, and while others
                     convert this one; may be given more than once
  --together         one row for all PICTURES: each client asks for one after the other
  --answers FOLDER   keeps one answer of each server for each of PICTURES, in a folder of each server
PICTURES are measured one after the other; by default three of testdata.
FILE@WIDTH and FILE@WIDTHxHEIGHT ask for another size, the latter within a box.
Behind a server may stand the query of its requests, as in FILE?quality=75&effort=low; by default
quality=85. Oximg takes the quality alone.";

/// The query of requests if a server has none of its own.
const QUERY: &str = "quality=85";

/// Between two requests of the client whose waiting is measured.
const PAUSE: Duration = Duration::from_millis(20);

struct Options {
    /// Each with the query of its requests.
    programs: Vec<(Program, String)>,
    clients: Vec<usize>,
    turns: usize,
    time: Duration,
    beside: Vec<Picture>,
    together: bool,
    answers: Option<PathBuf>,
    pictures: Vec<Picture>,
}

fn main() {
    let options = Options::of(std::env::args().skip(1)).unwrap_or_else(|error| {
        eprintln!("{error}\n{USAGE}");
        std::process::exit(2);
    });
    if options.beside.is_empty() {
        compare(&options);
    } else {
        beside(&options);
    }
}

impl Options {
    fn of(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            programs: Vec::new(),
            clients: vec![1, 4],
            turns: 8,
            time: Duration::from_secs(5),
            beside: Vec::new(),
            together: false,
            answers: None,
            pictures: Vec::new(),
        };
        let number = |text: &str| text.parse().map_err(|_| format!("{text} is no number"));
        // cargo adds `--bench`.
        let mut arguments = arguments.filter(|argument| argument != "--bench");
        while let Some(argument) = arguments.next() {
            if !argument.starts_with("--") {
                options.pictures.push(Picture::read(Path::new(&argument)));
                continue;
            }
            if argument == "--together" {
                options.together = true;
                continue;
            }
            let value = arguments.next().ok_or(format!("{argument} what?"))?;
            let (program, query) = value.split_once('?').unwrap_or((&value, QUERY));
            let mut add = |program| options.programs.push((program, query.to_owned()));
            match argument.as_str() {
                "--server" => {
                    let (file, threads) = match program.rsplit_once('@') {
                        Some((file, threads)) => (file, Some(number(threads)? as u32)),
                        None => (program, None),
                    };
                    add(Program::Towebp(file.into(), threads));
                }
                "--replicas" => {
                    let wrong = || format!("{value}: not N@THREADS");
                    let (count, threads) = program.split_once('@').ok_or_else(wrong)?;
                    let (count, threads) = (number(count)? as u32, number(threads)? as u32);
                    let binary = built()?;
                    add(Program::Replicas {
                        binary,
                        count,
                        threads,
                    });
                }
                "--peer" => add(peer(program)?),
                "--oximg" => add(Program::Oximg(program.into())),
                "--answers" => options.answers = Some(value.into()),
                "--clients" => {
                    options.clients = value.split(',').map(number).collect::<Result<_, _>>()?;
                }
                "--turns" => options.turns = number(&value)?,
                "--seconds" => options.time = Duration::from_secs(number(&value)? as u64),
                "--beside" => options.beside.push(Picture::read(Path::new(&value))),
                _ => return Err(format!("{argument} is no option")),
            }
        }
        if !options
            .programs
            .iter()
            .any(|(program, _)| matches!(program, Program::Towebp(..)))
        {
            let built = (Program::Towebp(built()?, None), QUERY.to_owned());
            options.programs.insert(0, built);
        }
        if options.pictures.is_empty() {
            let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
            let names = ["astronaut.jpg", "coffee.jpg", "graphic.png"];
            options
                .pictures
                .extend(names.map(|name| Picture::read(&testdata.join(name))));
        }
        Ok(options)
    }
}

fn built() -> Result<PathBuf, String> {
    let built = option_env!("CARGO_BIN_EXE_towebp").ok_or("--server is missing")?;
    Ok(built.into())
}

fn peer(value: &str) -> Result<Program, String> {
    let (folder, threads) = value.split_once('@').unwrap_or((value, "1/4"));
    let threads = threads.split_once('/');
    let numbers = threads.and_then(|(one, all)| Some((one.parse().ok()?, all.parse().ok()?)));
    let (concurrency, pool) = numbers.ok_or(format!("{value}: not FOLDER@CONCURRENCY/POOL"))?;
    Ok(Program::Peer {
        folder: folder.into(),
        concurrency,
        pool,
    })
}

/// What a server did for one picture in all turns.
#[derive(Default)]
struct Sum {
    rates: Vec<f64>,
    ratios: Vec<f64>,
    cpu: Vec<f64>,
    latencies: Vec<Duration>,
    /// The mean of the answers' bytes, in kB.
    sizes: Vec<f64>,
}

impl Sum {
    fn add(&mut self, turn: Turn) {
        self.rates.push(turn.requests_per_second);
        self.cpu.push(turn.cpu_milliseconds);
        self.sizes
            .push(turn.bytes as f64 / 1e3 / turn.latencies.len() as f64);
        self.latencies.extend(turn.latencies);
    }
}

/// Prints a table of all servers under full load; ratios are to the last server, turn by turn.
fn compare(options: &Options) {
    println!(
        "| picture, clients | server | requests/s | ratio | p50 ms | p95 ms | p99 ms | CPU ms | kB | peak MiB | after MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    if let Some(folder) = &options.answers {
        for server in start(options, 1) {
            keep_answers(&server, &options.pictures, folder);
        }
    }
    let each = if options.together {
        options.pictures.len()
    } else {
        1
    };
    for pictures in options.pictures.chunks(each) {
        let name = match pictures {
            [picture] => picture.name.clone(),
            _ => format!("{} pictures", pictures.len()),
        };
        let pictures: Vec<&Picture> = pictures.iter().collect();
        for &clients in &options.clients {
            // Each row has servers of its own: what others left behind does not count.
            let servers = start(options, 1);
            let mut sums: Vec<Sum> = servers.iter().map(|_| Sum::default()).collect();
            for server in &servers {
                saturate(server, &pictures, clients, Duration::ZERO);
                server.reset_peak();
            }
            for turn in 0..options.turns {
                for place in 0..servers.len() {
                    let number = (turn + place) % servers.len();
                    let done = saturate(&servers[number], &pictures, clients, options.time);
                    sums[number].add(done);
                }
                let last = sums[servers.len() - 1].rates[turn];
                for sum in &mut sums {
                    sum.ratios.push(sum.rates[turn] / last);
                }
            }
            thread::sleep(Duration::from_secs(1));
            for (server, mut sum) in servers.iter().zip(sums) {
                sum.latencies.sort();
                println!(
                    "| {name}, {clients} | {} | {:.1} | {:.2} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} | {:.0} |",
                    server.name,
                    median(&mut sum.rates),
                    median(&mut sum.ratios),
                    milliseconds(&sum.latencies, 0.50),
                    milliseconds(&sum.latencies, 0.95),
                    milliseconds(&sum.latencies, 0.99),
                    median(&mut sum.cpu),
                    median(&mut sum.sizes),
                    server.memory_mib("VmHWM:"),
                    server.memory_mib("VmRSS:"),
                );
            }
        }
    }
}

/// Prints how long one client waits for each picture: alone, and beside clients of its own account,
/// of another, and of two others, who convert large pictures.
fn beside(options: &Options) {
    let large: Vec<&Picture> = options.beside.iter().collect();
    let crowds: [(&str, &[usize]); 4] = [
        ("alone", &[]),
        ("beside its own account's", &[0]),
        ("beside another account's", &[1]),
        ("beside two other accounts'", &[1, 2]),
    ];
    println!("| picture | server | company | p50 ms | p99 ms | p99 / alone | large ones |");
    println!("|---|---|---|---|---|---|---|");
    for picture in &options.pictures {
        for server in start(options, 3) {
            let mut sums = crowds.map(|_| (Vec::new(), 0));
            saturate(&server, &[picture], 1, Duration::from_millis(300));
            for _ in 0..options.turns {
                for ((_, accounts), (latencies, done)) in crowds.iter().zip(&mut sums) {
                    let times = (PAUSE, options.time);
                    let turn = latencies_beside(&server, picture, &large, accounts, times);
                    latencies.extend(turn.0);
                    *done += turn.1;
                }
            }
            let mut alone = f64::NAN;
            for ((company, accounts), (mut latencies, done)) in crowds.into_iter().zip(sums) {
                latencies.sort();
                let p99 = milliseconds(&latencies, 0.99);
                if accounts.is_empty() {
                    alone = p99;
                }
                println!(
                    "| {} | {} | {company} | {:.1} | {p99:.1} | {:.2} | {done} |",
                    picture.name,
                    server.name,
                    milliseconds(&latencies, 0.50),
                    p99 / alone,
                );
            }
        }
    }
}

fn start(options: &Options, accounts: usize) -> Vec<Server> {
    let programs = options.programs.iter();
    programs
        .map(|program| Server::start(program, accounts, &options.pictures))
        .collect()
}

/// Writes a server's answer for each picture into a folder named as the server.
fn keep_answers(server: &Server, pictures: &[Picture], folder: &Path) {
    let folder = folder.join(server.name.replace(['/', ' '], "-"));
    fs::create_dir_all(&folder).expect("a folder can be made");
    for picture in pictures {
        let (_, answer) = Client::connect(server, 0, &[picture], 0).convert();
        let name = Path::new(&picture.file_name()).with_extension("webp");
        fs::write(folder.join(name), answer).expect("a file can be written");
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value in milliseconds below which this share of the sorted values lies.
fn milliseconds(sorted: &[Duration], share: f64) -> f64 {
    let index = (sorted.len() as f64 * share) as usize;
    let value = sorted.get(index.min(sorted.len().saturating_sub(1)));
    value.copied().unwrap_or_default().as_secs_f64() * 1e3
}
