// A plane of mathematics, x to the right and y up, with points that a mouse, a finger or the arrow keys move.
import { clamp, format, onArrows, stroke, svg, times } from "./common.mjs";

const UNIT = 60; // pixels of the drawing for one unit of the plane
const NEAR = 24; // a pointer takes hold of the nearest point within so many pixels of the screen

const place = ([x, y]) => [x * UNIT, -y * UNIT];
export const pair = ([x, y]) => `(${format(x)}, ${format(y)})`;

/** The path of an arrow from one point of the plane to another; a short one has a small head. */
export function arrow(from, to) {
  const [[x0, y0], [x, y]] = [place(from), place(to)];
  const length = Math.hypot(x - x0, y - y0) || 1;
  const [ux, uy] = [(x - x0) / length, (y - y0) / length];
  const head = Math.min(9, length / 2);
  const barb = (side) => `${x - head * (ux - 0.45 * side * uy)} ${y - head * (uy + 0.45 * side * ux)}`;
  return `M${x0} ${y0}L${x} ${y}M${barb(1)}L${x} ${y}L${barb(-1)}`;
}

/** A line through points of the plane. */
export const line = (...points) => (points.length ? `M${points.map(place).join("L")}` : "");

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

/** Put a name beside a point, on the side away from the origin. */
export function nameAt(text, point, distance = 20) {
  const [x, y] = place(point);
  const length = Math.hypot(x, y);
  const [ux, uy] = length < 1 ? [0.7, -0.7] : [x / length, y / length];
  text.setAttribute("x", x + distance * ux);
  text.setAttribute("y", y + distance * uy + 5);
}

export const label = (words, attributes = {}) => svg("text", { class: "lf-halo", "text-anchor": "middle", ...attributes }, words);

/**
 * A point that can be moved: `onmove(point)` hears of it, `show(point)` puts it in its place. With `shaft` it is the tip
 * of an arrow from the origin. Arrow keys move it by a tenth, with Shift by a half; no coordinate leaves −limit to limit.
 */
export function handle({ name, title, limit, onmove, shaft = true, ...look }) {
  const [stem, dot, text] = [stroke("lf-arrow", null, { stroke: "currentColor" }), svg("circle", { r: 5, fill: "currentColor" }), label(name)];
  const rings = [svg("circle", { class: "lf-ring", r: 13 }), svg("circle", { r: 30, fill: "transparent" })];
  const node = svg("g", { role: "slider", tabindex: 0, "aria-label": `${title}: a point, moved with the arrow keys`,
    "aria-valuemin": -limit, "aria-valuemax": limit, ...look, class: `lf-handle ${look.class ?? ""}` }, shaft ? stem : [], rings, dot, text);
  const clip = (value) => Math.round(100 * clamp(value, -limit, limit)) / 100;
  const self = { node, dot, point: [0, 0], move: (x, y) => onmove([clip(x), clip(y)]) };
  onArrows(node, (down, right, event) => {
    const step = event.shiftKey ? 0.5 : 0.1;
    self.move(self.point[0] + right * step, self.point[1] - down * step);
  });
  self.show = (point, called = name) => {
    self.point = point;
    const [x, y] = place(point);
    if (shaft) stem.setAttribute("d", arrow([0, 0], point));
    for (const circle of [...rings, dot]) { circle.setAttribute("cx", x); circle.setAttribute("cy", y); }
    nameAt(text, point, shaft ? 20 : 24);
    text.textContent = called;
    node.setAttribute("aria-valuenow", point[0]);
    node.setAttribute("aria-valuetext", `${format(point[0])} to the right, ${format(point[1])} up`);
  };
  return self;
}

/** A square that shows coordinates from −limit to limit, what is drawn in it, and above that its handles. */
export function plane({ title, limit, handles }, ...drawn) {
  const half = limit * UNIT + 10;
  const ticks = times(Math.floor(limit), (i) => [i + 1, -i - 1]).flat();
  // A finger that begins on a point moves it, and anywhere else it scrolls the page. Inside a drawing browsers ignore touch-action.
  const node = svg("svg", { class: "lf-plane", viewBox: `${-half} ${-half} ${2 * half} ${2 * half}`, role: "group", "aria-label": title },
    stroke("lf-axis", `M${-half} 0H${half}M0 ${-half}V${half}`),
    ticks.map((n) => stroke("lf-axis", `M${n * UNIT} -3v6M-3 ${n * UNIT}h6`)), ...drawn, handles.map((each) => each.node));
  let held = null;
  const at = (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(node.getScreenCTM().inverse());
    return [x / UNIT, -y / UNIT];
  };
  /** The handle that is meant by a place, if one is near. */
  function handleNear([x, y]) {
    const far = ({ point }) => Math.hypot(point[0] - x, point[1] - y);
    const nearest = handles.reduce((best, each) => (far(each) < far(best) ? each : best));
    return far(nearest) * UNIT * node.getScreenCTM().a > NEAR ? null : nearest;
  }
  node.addEventListener("touchstart", (event) => { if (handleNear(at(event.touches[0]))) event.preventDefault(); }, { passive: false });
  node.addEventListener("pointerdown", (event) => {
    const [x, y] = at(event);
    const nearest = handleNear([x, y]);
    if (held || !nearest) return;
    // It keeps its distance from the pointer, so that taking hold of it does not move it.
    held = { handle: nearest, id: event.pointerId, dx: nearest.point[0] - x, dy: nearest.point[1] - y };
    node.setPointerCapture(event.pointerId);
    nearest.node.focus({ preventScroll: true });
    event.preventDefault();
  });
  node.addEventListener("pointermove", (event) => {
    if (held?.id !== event.pointerId) return;
    const [x, y] = at(event);
    held.handle.move(x + held.dx, y + held.dy);
  });
  for (const end of ["pointerup", "pointercancel"]) node.addEventListener(end, (event) => { if (held?.id === event.pointerId) held = null; });
  return node;
}
