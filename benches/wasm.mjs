// Sizes of the npm package's files, and milliseconds a megapixel of its encoder and of libwebp as
// WebAssembly, which take turns in one process of Node. Both get the same pixels.
//
//     scripts/wasm && node benches/wasm.mjs PICTURES [PEERS] [NATIVE]
//
// PICTURES is a folder of JPEGs and PNGs; PEERS one in which `npm install @jsquash/webp jpeg-js` was run; NATIVE a
// binary of towebp, whose files are compared with those of the package, with its time on one thread.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const [pictures, peers, native] = process.argv.slice(2);
const folder = new URL("../wasm/built/", import.meta.url);
const RUNS = 5;
const QUALITY = 80;

const row = (...cells) => console.log(`| ${cells.join(" | ")} |`);
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(0)} kB`;

function sizes(name, bytes) {
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } });
  row(name, ...[bytes.length, gzipSync(bytes, { level: 9 }).length, brotli.length].map(kilobytes));
}

row("file", "raw", "gzip", "brotli");
row("---", "---:", "---:", "---:");
for (const name of ["encoder.wasm", "towebp.wasm", "fonts.bin"]) sizes(name, readFileSync(new URL(name, folder)));
const script = ["index.js", "pool.js", "engine.js", "worker.js", "problems.js"].map((name) => readFileSync(new URL(name, folder)));
sizes("the five scripts", Buffer.concat(script));

const encoders = [];
const towebp = await import(new URL("index.js", folder));
towebp.init({ workers: 0 });
for (const effort of ["low", "medium"]) {
  encoders.push([`towebp, ${effort}`, (image) => towebp.encode(image, { quality: QUALITY, effort })]);
}
let decode;
if (peers) {
  const within = (name) => pathToFileURL(join(resolve(peers), "node_modules", name)).href;
  decode = (await import(within("jpeg-js/index.js"))).default.decode;
  for (const kind of ["enc", "enc_simd"]) {
    const file = `@jsquash/webp/codec/enc/webp_${kind}`;
    const wasmBinary = readFileSync(new URL(within(`${file}.wasm`)));
    sizes(`@jsquash/webp, ${kind}`, wasmBinary);
    const codec = await (await import(within(`${file}.js`))).default({ wasmBinary, noInitialRun: true });
    const { defaultOptions } = await import(within("@jsquash/webp/meta.js"));
    encoders.push([`libwebp, ${kind}`, async ({ data, width, height }) => codec.encode(data, width, height, { ...defaultOptions, quality: QUALITY })]);
  }
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
const files = readdirSync(pictures).filter((name) => /\.(jpe?g|png)$/.test(name)).map((name) => join(pictures, name));

if (decode) {
  const images = files.filter((name) => /jpe?g$/.test(name)).map((name) => decode(readFileSync(name), { useTArray: true, maxMemoryUsageInMB: 4096 }));
  const megapixels = images.reduce((sum, { width, height }) => sum + width * height / 1e6, 0);
  console.log(`\n${images.length} pictures of ${megapixels.toFixed(1)} megapixels in all, quality ${QUALITY}, median of ${RUNS} runs\n`);
  row("encoder", "ms a megapixel", "bytes");
  row("---", "---:", "---:");
  const times = encoders.map(() => []);
  const bytes = encoders.map(() => 0);
  for (let run = 0; run < RUNS; run += 1) {
    for (const [index, [, encode]] of encoders.entries()) {
      const began = performance.now();
      bytes[index] = 0;
      for (const image of images) {
        const file = await encode(image);
        bytes[index] += file.byteLength;
      }
      times[index].push((performance.now() - began) / megapixels);
    }
  }
  encoders.forEach(([name], index) => row(name, median(times[index]).toFixed(0), bytes[index]));
}

if (native) {
  const target = mkdtempSync(join(tmpdir(), "towebp-"));
  const times = [[], []];
  let megapixels = 0;
  let same = 0;
  for (const file of files) {
    const own = [];
    for (let run = 0; run < RUNS; run += 1) {
      const { bytes, info } = await towebp.convert(readFileSync(file), { quality: QUALITY });
      own.push(info.milliseconds);
      if (run) continue;
      megapixels += info.width * info.height / 1e6;
      const to = join(target, "a.webp");
      const done = spawnSync(native, ["convert", "--threads", "1", "--quality", String(QUALITY), "--force", "-o", to, file]);
      if (done.status) throw new Error(String(done.stderr));
      same += Buffer.compare(readFileSync(to), bytes) ? 0 : 1;
    }
    times[0].push(median(own));
    const theirs = [];
    for (let run = 0; run < RUNS; run += 1) {
      const began = performance.now();
      spawnSync(native, ["convert", "--threads", "1", "--quality", String(QUALITY), "--force", "-o", join(target, "a.webp"), file]);
      theirs.push(performance.now() - began);
    }
    times[1].push(median(theirs));
  }
  rmSync(target, { recursive: true });
  const [ours, natives] = times.map((list) => list.reduce((sum, each) => sum + each, 0) / megapixels);
  console.log(`\nconvert: ${ours.toFixed(0)} ms a megapixel, native with its start ${natives.toFixed(0)} ms: ${(ours / natives).toFixed(2)} times; ${same} of ${files.length} files are the same bytes`);
}
