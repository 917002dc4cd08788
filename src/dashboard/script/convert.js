// The page that converts: many pictures, a comparison of before and after, a ZIP of all, and the
// settings as programs. The server converts; what a change of the settings does to the compared
// picture is converted here, by the same program as WebAssembly, if the server has it.
{
  const MOST_AT_ONCE = 3;
  const MOST_WAITING = 120; // seconds, after which a request is not sent again by itself
  const MOST_DROPS = 3; // of the connection during one picture, while the server can be reached
  const LONGEST_PAUSE = 60; // seconds between two tries while the server cannot be reached
  const MOST_KEPT = 8; // results of the compared picture
  const SETTLED = 300; // milliseconds without a change of the settings
  const AT_ONCE = 20; // files that are added before the page may answer

  const $ = (id) => document.getElementById(id);
  const form = $("settings");
  const maxBody = Number($("convert").dataset.maxBody);
  const rows = [];
  let compared = null; // the row
  let running = 0;
  let hold = { until: 0, reason: "" };
  let outages = 0; // pauses since the server was last reached

  // ---- What is said to people ----

  const TYPES = {
    "\x89PNG": ["PNG", "image/png", "png"], "\xff\xd8\xff": ["JPEG", "image/jpeg", "jpg"],
    "GIF8": ["GIF", "image/gif", "gif"], "BM": ["BMP", "image/bmp", "bmp"],
  };
  // Other files that begin so are no pictures, which the server says.
  if ("webp" in $("convert").dataset) TYPES.RIFF = ["WebP", "image/webp", "webp"];
  if ("tiff" in $("convert").dataset) TYPES["II*\0"] = TYPES["MM\0*"] = ["TIFF", "image/tiff", "tif"];
  const NO_PICTURE = "This is not a PNG, JPEG, GIF or BMP. Choose another file.";
  const LOAD_AGAIN = "You are signed out, or the token was replaced. Sign in again in another tab, then try again.";
  const INTERRUPTED = "The connection is interrupted.";
  const DROPPED = "The connection was cut while this picture was sent. Try again.";
  const SMALLER = "Choose a smaller one.";
  const NO_PREVIEW = "This browser cannot show what these settings do. Convert the picture to see it.";

  // The API's own sentence has the limit.
  const withLimit = ({ detail }) => `${detail.replace(/; ask for animation=first.*/, ".")} ${SMALLER}`;
  const tooLarge = (_, { file }) =>
    `This picture has ${size(file.size)}; this server takes at most ${size(maxBody)}. ${SMALLER}`;
  const tooMuchMemory = ({ detail }) => {
    const [needed, total] = detail.match(/\d{4,}/g) ?? [];
    return `This picture needs ${total ? `${size(needed)} of memory; this server has ${size(total)}` : "too much memory"}. ${SMALLER}`;
  };

  // What to do about a problem on this page, by the problem's code: a text, or what makes it of the
  // problem and the row. The API's own texts, which are for programmers, are shown for the other
  // codes.
  const HELP = {
    body_empty: "This file is empty. Choose another one.",
    content_type_missing: NO_PICTURE, content_type_unsupported: NO_PICTURE, wrong_format: NO_PICTURE,
    invalid_image: "This picture is damaged or cut short. Choose another one.",
    body_too_large: tooLarge, too_much_memory: tooMuchMemory,
    image_too_wide: withLimit, too_many_pixels: withLimit,
    too_many_frames: ({ detail }) => `${detail.split(";")[0]}. Choose a shorter one, or set Animation to first.`,
    conversion_timeout: "The conversion took too long. Choose a smaller picture or a lower effort.",
    request_timeout: "The connection is too slow for this picture. Try again, or choose a smaller one.",
    token_missing: LOAD_AGAIN, token_invalid: LOAD_AGAIN, tokens_differ: LOAD_AGAIN,
    busy: "The server is busy.",
    too_many_connections: "There are too many connections.",
    storage_unavailable: "The server can save nothing at the moment.",
    rate_limited: ({ detail }) => `${detail.split(";")[0]}.`,
    quota_exceeded: ({ detail }) => detail,
    internal_error: "The server failed. Try again, or choose another picture.",
  };
  // Those that a later try of the same request may not have, and is sent for.
  const PASSING = ["busy", "too_many_connections", "storage_unavailable", "rate_limited"];
  // Those that every other picture would have, too: none is sent.
  const FINAL = ["quota_exceeded", "account_disabled", "token_missing", "token_invalid", "token_expired"];

  const pictures = (count) => count === 1 ? "1 picture" : `${count} pictures`;

  function announce(text) {
    $("announce").textContent = text;
  }

  // ---- The settings ----

  let shared = ""; // the settings of all pictures without own ones, as a query
  let settling = null;
  const own = $("own");
  const hasOwn = (row) => row?.own !== undefined;
  const settingsOf = (row) => row?.own ?? shared;

  // Takes the fields as the settings of the compared picture alone, or of all.
  function changed() {
    settleFields();
    pair.isCropped = form.elements.fit.value === "cover";
    const query = givenQuery();
    if (hasOwn(compared)) compared.own = query;
    else shared = query;
    showSnippet();
    showApply();
    clearTimeout(settling);
    settling = setTimeout(settled, SETTLED);
  }

  // Converts the compared picture with the new settings. The others wait for the button.
  function settled() {
    const invalid = form.querySelector(":invalid:not(fieldset)");
    rows.forEach(show);
    tell("compare-problem", "");
    tellField(invalid?.name, invalid && `${JSON.stringify(invalid.value)} was given. ${invalid.validationMessage}`);
    keepSettings(shared);
    if (invalid || !compared) return;
    if (compared.result) convertAgain(compared, canPreview() ? preview : request);
  }

  form.addEventListener("input", changed);
  form.addEventListener("reset", () => setTimeout(changed));
  own.addEventListener("change", () => {
    compared.own = own.checked ? shared : undefined;
    showOwn();
    show(compared);
    showApply();
  });

  // Puts the settings of the compared picture into the fields, if they are not there.
  function showOwn() {
    $("own-name").textContent = compared?.path;
    own.checked = own.defaultChecked = hasOwn(compared); // a reset of the fields keeps it
    const isPut = givenQuery() !== settingsOf(compared);
    if (isPut) putSettings(settingsOf(compared));
    return isPut;
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(settling);
    if (!rows.length) $("files").click();
    for (const row of others()) convertAgain(row);
    showAll();
  });

  // The rows that neither were tried with these settings nor are about to be.
  function others() {
    return rows.filter((row) => !isPending(row) && row.type !== null
      && (row.result?.isPreview || ![row.tried, row.result?.query].includes(settingsOf(row))));
  }

  function showApply() {
    const count = rows.length ? others().length : 0;
    const which = rows.some(hasOwn) ? "their" : "these";
    $("apply").textContent = `Convert ${count ? pictures(count) : "all"} with ${which} settings`;
    $("apply").disabled = rows.length > 0 && count === 0;
  }

  function showSnippet() {
    const [, type, ending] = compared?.type ?? TYPES["\x89PNG"];
    const it = { url: $("convert").dataset.url, type, ending, parameters: parameters() };
    $("snippet").textContent = SNIPPETS[$("snippet-language").value](it);
  }
  $("snippet-language").addEventListener("change", showSnippet);

  function tell(id, text) {
    $(id).textContent = text;
    $(id).hidden = !text;
  }

  // ---- Rows ----

  const isPending = (row) => ["waiting", "uploading", "converting"].includes(row.state);

  // Adds files, each with its path within a folder that was dropped; some at a time, so that the page
  // answers meanwhile.
  const incoming = [];
  async function add(files) {
    const isAdding = incoming.length > 0;
    incoming.push(...files);
    while (!isAdding && incoming.length) {
      addSome(incoming.splice(0, AT_ONCE));
      await new Promise((resolve) => setTimeout(resolve));
    }
  }

  function addSome(files) {
    const added = files.map(([file, path]) => {
      const element = $("row-template").content.firstElementChild.cloneNode(true);
      const part = (name) => element.querySelector(name === "progress" ? name : "." + name);
      const row = { file, path, element, part, state: "waiting", detail: "", drops: 0, results: new Map() };
      part("name").textContent = part("name").title = path;
      part("thumb").ariaLabel = `Compare ${path} before and after`;
      for (const name of ["save", "cancel", "retry", "remove"]) part(name).ariaLabel = `${part(name).textContent}: ${path}`;
      part("thumb").addEventListener("click", () => {
        compare(row);
        $("compare").scrollIntoView({ block: "nearest" });
      });
      part("save").addEventListener("click", () => saveRow(row));
      part("cancel").addEventListener("click", () => cancel([row]));
      part("retry").addEventListener("click", () => { wait(row); pump(); });
      part("remove").addEventListener("click", () => remove(row));
      rowOf.set(element, row);
      thumbnails.observe(element);
      show(row);
      return row;
    });
    rows.push(...added);
    $("rows").append(...added.map((row) => row.element));
    if (!compared && added.length) compare(added[0]);
    showAll();
    pump();
    // Then changes of the settings need no connection.
    if (hasModule) import(modulePath).then((towebp) => towebp.load()).catch(() => {});
  }

  function wait(row) {
    Object.assign(row, { state: "waiting", detail: "", drops: 0, renewed: false });
    show(row);
  }

  // What a row says. Its element is only touched where something is new.
  function show(row) {
    const { element, part, state, result } = row;
    element.dataset.state = state;
    element.classList.toggle("compared", row === compared);
    const pending = isPending(row);
    const isStale = result && result.query !== settingsOf(row);
    const described = result
      ? `${row.type[0]} · ${result.width} × ${result.height}${isStale ? " · with other settings" : hasOwn(row) ? " · own settings" : ""}` : "";
    const doing = {
      waiting: "Waiting", uploading: "Uploading", converting: "Converting", cancelled: "Cancelled",
    }[state] ?? described;
    part("detail").textContent = row.detail || doing;
    part("bytes").textContent = result
      ? `${size(row.file.size)} → ${size(result.blob.size)}` : size(row.file.size);
    part("saved").textContent = result ? percent(row.file.size, result.blob.size) : "";
    part("saved").classList.toggle("larger", Boolean(result) && result.blob.size > row.file.size);
    part("progress").hidden = !["uploading", "converting"].includes(state);
    part("save").hidden = !result;
    part("cancel").hidden = !pending;
    part("retry").hidden = !["failed", "cancelled"].includes(state) || row.type === null;
    part("remove").hidden = pending;
    part("remove").tabIndex = result || !part("retry").hidden ? -1 : 0;
    part("thumb").ariaPressed = String(row === compared);
  }

  // Totals and buttons of the whole list.
  function showAll() {
    const done = rows.filter((row) => row.result);
    const failed = rows.filter((row) => row.state === "failed");
    const [before, after] = [sum(done, (row) => row.file.size), sum(done, (row) => row.result.blob.size)];
    $("results").hidden = $("bar").hidden = !rows.length;
    document.documentElement.classList.toggle("has-pictures", rows.length > 0);
    showFigures();
    $("sum").textContent = done.length === rows.length ? pictures(rows.length) : `${done.length} of ${pictures(rows.length)}`;
    if (done.length) $("sum").textContent += ` · ${size(before)} → ${size(after)} · ${percent(before, after)}`;
    $("zip").disabled = $("folder").disabled = !done.length || isSaving;
    $("retry-all").hidden = failed.length < 2;
    $("cancel-all").hidden = !rows.some(isPending);
    $("own-choice").hidden = rows.length < 2 && !hasOwn(compared);
    showApply();
  }

  function cancel(list) {
    for (const row of list) {
      row.cancel?.();
      Object.assign(row, { cancel: null, detail: "", tried: null, state: row.result ? "done" : "cancelled" });
      show(row);
    }
    if (!rows.some(isPending)) goOn();
    showAll();
    pump();
  }

  // Removes all rows at once: one by one, each would be the compared one for a moment.
  function clear() {
    for (const row of rows) row.cancel?.();
    rows.length = incoming.length = wantedThumbs.length = 0;
    thumbnails.disconnect();
    $("rows").replaceChildren();
    goOn();
    compare(null);
    showAll();
    $("files").focus();
  }

  function remove(row) {
    const next = row.element.nextElementSibling ?? row.element.previousElementSibling;
    row.cancel?.();
    rows.splice(rows.indexOf(row), 1);
    row.element.remove();
    (next?.querySelector("button:not([hidden])") ?? $("files")).focus();
    if (row === compared) compare(rows.find((row) => row.result) ?? null);
    showAll();
  }

  // Tab stops at a row's picture and at one of its buttons. The other keys are told above the rows.
  $("rows").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = event.target.closest(".row");
    const buttons = (element) => [...element?.querySelectorAll("button:not([hidden])") ?? []];
    const at = buttons(row).indexOf(event.target);
    const { part } = rowOf.get(row);
    const [next, click] = {
      ArrowLeft: [buttons(row)[at - 1] ?? buttons(row.previousElementSibling).pop()],
      ArrowRight: [buttons(row)[at + 1] ?? buttons(row.nextElementSibling)[0]],
      ArrowUp: [buttons(row.previousElementSibling).slice(0, at + 1).pop()],
      ArrowDown: [buttons(row.nextElementSibling).slice(0, at + 1).pop()],
      Delete: [null, part("remove")], s: [null, part("save")],
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key] ?? [];
    if (!next && !click) return;
    event.preventDefault();
    next?.focus();
    if (click && !click.hidden) click.click();
  });

  $("cancel-all").addEventListener("click", () => {
    addSome(incoming.splice(0));
    cancel(rows.filter(isPending));
  });
  $("retry-all").addEventListener("click", () => {
    rows.filter((row) => row.state === "failed" && row.type !== null).forEach(wait);
    pump();
    showAll();
  });
  $("clear").addEventListener("click", () => {
    if (hasLosses() && !confirm("There are pictures that were not downloaded. Clear the list?")) return;
    clear();
  });

  // ---- Conversions ----

  // Begins as many as may run at once; a single one while the server could not be reached.
  function pump() {
    if (Date.now() < hold.until) return;
    for (const row of rows) {
      if (running >= (outages ? 1 : MOST_AT_ONCE)) return;
      if (row.state === "waiting") run(row);
    }
  }

  // Converts a row with its settings of now: what is under way with others is given up, which the
  // server does not count. A result that is still there is not asked for again.
  function convertAgain(row, make = request) {
    const kept = row.results.get(settingsOf(row));
    row.cancel?.();
    row.cancel = null;
    if (kept && !(kept.isPreview && make === request)) return finish(row, kept);
    if (row === compared) return run(row, make); // it does not wait for its turn
    wait(row);
    pump();
  }

  // Converts by `make`: a request to the server, or a preview.
  async function run(row, make = request) {
    const wanted = settingsOf(row);
    let isCurrent = true;
    const controller = new AbortController();
    row.cancel = () => { isCurrent = false; controller.abort(); };
    running += 1;
    const isPreview = make !== request;
    Object.assign(row, { state: isPreview ? "converting" : "uploading", detail: "", since: Date.now() });
    if (!isPreview) row.tried = wanted;
    row.part("progress").value = 0;
    show(row);
    showWorking();
    const answer = await make(row, wanted, controller.signal);
    running -= 1;
    if (isCurrent) {
      row.cancel = null;
      if (answer.blob) finish(row, { query: wanted, ...answer });
      else fail(row, answer);
    }
    pump();
  }

  // ---- Previews ----

  const { module: modulePath, preset = "" } = $("convert").dataset;
  let hasModule = Boolean(modulePath && globalThis.WebAssembly);

  // Browsers fetch no picture of another site.
  const canPreview = () => hasModule && !/(^|[&\n!])watermark_image=/.test(`${settingsOf(compared)}\n${preset}`);

  // As `request`, in a worker of this page.
  async function preview(row, wanted, signal) {
    let towebp;
    try {
      towebp = await import(modulePath);
      await towebp.load();
    } catch {
      hasModule = false; // an old browser, or no connection yet
      return request(row, wanted, signal);
    }
    try {
      const onProgress = (fraction) => { row.part("progress").value = fraction; };
      const options = { ...Object.fromEntries(new URLSearchParams(wanted)), preset, signal, onProgress };
      const { bytes, info } = await towebp.convert(row.file, options);
      const { width, height, type } = info;
      return { blob: new Blob([bytes], { type }), width, height, placeholder: info.placeholder, isPreview: true };
    } catch (problem) {
      if (signal.aborted) return {};
      const help = { ...HELP, too_much_memory: NO_PREVIEW, internal_error: NO_PREVIEW }[problem.code] ?? problem.detail ?? NO_PREVIEW;
      return { text: typeof help === "string" ? help : help(problem, row), field: fieldOf(problem) };
    }
  }

  // A result, or a problem's `text`, with `wait` if it is to be tried again after so many seconds,
  // and `isFinal` if the other rows would have it, too.
  async function request(row, wanted, signal) {
    row.type ??= await typeOf(row.file);
    if (!row.type) return { text: row.file.size ? NO_PICTURE : HELP.body_empty };
    if (row.file.size > maxBody) return { text: tooLarge(null, row) };
    const answer = await send(row, wanted, signal).catch(() => null);
    if (!answer) return signal.aborted ? {} : dropped(row);
    outages = 0;
    const header = (name) => answer.getResponseHeader(name);
    if (answer.status === 200) {
      const [width, height] = ["Image-Width", "Image-Height"].map(header);
      return { blob: answer.response, width, height, placeholder: header("X-Towebp-Thumbhash") };
    }
    const problem = await answer.response.text().then(JSON.parse).catch(() => ({}));
    const help = HELP[problem.code] ?? problem.detail ?? `The server answered with status ${answer.status}.`;
    const text = typeof help === "string" ? help : help(problem, row);
    if (["token_invalid", "token_missing"].includes(problem.code) && !row.renewed && await renewToken()) {
      row.renewed = true;
      return { text, wait: 0 };
    }
    const wait = Number(header("Retry-After") ?? Infinity);
    if (PASSING.includes(problem.code)) return wait <= MOST_WAITING ? { text, wait } : { text: `${text} Try again later.` };
    return { text, isFinal: FINAL.includes(problem.code), field: fieldOf(problem) };
  }

  // After a request without an answer: if the server cannot be reached, all rows wait, each time
  // longer. If it can, the picture itself may be why, so it is not sent for ever.
  async function dropped(row) {
    const isReached = await fetch(location.pathname, { method: "HEAD", redirect: "manual" }).then(() => true, () => false);
    if (isReached) {
      outages = 0;
      row.drops += 1;
      return row.drops < MOST_DROPS ? { text: INTERRUPTED, wait: 1 } : { text: DROPPED };
    }
    if (Date.now() >= hold.until) outages += 1;
    return { text: INTERRUPTED, wait: Math.min(2 ** outages, LONGEST_PAUSE) };
  }

  // Ends the waiting.
  function goOn() {
    hold.until = 0;
    countDown();
  }
  addEventListener("online", () => { if (hold.until) goOn(); });

  function send(row, wanted, signal) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      const address = new URL(form.action);
      address.search = wanted;
      request.open("POST", address);
      request.responseType = "blob";
      request.setRequestHeader("Content-Type", row.type[1]);
      request.upload.addEventListener("progress", ({ loaded, total }) => {
        if (loaded < total && !signal.aborted) row.part("progress").value = loaded / total;
      });
      request.upload.addEventListener("load", () => {
        if (signal.aborted) return;
        Object.assign(row, { state: "converting", since: Date.now() });
        if (!matchMedia("(prefers-reduced-motion: reduce)").matches) row.part("progress").removeAttribute("value");
        show(row);
      });
      request.addEventListener("load", () => resolve(request));
      for (const event of ["error", "abort", "timeout"]) request.addEventListener(event, reject);
      signal.addEventListener("abort", () => request.abort());
      if (signal.aborted) reject();
      else request.send(row.file);
    });
  }

  // Another tab may have replaced the token or signed in anew. With the page comes the cookie that
  // has the token of now.
  async function renewToken() {
    const answer = await fetch(location.pathname, { redirect: "manual" }).catch(() => null);
    return Boolean(answer?.ok);
  }

  function finish(row, result) {
    Object.assign(row, { state: "done", detail: "", drops: 0, result });
    row.results.set(result.query, result);
    // The compared picture keeps some more, to go back to.
    const most = row === compared ? MOST_KEPT : 1;
    while (row.results.size > most) row.results.delete(row.results.keys().next().value);
    show(row);
    if (!compared) compare(row);
    else if (row === compared) showAfter();
    showAll();
    announceEnd();
  }

  function fail(row, { text, wait, isFinal, field }) {
    if (isFinal) {
      for (const other of rows.filter((other) => other.state === "waiting")) {
        Object.assign(other, { state: other.result ? "done" : "failed", detail: text });
        show(other);
      }
    }
    if (wait !== undefined) {
      const until = Date.now() + wait * 1000;
      if (until > hold.until) hold = { until, reason: text };
      row.state = "waiting";
      countDown();
    } else {
      // An earlier result is still good.
      Object.assign(row, { state: row.result ? "done" : "failed", detail: text });
      if (field) tellField(field, text);
      else if (row === compared && row.result) tell("compare-problem", text);
      if (row === compared && !row.result) compare(rows.find((row) => row.result) ?? rows.find(isPending) ?? null);
      announceEnd(`${row.path}: ${text}`);
    }
    show(row);
    showWorking();
    showAll();
  }

  function announceEnd(text = "") {
    if (rows.some(isPending)) return text && announce(text);
    const failed = rows.filter((row) => row.state === "failed").length;
    const done = `${pictures(rows.filter((row) => row.result).length)} converted`;
    announce([text, failed ? `${done}, ${failed} failed.` : `${done}.`].join(" "));
  }

  // Says why and how long it waits, and goes on then.
  function countDown() {
    const left = Math.ceil((hold.until - Date.now()) / 1000);
    const text = left > 0 ? `${hold.reason} It goes on by itself in ${left} s.` : "";
    if (text && $("hold").hidden) announce(text);
    tell("hold", text);
    for (const row of rows.filter((row) => row.state === "waiting")) {
      row.part("detail").textContent = text || "Waiting";
    }
    clearTimeout(countDown.timer);
    if (left > 0) countDown.timer = setTimeout(countDown, 1000);
    else pump();
  }

  setInterval(() => {
    for (const row of rows.filter((row) => row.state === "converting")) {
      const seconds = Math.floor((Date.now() - row.since) / 1000);
      if (seconds) row.part("detail").textContent = `Converting, ${seconds} s`;
    }
  }, 1000);

  // The type by the file's first bytes: what browsers say comes from the file's name.
  async function typeOf(file) {
    const bytes = await file.slice(0, 4).arrayBuffer().catch(() => new ArrayBuffer());
    const start = String.fromCharCode(...new Uint8Array(bytes));
    return TYPES[Object.keys(TYPES).find((known) => start.startsWith(known))] ?? null;
  }

  // ---- Thumbnails, one after the other, of what comes into view ----

  const rowOf = new WeakMap(); // by its element
  const wantedThumbs = [];
  let isDrawing = false;
  const thumbnails = new IntersectionObserver((entries) => {
    for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
      thumbnails.unobserve(target);
      wantedThumbs.push(target);
    }
    if (!isDrawing) drawThumbs();
  }, { rootMargin: "200px" });

  async function drawThumbs() {
    isDrawing = true;
    while (wantedThumbs.length) {
      try {
        await drawThumb(rowOf.get(wantedThumbs.shift()));
      } catch { /* a damaged picture has none */ }
    }
    isDrawing = false;
  }

  async function drawThumb(row) {
    const canvas = row.part("thumb").firstElementChild;
    const side = canvas.width;
    const bitmap = await createImageBitmap(row.file, { resizeWidth: 2 * side, resizeQuality: "medium" });
    const scale = side / Math.min(bitmap.width, bitmap.height);
    const [width, height] = [bitmap.width * scale, bitmap.height * scale];
    canvas.getContext("2d").drawImage(bitmap, (side - width) / 2, (side - height) / 2, width, height);
    bitmap.close();
  }

  // ---- Before and after ----

  const { before, after, setSource } = pair;
  before.addEventListener("load", () => {
    for (const [name, pixels] of [["width", before.naturalWidth], ["height", before.naturalHeight]]) {
      if (!form.elements[name].defaultValue) form.elements[name].placeholder = pixels;
    }
  });

  function compare(row) {
    if (compared && compared !== row) {
      const { results, result } = compared;
      for (const key of [...results.keys()]) if (key !== result?.query) results.delete(key);
    }
    const last = compared;
    compared = row;
    if (last) show(last);
    $("compare").hidden = !row;
    setSource(before, row?.file);
    setSource(after, null);
    tell("compare-problem", row?.result ? "" : row?.detail ?? "");
    showSnippet();
    const isPut = showOwn();
    if (!row) return;
    show(row);
    pair.reset();
    showAfter();
    if (!isPut && row.result && row.result.query !== settingsOf(row)) settled();
  }

  // The figures of the compared picture, above those of all.
  function showFigures() {
    const { path, file, result } = compared ?? {};
    $("shown").textContent = result
      ? `${size(file.size)} → ${size(result.blob.size)} · ${percent(file.size, result.blob.size)} · ${path}` : "";
  }

  function showAfter() {
    const { result, file, type } = compared;
    showWorking();
    $("before-label").textContent = `${type?.[0] ?? "Before"} · ${size(file.size)}`;
    $("after-label").textContent = result
      ? `${result.blob.type === "image/webp" ? "WebP" : "Original"} · ${size(result.blob.size)} · ${percent(file.size, result.blob.size)}` : "";
    if (result?.isPreview) $("after-label").textContent += " · in this browser";
    if (result) tell("compare-problem", "");
    showFigures();
    $("placeholder").hidden = !result?.placeholder;
    $("placeholder-tag").textContent = result?.placeholder ? placeholderTag(result) : "";
    setSource(after, result?.blob);
    showSnippet();
  }

  function showWorking() {
    $("working").hidden = !compared || !["uploading", "converting"].includes(compared.state);
  }

  // ---- Saving ----

  // The path of a row's result, without characters that file systems do not take.
  function resultPath(row) {
    const plain = (part) => part.replace(/[\x00-\x1f<>:"\\|?*]/g, "_");
    const folders = row.path.split("/").map(plain);
    const name = folders.pop().replace(/\.[^.]*$/, "");
    const ending = row.result.blob.type === "image/webp" ? "webp" : row.type[2];
    return [...folders.map((folder) => folder.replace(/[. ]+$/, "_")), `${name || "picture"}.${ending}`].join("/");
  }

  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  function saveRow(row) {
    save(row.result.blob, resultPath(row).split("/").pop());
    row.saved = row.result;
  }

  // Saves all results by `make`, which takes their paths and contents.
  let isSaving = false;
  async function saveAll(make) {
    if (isSaving) return;
    isSaving = true;
    showAll();
    tell("hold", "");
    const done = rows.filter((row) => row.result);
    const results = done.map((row) => row.result);
    try {
      await make(done.map((row) => [resultPath(row), row.result.blob]));
      done.forEach((row, index) => { row.saved = results[index]; });
    } catch (error) {
      // Who closes the browser's dialog needs no reason.
      if (error.name !== "AbortError") tell("hold", error.message);
    }
    isSaving = false;
    showAll();
  }

  $("zip").addEventListener("click", () => saveAll(async (files) => save(await zip(files), "pictures.zip")));
  $("folder").addEventListener("click", () => saveAll(async (files) => {
    const folder = await showDirectoryPicker({ mode: "readwrite" });
    const label = $("folder").textContent;
    try {
      await saveInto(folder, files, (count) => { $("folder").textContent = `Saved ${count} of ${files.length}`; });
    } finally {
      $("folder").textContent = label;
    }
    announce(`${pictures(files.length)} saved into ${folder.name}.`);
  }));
  $("folder").hidden = !("showDirectoryPicker" in globalThis);

  const hasLosses = () => rows.some((row) => isPending(row) || (row.result && row.saved !== row.result));
  addEventListener("beforeunload", (event) => {
    if (hasLosses()) event.preventDefault();
  });

  // ---- Ways in ----

  const addPlain = (files) => add([...files].map((file) => [file, file.name]));
  const files = $("files");
  files.multiple = true;
  files.required = false;
  files.addEventListener("change", () => {
    addPlain(files.files);
    files.value = "";
  });
  addEventListener("paste", (event) => {
    if (!event.clipboardData.files.length) return;
    event.preventDefault();
    addPlain(event.clipboardData.files);
  });
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0; // of elements that the pointer has entered with files
  const dragging = (change) => {
    depth = Math.max(0, depth + change);
    document.body.classList.toggle("dragging", depth > 0);
  };
  addEventListener("dragenter", (event) => hasFiles(event) && dragging(1));
  addEventListener("dragleave", (event) => hasFiles(event) && dragging(-1));
  addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  addEventListener("drop", async (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    dragging(-depth);
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.());
    const dropped = [...event.dataTransfer.files];
    if (!entries.some((entry) => entry?.isDirectory)) return addPlain(dropped);
    const found = await Promise.all(entries.map(filesOf));
    // A folder has other files, too.
    const accepted = `${files.accept},.apng`.split(",");
    add(found.flat().filter(([file]) => accepted.some((ending) => file.name.toLowerCase().endsWith(ending))));
  });

  // The files of an entry, each with its path.
  async function filesOf(entry) {
    if (!entry) return [];
    if (!entry.isDirectory) return [[await new Promise((...ends) => entry.file(...ends)), entry.fullPath.slice(1)]];
    const [reader, found] = [entry.createReader(), []];
    for (;;) {
      const some = await new Promise((...ends) => reader.readEntries(...ends));
      if (!some.length) return (await Promise.all(found.map(filesOf))).flat();
      found.push(...some);
    }
  }

  // The address itself may be that of the settings before by now.
  addEventListener("hashchange", ({ newURL }) => {
    const { hash } = new URL(newURL);
    if (hash.includes("=")) putSettings(hash.slice(1));
  });
  putSettings(location.hash.includes("=") ? location.hash.slice(1) : localStorage.getItem("settings"));
  $("drop-hint").hidden = $("presets").hidden = false;
  $("copy-as").hidden = false;
  changed();
}
