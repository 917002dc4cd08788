// The page of all tokens: the form of a new one is a dialog, with a preset if one is given, and a
// field searches the rows.

{
  const button = document.getElementById("create"), dialog = document.getElementById("new");
  const [details] = dialog.children, [summary, ...content] = details.children;
  const heading = document.createElement("h2"), cancel = document.createElement("button");
  heading.textContent = summary.textContent;
  Object.assign(cancel, { type: "button", className: "secondary", textContent: "Cancel" });
  cancel.addEventListener("click", () => dialog.close());
  button.addEventListener("click", () => dialog.showModal());
  details.replaceWith(heading, ...content);
  (dialog.querySelector("form") ?? dialog).append(" ", cancel);
  // The page that converts gives its settings as a preset.
  const preset = new URLSearchParams(location.hash.slice(1)).get("preset");
  const field = dialog.querySelector("[name=preset]");
  if (preset && field) field.value = preset;
  if (preset) history.replaceState(null, "", location.pathname);
  // Or the form was rejected, and is shown again with the reason.
  if (details.open || preset) dialog.showModal();
}

// Tab stops at a token's first button and at its menu, and the arrow keys move between the buttons. The
// field has nothing that those do not give.
for (const field of all(".tokens .field")) {
  const [text, ...buttons] = field.children;
  const stop = (focused) => buttons.forEach((button) => { button.tabIndex = button === focused ? 0 : -1; });
  text.tabIndex = -1;
  field.role = "toolbar";
  field.ariaLabel = text.ariaLabel;
  stop(buttons[0]);
  field.addEventListener("keydown", ({ key, target }) => {
    const next = buttons[buttons.indexOf(target) + { ArrowLeft: -1, ArrowRight: 1 }[key]];
    if (!next || target === text) return;
    stop(next);
    next.focus();
  });
}

const search = document.getElementById("search");
if (search) {
  const field = search.querySelector("input"), found = document.getElementById("found");
  const rows = [...all(".tokens tbody tr")];
  const filter = () => {
    const sought = field.value.trim().toLowerCase();
    for (const row of rows) {
      const texts = [row.querySelector("th").textContent, row.querySelector("[data-token]").value];
      row.hidden = !texts.some((text) => text.toLowerCase().includes(sought));
    }
    const count = rows.filter((row) => !row.hidden).length;
    found.textContent = sought && `${count} of ${rows.length} tokens`;
  };
  field.addEventListener("input", filter);
}
