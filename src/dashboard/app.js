"use strict";
// Shows and runs what needs a script: copy buttons and the try-it form. Everything else on the pages works without.

for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) break; // plain http outside of localhost
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

for (const field of document.querySelectorAll("input[readonly]")) {
  field.addEventListener("focus", () => field.select());
}

const tryCard = document.getElementById("try");
if (tryCard) {
  tryCard.hidden = false;
  const element = (name) => document.getElementById("try-" + name);
  let shown = null;

  element("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = element("file").files[0];
    const query = new URLSearchParams({ quality: element("quality").value || "85", effort: element("effort").value });
    if (element("watermark").value) query.set("watermark", element("watermark").value);
    element("result").textContent = "Converting …";
    element("link").hidden = true;
    try {
      const answer = await fetch("/convert?" + query, {
        method: "POST",
        headers: {
          "Content-Type": file.type === "image/x-ms-bmp" ? "image/bmp" : file.type || "application/octet-stream",
          "Authorization": "Bearer " + document.getElementById("token").value,
        },
        body: file,
      });
      if (!answer.ok) {
        element("result").textContent = (await answer.json()).detail;
        return;
      }
      const webp = await answer.blob();
      if (shown) URL.revokeObjectURL(shown);
      shown = URL.createObjectURL(webp);
      element("image").src = shown;
      element("link").href = shown;
      element("link").download = file.name.replace(/\.[^.]*$/, "") + ".webp";
      element("link").hidden = false;
      const saved = Math.round(100 - webp.size / file.size * 100);
      element("result").textContent =
        `${file.size.toLocaleString("en")} bytes in, ${webp.size.toLocaleString("en")} bytes out: ${saved} % saved. ` +
        `${answer.headers.get("Image-Width")} × ${answer.headers.get("Image-Height")} pixels. Click the picture to save it.`;
    } catch {
      element("result").textContent = "The server could not be reached.";
      return;
    }
    showUsage();
  });
}

// Brings totals and history up to date; if that fails, they stay as they are until the page is loaded again.
async function showUsage() {
  try {
    const answer = await fetch("/dashboard");
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const id of ["totals", "history"]) {
      const fresh = page.getElementById(id);
      if (fresh) document.getElementById(id).replaceWith(fresh);
    }
  } catch { /* see above */ }
}
