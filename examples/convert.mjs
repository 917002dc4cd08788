// Converts a picture to WebP: node convert.mjs PICTURE WEBP [NAME=VALUE ...]
//
// The token is in TOWEBP_TOKEN, the server in TOWEBP_URL (default http://127.0.0.1:8080).

import { readFile, writeFile } from "node:fs/promises";
import { extname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const MEDIA_TYPES = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".bmp": "image/bmp",
};
const MOST_WAITING = 60; // seconds

// The WebP of a picture; fails with the server's words if there is none.
async function convert(picture, mediaType, parameters) {
  const server = process.env.TOWEBP_URL ?? "http://127.0.0.1:8080";
  const token = process.env.TOWEBP_TOKEN;
  if (!token) throw new Error("TOWEBP_TOKEN is not set");
  const send = () =>
    fetch(`${server}/convert?${new URLSearchParams(parameters)}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": mediaType },
      body: picture,
      signal: AbortSignal.timeout(120_000),
    });
  let response = await send();
  const wait = Number(response.headers.get("Retry-After") ?? Infinity);
  if (wait <= MOST_WAITING) {
    await response.body?.cancel();
    await sleep(wait * 1000);
    response = await send();
  }
  const warning = response.headers.get("X-Towebp-Warning");
  if (warning) console.error(warning);
  if (response.ok) return Buffer.from(await response.arrayBuffer());
  if (response.headers.get("Content-Type") === "application/problem+json") {
    const { title, detail } = await response.json();
    throw new Error(`${title}: ${detail}`);
  }
  throw new Error(`The server answered ${response.status}`);
}

const [picture, webp, ...rest] = process.argv.slice(2);
try {
  if (!webp) throw new Error("usage: node convert.mjs PICTURE WEBP [NAME=VALUE ...]");
  const mediaType = MEDIA_TYPES[extname(picture).toLowerCase()];
  if (!mediaType) throw new Error(`${picture}: not a name of a PNG, JPEG, GIF or BMP`);
  const parameters = rest.map((argument) => {
    const [name, ...value] = argument.split("=");
    return [name, value.join("=")];
  });
  await writeFile(webp, await convert(await readFile(picture), mediaType, parameters));
} catch (error) {
  console.error(error.cause ? `${error.message}: ${error.cause.message}` : error.message);
  process.exitCode = 1;
}
