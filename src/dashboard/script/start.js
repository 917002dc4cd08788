// The start page: a picture is converted in this browser, by the same program as on the server, and
// shown before and after, if the server has the module.
if (document.getElementById("try-file")) {
  const $ = (id) => document.getElementById(id);
  const zone = $("try");
  const [progress, result] = [$("try-progress"), $("try-result")];
  let controller = new AbortController();

  async function tryOut(file) {
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    result.textContent = `Converting ${file.name} …`;
    progress.hidden = false;
    progress.value = 0;
    try {
      const { convert } = await import(zone.dataset.module);
      const { bytes, info } = await convert(file, { signal, onProgress: (fraction) => { progress.value = fraction; } });
      const webp = new Blob([bytes], { type: info.type });
      const saved = savedPercent(file.size, bytes.length);
      pair.reset();
      pair.setSource(pair.before, file);
      pair.setSource(pair.after, webp);
      [pair.before.alt, pair.after.alt] = [`${file.name} before`, `${file.name} after`];
      $("before-label").textContent = `Before · ${size(file.size)}`;
      $("after-label").textContent = `WebP · ${size(bytes.length)} · ${percent(file.size, bytes.length)}`;
      const link = document.createElement("a");
      link.href = pair.after.src;
      link.download = `${file.name.replace(/\.[^.]*$/, "") || "picture"}.webp`;
      link.textContent = "Download it";
      result.replaceChildren(`${size(file.size)} became ${size(bytes.length)}, ${Math.abs(saved)} % ${saved < 0 ? "more" : "less"}, in ${(info.milliseconds / 1000).toFixed(1)} s. `, link);
    } catch (problem) {
      if (signal.aborted) return;
      result.textContent = problem.detail ?? "This browser cannot convert pictures. With an account, the server does.";
    }
    progress.hidden = true;
  }

  zone.querySelector(".choose").hidden = !globalThis.WebAssembly;
  $("try-file").addEventListener("change", ({ target }) => target.files.length && tryOut(target.files[0]));
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    tryOut(event.dataTransfer.files[0]);
  });
}
