// The same in a browser: a page of this script measures, and sends what it found.
import { createServer } from "node:http";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";

const TYPES = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };

const PAGE = `<!doctype html><script type="module">
  const began = performance.now();
  const post = (value) => fetch("/found", { method: "POST", body: JSON.stringify(value) });
  try {
    const towebp = await import("/package/index.js");
    await towebp.convert(new URL("/first", location.href), { quality: QUALITY });
    const first = performance.now() - began;
    const { libwebp, measure, ours } = await import("/bench/measure.mjs");
    const bytesOf = async (url) => new Uint8Array(await (await fetch(url)).arrayBuffer());
    const images = await Promise.all((await (await fetch("/images")).json()).map(async ({ width, height }, index) =>
      ({ width, height, data: new Uint8ClampedArray(await bytesOf("/images/" + index)) })));
    towebp.init({ workers: 0 });
    const peers = PEERS ? await libwebp((file) => "/peers/@jsquash/webp/" + file, bytesOf, QUALITY) : [];
    const found = await measure([...ours(towebp, QUALITY), ...peers], images, RUNS);
    await post({ first, found: found.map(({ name, milliseconds, files }) =>
      ({ name, milliseconds, bytes: files.reduce((sum, file) => sum + file.byteLength, 0) })) });
  } catch (error) { await post({ error: String(error.stack) }); }
</script>`;

/** What the page measured in this Chromium: `first` conversion in ms, and what encoders `found`. */
export async function inChromium(program, { folder, peers, images, first, quality, runs }) {
  const folders = { package: folder, bench: import.meta.dirname, peers: peers && join(peers, "node_modules") };
  const page = PAGE.replaceAll("QUALITY", quality).replaceAll("RUNS", runs).replaceAll("PEERS", Boolean(peers));
  let report;
  const reported = new Promise((resolve) => { report = resolve; });
  const answer = (request) => {
    const [, root, ...rest] = new URL(request.url, "http://127.0.0.1").pathname.split("/");
    if (!root) return [".html", page];
    if (root === "first") return ["", first];
    if (root === "images" && !rest.length) return [".json", JSON.stringify(images.map(({ width, height }) => ({ width, height })))];
    if (root === "images") return ["", images[rest[0]].data];
    return [extname(request.url), readFileSync(join(folders[root], normalize(rest.join("/"))))];
  };
  const server = createServer(async (request, response) => {
    if (request.method === "POST") {
      const parts = [];
      for await (const part of request) parts.push(part);
      response.end();
      return report(JSON.parse(Buffer.concat(parts)));
    }
    try {
      const [kind, body] = answer(request);
      response.setHeader("Content-Type", TYPES[kind] ?? "application/octet-stream");
      response.end(body);
    } catch {
      response.statusCode = 404;
      response.end();
    }
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const profile = mkdtempSync(join(tmpdir(), "towebp-"));
  const browser = spawn(program, ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", `--user-data-dir=${profile}`,
    `http://127.0.0.1:${server.address().port}/`], { stdio: "ignore" });
  const limit = setTimeout(() => report({ error: "the page has not answered in 10 minutes" }), 600_000);
  const { error, ...done } = await reported;
  clearTimeout(limit);
  const ended = new Promise((resolve) => { browser.on("exit", resolve); });
  browser.kill();
  await ended;
  server.close();
  server.closeAllConnections();
  rmSync(profile, { recursive: true, force: true });
  if (error) throw new Error(error);
  return done;
}
