"use strict";
// The theme that was chosen on this device, or "system". Where a browser forbids storage, a choice
// lasts as long as the page.
{
  const root = document.documentElement;
  const set = (theme) => { root.dataset.theme = ["light", "dark"].includes(theme) ? theme : "system"; };
  try {
    set(localStorage.getItem("theme"));
  } catch {
    set(null);
  }
  const mark = () => {
    for (const choice of document.getElementsByName("theme")) choice.checked = choice.value === root.dataset.theme;
  };
  addEventListener("DOMContentLoaded", mark);
  addEventListener("change", ({ target }) => {
    if (target.name !== "theme") return;
    set(target.value);
    try { localStorage.setItem("theme", target.value); } catch { /* it is forbidden */ }
  });
  // Another tab has changed it.
  addEventListener("storage", ({ key, newValue }) => {
    if (key !== "theme") return;
    set(newValue);
    mark();
  });
}
