"use strict";
// The copy buttons and the try-it form. Everything else on the pages works without this script.

for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.textContent = await copy(source) ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// Browsers have navigator.clipboard on https and localhost only. Elsewhere this selects the text
// and tries the older command; if that fails too, the selection stays, to be copied by hand.
async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    return true;
  } catch { /* there is none, or it is not allowed */ }
  if (source.select) {
    source.focus();
    source.select();
  } else {
    getSelection().selectAllChildren(source);
  }
  return document.execCommand("copy");
}

for (const field of document.querySelectorAll("input[readonly]")) {
  field.addEventListener("focus", () => field.select());
}

const TYPES = {
  "\x89PNG": "image/png", "\xff\xd8\xff": "image/jpeg", "GIF8": "image/gif", "BM": "image/bmp",
};
const NO_PICTURE = "This is not a PNG, JPEG, GIF or BMP. Choose another file.";
const TOO_LARGE = "This picture is too large for this server. Choose a smaller one.";
const LOAD_AGAIN = "The token on this page is out of date. Load the page again.";
const LATER = "The server is busy. Try again in a moment.";

// What to do about a problem on this page, by the problem's code. The API's own texts, which are
// for programmers, are shown for the other codes.
const HELP = {
  body_empty: "This file is empty. Choose another one.",
  content_type_missing: NO_PICTURE, content_type_unsupported: NO_PICTURE, wrong_format: NO_PICTURE,
  invalid_image: "This picture is damaged or cut short. Choose another one.",
  body_too_large: TOO_LARGE, too_much_memory: TOO_LARGE,
  image_too_wide: TOO_LARGE, too_many_pixels: TOO_LARGE,
  too_many_frames: "This animation has too many frames for this server. Choose a shorter one.",
  conversion_timeout: "The conversion took too long. Choose a smaller picture or a lower effort.",
  token_missing: LOAD_AGAIN, token_invalid: LOAD_AGAIN, tokens_differ: LOAD_AGAIN,
  busy: LATER, too_many_connections: LATER, storage_unavailable: LATER,
  internal_error: "The server failed. Try again, or choose another picture.",
};

const tryCard = document.getElementById("try");
if (tryCard) {
  tryCard.hidden = false;
  const element = (name) => document.getElementById("try-" + name);
  const button = element("form").querySelector("button");
  let shown = null;

  element("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return; // a second click, or the Enter key, during a conversion
    button.disabled = true;
    element("link").hidden = true;
    element("result").textContent = "Converting …";
    try {
      element("result").textContent = await convert(element("file").files[0]);
    } catch {
      element("result").textContent = "The server could not be reached. Try again.";
    }
    button.disabled = false;
  });

  // Shows the picture, and returns the sentence to show.
  async function convert(file) {
    const type = await typeOf(file);
    if (!type) return file.size ? NO_PICTURE : HELP.body_empty;
    const quality = element("quality").value || "85";
    const query = new URLSearchParams({ quality, effort: element("effort").value });
    if (element("watermark").value) query.set("watermark", element("watermark").value);
    const token = document.getElementById("token").value;
    const answer = await fetch("/convert?" + query, {
      method: "POST",
      headers: { "Content-Type": type, "Authorization": "Bearer " + token },
      body: file,
    });
    if (!answer.ok) {
      const problem = await answer.json().catch(() => ({}));
      const status = `The server answered with status ${answer.status}.`;
      return HELP[problem.code] ?? problem.detail ?? status;
    }
    const webp = await answer.blob();
    if (shown) URL.revokeObjectURL(shown);
    shown = URL.createObjectURL(webp);
    element("image").src = shown;
    element("link").href = shown;
    element("link").download = file.name.replace(/\.[^.]*$/, "") + ".webp";
    element("link").hidden = false;
    showUsage();
    const saved = answer.headers.get("X-Saved-Percent");
    const [input, output] = [file.size, webp.size].map((size) => size.toLocaleString("en"));
    const [width, height] = ["Image-Width", "Image-Height"].map((name) => answer.headers.get(name));
    return `${input} bytes in, ${output} bytes out: ${saved} % saved. ` +
      `${width} × ${height} pixels. Click the picture to save it.`;
  }
}

// The type by the file's first bytes: the type that browsers give comes from the file's name.
async function typeOf(file) {
  const start = String.fromCharCode(...new Uint8Array(await file.slice(0, 4).arrayBuffer()));
  const known = Object.keys(TYPES).find((bytes) => start.startsWith(bytes));
  return TYPES[known];
}

// Updates totals, quota and history; if that fails, they stay as they are until the page is loaded
// again.
async function showUsage() {
  try {
    const answer = await fetch("/dashboard");
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const id of ["totals", "quota", "history"]) {
      const fresh = page.getElementById(id);
      if (fresh) document.getElementById(id)?.replaceWith(fresh);
    }
  } catch { /* see above */ }
}
