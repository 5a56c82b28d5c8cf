// Exercises that are written and checked in the page, by Python in a worker; nothing of it is fetched before it is asked for.

import { CACHE, memory, remember, root } from "./memory.mjs";

const rows = [...document.querySelectorAll(".exercise-row[data-checks]")].map((row) => ({
  row, id: row.closest(".exercise").id, checks: JSON.parse(row.dataset.checks),
}));
let worker, python, settle, turn = Promise.resolve();

// --- Python --------------------------------------------------------------------------------------------------------

/** Keep this page for a reader without a network; Python and the pages that come after are kept by the service worker. */
async function keepPage() {
  if (!navigator.serviceWorker) return;
  await navigator.serviceWorker.register(`${root}offline.mjs`, { scope: root });
  await navigator.serviceWorker.ready;
  const own = performance.getEntriesByType("resource").map((entry) => entry.name).filter((name) => name.startsWith(root));
  const cache = await caches.open(CACHE);
  await Promise.allSettled([location.href.split("#")[0], ...own].map((address) => cache.add(address)));
  const { python: folder } = rows[0].row.dataset;
  for (const request of await cache.keys()) { // of an earlier version of the book
    if (request.url.includes("/_static/python/") && !request.url.startsWith(new URL(folder, location.href).href)) await cache.delete(request);
  }
}

/** What the worker answers; `say` is told how much of Python has come. */
function ask(message, say) {
  return new Promise((resolve, reject) => {
    settle = { resolve, reject };
    worker.onerror = reject;
    worker.onmessage = ({ data }) => {
      if (data.failed) reject(data.failed);
      else if (data.fetched) say(`Fetching Python: ${megabytes(data.fetched)} of ${megabytes(data.size)} MB`);
      else if (data.starting) say("Starting Python");
      else resolve(data);
    };
    worker.postMessage(message);
  });
}

const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

/** Python, which starts once a page. */
function start(say) {
  say("Fetching Python");
  python ??= (async () => {
    await keepPage().catch(() => {}); // where nothing may be kept, all works but for the next visit
    worker = new Worker(new URL("python_worker.mjs", import.meta.url), { type: "module" });
    const { python: folder, bytes } = rows[0].row.dataset;
    await ask({ folder: new URL(folder, location.href).href, size: Number(bytes) }, say);
    for (const { row } of rows) if (row.querySelector(".answer-open")) row.querySelector(".answer-size").textContent = "Python is here";
  })();
  python.catch(stop);
  return python;
}

function stop() {
  worker?.terminate();
  worker = python = undefined;
  settle?.reject(new Error(STOPPED));
}

const STOPPED = "Stopped.";
const failure = (error) => error.message === STOPPED ? STOPPED : `Python did not start (${error.message ?? error}). Is there a network? Run the check to try again.`;

// --- an exercise ---------------------------------------------------------------------------------------------------

/** The head of each function that is asked for. */
const begun = (checks) => Object.values(checks).map(([name, ...given]) => `def ${name}(${given.join(", ")}):\n    ...\n`).join("\n\n");

/** Tab and Enter as in an editor of code; Escape lets the next Tab leave it. */
function edits(field, run) {
  let leaves = false;
  const insert = (text) => document.execCommand("insertText", false, text) || field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
  field.addEventListener("keydown", (event) => {
    const line = field.value.slice(0, field.selectionStart).split("\n").at(-1);
    if (event.key === "Escape") leaves = true;
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
    else if (event.key === "Enter") insert(`\n${line.match(/^ */)[0]}${line.trimEnd().endsWith(":") ? "    " : ""}`);
    else if (event.key === "Tab" && !leaves && !event.shiftKey) insert(" ".repeat(4 - (line.length % 4)));
    else if (event.key === "Tab" && !leaves && /^ +$/.test(line)) {
      field.selectionStart -= ((line.length - 1) % 4) + 1;
      document.execCommand("delete");
    } else {
      if (event.key !== "Shift") leaves = false;
      return;
    }
    if (event.key !== "Escape") event.preventDefault();
  });
}

function open({ row, id, checks }) {
  const place = document.createElement("div");
  place.className = "answer";
  // Nothing of the reader's stands in this text.
  place.innerHTML = `<textarea spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off" aria-label="Your code"></textarea>
    <p class="answer-keys">NumPy is <code>np</code>. Tab indents; Escape, then Tab, leaves. Ctrl+Enter runs the check.</p>
    <button type="button" class="answer-run">Run the check</button>
    <pre class="answer-said" role="status" tabindex="0" hidden></pre>`;
  const [field, button, said] = ["textarea", "button", "pre"].map((name) => place.querySelector(name));
  field.value = memory().answers[id] ?? begun(checks);
  field.rows = Math.max(6, field.value.split("\n").length + 1);
  const say = (text, kind = "") => {
    said.hidden = false;
    said.textContent = text;
    said.dataset.kind = kind;
  };

  async function run() {
    if (button.textContent === "Stop") return stop();
    button.textContent = "Stop";
    const before = rows.slice(0, rows.findIndex((one) => one.id === id)).map((one) => memory().answers[one.id]).filter(Boolean);
    const functions = Object.fromEntries(Object.entries(checks).map(([name, [mine]]) => [name, mine]));
    const asked = turn.then(async () => {
      await start(say);
      say("Running");
      return ask({ code: field.value, functions, before }, say);
    });
    turn = asked.catch(() => {}); // one exercise after the other
    try {
      const { isRight, said: text } = await asked;
      say(text, isRight ? "right" : "wrong");
      if (isRight) remember((all) => { all.done[id] = 1; });
    } catch (error) {
      say(failure(error), "wrong");
    }
    button.textContent = "Run the check";
  }

  button.addEventListener("click", run);
  edits(field, run);
  field.addEventListener("input", () => remember((all) => { all.answers[id] = field.value; }));
  row.after(place);
  for (const part of row.querySelectorAll(".answer-open, .answer-size")) part.remove();
  field.focus();
  start(say).then(() => say("Python is ready."), (error) => say(failure(error), "wrong"));
}

for (const each of rows) each.row.querySelector(".answer-open").addEventListener("click", () => open(each));
