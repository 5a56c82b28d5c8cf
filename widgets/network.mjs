// A network with one hidden layer learns "either, but not both" from a random start (the primer).
import { whole } from "./address.mjs";
import { chart } from "./chart.mjs";
import {
  add, button, counted, format, frame, matmul, mean, note, panel, parkMiller, rowSums, scaled, slider, softmax, stroke, svg, times, title, transpose, words,
} from "./common.mjs";

const SWITCHES = [[0, 0], [0, 1], [1, 0], [1, 1]]; // left, right
const IS_LIGHT = [0, 1, 1, 0];
const WANTED = IS_LIGHT.map((light) => [1 - light, light]);
const UNITS = [1, 2, 3, 4, 8, 16];
const [RATE, MOST] = [0.3, 400];
const [LOW, HIGH, CELLS, SIDE, EDGE] = [-0.5, 1.5, 20, 240, 30]; // the square that is drawn

/** Numbers drawn from a normal distribution, by Box and Muller's formula. */
const normal = (random) => () => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());

/** The numbers at a start: `first` and `second`, the matrices, and what is added after each. */
function begin(units, start) {
  const draw = normal(parkMiller(7919 * start));
  const [first, second] = [times(2, () => times(units, draw)), times(units, () => [draw(), draw()])];
  return { first, firstBias: times(units, () => 0), second: scaled(second, 1 / Math.sqrt(units)), secondBias: [0, 0] };
}

const added = (rows, bias) => rows.map((row) => row.map((value, j) => value + bias[j]));
function forwards({ first, firstBias, second, secondBias }, x) {
  const before = added(matmul(x, first), firstBias);
  const hidden = before.map((row) => row.map((value) => Math.max(0, value)));
  return { before, hidden, probabilities: added(matmul(hidden, second), secondBias).map((row) => softmax(row)) };
}

/** One step against the gradient of the mean surprise at the four answers, which is sent back map by map. */
function step(numbers) {
  const { before, hidden, probabilities } = forwards(numbers, SWITCHES);
  const atLogits = scaled(add(probabilities, scaled(WANTED, -1)), 1 / WANTED.length);
  const atHidden = matmul(atLogits, transpose(numbers.second));
  const beforeBend = atHidden.map((row, n) => row.map((value, i) => (before[n][i] > 0 ? value : 0)));
  const down = (matrix, gradient) => add(matrix, scaled(gradient, -RATE));
  const [firstBias, secondBias] = [beforeBend, atLogits].map((rows) => [rowSums(transpose(rows))]);
  return {
    first: down(numbers.first, matmul(transpose(SWITCHES), beforeBend)), firstBias: down([numbers.firstBias], firstBias)[0],
    second: down(numbers.second, matmul(transpose(hidden), atLogits)), secondBias: down([numbers.secondBias], secondBias)[0],
  };
}

const lossOf = (numbers) => mean(forwards(numbers, SWITCHES).probabilities.map((row, n) => -Math.log(row[IS_LIGHT[n]])));

/** The numbers after so many steps, and the loss before each and after the last. */
function learn(units, start, steps) {
  let numbers = begin(units, start);
  const losses = [lossOf(numbers)];
  for (let done = 0; done < steps; done++) { numbers = step(numbers); losses.push(lossOf(numbers)); }
  return { numbers, losses };
}

/** Where the line `a x + b y + c = 0` enters and leaves the square; nothing if it misses it. */
function ends(a, b, c) {
  const onSides = [LOW, HIGH].flatMap((side) => [[side, -(c + a * side) / b], [-(c + b * side) / a, side]]);
  return onSides.filter((point) => point.every((value) => value >= LOW && value <= HIGH)).slice(0, 2);
}

/** The square of all positions of the switches, with the four that there are; `draw` shades it and draws the bends. */
function square() {
  const across = (value) => EDGE + ((value - LOW) / (HIGH - LOW)) * SIDE;
  const down = (value) => 2 * EDGE + SIDE - across(value);
  const [size, at] = [SIDE / CELLS, (i) => LOW + ((i + 0.5) / CELLS) * (HIGH - LOW)];
  const places = times(CELLS, (i) => times(CELLS, (j) => [at(i), at(j)])).flat();
  const cells = places.map(([left, right]) => svg("rect", { x: across(left) - size / 2, y: down(right) - size / 2, width: size, height: size, class: "lf-share", "shape-rendering": "crispEdges" }));
  const lines = svg("g", { style: "color: var(--lf-hue-2)" });
  const corners = SWITCHES.map(([left, right], n) => [svg("circle", { cx: across(left), cy: down(right), r: 16, class: "lf-answer" }),
    words(IS_LIGHT[n] ? "yes" : "no", across(left), down(right) + 4)]);
  const ways = ["down", "up"].map((name, value) => [words(name, across(value), SIDE + 48), words(name, EDGE - 6, down(value) + 4, { "text-anchor": "end" })]);
  const middle = EDGE + SIDE / 2;
  const node = svg("svg", { viewBox: `-44 20 ${SIDE + 84} ${SIDE + 56}`, role: "img" }, cells, stroke("lf-frame", `M${EDGE} ${EDGE}h${SIDE}v${SIDE}h${-SIDE}z`),
    lines, corners.flat(), ways.flat(), words("left switch", middle, SIDE + 68), words("right switch", -26, middle, { transform: `rotate(-90 -26 ${middle})` }));
  function draw(numbers, label) {
    const found = forwards(numbers, places).probabilities;
    cells.forEach((cell, n) => cell.setAttribute("fill-opacity", found[n][1].toFixed(3)));
    const bends = transpose(numbers.first).map(([a, b], i) => ends(a, b, numbers.firstBias[i])).filter((points) => points.length === 2);
    lines.replaceChildren(...bends.map(([from, to]) => stroke("lf-curve lf-strong", `M${across(from[0])} ${down(from[1])}L${across(to[0])} ${down(to[1])}`)));
    node.setAttribute("aria-label", label);
  }
  return { node, draw };
}

export function mount(element) {
  const start = { units: 2, start: 1, steps: 0 };
  const figure = frame(element, { label: "a network learns from a random start", start, draw });
  const go = (number) => figure.set({ steps: Math.min(MOST, figure.settings.steps + number) });
  const buttons = [["One step", 1], ["Ten steps", 10], ["A hundred steps", 100]].map(([label, number]) => button(label, () => go(number)));
  figure.bind({
    units: slider({ label: "Hidden units", values: UNITS, onchange: (units) => figure.set({ units, steps: 0 }) }),
    start: slider({ label: "Random start", min: 1, max: 30, onchange: (number) => figure.set({ start: number, steps: 0 }) }),
  });
  figure.controls.append(...buttons);
  const [heading, positions, drawing] = [title(""), square(), chart()];
  figure.stage.append(panel(heading, positions.node, note("Shade: probability of light. In the circles: the right answer. Each line: where a hidden unit bends.")),
    panel(drawing.node));

  function draw({ units, start: number, steps }) {
    const { numbers, losses } = learn(units, number, steps);
    const { before, probabilities } = forwards(numbers, SWITCHES);
    const answers = probabilities.map((row) => row[1]);
    const right = answers.filter((probability, n) => (probability > 0.5 ? 1 : 0) === IS_LIGHT[n]).length;
    const off = transpose(before).filter((column) => column.every((value) => value <= 0)).length;
    for (const each of buttons) each.setAttribute("aria-disabled", steps === MOST);
    heading.textContent = `After ${counted(steps, "step")}`;
    positions.draw(numbers, `Probability of light at the four positions, left and right switch: ${SWITCHES.map((x, n) =>
      `${x.map((up) => (up ? "up" : "down")).join(" and ")} ${format(answers[n])}`).join(", ")}`);
    const high = Math.max(1, ...losses);
    drawing.draw({ label: `The loss after each of ${steps} steps, beside ${format(Math.LN2)}, the loss of an even guess`,
      x: { low: 0, high: MOST, ticks: [0, 100, 200, 300, 400], show: String, name: "step" },
      y: { low: 0, high: high * 1.05, ticks: [0, 0.5, 1, 1.5, 2, 2.5, 3].filter((value) => value <= high), show: (value) => format(value, 1), name: "loss" },
      curves: [{ name: "even guess", colour: "var(--lf-soft)", dash: "4 3", points: [[0, Math.LN2], [MOST, Math.LN2]] },
        { name: "", colour: "var(--lf-hue-1)", strong: true, points: losses.map((value, done) => [done, value]) }] });
    figure.publish({ units, start: number, steps, begin: begin(units, number), numbers, losses, answers, right, off },
      `${counted(units, "hidden unit")}, ${counted(steps, "step")}: ${right} of 4 answers are right, the loss is ${format(losses.at(-1), 3)} nats` +
      `${off ? `; ${counted(off, "unit")} cut off for all four` : ""}.`);
  }
  figure.set(start);
  figure.addressed({ steps: whole(0, MOST) });
}
