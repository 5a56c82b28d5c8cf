// What the live figures share: small linear algebra, elements, controls and heat-mapped tables.
// Matrices are arrays of rows, as in the book: rows are tokens.

export const transpose = (a) => a[0].map((_, j) => a.map((row) => row[j]));
export const dot = (u, v) => u.reduce((sum, value, i) => sum + value * v[i], 0);
export const matmul = (a, b) => { const columns = transpose(b); return a.map((row) => columns.map((c) => dot(row, c))); };
export const add = (a, b) => a.map((row, i) => row.map((value, j) => value + b[i][j]));
export const scaled = (a, factor) => a.map((row) => row.map((value) => value * factor));
export const rowSums = (a) => a.map((row) => row.reduce((sum, value) => sum + value, 0));
export const columnSums = (a) => rowSums(transpose(a));

/** Softmax of one row of scores; hidden entries weigh exactly zero, a row that is all hidden gives zeros. */
export function softmax(scores, visible = scores.map(() => true)) {
  const largest = Math.max(...scores.filter((_, i) => visible[i]));
  const exponentials = scores.map((score, i) => (visible[i] ? Math.exp(score - largest) : 0));
  const total = exponentials.reduce((sum, value) => sum + value, 0);
  return exponentials.map((value) => (total === 0 ? 0 : value / total));
}

/** A number for the eye: fixed digits, a true minus sign, and no negative zero. */
export function format(value, digits = 2) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  // Strings become text nodes, so nothing that a reader types is ever parsed as HTML.
  node.append(...children.flat());
  return node;
}

export const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

let count = 0;
/** An id that no other figure on the page uses. */
export const uniqueId = (stem) => `lf-${stem}-${++count}`;

function loadStyle() {
  if (import.meta.url.startsWith("blob:")) return; // in a notebook, which brings the styles along
  const address = new URL("widgets.css", import.meta.url).href;
  if (![...document.styleSheets].some((sheet) => sheet.href?.split("?")[0] === address)) {
    document.head.append(html("link", { rel: "stylesheet", href: address }));
  }
}

/** A canvas has colours of its own: draw again when the page, or a notebook, changes between light and dark. */
export function whenThemeChanges(redraw) {
  const observer = new MutationObserver(redraw);
  const attributeFilter = ["data-theme", "theme", "data-jp-theme-light", "class"];
  for (const node of [document.documentElement, document.body]) observer.observe(node, { attributeFilter });
}

/**
 * Turn `element` into an empty live figure: a row of controls, a stage, and a sentence that is read aloud when it
 * changes, beside Reset if there is anything to reset. `publish(state, sentence)` gives the numbers now shown to tests, and to screen readers.
 */
export function frame(element, { label, reset }) {
  loadStyle();
  const controls = html("div", { class: "lf-controls" });
  const stage = html("div", { class: "lf-stage" });
  const summary = html("p", { class: "lf-summary", "aria-live": "polite" });
  const button = reset ? html("button", { type: "button", class: "lf-button lf-reset", onclick: reset }, "Reset") : [];
  element.classList.add("lf");
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", label);
  element.replaceChildren(controls, stage, html("div", { class: "lf-foot" }, summary, button));
  let waiting;
  function publish(state, sentence) {
    element.dataset.state = JSON.stringify(state);
    clearTimeout(waiting);
    // A drag makes many states a second: read out only the one at which the reader rests.
    waiting = setTimeout(() => { if (summary.textContent !== sentence) summary.textContent = sentence; }, 150);
  }
  return { controls, stage, publish };
}

/** A labelled slider; `show(value)` puts the value into words. Set `slider.value = …` to move it from outside. */
export function slider({ label, min, max, step = 1, show = String, ticks = [], oninput }) {
  const [id, list] = [uniqueId("slider"), uniqueId("ticks")];
  const output = html("output", { for: id, class: "lf-output" });
  const input = html("input", { type: "range", id, min, max, step, list: ticks.length ? list : null });
  const node = html("div", { class: "lf-slider" }, html("label", { for: id }, label), input, output,
    ticks.length ? html("datalist", { id: list }, ticks.map((value) => html("option", { value }))) : []);
  const say = () => { output.textContent = show(Number(input.value)); input.setAttribute("aria-valuetext", output.textContent); };
  input.addEventListener("input", () => { say(); oninput(Number(input.value)); });
  return {
    node, input,
    get value() { return Number(input.value); },
    set value(value) { input.value = value; say(); },
    set max(value) { input.max = value; say(); },
  };
}

/** A labelled checkbox, drawn as it is everywhere else on the reader's machine. */
export function checkbox({ label, onchange, hideLabel = false }) {
  const input = html("input", { type: "checkbox", onchange: () => onchange(input.checked), "aria-label": hideLabel ? label : null });
  const node = hideLabel ? html("label", { class: "lf-hit" }, input) : html("label", { class: "lf-check" }, input, label);
  return { node, input, get checked() { return input.checked; }, set checked(value) { input.checked = value; } };
}

/** One of several, as a row of radio buttons; `options` is a list of [value, label]. */
export function choice({ legend, options, onchange }) {
  const name = uniqueId("choice");
  const inputs = options.map(([value]) => html("input", { type: "radio", name, value, onchange: () => onchange(value) }));
  const labels = options.map(([, label], i) => html("label", { class: "lf-check" }, inputs[i], label));
  const node = html("fieldset", { class: "lf-choice" }, html("legend", {}, legend), labels);
  return {
    node, labels,
    get value() { return inputs.find((input) => input.checked)?.value; },
    set value(value) { for (const input of inputs) input.checked = input.value === String(value); },
  };
}

/** One of several, as a list that opens; `options` is a list of [value, label]. */
export function picker({ label, options, onchange }) {
  const id = uniqueId("picker");
  const select = html("select", { id, onchange: () => onchange(select.value) }, options.map(([value, words]) => html("option", { value }, words)));
  const node = html("div", { class: "lf-pick" }, html("label", { for: id }, label), select);
  return { node, select, get value() { return select.value; }, set value(value) { select.value = value; } };
}

/** A labelled line of text, which is cut where it is longer than can be typed. */
export function textField({ label, oninput, maxlength = 400 }) {
  const id = uniqueId("text");
  const input = html("input", { id, type: "text", maxlength, autocomplete: "off", spellcheck: "false", oninput: () => oninput(input.value.slice(0, maxlength)) });
  const node = html("div", { class: "lf-field" }, html("label", { for: id }, label), input);
  // What is being typed is not written again, so that the cursor stays where it is.
  return { node, input, get value() { return input.value; }, set value(value) { if (input.value !== value) input.value = value; } };
}

/**
 * A button that has `step()` done again and again: slowly for those who want little to move. `run(false)` stops it, and
 * `onpause()` hears of it.
 */
export function playButton(step, onpause = () => {}) {
  const node = html("button", { type: "button", class: "lf-button lf-play", onclick: () => run(timer === null) }, "Play");
  let timer = null;
  const go = () => (node.isConnected ? step() : run(false));
  function run(on) {
    if (on === (timer !== null)) return;
    clearInterval(timer);
    timer = on ? setInterval(go, matchMedia("(prefers-reduced-motion: reduce)").matches ? 1000 : 400) : null;
    node.textContent = on ? "Pause" : "Play";
    if (on) go(); else onpause();
  }
  return { node, run, get isRunning() { return timer !== null; } };
}

/** What is seen only when its button is pressed. */
export function fold(label, ...children) {
  const id = uniqueId("fold");
  const inside = html("div", { id, class: "lf-folded", hidden: true }, ...children);
  const button = html("button", { type: "button", class: "lf-button lf-fold", "aria-expanded": "false", "aria-controls": id }, label);
  const set = (open) => { inside.hidden = !open; button.setAttribute("aria-expanded", open); };
  button.addEventListener("click", () => set(inside.hidden));
  return { node: html("div", { class: "lf-wide" }, button, inside), set open(value) { set(value); } };
}

/**
 * A matrix of numbers to type: `onchange(i, j, value)` hears of each between -limit and limit, `onfault(words)` of what
 * is none. `update(values)` fills it, but for the field that is being typed in.
 */
export function numberTable({ caption, rows, columns, limit, onchange, onfault }) {
  const field = (i, j) => html("input", { type: "number", step: 0.1, min: -limit, max: limit, "aria-label": `${caption}, ${rows[i]}, ${columns[j]}`,
    oninput: ({ target }) => {
      const isGood = target.value !== "" && Math.abs(Number(target.value)) <= limit;
      target.setAttribute("aria-invalid", !isGood);
      if (isGood) onchange(i, j, Number(target.value)); else onfault(`Type a number from ${format(-limit, 1)} to ${format(limit, 1)}.`);
    },
    onblur: () => update(present) });
  const inputs = rows.map((_, i) => columns.map((__, j) => field(i, j)));
  const lines = inputs.map((row, i) => html("tr", {}, html("th", { scope: "row" }, rows[i]), row.map((input) => html("td", {}, input))));
  const table = html("table", { class: "lf-numbers" }, html("caption", {}, caption),
    html("thead", {}, html("tr", {}, html("td"), columns.map((name) => html("th", { scope: "col" }, name)))), html("tbody", {}, lines));
  let present;
  function update(values) {
    present = values;
    inputs.forEach((row, i) => row.forEach((input, j) => {
      if (input === document.activeElement) return;
      input.value = values[i][j];
      input.removeAttribute("aria-invalid");
    }));
  }
  return { table, lines, inputs, update };
}

/**
 * Colour a cell by its value between -limit and limit. Both ends of the two ramps keep a contrast of at least 4.5 to
 * the ink in both themes (widgets.css), so the number in the cell can always be read.
 */
export function heat(cell, value, limit = 1) {
  cell.style.setProperty("--share", `${Math.round(100 * Math.min(1, Math.abs(value) / limit))}%`);
  cell.classList.toggle("lf-negative", value < 0);
}

/** A cell with a number, and below it a bar from the middle, or from the left for numbers that are never negative. */
export function gauge(style, signed) {
  const [number, bar] = [html("span"), html("i", { style })];
  const node = html("td", {}, number, html("span", { class: signed ? "lf-gauge lf-signed" : "lf-gauge" }, bar));
  function show(value, limit) {
    const share = ((100 / (signed ? 2 : 1)) * Math.min(Math.abs(value), limit)) / (limit || 1);
    number.textContent = format(value);
    bar.style.width = `${share}%`;
    bar.style.left = `${signed ? 50 - (value < 0 ? share : 0) : 0}%`;
  }
  return { node, show };
}

/**
 * A matrix as a table with row and column names. `update(values)` fills it; cells are `cells[i][j]`. With `sums` it
 * has one more column and one more row, for the sums of the rows and of the columns.
 */
export function matrixTable({ caption, rows, columns, digits = 2, limit = 1, corner = "", sums = false }) {
  const cells = rows.map(() => columns.map(() => html("td", { class: "lf-cell" })));
  const [right, below] = [rows.map(() => html("td", { class: "lf-sum" })), columns.map(() => html("td", { class: "lf-sum" }))];
  const heads = rows.map((name) => html("th", { scope: "row" }, name));
  const tops = columns.map((name) => html("th", { scope: "col" }, name));
  const sumHead = (scope) => html("th", { scope, class: "lf-sum" }, "sum");
  const table = html("table", { class: "lf-matrix" }, html("caption", {}, caption),
    html("thead", {}, html("tr", {}, corner ? html("th", { scope: "col", class: "lf-corner" }, corner) : html("td"), tops, sums ? sumHead("col") : [])),
    html("tbody", {}, cells.map((row, i) => html("tr", {}, heads[i], row, sums ? right[i] : [])),
      sums ? html("tr", {}, sumHead("row"), below, html("td", { class: "lf-sum" })) : []));
  function update(values) {
    values.forEach((row, i) => row.forEach((value, j) => {
      cells[i][j].textContent = format(value, digits);
      heat(cells[i][j], value, limit);
    }));
    if (!sums) return;
    rowSums(values).forEach((sum, i) => { right[i].textContent = format(sum, digits); });
    columnSums(values).forEach((sum, j) => { below[j].textContent = format(sum, digits); });
  }
  return { table, cells, heads, tops, right, below, update };
}
