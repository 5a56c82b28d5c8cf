// What a vision transformer looks at (chapter 10): the class token's attention over the patches of a digit, and what the
// model says if a patch is painted blank. `patches.json` holds what the book's own model made of each digit, whole and
// with each patch hidden; tools/models/patches_figure.py writes it.
import { choice, format, frame, heat, html, matrixTable } from "./common.mjs";

const THOUSANDTHS = 1000; // of attention weights
const PARTS = 100000; // of probabilities
const INK = 16; // the darkest pixel
const ROLLOUT = "rollout";
const MEAN = "mean";

const mean = (rows) => rows[0].map((_, j) => rows.reduce((sum, row) => sum + row[j], 0) / rows.length);
const largest = (numbers) => numbers.indexOf(Math.max(...numbers));

/** The class token's row, itself first: of one head of a block, of the mean of its heads, or by roll-out. */
export function classRow(image, variant, layer, head) {
  if (layer === ROLLOUT) return image.rollout[variant].map((value) => value / THOUSANDTHS);
  const heads = image.weights[variant][layer];
  return (head === MEAN ? mean(heads) : heads[head]).map((value) => value / THOUSANDTHS);
}

export async function mount(element) {
  const { grid: [down, right], images } = await (await fetch(new URL("patches.json", import.meta.url))).json();
  const [layers, heads] = [images[0].weights[0].length, images[0].weights[0][0].length];
  const [tall, wide] = [images[0].pixels.length / down, images[0].pixels[0].length / right];
  const answers = images.map(({ probabilities }) => largest(probabilities[0]));
  const places = Array.from({ length: down * right }, (_, n) => [Math.floor(n / right), n % right]);
  const name = (n) => `row ${places[n][0] + 1}, column ${places[n][1] + 1}`;
  const start = { image: Math.max(0, images.findIndex(({ label }, i) => label === answers[i])), layer: ROLLOUT, head: MEAN, hidden: null };

  let state = { ...start };
  const set = (change) => { state = { ...state, ...change }; render(); };
  const { controls, stage, publish } = frame(element, { label: "Live figure: where the class token looks, patch by patch", reset: () => set(start) });
  const image = choice({ legend: "Digit", onchange: (value) => set({ image: value, hidden: null }),
    options: images.map(({ label }, i) => [i, answers[i] === label ? `a ${label}` : `a ${label}, misread`]) });
  const layer = choice({ legend: "Attention", onchange: (value) => set({ layer: value }),
    options: [...Array.from({ length: layers }, (_, l) => [l, `block ${l + 1}`]), [ROLLOUT, "roll-out"]] });
  const head = choice({ legend: "Head", onchange: (value) => set({ head: value }),
    options: [[MEAN, "mean"], ...Array.from({ length: heads }, (_, h) => [h, `head ${h + 1}`])] });
  controls.append(...[image, layer, head].map(({ node }) => { node.classList.add("lf-wide"); return node; }));

  const buttons = places.map((_, n) => {
    const pixels = Array.from({ length: tall * wide }, () => html("span", { class: "lf-pixel" }));
    const wash = html("span", { class: "lf-wash" });
    const button = html("button", { type: "button", class: "lf-patch", "aria-pressed": "false",
      onclick: () => set({ hidden: state.hidden === n ? null : n }) }, pixels, wash);
    button.style.gridTemplateColumns = `repeat(${wide}, 1fr)`;
    return { button, pixels, wash };
  });
  const picture = html("div", { class: "lf-picture", role: "group", "aria-label": "The digit, cut into patches" }, buttons.map(({ button }) => button));
  picture.style.gridTemplateColumns = `repeat(${right}, 1fr)`;
  const title = html("p", { class: "lf-title" }, "The digit: click a patch to hide it");
  const map = matrixTable({ caption: "", rows: Array.from({ length: down }, (_, i) => `row ${i + 1}`),
    columns: Array.from({ length: right }, (_, j) => String(j + 1)), digits: 2 });
  const kept = html("p", { class: "lf-note" });
  const rows = images[0].probabilities[0].map((_, digit) => ({
    head: html("th", { scope: "row" }, String(digit)), cells: [html("td"), html("td")],
    bar: html("span", { class: "lf-bar", style: "color: var(--lf-hue-1)" }),
  }));
  const table = html("table", {}, html("caption", {}, "What the model says"),
    html("thead", {}, html("tr", {}, ["digit", "whole", "now"].map((word) => html("th", { scope: "col" }, word)), html("td"))),
    html("tbody", {}, rows.map((row) => html("tr", {}, row.head, row.cells, html("td", { class: "lf-bar-cell" }, row.bar)))));
  stage.append(html("div", { class: "lf-panel" }, title, picture, html("div", { class: "lf-table" }, map.table), kept),
    html("div", { class: "lf-panel" }, table),
    html("p", { class: "lf-note lf-wide" }, "Orange over the digit: the class token's attention, deepest where the table's number is largest. " +
      "“whole”: the probability with all patches. “now”: with the patch that you hide painted blank, as paper is; the attention is then that of " +
      "the image without it. Red: what the model says now."));

  function render() {
    const shown = images[state.image];
    const layerNow = state.layer === ROLLOUT ? ROLLOUT : Number(state.layer);
    const headNow = state.head === MEAN ? MEAN : Number(state.head);
    const variant = state.hidden === null ? 0 : state.hidden + 1;
    const [self, ...patches] = classRow(shown, variant, layerNow, headNow);
    const [whole, now] = [0, variant].map((which) => shown.probabilities[which].map((value) => value / PARTS));
    const most = Math.max(...patches);
    const answer = largest(now);

    [image.value, layer.value, head.value] = [state.image, state.layer, state.head];
    head.node.hidden = layerNow === ROLLOUT;
    buttons.forEach(({ button, pixels, wash }, n) => {
      const isHidden = state.hidden === n;
      const [row, column] = places[n];
      pixels.forEach((pixel, k) => {
        const ink = isHidden ? 0 : shown.pixels[row * tall + Math.floor(k / wide)][column * wide + (k % wide)] / INK;
        pixel.style.setProperty("--share", `${Math.round(100 * ink)}%`);
      });
      wash.style.opacity = most === 0 ? 0 : (0.6 * patches[n]) / most;
      button.setAttribute("aria-pressed", isHidden);
      button.setAttribute("aria-label", `Patch in ${name(n)}, attention ${format(patches[n])}${isHidden ? ", hidden" : ""}`);
    });
    const where = layerNow === ROLLOUT ? "roll-out through all blocks" : `block ${layerNow + 1}, ${headNow === MEAN ? "mean of the heads" : `head ${headNow + 1}`}`;
    map.table.caption.textContent = `Attention of the class token: ${where}`;
    map.update(Array.from({ length: down }, (_, i) => patches.slice(i * right, (i + 1) * right)));
    map.cells.flat().forEach((cell, n) => {
      heat(cell, -patches[n], most || 1); // in the colour of the wash
      cell.classList.toggle("lf-chosen", state.hidden === n);
    });
    kept.textContent = `It keeps ${format(self)} for itself; all ${1 + down * right} numbers sum to 1, but for rounding.`;
    rows.forEach(({ head: digit, cells, bar }, i) => {
      [whole, now].forEach((numbers, j) => { cells[j].textContent = format(numbers[i], 3); });
      digit.classList.toggle("lf-chosen", i === answer);
      bar.hidden = now[i] === 0;
      bar.style.width = `${100 * now[i]}%`;
    });
    const said = state.hidden === null ? "" : ` with the patch in ${name(state.hidden)} hidden; whole, it is ${format(whole[answers[state.image]], 3)} for ${answers[state.image]}`;
    publish({ ...state, image: Number(state.image), layer: layerNow, head: headNow, number: shown.number, label: shown.label, variant, self, patches, whole, now, answer },
      `A ${shown.label}: the model says ${answer}, with probability ${format(now[answer], 3)}${said}. It looks most at ${name(largest(patches))}, by ${where}.`);
  }
  render();
}
