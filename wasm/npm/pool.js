// Workers, each of which does one job at a time. Ending one is how a job is stopped.

import { Problem } from "./engine.js";

export class Pool {
  #limit;
  #idle = [];
  #running = 0;
  #waiting = [];

  constructor(limit) {
    this.#limit = limit;
  }

  /** Does a job; the promise is rejected with the signal's reason if that is aborted. */
  async run(job, { signal, onProgress } = {}) {
    await this.#turn(signal);
    let worker = null;
    try {
      worker = this.#idle.pop() ?? startWorker();
      const done = await post(worker, { ...job, reports: Boolean(onProgress) }, signal, onProgress);
      this.#idle.push(worker);
      return done;
    } catch (error) {
      if (error instanceof Problem && error.code !== "internal_error") this.#idle.push(worker);
      else worker?.end();
      throw error;
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }

  /** Ends the workers that do nothing. */
  end() {
    for (const worker of this.#idle.splice(0)) worker.end();
  }

  // Waits until fewer than the limit run. A job that ends hands its turn on.
  #turn(signal) {
    signal?.throwIfAborted();
    if (this.#running < this.#limit) {
      this.#running += 1;
      return null;
    }
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1);
        reject(signal.reason);
      };
      const go = () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      this.#waiting.push(go);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }
}

// A worker of this platform with `post`, `end`, and what it calls with each message or failure.
function startWorker() {
  if (globalThis.Worker) {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    const it = { post: (job) => worker.postMessage(job), end: () => worker.terminate(), use() {} };
    worker.onmessage = ({ data }) => it.onMessage(data);
    worker.onerror = (event) => {
      event.preventDefault?.();
      it.onFailure?.(new Error(event.message || "the worker cannot be started"));
    };
    return it;
  }
  const threads = globalThis.process.getBuiltinModule("node:worker_threads");
  const worker = new threads.Worker(new URL("./worker.js", import.meta.url));
  // A program may end while its workers do nothing.
  const it = { post: (job) => worker.postMessage(job), end: () => worker.terminate(), use: (is) => is ? worker.ref() : worker.unref() };
  worker.on("message", (data) => it.onMessage(data));
  worker.on("error", (error) => it.onFailure?.(error));
  return it;
}

function post(worker, job, signal, onProgress) {
  return new Promise((resolve, reject) => {
    const abort = () => settle(reject, signal.reason);
    const settle = (how, value) => {
      worker.use(false);
      signal?.removeEventListener("abort", abort);
      how(value);
    };
    worker.use(true);
    signal?.addEventListener("abort", abort);
    worker.onFailure = (cause) => settle(reject, new Problem("internal_error", "The worker failed.", { cause }));
    worker.onMessage = ({ fraction, done, problem }) => {
      if (fraction !== undefined) onProgress?.(fraction);
      else if (done) settle(resolve, done);
      else settle(reject, new Problem(problem.code, problem.detail, { cause: problem.cause }));
    };
    worker.post(job);
  });
}
