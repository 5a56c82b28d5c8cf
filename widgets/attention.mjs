// Attention of one query over five tokens in the plane (chapter 02): drag the query, see the average move.
import { checkbox, dot, format, frame, html, slider, softmax, svg } from "./common.mjs";

const KEYS = [[1.6, 0.9], [0.4, 1.8], [-1.5, 1.0], [-1.2, -1.3], [1.1, -1.4]];
const VALUES = [[1.9, -0.6], [1.2, 1.7], [-0.4, 0.5], [-1.9, 0.9], [-0.9, -1.8]];
const START = [1.3, 0.1];
const D_K = 2;
const LIMIT = 2.4; // both planes show coordinates from -LIMIT to LIMIT
const UNIT = 60; // pixels of the drawing for one unit of the plane
const HALF = LIMIT * UNIT + 8;

const SUBSCRIPTS = "₁₂₃₄₅";
const hue = (i) => `color: var(--lf-hue-${i + 1})`;
const place = ([x, y]) => [x * UNIT, -y * UNIT];
const pair = ([x, y]) => `(${format(x)}, ${format(y)})`;
const multiplier = (position) => 2 ** position / Math.sqrt(D_K);

/** What the package computes in `attend`, for a single query. */
function attend(query, visible, scale) {
  const products = KEYS.map((key) => dot(query, key));
  const scores = products.map((product) => product * scale);
  const weights = softmax(scores, visible);
  const output = [0, 1].map((axis) => dot(weights, VALUES.map((value) => value[axis])));
  return { products, scores, weights, output };
}

/** The corners of the convex hull, in order (Andrew's monotone chain). */
export function convexHull(points) {
  const sorted = [...points].sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  const turn = (o, p, q) => (p[0] - o[0]) * (q[1] - o[1]) - (p[1] - o[1]) * (q[0] - o[0]);
  const half = (list) => {
    const chain = [];
    for (const point of list) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return sorted.length < 2 ? sorted : [...half(sorted), ...half(sorted.reverse())];
}

function plane(label, ...children) {
  return svg("svg", { viewBox: `${-HALF} ${-HALF} ${2 * HALF} ${2 * HALF}`, role: "group", "aria-label": label },
    svg("path", { class: "lf-axis", d: `M${-HALF} 0H${HALF}M0 ${-HALF}V${HALF}` }),
    [-2, -1, 1, 2].map((n) => svg("path", { class: "lf-axis", d: `M${n * UNIT} -3v6M-3 ${n * UNIT}h6` })), ...children);
}

/** An arrow from the origin; `aim(point)` moves its tip. */
function arrow(attributes) {
  const path = svg("path", { class: "lf-arrow", stroke: "currentColor", ...attributes });
  path.aim = (point) => {
    const [x, y] = place(point);
    const length = Math.hypot(x, y) || 1;
    const [ux, uy] = [x / length, y / length];
    const barb = (side) => `${x - 9 * ux + side * 4 * uy} ${y - 9 * uy - side * 4 * ux}`;
    path.setAttribute("d", length < 10 ? `M0 0L${x} ${y}` : `M0 0L${x} ${y}M${barb(1)}L${x} ${y}L${barb(-1)}`);
  };
  return path;
}

/** A text beside the tip of an arrow or a point, on the side away from the origin. */
function tag(point, words, distance) {
  const [x, y] = place(point);
  const length = Math.hypot(x, y) || 1;
  return svg("text", { class: "lf-halo", x: x + distance * x / length, y: y + distance * y / length + 4, "text-anchor": "middle" }, words);
}

function queryHandle(onmove) {
  const line = arrow({ class: "lf-arrow lf-mark", "stroke-width": 3 });
  const [ring, tip] = [svg("circle", { class: "lf-ring", r: 22 }), svg("circle", { class: "lf-mark", r: 6 })];
  const name = svg("text", { class: "lf-halo", "font-weight": 700, "text-anchor": "middle" }, "q");
  const node = svg("g", { class: "lf-handle", role: "slider", tabindex: 0, "aria-label": "Query q: a point, moved with the arrow keys",
    "aria-valuemin": -LIMIT, "aria-valuemax": LIMIT }, line, ring, tip, name);
  let [query, held] = [START, false];
  const clip = (value) => Math.round(100 * Math.max(-LIMIT, Math.min(LIMIT, value))) / 100;
  const move = (x, y) => onmove([clip(x), clip(y)]);
  node.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 0.5 : 0.1;
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [];
    if (dx === undefined) return;
    event.preventDefault();
    move(query[0] + dx * step, query[1] + dy * step);
  });
  function follow(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(node.ownerSVGElement.getScreenCTM().inverse());
    move(at.x / UNIT, -at.y / UNIT);
  }
  node.addEventListener("pointerdown", (event) => { held = true; node.setPointerCapture(event.pointerId); node.focus(); event.preventDefault(); });
  node.addEventListener("pointermove", (event) => { if (held) follow(event); });
  for (const end of ["pointerup", "pointercancel"]) node.addEventListener(end, () => { held = false; });
  function show(point) {
    query = point;
    const [x, y] = place(point);
    line.aim(point);
    for (const circle of [ring, tip]) { circle.setAttribute("cx", x); circle.setAttribute("cy", y); }
    name.setAttribute("x", x + (x < 0 ? -16 : 16));
    name.setAttribute("y", y + (y > 0 ? 18 : -10));
    node.setAttribute("aria-valuenow", point[0]);
    node.setAttribute("aria-valuetext", `${format(point[0])} to the right, ${format(point[1])} up`);
  }
  return { node, show };
}

export function mount(element) {
  const state = { query: START, visible: KEYS.map(() => true), position: 0 };
  const set = (change) => { Object.assign(state, change); render(); };
  const { controls, stage, publish } = frame(element, {
    label: "Live figure: attention of one query over five tokens",
    reset: () => set({ query: START, visible: KEYS.map(() => true), position: 0 }),
  });
  const scale = slider({
    label: "Score multiplier", min: -4, max: 4, step: 0.25, ticks: [0],
    show: (position) => `${format(multiplier(position))}${position === 0 ? " = 1/√2, the usual 1/√d_k" : ""}`,
    oninput: (position) => set({ position }),
  });
  controls.append(scale.node);

  const handle = queryHandle((query) => set({ query }));
  const arrows = KEYS.map((key, i) => { const path = arrow({ style: hue(i) }); path.aim(key); return path; });
  const keyPlane = plane("Keys and query", arrows, KEYS.map((key, i) => tag(key, `k${SUBSCRIPTS[i]}`, 15)), handle.node);

  const hull = svg("path", { class: "lf-hull" });
  const spokes = VALUES.map((_, i) => svg("line", { stroke: "currentColor", style: hue(i) }));
  const dots = VALUES.map((value, i) => svg("circle", { cx: place(value)[0], cy: place(value)[1], fill: "currentColor", style: hue(i) }));
  const output = svg("path", { class: "lf-mark", d: "M0 -8L8 0L0 8L-8 0Z" });
  const outputName = svg("text", { class: "lf-halo", "font-weight": 700, x: 14, y: -9 }, "y");
  const target = svg("g", {}, output, outputName);
  const valuePlane = plane("Values and output", hull, spokes, dots, VALUES.map((value, i) => tag(value, `v${SUBSCRIPTS[i]}`, 26)), target);

  const boxes = KEYS.map((_, i) => checkbox({ label: `May attend to token ${i + 1}`, hideLabel: true,
    onchange: (on) => set({ visible: state.visible.map((old, j) => (i === j ? on : old)) }) }));
  const cells = KEYS.map(() => ["", "", ""].map(() => html("td")));
  const bars = KEYS.map((_, i) => html("span", { class: "lf-bar", style: hue(i) }));
  const head = ["token", "seen", "q·k", "score", "weight"].map((name) => html("th", { scope: "col" }, name));
  const table = html("table", {}, html("caption", {}, "From scores to weights"),
    html("thead", {}, html("tr", {}, head, html("td"))),
    html("tbody", {}, KEYS.map((_, i) => html("tr", {}, html("th", { scope: "row" }, `k${SUBSCRIPTS[i]}, v${SUBSCRIPTS[i]}`),
      html("td", {}, boxes[i].node), cells[i], html("td", { class: "lf-bar-cell" }, bars[i])))));
  stage.append(
    html("div", { class: "lf-panel" }, html("p", { class: "lf-title" }, "Keys and query"), keyPlane,
      html("p", { class: "lf-note" }, "Drag q, or focus it and press the arrow keys (with Shift: larger steps).")),
    html("div", { class: "lf-panel" }, html("p", { class: "lf-title" }, "Values and output"), valuePlane,
      html("p", { class: "lf-note" }, "The output y is an average of the values that are seen, so it stays inside their hull (dashed).")),
    html("div", { class: "lf-wide" }, table));

  function render() {
    const { query, visible, position } = state;
    const factor = multiplier(position);
    const result = attend(query, visible, factor);
    scale.value = position;
    handle.show(query);
    const corners = convexHull(VALUES.filter((_, i) => visible[i])).map(place);
    hull.setAttribute("d", corners.length ? `M${corners.join("L")}Z` : "");
    const [x, y] = place(result.output);
    target.setAttribute("transform", `translate(${x} ${y})`);
    KEYS.forEach((_, i) => {
      const weight = result.weights[i];
      boxes[i].checked = visible[i];
      arrows[i].classList.toggle("lf-hidden", !visible[i]);
      dots[i].classList.toggle("lf-hidden", !visible[i]);
      dots[i].setAttribute("r", 4 + 12 * Math.sqrt(weight));
      const [vx, vy] = place(VALUES[i]);
      for (const [name, value] of Object.entries({ x1: x, y1: y, x2: vx, y2: vy, "stroke-width": 5 * weight })) spokes[i].setAttribute(name, value);
      const shown = [result.products[i], visible[i] ? result.scores[i] : "hidden", weight];
      shown.forEach((value, j) => { cells[i][j].textContent = typeof value === "string" ? value : format(value); });
      bars[i].style.width = `${100 * weight}%`;
    });
    const best = result.weights.indexOf(Math.max(...result.weights));
    const leader = `Query ${pair(query)} gives token ${best + 1} the largest weight, ${format(result.weights[best])}; the output is ${pair(result.output)}.`;
    publish({ query, keys: KEYS, values: VALUES, scale: factor, mask: visible, ...result },
      visible.some(Boolean) ? leader : "Every token is hidden: all weights are 0, and the output is the zero vector.");
  }
  render();
}
