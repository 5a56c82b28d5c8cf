// The whole machine (chapter on the decoder): every array of a decoder between the reader's text and the next token, as the package
// names them. `machine_boxes.mjs` says what each box is; this module draws, follows and opens them. The page may say which
// boxes are lit, those that the reader has built so far; the others are grey.
import { maybe, place, setting } from "./address.mjs";
import {
  button, choice, format, frame, html, isCalm, largest, note, ranked, stroke, svg, times, title, uniqueId, whenThemeChanges,
} from "./common.mjs";
import { row, softmax } from "./engine/arrays.mjs";
import { start as startModel } from "./engine/start.mjs";
import { typeset } from "./formula.mjs";
import { heatMap, limitOf, paint, palette } from "./heat.mjs";
import { letterBars, strip } from "./letters.mjs";
import { boxesOf } from "./machine_boxes.mjs";
import { letterOf, lastTokens, typing } from "./texts.mjs";

const MOST = 64; // tokens that are read: rows of a heat map that can still be told apart
const BEAT = { box: 450, letter: 28 }; // milliseconds at a box while it plays, and for each letter of its sentence
const EXPECTED = 5; // tokens among those that may come next
const START = { token: null, block: 1, open: "weights", head: 0, column: null };
const TEXTS = { letter: "The function re", word: ". Anna takes the lamp . Anna goes to the garden . where is the lamp ?",
  token: "JULIET:\nO Romeo, Romeo! wherefore art" };
export const LABEL = "every array of the trained decoder, from a text to its next token";

const stemOf = (key) => key.replace(/\d+$/, ""); // norm of norm1 and norm2
/** A box of the drawing: a button with its array, painted small. */
function boxNode(box, onopen) {
  const thumbs = html("span", { class: "lf-thumbs" });
  const isSum = box.label === "+";
  const node = html("button", { type: "button", class: `lf-box lf-box-${stemOf(box.key)}${isSum ? " lf-sum-box" : ""}`, "data-box": box.key,
    "aria-label": box.name, style: `--kind: var(--lf-${box.kind})`, onclick: onopen },
  html("span", { class: "lf-box-label" }, box.label), isSum ? [] : thumbs);
  const thumb = () => html("span", { class: "lf-thumb" }, html("canvas"), html("i", { hidden: box.key === "ids" }));
  function show(matrices, colours) {
    if (isSum) return;
    const limit = box.limit ?? limitOf(matrices);
    while (thumbs.children.length > matrices.length) thumbs.lastChild.remove();
    while (thumbs.children.length < matrices.length) thumbs.append(thumb());
    matrices.forEach((matrix, i) => paint(thumbs.children[i].firstChild, matrix, limit, colours));
  }
  return { node, show };
}

const RAIL = new Set(["embedding", "block", "add", "final"]); // what stands on the residual stream
const isOnRail = (key) => RAIL.has(stemOf(key));

/** Every wire of the drawing: from which box, to which, and on which way. */
function wiresOf(boxes) {
  const keys = boxes.map(({ key }) => key);
  const rail = keys.filter(isOnRail);
  const isThere = ([from, to]) => keys.includes(to) && (from === "stream" || keys.includes(from));
  const postNorm = [["stream", "queries", "right"], ["queries", "keys", "right"], ["keys", "values", "right"], ["stream", "hidden", "right"]];
  const down = ["queries", "keys", "values"].map((key) => ["norm1", key, "down"]);
  return [...rail.slice(1).map((key, i) => [rail[i], key, "rail"]), ["ids", "embedding", "rail"],
    ["stream", "norm1", "right"], ...down, ["queries", "scores", "down"], ["keys", "scores", "bend"], ["scores", "weights", "right"],
    ["weights", "heads", "under"], ["values", "heads", "under"], ["heads", "attention", "left"], ["attention", "add1", "back"],
    ["stream", "norm2", "right"], ["norm2", "hidden", "right"], ["hidden", "network", "right"], ["network", "add2", "back"],
    ...(keys.includes("norm1") ? [] : postNorm),
    ["final", "logits", "right"], ["logits", "probabilities", "right"]].filter(isThere);
}

/** The path of a wire between two boxes, given as places in the drawing; `rail` is where the stream runs. */
function pathOf(from, to, way, rail) {
  const middle = (box) => box.x + box.width / 2;
  const height = (box) => box.y + box.height / 2;
  if (way === "rail") return `M${rail} ${from.y + from.height}V${to.y - 1}`;
  if (way === "right") return `M${from ? from.x + from.width : rail} ${height(to)}H${to.x - 5}`;
  if (way === "left") return `M${from.x} ${height(to)}H${to.x + to.width + 5}`;
  if (way === "back") return `M${middle(from)} ${from.y + from.height}V${height(to)}H${to.x + to.width + 5}`;
  if (way === "down") return `M${middle(to)} ${from.y + from.height}V${to.y - 5}`;
  if (way === "under") return `M${middle(from)} ${from.y + from.height}V${to.y - 5}`;
  const [x, turn, end] = [from.x + from.width * 0.3, (from.y + from.height + to.y) / 2, to.x + to.width * 0.8];
  return `M${x} ${from.y + from.height}V${turn}H${end}V${to.y - 5}`;
}

/** The heads of arrows, for wires that flow or not. */
function arrowHeads(stem) {
  return svg("defs", {}, ["still", "now"].map((name) => svg("marker", { id: `${stem}-${name}`, class: `lf-head-${name}`, viewBox: "0 0 8 8",
    refX: 2, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, stroke(null, "M0 0L8 4L0 8Z"))));
}

/** The nodes of the boxes as they stand in the grid: those of the open block in a frame, the last three in a row. */
function laidOut(boxes, nodeOf, layers) {
  const open = boxes.find((box) => box.key === "queries").block;
  const inside = html("div", { class: "lf-block", role: "group", "aria-label": `block ${open + 1} of ${layers}` },
    html("span", { class: "lf-block-name" }, `block ${open + 1}`), boxes.filter((box) => box.block === open && !isShut(box)).map(nodeOf));
  const outside = boxes.filter(({ block }) => block !== open).map(nodeOf);
  outside.splice(2 + open, 0, inside); // after ids, embedding and the blocks before it
  const isLast = (node) => ["final", "logits", "probabilities"].includes(node.dataset.box);
  return [...outside.filter((node) => !isLast(node)), html("div", { class: "lf-last" }, outside.filter(isLast))];
}

/** The wires as strokes, those into the open box as flowing; `at(key)` says where a box is. */
function wireStrokes(boxes, at, opened, heads) {
  const { x, width } = at("add1");
  return wiresOf(boxes).map(([from, to, way]) => {
    const now = to === opened;
    const head = way === "rail" ? null : `url(#${heads}-${now ? "now" : "still"})`;
    return stroke(`lf-wire${way === "rail" ? " lf-rail" : ""}${now ? " lf-now" : ""}`,
      pathOf(from === "stream" ? null : at(from), at(to), way, x + width / 2), { "marker-end": head });
  });
}

/** The drawing: boxes in a grid, the wires behind them, and a frame that moves to the open box. */
function drawing(onopen) {
  const [head, wires] = [uniqueId("arrow"), svg("g")];
  const picture = svg("svg", { class: "lf-wires", "aria-hidden": "true" }, arrowHeads(head), wires);
  const [here, node] = [html("div", { class: "lf-open-frame", "aria-hidden": "true" }), html("div", { class: "lf-machine" })];
  let shown = {};

  /** Put the boxes of a model with one open block in their places. */
  function build(boxes, layers) {
    shown = Object.fromEntries(boxes.map((box) => [box.key, { box, ...boxNode(box, () => onopen(box)) }]));
    boxes.forEach(({ key }, i) => shown[key].node.style.setProperty("--place", i));
    node.replaceChildren(picture, ...laidOut(boxes, ({ key }) => shown[key].node, layers), here);
  }

  /** Draw the wires where the boxes now are; the frame goes to the open one at once or in a moment. */
  function wire(boxes, opened, atOnce = false) {
    const ground = node.getBoundingClientRect();
    if (!ground.width) return;
    const at = (name) => {
      const box = shown[name].node.getBoundingClientRect();
      return { x: box.left - ground.left, y: box.top - ground.top, width: box.width, height: box.height };
    };
    picture.setAttribute("viewBox", `0 0 ${ground.width} ${ground.height}`);
    wires.replaceChildren(...wireStrokes(boxes, at, opened, head));
    const { x, y, width, height } = at(opened);
    Object.assign(here.style, { transition: atOnce ? "none" : "", transform: `translate(${x - 4}px, ${y - 4}px)`,
      width: `${width + 8}px`, height: `${height + 8}px` });
  }

  /** Mark the open box, what comes after it, what is not lit, and the row of the token that is followed. */
  function follow(boxes, opened, share, rows, lit) {
    node.style.setProperty("--row", share);
    node.style.setProperty("--rows", rows);
    const place = boxes.findIndex(({ key }) => key === opened);
    boxes.forEach(({ key }, i) => {
      shown[key].node.setAttribute("aria-pressed", key === opened);
      shown[key].node.classList.toggle("lf-later", i > place);
      shown[key].node.classList.toggle("lf-unlit", lit.length > 0 && !lit.includes(stemOf(key)));
    });
    wire(boxes, opened);
  }
  return { node, build, wire, follow, get shown() { return shown; } };
}

/** A shape as Python writes it. */
const tuple = (sizes) => `(${sizes.join(", ")}${sizes.length === 1 ? "," : ""})`;

/** A choice of heads, where there are several; `show(number, head)` brings it up to date. */
function headChoice(onhead) {
  const node = html("div");
  let [heading, count] = [null, 0];
  function show(number, head) {
    if (count !== number) {
      count = number;
      heading = count > 1 ? choice({ legend: "Head", options: times(count, (h) => [h, `${h + 1}`]), onchange: onhead }) : null;
      node.replaceChildren(...(heading ? [heading.node] : []));
    }
    if (heading) heading.value = Math.min(head, count - 1);
  }
  return { node, show };
}

/** The key of a box in a link, where blocks are counted from 1, as in the drawing. */
const counted = (key) => key.replace(/^(block)(\d+)$/, (_, word, n) => word + (Number(n) + 1));

/** Where the book explains a box. */
function linkOf({ link }, config) {
  const [href, section] = typeof link === "function" ? link(config) : link;
  return html("a", { href: new URL(`../../chapters/${href}`, import.meta.url).href }, ...typeset(section));
}

const idChip = (letter, id, isChosen) => html("span", { class: `lf-read${isChosen ? " lf-most" : ""}` }, html("b", {}, letter),
  html("span", {}, `${id}`));

/** What an open box says: its name, shape, numbers, rule and line of code. */
function openBox({ steps, onpick, onhead, given }) {
  const [told, shape, rule, code, file, link] = ["p", "p", "p", "code", "span", "span"].map((tag) => html(tag));
  const [name, heads] = [title(), headChoice(onhead)];
  const readout = html("output", { class: "lf-note lf-readout" });
  const chips = html("div", { class: "lf-letters", "aria-hidden": "true" });
  let words = () => "";
  const map = heatMap({ label: "Numbers of the open box: arrow keys go from one to the next", onpick,
    onhover: (n, j) => { readout.textContent = words(n, j); } });
  shape.classList.add("lf-shape");
  told.classList.add("lf-told");
  const node = html("div", { class: "lf-panel lf-open" }, html("div", { class: "lf-open-head" }, name, steps), told, shape, heads.node,
    map.node, chips, readout, rule, html("pre", { class: "lf-code" }, code), note(file, link));

  function show({ box, sentence, config, matrices, state, letters, columns, token }) {
    const matrix = matrices[Math.min(state.head, matrices.length - 1)];
    name.replaceChildren(html("span", { class: "lf-dot", style: `color: var(--lf-${box.kind})` }), placeOf(box, ", "));
    told.textContent = sentence;
    shape.textContent = `${tuple(box.axes)} = ${tuple(sizesOf(box, matrices))}`;
    rule.replaceChildren(...typeset(box.rule(config)));
    [code.textContent, file.textContent] = [box.code(config), `plainformer/${box.file}`];
    if (!given) link.replaceChildren(" · explained in ", linkOf(box, config));
    heads.show(matrices.length, state.head);
    [map.node.hidden, chips.hidden] = [box.key === "ids", box.key !== "ids"];
    if (box.key === "ids") showIds(matrix.data, letters, token, config);
    else showMap(matrix, box.limit ?? limitOf(matrices), { state, letters, columns, token });
  }

  function showIds(ids, letters, token, { vocab_size: size }) {
    chips.replaceChildren(...letters.map((letter, n) => idChip(letter, ids[n], n === token)));
    readout.textContent = `“${letters[token]}” is number ${ids[token]} of ${size}.`;
  }

  function showMap(matrix, limit, { state, letters, columns, token }) {
    const column = Math.min(state.column ?? largest(row(matrix, token).map(Math.abs)), matrix.columns - 1);
    const place = (j) => (columns ? `to “${columns[j]}”` : `column ${j}`);
    words = (n = token, j = column) => `“${letters[n]}”, ${place(j)}: ${format(matrix.data[n * matrix.columns + j], 3)}`;
    map.draw({ matrix, limit, rows: letters, columns: columns === letters ? letters : [], chosen: [token, column],
      tallest: innerWidth < 768 ? 160 : node.closest(".lf-on-stage") ? 208 : 320 });
    readout.textContent = words();
  }
  return { node, show };
}

/** How many of each axis an array has. */
function sizesOf(box, matrices) {
  const [{ rows, columns }] = matrices;
  return { 1: [columns], 2: [rows, columns], 3: [matrices.length, rows, columns] }[box.axes.length];
}

/** The likeliest next tokens as bars, and the button that adds the first to the text. */
function forecast(onadd) {
  const table = letterBars({ count: EXPECTED, colour: "var(--lf-marked)", barFirst: true });
  const add = button("", onadd);
  const node = html("div", { class: "lf-forecast" }, table.node, add);
  function show({ before, expected, came, unit }) {
    add.textContent = `Add the likeliest ${unit}`;
    table.show(`What comes after “${before}”?`, expected, expected.findIndex(([letter]) => letter === came));
  }
  return { node, show };
}

const isInSight = (node) => { const { top, bottom } = node.getBoundingClientRect(); return bottom > 0 && top < innerHeight; };

/**
 * Where a reader is among the boxes: `step` opens the next, `play` tells of one after the other until the last, from the
 * first if it had come to the end, and `again` from the first in any case. `pause(key)` says how long it stays at a box.
 */
function walk({ keys, openedKey, open, nodeOf, pause, changed }) {
  let [timer, begun, tells] = [null, false, false];
  function stop(more = {}) {
    clearTimeout(timer);
    timer = null;
    ({ begun = begun, tells = tells } = more);
    changed({ plays: false, tells });
  }
  function step() {
    const next = begun ? (keys().indexOf(openedKey()) + 1) % keys().length : 0;
    const follows = isInSight(nodeOf(openedKey())); // who has scrolled on is not fetched back
    begun = true;
    if (next === keys().length - 1) tells = false;
    open(keys()[next]);
    if (follows) nodeOf(openedKey()).scrollIntoView({ block: "nearest", behavior: isCalm() ? "auto" : "smooth" });
  }
  function beat() {
    step();
    if (!tells) return stop();
    timer = setTimeout(beat, pause(openedKey()));
  }
  function play() {
    if (timer) return stop();
    if (openedKey() === keys().at(-1)) begun = false;
    tells = true;
    changed({ plays: true, tells });
    beat();
  }
  return { get tells() { return tells; }, play, again: () => { stop({ begun: false }); play(); }, step: () => { stop(); step(); stop(); },
    forget: () => stop({ begun: false, tells: false }), begin: () => stop({ begun: true, tells: false }) };
}

const isShut = ({ key }) => key.startsWith("block");
const placeOf = (box, of) => box.name + (box.block === undefined || isShut(box) ? "" : `${of}block ${box.block + 1}`);

/** What the figure tells: its numbers, for tests, and a sentence. */
function report({ state, read, box, matrices, token, expected, before }) {
  const matrix = matrices[Math.min(state.head, matrices.length - 1)];
  const sizes = sizesOf(box, matrices);
  const hopes = expected.slice(0, 2).map(([letter, probability]) => `“${letter}”, with ${format(probability)}`).join(", then ");
  return [{ ...state, token, ids: read.ids, letters: read.letters, sizes, expected, row: Array.from(row(matrix, box.key === "ids" ? 0 : token)) },
    `${read.said} Open: ${placeOf(box, " of ")}, ${sizes.join(" × ")} numbers. After “${before}” the model expects ${hopes}.`.trim()];
}

/** The parts of the figure, and how they hang together; `act` says what each does. */
function partsOf({ controls, stage }, text, act, { given }) {
  const letters = strip({ label: "Token to follow", onchoose: (token) => act.set({ token, column: null }) });
  const machine = drawing(act.choose);
  const buttons = [button("Step", () => path.step()), button("Play", () => path.play()), button("Restart", () => path.again())];
  const path = walk({ ...act.walk, nodeOf: (key) => machine.shown[key].node, changed: ({ plays, tells }) => {
    buttons[1].textContent = plays ? "Pause" : "Play";
    stage.classList.toggle("lf-tells", tells);
  } });
  const inside = openBox({ steps: html("div", { class: "lf-walk" }, buttons), given,
    onpick: (token, column) => act.set({ token, column }), onhead: (head) => act.set({ head, column: null }) });
  const next = forecast(act.write);
  controls.append(text.node, letters.node);
  stage.append(html("div", { class: "lf-panel lf-drawn" }, machine.node, next.node), inside.node);
  return { letters, machine, path, inside, next };
}

/** The figure of a model: its settings, what the model answered, and what is done with them. */
export class Machine {
  constructor(element, model, { label, name = null, given = null, shut = "" }) {
    const lit = (element.closest("[data-lit]")?.dataset.lit ?? "").split(" ").filter(Boolean);
    Object.assign(this, { element, lit, shut, boxes: [] });
    this.figure = frame(element, { label, reset: () => { this.path.forget(); this.text.again(this.start); } });
    this.text = typing(this.figure, { settings: (change) => (this.state = { ...this.state, ...change }), typed: { token: null },
      read: (text) => lastTokens(this.model, text, MOST), ask: (ids) => this.model.ask("intermediates", "call", ids),
      show: (arrays, text) => this.take(arrays, text) });
    Object.assign(this, partsOf(this.figure, this.text, { write: () => this.write(), choose: (box) => this.choose(box),
      set: (change) => { Object.assign(this.state, change); this.render(); },
      walk: { keys: () => this.boxes.map(({ key }) => key), openedKey: () => this.state.open, open: (key) => this.open({ open: key }),
        pause: (key) => BEAT.box + BEAT.letter * this.sentence(key).length } }, { given }));
    this.started = this.use(model, name);
  }

  /** Let a model read its first text; `name` is what the page calls it, where there are several. */
  use(model, name) {
    const { stack, ...rest } = model.config;
    const { tokenizer } = model;
    Object.assign(this, { model, tokenizer, config: { ...rest, ...stack }, boxes: [], found: null,
      vocabulary: tokenizer.tokens.map((_, id) => letterOf(tokenizer, id)) });
    const text = this.element.closest("[data-text]")?.dataset.text ?? TEXTS[tokenizer.unit];
    this.start = { ...START, text, open: this.lit.at(-1) ?? START.open,
      block: Math.min(START.block, stack.num_layers - 1), ...(name && { model: name }), ...model.opening };
    this.path.forget();
    return this.text.again(this.start);
  }

  /** Add the likeliest token that is no special one. */
  write() {
    const { read, found, tokenizer, state } = this;
    if (read?.text !== state.text) return; // it is still reading
    const special = Object.keys(tokenizer.special).length;
    const best = ranked(row(found.probabilities, read.ids.length - 1)).find((id) => id >= special);
    const between = state.text && !/\s$/.test(state.text) ? tokenizer.separator : "";
    this.text.type({ text: state.text + between + tokenizer.tokens[best], token: null });
  }

  take(arrays, text) {
    const ids = { rows: 1, columns: text.ids.length, data: Float32Array.from(text.ids) };
    Object.assign(this, { found: { ...arrays, ids, probabilities: softmax(arrays.returned) }, read: text });
    this.draw();
  }

  choose(box) {
    this.path.begin();
    this.open(isShut(box) && this.knows(box.block) ? { block: box.block, open: "norm1" } : { open: box.key });
  }

  /** Whether the arrays inside a block are there. */
  knows(block) { return Boolean(this.found?.[`stack.blocks.${block}.attention.queries`]); }

  open(change) {
    const old = this.state.block;
    Object.assign(this.state, change, { column: null });
    if (this.state.block === old) this.render();
    else this.draw();
  }

  /** What is said of a box: what it does, in one sentence, and of the last one what came out. */
  sentence(key) {
    const { box } = this.machine.shown[key];
    const words = box.tells(this.tokenizer.unit);
    if (key === "probabilities") return `${words} “${this.expected[0][0]}”, with ${format(this.expected[0][1], 3)}.`;
    return isShut(box) && !this.knows(box.block) && !this.path.tells ? `${words} ${this.shut}` : words;
  }

  /** Build the drawing anew if another block is open, and paint every array. */
  draw() {
    const { found, state, config, machine } = this;
    if (!found) return;
    if (!this.knows(state.block)) state.block = this.start.block;
    if (this.boxes.find(({ key }) => key === "queries")?.block !== state.block) {
      this.boxes = boxesOf(config, state.block);
      machine.build(this.boxes, config.num_layers);
    }
    // Of a block that was given up, and of post-norm, which has no first norm, nothing is there.
    if (!machine.shown[state.open]) state.open = this.boxes.find((box) => box.block === state.block && !isShut(box)).key;
    const colours = palette(this.element);
    for (const { box, show } of Object.values(machine.shown)) show(box.values(found, box.block, config), colours);
    this.render();
  }

  render() {
    const { found, read, state, config, tokenizer, machine, boxes, lit } = this;
    if (!found) return;
    const token = Math.min(state.token ?? Infinity, read.ids.length - 1);
    const { box } = machine.shown[state.open];
    const matrices = box.values(found, box.block, config);
    const columns = { vocab_size: this.vocabulary, seq: read.letters }[box.axes.at(-1)];
    const chances = row(found.probabilities, token);
    const expected = this.expected = ranked(chances).slice(0, EXPECTED).map((id) => [letterOf(tokenizer, id), chances[id]]);
    const before = read.letters.slice(Math.max(0, token - 11), token + 1).join(tokenizer.separator);
    const sentence = this.sentence(state.open);
    this.letters.show(read.letters, token);
    machine.follow(boxes, state.open, token / read.ids.length, read.ids.length, lit);
    this.inside.show({ box, sentence, config, matrices, state, letters: read.letters, columns, token });
    this.next.show({ before, expected, came: read.letters[token + 1], unit: tokenizer.unit });
    if (this.text.publishes()) return;
    const [told, whole] = report({ state, read, box, matrices, token, expected, before });
    this.figure.publish(told, this.path.tells ? sentence : whole);
  }

  /** What a link can say of it: `more` kinds beside those of every machine; `ready(wanted)` comes before it is followed. */
  addressed(more = {}, ready = () => {}) {
    const keys = times(this.config.num_layers, (open) => boxesOf(this.config, open).map(({ key }) => key)).flat();
    const kinds = { ...more, text: this.text.kind, block: place(this.config.num_layers), box: setting("open", { read: (words) => keys.find((key) => counted(key) === words), write: counted }),
      head: place(MOST), word: setting("token", maybe(place(MOST))) };
    return this.figure.addressed(kinds, { now: () => this.state, go: async (wanted) => {
      this.path.begin();
      await this.text.type({ ...wanted, column: null, ...await ready(wanted) });
    } });
  }

  /** Its numbers are there, and what depends on its place on the page follows that. */
  async shown() {
    const { node, wire } = this.machine;
    new ResizeObserver(() => { if (this.found) wire(this.boxes, this.state.open, true); }).observe(node);
    whenThemeChanges(() => this.draw());
    await this.started; // with its numbers the figure takes the place of its picture
  }
}

export async function mount(element, given = null) {
  const machine = new Machine(element, await startModel(element, { label: LABEL, given }), { label: LABEL, given });
  await machine.shown();
  await machine.addressed();
}
