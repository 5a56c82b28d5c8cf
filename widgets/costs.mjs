// What a layer of attention costs, over the length: operations, what it keeps for its gradients, and the cache (chapter on efficiency).
import { oneOf, setting } from "./address.mjs";
import { chart, powerOfTen, threeFigures } from "./chart.mjs";
import { choice, frame, html, note, panel, rowHead, slider, table } from "./common.mjs";

const WINDOWS = [64, 128, 256, 512, 1024, 2048, 4096];
const LENGTHS = [...WINDOWS, 8192, 16384, 32768, 65536];
const WIDTH = 64; // of a query, a key and a value
const HEADS = [1, 2, 4, 8, 16, 32];
const FORMS = { direct: "all at once", blockwise: "by blocks", window: "window", linear: "linear" };
const SHOWN = { operations: "operations", kept: "bytes kept", cache: "cache, bytes" };

/** How many pairs of a query and a key are within a causal window. */
const pairsWithin = (length, window) => {
  const wide = Math.min(length, window);
  return (wide * (wide + 1)) / 2 + (length - wide) * wide;
};

/** Operations of the products, bytes kept for the gradients and bytes of keys and values, of one layer in float32. */
function costs({ length, heads, kvHeads, window }) {
  const perPair = 2 * heads * 2 * WIDTH;
  const rows = 4 * heads * length * WIDTH;
  const linearKept = 3 * rows + 4 * heads * length;
  const cache = (tokens) => 4 * kvHeads * 2 * WIDTH * tokens;
  return {
    direct: { operations: perPair * length ** 2, kept: 4 * 2 * heads * length ** 2 + 3 * rows, cache: cache(length) },
    blockwise: { operations: perPair * pairsWithin(length, length), kept: 4 * rows + 4 * heads * length, cache: cache(length) },
    window: { operations: perPair * pairsWithin(length, window), kept: 4 * rows + 4 * heads * length, cache: cache(Math.min(length, window)) },
    linear: { operations: 2 * heads * 2 * length * WIDTH * (WIDTH + 1), kept: linearKept, cache: 4 * kvHeads * WIDTH * (WIDTH + 1) },
  };
}

export function mount(element) {
  const start = { length: 4096, heads: 8, kvHeads: 8, window: 512, shown: "operations" };
  const { stage, publish, set, bind, addressed } = frame(element, { label: "what a layer of attention costs", start, draw });
  const places = (label, values) => slider({ label, values, show: (number) => number.toLocaleString("en") });
  bind({ length: places("Tokens", LENGTHS), heads: places("Heads", HEADS), kvHeads: places("KV heads", HEADS), window: places("Window", WINDOWS),
    shown: choice({ legend: "Chart of", options: Object.entries(SHOWN) }) });

  const columns = Object.keys(SHOWN);
  const cells = Object.keys(FORMS).map(() => columns.map(() => html("td")));
  const numbers = table("", ["", ...columns], Object.values(FORMS).map((name, i) => [rowHead(name), cells[i]]));
  const drawing = chart();
  stage.append(html("div", { class: "lf-panel lf-table", style: "flex-basis: 21rem" }, numbers,
    note("One layer, queries, keys and values 64 wide, causal order, float32. “All at once” computes hidden " +
      "scores, too; “by blocks” is counted as if it left out every one of them. Linear: one state for each token in turn; what " +
      "it keeps, and the caches of window and linear, are the least that would do; ours keep more.")),
    panel(drawing.node));

  function draw(state) {
    if (state.kvHeads > state.heads) return set({ kvHeads: state.heads });
    const found = costs(state);
    numbers.caption.textContent = `One layer at ${state.length.toLocaleString("en")} tokens (kept and cache: bytes)`;
    Object.values(found).forEach((each, i) => columns.forEach((what, j) => { cells[i][j].textContent = threeFigures(each[what]); }));
    const over = LENGTHS.map((length) => costs({ ...state, length }));
    const all = over.flatMap((each) => Object.keys(FORMS).map((form) => Math.log10(each[form][state.shown])));
    const [low, high] = [Math.floor(Math.min(...all)), Math.ceil(Math.max(...all))];
    const whole = Array.from({ length: high - low + 1 }, (_, i) => low + i);
    drawing.draw({ label: `${SHOWN[state.shown]} over the number of tokens, for four forms of attention`,
      x: { low: 6, high: 16, ticks: [6, 8, 10, 12, 14, 16], name: "tokens",
        show: (power) => (power < 10 ? String(2 ** power) : `${2 ** (power - 10)}k`) },
      y: { low, high, ticks: whole.filter((power) => (power - low) % 2 === 0), show: powerOfTen, name: SHOWN[state.shown] },
      here: { at: Math.log2(state.length), name: "" },
      curves: Object.entries(FORMS).map(([form, name], i) => ({ name, colour: `var(--lf-hue-${i + 1})`, strong: form === "direct",
        points: over.map((each, place) => [Math.log2(LENGTHS[place]), Math.log10(each[form][state.shown])]) })) });
    const ratio = (form) => threeFigures(found.direct[state.shown] / found[form][state.shown]);
    return publish({ ...state, costs: found }, `At ${state.length.toLocaleString("en")} tokens, ${SHOWN[state.shown]}: all at once takes ` +
      `${ratio("blockwise")} times as much as by blocks, ${ratio("window")} times as much as with a window, ` +
      `${ratio("linear")} times as much as linear attention.`);
  }
  set(start);
  addressed({ kvHeads: null, "kv-heads": setting("kvHeads", oneOf(HEADS)) });
}
