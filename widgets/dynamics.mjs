// A rigid body that turns, followed by the implicit midpoint rule and by a trained model, in three dimensions (chapter on dynamics).
// `dynamics.json` holds the weights of the book's own models; lab/figures/dynamics.py writes it.
import { number } from "./address.mjs";
import {
  add, capital, choice, clamp, dot, format, frame, html, matmul, note, onArrows, onDrag, panel, rowHead, scaled, slider, stroke,
  svg, table, times, transpose, words,
} from "./common.mjs";
import { threeFigures } from "./chart.mjs";

const [KAPPA, STEP, WINDOW, SIZE, REACH] = [0.5, 0.2, 3, 320, 1.3];
const START = { kind: "volume_preserving", circle: "second", angle: 1.1, steps: 200, turn: 0.6, tilt: 0.35 };
const LABELS = { volume_preserving: "keeps volumes, transformer", residual: "keeps nothing, residual layers", turning: "keeps lengths, turns" };

const velocity = ([a, b, c]) => [b * c, -KAPPA * a * c, (KAPPA - 1) * a * b];
const length = (y) => dot(y, y);
const energy = ([a, b, c]) => (a * a + KAPPA * b * b + (1 + KAPPA) * c * c) / 2;

/** One step of the rule: the middle is repeated until it no longer changes. */
function midpoint(y) {
  let middle = y;
  for (let round = 0; round < 100; round++) {
    const before = middle;
    middle = velocity(before).map((speed, i) => y[i] + (STEP / 2) * speed);
    if (middle.every((value, i) => Math.abs(value - before[i]) < 1e-15)) break;
  }
  return middle.map((value, i) => 2 * value - y[i]);
}

function follow(start, steps) {
  const points = [start];
  while (points.length <= steps) points.push(midpoint(points.at(-1)));
  return points;
}

/** The matrix X with A X = B, by elimination with the largest pivot. */
function solve(a, b) {
  const rows = a.map((row, i) => [...row, ...b[i]]);
  const n = a.length;
  for (let k = 0; k < n; k++) {
    let best = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(rows[i][k]) > Math.abs(rows[best][k])) best = i;
    [rows[k], rows[best]] = [rows[best], rows[k]];
    for (let i = 0; i < n; i++) {
      if (i === k) continue;
      const factor = rows[i][k] / rows[k][k];
      rows[i] = rows[i].map((value, j) => value - factor * rows[k][j]);
    }
  }
  return rows.map((row, k) => row.slice(n).map((value) => value / row[k]));
}

const identity = (n) => times(n, (i) => times(n, (j) => Number(i === j)));
const residual = (x, weight, bias) => add(x, matmul(x, weight).map((row) => row.map((value, j) => Math.tanh(value + bias[j]))));

/** The rotation that a skew-symmetric matrix stands for. */
const cayley = (skew) => solve(add(identity(skew.length), skew), add(identity(skew.length), scaled(skew, -1)));

/** A row, turned by a rotation that a small network makes of it. */
function turned(row, { weight, bias, readout }) {
  const inner = matmul([row], weight)[0].map((value, j) => Math.tanh(value + bias[j]));
  const [a, b, c] = matmul([inner], readout)[0];
  return matmul([row], cayley([[0, a, b], [-a, 0, c], [-b, -c, 0]]))[0];
}

/** One layer, of whichever kind it is. */
function apply(layer, x) {
  if (layer.readout) return x.map((row) => turned(row, layer));
  if (layer.form) return matmul(cayley(matmul(matmul(x, layer.form), transpose(x))), x);
  return layer.steps.reduce((rows, { weight, bias }) => residual(rows, weight, bias), x);
}

function predict(layers, window, count) {
  const points = [];
  while (points.length < count) {
    window = layers.reduce((x, layer) => apply(layer, x), window);
    points.push(...window);
  }
  return points.slice(0, count);
}

/** Where a point is seen: turned about the third axis, then tilted towards the reader. */
function seen([a, b, c], { turn, tilt }) {
  const [right, back] = [a * Math.cos(turn) + b * Math.sin(turn), b * Math.cos(turn) - a * Math.sin(turn)];
  return [right, c * Math.cos(tilt) + back * Math.sin(tilt), c * Math.sin(tilt) - back * Math.cos(tilt)];
}
const place = (point, view) => { const [x, y] = seen(point, view); return [(SIZE / 2) * (1 + x / REACH), (SIZE / 2) * (1 - y / REACH)]; };
const path = (points, view) => points.map((point, i) => `${i ? "L" : "M"}${place(point, view).map((value) => value.toFixed(1)).join(" ")}`).join("");
const shown = (points) => { const end = points.findIndex((y) => !(length(y) < 4)); return end < 0 ? points : points.slice(0, end); };

/** The unit sphere: its outline, its equator and two meridians. */
function globe(view) {
  const turns = times(49, (i) => (i * Math.PI) / 24);
  const circles = [(t) => [Math.cos(t), Math.sin(t), 0], (t) => [Math.cos(t), 0, Math.sin(t)], (t) => [0, Math.cos(t), Math.sin(t)]];
  const ends = [[1.15, 0, 0], [0, 1.15, 0], [0, 0, 1.15]].map((end, i) => {
    const [x, y] = place(end, view);
    return words(`y${"₁₂₃"[i]}`, x, y + 4);
  });
  return [svg("circle", { class: "lf-frame", cx: SIZE / 2, cy: SIZE / 2, r: SIZE / 2 / REACH }),
    ...circles.map((circle) => stroke("lf-axis", path(turns.map(circle), view))), ...ends];
}

const spelt = (value) => (Number.isFinite(value) && value < 100 ? format(value, 3) : Number.isFinite(value) ? threeFigures(value) : "beyond bounds");

/** Draw the sphere with the curves of the rule and of the model, of which the last point is so far from the rule's. */
function show(picture, { state, first, rule, model }, distance) {
  picture.setAttribute("aria-label",
    `A sphere seen from a turn of ${format(state.turn, 1)} and a tilt of ${format(state.tilt, 1)}, with two curves: ` +
    `the rule's, which stays on it, and the model's, which ends at a distance of ${distance} from it.`);
  const [cx, cy] = place(first, state);
  picture.replaceChildren(...globe(state),
    stroke("lf-curve lf-strong", path(shown(model), state), { style: "color: var(--lf-hue-2)" }),
    stroke("lf-curve", path(rule, state), { style: "color: var(--lf-ink)", "stroke-dasharray": "3 3" }),
    svg("circle", { cx, cy, r: 4, fill: "var(--lf-hue-1)" }));
}

/** A picture that drags and arrow keys turn. */
function turnable(figure) {
  const picture = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", tabindex: 0, style: "touch-action: pan-y; cursor: grab" });
  const turnBy = (across, down) => {
    const { turn, tilt } = figure.settings;
    const rounded = (value) => Math.round(100 * value) / 100;
    figure.set({ turn: rounded(turn + across), tilt: rounded(clamp(tilt + down, -1.5, 1.5)) });
  };
  let held;
  onArrows(picture, (down, right) => turnBy(right / 10, -down / 10));
  onDrag(picture, (event) => { held = [event.clientX, event.clientY]; picture.focus(); }, (event) => {
    const [x, y] = held;
    held = [event.clientX, event.clientY];
    turnBy((event.clientX - x) / 100, (event.clientY - y) / 100);
  });
  return picture;
}

export async function mount(element) {
  // The weights have single precision; their shortest decimals are read as what they stand for.
  const exact = (_, value) => (typeof value === "number" ? Math.fround(value) : value);
  const models = JSON.parse(await (await fetch(new URL("dynamics.json", import.meta.url))).text(), exact);
  const figure = frame(element, { label: "a turning body in three dimensions, followed by a rule and by a model", start: START, draw });
  const { stage, set, bind } = figure;
  bind({
    kind: choice({ legend: "Model", options: Object.entries(LABELS) }),
    circle: choice({ legend: "Begin", options: [["second", "without y₂"], ["first", "without y₁"]] }),
    angle: slider({ label: "at the angle", values: times(619, (i) => (i + 10) / 100), show: (value) => format(value) }),
    steps: slider({ label: "Points", min: 3, max: 1000 }),
  });

  const picture = turnable(figure);
  const names = ["|y|²", "energy", "distance"];
  const cells = names.map(() => [html("td"), html("td")]);
  stage.append(panel(picture, note("Thin and dashed: the implicit midpoint rule. Thick: " +
    "the model, which is given the first three points. Drag to turn, or use the arrow keys; " +
    "a curve ends where it is twice as far out as the sphere.")),
  panel(table("At the last point", ["", "rule", "model"], names.map((name, i) => [rowHead(name), cells[i]])),
    note("The rule keeps both invariants but for rounding. The models saw " +
      "such trajectories, up to 100 steps of 0.2 each.")));

  function draw(state) {
    const [sine, cosine] = [Math.sin(state.angle), Math.cos(state.angle)];
    const first = state.circle === "second" ? [sine, 0, cosine] : [0, sine, cosine];
    const rule = follow(first, state.steps + WINDOW - 1);
    const model = [...rule.slice(0, WINDOW), ...predict(models[state.kind], rule.slice(0, WINDOW), state.steps)];
    const [end, other] = [rule.at(-1), model.at(-1)];
    const distance = Math.sqrt(length(end.map((value, i) => value - other[i])));
    const numbers = [[length(end), length(other)], [energy(end), energy(other)], [0, distance]];
    cells.forEach((row, i) => row.forEach((cell, j) => { cell.textContent = i === 2 && j === 0 ? "" : spelt(numbers[i][j]); }));
    show(picture, { state, first, rule, model }, spelt(distance));
    figure.publish({ ...state, rule: end, model: other, lengths: numbers[0], energies: numbers[1], distance },
      `${capital(LABELS[state.kind])}, ${state.steps} points after the first three: length squared ` +
      `${spelt(length(other))}, energy ${spelt(energy(other))} where the rule has ${spelt(energy(end))}, distance ${spelt(distance)}.`);
  }
  set(START);
  figure.addressed({ turn: number(-1000, 1000), tilt: number(-1.5, 1.5) });
}
