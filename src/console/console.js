// Makes a page live. All pages work without it: it changes rows as the server sends them, shows times of this place, and adds keys.
const $ = (id) => document.getElementById(id);

function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.valueOf()) || time.title) continue;
    const today = at.toDateString() === new Date().toDateString();
    time.title = time.dateTime;
    time.textContent = today ? at.toLocaleTimeString() : at.toLocaleString();
  }
}

// An element out of the text of a row. A row of a table needs a table around it.
function element(text, parent) {
  const around = document.createElement(parent.tagName === "TBODY" ? "tbody" : "div");
  around.innerHTML = text;
  return around.firstElementChild;
}

// What a person did to a row stays: a check, and what they opened. A row that they write in is left alone.
function keep(old, now) {
  const check = (row) => row.querySelector("input[type=checkbox]");
  if (check(old)?.checked && check(now)) check(now).checked = true;
  const before = [...old.querySelectorAll("details")];
  [...now.querySelectorAll("details")].forEach((details, at) => { if (before[at]?.open) details.open = true; });
  if (old.classList.contains("at")) now.classList.add("at");
}

const isWriting = (row) => row.contains(document.activeElement) && document.activeElement.matches("textarea, input, select");

function apply(changes) {
  const count = $("questions-count");
  if (count) { count.textContent = changes.questions; count.hidden = changes.questions === 0; }
  for (const [id, { order, rows }] of Object.entries(changes.sections)) {
    const parent = $(id);
    if (!parent) continue;
    const wanted = new Set(order);
    for (const row of [...parent.children]) if (!wanted.has(row.id)) row.remove();
    let place = parent.firstElementChild;
    for (const key of order) {
      let row = $(key);
      if (row && rows[key] !== undefined && !isWriting(row)) {
        const now = element(rows[key], parent);
        const focus = row.contains(document.activeElement) ? document.activeElement.id : "";
        keep(row, now);
        if (row === place) place = now;
        row.replaceWith(now);
        localTimes(now);
        if (focus) $(focus)?.focus();
        row = now;
      } else if (!row) {
        row = element(rows[key] ?? "", parent);
        if (!row) continue;
        localTimes(row);
      }
      if (row === place) place = place.nextElementSibling;
      else parent.insertBefore(row, place);
    }
    const empty = parent.closest("section")?.querySelector(".empty");
    if (empty) empty.hidden = order.length > 0;
  }
}

let pause = 500;
function connect() {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live`);
  socket.onopen = () => {
    pause = 500;
    $("live").textContent = "live";
    $("live").className = "good";
    socket.send(location.pathname + location.search);
  };
  socket.onmessage = (message) => apply(JSON.parse(message.data));
  socket.onclose = () => {
    $("live").textContent = "not live";
    $("live").className = "";
    // A page in the background asks when it is seen again.
    pause = Math.min(pause * 2, 30000);
    setTimeout(() => document.hidden ? document.addEventListener("visibilitychange", connect, { once: true }) : connect(), pause);
  };
}

// Keys: j and k go through the rows, Enter opens one, x checks it, / goes to the search.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  const rows = [...document.querySelectorAll("[data-rows] > tr")];
  const at = rows.findIndex((row) => row.classList.contains("at"));
  const go = (to) => {
    if (!rows[to]) return;
    rows[at]?.classList.remove("at");
    rows[to].classList.add("at");
    rows[to].scrollIntoView({ block: "nearest" });
  };
  if (event.key === "j") go(at + 1);
  else if (event.key === "k") go(Math.max(at - 1, 0));
  else if (event.key === "x") rows[at]?.querySelector("input[type=checkbox]")?.click();
  else if (event.key === "Enter" && event.target === document.body) rows[at]?.querySelector("a")?.click();
  else if (event.key === "/") { $("search")?.focus(); event.preventDefault(); }
});

document.addEventListener("change", (event) => {
  if (event.target.id !== "all") return;
  for (const box of document.querySelectorAll("[data-rows] input[type=checkbox]")) box.checked = event.target.checked;
});

// Judges an answer while a person writes it.
for (const text of document.querySelectorAll("textarea[data-judge]")) {
  const said = $(text.dataset.said);
  let wait;
  text.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(async () => {
      const body = new URLSearchParams({ deed: "preview", text: text.value });
      const answer = await fetch(text.dataset.judge, { method: "POST", body, headers: { accept: "text/plain" } });
      said.textContent = await answer.text();
      said.className = answer.ok ? "said good" : "said";
      said.hidden = false;
    }, 400);
  });
}

// A choice that decides what else is asked for asks for it at once.
for (const choice of document.querySelectorAll("select[data-again]")) {
  choice.addEventListener("change", () => choice.form.requestSubmit($("again")));
}

// Views that a person keeps, in this browser.
const views = $("views");
if (views) {
  const kept = JSON.parse(localStorage.getItem("systole views") ?? "{}");
  const show = () => {
    views.replaceChildren(...Object.entries(kept).map(([name, query]) => {
      const link = document.createElement("a");
      link.className = "chip"; link.href = `/${query}`; link.textContent = name;
      return link;
    }));
  };
  show();
  $("keep-view").hidden = false;
  $("keep-view").onclick = () => {
    const name = prompt("Name of this view (the name of a kept one, to forget it)");
    if (!name) return;
    if (kept[name] === undefined) kept[name] = location.search; else delete kept[name];
    localStorage.setItem("systole views", JSON.stringify(kept));
    show();
  };
}

localTimes(document);
if ("WebSocket" in window && $("live")) connect();
