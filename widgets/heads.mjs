// Multi-head attention with every number in sight (chapter 03): what each head looks at, and what each head adds.
import { add, button, choice, format, frame, html, matmul, matrixTable, note, panel, scaled, softmax, transpose, wide, wideNote } from "./common.mjs";

// Toy numbers: fitted once so that the three heads look at different places (head 1 between article, noun and verb,
// head 2 at the token before, head 3 at the token itself), then rounded to one decimal. Values and output: random.
// A trained model has the same shape: put its numbers here.
const MODEL = {
  tokens: ["the", "cat", "saw", "a", "bird"],
  x: [[0.2, 0.9, 1.5, 0.1, 1.5, -0.8], [1.3, -0.3, -0.2, 1.0, 0.7, 0.6], [-0.7, 0.5, 0.7, 0.0, -1.3, -0.4],
    [0.0, 1.4, 0.1, -1.1, -0.1, 0.1], [0.6, -0.2, -0.3, 1.5, 0.1, -1.3]],
  queryWeights: [
    [[-0.9, 0.4], [-0.9, -0.9], [0.6, -0.7], [-0.5, 0.9], [1.1, 1.0], [-0.2, -0.2]],
    [[-0.6, 0.4], [0.7, 1.2], [-0.2, 0.0], [0.1, -0.8], [-0.7, 0.1], [0.4, 1.2]],
    [[0.6, 0.4], [-0.8, -0.2], [0.2, -0.2], [0.4, 0.1], [0.1, -1.0], [0.0, -0.6]]],
  keyWeights: [
    [[1.0, 0.0], [0.0, -0.3], [0.4, 0.9], [-0.1, -0.1], [0.3, -0.5], [1.2, 0.6]],
    [[0.4, -0.9], [-0.5, -0.6], [-0.8, 1.2], [0.4, 0.5], [-0.9, 0.0], [1.5, -0.1]],
    [[0.2, -0.8], [-0.1, 0.4], [0.0, -0.9], [1.5, 1.1], [0.5, -1.3], [0.6, -0.4]]],
  valueWeights: [
    [[1.2, -1.5], [0.3, -0.3], [-0.3, -0.1], [-1.2, -0.1], [-0.5, 2.0], [0.1, -0.2]],
    [[-0.2, -0.4], [-0.6, -0.2], [0.3, -0.1], [0.6, -0.1], [0.0, 0.9], [0.3, -0.3]],
    [[-0.1, 0.3], [1.2, -0.2], [-0.1, 0.6], [-0.5, -0.2], [0.5, 0.3], [0.1, 0.4]]],
  outputWeights: [
    [[-2.0, 0.7, -0.7, -1.2, 0.2, 0.5], [-0.3, -0.8, 0.0, 0.0, 1.0, 0.5]],
    [[0.1, 0.8, -0.1, -0.6, 0.4, 0.4], [-0.2, -0.5, 0.2, -1.7, 0.5, 0.3]],
    [[-1.1, 0.0, -0.7, 0.5, -1.4, -0.6], [0.5, 0.8, -1.5, -0.3, 0.2, -0.4]]],
};

const HEADS = MODEL.queryWeights.map((_, h) => h);
const FEATURES = MODEL.x[0].map((_, j) => String(j + 1));
const INNER = HEADS.flatMap((h) => MODEL.outputWeights[h].map((_, j) => `${h + 1}.${j + 1}`));
const LIMIT = 3; // the colours of all tables but the weights run from -LIMIT to LIMIT

/** The weights and the outputs of one head, before the output matrix. */
function runHead(h) {
  const [queries, keys, values] = [MODEL.queryWeights, MODEL.keyWeights, MODEL.valueWeights].map((w) => matmul(MODEL.x, w[h]));
  const scores = scaled(matmul(queries, transpose(keys)), 1 / Math.sqrt(keys[0].length));
  const weights = scores.map((row) => softmax(row));
  return { weights, output: matmul(weights, values) };
}

/** The two forms, with the heads that are switched off set to zero. */
function combine(heads, on) {
  const outputs = HEADS.map((h) => scaled(heads[h].output, on[h] ? 1 : 0));
  const concatenated = MODEL.x.map((_, n) => outputs.flatMap((output) => output[n]));
  const contributions = HEADS.map((h) => matmul(outputs[h], MODEL.outputWeights[h]));
  return { concatenated, contributions, concatForm: matmul(concatenated, MODEL.outputWeights.flat()), sumForm: contributions.reduce(add) };
}

const tableBox = ({ table }) => html("div", { class: "lf-table" }, table);

/** One head's heat map, below the button that switches it on and off. */
function headPanel(h, weights, onswitch) {
  const power = button("", onswitch);
  const map = matrixTable({ caption: `Weights of head ${h + 1}`, rows: MODEL.tokens, columns: MODEL.tokens, corner: "query \\ key" });
  map.update(weights);
  const node = panel(power, tableBox(map));
  function show(on, chosen) {
    power.setAttribute("aria-pressed", on);
    power.textContent = `Head ${h + 1}: ${on ? "on" : "off"}`;
    map.table.classList.toggle("lf-off", !on);
    map.cells.forEach((row, i) => row.forEach((cell) => cell.classList.toggle("lf-chosen", i === chosen)));
    map.heads.forEach((head, i) => head.classList.toggle("lf-chosen", i === chosen));
  }
  return { node, show };
}

/** The tables below the heads, of which `show(state, combined)` fills those that change. */
function tables() {
  const common = { limit: LIMIT, columns: FEATURES };
  const joined = matrixTable({ ...common, caption: "The heads' outputs, side by side (head.component)", rows: [""], columns: INNER });
  const matrix = matrixTable({ ...common, caption: "W_O: two rows for each head", rows: INNER, digits: 1 });
  const parts = matrixTable({ ...common, caption: "What each head adds: its output times its own two rows of W_O",
    rows: HEADS.map((h) => `head ${h + 1}`) });
  const result = matrixTable({ ...common, caption: "Output", rows: [""] });
  matrix.update(MODEL.outputWeights.flat());
  const begins = (j) => j > 0 && INNER[j].endsWith(".1");
  for (const row of [joined.tops, ...joined.cells]) row.forEach((cell, j) => cell.classList.toggle("lf-block-start", begins(j)));
  const concatView = html("div", { class: "lf-wide lf-beside" }, tableBox(joined), tableBox(matrix));
  const sumView = wide(tableBox(parts));
  function show({ form, chosen }, { concatenated, contributions, concatForm, sumForm }) {
    const isSum = form === "sum";
    [concatView.hidden, sumView.hidden] = [isSum, !isSum];
    joined.heads[0].textContent = result.heads[0].textContent = MODEL.tokens[chosen];
    joined.update([concatenated[chosen]]);
    parts.update(contributions.map((rows) => rows[chosen]));
    result.update([(isSum ? sumForm : concatForm)[chosen]]);
    result.table.caption.textContent = isSum ? "Output: the sum of the rows above" : "Output: the heads' outputs, side by side, times W_O";
  }
  return { views: [concatView, sumView], result: tableBox(result), show };
}

export function mount(element) {
  const heads = HEADS.map(runHead);
  const start = { on: HEADS.map(() => true), chosen: 1, form: "concat" };
  const figure = frame(element, { label: "three attention heads, concatenated or summed", start, draw });
  figure.bind({ chosen: choice({ legend: "Query token", options: MODEL.tokens.map((token, i) => [i, token]) }),
    form: choice({ legend: "Form", options: [["concat", "concatenate, then project"], ["sum", "project each head, then sum"]] }) });

  const turned = (which) => figure.settings.on.map((value, i) => (i === which ? !value : value));
  const panels = HEADS.map((h) => headPanel(h, heads[h].weights, () => figure.set({ on: turned(h) })));
  const [{ views, result, show }, equal] = [tables(), note()];
  figure.stage.append(...panels.map(({ node }) => node), ...views, wide(result, equal),
    wideNote("Toy numbers, no trained model: queries and keys were fitted so that the heads look at different places, " +
      "values and W_O drawn at random, all rounded to one decimal. Five tokens, d_model = 6, three heads with d_k = d_v = 2, no mask."));

  function draw(state) {
    const { on, chosen } = state;
    const combined = combine(heads, on);
    const { concatForm, sumForm } = combined;
    panels.forEach((panel, h) => panel.show(on[h], chosen));
    show(state, combined);
    const difference = Math.max(...concatForm.flatMap((row, n) => row.map((value, j) => Math.abs(value - sumForm[n][j]))));
    equal.textContent = "Largest difference between the two forms, over all tokens: " +
      `${difference === 0 ? "0" : difference.toExponential(0).replace("-", "−")}.`;
    figure.publish({ ...MODEL, ...state, ...combined, weights: heads.map(({ weights }) => weights), difference },
      `Output of “${MODEL.tokens[chosen]}” with ${on.filter(Boolean).length} of ${HEADS.length} heads: ` +
      `${concatForm[chosen].map((value) => format(value)).join(", ")}. Both forms agree.`);
  }
  figure.set(start);
}
