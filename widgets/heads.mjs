// Multi-head attention in a trained decoder, on the reader's own text (chapter on multi-head attention): what each head looks at, and how the
// output is made of what the heads return: side by side and projected, or each projected and summed.
import { maybe, off, place, setting } from "./address.mjs";
import { button, choice, format, frame, html, largest, mean, times, title, total, wide, whenThemeChanges } from "./common.mjs";
import { add, linear, map, matrix, range, row, rowsOf, slice } from "./engine/arrays.mjs";
import { start as startModel } from "./engine/start.mjs";
import { typeset } from "./formula.mjs";
import { gridOfHeads } from "./head_grid.mjs";
import { heatMap, limitOf, paint, palette } from "./heat.mjs";
import { strip } from "./letters.mjs";
import { lastTokens, typing } from "./texts.mjs";

const MOST = 40; // tokens that are read
const TEXT = ". Anna takes the lamp . Anna goes to the garden . where is the lamp ?";
const LABEL = "the heads of a trained layer, concatenated or summed";

/** What the heads return for all tokens, and both forms of the output; a head that is off returns zeros. */
function combine(heads, projection, on) {
  const outputs = heads.map((head, h) => map(head, (value) => (on[h] ? value : 0)));
  const [{ rows, columns: width }] = heads;
  const joined = matrix(rows, width * heads.length, Float32Array.from(range(rows).flatMap((n) => outputs.flatMap((head) => [...row(head, n)]))));
  const parts = outputs.map((head, h) => linear(head, slice(projection, h * width, (h + 1) * width)));
  return { joined, parts, concatForm: linear(joined, projection), sumForm: parts.reduce(add) };
}

/** How large a row is: the root of the mean of its squares. */
const sizeOf = (numbers) => Math.sqrt(mean(numbers.map((value) => value * value)));

/** A row of numbers as a line of colours, with its name before it and its size behind it. */
function band(name, heads = 0) {
  const [canvas, size] = [html("canvas", { "aria-hidden": "true" }), html("span", { class: "lf-band-size" })];
  const node = html("div", { class: "lf-band" }, html("span", {}, ...typeset(name)),
    html("div", { class: `lf-line${heads ? " lf-cuts" : ""}`, style: `--heads: ${heads}` }, canvas), size);
  function show(numbers, limit, colours) {
    paint(canvas, matrix(1, numbers.length, Float32Array.from(numbers)), limit, colours);
    size.textContent = format(sizeOf(numbers));
  }
  return { node, show };
}

/** The two forms, one of which is seen: bands of the heads' outputs, the matrix between, and bands of what each head adds. */
function forms(count) {
  const [joined, result] = [band("heads", count), band("output")];
  const parts = times(count, (h) => band(`head ${h + 1}`));
  const projection = html("canvas", { "aria-hidden": "true" });
  const concat = html("div", {}, title("The heads' outputs, side by side: each has its own rows of ", ...typeset("$W^{(o)}$")), joined.node,
    html("div", { class: "lf-band" }, html("span", {}, ...typeset("× $W^{(o)}$")),
      html("div", { class: "lf-line lf-cuts lf-tall", style: `--heads: ${count}` }, projection), html("span")));
  const sum = html("div", {}, title(...typeset("What each head adds: $Y_{h} W_{h}^{(o)}$, and how large it is")), parts.map(({ node }) => node));
  function show({ form, token }, numbers, matrixOf, colours) {
    const of = (array) => Array.from(row(array, token));
    [concat.hidden, sum.hidden] = [form !== "concat", form !== "sum"];
    const limit = limitOf([numbers.sumForm]);
    joined.show(of(numbers.joined), limitOf([numbers.joined]), colours);
    parts.forEach((part, h) => part.show(of(numbers.parts[h]), limit, colours));
    result.show(of(numbers[`${form}Form`]), limit, colours);
    paint(projection, matrixOf, limitOf([matrixOf]), colours);
  }
  return { node: wide(concat, sum, result.node), show };
}

/** A switch for each head of the layer that is looked at. */
function switches(count, onswitch) {
  const buttons = times(count, (h) => button(`Head ${h + 1}`, () => onswitch(h), { class: "lf-button lf-small" }));
  const node = html("div", { class: "lf-examples lf-switches", role: "group", "aria-label": "Heads that are on" }, buttons);
  return { node, show: (on) => buttons.forEach((each, h) => each.setAttribute("aria-pressed", on[h])) };
}

/** What a model says of a text: weights and outputs of every head, by layer; `projections` are read once. */
async function readings(model, ids) {
  const seen = await model.ask("intermediates", "residualStream", ids);
  const of = (name) => times(model.config.stack.num_layers, (l) => seen[`stack.blocks.${l}.attention.${name}`]);
  return { weights: of("weights"), outputs: of("heads") };
}

/** The parts of the figure on its stage; `act` says what they do. */
function build({ controls, stage }, text, count, act) {
  const letters = strip({ label: "Token that asks", onchoose: act.follow });
  const grid = gridOfHeads((layer, head) => act.set({ layer, head, column: null }), "layer");
  const form = choice({ legend: "Form", options: [["concat", "concatenate, then project"], ["sum", "project each head, then sum"]],
    onchange: (value) => act.set({ form: value }) });
  const power = switches(count, act.turn);
  const large = heatMap({ label: "Weights of the chosen head: arrow keys go from one to the next", onpick: act.pick, onhover: act.pick });
  const [name, readout, equal] = [title(), html("output", { class: "lf-note lf-readout" }), html("p", { class: "lf-note lf-wide" })];
  const both = forms(count);
  controls.append(text.node, letters.node);
  stage.append(html("div", { class: "lf-panel lf-heads-panel" }, title("Every head: choose one"), grid.node),
    html("div", { class: "lf-panel lf-head-panel" }, name, large.node, readout),
    wide(title("In this layer, on and off"), power.node), wide(form.node), both.node, equal);
  return { letters, grid, form, power, large, name, readout, equal, both };
}

/** The figure: its settings, what the model said of the text, and how both are shown. */
class Heads {
  constructor(element, model, projections) {
    const { num_heads: count } = model.config.stack;
    const start = this.start = { text: TEXT, layer: 1, head: 3, token: null, column: null, on: times(count, () => true), form: "concat" };
    Object.assign(this, { projections, state: start, now: null });
    this.figure = frame(element, { label: LABEL, reset: () => this.text.again(start) });
    this.text = typing(this.figure, { typed: { token: null, column: null }, settings: (change) => (this.state = { ...this.state, ...change }),
      read: (text) => lastTokens(model, text, MOST), ask: (ids) => readings(model, ids),
      show: (answer, read) => { this.now = { ...answer, ...read }; this.draw(true); } });
    this.parts = build(this.figure, this.text, count, {
      set: (change) => this.set(change), follow: (token) => this.set({ token, column: null }),
      turn: (which) => this.set({ on: this.state.on.map((value, h) => (h === which ? !value : value)) }),
      pick: (token, column) => token !== undefined && this.set({ token, column }) });
  }

  set(change) {
    this.state = { ...this.state, ...change };
    this.draw(false);
  }

  draw(anew) {
    if (!this.now) return;
    const { state, parts, now: { weights, outputs, letters } } = this;
    const token = Math.min(state.token ?? Infinity, letters.length - 1);
    const { layer, head } = state;
    const read = Array.from(row(weights[layer][head], token));
    const column = Math.min(state.column ?? largest(read), read.length - 1);
    const numbers = combine(outputs[layer], this.projections[layer], state.on);
    const shown = { ...state, token, column };
    parts.grid.show(weights, [layer, head], anew);
    parts.letters.show(letters, token, (m) => read[m]);
    parts.large.draw({ matrix: weights[layer][head], limit: 1, rows: letters, columns: letters, chosen: [token, column], tallest: 300 });
    parts.name.textContent = `Layer ${layer + 1}, head ${head + 1}`;
    parts.readout.textContent = `“${letters[token]}” reads “${letters[column]}” with weight ${format(read[column], 3)}.`;
    parts.power.show(state.on);
    parts.form.value = state.form;
    parts.both.show(shown, numbers, this.projections[layer], palette(this.figure.stage));
    this.tell(shown, numbers, letters, read);
  }

  tell(shown, { joined, parts, concatForm, sumForm }, letters, read) {
    const difference = Math.max(...concatForm.data.map((value, i) => Math.abs(value - sumForm.data[i])));
    this.parts.equal.textContent = `Largest difference between the two forms, over all tokens: ${difference ? difference.toExponential(0).replace("-", "−") : "0"}.`;
    if (this.text.publishes()) return;
    const of = (array) => rowsOf(array)[shown.token];
    const sizes = parts.map((part) => sizeOf(of(part)));
    const most = largest(sizes);
    this.figure.publish({ ...shown, letters, weights: read, joined: of(joined), parts: parts.map(of), concatForm: of(concatForm), sumForm: of(sumForm), difference },
      `${this.now.said} Layer ${shown.layer + 1}, ${total(shown.on)} of ${shown.on.length} heads on, for “${letters[shown.token]}”: ` +
      `head ${most + 1} adds most, ${format(sizes[most])}. Both forms agree.`.trim());
  }
}

export async function mount(element) {
  const model = await startModel(element, { label: LABEL });
  const { num_layers: layers, num_heads: heads } = model.config.stack;
  const projections = await Promise.all(times(layers, (l) => model.ask("parameter", `stack.blocks.${l}.attention.output.weight`)));
  const figure = new Heads(element, model, projections);
  whenThemeChanges(() => figure.draw(true));
  await figure.text.again(figure.start); // with its numbers the figure takes the place of its picture
  const word = maybe(place(MOST));
  await figure.figure.addressed({ text: figure.text.kind, layer: place(layers), head: place(heads), word: setting("token", word), read: setting("column", word),
    form: figure.parts.form.kind, off: off("on", heads) }, { now: () => figure.state, go: figure.text.type });
}
