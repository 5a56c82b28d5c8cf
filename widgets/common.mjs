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
  const address = new URL("widgets.css", import.meta.url).href;
  if (![...document.styleSheets].some((sheet) => sheet.href?.split("?")[0] === address)) {
    document.head.append(html("link", { rel: "stylesheet", href: address }));
  }
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

/**
 * Colour a cell by its value between -limit and limit. Both ends of the two ramps keep a contrast of at least 4.5 to
 * the ink in both themes (widgets.css), so the number in the cell can always be read.
 */
export function heat(cell, value, limit = 1) {
  cell.style.setProperty("--share", `${Math.round(100 * Math.min(1, Math.abs(value) / limit))}%`);
  cell.classList.toggle("lf-negative", value < 0);
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
