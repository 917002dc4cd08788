"use strict";
// The copy buttons, local times, and forms of sessions that have ended. All of the pages work
// without this script.

const all = (selector, from = document) => from.querySelectorAll(selector);

for (const button of all("button[data-copy]")) {
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
  if (cell.tagName === "TH") cell.textContent = cell.textContent.replace(" (UTC)", "");
  else cell.dataset.label = cell.dataset.label.replace(" (UTC)", "");
}

// Fills an element with a sentence and a link.
function say(element, sentence, link, path, target = "") {
  const anchor = document.createElement("a");
  anchor.textContent = link;
  anchor.href = path;
  anchor.target = target;
  element.replaceChildren(sentence + " ", anchor);
}

// A form of a session that has ended elsewhere is not sent, so that nothing that was typed is lost.
// After a sign-in in another tab it is sent with the secret of the new session.
const account = document.querySelector(".who[data-account]");
for (const form of account ? all("main form[method=post]") : []) {
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
    const alert = form.querySelector(".signed-out") ?? document.createElement("p");
    alert.className = "alert signed-out";
    alert.setAttribute("role", "alert");
    form.append(alert);
    say(alert, problem, "Sign in in another tab", "/signin", "_blank");
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
