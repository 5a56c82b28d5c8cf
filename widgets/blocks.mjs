// What a stack of layers does to the size of the tokens, and to the gradient, with and without skips (chapter on depth).
import {
  add, capital, choice, counted, format, frame, html, matmul, mean as meanOf, panel, parkMiller, rowHead, scaled, slider, table, times,
  title, transpose, wideNote, words,
} from "./common.mjs";
import { chart, powerOfTen, threeFigures, ticksBetween } from "./chart.mjs";

const [TOKENS, WIDTH, INNER, DEPTH] = [6, 16, 64, 24];
const EPS = 1e-5;
const SEED = 7;
const START = { wiring: "none", depth: 12, power: -1 };

const zeros = (a) => a.map((row) => row.map(() => 0));
/** The root of the mean square of all entries: 1 for tokens of mean 0 and variance 1. */
const size = (a) => Math.sqrt(meanOf(a.flat().map((value) => value * value)));

/** Evenly spread random numbers with mean 0 and a given variance. */
function generator(seed) {
  const next = parkMiller(seed);
  return (rows, columns, variance = 1) => {
    const width = Math.sqrt(3 * variance); // numbers spread evenly over (-1, 1) have variance 1/3
    return times(rows, () => times(columns, () => (2 * next() - 1) * width));
  };
}

/** Each row to mean 0 and variance 1; and the way back, from a gradient at the result to one at `x`. */
function standardise(x) {
  const spreads = x.map((row) => { const mean = meanOf(row); return Math.sqrt(meanOf(row.map((value) => (value - mean) ** 2)) + EPS); });
  const value = x.map((row, n) => { const mean = meanOf(row); return row.map((entry) => (entry - mean) / spreads[n]); });
  const back = (gradient) => gradient.map((row, n) => {
    const [mean, along] = [meanOf(row), meanOf(row.map((entry, j) => entry * value[n][j]))];
    return row.map((entry, j) => (entry - mean - along * value[n][j]) / spreads[n]);
  });
  return { value, back };
}

/** f(x) = scale · ReLU(x W₁) W₂ for each token; and the way back. */
function network(x, [first, second], scale) {
  const inner = matmul(x, first);
  const kept = (a) => a.map((row, n) => row.map((entry, j) => (inner[n][j] > 0 ? entry : 0)));
  const back = (gradient) => matmul(kept(matmul(scaled(gradient, scale), transpose(second))), transpose(first));
  return { value: scaled(matmul(kept(inner), second), scale), back };
}

// Each wiring gives the next x and the way back; there, `through` says whether the gradient may pass f.
const WIRINGS = {
  none: { name: "no residual", label: "no residual: x ← f(x)", layer(x, f) {
    const { value, back } = f(x);
    return { value, back: (g, through) => (through ? back(g) : zeros(g)) };
  } },
  residual: { name: "residual", label: "residual: x ← x + f(x)", layer(x, f) {
    const { value, back } = f(x);
    return { value: add(x, value), back: (g, through) => (through ? add(g, back(g)) : g) };
  } },
  pre: { name: "pre-norm", label: "pre-norm: x ← x + f(norm(x))", layer(x, f) {
    const norm = standardise(x);
    const { value, back } = f(norm.value);
    return { value: add(x, value), back: (g, through) => (through ? add(g, norm.back(back(g))) : g) };
  } },
  post: { name: "post-norm", label: "post-norm: x ← norm(x + f(x))", layer(x, f) {
    const { value, back } = f(x);
    const norm = standardise(add(x, value));
    const inside = (g, through) => (through ? add(g, back(g)) : g);
    return { value: norm.value, back: (g, through) => inside(norm.back(g), through) };
  } },
};
const NAMES = Object.keys(WIRINGS);
const COLOURS = NAMES.map((_, i) => `var(--lf-hue-${i + 1})`);
const DASHES = [null, "7 4", "2 3", "9 3 2 3"];

/** The size after each layer, and that of the gradient on its way back, by all paths and by the skips alone. */
function run({ x, output, weights }, wiring, depth, scale) {
  const backs = [];
  let [tokens, sizes] = [x, [size(x)]];
  for (const pair of weights.slice(0, depth)) {
    const { value, back } = WIRINGS[wiring].layer(tokens, (rows) => network(rows, pair, scale));
    tokens = value;
    sizes.push(size(value));
    backs.unshift(back);
  }
  const follow = (through) => {
    let gradient = output;
    return [size(output), ...backs.map((back) => { gradient = back(gradient, through); return size(gradient); })];
  };
  return { sizes, gradients: follow(true), skips: follow(false) };
}

/** An axis of powers of ten that holds all `values`, from 0.1 to 10 at the least. */
function powers(values) {
  const exponents = values.flat(2).map(Math.log10);
  const [low, high] = [Math.min(-1, Math.floor(Math.min(...exponents))), Math.max(1, Math.ceil(Math.max(...exponents)))];
  return { low, high, ticks: ticksBetween(low, high, 6), show: powerOfTen };
}

const TITLES = { size: "Size of the tokens, going forward", gradient: "Size of the gradient, going back" };

/** Tokens, a gradient of size 1 at the output, and the weights of every layer, drawn at random. */
function drawn() {
  const draw = generator(SEED);
  const [x, output] = [standardise(draw(TOKENS, WIDTH)).value, draw(TOKENS, WIDTH)];
  // At scale 1 these variances make f keep the mean square of what enters it, on average.
  const weights = times(DEPTH, () => [draw(WIDTH, INNER, 2 / WIDTH), draw(INNER, WIDTH, 1 / INNER)]);
  return { x, output: scaled(output, 1 / size(output)), weights };
}

/** Draw the sizes by layer in one chart, those of the gradients in the other. */
function drawCharts(charts, results, layers, chosen) {
  const curvesOf = { size: results.map(({ sizes }) => sizes), gradient: results.map(({ gradients }) => gradients) };
  const y = powers(Object.values(curvesOf)); // one axis for both charts, so that they can be compared
  for (const [name, curves] of Object.entries(curvesOf)) {
    const list = NAMES.map((key, i) => `${WIRINGS[key].name} ${threeFigures(curves[i].at(-1))}`).join(", ");
    charts[name].draw({
      label: `${TITLES[name]}, on a scale of powers of ten. After ${layers}: ${list}.`,
      x: { low: 0, high: DEPTH, ticks: [0, 6, 12, 18, 24], show: String, name: name === "size" ? "layers passed" : "layers passed on the way back" },
      y,
      curves: curves.map((curve, i) => ({ name: WIRINGS[NAMES[i]].name, colour: COLOURS[i], strong: i === chosen, dots: i === chosen,
        dash: i === chosen ? null : DASHES[i], points: curve.map((value, layer) => [layer, Math.log10(value)]) })),
    });
  }
}

export function mount(element) {
  const data = drawn();
  const { stage, publish, set, bind, addressed } = frame(element, { label: "a stack of layers with and without residuals and norms",
    start: START, draw: show });
  bind({
    wiring: choice({ legend: "Each layer", options: NAMES.map((name) => [name, WIRINGS[name].label]) }),
    power: slider({ label: "Scale of f", min: -2, max: 1, step: 0.25, ticks: [0], show: (value) => format(2 ** value) }),
    depth: slider({ label: "Layers", min: 1, max: DEPTH }),
  });

  const charts = { size: chart(), gradient: chart() };
  const cells = NAMES.map(() => ["", "", ""].map(() => html("td")));
  const dots = COLOURS.map((colour) => html("span", { class: "lf-dot", style: `color: ${colour}` }));
  const heads = NAMES.map((name, i) => rowHead(dots[i], WIRINGS[name].name));
  const ends = table("", ["", "size", "gradient", "by skips"], NAMES.map((_, i) => [heads[i], cells[i]]));
  stage.append(...Object.entries(TITLES).map(([name, words]) => panel(title(words), charts[name].node)),
    html("div", { class: "lf-wide lf-table" }, ends),
    wideNote("Toy numbers, no trained model: six random tokens of width 16, standardised; " +
      "f(x) = scale · ReLU(x W₁) W₂ with random W₁, W₂ of its own in each layer, inner width 64. Size: the root of the mean square of " +
      "all entries. The gradient enters at the output with size 1; the last column keeps only what reaches the input without passing any f."));

  function show(state) {
    const scale = 2 ** state.power;
    const layers = counted(state.depth, "layer");
    const results = NAMES.map((name) => run(data, name, state.depth, scale));
    const chosen = NAMES.indexOf(state.wiring);
    const last = results.map(({ sizes, gradients, skips }) => [sizes.at(-1), gradients.at(-1), skips.at(-1)]);
    drawCharts(charts, results, layers, chosen);
    ends.caption.textContent = `After ${layers}, at scale ${format(scale)}`;
    last.forEach((row, i) => {
      row.forEach((value, j) => { cells[i][j].textContent = threeFigures(value); });
      heads[i].classList.toggle("lf-chosen", i === chosen);
    });
    const [{ name }, [out, gradient]] = [WIRINGS[state.wiring], last[chosen].map(threeFigures)];
    publish({ ...state, scale, ...Object.fromEntries(NAMES.map((name, i) => [name, results[i]])) },
      `${capital(name)}, ${layers}, scale ${format(scale)}: ` +
      `the tokens leave with size ${out}, the gradient reaches the input with size ${gradient}.`);
  }
  set(START);
  addressed();
}
