// Kernel smoothing (chapter 12): data points that can be moved, a query, and the width of the kernel.
import { choice, dot, format, frame, html, slider, softmax, svg } from "./common.mjs";

const START = { query: 4.5, width: 0.6, chosen: 0, points: [[0.5, 1], [1.5, 2.5], [2.5, 2], [3.5, 0], [5, -1.5], [6, -1], [7.5, 1], [9, 2]] };
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [420, 300, 36, 12, 12, 40];
const [LAST, REACH] = [10, 3]; // places from 0 to LAST, values from -REACH to REACH
const across = (place) => LEFT + (place / LAST) * (WIDTH - LEFT - RIGHT);
const down = (value) => HEIGHT - BOTTOM - ((value + REACH) / (2 * REACH)) * (HEIGHT - TOP - BOTTOM);
const GRID = Array.from({ length: 201 }, (_, i) => (LAST * i) / 200);
const rounded = (value, low, high) => Math.min(high, Math.max(low, Math.round(10 * value) / 10));

/** The attention weights of a query, by minus squared distances over twice the squared width. */
export function weightsOf(query, points, width) {
  return softmax(points.map(([place]) => -((query - place) ** 2) / (2 * width ** 2)));
}
const estimate = (query, points, width) => dot(weightsOf(query, points, width), points.map(([, value]) => value));

/** The drawing: the curve, the query's line, and points that can be dragged; `move(i, place, value)` hears of it. */
function plane(move, ask) {
  const node = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", style: "touch-action: pan-y; width: 100%" });
  const axes = [svg("path", { class: "lf-frame", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` }),
    svg("path", { class: "lf-axis", d: `M${LEFT} ${down(0)}H${WIDTH - RIGHT}` }),
    ...[0, 2, 4, 6, 8, 10].map((place) => svg("text", { x: across(place), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, String(place))),
    ...[-2, 0, 2].map((value) => svg("text", { x: LEFT - 6, y: down(value) + 4, "text-anchor": "end" }, format(value, 0))),
    svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "place")];
  const here = svg("path", { class: "lf-here" });
  const curve = svg("path", { class: "lf-curve lf-strong", style: "color: var(--lf-hue-1)" });
  const dots = START.points.map(() => svg("circle", { style: "cursor: grab; touch-action: none; color: var(--lf-hue-2)", fill: "currentColor" }));
  const found = svg("circle", { class: "lf-spot", r: 6, style: "color: var(--lf-hue-1)" });
  node.append(...axes, here, curve, found, ...dots);
  let held = null;
  const spot = (event) => {
    const at = node.getBoundingClientRect();
    const [x, y] = [((event.clientX - at.left) / at.width) * WIDTH, ((event.clientY - at.top) / at.height) * HEIGHT];
    return [rounded(((x - LEFT) / (WIDTH - LEFT - RIGHT)) * LAST, 0, LAST),
      rounded(((HEIGHT - BOTTOM - y) / (HEIGHT - TOP - BOTTOM)) * 2 * REACH - REACH, -REACH, REACH)];
  };
  dots.forEach((dot, i) => dot.addEventListener("pointerdown", () => { held = i; }));
  node.addEventListener("pointerdown", (event) => {
    node.setPointerCapture(event.pointerId);
    event.preventDefault();
    if (held === null) { held = "query"; ask(spot(event)[0]); } else move(held, ...spot(event));
  });
  node.addEventListener("pointermove", (event) => {
    if (held === "query") ask(spot(event)[0]); else if (held !== null) move(held, ...spot(event));
  });
  for (const end of ["pointerup", "pointercancel"]) node.addEventListener(end, () => { held = null; });
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
    node.setAttribute("aria-label", `A curve through eight points; at the query ${format(query, 1)} it is ${format(value)}.`);
  }
  return { node, draw };
}

export function mount(element) {
  let state = structuredClone(START);
  const set = (change) => { state = { ...state, ...change }; render(); };
  const { controls, stage, publish } = frame(element, {
    label: "Live figure: kernel smoothing of eight data points", reset: () => set(structuredClone(START)),
  });
  const moved = (i, place, value) => set({ chosen: i, points: state.points.map((point, m) => (m === i ? [place, value] : point)) });
  const query = slider({ label: "Query at", min: 0, max: LAST, step: 0.1, show: (value) => format(value, 1), oninput: (value) => set({ query: value }) });
  const width = slider({ label: "Width", min: 0.1, max: 5, step: 0.1, show: (value) => format(value, 1), oninput: (value) => set({ width: value }) });
  const point = choice({ legend: "Move", options: START.points.map((_, i) => [String(i), `Point ${i + 1}`]), onchange: (value) => set({ chosen: Number(value) }) });
  const place = slider({ label: "Place", min: 0, max: LAST, step: 0.1, show: (value) => format(value, 1),
    oninput: (value) => moved(state.chosen, value, state.points[state.chosen][1]) });
  const height = slider({ label: "Value", min: -REACH, max: REACH, step: 0.1, show: (value) => format(value, 1),
    oninput: (value) => moved(state.chosen, state.points[state.chosen][0], value) });
  controls.append(query.node, width.node, point.node, place.node, height.node);

  const drawing = plane(moved, (value) => set({ query: value }));
  const rows = START.points.map((_, i) => ["place", "value", "weight"].map(() => html("td")));
  const bars = rows.map(([, , weight]) => { weight.className = "lf-cell"; return weight; });
  const heads = ["point", "place", "value", "weight"].map((name) => html("th", { scope: "col" }, name));
  const table = html("table", {}, html("caption", {}, "Weights of the query"), html("thead", {}, html("tr", {}, heads)),
    html("tbody", {}, rows.map((cells, i) => html("tr", {}, html("th", { scope: "row" }, String(i + 1)), cells))));
  stage.append(html("div", { class: "lf-panel", style: "flex-basis: 21rem" }, drawing.node,
    html("p", { class: "lf-note" }, "The larger a point, the more it weighs. A tap beside the points moves the query.")),
  html("div", { class: "lf-panel lf-table" }, table));

  function render() {
    const weights = weightsOf(state.query, state.points, state.width);
    const value = dot(weights, state.points.map(([, each]) => each));
    const curve = GRID.map((each) => estimate(each, state.points, state.width));
    [query.value, width.value, point.value] = [state.query, state.width, String(state.chosen)];
    [place.value, height.value] = state.points[state.chosen];
    drawing.draw(state, curve, weights, value);
    rows.forEach((cells, i) => {
      [format(state.points[i][0], 1), format(state.points[i][1], 1), format(weights[i], 3)].forEach((words, j) => { cells[j].textContent = words; });
      bars[i].style.setProperty("--share", `${Math.round(100 * weights[i])}%`);
    });
    const most = weights.indexOf(Math.max(...weights));
    publish({ ...state, weights, value, curve },
      `At ${format(state.query, 1)}, with a width of ${format(state.width, 1)}, the estimate is ${format(value)}. ` +
      `Point ${most + 1} weighs most, ${format(weights[most])}.`);
  }
  render();
}
