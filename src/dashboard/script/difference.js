// The other way to compare: what changed, so strong that it can be seen, and in numbers.
{
  const MOST_COUNTED = 1024; // pixels a side, of the middle
  const [stage, before, after, button, note] =
    ["stage", "before", "after", "difference", "difference-note"].map((id) => document.getElementById(id));

  // The share of pixels that changed, and by how many of 255 levels a channel did on average; null
  // if the pictures are not of the same pixels.
  function count() {
    const [width, height] = [after.naturalWidth, after.naturalHeight];
    if (!width || before.naturalWidth !== width || before.naturalHeight !== height) return null;
    const [w, h] = [Math.min(width, MOST_COUNTED), Math.min(height, MOST_COUNTED)];
    const pixels = (image) => {
      const canvas = Object.assign(document.createElement("canvas"), { width: w, height: h });
      const context = canvas.getContext("2d", { willReadFrequently: true });
      context.drawImage(image, -Math.floor((width - w) / 2), -Math.floor((height - h) / 2));
      return context.getImageData(0, 0, w, h).data;
    };
    const [a, b] = [pixels(before), pixels(after)];
    let [sum, changed] = [0, 0];
    for (let at = 0; at < a.length; at += 4) {
      let own = 0;
      for (let channel = 0; channel < 4; channel += 1) own += Math.abs(a[at + channel] - b[at + channel]);
      sum += own;
      changed += own > 0;
    }
    return { share: changed / (w * h), levels: sum / (w * h * 3), isWhole: w === width && h === height };
  }

  function show() {
    const isOn = button.ariaPressed === "true";
    stage.classList.toggle("difference", isOn);
    button.disabled = !after.getAttribute("src");
    note.hidden = !isOn || button.disabled;
    if (note.hidden) return;
    const counted = count();
    const numbers = !counted ? ""
      : !counted.share ? " No pixel changed."
      : ` ${counted.isWhole ? "" : "In the middle, "}${Math.ceil(100 * counted.share)}\u00a0% of the pixels changed, by ${counted.levels.toFixed(1)} of 255 levels on average.`;
    note.textContent = `Eight times what changed: black where nothing did.${numbers}`;
  }

  const turn = () => {
    button.ariaPressed = String(button.ariaPressed !== "true");
    show();
  };
  button.addEventListener("click", turn);
  stage.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "d" && !event.ctrlKey && !event.metaKey && !event.altKey && !button.disabled) turn();
  });
  for (const image of [before, after]) image.addEventListener("load", show);
  // A picture without a result has nothing to compare.
  new MutationObserver(show).observe(after, { attributeFilter: ["src"] });
}
