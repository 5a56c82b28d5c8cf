// Attention by hand (chapter on self-attention): queries, keys and values in the plane, each step to the output, and the usual mistakes.
import { among, flag, number, off, place, setting, tuple } from "./address.mjs";
import {
  bindTo, capital, checkbox, choice, columnHead, fold, format, frame, gauge, html, largest, matmul, matrixTable, numberTable, picker, rowSums,
  scaled, slider, softmax, stroke, svg, table, title, total as sum, transpose, wideNote,
} from "./common.mjs";
import { arrow, convexHull, handle, label, line, nameAt, pair, plane } from "./drag.mjs";
import { typeset } from "./formula.mjs";

const START = {
  queries: [[-1, 0.8], [0.6, 1.4], [-0.4, -1.6], [1.3, 0.1], [-1.7, 0.4]],
  keys: [[1.6, 0.9], [0.4, 1.8], [-1.5, 1], [-1.2, -1.3], [1.1, -1.4]],
  values: [[2, -0.4], [1, 1.8], [-0.6, 0.4], [-1.9, 0.9], [0.5, -1.9]],
  visible: [true, true, true, true, true], chosen: 3, many: false, causal: true, position: 0, mistake: "none",
};
const TOKENS = [0, 1, 2, 3, 4];
const MISTAKES = { none: "none", scale: "no scale", axis: "softmax over the wrong axis", after: "mask after the softmax",
  sign: "mask with the wrong sign" };
const HIDING = { none: "−∞", scale: "−∞", axis: "−∞", after: "× 0", sign: "+∞" }; // what is done to a hidden key
const LIMIT = 2.4; // both planes show coordinates from -LIMIT to LIMIT
const USUAL = 1 / Math.sqrt(2); // one over the root of d_k

const hue = (i) => `color: var(--lf-hue-${i + 1})`;
const named = (letter, i) => `${letter}${"₁₂₃₄₅"[i]}`;
const isOne = (total) => (Math.abs(total - 1) < 5e-3 ? "lf-one" : "lf-not-one");
const put = (rows, i, value) => rows.map((row, n) => (n === i ? value : row));

/** What the package computes in `attend`, or what a mistake makes of it: a row for each query, a column for each key. */
function attend({ queries, keys, values }, mask, scale, mistake = "none") {
  const products = matmul(queries, transpose(keys));
  const scores = scaled(products, scale);
  const turned = (row) => (row.every(Boolean) ? row : row.map((seen) => !seen)); // +∞ beats all that is seen
  const seen = { after: mask.map((row) => row.map(() => true)), sign: mask.map(turned) }[mistake] ?? mask;
  const along = (rows, may) => rows.map((row, n) => softmax(row, may[n]));
  const shares = mistake === "axis" ? transpose(along(transpose(scores), transpose(seen))) : along(scores, seen);
  const weights = mistake === "after" ? shares.map((row, n) => row.map((share, m) => (mask[n][m] ? share : 0))) : shares;
  // The largest score is subtracted before the exponential is taken: the largest exponential is 1.
  const upTo = (row) => row.map((share) => share / (Math.max(...row) || 1));
  const exponentials = mistake === "axis" ? transpose(transpose(shares).map(upTo)) : shares.map(upTo);
  return { products, scores, exponentials, weights, outputs: matmul(weights, values) };
}

/** Keys and queries as arrows; where the key's dotted line meets that of the query, its product is read off. */
function keyPlane(onquery, onkey) {
  const keys = TOKENS.map((i) => handle({ name: named("k", i), title: `Key ${i + 1}`, limit: LIMIT, style: hue(i),
    onmove: (point) => onkey(i, point) }));
  const query = handle({ name: "q", title: "Query q", limit: LIMIT, class: "lf-query", onmove: onquery });
  const axis = stroke("lf-axis");
  const falls = TOKENS.map((i) => stroke("lf-fall", null, { style: hue(i) }));
  const others = TOKENS.map((i) => svg("g", { class: "lf-other" }, stroke("lf-arrow", null, { stroke: "currentColor" }), label(named("q", i))));
  const node = plane({ title: "Keys and query", limit: LIMIT, handles: [...keys, query] }, axis, others, falls);
  function show({ queries, chosen, many, keys: points }, mask, products) {
    const [x, y] = queries[chosen];
    const square = x * x + y * y || 1;
    const reach = LIMIT / (Math.max(Math.abs(x), Math.abs(y)) || 1);
    axis.setAttribute("d", line([-reach * x, -reach * y], [reach * x, reach * y]));
    query.show(queries[chosen], many ? named("q", chosen) : "q");
    TOKENS.forEach((i) => {
      keys[i].show(points[i]);
      keys[i].node.classList.toggle("lf-hidden", !mask[i]);
      falls[i].setAttribute("d", line(points[i], [x, y].map((each) => (each * products[i]) / square)));
      const [shaft, name] = others[i].children;
      shaft.setAttribute("d", arrow([0, 0], queries[i]));
      nameAt(name, queries[i]);
      others[i].classList.toggle("lf-gone", !many || i === chosen);
    });
  }
  return { node, show };
}

/** The values with their hull, and the output: weight times value, arrow upon arrow. */
function valuePlane(onvalue) {
  const values = TOKENS.map((i) => handle({ name: named("v", i), title: `Value ${i + 1}`, limit: LIMIT, style: hue(i), shaft: false,
    onmove: (point) => onvalue(i, point) }));
  const hull = stroke("lf-hull");
  const steps = TOKENS.map((i) => stroke("lf-arrow", null, { stroke: "currentColor", style: hue(i) }));
  const [output, right] = ["lf-mark", "lf-right"].map((name) => stroke(name, "M0 -8L8 0L0 8L-8 0Z"));
  const called = label("y", { "font-weight": 700 });
  const node = plane({ title: "Values and output", limit: LIMIT, handles: values }, hull, steps);
  node.append(right, output, called); // above the values, which may lie there
  const move = (mark, [x, y]) => mark.setAttribute("transform", `translate(${60 * x} ${-60 * y})`);
  function show({ values: points, mistake }, mask, weights, [y, wanted]) {
    hull.setAttribute("d", mask.some(Boolean) ? `${line(...convexHull(points.filter((_, i) => mask[i])))}Z` : "");
    let from = [0, 0];
    TOKENS.forEach((i) => {
      const to = from.map((each, axis) => each + weights[i] * points[i][axis]);
      steps[i].setAttribute("d", weights[i] ? arrow(from, to) : "");
      from = to;
      values[i].show(points[i]);
      values[i].dot.setAttribute("r", 4 + 12 * Math.sqrt(Math.min(2, weights[i])));
      values[i].node.classList.toggle("lf-hidden", !mask[i]);
    });
    for (const mark of [output, called]) move(mark, y);
    called.setAttribute("y", y[1] > 0 ? -14 : 24);
    move(right, wanted);
    right.classList.toggle("lf-gone", mistake === "none");
  }
  return { node, show };
}

/** The steps as a table, a row for each key, and below it the weights side by side: shares of one whole. */
function stepTable(onseen) {
  const boxes = TOKENS.map((i) => checkbox({ label: `May attend to token ${i + 1}`, hideLabel: true, onchange: (on) => onseen(i, on) }));
  const signs = TOKENS.map(() => html("span"));
  const cells = TOKENS.map((i) => [true, true, false, false].map((signed) => gauge(hue(i), signed)));
  const rows = cells.map((row, i) => html("tr", {}, html("th", { scope: "row", style: hue(i) }, named("k", i)), row[0].node, row[1].node,
    html("td", { class: "lf-seen" }, boxes[i].node, signs[i]), row[2].node, row[3].node));
  const sums = ["sum", "", "", "", "", ""].map((words) => html("td", {}, words));
  const factor = columnHead();
  const steps = table("", ["", "q·k", factor, "mask", "exp", "weight"], [...rows, html("tr", { class: "lf-sum" }, sums)], { class: "lf-steps" });
  const parts = TOKENS.map((i) => html("i", { style: hue(i) }));
  const one = html("b");
  const node = html("div", {}, steps, html("div", { class: "lf-budget", "aria-hidden": "true" }, parts, one));
  function show({ visible, mistake, many, causal, chosen }, name, scale, { products, scores, exponentials, weights }) {
    const [most, whole] = [Math.max(...[...products, ...scores].map(Math.abs)), sum(weights)];
    steps.caption.textContent = `From products to weights, for ${name}`;
    factor.textContent = `× ${format(scale)}`;
    TOKENS.forEach((i) => {
      const seen = visible[i] && !(many && causal && i > chosen);
      boxes[i].value = visible[i];
      signs[i].textContent = seen ? "" : HIDING[mistake];
      rows[i].classList.toggle("lf-unseen", !seen);
      [[products, most], [scores, most], [exponentials, 1], [weights, 1]].forEach(([row, limit], j) => cells[i][j].show(row[i], limit));
      parts[i].style.width = `${(100 * weights[i]) / Math.max(1, whole)}%`;
    });
    one.style.left = `${100 / Math.max(1, whole)}%`;
    sums[4].textContent = mistake === "axis" ? "by column" : format(sum(exponentials));
    sums[5].textContent = format(whole);
    sums[5].className = isOne(whole);
  }
  return { node, show };
}

/** The weights of all five queries, whose rows choose the query; and the sum of each. */
function weightTable(choose) {
  const map = matrixTable({ caption: "Weights of all queries", rows: TOKENS.map((i) => named("q", i)),
    columns: TOKENS.map((i) => named("k", i)), sums: true });
  map.table.querySelectorAll("tbody tr").forEach((row, i) => { if (i < 5) row.addEventListener("click", () => choose(i)); });
  function show(weights, chosen) {
    map.update(weights);
    rowSums(weights).forEach((total, i) => { map.right[i].className = `lf-sum ${isOne(total)}`; });
    map.cells.forEach((row, i) => row.forEach((cell) => cell.classList.toggle("lf-chosen", i === chosen)));
  }
  return { node: html("div", { class: "lf-table lf-clickable" }, map.table), show };
}

/** What the mistake does to the present numbers, in a sentence. */
function verdict({ mistake, many, chosen }, mask, scale, now, right) {
  const name = many ? named("q", chosen) : "q";
  const [total, hidden] = [format(sum(now.weights)), mask.some((seen) => !seen)];
  const [most, should] = [now, right].map(({ weights }) => Math.max(...weights));
  if (mistake === "scale") {
    return [...typeset("Without $1/√{d_{k}}$ "), `the factor is ${format(scale)}, and the largest weight ${format(most)} instead of ${format(should)}.`];
  }
  if (mistake === "axis") {
    return `Each column of weights sums to 1. The row of ${name} sums to ${total}: the output ${pair(now.output)} is no average of values.`;
  }
  if (mistake !== "none" && !hidden) return `Nothing is hidden from ${name}, so the mistake does not show: take away a tick under “mask”.`;
  if (mistake === "after") return `What is hidden took its share of the softmax before it was struck out: the weights of ${name} sum to ${total}.`;
  if (mistake === "sign") return `The hidden keys get all the weight, and what ${name} may see gets none; the output is ${pair(now.output)}.`;
  if (!mask.some(Boolean)) return "Every token is hidden: all weights are 0, and the output is the zero vector.";
  return `${many ? name : "The query"} gives token ${largest(now.weights) + 1} the largest weight, ${format(most)}; ` +
    `the output is ${pair(now.output)}.`;
}

/** The tables in which all numbers can be typed. */
function numbers(set, get, onfault) {
  const tables = [["queries", "q"], ["keys", "k"], ["values", "v"]].map(([kind, letter]) => [kind, numberTable({
    caption: capital(kind), limit: LIMIT, onfault,
    rows: TOKENS.map((i) => named(letter, i)), columns: ["right", "up"],
    onchange: (i, j, value) => set({ [kind]: put(get()[kind], i, put(get()[kind][i], j, value)) }) })]);
  const folded = fold("Type the numbers", html("div", { class: "lf-beside" }, tables.map(([, { table }]) => table)));
  function show(state) {
    tables.forEach(([kind, { update }]) => update(state[kind]));
    tables[0][1].lines.forEach((row, i) => {
      row.hidden = !state.many && i !== state.chosen;
      row.firstChild.textContent = state.many ? named("q", i) : "q";
    });
  }
  return { folded, show };
}

/** Which queries there are, and what is done to their scores; `factor(state)` is that on the products. */
function settings(set, get) {
  const factor = ({ position, mistake }) => 2 ** position * (mistake === "scale" ? 1 : USUAL);
  const many = choice({ legend: "Queries", options: [["one", "one"], ["five", "five"]],
    onchange: (value) => set({ many: value === "five", mistake: value === "one" && get().mistake === "axis" ? "none" : get().mistake }) });
  const scale = slider({ label: "Score multiplier", min: -4, max: 4, step: 0.25, ticks: [0],
    show: () => [format(factor(get())), ...typeset(factor(get()) === USUAL ? " = $1/√{d_{k}}$" : "")] });
  const mistake = picker({ label: "Mistake", options: Object.entries(MISTAKES),
    onchange: (value) => set({ mistake: value, many: value === "axis" || get().many }) }); // a column needs several queries
  const which = choice({ legend: "Query", options: TOKENS.map((i) => [i, named("q", i)]) });
  const causal = checkbox({ label: "causal mask" });
  const bound = bindTo(set, { position: scale, mistake, chosen: which, causal });
  function show(state) {
    bound.show(state);
    many.value = state.many ? "five" : "one";
    which.node.hidden = causal.node.hidden = !state.many;
  }
  return { nodes: [many.node, ...bound.nodes], kinds: bound.kinds, show, factor };
}

/** The numbers of one query, from those of all. */
const rowOf = ({ products, scores, exponentials, weights, outputs }, n) =>
  ({ products: products[n], scores: scores[n], exponentials: exponentials[n], weights: weights[n], output: outputs[n] });

export function mount(element) {
  const figure = frame(element, { label: "attention of queries over five tokens, by hand", start: START, draw,
    reset: () => { typed.folded.open = false; set(START); } });
  const { controls, stage, publish, set } = figure;
  const get = () => figure.settings;
  const change = (kind) => (i, value) => set({ [kind]: put(get()[kind], i, value) });
  const knobs = settings(set, get);
  const left = keyPlane((point) => change("queries")(get().chosen, point), change("keys"));
  const right = valuePlane(change("values"));
  const steps = stepTable(change("visible"));
  const map = weightTable((chosen) => set({ chosen }));
  const typed = numbers(set, get, (words) => publish(JSON.parse(element.dataset.state), words));
  const titled = (words, { node }) => html("div", {}, title(words), node);
  controls.append(...knobs.nodes);
  stage.append(html("div", { class: "lf-wide lf-planes" }, titled("Keys and query", left), titled("Values and output", right)),
    wideNote("Drag q, a key or a value, or use the arrow keys. " +
      "Dotted lines: how far a key reaches along q. Arrows to the output y: each value, times its weight."),
    html("div", { class: "lf-wide lf-pair" }, steps.node, map.node), typed.folded.node);

  function draw(state) {
    const [n, scale] = [state.chosen, knobs.factor(state)];
    const masks = TOKENS.map((i) => TOKENS.map((m) => state.visible[m] && !(state.many && state.causal && m > i)));
    const all = attend(state, masks, scale, state.mistake);
    const [now, correct] = [rowOf(all, n), rowOf(attend(state, masks, 2 ** state.position * USUAL), n)];
    knobs.show(state);
    left.show(state, masks[n], now.products);
    right.show(state, masks[n], now.weights, [now.output, correct.output]);
    steps.show(state, state.many ? named("q", n) : "q", scale, now);
    map.show(all.weights, n);
    map.node.hidden = !state.many;
    typed.show(state);
    publish({ ...state, query: state.queries[n], scale, mask: masks[n], masks, matrix: all.weights, outputs: all.outputs, ...now },
      verdict(state, masks[n], scale, now, correct));
  }
  set(START);
  const onPlane = tuple(number(-LIMIT, LIMIT), number(-LIMIT, LIMIT));
  const points = ["queries", "keys", "values"].flatMap((kind) => TOKENS.map((i) => [`${kind[0]}${i + 1}`, among(kind, i, onPlane)]));
  const { position, ...kinds } = knobs.kinds;
  figure.addressed({ ...kinds, power: setting("position", position), chosen: place(TOKENS.length), many: flag, hidden: off("visible", TOKENS.length), ...Object.fromEntries(points) },
    { go: (wanted) => set({ ...wanted, many: wanted.many || wanted.mistake === "axis" }) });
}
