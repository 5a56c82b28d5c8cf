// A masked language model's guess at a hidden letter (chapter 08), from both sides and from the left alone.
// `masking.json` holds probabilities of the book's own model; tools/models/masking_figure.py writes it.
import { choice, format, frame, html, slider } from "./common.mjs";

const SHOWN = 7; // letters with a row of their own, besides the right one
const MASK = "□";
const WIDEST = [0.25, 0.5, 1]; // what a full bar may stand for

const total = (numbers) => numbers.reduce((sum, value) => sum + value, 0);

/** A letter for the eye. */
const visible = (letter) => ({ " ": "␣" })[letter] ?? letter;

/** Which of `letters` get a row: the likeliest of either distribution and the right one, ordered as seen from both sides. */
export function rowsOf({ letters, both, left }, right) {
  const most = both.map((value, i) => Math.max(value, left[i]));
  const order = most.map((_, i) => i).sort((a, b) => most[b] - most[a]);
  const chosen = new Set([...order.slice(0, SHOWN), [...letters].indexOf(right)]);
  return [...chosen].sort((a, b) => both[b] - both[a]);
}

export async function mount(element) {
  const { names } = await (await fetch(new URL("masking.json", import.meta.url))).json();
  const start = { name: 0, place: 0 };
  let state = { ...start };
  const set = (change) => { state = { ...state, ...change }; render(); };
  const { controls, stage, publish } = frame(element, { label: "Live figure: a hidden letter, guessed from both sides and from the left alone", reset: () => set(start) });
  const name = choice({ legend: "Name", onchange: (value) => set({ name: value, place: 0 }),
    options: names.map(({ text, language }, i) => [i, `${text} (${language})`]) });
  const place = slider({ label: "Hidden letter", min: 1, max: 2, show: (value) => `${value} of ${[...names[state.name].text].length}`,
    oninput: (value) => set({ place: value - 1 }) });
  name.node.classList.add("lf-wide");
  controls.append(name.node, place.node);

  const letters = html("div", { class: "lf-letters lf-wide", role: "group", "aria-label": "The letters; choose the one to hide" });
  const caption = html("caption");
  const scale = html("th", { scope: "col", style: "text-align: left; white-space: normal" });
  const rows = Array.from({ length: SHOWN + 2 }, () => ({
    head: html("th", { scope: "row" }), cells: [html("td"), html("td")],
    bars: ["lf-bar lf-twin", "lf-bar lf-twin lf-removed"].map((kind) => html("span", { class: kind, style: kind.includes("removed") ? null : "color: var(--lf-hue-1)" })),
  }));
  const lines = rows.map(({ head, cells, bars }) => html("tr", {}, head, cells, html("td", { class: "lf-bar-cell" }, bars)));
  const head = ["letter", "both sides", "left"].map((words) => html("th", { scope: "col" }, words));
  stage.append(letters, html("div", { class: "lf-wide lf-table" }, html("table", {}, caption, html("thead", {}, html("tr", {}, head, scale)), html("tbody", {}, lines))),
    html("p", { class: "lf-note lf-wide" }, "Blue bars, “both sides”: the probability of each letter when the model sees all the others. Hatched bars, “left”: " +
      "when it sees only those to the left of the hidden one, and those with a dashed edge are hidden, too. The right letter is bold and red. ␣ is a space."));

  /** One button for each letter; the hidden one shows the mask. */
  function spell(text, right) {
    const buttons = [...text].map((letter, i) => html("button", {
      type: "button", class: `lf-button lf-letter${i === state.place ? " lf-gone" : ""}${i > state.place ? " lf-unseen" : ""}`,
      "aria-label": i === state.place ? `Letter ${i + 1} is hidden` : `Hide letter ${i + 1}, ${letter}`,
      onclick: () => { set({ place: i }); letters.children[i].focus(); },
    }, i === state.place ? MASK : visible(letter)));
    letters.replaceChildren(...buttons);
    letters.dataset.right = right;
  }

  function render() {
    const { text, language, places } = names[state.name];
    const guess = places[state.place];
    const right = [...text][state.place];
    const chosen = rowsOf(guess, right);
    const shown = chosen.map((i) => [...guess.letters][i]);
    const kinds = ["both", "left"].map((kind) => {
      const numbers = chosen.map((i) => guess[kind][i]);
      return [...numbers, Math.max(0, 1 - total(numbers))];
    });
    const full = WIDEST.find((limit) => limit >= Math.max(...kinds.flat())) ?? 1;

    name.value = state.name;
    place.max = [...text].length;
    place.value = state.place + 1;
    spell(text, right);
    caption.textContent = `Which letter is hidden in “${[...text].map((letter, i) => (i === state.place ? MASK : letter)).join("")}”?`;
    scale.textContent = `a full bar is ${format(full)}`;
    rows.forEach(({ head, cells, bars }, i) => {
      lines[i].hidden = i > shown.length;
      if (i > shown.length) return;
      head.textContent = i < shown.length ? visible(shown[i]) : "others";
      head.classList.toggle("lf-chosen", shown[i] === right);
      kinds.forEach((numbers, j) => {
        cells[j].textContent = format(numbers[i], 3);
        bars[j].style.width = `${Math.min(100, (100 * numbers[i]) / full)}%`;
      });
    });
    const at = shown.indexOf(right);
    publish({ ...state, text, language, right, shown, both: kinds[0], left: kinds[1] },
      `Letter ${state.place + 1} of “${text}” is “${visible(right)}”: it has ${format(kinds[0][at], 3)} seen from both sides, ${format(kinds[1][at], 3)} from the left alone.`);
  }
  render();
}
