// The settings of the page that converts: what is given of its fields, what keeps them, and problems
// beside them.

const settings = document.getElementById("settings");
const fieldOfName = (name) => document.getElementById(`p-${name}`);

// The browser would send a default of its own beside another parameter that sets the quality.
const RIVALS = ["quality", "max_bytes", "target"].map(fieldOfName);
if (!isNaN(RIVALS[0].placeholder)) RIVALS[0].value = RIVALS[0].defaultValue = RIVALS[0].placeholder;

const namedFields = () => [...settings.elements].filter(({ name, type, disabled }) =>
  name && !disabled && !["hidden", "file"].includes(type));
const isChoice = ({ type }) => ["radio", "checkbox"].includes(type);

// Whether a field has another value than at first, and so is given.
function isGiven(field) {
  if (field.options) return field.value !== "" && !field.selectedOptions[0].defaultSelected;
  if (isChoice(field)) return field.checked && !field.defaultChecked;
  return field.value !== "" && field.value !== field.defaultValue;
}

// Names and values of what is given.
const parameters = () => namedFields().filter(isGiven).map(({ name, value }) => [name, value.replaceAll("\r\n", "\n")]);

const givenQuery = () => new URLSearchParams(parameters()).toString();

// The same text for the same parameters in any order.
function sorted(parameters) {
  const query = new URLSearchParams(parameters);
  query.sort();
  return query.toString();
}

const followers = []; // what brings sliders and colors to what is written

// Of three ways to set the quality, one is in force. One that is given displaces the preset's.
function settleFields() {
  const goal = RIVALS.slice(1).find((field) => field.value);
  for (const field of RIVALS) {
    const { fixed, preset, plain } = field.dataset;
    if (fixed === undefined) field.disabled = goal !== undefined && field !== goal;
    const isDisplaced = RIVALS.some((other) => other !== field && isGiven(other));
    if (preset !== undefined) field.placeholder = isDisplaced ? plain : preset;
  }
  for (const follow of followers) follow();
  const now = sorted(parameters());
  for (const link of all("#presets a")) link.ariaCurrent = sorted(link.hash.slice(1)) === now ? "true" : null;
  offerPreset();
}

// A slider beside each number from 0 to 100.
for (const number of all("input[type=number][min='0'][max='100']", settings)) {
  const slider = document.createElement("input");
  const pair = document.createElement("div");
  Object.assign(slider, { type: "range", id: number.name, min: 0, max: 100 });
  slider.ariaLabel = `${settings.querySelector(`[for=${number.id}]`).textContent}, slider`;
  pair.className = "pair";
  number.replaceWith(pair);
  pair.append(slider, number);
  followers.push(() => {
    slider.value = number.value || number.placeholder;
    slider.disabled = number.disabled;
    slider.classList.toggle("idle", !number.value && isNaN(number.placeholder));
  });
  slider.addEventListener("input", () => { number.value = slider.value; });
}

// A color to pick beside each that is written.
for (const text of all("[data-color]", settings)) {
  const color = document.createElement("input");
  const pair = document.createElement("div");
  color.type = "color";
  color.ariaLabel = "Pick a color";
  pair.className = "pair";
  text.replaceWith(pair);
  pair.append(text, color);
  const context = document.createElement("canvas").getContext("2d");
  color.disabled = text.disabled;
  const follow = () => {
    const bare = /^([0-9a-f]{3}){1,2}$/i.test(text.value) ? "#" : "";
    context.fillStyle = bare + (text.value || text.placeholder);
    color.value = context.fillStyle;
  };
  follow();
  color.defaultValue = color.value;
  followers.push(follow);
  color.addEventListener("input", () => { text.value = color.value; });
}

// ---- What keeps them: the address, by which others may have them, and the browser ----

function keepSettings(query) {
  localStorage.setItem("settings", query);
  history.replaceState(null, "", location.pathname + (query && `#${query}`));
}

// Puts the values of a query into the fields. Unknown names and values that are not allowed are
// passed over.
function putSettings(query) {
  document.getElementById("reset").click(); // which the form's own method is hidden by
  settleFields();
  const wanted = new URLSearchParams(query ?? "");
  for (const field of namedFields().filter(({ name }) => wanted.has(name))) {
    const [value, last] = [wanted.get(field.name), field.value];
    if (isChoice(field)) {
      field.checked ||= field.value === value;
      continue;
    }
    field.value = value;
    const isTooLong = field.maxLength > 0 && value.length > field.maxLength;
    if (field.value !== value || isTooLong || !field.validity.valid) field.value = last;
  }
  advanced.open ||= namedFields().some((field) => advanced.contains(field) && isGiven(field));
}

const advanced = document.getElementById("advanced");
advanced.open ||= localStorage.getItem("advanced") === "open";
advanced.addEventListener("toggle", () => localStorage.setItem("advanced", advanced.open ? "open" : ""));

// Offers to save what is given as the preset of a token, which is done in another tab; then the page
// has it, too.
const savePreset = document.getElementById("save-preset");
function offerPreset() {
  const line = ([name, value]) => `${name}=${value.replaceAll("%", "%25").replaceAll("\n", "%0A")}`;
  const lines = parameters().map(line).join("\n");
  savePreset.hidden = !lines || Boolean(settings.querySelector(".presets [aria-current]"));
  savePreset.firstElementChild.hash = new URLSearchParams({ preset: lines }).toString();
}
savePreset.addEventListener("click", () => addEventListener("focus", async () => {
  const answer = await fetch(location.pathname, { redirect: "manual" }).catch(() => null);
  const page = new DOMParser().parseFromString(await answer?.text() ?? "", "text/html");
  const found = page.getElementById("presets");
  if (found) document.getElementById("presets").replaceChildren(...found.children);
  settleFields();
}, { once: true }));

// ---- Problems ----

const fieldProblem = document.createElement("p");
Object.assign(fieldProblem, { className: "alert", id: "field-problem", role: "alert" });

// Says beside a field what is wrong with it; without a name, that nothing is.
function tellField(name, text) {
  for (const field of all("[aria-invalid]", settings)) {
    field.removeAttribute("aria-invalid");
    field.setAttribute("aria-describedby", field.getAttribute("aria-describedby").split(" ")[0]);
  }
  fieldProblem.remove();
  const field = name && fieldOfName(name);
  if (!field) return;
  fieldProblem.textContent = text;
  field.closest(".param").append(fieldProblem);
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", `h-${name} field-problem`);
  if (advanced.contains(field)) advanced.open = true;
}

// The name of the field that a problem is about.
function fieldOf({ code = "", detail = "" }) {
  const named = /^Parameters? (\w+)/.exec(detail)?.[1];
  const known = { missing_characters: "watermark", max_bytes_unreachable: "max_bytes" }[code];
  return named ?? known ?? (code.startsWith("watermark_") ? "watermark_image" : undefined);
}
