// What the live figures share: small linear algebra, elements, controls and heat-mapped tables.
// Matrices are arrays of rows, as in the book: rows are tokens.
import { flag, nameOf, number, oneOf, read, text as textKind, whenAddressed, write } from "./address.mjs";

/** What `make(0)`, `make(1)`, … give, so many of them. */
export const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));
export const total = (numbers) => numbers.reduce((sum, value) => sum + value, 0);
export const mean = (numbers) => total(numbers) / numbers.length;
/** Where the largest number stands; and the places of all numbers, from the largest to the smallest. */
export const largest = (numbers) => numbers.indexOf(Math.max(...numbers));
export const ranked = (numbers) => Array.from(numbers.keys()).sort((i, j) => numbers[j] - numbers[i]);
export const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

export const transpose = (a) => a[0].map((_, j) => a.map((row) => row[j]));
export const dot = (u, v) => u.reduce((sum, value, i) => sum + value * v[i], 0);
export const matmul = (a, b) => { const columns = transpose(b); return a.map((row) => columns.map((c) => dot(row, c))); };
export const add = (a, b) => a.map((row, i) => row.map((value, j) => value + b[i][j]));
export const scaled = (a, factor) => a.map((row) => row.map((value) => value * factor));
export const rowSums = (a) => a.map(total);

/** Numbers between 0 and 1, always the same ones for a seed: Park and Miller's generator. */
export function parkMiller(seed) {
  const modulus = 2 ** 31 - 1;
  let state = seed;
  return () => (state = (48271 * state) % modulus) / modulus;
}

/** Softmax of one row of scores; hidden entries weigh exactly zero, a row that is all hidden gives zeros. */
export function softmax(scores, visible = scores.map(() => true)) {
  const largest = Math.max(...scores.filter((_, i) => visible[i]));
  const exponentials = scores.map((score, i) => (visible[i] ? Math.exp(score - largest) : 0));
  const sum = total(exponentials);
  return exponentials.map((value) => (sum === 0 ? 0 : value / sum));
}

/** A number for the eye: fixed digits, a true minus sign, and no negative zero. */
export function format(value, digits = 2) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/** A letter for the eye. */
export const visible = (letter) => ({ " ": "␣", "\n": "↵", "\t": "⇥" })[letter] ?? letter;

/** Words, or a list of words and formulas (formula.mjs), as plain text. */
export const asText = (words) => [words ?? ""].flat().map((part) => part.getAttribute?.("alttext") ?? part.textContent ?? part).join("");

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

export const button = (words, onclick, more = {}) => html("button", { type: "button", class: "lf-button", onclick, ...more }, words);
export const title = (...words) => html("p", { class: "lf-title" }, ...words);
export const note = (...words) => html("p", { class: "lf-note" }, ...words);
export const wideNote = (...words) => html("p", { class: "lf-note lf-wide" }, ...words);
export const panel = (...parts) => html("div", { class: "lf-panel" }, ...parts);
export const wide = (...parts) => html("div", { class: "lf-wide" }, ...parts);
export const rowHead = (...words) => html("th", { scope: "row" }, ...words);
export const columnHead = (...words) => html("th", { scope: "col" }, ...words);
export const bar = (colour = "var(--lf-hue-1)") => html("span", { class: "lf-bar", style: `color: ${colour}` });

/** A table: rows of cells, below heads for the columns, of which empty words give an empty cell. */
export function table(caption, heads, rows, attributes = {}) {
  const top = heads.map((head) => (head === "" ? html("td") : typeof head === "string" ? columnHead(head) : head));
  return html("table", attributes, html("caption", {}, caption), top.length ? html("thead", {}, html("tr", {}, top)) : [],
    html("tbody", {}, rows.map((row) => (Array.isArray(row) ? html("tr", {}, row.flat()) : row))));
}

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
/** Have the arrow keys do `move(down, right, event)`. */
export function onArrows(node, move) {
  node.addEventListener("keydown", (event) => {
    if (!ARROWS[event.key]) return;
    event.preventDefault();
    move(...ARROWS[event.key], event);
  });
}

/** Where a key leads in a row of `count`, from place `n`, if it is one that leads anywhere. */
export const placeAfter = (key, n, count) => ({ ArrowLeft: n - 1, ArrowRight: n + 1, Home: 0, End: count - 1 })[key];

/** `begin(event)` hears when `node` is pressed, and `move(event)` of the pointer's way until it is let go. */
export function onDrag(node, begin, move) {
  let held = null;
  node.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    held = event.pointerId;
    node.setPointerCapture(held);
    begin(event);
  });
  node.addEventListener("pointermove", (event) => { if (event.pointerId === held) move(event); });
  for (const end of ["pointerup", "pointercancel"]) node.addEventListener(end, () => { held = null; });
}

/** A line of a drawing, by its class and its path. */
export const stroke = (kind, d, more = {}) => svg("path", { class: kind, d, ...more });
/** Words in a drawing, their middle at a place. */
export const words = (text, x, y, more = {}) => svg("text", { x, y, "text-anchor": "middle", ...more }, text);
/** How much of its colour a node has, as the style sheet reads it. */
export const tint = (node, share) => node.style.setProperty("--share", `${Math.round(100 * clamp(share, 0, 1))}%`);

export const capital = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;
export const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

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

/** What stands in a file beside the modules. */
export const stored = async (file) => (await fetch(new URL(file, import.meta.url))).json();

/** A canvas has colours of its own: draw again when the page, or a notebook, changes between light and dark. */
export function whenThemeChanges(redraw) {
  const observer = new MutationObserver(redraw);
  const attributeFilter = ["data-theme", "theme", "data-jp-theme-light", "class"];
  for (const node of [document.documentElement, document.body]) observer.observe(node, { attributeFilter });
}

/**
 * Turn `element` into an empty live figure: a row of controls, a stage, and a sentence that is read aloud when it
 * changes, beside Reset if there is anything to reset. `publish(state, sentence)` gives the numbers now shown to tests,
 * and to screen readers; a sentence may be a list of words and formulas, and so may labels be. Settings begin as `start`, and after each `set(change)` they are shown by `draw(settings)`;
 * `bind({ name: control })` puts controls of single settings into the row, which then go with them.
 */
export function frame(element, { label, start, draw, reset }) {
  loadStyle();
  const controls = html("div", { class: "lf-controls" });
  const stage = html("div", { class: "lf-stage" });
  const summary = html("p", { class: "lf-summary", "aria-live": "polite" });
  const bound = [];
  const back = reset ?? (start && (() => set(start)));
  let settings = start;
  element.classList.add("lf");
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", `Live figure: ${label}`);
  const foot = html("div", { class: "lf-foot" }, summary, back ? button("Reset", back, { class: "lf-button lf-reset" }) : []);
  element.replaceChildren(controls, stage, foot);
  let [waiting, said] = [];
  function publish(state, sentence) {
    element.dataset.state = JSON.stringify(state);
    clearTimeout(waiting);
    // A drag makes many states a second: read out only the one at which the reader rests.
    waiting = setTimeout(() => {
      if (said === asText(sentence)) return;
      said = asText(sentence);
      summary.replaceChildren(...[sentence ?? ""].flat());
    }, 150);
  }
  function set(change) {
    settings = { ...settings, ...change };
    for (const { show } of bound) show(settings);
    draw(settings);
  }
  function bind(named) {
    bound.push(bindTo(set, named));
    controls.append(...bound.at(-1).nodes);
  }
  /**
   * Give the settings an address, which *Copy link* tells and a link sets: those of bound controls, and `more` kinds by
   * their keys (address.mjs), where null takes one away. To be called once the figure stands as it begins; a figure that
   * keeps settings of its own says what they are `now`, and has `go(settings)` take them from a link.
   */
  function addressed(more = {}, { now = () => settings, go = set } = {}) {
    const name = nameOf(element);
    if (!name) return null;
    const kinds = Object.fromEntries(Object.entries(Object.assign({}, ...bound.map((each) => each.kinds), more)).filter(([, kind]) => kind));
    const start = { ...now() }; // as it is now: some change theirs in place
    foot.append(sayingButton("Copy link", () => copyLink(write(name, kinds, start, now())), "lf-link"),
      sayingButton("Copy picture", async () => (await import("./picture.mjs")).copyPicture(stage, name), "lf-copy"));
    return whenAddressed((fragment) => {
      const wanted = read(fragment, name, kinds, start);
      return wanted && go(wanted);
    });
  }
  return { controls, stage, publish, set, bind, addressed, get settings() { return settings; } };
}

/** A button that says for a while what its work has come to. */
function sayingButton(name, work, kind) {
  let rest;
  const node = button(name, async () => {
    node.textContent = await work();
    clearTimeout(rest);
    rest = setTimeout(() => { node.textContent = name; }, 3000);
  }, { class: `lf-button ${kind}` });
  return node;
}

/** Put an address into the page's own, and on the clipboard. */
async function copyLink({ fragment, missing }) {
  history.replaceState(history.state, "", `#${fragment}`);
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  return `${copied ? "Copied" : "Now in the address bar"}${missing.length ? `, without ${missing.join(", ")}: too long` : ""}`;
}

/** Controls by the settings that they change, by `set`, unless they do something else; `show(settings)` moves them. */
export function bindTo(set, named) {
  const all = Object.entries(named);
  for (const [name, control] of all) control.onchange ??= (value) => set({ [name]: value });
  return {
    nodes: all.map(([, { node }]) => node),
    kinds: Object.fromEntries(all.map(([name, { kind }]) => [name, kind])),
    show(settings) { for (const [name, control] of all) control.value = settings[name]; },
  };
}

/** What is read out in place of a label with formulas. */
const spoken = (label) => (Array.isArray(label) ? asText(label) : null);

/**
 * A labelled slider, of numbers from `min` to `max` or of a list of `values`; `show(value)` puts the value into words. Set
 * `slider.value = …` to move it from outside.
 */
export function slider({ label, values, min = 0, max = values.length - 1, step = 1, show = String, ticks = [], onchange }) {
  const [id, list] = [uniqueId("slider"), uniqueId("ticks")];
  const output = html("output", { for: id, class: "lf-output" });
  const input = html("input", { type: "range", id, min, max, step, list: ticks.length ? list : null, "aria-label": spoken(label) });
  const node = html("div", { class: "lf-slider" }, html("label", { for: id }, label), input, output,
    ticks.length ? html("datalist", { id: list }, ticks.map((value) => html("option", { value }))) : []);
  const now = () => (values ? values[input.value] : Number(input.value));
  const say = () => {
    const value = show(now());
    output.replaceChildren(...[value].flat());
    input.setAttribute("aria-valuetext", asText(value));
  };
  const hear = () => { say(); self.onchange(now()); };
  input.addEventListener("input", hear);
  // Where a finger sets out to scroll the page, the slider that it touched goes back.
  let before;
  input.addEventListener("pointerdown", () => { before = input.value; });
  input.addEventListener("pointercancel", () => { if (input.value !== before) { input.value = before; hear(); } });
  const digits = String(step).split(".")[1]?.length ?? 0;
  const self = {
    node, input, onchange, kind: values ? oneOf(values) : number(min, max, digits),
    set value(value) { input.value = values ? values.indexOf(value) : value; say(); },
    set max(value) { input.max = value; say(); },
  };
  return self;
}

/** A labelled checkbox, drawn as it is everywhere else on the reader's machine. */
export function checkbox({ label, onchange, hideLabel = false }) {
  const input = html("input", { type: "checkbox", onchange: () => self.onchange(input.checked), "aria-label": hideLabel ? label : spoken(label) });
  const node = hideLabel ? html("label", { class: "lf-hit" }, input) : html("label", { class: "lf-check" }, input, label);
  const self = { node, onchange, kind: flag, set value(value) { input.checked = value; } };
  return self;
}

/** One of several, as a row of radio buttons; `options` is a list of [value, label]. */
export function choice({ legend, options, onchange }) {
  const name = uniqueId("choice");
  const inputs = options.map(([value]) => html("input", { type: "radio", name, value, onchange: () => self.onchange(value) }));
  const labels = options.map(([, label], i) => html("label", { class: "lf-check" }, inputs[i], label));
  const node = html("fieldset", { class: "lf-choice" }, html("legend", {}, legend), labels);
  const self = {
    node, labels, onchange, kind: oneOf(options.map(([value]) => value)),
    get value() { return inputs.find((input) => input.checked)?.value; },
    set value(value) { for (const input of inputs) input.checked = input.value === String(value); },
  };
  return self;
}

/** One of several, as a list that opens; `options` is a list of [value, label]. */
export function picker({ label, options, onchange }) {
  const id = uniqueId("picker");
  const select = html("select", { id, onchange: () => onchange(select.value) }, options.map(([value, words]) => html("option", { value }, words)));
  const node = html("div", { class: "lf-pick" }, html("label", { for: id }, label), select);
  return { node, kind: oneOf(options.map(([value]) => value)), set value(value) { select.value = value; } };
}

/** A labelled line of text, or a `textarea` of several, which is cut where it is longer than can be typed. */
export function textField({ label, maxlength, tag = "input", onchange }) {
  const id = uniqueId("text");
  const input = html(tag, { id, type: tag === "input" ? "text" : null, maxlength, rows: tag === "input" ? null : 1,
    autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    oninput: () => self.onchange(input.value.slice(0, maxlength)) });
  const name = html("label", { for: id }, label);
  const node = html("div", { class: "lf-field" }, name, input);
  // What is being typed is not written again, so that the cursor stays where it is.
  const self = { node, name, onchange, kind: textKind(maxlength), set value(value) { if (input.value !== value) input.value = value; } };
  return self;
}

/** Whether the reader wants little to move. */
export const isCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * A button that has `step()` done again and again: slowly for those who want little to move. `run(false)` stops it, and
 * `onpause()` hears of it.
 */
export function playButton(step, onpause = () => {}) {
  const node = button("Play", () => run(timer === null), { class: "lf-button lf-play" });
  let timer = null;
  const go = () => (node.isConnected ? step() : run(false));
  function run(on) {
    if (on === (timer !== null)) return;
    clearInterval(timer);
    timer = on ? setInterval(go, isCalm() ? 1000 : 400) : null;
    node.textContent = on ? "Pause" : "Play";
    if (on) go(); else onpause();
  }
  return { node, run, get isRunning() { return timer !== null; } };
}

/** A row of facts by their names; `show(values)` fills it. */
export function factList(names) {
  const values = names.map(() => html("dd"));
  const node = html("dl", { class: "lf-facts" }, names.map((name, i) => html("div", {}, html("dt", {}, name), values[i])));
  return { node, show: (facts) => facts.forEach((fact, i) => { values[i].textContent = fact; }) };
}

/** What is seen only when its button is pressed. */
export function fold(label, ...children) {
  const id = uniqueId("fold");
  const inside = html("div", { id, class: "lf-folded", hidden: true }, ...children);
  const opener = button(label, () => set(inside.hidden), { class: "lf-button lf-fold", "aria-expanded": "false", "aria-controls": id });
  const set = (open) => { inside.hidden = !open; opener.setAttribute("aria-expanded", open); };
  return { node: wide(opener, inside), set open(value) { set(value); } };
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
  const lines = inputs.map((row, i) => html("tr", {}, rowHead(rows[i]), row.map((input) => html("td", {}, input))));
  let present;
  function update(values) {
    present = values;
    inputs.forEach((row, i) => row.forEach((input, j) => {
      if (input === document.activeElement) return;
      input.value = values[i][j];
      input.removeAttribute("aria-invalid");
    }));
  }
  return { table: table(caption, ["", ...columns], lines, { class: "lf-numbers" }), lines, update };
}

/**
 * Colour a cell by its value between -limit and limit. Both ends of the two ramps keep a contrast of at least 4.5 to
 * the ink in both themes (widgets.css), so the number in the cell can always be read.
 */
export function heat(cell, value, limit = 1) {
  tint(cell, Math.abs(value) / limit);
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
  const heads = rows.map((name) => rowHead(name));
  const tops = columns.map((name) => columnHead(name));
  const sumHead = (scope) => html("th", { scope, class: "lf-sum" }, "sum");
  const first = corner && html("th", { scope: "col", class: "lf-corner" }, corner);
  const lines = cells.map((row, i) => [heads[i], row, sums ? right[i] : []]);
  if (sums) lines.push([sumHead("row"), below, html("td", { class: "lf-sum" })]);
  const node = table(caption, [first, ...tops, ...(sums ? [sumHead("col")] : [])], lines, { class: "lf-matrix" });
  function update(values) {
    values.forEach((row, i) => row.forEach((value, j) => {
      cells[i][j].textContent = format(value, digits);
      heat(cells[i][j], value, limit);
    }));
    if (!sums) return;
    rowSums(values).forEach((sum, i) => { right[i].textContent = format(sum, digits); });
    rowSums(transpose(values)).forEach((sum, j) => { below[j].textContent = format(sum, digits); });
  }
  return { table: node, cells, heads, tops, right, below, update };
}
