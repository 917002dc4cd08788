"use strict";
// The copy buttons. Everything else on the pages works without this script.

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
