// What the key–value caches of a model hold, as pictures (chapter 07): a column for each token, a row for each number.
import { format, html } from "./common.mjs";
import { mean } from "./texts.mjs";

const BRIGHT = 2.5; // root mean squares at which a number has the full colour

/** The colour of a variable of the style sheet, as three numbers. */
function colour(node, name) {
  const [, ...parts] = /#(..)(..)(..)/.exec(getComputedStyle(node).getPropertyValue(name)) ?? [0, "77", "77", "77"];
  return parts.map((part) => parseInt(part, 16));
}

/** Paint columns of numbers, by their sign and size, on a canvas that has a place for each. */
function paint(canvas, columns, ink) {
  const height = columns[0]?.length ?? 1;
  canvas.height = height;
  const image = canvas.getContext("2d").createImageData(canvas.width, height);
  const size = Math.sqrt(mean(columns.map((column) => column.reduce((sum, value) => sum + value * value, 0) / height))) || 1;
  columns.forEach((column, n) => column.forEach((value, i) => {
    const at = 4 * (i * canvas.width + n);
    image.data.set(value < 0 ? ink.minus : ink.plus, at);
    image.data[at + 3] = 255 * Math.min(1, Math.abs(value) / (BRIGHT * size));
  }));
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Kilobytes for the eye. */
const kilobytes = (bytes) => `${format(bytes / 1000, 1)} kB`;

/**
 * The caches of all blocks. It hears every answer of the model (`hear`), says of how many rows it knows the numbers
 * (`seen`), and paints them when it is looked at (`show`).
 */
export function cacheView({ context_len: contextLen, stack: { num_layers: numLayers } }) {
  const blocks = Array.from({ length: numLayers }, (_, i) => {
    const part = (name) => {
      const canvas = html("canvas", { width: contextLen, height: 1 });
      const fresh = html("span", { class: "lf-fresh" });
      return { name, columns: [], canvas, fresh, node: html("div", { class: "lf-slots" }, canvas, fresh) };
    };
    const [keys, values, label] = [part("keys"), part("values"), html("p", {})];
    const title = html("p", { class: "lf-title" }, `Block ${i + 1}`);
    return { label, parts: [keys, values], node: html("div", { class: "lf-layer" }, title, keys.node, values.node, label) };
  });
  let [ids, known] = [[], 0]; // whose columns are here, and how many the model had when it was last asked
  let [read, without] = [0, 0]; // rows that were read since the beginning, and without a cache
  const facts = ["held", "read anew", "rows read so far", "without a cache"].map((name) => [name, html("dd")]);
  const node = html("div", { class: "lf-wide" }, html("dl", { class: "lf-facts" }, facts.map(([name, value]) => html("div", {}, html("dt", {}, name), value))),
    html("div", { class: "lf-caches" }, blocks.map((block) => block.node)),
    html("p", { class: "lf-note" }, `Above, the keys of a block, below, its values: a column for each token, with room for ${contextLen}; blue is positive, orange negative, ` +
      "and the deeper, the farther from zero. Framed in red: what the last change of the text made the model read. All else was there."));
  const common = (text) => { let n = 0; while (n < Math.min(text.length, ids.length) && text[n] === ids[n]) n++; return n; };

  function hear(text, { known: had, first, blocks: held }) {
    held.forEach(({ keys, values }, i) => [keys, values].forEach(({ rows, columns: width, data }, j) => {
      const part = blocks[i].parts[j];
      part.columns = [...part.columns.slice(0, first), ...Array.from({ length: rows }, (_, n) => data.subarray(n * width, (n + 1) * width))];
    }));
    [ids, known, read, without] = [text, had, read + text.length - had, without + text.length];
  }
  function forget() {
    [ids, known, read, without] = [[], 0, 0, 0];
    for (const { parts } of blocks) for (const part of parts) part.columns = [];
  }
  const bytes = () => blocks.map(({ parts }) => 4 * parts.reduce((sum, { columns }) => sum + columns.length * (columns[0]?.length ?? 0), 0));
  function show() {
    const ink = { plus: colour(node, "--lf-plus"), minus: colour(node, "--lf-minus") };
    const sizes = bytes();
    blocks.forEach(({ parts, label }, i) => {
      for (const { canvas, fresh, columns } of parts) {
        paint(canvas, columns, ink);
        fresh.style.left = `${(100 * known) / contextLen}%`;
        fresh.style.width = `${(100 * (ids.length - known)) / contextLen}%`;
        fresh.hidden = known === ids.length;
      }
      label.textContent = `${ids.length} keys and values, ${kilobytes(sizes[i])}`;
    });
    const all = sizes.reduce((sum, size) => sum + size, 0);
    const said = [`${ids.length} of ${contextLen} tokens, ${kilobytes(all)}`, `${ids.length - known}`, `${read}`, `${without}`];
    facts.forEach(([, value], i) => { value.textContent = said[i]; });
  }
  const result = () => ({ held: ids.length, known, read, without, bytes: bytes() });
  return { node, show, hear, forget, seen: common, result };
}
