// A digit that the reader draws, read by a vision transformer (chapter on vision): what it says, where its class token looks,
// and what it says without some of the patches. ink.mjs makes of strokes such images as scikit-learn's digits are.
import { flag, list, maybe, oneOf, place as placeKind } from "./address.mjs";
import {
  bar, button, checkbox, choice, clamp, columnHead, format, frame, html, largest, matmul, mean as meanOf, note, onArrows, onDrag, panel,
  rowHead, softmax, stored, table, times, title, transpose, whenThemeChanges,
} from "./common.mjs";
import { rowsOf } from "./engine/arrays.mjs";
import { newest } from "./engine/client.mjs";
import { start } from "./engine/start.mjs";
import { BLOCK, bitmapOf, blank, counted, fitted, onPaper, pointsOf, stamp, strokesKind } from "./ink.mjs";

const LABEL = "draw a digit, and see what a vision transformer makes of its patches";
const FULL = BLOCK ** 2; // a pixel of the image that is all ink,
const INK = 2; // which the book's models read as this
const PEN = 1 / 16; // radius of the pen, as a share of the paper
const THREE = [[28, 24], [42, 12], [60, 13], [69, 26], [60, 40], [46, 46], [64, 52], [72, 66], [60, 82], [42, 86], [27, 76]]; // in per cent

const mean = (rows) => transpose(rows).map(meanOf);

/** What the model makes of an image: probabilities, and by block and head the attention of the row that it judges by. */
function readings(found, { pooling, stack: { num_layers: layers } }) {
  const judge = (rows) => (pooling === "class" ? rows[0] : mean(rows));
  const weights = times(layers, (l) => found[`encoder.stack.blocks.${l}.attention.weights`].map(rowsOf));
  let rollout = judge(weights[0][0].map((row, n) => row.map((_, m) => Number(n === m))));
  for (const block of [...weights].reverse()) { // half of a token is what it was, half what it reads
    const read = mean(block.map((head) => matmul([rollout], head)[0]));
    rollout = rollout.map((value, n) => (value + read[n]) / 2);
  }
  const rows = { rollout };
  weights.map((block) => block.map(judge)).forEach((block, l) => {
    block.forEach((head, h) => { rows[`${l}.${h}`] = head; });
    rows[`${l}.mean`] = mean(block);
  });
  return { probabilities: softmax(found.returned), rows };
}

/** A canvas of small squares, each with the colour of the canvas, as strongly as its share of 1 says. */
function squares(rows, columns, style) {
  const node = html("canvas", { width: columns, height: rows, class: style, "aria-hidden": "true" });
  const pen = node.getContext("2d");
  function paint(shares) {
    pen.clearRect(0, 0, columns, rows);
    pen.fillStyle = getComputedStyle(node).color;
    shares.forEach((share, n) => {
      pen.globalAlpha = share;
      pen.fillRect(n % columns, Math.floor(n / columns), 1, 1);
    });
  }
  return { node, paint };
}

/** Tells where a pointer is on `node`, as shares of its width and height: when it is pressed, and on all the way of a drag. */
function draggable(node, ondown, ondrag) {
  const place = ({ clientX, clientY }) => {
    const box = node.getBoundingClientRect();
    return [(clientX - box.left) / box.width, (clientY - box.top) / box.height];
  };
  onDrag(node, (event) => ondown(place(event)), (event) => {
    const way = event.getCoalescedEvents?.() ?? [];
    ondrag((way.length ? way : [event]).map(place));
  });
}

/** Paper to draw on; `ondraw(way, pen)` hears of where ink was drawn, and where the pen is that the keys move. */
function paper({ height, width }, ondraw) {
  const { node: canvas, paint } = squares(height, width, "lf-sheet");
  const nib = html("span", { class: "lf-nib" });
  const node = html("div", { class: "lf-paper", tabindex: 0, role: "application", style: `aspect-ratio: ${width} / ${height}`,
    "aria-label": "Paper: draw on it. The arrow keys move the pen, the space bar puts it down or lifts it." }, canvas, nib);
  let [last, pen] = [];
  const follow = (shares) => {
    const places = shares.map(([x, y]) => [onPaper(x * width, width), onPaper(y * height, height)]);
    ondraw(last ? [last, ...places] : places, pen);
    last = places.at(-1);
  };
  draggable(canvas, (share) => { last = null; follow([share]); }, follow);
  function move(down, right, isDown) {
    const step = Math.ceil(Math.max(height, width) / 32);
    const [x, y] = [clamp(pen.x + right * step, 0, width), clamp(pen.y + down * step, 0, height)];
    ondraw(isDown ? [[pen.x, pen.y], [x, y]].map(([i, j]) => [onPaper(i, width), onPaper(j, height)]) : [], { x, y, down: isDown });
  }
  onArrows(node, (down, right) => move(down, right, pen.down));
  node.addEventListener("keydown", (event) => {
    if (event.key !== " ") return;
    event.preventDefault();
    move(0, 0, !pen.down);
  });
  function show(bits, to) {
    pen = to;
    paint(bits);
    Object.assign(nib.style, { left: `${(100 * pen.x) / width}%`, top: `${(100 * pen.y) / height}%` });
    nib.classList.toggle("lf-down", pen.down);
  }
  return { node, show };
}

/** The image as the model reads it, cut into patches, under a wash; a tap, a drag or a key hides patches. */
function patchwork([height, width], [down, right], { onhide, onlook }) {
  const [picture, wash] = [squares(height, width, "lf-sheet"), squares(down, right, "lf-sheet lf-washed")];
  const cells = times(down * right, (n) => html("span", { class: "lf-patch", role: "checkbox", tabindex: n ? -1 : 0, onfocus: () => onlook(n) }));
  const grid = html("div", { class: "lf-patches", role: "group", "aria-label": "Patches: tap, or drag over them, to hide them" }, cells);
  grid.style.gridTemplate = `repeat(${down}, 1fr) / repeat(${right}, 1fr)`;
  const isHidden = (n) => cells[n].getAttribute("aria-checked") === "true";
  const at = ([x, y]) => (x >= 0 && y >= 0 && x < 1 && y < 1 ? Math.floor(y * down) * right + Math.floor(x * right) : -1);
  let hides;
  const sweep = (n) => { if (n >= 0 && isHidden(n) !== hides) onhide(n, hides); };
  draggable(grid, (share) => { hides = !isHidden(at(share)); sweep(at(share)); }, (shares) => shares.map(at).forEach(sweep));
  onArrows(grid, (along, across, { target }) => cells[cells.indexOf(target) + across + right * along]?.focus());
  grid.addEventListener("keydown", (event) => {
    if (event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    const n = cells.indexOf(event.target);
    onhide(n, !isHidden(n));
  });
  grid.addEventListener("focusin", ({ target }) => cells.forEach((cell) => { cell.tabIndex = cell === target ? 0 : -1; }));
  cells.forEach((cell, n) => cell.addEventListener("pointerenter", () => onlook(n)));
  const hide = (hidden) => cells.forEach((cell, n) => cell.setAttribute("aria-checked", hidden.includes(n)));
  function show(image, patches, words) {
    const most = Math.max(...patches);
    picture.paint(image.flat().map((count) => count / FULL));
    wash.paint(patches.map((value) => (0.7 * value) / (most || 1)));
    cells.forEach((cell, n) => cell.setAttribute("aria-label", words(n)));
  }
  return { node: html("div", { class: "lf-paper", style: `aspect-ratio: ${width} / ${height}` }, picture.node, wash.node, grid), hide, show };
}

/** Radio buttons that are small pictures, of rows and columns as in `size`; `options` is a list of [value, name, words below]. */
function pictures({ legend, options, onchange, size, style }) {
  const radio = choice({ legend, options: options.map(([value, , words = ""]) => [value, words]), onchange });
  radio.node.classList.add("lf-pictures");
  const tiles = options.map(() => squares(...size, style));
  radio.labels.forEach((label, i) => {
    label.title = options[i][1];
    label.firstChild.setAttribute("aria-label", options[i][1]);
    label.prepend(tiles[i].node);
  });
  return { radio, paint: (images) => tiles.forEach(({ paint }, i) => paint(images[i])) };
}

/** What the model says: a bar for each answer, and a tick where it was with all patches. */
function answers(count) {
  const rows = times(count, (answer) => {
    const [shown, tick] = [bar("var(--lf-marked)"), html("span", { class: "lf-tick" })];
    const [head, now, whole] = [rowHead(String(answer)), html("td"), html("td")];
    const drawn = html("td", { class: "lf-bar-cell" }, html("span", { class: "lf-track" }, shown, tick));
    return { head, bar: shown, tick, now, whole, node: html("tr", {}, head, drawn, now, whole) };
  });
  const wholeHead = columnHead("whole");
  const node = table("What the model says", ["answer", "", "now", wholeHead], rows.map((row) => row.node));
  function show(now, whole, label) {
    const isWhole = now === whole;
    wholeHead.hidden = isWhole;
    rows.forEach((row, n) => {
      row.head.textContent = n === label ? `label: ${n}` : n;
      row.node.classList.toggle("lf-said", n === largest(now));
      [row.now.textContent, row.whole.textContent] = [format(now[n], 3), format(whole[n], 3)];
      row.whole.hidden = isWhole;
      row.tick.hidden = isWhole || whole[n] < 0.005;
      [row.bar.style.width, row.tick.style.left] = [`${100 * now[n]}%`, `${100 * whole[n]}%`];
    });
  }
  return { node, show };
}

const examples = () => stored("digits.json").then(({ images }) => images, () => []); // without them one can still draw

/** The names of what can lie over the image: each head, the mean of each block, and roll-out. */
const viewsOf = ({ num_layers: layers, num_heads: heads }) => [
  ...times(layers, (l) => [...times(heads, (h) => h), "mean"].map((h) =>
    [`${l}.${h}`, `block ${l + 1}, ${h === "mean" ? "mean of the heads" : `head ${h + 1}`}`])).flat(),
  ["rollout", "roll-out through all blocks"]];

/** The parts of the figure, on the stage; `set(change)` changes its state. */
function build({ controls, stage }, config, { grid, full, digits, views }, { set, ondraw, onhide, onlook }) {
  const sheet = paper(full, ondraw);
  const image = patchwork(config.image_size, grid, { onhide, onlook });
  const says = answers(config.num_classes);
  const map = pictures({ legend: "Where it looks, by block and head", options: views, size: grid, style: "lf-washed",
    onchange: (view) => set({ view }) });
  const samples = pictures({ legend: "Test digits", options: digits.map(({ number, label }, i) => [i, `test digit ${number}, a ${label}`, label]),
    size: config.image_size, onchange: (i) => set({ ...paperOf(digits, Number(i)), hidden: [] }) });
  const fit = checkbox({ label: "prepared like the data set", onchange: (on) => set({ fit: on }) });
  const all = button("Show all patches", () => set({ hidden: [] }));
  const clear = button("Clear", () => set({ ...paperOf(digits, null), hidden: [] }));
  const narrow = (words, ...parts) => html("div", { class: "lf-panel lf-narrow" }, title(words), parts);
  const looked = note("");
  const how = note("Strokes are stretched to 20 of 32 columns and all 32 rows, made as thick as is usual in the data set, and counted in " +
    "blocks of 4 × 4 pixels, as its digits were.");
  samples.radio.node.hidden = !digits.length;
  map.radio.node.classList.add("lf-maps");
  map.radio.node.style.gridTemplateColumns = `repeat(${config.stack.num_heads + 1}, minmax(1.8rem, 3.2rem))`;
  controls.append(samples.radio.node);
  const under = html("div", { class: "lf-controls" }, clear, fit.node);
  stage.append(narrow("Draw here", sheet.node, under, how), narrow("It reads this: tap to hide", image.node, looked, all),
    html("div", { class: "lf-panel lf-narrow lf-says" }, says.node, note("Red ticks: what the model says with all patches.")),
    panel(note("A row for each block, a column for each head, then their mean; last, roll-out. The one you choose lies over the image."), map.radio.node));
  return { sheet, image, says, map, samples, fit, how, all, looked };
}

/** Paper with a test digit on it, or with nothing. */
const paperOf = (digits, n) => ({ example: n, paper: n, base: n === null ? null : bitmapOf(digits[n].pixels), strokes: [] });

/** A way that is drawn, from its first place on: it goes on from the last stroke, or is a new one. */
function longer(strokes, way) {
  if (!way.length) return strokes;
  const last = strokes.at(-1);
  return last?.at(-1).join() === way[0].join() ? [...strokes.slice(0, -1), [...last, ...way.slice(1)]] : [...strokes, way];
}

/** What the figure begins with: the first test digit, or, where there is none, a drawn 3. */
function beginning({ full: { height, width }, digits, views, isDigits }) {
  const three = THREE.map(([x, y]) => [onPaper((x * width) / 100, width), onPaper((y * height) / 100, height)]);
  const ink = digits.length ? paperOf(digits, 0) : { ...paperOf(digits, null), strokes: [three] };
  return { ...ink, hidden: [], view: views.at(-2)[0], fit: isDigits, pen: { x: width / 2, y: height / 2, down: false } };
}

/** The shown state in words; `name(n)` says where patch n is. */
function sentence({ pixels, hidden, label }, { whole, now, answer, patches }, name, view) {
  const what = !pixels.flat().some(Boolean) ? "Blank paper: the" : label === undefined ? "The" : `A ${label}: the`;
  const many = hidden.length === 1 ? `the patch in ${name(hidden[0])}` : `${hidden.length} patches`;
  const before = largest(whole);
  const change = hidden.length ? `, with ${many} hidden; whole, ${before}, with ${format(whole[before], 3)}` : "";
  return `${what} model says ${answer}, with probability ${format(now[answer], 3)}${change}. It looks most at ${name(largest(patches))}, by ${view}.`;
}

/** The figure: the drawing, what is hidden, and what the model reads in both. */
class Reading {
  constructor(element, model, known, given) {
    const { config } = model;
    const ink = (given?.ink ?? INK) / FULL;
    Object.assign(this, { config, known, looked: null, said: "", state: beginning(known) });
    this.skip = config.pooling === "class" ? 1 : 0;
    this.answered = new Map(); // what was seen before, such as what Reset leads back to, is there at once
    const { publish, addressed, ...places } = frame(element, { label: LABEL, reset: () => this.set(beginning(known)) });
    Object.assign(this, { publish, addressed });
    this.parts = build(places, config, known, { set: (change) => this.set(change),
      ondraw: (way, pen) => this.set({ pen, ...(way.length && { strokes: longer(this.state.strokes, way), example: null }) }),
      onhide: (n, hides) => this.hide(n, hides),
      onlook: (n) => { this.looked = n; if (this.shown) this.tell(); } });
    this.read = newest(async (...images) => {
      if (this.answered.size > 100) this.answered.clear();
      for (const image of images) {
        const inked = image.map((row) => row.map((count) => ink * count));
        this.answered.set(image.join(), readings(await model.ask("intermediates", "call", inked), config));
      }
    }, () => this.set({}), ({ message }) => publish({ error: message }, message));
  }

  /** Have links set it. */
  follow() {
    const { digits, grid: [down, across], views } = this.known;
    const patch = placeKind(down * across);
    const paper = { ...maybe(placeKind(digits.length)), of: (settings) => settings.paper, into: (n) => paperOf(digits, n) };
    const drawn = { ...strokesKind, of: (settings) => settings.strokes, into: (strokes) => ({ strokes, example: null }) };
    return this.addressed({ digit: paper, drawn, hidden: list(patch, down * across), view: oneOf(views.map(([view]) => view)), fit: flag },
      { now: () => this.state, go: (wanted) => this.set(wanted) });
  }

  hide(n, hides) {
    const others = this.state.hidden.filter((other) => other !== n);
    this.set({ hidden: hides ? [...others, n].sort((a, b) => a - b) : others });
  }

  nameOf(n) {
    const [, across] = this.known.grid;
    return `row ${Math.floor(n / across) + 1}, column ${(n % across) + 1}`;
  }

  set(change) {
    const state = this.state = { ...this.state, ...change };
    const { parts, known: { full, grid, digits }, config: { patch_size: [tall, wide] } } = this;
    const bare = blank(full.height, full.width, state.base?.bits.slice());
    const points = pointsOf(state.strokes);
    stamp(bare, points, PEN * Math.min(full.height, full.width));
    const pixels = counted(state.fit && !state.base ? fitted(points) : bare);
    const isHidden = (i, j) => state.hidden.includes(Math.floor(i / tall) * grid[1] + Math.floor(j / wide));
    const now = pixels.map((row, i) => row.map((count, j) => (isHidden(i, j) ? 0 : count)));
    parts.sheet.show(bare.bits, state.pen);
    parts.image.hide(state.hidden);
    const [whole, seen] = [pixels, now].map((each) => this.answered.get(each.join()));
    const { strokes, base, paper, ...rest } = state;
    const inputs = { ...rest, number: digits[state.example]?.number, label: digits[state.example]?.label, pixels };
    if (whole && seen) return this.show(inputs, now, whole, seen);
    this.publish({ ...inputs, busy: true }, this.said);
    return this.read(pixels, now);
  }

  tell() {
    const { looked, shown } = this;
    const n = looked ?? largest(shown);
    this.parts.looked.textContent = `${looked === null ? "Most" : "Here"}: ${this.nameOf(n)}, attention ${format(shown[n], 3)}`;
  }

  show(inputs, now, whole, seen) {
    const { state, skip, known: { isDigits, digits, views }, parts: { image, says, map, samples, fit, how, all } } = this;
    const name = (n) => this.nameOf(n);
    const shown = this.shown = seen.rows[state.view].slice(skip);
    [fit.value, map.radio.value, samples.radio.value] = [state.fit, state.view, state.example];
    how.hidden = fit.node.hidden = !isDigits || Boolean(state.base); // the test digits are prepared
    all.setAttribute("aria-disabled", !state.hidden.length);
    image.show(now, shown, (n) => `Patch in ${name(n)}, attention ${format(shown[n])}${state.hidden.includes(n) ? ", hidden" : ""}`);
    samples.paint(digits.map(({ pixels }) => pixels.flat().map((count) => count / FULL)));
    map.paint(views.map(([view]) => seen.rows[view].slice(skip)).map((row) => row.map((value) => value / (Math.max(...row) || 1))));
    says.show(seen.probabilities, whole.probabilities, inputs.label);
    this.tell();
    const numbers = { self: skip ? seen.rows[state.view][0] : null, patches: shown, whole: whole.probabilities, now: seen.probabilities,
      answer: largest(seen.probabilities) };
    this.said = sentence(inputs, numbers, name, views.find(([view]) => view === state.view)[1]);
    this.publish({ ...inputs, ...numbers }, this.said);
  }
}

export async function mount(element, given = null) {
  const model = await start(element, { label: LABEL, given });
  const { image_size: [height, width], patch_size: [tall, wide], stack } = model.config;
  const [grid, full] = [[height / tall, width / wide], { height: height * BLOCK, width: width * BLOCK }];
  const isDigits = height === 8 && width === 8;
  const known = { grid, full, isDigits, views: viewsOf(stack), digits: given || !isDigits ? [] : await examples() };
  const figure = new Reading(element, model, known, given);
  whenThemeChanges(() => figure.set({}));
  await figure.set({});
  await figure.follow();
}
