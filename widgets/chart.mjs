// A small line chart: axes with ticks, and curves that are named at their right ends, or to the left of them.
import { clamp, ranked, stroke, svg, times, words } from "./common.mjs";

const [WIDTH, HEIGHT] = [346, 260];
const [LEFT, RIGHT, TOP, BOTTOM] = [46, 92, 24, 42];
const LINE = 15; // two names keep this far apart

const SUPERSCRIPTS = { "-": "⁻", ...Object.fromEntries([..."⁰¹²³⁴⁵⁶⁷⁸⁹"].map((sign, digit) => [digit, sign])) };
/** A power of ten, as it is written by hand. */
export const powerOfTen = (exponent) => `10${[...String(exponent)].map((sign) => SUPERSCRIPTS[sign]).join("")}`;

/** A positive number of any size, to three figures. */
export function threeFigures(value) {
  if (value === 0) return "0";
  if (value >= 0.0095 && value < 9995) return value >= 999.5 ? value.toFixed(0) : value.toPrecision(3);
  const [digits, exponent] = value.toExponential(1).split("e");
  return `${digits}·${powerOfTen(Number(exponent))}`;
}

/** Whole multiples of a round step between `low` and `high`, at most `most` of them. */
export function ticksBetween(low, high, most, steps = [1, 2, 4, 5, 10, 20, 50]) {
  const step = steps.find((size) => Math.floor(high / size) - Math.ceil(low / size) < most) ?? high - low;
  const first = Math.ceil(low / step);
  return times(Math.floor(high / step) - first + 1, (i) => (first + i) * step);
}

/** Heights for names: each as near to its own as it can be, none on another, all inside the drawing. */
function spread(heights) {
  const order = ranked(heights.map((height) => -height));
  const placed = [];
  for (const i of order) placed.push(Math.max(heights[i], (placed.at(-1) ?? TOP) + (placed.length ? LINE : 0)));
  let limit = HEIGHT - BOTTOM;
  for (let k = placed.length - 1; k >= 0; k--) { placed[k] = Math.min(placed[k], limit); limit = placed[k] - LINE; }
  return heights.map((_, i) => placed[order.indexOf(i)]);
}

/**
 * An empty chart. `draw` fills it: `x` and `y` are `{ low, high, ticks, show, name }`; a curve is
 * `{ name, colour, dash, strong, points, dots, mark, left }`, where a point `null` breaks the line, `mark` is a point to
 * ring, and `left` names a curve that ends early where no other one goes on.
 * `here` is a place on the x axis that a line marks, `{ at, name }`.
 */
export function chart() {
  const node = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });

  function draw({ label, x, y, curves: given, here = null }) {
    const curves = given.filter(({ points }) => points.length); // one that begins later has no end yet
    const across = (value) => LEFT + ((value - x.low) / (x.high - x.low)) * (WIDTH - LEFT - RIGHT);
    const down = (value) => HEIGHT - BOTTOM - ((value - y.low) / (y.high - y.low)) * (HEIGHT - TOP - BOTTOM);
    const step = (point, before) => (point === null ? "" : `${before ? "L" : "M"}${across(point[0])} ${down(point[1])}`);
    const path = (points) => points.map((point, i) => step(point, points[i - 1])).join("");
    const grid = y.ticks.map((value) => [stroke("lf-axis", `M${LEFT} ${down(value)}H${WIDTH - RIGHT}`),
      words(y.show(value), LEFT - 6, down(value) + 4, { "text-anchor": "end" })]);
    const foot = x.ticks.map((value) => [stroke("lf-axis", `M${across(value)} ${HEIGHT - BOTTOM}v5`),
      words(x.show(value), across(value), HEIGHT - BOTTOM + 18)]);
    const named = curves.filter(({ name }) => name);
    const ends = named.map(({ points }) => points.at(-1));
    const heights = spread(ends.map(([, value]) => down(value)));
    const lines = curves.map((curve) => svg("g", { style: `color: ${curve.colour}` },
      stroke(curve.strong ? "lf-curve lf-strong" : "lf-curve", path(curve.points), { "stroke-dasharray": curve.dash }),
      (curve.dots ? curve.points : []).map((point) => svg("circle", { cx: across(point[0]), cy: down(point[1]), r: 2.8, fill: "currentColor" })),
      curve.mark ? svg("circle", { class: "lf-spot", cx: across(curve.mark[0]), cy: down(curve.mark[1]), r: 5 }) : []));
    const names = named.map(({ name, colour, strong, left }, i) => words(name, across(ends[i][0]) + (left ? -8 : 7),
      heights[i] + (left ? -4 : 4),
      { class: "lf-halo", "text-anchor": left ? "end" : null, style: `fill: ${colour}`, "font-weight": strong ? 700 : 400 }));
    const order = ranked(curves.map(({ strong }) => (strong ? 0 : 1))); // the strong ones above the others
    node.setAttribute("aria-label", label);
    node.replaceChildren(...grid.flat(), ...foot.flat(),
      stroke("lf-frame", `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}`),
      ...(here === null ? [] : [stroke("lf-here", `M${across(here.at)} ${TOP}V${HEIGHT - BOTTOM}`),
        words(here.name, clamp(across(here.at), LEFT + 40, WIDTH - RIGHT - 40), TOP - 9, { style: "fill: var(--lf-mark)", "font-weight": 700 })]),
      words(x.name, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6),
      ...order.map((i) => lines[i]), ...names);
  }
  return { node, draw };
}
