// Where every head of the trained decoder looks (chapter 06), on the reader's own sentence; in a notebook, on weights of
// the reader's own: `given = { weights: [layer][head][n][m], tokens }`.
import { format, frame, html, svg, whenThemeChanges } from "./common.mjs";
import { newest } from "./engine/client.mjs";
import { start as startModel } from "./engine/start.mjs";
import { heatMap, paint, palette } from "./heat.mjs";
import { reading, strip, textField, visible } from "./text.mjs";

const MOST = 64; // tokens that are read: so many letters still stand side by side on a phone
const START = { text: "The names of the modules in the list", layer: 0, head: 1, token: 27, column: null };
const [WIDE, HIGH] = [1000, 100]; // of the arcs, which are stretched to their place

/** A matrix from an array of rows. */
const matrixOf = (rows) => ({ rows: rows.length, columns: rows[0].length, data: Float32Array.from(rows.flat()) });
const rowAt = ({ columns, data }, n) => Array.from(data.subarray(n * columns, (n + 1) * columns));

/** All heads as small heat maps, a row for each block; one is chosen by pointer or arrow keys. */
function gridOfHeads(onchoose) {
  const node = html("div", { class: "lf-heads", role: "radiogroup", "aria-label": "Block and head" });
  let [cells, place] = [[], [0, 0]];
  node.addEventListener("keydown", (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    const next = cells[place[0] + down]?.[place[1] + right];
    if (!down && !right) return;
    event.preventDefault();
    if (!next) return;
    onchoose(place[0] + down, place[1] + right);
    next.focus();
  });
  function build(layers, heads) {
    cells = Array.from({ length: layers }, (_, l) => Array.from({ length: heads }, (_, h) => html("div", { role: "radio", class: "lf-head-map",
      "aria-label": `block ${l + 1}, head ${h + 1}`, onclick: () => onchoose(l, h) }, html("canvas", { "aria-hidden": "true" }))));
    const tops = Array.from({ length: heads }, (_, h) => html("span", { "aria-hidden": "true" }, `${h === 0 ? "head " : ""}${h + 1}`));
    node.style.setProperty("--heads", heads);
    node.replaceChildren(html("span"), ...tops, ...cells.flatMap((row, l) => [html("span", { "aria-hidden": "true" }, `block ${l + 1}`), ...row]));
  }
  /** Paint all heads anew, or only mark the chosen one. */
  function show(weights, [layer, head], anew) {
    if (cells.length !== weights.length || cells[0]?.length !== weights[0].length) build(weights.length, weights[0].length);
    place = [layer, head];
    const colours = anew && palette(node);
    cells.forEach((row, l) => row.forEach((cell, h) => {
      const isChosen = l === layer && h === head;
      cell.setAttribute("aria-checked", isChosen);
      cell.tabIndex = isChosen ? 0 : -1;
      if (anew) paint(cell.firstChild, weights[l][h], 1, colours);
    }));
  }
  return { node, show };
}

/** Arcs from one token to those that it reads, as thick as the weights, above the tokens in a row. */
function arcs(onfollow) {
  const lines = svg("g");
  const picture = svg("svg", { class: "lf-arcs", viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" }, lines);
  const names = html("div", { class: "lf-arc-names", "aria-hidden": "true" });
  const node = html("div", { class: "lf-arc-plane" }, picture, names);
  let count = 1;
  const follow = (event) => {
    const box = picture.getBoundingClientRect();
    onfollow(Math.max(0, Math.min(count - 1, Math.floor((count * (event.clientX - box.left)) / box.width))));
  };
  node.addEventListener("pointerdown", follow);
  node.addEventListener("pointermove", (event) => { if (event.buttons || event.pointerType === "mouse") follow(event); });
  function show(letters, token, weights) {
    count = letters.length;
    const at = (n) => (WIDE * (n + 0.5)) / count;
    const path = (m) => (m === token ? `M${at(m)} ${HIGH}v-14`
      : `M${at(token)} ${HIGH}Q${(at(token) + at(m)) / 2} ${HIGH - 24 - (170 * Math.abs(token - m)) / count} ${at(m)} ${HIGH}`);
    lines.replaceChildren(...weights.map((weight, m) => (weight < 0.01 ? null
      : svg("path", { class: "lf-arc", d: path(m), "stroke-width": 1 + 9 * weight, "stroke-opacity": 0.3 + 0.7 * weight }))).filter(Boolean));
    const levels = Math.max(1, Math.ceil((9 * count) / (node.clientWidth || 290)));
    names.style.height = `${13 * levels + 3}px`;
    names.replaceChildren(...letters.map((letter, n) => {
      const mark = html("span", { class: n === token ? "lf-chosen" : null }, letter.length > 3 ? `${letter.slice(0, 2)}…` : letter);
      Object.assign(mark.style, { left: `${(100 * (n + 0.5)) / count}%`, top: `${13 * (n % levels)}px` });
      return mark;
    }));
  }
  return { node, show };
}

/** What a token reads, the largest weights first, in words. */
function inWords(letters, token, weights) {
  const order = weights.map((_, m) => m).sort((a, b) => weights[b] - weights[a]).slice(0, 3).filter((m) => weights[m] >= 0.01);
  const where = (m) => (m === token ? "itself" : `“${letters[m]}”, ${Math.abs(token - m)} ${token > m ? "back" : "ahead"}`);
  return order.map((m) => `${where(m)} (${format(weights[m])})`).join(", then ");
}

/** The texts and weights of a figure: those of a model that reads what is typed, or those that were handed over. */
async function sourceOf(element, label, given) {
  if (given?.weights) {
    const weights = given.weights.map((layer) => layer.map(matrixOf));
    return { first: { ...START, text: "", head: 0, token: null }, read: () => ({ ids: given.tokens, letters: given.tokens.map(visible), said: "" }),
      ask: async () => weights };
  }
  const model = await startModel(element, { label, given });
  const first = given ? { ...START, head: 0, token: null } : START; // the head is one of the stored model
  return { model, first, read: (text) => reading(model, text, MOST), ask: (ids) => model.ask("attentionWeights", ids) };
}

export async function mount(element, given = null) {
  const label = "Live figure: where every head of a decoder looks";
  const { model, first, read, ask } = await sourceOf(element, label, given);
  let [state, now, remembered] = [{ ...first }, null, null];
  const set = (change) => { state = { ...state, ...change }; render(false); };
  const { controls, stage, publish } = frame(element, { label, reset });
  const field = textField({ label: "Your text", oninput: (text) => retype({ text, token: null, column: null }) });
  const letters = strip({ label: "Token to follow", onchoose: (token) => set({ token, column: null }) });
  const grid = gridOfHeads((layer, head) => set({ layer, head, column: null }));
  const lines = arcs((token) => set({ token, column: null }));
  const pick = (token, column) => { if (token !== undefined) set({ token, column }); };
  const large = heatMap({ label: "Weights of the chosen head: arrow keys go from one to the next", onpick: pick, onhover: pick });
  const title = html("p", { class: "lf-title" });
  const readout = html("output", { class: "lf-note lf-readout" });
  controls.append(...(model ? [field.node] : []), letters.node);
  stage.append(html("div", { class: "lf-panel lf-heads-panel" }, html("p", { class: "lf-title" }, "All heads"), grid.node),
    html("div", { class: "lf-panel lf-head-panel" }, title, lines.node, large.node, readout));

  const compute = newest(({ ids }) => ask(ids), show, (error) => publish({ ...state, error: error.message }, error.message));

  function retype(change) {
    state = { ...state, ...change };
    if (field.input.value !== state.text) field.input.value = state.text;
    const text = { ...read(state.text), text: state.text };
    const isEmpty = text.ids.length === 0;
    stage.classList.toggle("lf-stale", isEmpty);
    publish({ ...state, busy: !isEmpty }, text.said);
    return isEmpty ? null : compute(text);
  }

  function reset() {
    retype(first);
    if (remembered) show(...remembered); // what the model made of the first text
  }

  function show(weights, text) {
    if (text.text !== state.text) return; // meanwhile it was reset
    remembered ??= [weights, text];
    now = { weights, text };
    render(true);
  }

  function render(anew) {
    if (!now) return;
    const { weights, text } = now;
    const [layer, head] = [Math.min(state.layer, weights.length - 1), Math.min(state.head, weights[0].length - 1)];
    const token = Math.min(state.token ?? Infinity, text.letters.length - 1);
    const matrix = weights[layer][head];
    const row = rowAt(matrix, token);
    const column = Math.min(state.column ?? row.indexOf(Math.max(...row)), row.length - 1);
    grid.show(weights, [layer, head], anew);
    letters.show(text.letters, token, (m) => row[m]);
    lines.show(text.letters, token, row);
    large.draw({ matrix, limit: 1, rows: text.letters, columns: text.letters, chosen: [token, column], tallest: 340 });
    title.textContent = `Block ${layer + 1}, head ${head + 1}`;
    readout.textContent = `“${text.letters[token]}” reads “${text.letters[column]}” with weight ${format(row[column], 3)}.`;
    publish({ ...state, layer, head, token, column, letters: text.letters, weights: row },
      `${text.said} Block ${layer + 1}, head ${head + 1}: “${text.letters[token]}” reads ${inWords(text.letters, token, row)}.`.trim());
  }

  whenThemeChanges(() => render(true));
  await retype(first); // with its numbers the figure takes the place of its picture
}
