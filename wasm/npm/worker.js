// Does jobs one after the other, on a thread of its own: a Web Worker, or one of Node's.

import { Engine, Problem } from "./engine.js";

const port = globalThis.process?.getBuiltinModule?.("node:worker_threads").parentPort ?? globalThis;
const engines = new Map(); // by the module

function work({ module, ...job }) {
  if (!engines.has(job.kind)) engines.set(job.kind, new Engine(module));
  const report = (fraction) => {
    if (job.reports) port.postMessage({ fraction });
    return false; // a worker is stopped by being ended
  };
  try {
    const done = engines.get(job.kind).run(job, report);
    port.postMessage({ done }, [done.file.buffer]);
  } catch (error) {
    const { code, detail, cause } = error instanceof Problem ? error : { code: "internal_error", detail: String(error) };
    port.postMessage({ problem: { code, detail, cause: cause && String(cause) } });
  }
}

if (port.on) port.on("message", work);
else port.onmessage = ({ data }) => work(data);
