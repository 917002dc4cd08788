// The dashboard: the values of its charts, and the first conversion while the page is open.

// The values of the column under the pointer, or of the one that the arrow keys have chosen. They
// are those of the table below, which has the newest first.
for (const plot of all(".plot")) {
  const svg = plot.querySelector("svg"), columns = [...all("g", svg)];
  const rows = [...all("tbody tr", plot.closest("figure"))].reverse();
  const heads = [...all("th", plot.closest("figure"))].map((head) => head.textContent.toLowerCase());
  const tip = document.createElement("p"), text = document.createElement("b");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.append(text);
  plot.append(tip);
  for (const title of all("g title", svg)) title.remove();
  svg.setAttribute("aria-label", svg.querySelector("title").textContent + ". Arrow keys tell the values.");
  svg.removeAttribute("aria-labelledby");
  svg.querySelector("title").remove();
  svg.setAttribute("tabindex", "0");
  let chosen = -1;
  const show = (index) => {
    columns[chosen]?.classList.remove("on");
    chosen = index;
    columns[index]?.classList.add("on");
    tip.classList.toggle("late", index > columns.length / 2);
    const [day, ...values] = [...(rows[index]?.cells ?? [])].map((cell) => cell.textContent);
    text.hidden = !day;
    text.textContent = day ? `${day}: ` + values.map((value, at) => `${value} ${heads[at + 1]}`).join(", ") : "";
  };
  const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 };
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return show(-1);
    if (!STEPS[event.key]) return;
    event.preventDefault();
    const from = chosen < 0 ? columns.length : chosen;
    show(Math.max(0, Math.min(columns.length - 1, from + STEPS[event.key])));
  });
  svg.addEventListener("pointermove", (event) => show(columns.indexOf(event.target.closest("g"))));
  svg.addEventListener("pointerleave", () => show(-1));
  svg.addEventListener("blur", () => show(-1));
  show(-1);
}

// The first conversion: asked for every two seconds, then less often, for ten minutes of a page
// that is seen.
const waiting = document.getElementById("waiting");
if (waiting) {
  let pause = 2000, left = 600000;
  waiting.textContent = "Waiting for your first conversion …";
  const ask = async () => {
    if (document.hidden) return document.addEventListener("visibilitychange", ask, { once: true });
    let answer;
    try {
      answer = await fetch(waiting.dataset.usage);
      if (answer.status === 401) return say(waiting, "You are signed out.", "Sign in", "/signin");
      const { totals } = await answer.json();
      if (totals?.conversions) return tell(totals);
    } catch { /* the server may be back at the next time */ }
    left -= pause;
    if (left <= 0) { waiting.textContent = "No conversion yet."; return; }
    setTimeout(ask, pause);
    pause = Math.min(pause * 1.05, 15000);
  };
  const tell = ({ input_bytes: input, output_bytes: output }) => {
    const strong = document.createElement("strong");
    const percent = Math.floor((input - output) * 100 / input);
    strong.textContent = `It works: ${(input - output).toLocaleString("en")} bytes saved, ${percent} %.`;
    waiting.replaceChildren(strong);
    document.getElementById("look-again").textContent = "Open your dashboard";
  };
  ask();
}
