// Sizes of the npm package's files, and milliseconds a megapixel of its encoder and of libwebp as
// WebAssembly, which take turns in one process of Node, and in one page of Chromium. All get the same pixels.
//
//     scripts/wasm && node benches/wasm.mjs PICTURES [--peers FOLDER] [--native FILE] [--chromium FILE] [--files FOLDER] [--leak N]
//
// PICTURES is a folder of JPEGs and PNGs. --peers: the folder in which `npm install @jsquash/webp jpeg-js` was run;
// --native: a binary of towebp, whose files are compared with those of the package, with its time on one thread;
// --files: where the encoders' files and their pictures are written, for scores; --leak: so many conversions in a row.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { libwebp, measure, median, ours } from "./wasm/measure.mjs";
import { inChromium } from "./wasm/page.mjs";

const names = ["peers", "native", "chromium", "files", "leak"];
const { values: given, positionals: [pictures] } = parseArgs({
  allowPositionals: true,
  options: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
});
const folder = new URL("../wasm/built/", import.meta.url);
const RUNS = 5;
const QUALITY = 80;

const row = (...cells) => console.log(`| ${cells.join(" | ")} |`);
const heading = (...cells) => {
  row(...cells);
  row(...cells.map((_, index) => (index ? "---:" : "---")));
};
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(0)} kB`;

function sizes(name, bytes) {
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } });
  row(name, ...[bytes.length, gzipSync(bytes, { level: 9 }).length, brotli.length].map(kilobytes));
}

const within = (name) => pathToFileURL(join(resolve(given.peers), "node_modules", name)).href;
const ofPeer = (file) => within(`@jsquash/webp/${file}`);

heading("file", "raw", "gzip", "brotli");
for (const name of ["encoder.wasm", "towebp.wasm", "fonts.bin"]) sizes(name, readFileSync(new URL(name, folder)));
const script = ["index.js", "pool.js", "engine.js", "worker.js", "problems.js"].map((name) => readFileSync(new URL(name, folder)));
sizes("the five scripts", Buffer.concat(script));
if (given.peers) {
  for (const kind of ["enc", "enc_simd"]) sizes(`@jsquash/webp, ${kind}`, readFileSync(new URL(ofPeer(`codec/enc/webp_${kind}.wasm`))));
}

const towebp = await import(new URL("index.js", folder));
towebp.init({ workers: 0 });
const files = readdirSync(pictures).filter((name) => /\.(jpe?g|png)$/.test(name)).map((name) => join(pictures, name));

if (given.peers) {
  const { decode } = (await import(within("jpeg-js/index.js"))).default;
  const jpegs = files.filter((name) => /jpe?g$/.test(name));
  const images = jpegs.map((name) => decode(readFileSync(name), { useTArray: true, maxMemoryUsageInMB: 4096 }));
  const megapixels = images.reduce((sum, { width, height }) => sum + width * height / 1e6, 0);
  console.log(`\n${images.length} pictures of ${megapixels.toFixed(1)} megapixels in all, quality ${QUALITY}, median of ${RUNS} runs\n`);
  const peers = await libwebp(ofPeer, (url) => readFileSync(new URL(url)), QUALITY);
  const found = await measure([...ours(towebp, QUALITY), ...peers], images, RUNS);
  const tables = [["Node", found.map((one) => ({ ...one, bytes: one.files.reduce((sum, file) => sum + file.byteLength, 0) }))]];
  let first;
  if (given.chromium) {
    const done = await inChromium(given.chromium, {
      folder: fileURLToPath(folder), peers: resolve(given.peers), images, first: readFileSync(jpegs[0]), quality: QUALITY, runs: RUNS,
    });
    tables.push(["Chromium", done.found]);
    first = done.first;
  }
  heading("encoder", ...tables.map(([name]) => `ms a megapixel, ${name}`), "of libwebp with SIMD", "bytes", "of libwebp");
  const [{ bytes: least }] = tables[0][1].slice(-1);
  for (const [index, { name, bytes }] of tables[0][1].entries()) {
    const times = tables.map(([, list]) => [list[index].milliseconds, list.at(-1).milliseconds]);
    row(name, ...times.map(([time]) => time.toFixed(0)), times.map(([time, last]) => (time / last).toFixed(2)).join(", "), bytes, (bytes / least).toFixed(2));
  }
  if (first) console.log(`\nthe first conversion in Chromium, with loading and compiling: ${first.toFixed(0)} ms`);
  if (given.files) {
    for (const { name, files: list } of found) {
      const to = join(given.files, name.replaceAll(/[^a-zA-Z0-9]+/g, "-"));
      mkdirSync(to, { recursive: true });
      list.forEach((file, index) => writeFileSync(join(to, `${basename(jpegs[index]).replace(/\..*/, "")}.webp`), new Uint8Array(file)));
    }
  }
}

if (given.native) {
  const target = mkdtempSync(join(tmpdir(), "towebp-"));
  const to = join(target, "a.webp");
  const native = (file) => spawnSync(given.native, ["convert", "--threads", "1", "--quality", String(QUALITY), "--force", "-o", to, file]);
  let [megapixels, same, sums] = [0, 0, [0, 0]];
  for (const file of files) {
    const times = [[], []];
    for (let run = 0; run < RUNS; run += 1) {
      const { bytes, info } = await towebp.convert(readFileSync(file), { quality: QUALITY });
      times[0].push(info.milliseconds);
      const began = performance.now();
      const done = native(file);
      times[1].push(performance.now() - began);
      if (done.status) throw new Error(String(done.stderr));
      if (run) continue;
      megapixels += info.width * info.height / 1e6;
      same += Buffer.compare(readFileSync(to), bytes) ? 0 : 1;
    }
    sums = sums.map((sum, index) => sum + median(times[index]));
  }
  rmSync(target, { recursive: true });
  const [own, natives] = sums.map((sum) => sum / megapixels);
  console.log(`\nconvert: ${own.toFixed(0)} ms a megapixel, native with its start ${natives.toFixed(0)} ms: ${(own / natives).toFixed(2)} times; ${same} of ${files.length} files are the same bytes`);
}

if (given.leak) {
  const memory = () => (process.memoryUsage.rss() / 2 ** 20).toFixed(0);
  const small = readFileSync(files.toSorted((a, b) => readFileSync(a).length - readFileSync(b).length)[0]);
  const marks = [];
  for (let number = 1; number <= Number(given.leak); number += 1) {
    await towebp.convert(small, { width: 64, watermark: number % 2 ? "sample" : undefined });
    if (number === 100 || number % Math.ceil(given.leak / 4) === 0) marks.push(`${memory()} MiB after ${number}`);
  }
  console.log(`\n${given.leak} conversions in a row: ${marks.join(", ")}`);
}
