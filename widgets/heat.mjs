// Heat maps of whole arrays, a row per token: purple above zero, as weights are, olive below, on canvases that are stretched to their place.
import { clamp, html, onArrows } from "./common.mjs";

const hexadecimal = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));

/** The figure's colours of now, for zero and for the ends above and below it. */
export function palette(element) {
  const style = getComputedStyle(element);
  return ["--lf-paper", "--lf-weights", "--lf-norm"].map((name) => hexadecimal(style.getPropertyValue(name).trim()));
}

/** The value at which colours are full: three times the size of a typical entry, so that a few large ones hide nothing. */
export const limitOf = (matrices) => {
  const [sum, count] = matrices.reduce(([s, c], { data }) => [data.reduce((t, value) => t + value * value, s), c + data.length], [0, 0]);
  return 3 * Math.sqrt(sum / count) || 1;
};

/** Paint a matrix, a pixel for each number. */
export function paint(canvas, { rows, columns, data }, limit, [zero, above, below]) {
  if (canvas.width !== columns || canvas.height !== rows) [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let i = 0; i < data.length; i++) {
    const share = Math.min(1, Math.abs(data[i]) / limit);
    const end = data[i] < 0 ? below : above;
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = zero[c] + share * (end[c] - zero[c]);
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/** Which of so many names are shown, so that none touches another: every one, every second …, and always the chosen one. */
export function shownOf(count, pitch, room, chosen) {
  const every = Math.max(1, Math.ceil(room / pitch));
  return (n) => n === chosen || (n % every === 0 && Math.abs(n - chosen) >= every);
}

/** Tokens along a side, as many as there is room for; longer ones than a letter stand upright at the top. */
function axis(node, tokens, pitch, chosen, side) {
  const cut = tokens.map((token) => (token.length > 9 ? `${token.slice(0, 8)}…` : token));
  const longest = Math.max(1, ...cut.map(({ length }) => length));
  const isLeft = side === "left";
  const isUpright = isLeft || longest > 1;
  const isShown = shownOf(cut.length, pitch, isUpright ? 12 : 9, chosen);
  node.style[isLeft ? "width" : "height"] = `${isUpright ? 7 * longest + 7 : 17}px`;
  node.replaceChildren(...cut.flatMap((token, n) => {
    if (!isShown(n)) return [];
    const mark = html("span", { class: `${n === chosen ? "lf-chosen" : ""}${!isLeft && longest > 1 ? " lf-upright" : ""}` }, token);
    mark.style[isLeft ? "right" : "bottom"] = "3px";
    mark.style[isLeft ? "top" : "left"] = `${(100 * (n + 0.5)) / cut.length}%`;
    return mark;
  }));
}

/**
 * A large heat map with letters at its sides, and one number of it chosen. `onpick(n, j)` is called for the number under
 * a pressed pointer or reached by arrow keys; `onhover(n, j)` for the one under a mouse, and without numbers when it leaves.
 */
export function heatMap({ label, onpick, onhover = () => {} }) {
  const [top, left] = ["top", "left"].map((side) => html("div", { class: `lf-map-${side}`, "aria-hidden": "true" }));
  const [canvas, line, spot] = [html("canvas"), html("div", { class: "lf-map-line" }), html("div", { class: "lf-map-spot" })];
  const plane = html("div", { class: "lf-map-plane", tabindex: 0, role: "group", "aria-label": label }, canvas, line, spot);
  const node = html("div", { class: "lf-map" }, top, left, plane);
  let [shape, place] = [[1, 1], [0, 0]];
  const under = (event) => {
    const box = plane.getBoundingClientRect();
    const at = (share, size) => clamp(Math.floor(share * size), 0, size - 1);
    return [at((event.clientY - box.top) / box.height, shape[0]), at((event.clientX - box.left) / box.width, shape[1])];
  };
  plane.addEventListener("pointerdown", (event) => onpick(...under(event)));
  plane.addEventListener("pointermove", (event) => (event.buttons ? onpick : onhover)(...under(event)));
  plane.addEventListener("pointerleave", () => onhover());
  onArrows(plane, (down, right) => {
    const [n, j] = [place[0] + down, place[1] + right];
    if (n >= 0 && n < shape[0] && j >= 0 && j < shape[1]) onpick(n, j);
  });

  /** Show a matrix with a letter for each row, and for each column if there are `columns`. */
  function draw({ matrix, limit, rows, columns = [], chosen: [n, j], pitch = 20, tallest = 320 }) {
    [shape, place] = [[matrix.rows, matrix.columns], [n, j]];
    const height = Math.min(tallest, pitch * matrix.rows);
    plane.style.height = `${height}px`;
    paint(canvas, matrix, limit, palette(node));
    axis(left, rows, height / matrix.rows, n, "left");
    axis(top, columns, (plane.clientWidth || 250) / matrix.columns, j, "top");
    top.hidden = columns.length === 0;
    const across = (k, size) => `${(100 * k) / size}%`;
    Object.assign(line.style, { top: across(n, shape[0]), height: across(1, shape[0]) });
    Object.assign(spot.style, { top: across(n, shape[0]), height: across(1, shape[0]), left: across(j, shape[1]), width: across(1, shape[1]) });
  }
  return { node, plane, draw };
}
