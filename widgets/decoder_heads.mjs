// Where every head of the trained decoder looks (chapter on the decoder), on the reader's own sentence; in a notebook, on weights of
// the reader's own: `given = { weights: [layer][head][n][m], tokens }`.
import { maybe, place, setting } from "./address.mjs";
import { clamp, format, frame, html, largest, ranked, svg, title, visible, whenThemeChanges } from "./common.mjs";
import { row } from "./engine/arrays.mjs";
import { start as startModel } from "./engine/start.mjs";
import { gridOfHeads } from "./head_grid.mjs";
import { heatMap, shownOf } from "./heat.mjs";
import { strip } from "./letters.mjs";
import { lastTokens, typing } from "./texts.mjs";

const MOST = 64; // tokens that are read: so many letters still stand side by side on a phone
const START = { text: "The names of the modules in the list", layer: 0, head: 1, token: 27, column: null };
const LABEL = "where every head of a decoder looks";
const [WIDE, HIGH] = [1000, 100]; // of the arcs, which are stretched to their place

/** A matrix from an array of rows. */
const matrixOf = (rows) => ({ rows: rows.length, columns: rows[0].length, data: Float32Array.from(rows.flat()) });

/** Arcs from one token to those that it reads, as thick as the weights, above the tokens in a row. */
function arcs(onfollow) {
  const lines = svg("g");
  const picture = svg("svg", { class: "lf-arcs", viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" }, lines);
  const names = html("div", { class: "lf-arc-names", "aria-hidden": "true" });
  const node = html("div", { class: "lf-arc-plane" }, picture, names);
  let count = 1;
  const follow = (event) => {
    const box = picture.getBoundingClientRect();
    onfollow(clamp(Math.floor((count * (event.clientX - box.left)) / box.width), 0, count - 1));
  };
  node.addEventListener("pointerdown", follow);
  node.addEventListener("pointermove", (event) => { if (event.buttons || event.pointerType === "mouse") follow(event); });
  function show(letters, token, weights) {
    count = letters.length;
    const at = (n) => (WIDE * (n + 0.5)) / count;
    const path = (m) => (m === token ? `M${at(m)} ${HIGH}v-14`
      : `M${at(token)} ${HIGH}Q${(at(token) + at(m)) / 2} ${HIGH - 24 - (170 * Math.abs(token - m)) / count} ${at(m)} ${HIGH}`);
    lines.replaceChildren(...weights.flatMap((weight, m) => (weight < 0.01 ? []
      : svg("path", { class: "lf-arc", d: path(m), "stroke-width": 1 + 9 * weight, "stroke-opacity": 0.3 + 0.7 * weight }))));
    const isShown = shownOf(count, (node.clientWidth || 290) / count, 9, token);
    names.replaceChildren(...letters.flatMap((letter, n) => {
      if (!isShown(n)) return [];
      const mark = html("span", { class: n === token ? "lf-chosen" : null }, letter.length > 3 ? `${letter.slice(0, 2)}…` : letter);
      mark.style.left = `${(100 * (n + 0.5)) / count}%`;
      return mark;
    }));
  }
  return { node, show };
}

/** What a token reads, the largest weights first, in words. */
function inWords(letters, token, weights) {
  const order = ranked(weights).slice(0, 3).filter((m) => weights[m] >= 0.01);
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
  return { model, first, read: (text) => lastTokens(model, text, MOST), ask: (ids) => model.ask("attentionWeights", ids) };
}

export async function mount(element, given = null) {
  const { model, first, read, ask } = await sourceOf(element, LABEL, given);
  let [state, now] = [first, null];
  const keep = (change) => (state = { ...state, ...change });
  const set = (change) => { keep(change); draw(false); };
  const figure = frame(element, { label: LABEL, reset: () => text.again(first) });
  const pick = (token, column) => token !== undefined && set({ token, column });
  const follow = (token) => pick(token, null);
  const text = typing(figure, { read, ask, typed: { token: null, column: null }, settings: keep,
    show: (weights, found) => { now = { weights, ...found }; draw(true); } });
  const letters = strip({ label: "Token to follow", onchoose: follow });
  const grid = gridOfHeads((layer, head) => set({ layer, head, column: null }));
  const lines = arcs(follow);
  const large = heatMap({ label: "Weights of the chosen head: arrow keys go from one to the next", onpick: pick, onhover: pick });
  const [name, readout] = [title(), html("output", { class: "lf-note lf-readout" })];
  figure.controls.append(...(model ? [text.node] : []), letters.node);
  figure.stage.append(html("div", { class: "lf-panel lf-heads-panel" }, title("All heads"), grid.node),
    html("div", { class: "lf-panel lf-head-panel" }, name, lines.node, large.node, readout));

  function draw(anew) {
    if (!now) return;
    const { weights, letters: tokens, said } = now;
    const [layer, head] = [Math.min(state.layer, weights.length - 1), Math.min(state.head, weights[0].length - 1)];
    const token = Math.min(state.token ?? Infinity, tokens.length - 1);
    const matrix = weights[layer][head];
    const read = Array.from(row(matrix, token));
    const column = Math.min(state.column ?? largest(read), read.length - 1);
    const place = `Block ${layer + 1}, head ${head + 1}`;
    grid.show(weights, [layer, head], anew);
    letters.show(tokens, token, (m) => read[m]);
    lines.show(tokens, token, read);
    large.draw({ matrix, limit: 1, rows: tokens, columns: tokens, chosen: [token, column], tallest: 340 });
    name.textContent = place;
    readout.textContent = `“${tokens[token]}” reads “${tokens[column]}” with weight ${format(read[column], 3)}.`;
    if (text.publishes()) return;
    figure.publish({ ...state, layer, head, token, column, letters: tokens, weights: read },
      `${said} ${place}: “${tokens[token]}” reads ${inWords(tokens, token, read)}.`.trim());
  }
  whenThemeChanges(() => draw(true));
  await text.again(first); // with its numbers the figure takes the place of its picture
  if (!model) return;
  const letter = maybe(place(MOST));
  await figure.addressed({ text: text.kind, block: setting("layer", place(now.weights.length)), head: place(now.weights[0].length), token: letter, read: setting("column", letter) },
    { now: () => state, go: text.type });
}
