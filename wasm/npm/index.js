// Converts pictures to WebP on this machine: in workers where there are any, else here.

import { Engine, Problem } from "./engine.js";
import { Pool } from "./pool.js";

export { Problem };

const FILES = {
  convert: new URL("./towebp.wasm", import.meta.url),
  encode: new URL("./encoder.wasm", import.meta.url),
  fonts: new URL("./fonts.bin", import.meta.url),
};
const MOST_PIXELS = 100_000_000;
const MOST_MEMORY = 1024 * 2 ** 20;

const hasWorkers = Boolean(globalThis.Worker || globalThis.process?.getBuiltinModule?.("node:worker_threads"));
let sources = { ...FILES };
let loaded = {}; // promises, by the name of the source
let engines = {}; // without workers
let pool = null;
let workers = hasWorkers ? Math.min(navigatorCores(), 4) : 0;

function navigatorCores() {
  return globalThis.navigator?.hardwareConcurrency ?? 2;
}

/** Where the files are, and how many workers there may be; nothing needs to be set. */
export function init({ workers: count = workers, ...given } = {}) {
  pool?.end();
  [pool, loaded, engines, workers] = [null, {}, {}, count];
  sources = { ...FILES, ...given };
}

/** Ends the workers; the next call starts new ones. */
export function end() {
  pool?.end();
  pool = null;
}

/** Loads a module ahead of its first use: "convert", "encode" or "fonts". */
export function load(name = "convert") {
  loaded[name] ??= (name === "fonts" ? bytesOf(sources.fonts) : compile(sources[name])).catch((error) => {
    delete loaded[name];
    throw error;
  });
  return loaded[name];
}

/** Converts a PNG, JPEG, GIF, BMP or WebP: the file and the parameters that the HTTP API has. */
export async function convert(file, options = {}) {
  const { signal, onProgress, maxPixels = MOST_PIXELS, maxMemory = MOST_MEMORY, watermark_image, ...parameters } = options;
  signal?.throwIfAborted();
  const picture = await bytesOf(file);
  const watermark = watermark_image === undefined || watermark_image === null ? undefined : await bytesOf(watermark_image);
  if (watermark) parameters.watermark_image = "given";
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null);
  const job = {
    kind: "convert", picture, watermark, maxPixels, maxMemory,
    parameters: new TextEncoder().encode(given.map(([name, value]) => `${name}\0${String(value).replaceAll("\0", "\ufffd")}\0`).join("")),
    fonts: parameters.watermark ? await load("fonts") : undefined,
  };
  const { file: converted, info } = await run(job, { signal, onProgress });
  const bytes = converted.length > 0 ? converted : picture;
  return { bytes, info: { ...info, inputBytes: picture.length, outputBytes: bytes.length } };
}

/** Encodes pixels, with the options that users of other codecs have, too. */
export async function encode({ data, width, height }, options = {}) {
  const { signal, onProgress, maxMemory = MOST_MEMORY, lossless = false, mode = lossless ? "lossless" : "lossy" } = options;
  signal?.throwIfAborted();
  const efforts = ["low", "medium", "high", "max"];
  const byMethod = ["low", "low", "low", "medium", "medium", "high", "max"][options.method ?? 4];
  const job = {
    kind: "encode", width, height, maxMemory,
    picture: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
    quality: number(options.quality, 85), mode: among(["auto", "lossy", "lossless"], mode, "mode"),
    effort: among(efforts, options.effort ?? byMethod, "effort"),
    alphaQuality: number(options.alpha_quality, 100), nearLossless: number(options.near_lossless, 100),
    exact: options.exact ? 1 : 0,
  };
  const { file } = await run(job, { signal, onProgress });
  return file.buffer;
}

async function run(job, { signal, onProgress }) {
  const module = await load(job.kind);
  signal?.throwIfAborted();
  let done;
  if (workers > 0) {
    pool ??= new Pool(workers);
    done = await pool.run({ ...job, module }, { signal, onProgress });
  } else {
    const report = (fraction) => {
      onProgress?.(fraction);
      return Boolean(signal?.aborted);
    };
    try {
      done = (engines[job.kind] ??= new Engine(module)).run(job, report);
    } finally {
      signal?.throwIfAborted();
    }
  }
  onProgress?.(1);
  return done;
}

const number = (value, otherwise) => Math.max(0, Math.min(100, Math.round(value ?? otherwise)));

function among(words, value, name) {
  const at = words.indexOf(value);
  if (at < 0) throw new Problem("invalid_parameter", `Parameter ${name}: ${JSON.stringify(value)} was given; allowed is ${words.join(", ")}.`);
  return at;
}

// The bytes of a file, of what is in memory, or of what a URL leads to.
async function bytesOf(source) {
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (source instanceof URL) return bytesOf(await fetched(source));
  if (typeof source?.arrayBuffer === "function") return new Uint8Array(await source.arrayBuffer());
  throw new TypeError("a picture is a Blob, an ArrayBuffer or an array of bytes");
}

async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  const found = source instanceof URL ? await fetched(source) : await source;
  // Servers that do not know the media type of WebAssembly are common.
  const isStream = found instanceof Response && found.headers.get("Content-Type") === "application/wasm";
  return isStream ? WebAssembly.compileStreaming(found) : WebAssembly.compile(await bytesOf(found));
}

// Node fetches no files.
async function fetched(url) {
  const files = url.protocol === "file:" && globalThis.process?.getBuiltinModule?.("node:fs/promises");
  if (files) return files.readFile(url);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response;
}
