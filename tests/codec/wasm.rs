//! The npm package in Node makes the same bytes as the native program, and fails with the same
//! problems.

use crate::golden;
use crate::support::Folder;
use crate::support::skip;
use crate::support::wasm::{Case, package, pictures, testdata};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package's folder, if there are Node and the package.
fn package_and_node() -> Option<std::path::PathBuf> {
    if !skip::succeeds(&["node", "--version"]) {
        skip::skipped("Node is not installed, so the npm package was not tried");
        return None;
    }
    let package = package();
    if package.is_none() {
        skip::skipped("the npm package was not tried: scripts/wasm makes it");
    }
    package
}

/// Runs a program in Node; `package` stands for the package's address in it, `input` for a value.
fn run(package: &Path, program: &str, input: &Value) -> String {
    let folder = Folder::new();
    let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/wasm.mjs");
    let quoted = |path: PathBuf| json!(path.to_string_lossy()).to_string();
    let text = format!(
        "import * as towebp from {};\nimport {{ outcomes }} from {};\n\
         import fs from 'node:fs';\nimport assert from 'node:assert/strict';\n\
         const input = JSON.parse(fs.readFileSync({}));\n{program}",
        quoted(package.join("index.js")),
        quoted(runner),
        quoted(folder.path.join("input.json")),
    );
    std::fs::write(folder.path.join("input.json"), input.to_string()).expect("a new file");
    std::fs::write(folder.path.join("program.mjs"), text).expect("a new file");
    let output = Command::new("node")
        .args(["--expose-gc", "program.mjs"])
        .current_dir(&folder.path)
        .output()
        .expect("it was there for the probe");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Runs cases over pictures of these files, and gives a line for each.
fn outcomes(package: &Path, pictures: &[(&str, Vec<u8>)], cases: &[Value]) -> Vec<String> {
    let folder = Folder::new();
    let mut paths = serde_json::Map::new();
    for (name, bytes) in pictures {
        let path = folder.path.join(name);
        std::fs::write(&path, bytes).expect("a new file");
        paths.insert((*name).to_owned(), path.to_str().into());
    }
    let program = "
        const pictures = Object.fromEntries(Object.entries(input.paths).map(([name, path]) => [name, fs.readFileSync(path)]));
        console.log(JSON.stringify(await outcomes(towebp, pictures, fs.readFileSync(input.mark), input.cases)));";
    let input = json!({"paths": paths, "mark": testdata("alpha.png").to_str(), "cases": cases});
    serde_json::from_str(&run(package, program, &input)).expect("a list of texts")
}

#[test]
fn random_conversions_are_the_same_bytes_as_native_ones() {
    let Some(package) = package_and_node() else {
        return;
    };
    let (pictures, cases) = (pictures(), Case::random(200));
    let mark = std::fs::read(testdata("alpha.png")).expect("it is shipped");
    let given: Vec<Value> = cases.iter().map(Case::to_json).collect();
    let made = outcomes(&package, &pictures, &given);
    let mut faults = String::new();
    let mut files = 0;
    for (case, made) in cases.iter().zip(&made) {
        let bytes = pictures.iter().find(|(name, _)| *name == case.picture);
        let expected = case.outcome(&bytes.expect("it is one of them").1, &mark);
        files += usize::from(!expected.contains(": "));
        if expected != *made {
            writeln!(
                faults,
                "{} by {:?}: {made}, not {expected}",
                case.picture, case.parameters
            )
            .expect("a String takes all");
        }
    }
    assert!(
        made.len() == 200 && files > 80,
        "{files} files of {}",
        made.len()
    );
    assert!(
        faults.is_empty(),
        "other than native; scripts/wasm makes the package anew:\n{faults}"
    );
}

#[test]
fn golden_files_are_the_same_in_node() {
    let Some(package) = package_and_node() else {
        return;
    };
    let rows = golden::rows();
    let mut pictures = Vec::new();
    let mut cases = Vec::new();
    for (name, parameters, _) in &rows {
        if !pictures.iter().any(|(known, _)| known == name) {
            pictures.push((name.as_str(), golden::file(name)));
        }
        cases.push(json!([name, golden::pairs(parameters)]));
    }
    let made = outcomes(&package, &pictures, &cases);
    let other = rows
        .iter()
        .zip(made)
        .filter(|((.., file), made)| file != made);
    let other: Vec<_> = other.collect();
    assert!(rows.len() > 100 && other.is_empty(), "{other:?}");
}

/// A wave of pixels, a damaged file, and a text on a picture.
#[test]
fn ten_thousand_conversions_take_no_more_memory_than_one_hundred() {
    let Some(package) = package_and_node() else {
        return;
    };
    let program = "
        const { Engine } = await import(input.engine);
        const engine = new Engine(await WebAssembly.compile(fs.readFileSync(input.module)));
        const text = (parameters) => new TextEncoder().encode(parameters);
        const bounds = { kind: 'convert', maxPixels: 1e8, maxMemory: 2 ** 30, fonts: fs.readFileSync(input.fonts) };
        const whole = new Uint8Array(fs.readFileSync(input.picture));
        const jobs = [
          { ...bounds, picture: whole, parameters: text('mode\\0lossy\\0width\\x0020\\0') },
          { ...bounds, picture: whole, parameters: text('mode\\0lossless\\0width\\x0020\\0') },
          { ...bounds, picture: whole.subarray(0, 150), parameters: text('') },
          { ...bounds, picture: whole, parameters: text('quality\\0high\\0') },
        ];
        const rounds = (count) => {
          let failures = 0;
          for (let round = 0; round < count; round += 1) {
            try { engine.run(jobs[round % jobs.length]); } catch (problem) {
              assert.ok(['invalid_image', 'invalid_parameter'].includes(problem.code), problem.stack);
              failures += 1;
            }
          }
          assert.equal(failures, count / 2);
          gc();
          return [engine.memory, process.memoryUsage().rss];
        };
        const first = rounds(100);
        const last = rounds(9900);
        console.log(JSON.stringify([first, last]));";
    let path = |name: &str| package.join(name).to_str().map(str::to_owned);
    let input = json!({
        "engine": path("engine.js"), "module": path("towebp.wasm"), "fonts": path("fonts.bin"),
        "picture": testdata("graphic.png").to_str(),
    });
    let said = run(&package, program, &input);
    let [first, last]: [[u64; 2]; 2] = serde_json::from_str(&said).expect("four numbers");
    assert!(
        first[0] > 0 && first[0] == last[0],
        "linear memory: {} bytes became {}",
        first[0],
        last[0]
    );
    let grown = last[1].saturating_sub(first[1]);
    assert!(grown < 60_000_000, "Node has grown by {grown} bytes");
}

#[test]
fn calls_are_stopped_bounded_and_survive_a_panic() {
    let Some(package) = package_and_node() else {
        return;
    };
    let program = "
        const picture = fs.readFileSync(input.picture);
        const { convert, encode, init, end, Problem } = towebp;
        const fails = async (promise, code) => {
          const problem = await promise.then(() => assert.fail(`no ${code}`), (problem) => problem);
          assert.ok(problem instanceof Problem, String(problem));
          assert.equal(problem.code, code);
          const { type, title, status, detail, error, message } = problem.toJSON();
          assert.ok(type === `urn:towebp:error:${code}` && title && status >= 400 && detail && error && message === detail);
          return problem;
        };
        // Before, and while it runs.
        const aborted = AbortSignal.abort(new Error('not wanted'));
        await assert.rejects(convert(picture, { signal: aborted }), /not wanted/);
        const controller = new AbortController();
        const fractions = [];
        const long = convert(picture, { effort: 'max', width: 4000, enlarge: true, signal: controller.signal, onProgress: (fraction) => {
          fractions.push(fraction);
          controller.abort(new Error('no more'));
        } });
        await assert.rejects(long, /no more/);
        assert.ok(fractions.length === 1 && fractions[0] >= 0 && fractions[0] < 1, String(fractions));
        // Before anything is decoded.
        await fails(convert(picture, { maxPixels: 1000 }), 'too_many_pixels');
        const memory = await fails(convert(picture, { maxMemory: 1e6 }), 'too_much_memory');
        assert.equal(memory.status, 413);
        await fails(convert(new Uint8Array(), {}), 'body_empty');
        await fails(convert(picture, { watermark: '漢' }), 'missing_characters');
        await fails(encode({ data: new Uint8Array(16), width: 20000, height: 1 }), 'image_too_wide');
        // Ten at a time, more than there are workers.
        const ten = await Promise.all([...Array(10).keys()].map((quality) => convert(picture, { quality, width: 50 })));
        assert.ok(ten.every(({ info }) => info.width === 50 && info.mode === 'lossy'));
        end();
        // A panic, in place of which a call of the instance fails.
        init({ workers: 0 });
        const { Instance } = WebAssembly;
        let made = 0;
        WebAssembly.Instance = class {
          constructor(module, imports) {
            made += 1;
            const { exports } = new Instance(module, imports);
            const convert = () => { throw new WebAssembly.RuntimeError('unreachable'); };
            this.exports = made === 1 ? { ...exports, convert } : exports;
          }
        };
        await fails(convert(picture, { width: 50 }), 'internal_error');
        const after = await convert(picture, { width: 50, quality: 3 });
        assert.equal(made, 2);
        assert.deepEqual(after.bytes, ten[3].bytes);
        console.log('all');";
    let input = json!({"picture": testdata("coffee.jpg").to_str()});
    assert_eq!(run(&package, program, &input).trim(), "all");
}

/// The package is packed, installed into an empty project, and imported by its name; its types are
/// checked where TypeScript is.
#[test]
fn the_packed_package_is_installed_into_an_empty_project() {
    let Some(package) = package_and_node() else {
        return;
    };
    if !skip::succeeds(&["npm", "--version"]) {
        return skip::skipped("npm is not installed, so the package was not packed");
    }
    let folder = Folder::new();
    let npm = |arguments: &[&str], within: &Path| {
        let mut command = Command::new("npm");
        command.args(arguments).current_dir(within);
        command.env("npm_config_cache", folder.path.join("cache"));
        let output = command.output().expect("it was there for the probe");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "npm {arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let target = folder.path.to_str().expect("UTF-8");
    let packed = npm(
        &["pack", "--silent", "--pack-destination", target],
        &package,
    );
    let project = folder.path.join("project");
    std::fs::create_dir(&project).expect("a new folder");
    std::fs::write(project.join("package.json"), r#"{"type": "module"}"#).expect("a new file");
    let archive = folder.path.join(packed.trim());
    let archive = archive.to_str().expect("UTF-8");
    npm(
        &["install", "--offline", "--no-audit", "--no-fund", archive],
        &project,
    );
    let program = format!(
        "import {{ readFile }} from 'node:fs/promises';\nimport {{ convert }} from 'towebp';\n\
         import encode from 'towebp/encode';\n\
         const {{ bytes, info }} = await convert(await readFile({:?}), {{ width: 40, watermark: 'ö' }});\n\
         const pixels = {{ data: new Uint8ClampedArray(4 * 12), width: 4, height: 3 }};\n\
         const webp = await encode(pixels, {{ quality: 75, lossless: 1 }});\n\
         console.log(info.width, bytes instanceof Uint8Array, webp instanceof ArrayBuffer && webp.byteLength > 20);\n",
        testdata("coffee.jpg")
    );
    std::fs::write(project.join("a.mjs"), &program).expect("a new file");
    let output = Command::new("node")
        .arg("a.mjs")
        .current_dir(&project)
        .output();
    let output = output.expect("it was there for the probe");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        said.trim(),
        "40 true true",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    let compiler = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("target/openapi-clients/node_modules/typescript/bin/tsc");
    if !compiler.is_file() {
        return skip::report(
            "TypeScript is not installed, so the types of the npm package were not checked",
        );
    }
    let typed = "import { convert, encode, Problem, type Info } from 'towebp';\n\
         const { bytes, info }: { bytes: Uint8Array; info: Info } = await convert(new Blob([]), \
         { quality: 80, fit: 'cover', lossless: true, watermark_size: '3%', signal: AbortSignal.timeout(9) });\n\
         const buffer: ArrayBuffer = await encode(new ImageData(1, 1), { method: 4 });\n\
         // @ts-expect-error\nawait convert(bytes, { fit: 'round' });\n\
         export const all = [info.score?.toFixed(), buffer, Problem];\n";
    std::fs::write(project.join("a.ts"), typed).expect("a new file");
    let output = Command::new("node")
        .arg(compiler)
        .args([
            "--noEmit",
            "--strict",
            "--target",
            "es2022",
            "--module",
            "nodenext",
            "--lib",
            "es2022,dom",
            "a.ts",
        ])
        .current_dir(&project)
        .output()
        .expect("it was there for the probe");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
