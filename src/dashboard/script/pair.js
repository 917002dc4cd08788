// A size in the largest unit in which it is at least 1.
function size(bytes) {
  const units = ["B", "kB", "MB", "GB"];
  let unit = 0;
  while (bytes >= (unit ? 999.95 : 1000) && unit < 3) [bytes, unit] = [bytes / 1000, unit + 1];
  return `${unit ? bytes.toFixed(1) : bytes}\u00a0${units[unit]}`;
}

const savedPercent = (before, after) => Math.floor(100 - 100 * after / before);

function percent(before, after) {
  const saved = savedPercent(before, after);
  return `${saved < 0 ? "+" : "−"}${Math.abs(saved)}\u00a0%`;
}

// Two pictures in one stage, before and after: divided by a slider, zoomed and moved together.
// `isCropped` if the picture after is a part of the one before, in its middle.
const pair = { isCropped: false };
{
  const [stage, before, after, slider, divider] =
    ["stage", "before", "after", "slider", "divider"].map((id) => document.getElementById(id));
  // `zoom` is in pixels of the screen to one of the picture, the rest in those of CSS.
  const view = { zoom: "fit", x: 0, y: 0 };
  const THUMB = 20; // the width of the slider's thumb, as in the stylesheet
  Object.assign(pair, { before, after, setSource, reset });

  // Shows the file in one of the two places, or nothing there.
  function setSource(image, blob) {
    const last = image.dataset.url;
    if (last) setTimeout(() => URL.revokeObjectURL(last), 1000);
    delete image.dataset.url;
    if (blob) image.src = image.dataset.url = URL.createObjectURL(blob);
    else image.removeAttribute("src");
  }

  // Shows the whole picture again.
  function reset() {
    Object.assign(view, { zoom: "fit", x: 0, y: 0 });
  }

  // Lays both pictures out in the stage, each clipped at the slider's place.
  function layOut() {
    const isSingle = !after.hasAttribute("src");
    const shown = after.naturalWidth && !isSingle ? after : before;
    const [full, high] = [shown.naturalWidth, shown.naturalHeight];
    if (!full) return;
    stage.style.aspectRatio = `${full} / ${high}`;
    const [width, height] = [stage.clientWidth, stage.clientHeight];
    const fit = Math.min(width / full, height / high, 1 / devicePixelRatio);
    const scale = view.zoom === "fit" ? fit : view.zoom / devicePixelRatio;
    // At whole pixels of the screen, so that no edge is half of one.
    const whole = (length) => Math.round(length * devicePixelRatio) / devicePixelRatio;
    const [w, h] = [whole(full * scale), whole(high * scale)];
    const within = (at, room, length) => whole(length <= room ? (room - length) / 2 : Math.min(0, Math.max(room - length, at)));
    [view.x, view.y] = [within(view.x, width, w), within(view.y, height, h)];
    for (const image of [before, after]) {
      Object.assign(image.style, { width: `${w}px`, height: `${h}px`, transform: `translate(${view.x}px, ${view.y}px)` });
      image.style.objectFit = pair.isCropped ? "cover" : "fill";
    }
    stage.classList.toggle("close", scale * devicePixelRatio >= 2);
    stage.classList.toggle("pannable", w > width || h > height);
    const [left, right] = [Math.max(0, view.x), Math.min(width, view.x + w)];
    const at = left + (right - left) * slider.value / 100;
    stage.classList.toggle("single", isSingle);
    before.parentElement.style.clipPath = !isSingle ? `inset(0 ${width - at}px 0 0)` : "";
    after.parentElement.style.clipPath = `inset(0 0 0 ${at}px)`;
    divider.style.left = `${at}px`;
    // The middle of its thumb is below the divider.
    Object.assign(slider.style, { marginLeft: `${left - THUMB / 2}px`, width: `${right - left + THUMB}px` });
    Object.assign(view, { fit, scale, left, right, at });
    for (const button of document.querySelectorAll("[data-zoom]")) {
      button.ariaPressed = String(button.dataset.zoom === String(view.zoom));
    }
  }

  // Zooms and keeps the point that is at this place of the stage there.
  function zoomTo(zoom, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
    const fit = view.fit * devicePixelRatio;
    const next = zoom === "fit" ? fit : Math.min(8, Math.max(fit, zoom));
    const factor = next / (view.scale * devicePixelRatio);
    view.zoom = next === fit ? "fit" : next;
    view.x = x - (x - view.x) * factor;
    view.y = y - (y - view.y) * factor;
    layOut();
  }

  for (const image of [before, after]) image.addEventListener("load", layOut);
  new ResizeObserver(layOut).observe(stage);
  addEventListener("resize", layOut); // of the page's zoom, too
  slider.addEventListener("input", layOut);
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => zoomTo(Number(button.dataset.zoom) || "fit"));
  }
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { left, top } = stage.getBoundingClientRect();
    zoomTo(view.scale * devicePixelRatio * Math.exp(-event.deltaY / 200), event.clientX - left, event.clientY - top);
  }, { passive: false });
  stage.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    if (!move) return;
    event.preventDefault();
    view.x += move[0];
    view.y += move[1];
    layOut();
  });

  // One pointer moves the slider, or the picture if that is larger than the stage and the pointer
  // is not at the divider; two zoom.
  const pointers = new Map();
  let drag = null;
  const place = (event) => {
    const { left, top } = stage.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  const spread = () => {
    const [[ax, ay], [bx, by]] = [...pointers.values()];
    return [Math.hypot(ax - bx, ay - by), (ax + bx) / 2, (ay + by) / 2];
  };
  stage.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const [x] = place(event);
    pointers.set(event.pointerId, place(event));
    stage.setPointerCapture(event.pointerId);
    if (pointers.size === 2) drag = { pinch: spread()[0], scale: view.scale * devicePixelRatio };
    else if (stage.classList.contains("pannable") && Math.abs(x - view.at) > 24) drag = "pan";
    // A finger may be about to scroll the page.
    else drag = event.pointerType === "touch" ? { from: x } : "slide";
    if (drag === "slide") slideTo(x);
  });
  stage.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return;
    const [[lastX, lastY], [x, y]] = [pointers.get(event.pointerId), place(event)];
    pointers.set(event.pointerId, [x, y]);
    if (Math.abs(x - drag?.from) > 10) drag = "slide";
    if (drag === "slide") slideTo(x);
    if (drag === "pan") {
      view.x += x - lastX;
      view.y += y - lastY;
      layOut();
    }
    if (drag?.pinch && pointers.size === 2) {
      const [distance, centerX, centerY] = spread();
      zoomTo(drag.scale * distance / drag.pinch, centerX, centerY);
    }
  });
  for (const name of ["pointerup", "pointercancel"]) {
    stage.addEventListener(name, (event) => { pointers.delete(event.pointerId); drag = null; });
  }
  function slideTo(x) {
    slider.value = 100 * (x - view.left) / (view.right - view.left);
    layOut();
  }
}
