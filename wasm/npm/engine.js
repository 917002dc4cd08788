// One module and its instance: bytes are copied in, a function is called, bytes are copied out.
// An instance that panicked, or has grown large, is replaced by a new one.

import { PROBLEMS } from "./problems.js";

const [PICTURE, PARAMETERS, WATERMARK, FONT] = [0, 1, 2, 3];
const MOST_KEPT = 64 * 2 ** 20; // bytes of memory that an instance keeps between calls
const OFTEN = 50; // milliseconds between two reports of progress
const SLOWER = 2; // times the estimate for a native program

/** The reason why there is no file, as the HTTP API gives it. */
export class Problem extends Error {
  constructor(code, detail, options) {
    super(detail, options);
    const [status, title, error] = PROBLEMS[code] ?? PROBLEMS.internal_error;
    Object.assign(this, { name: "Problem", type: `urn:towebp:error:${code}`, title, status, detail, code, error });
  }

  toJSON() {
    const { type, title, status, detail, code, error, message } = this;
    return { type, title, status, detail, code, error, message };
  }
}

export class Engine {
  #module;
  #instance = null;

  constructor(module) {
    this.#module = module;
  }

  /** Bytes of memory that the instance has; 0 if there is none. */
  get memory() {
    return this.#instance?.memory.buffer.byteLength ?? 0;
  }

  /** Does a job (see index.js), and gives `{ file, info }`. `report` gets fractions of the work and says whether to stop. */
  run(job, report = () => false) {
    this.#instance ??= this.#instantiate(job.fonts);
    const { exports, memory, clock } = this.#instance;
    const started = performance.now();
    Object.assign(clock, { started, reported: started, report });
    let isWhole = false;
    try {
      this.#write(PICTURE, job.picture);
      let made;
      if (job.kind === "encode") {
        const { width, height, quality, mode, effort, alphaQuality, nearLossless, exact } = job;
        made = exports.encode(width, height, quality, mode, effort, alphaQuality, nearLossless, exact, job.maxMemory);
      } else {
        this.#write(PARAMETERS, job.parameters);
        this.#write(WATERMARK, job.watermark);
        if (job.fonts && !this.#instance.hasFonts) this.#addFonts(job.fonts);
        made = exports.convert(job.maxPixels, job.maxMemory);
      }
      const read = (at, length) => new Uint8Array(memory.buffer, at, length).slice();
      const notes = new TextDecoder().decode(read(exports.notes(), exports.notes_length()));
      const file = read(exports.output(), exports.output_length());
      exports.release();
      isWhole = true;
      if (!made) throw problemOf(notes);
      return { file, info: infoOf(notes, performance.now() - started) };
    } catch (cause) {
      if (cause instanceof Problem) throw cause;
      throw new Problem("internal_error", "The conversion failed; another picture may not.", { cause });
    } finally {
      if (!isWhole || memory.buffer.byteLength > MOST_KEPT) this.#instance = null;
    }
  }

  #instantiate() {
    const clock = {};
    const checkpoint = (expected) => {
      const now = performance.now();
      if (now - clock.reported < OFTEN) return 0;
      clock.reported = now;
      return clock.report(Math.min(0.99, (now - clock.started) / (SLOWER * expected + 1))) ? 1 : 0;
    };
    const { exports } = new WebAssembly.Instance(this.#module, { host: { checkpoint } });
    return { exports, memory: exports.memory, clock, hasFonts: false };
  }

  #write(input, bytes = new Uint8Array()) {
    const { exports, memory } = this.#instance;
    const at = exports.reserve(input, bytes.length);
    if (!at) throw new Problem("too_much_memory", `There is no memory for ${bytes.length} bytes. Choose a smaller picture.`);
    new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
  }

  // Fonts stand in their file one after the other, each after its length in four bytes.
  #addFonts(fonts) {
    const view = new DataView(fonts.buffer, fonts.byteOffset, fonts.byteLength);
    for (let at = 0; at < fonts.length;) {
      const length = view.getUint32(at, true);
      this.#write(FONT, fonts.subarray(at + 4, at + 4 + length));
      if (!this.#instance.exports.add_font()) throw new Error("fonts.bin is damaged");
      at += 4 + length;
    }
    this.#instance.hasFonts = true;
  }
}

function problemOf(notes) {
  const end = notes.indexOf("\n");
  return new Problem(notes.slice(0, end), notes.slice(end + 1));
}

// Lines that are missing or empty are not given.
function infoOf(notes, milliseconds) {
  const [width, height, mode, type, quality, score, placeholder] = notes.split("\n");
  const info = { width: Number(width), height: Number(height), type: type ?? "image/webp", milliseconds };
  if (mode) info.mode = mode;
  if (quality) info.quality = Number(quality);
  if (score) info.score = Number(score);
  if (placeholder) info.placeholder = placeholder;
  return info;
}
