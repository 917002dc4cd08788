"use strict";
// Tokens behind masks, the copy buttons, local times, passwords, and forms of sessions that have
// ended. All of the pages work without this script.

const all = (selector, from = document) => from.querySelectorAll(selector);

for (const button of all("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    let outcome;
    try {
      outcome = await copy(source, textOf(source)) ? "Copied" : "Selected";
    } catch (problem) {
      return complain(button.parentElement, problem.message);
    }
    button.textContent = outcome;
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// Browsers have navigator.clipboard on https and localhost only. Elsewhere the text is put where it
// can be selected, for the older command; if that fails too, it stays there, to be copied by hand.
// `text` is a promise, since some browsers want to be asked before a click is over.
async function copy(source, text) {
  try {
    const blob = text.then((text) => new Blob([text], { type: "text/plain" }));
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    return true;
  } catch { /* there is none, or it is not allowed */ }
  const shown = source.value ?? source.textContent;
  const put = (text) => { source.select ? source.value = text : source.textContent = text; };
  put(await text);
  if (source.select) {
    source.focus();
    source.select();
  } else {
    getSelection().selectAllChildren(source);
  }
  const isCopied = document.execCommand("copy");
  if (isCopied) put(shown);
  return isCopied;
}

// Pages have tokens behind masks. The true one is asked for when it is revealed or copied.
const MASKED = /twp_•+\w*/;

async function textOf(source) {
  const text = source.value ?? source.textContent;
  return MASKED.test(text) ? text.replace(MASKED, await token(source.dataset.token ?? 0)) : text;
}

// The text of a token, by its number, from the page that a form of this page would show.
async function token(number) {
  const secret = document.querySelector(".who [name=csrf]");
  for (const isLast of [false, true]) {
    const body = new URLSearchParams({ csrf: secret.value, token: number });
    const answer = await fetch(account.dataset.reveal, { method: "POST", body }).catch(() => null);
    const page = new DOMParser().parseFromString(await answer?.text() ?? "", "text/html");
    const found = page.getElementById("token")?.value;
    if (answer?.ok && found?.startsWith("twp_") && !MASKED.test(found)) return found;
    const problem = isLast ? "The token could not be read. Load the page again." : await checked(secret);
    if (problem) throw new Error(problem);
  }
}

for (const form of all("form.reveal")) {
  const field = form.querySelector("[data-token]"), button = form.querySelector("[type=submit]");
  const masked = field.value;
  const hide = () => { field.value = masked; button.textContent = "Reveal"; };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (field.value !== masked) return hide();
    try {
      field.value = await token(field.dataset.token);
      button.textContent = "Hide";
    } catch (problem) {
      complain(form, problem.message);
    }
  });
  addEventListener("beforeprint", hide);
}

// A button beside each password that shows it. It is sent hidden, so that browsers know it as one.
for (const field of all("input[type=password]")) {
  const button = document.createElement("button"), pair = document.createElement("div");
  const show = (isShown) => {
    field.type = isShown ? "text" : "password";
    button.textContent = isShown ? "Hide" : "Show";
    button.ariaLabel = `${button.textContent} password`;
  };
  Object.assign(button, { type: "button", className: "secondary" });
  pair.className = "field";
  field.replaceWith(pair);
  pair.append(field, button);
  button.addEventListener("click", () => show(field.type === "password"));
  field.form.addEventListener("submit", () => show(false));
  show(false);
}

for (const field of all("input[readonly]")) {
  field.addEventListener("focus", () => field.select());
}

// Times of the browser's own zone, with UTC on hover. A time that already has a title is a number
// of days or hours ago.
for (const time of all("time")) {
  const local = new Date(time.dateTime).toLocaleString("sv");
  if (time.title) {
    time.title = `${local} here, ${time.title}`;
  } else {
    time.title = time.textContent + " UTC";
    time.textContent = local;
  }
}
for (const cell of all("th, [data-label]")) {
  if (cell.tagName === "TH" && !cell.children.length) cell.textContent = cell.textContent.replace(" (UTC)", "");
  else if (cell.dataset.label) cell.dataset.label = cell.dataset.label.replace(" (UTC)", "");
}

// Fills an element with a sentence and a link.
function say(element, sentence, link, path, target = "") {
  const anchor = document.createElement("a");
  anchor.textContent = link;
  anchor.href = path;
  anchor.target = target;
  element.replaceChildren(sentence + " ", anchor);
}

// Says at the end of an element why something was not done.
function complain(element, problem) {
  const alert = element.querySelector(".signed-out") ?? document.createElement("p");
  alert.className = "alert signed-out";
  alert.setAttribute("role", "alert");
  element.append(alert);
  say(alert, problem, "Sign in in another tab", "/signin", "_blank");
}

// A form of a session that has ended elsewhere is not sent, so that nothing that was typed is lost.
// After a sign-in in another tab it is sent with the secret of the new session.
const account = document.querySelector(".who[data-account]");
for (const form of account ? all("main form[method=post]:not(.reveal)") : []) {
  const secret = form.elements.namedItem("csrf");
  if (secret) form.addEventListener("submit", async (event) => {
    event.preventDefault();
    // The second click of a double click.
    if (form.dataset.asked) return;
    form.dataset.asked = "yes";
    setTimeout(() => { delete form.dataset.asked; }, 2000);
    const problem = await checked(secret);
    if (!problem) return form.submit();
    delete form.dataset.asked;
    complain(form, problem);
  });
}

// Renews the secret of a form; gives the reason why it cannot be sent, if there is one.
async function checked(secret) {
  try {
    const answer = await fetch(account.dataset.account, { redirect: "manual" });
    if (answer.type === "opaqueredirect") {
      return "You are signed out, so this was not sent. It stays here until you have signed in.";
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = page.querySelector(".who");
    if (now?.textContent !== account.textContent) {
      return "Somebody else has signed in here meanwhile, so this was not sent.";
    }
    secret.value = now.querySelector("[name=csrf]").value;
  } catch { /* the browser itself says that the server cannot be reached */ }
}
