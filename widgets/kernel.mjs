// Kernel smoothing (chapter on relations): data points that can be moved, a query, and the width of the kernel.
import { among, number, place as placeKind, tuple } from "./address.mjs";
import {
  choice, clamp, dot, format, frame, html, largest, note, onDrag, rowHead, slider, softmax, stroke, svg, table, times, tint, words,
} from "./common.mjs";

const START = { query: 4.5, width: 0.6, chosen: 0, points: [[0.5, 1], [1.5, 2.5], [2.5, 2], [3.5, 0], [5, -1.5], [6, -1], [7.5, 1], [9, 2]] };
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [420, 300, 36, 12, 12, 40];
const [LAST, REACH] = [10, 3]; // places from 0 to LAST, values from -REACH to REACH
const across = (place) => LEFT + (place / LAST) * (WIDTH - LEFT - RIGHT);
const down = (value) => HEIGHT - BOTTOM - ((value + REACH) / (2 * REACH)) * (HEIGHT - TOP - BOTTOM);
const GRID = times(201, (i) => (LAST * i) / 200);
const rounded = (value, low, high) => clamp(Math.round(10 * value) / 10, low, high);

/** The attention weights of a query, by minus squared distances over twice the squared width. */
function weightsOf(query, points, width) {
  return softmax(points.map(([place]) => -((query - place) ** 2) / (2 * width ** 2)));
}
const estimate = (query, points, width) => dot(weightsOf(query, points, width), points.map(([, value]) => value));

const axes = () => [stroke("lf-frame", `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}`),
  stroke("lf-axis", `M${LEFT} ${down(0)}H${WIDTH - RIGHT}`),
  ...[0, 2, 4, 6, 8, 10].map((place) => words(String(place), across(place), HEIGHT - BOTTOM + 18)),
  ...[-2, 0, 2].map((value) => words(format(value, 0), LEFT - 6, down(value) + 4, { "text-anchor": "end" })),
  words("place", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6)];

/** The drawing: the curve, the query's line, and points that can be dragged; `move(i, place, value)` hears of it. */
function plane(move, ask) {
  const node = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", style: "touch-action: pan-y; width: 100%" });
  const here = stroke("lf-here");
  const curve = stroke("lf-curve lf-strong", null, { style: "color: var(--lf-hue-1)" });
  const dots = START.points.map(() => svg("circle", { style: "cursor: grab; touch-action: none; color: var(--lf-hue-2)", fill: "currentColor" }));
  const found = svg("circle", { class: "lf-spot", r: 6, style: "color: var(--lf-hue-1)" });
  node.append(...axes(), here, curve, found, ...dots);
  let held;
  const spot = (event) => {
    const at = node.getBoundingClientRect();
    const [x, y] = [((event.clientX - at.left) / at.width) * WIDTH, ((event.clientY - at.top) / at.height) * HEIGHT];
    return [rounded(((x - LEFT) / (WIDTH - LEFT - RIGHT)) * LAST, 0, LAST),
      rounded(((HEIGHT - BOTTOM - y) / (HEIGHT - TOP - BOTTOM)) * 2 * REACH - REACH, -REACH, REACH)];
  };
  const drag = (event) => (held < 0 ? ask(spot(event)[0]) : move(held, ...spot(event)));
  onDrag(node, (event) => {
    event.preventDefault();
    held = dots.indexOf(event.target);
    drag(event);
  }, drag);
  function draw({ query, points, chosen }, values, weights, value) {
    curve.setAttribute("d", GRID.map((place, i) => `${i ? "L" : "M"}${across(place).toFixed(1)} ${down(values[i]).toFixed(1)}`).join(""));
    here.setAttribute("d", `M${across(query)} ${TOP}V${HEIGHT - BOTTOM}`);
    found.setAttribute("cx", across(query));
    found.setAttribute("cy", down(value));
    points.forEach(([place, height], i) => {
      dots[i].setAttribute("cx", across(place));
      dots[i].setAttribute("cy", down(height));
      dots[i].setAttribute("r", 5 + 9 * Math.sqrt(weights[i]));
      dots[i].setAttribute("stroke", i === chosen ? "var(--lf-mark)" : "none");
      dots[i].setAttribute("stroke-width", 2.5);
    });
    node.setAttribute("aria-label", `A curve among eight points; at the query ${format(query, 1)} it is ${format(value)}.`);
  }
  return { node, draw };
}

export function mount(element) {
  const figure = frame(element, { label: "kernel smoothing of eight data points", start: START, draw });
  const { controls, stage, set, bind } = figure;
  const moved = (i, place, value) => set({ chosen: i, points: figure.settings.points.map((point, m) => (m === i ? [place, value] : point)) });
  const tenths = (label, min, max, onchange) => slider({ label, min, max, step: 0.1, show: (value) => format(value, 1), onchange });
  const held = () => [figure.settings.chosen, ...figure.settings.points[figure.settings.chosen]];
  const place = tenths("Place", 0, LAST, (value) => moved(held()[0], value, held()[2]));
  const height = tenths("Value", -REACH, REACH, (value) => moved(held()[0], held()[1], value));
  bind({ query: tenths("Query at", 0, LAST), width: tenths("Width", 0.1, 5),
    chosen: choice({ legend: "Move", options: START.points.map((_, i) => [i, `Point ${i + 1}`]) }) });
  controls.append(place.node, height.node);

  const drawing = plane(moved, (value) => set({ query: value }));
  const rows = START.points.map((_, i) => ["place", "value", "weight"].map(() => html("td")));
  for (const [, , weight] of rows) weight.className = "lf-cell";
  const numbers = table("Weights of the query", ["point", "place", "value", "weight"], rows.map((cells, i) => [rowHead(String(i + 1)), cells]));
  stage.append(html("div", { class: "lf-panel", style: "flex-basis: 21rem" }, drawing.node,
    note("The larger a point, the more it weighs. A tap beside the points moves the query.")),
  html("div", { class: "lf-panel lf-table" }, numbers));

  function draw(state) {
    const weights = weightsOf(state.query, state.points, state.width);
    const value = dot(weights, state.points.map(([, each]) => each));
    const curve = GRID.map((each) => estimate(each, state.points, state.width));
    [place.value, height.value] = state.points[state.chosen];
    drawing.draw(state, curve, weights, value);
    rows.forEach((cells, i) => {
      [format(state.points[i][0], 1), format(state.points[i][1], 1), format(weights[i], 3)].forEach((value, j) => { cells[j].textContent = value; });
      tint(cells[2], weights[i]);
    });
    const most = largest(weights);
    figure.publish({ ...state, weights, value, curve },
      `At ${format(state.query, 1)}, with a width of ${format(state.width, 1)}, the estimate is ${format(value)}. ` +
      `Point ${most + 1} weighs most, ${format(weights[most])}.`);
  }
  set(START);
  const onPlane = tuple(number(0, LAST, 1), number(-REACH, REACH, 1));
  figure.addressed({ chosen: placeKind(START.points.length),
    ...Object.fromEntries(START.points.map((_, i) => [`point${i + 1}`, among("points", i, onPlane)])) });
}
