// What the key–value caches of a model hold, as pictures (chapter on generation): a column for each token, a row for each number.
import { factList, format, html, mean, note, times, title, total, wide } from "./common.mjs";
import { row } from "./engine/arrays.mjs";

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

/** The pictures of a block's keys and values; `show` paints them, of which the first `known` were there before. */
function blockView(i, room) {
  const label = html("p");
  const parts = times(2, () => { // keys and values
    const canvas = html("canvas", { width: room, height: 1 });
    const fresh = html("span", { class: "lf-fresh" });
    return { columns: [], canvas, fresh, node: html("div", { class: "lf-slots" }, canvas, fresh) };
  });
  const node = html("div", { class: "lf-layer" }, title(`Block ${i + 1}`), parts.map((part) => part.node), label);
  const bytes = () => 4 * total(parts.map(({ columns }) => total(columns.map(({ length }) => length))));
  function show(known, held, ink) {
    for (const { canvas, fresh, columns } of parts) {
      paint(canvas, columns, ink);
      fresh.style.left = `${(100 * known) / room}%`;
      fresh.style.width = `${(100 * (held - known)) / room}%`;
      fresh.hidden = known === held;
    }
    label.textContent = `${held} keys and values, ${kilobytes(bytes())}`;
  }
  return { node, parts, bytes, show };
}

/**
 * The caches of all blocks. It hears every answer of the model (`hear`), says of how many rows it knows the numbers
 * (`seen`), and paints them when it is looked at (`show`).
 */
export function cacheView({ context_len: contextLen, stack: { num_layers: numLayers } }) {
  const blocks = times(numLayers, (i) => blockView(i, contextLen));
  let [ids, known] = [[], 0]; // whose columns are here, and how many the model had when it was last asked
  let [read, without] = [0, 0]; // rows that were read since the beginning, and without a cache
  const facts = factList(["held", "read anew", "rows read so far", "without a cache"]);
  const node = wide(facts.node, html("div", { class: "lf-caches" }, blocks.map((block) => block.node)),
    note(`Above, the keys of a block, below, its values: a column for each token, with room for ${contextLen}; purple is positive, olive negative, ` +
      "and the deeper, the farther from zero. Framed in red: what the last change of the text made the model read. All else was there."));
  const common = (text) => { let n = 0; while (n < Math.min(text.length, ids.length) && text[n] === ids[n]) n++; return n; };

  function hear(text, { known: had, first, blocks: held }) {
    held.forEach(({ keys, values }, i) => [keys, values].forEach((made, j) => {
      const part = blocks[i].parts[j];
      part.columns = [...part.columns.slice(0, first), ...times(made.rows, (n) => row(made, n))];
    }));
    [ids, known, read, without] = [text, had, read + text.length - had, without + text.length];
  }
  function forget() {
    [ids, known, read, without] = [[], 0, 0, 0];
    for (const { parts } of blocks) for (const part of parts) part.columns = [];
  }
  const bytes = () => blocks.map((block) => block.bytes());
  function show() {
    const ink = { plus: colour(node, "--lf-plus"), minus: colour(node, "--lf-minus") };
    for (const block of blocks) block.show(known, ids.length, ink);
    facts.show([`${ids.length} of ${contextLen} tokens, ${kilobytes(total(bytes()))}`, ids.length - known, read, without]);
  }
  const result = () => ({ held: ids.length, known, read, without, bytes: bytes() });
  return { node, show, hear, forget, seen: common, result };
}
