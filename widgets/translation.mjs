// Cross-attention as alignment (chapter 09): which letters of a date are read while each character of it is written.
// `translation.json` holds weights of the book's own model; tools/models/translation_figure.py writes it.
import { choice, format, frame, heat, html, slider } from "./common.mjs";

const WIDEST = [0.25, 0.5, 1]; // what a full bar may stand for

/** A character for the eye. */
const visible = (letter) => ({ " ": "␣" })[letter] ?? letter;

/** How much each letter of the source is read at a step: by one head, counted from 1, or, with 0, in the mean of all. */
export function readBy(weights, step, head) {
  const rows = (head === 0 ? weights : [weights[head - 1]]).map((steps) => steps[step]);
  return rows[0].map((_, place) => rows.reduce((sum, row) => sum + row[place], 0) / (1000 * rows.length));
}

export async function mount(element) {
  const { heads, dates } = await (await fetch(new URL("translation.json", import.meta.url))).json();
  const start = { date: 0, step: 0, head: 0 };
  let state = { ...start };
  const set = (change) => { state = { ...state, ...change }; render(); };
  const { controls, stage, publish } = frame(element, { label: "Live figure: the letters of a date that are read while it is written anew", reset: () => set(start) });
  const date = choice({ legend: "Date", onchange: (value) => set({ date: Number(value), step: 0 }),
    options: dates.map(({ text, language }, i) => [i, `${text} (${language})`]) });
  const step = slider({ label: "Step", min: 1, max: 2, show: (value) => `${value} of ${[...dates[state.date].written].length}`,
    oninput: (value) => set({ step: value - 1 }) });
  const head = slider({ label: "Head", min: 0, max: heads.length, show: (value) => (value === 0 ? "mean of all" : heads[value - 1]),
    oninput: (value) => set({ head: value }) });
  date.node.classList.add("lf-wide");
  controls.append(date.node, step.node, head.node);

  const written = html("div", { class: "lf-letters lf-wide", role: "group", "aria-label": "What is written; choose a step" });
  const source = html("div", { class: "lf-letters lf-wide", role: "img" });
  const caption = html("caption");
  const scale = html("th", { scope: "col", style: "text-align: left; white-space: normal" });
  const rows = dates[0].next[0].letters.map(() => ({ name: html("th", { scope: "row" }), cell: html("td"),
    bar: html("span", { class: "lf-bar", style: "color: var(--lf-hue-1)" }) }));
  const names = ["next", "probability"].map((words) => html("th", { scope: "col" }, words));
  stage.append(html("p", { class: "lf-title lf-wide" }, "The date that is read, with the weight of each letter in hundredths"), source,
    html("p", { class: "lf-title lf-wide" }, "The date that is written"), written,
    html("div", { class: "lf-wide lf-table" }, html("table", {}, caption, html("thead", {}, html("tr", {}, names, scale)),
      html("tbody", {}, rows.map(({ name, cell, bar }) => html("tr", {}, name, cell, html("td", { class: "lf-bar-cell" }, bar)))))),
    html("p", { class: "lf-note lf-wide" }, "The deeper the colour of a letter, the more it is read at this step; a weight below half a hundredth is not written. The model " +
      "has read what stands before the red character, and is about to write that. ␣ is a space, ■ the stop token."));

  // Made anew for another date only: a button that stays where it is can be pointed at, and keeps the focus.
  let spelt = null;
  function spell({ text, written: characters }) {
    source.replaceChildren(...[...text].map((letter) => html("span", { class: "lf-read" }, html("b", {}, visible(letter)), html("span"))));
    written.replaceChildren(...[...characters].map((letter, i) => html("button", {
      type: "button", class: "lf-button lf-letter", "aria-label": `Step ${i + 1}, ${letter}`,
      onclick: () => set({ step: i }), onpointerenter: (event) => { if (event.pointerType === "mouse") set({ step: i }); },
      onkeydown: (event) => {
        const other = written.children[i + ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0)];
        if (!other || other === event.currentTarget) return;
        event.preventDefault();
        other.focus();
        other.click();
      } }, visible(letter))));
  }

  function render() {
    const now = dates[state.date];
    const letters = [...now.text];
    if (spelt !== now) spell(now);
    spelt = now;
    const weights = readBy(now.weights, state.step, state.head);
    const most = weights.indexOf(Math.max(...weights));
    const { letters: next, probabilities } = now.next[state.step];
    const full = WIDEST.find((limit) => limit >= Math.max(...probabilities)) ?? 1;
    const character = [...now.written][state.step];
    const who = state.head === 0 ? "in the mean of all heads" : `in ${heads[state.head - 1]}`;

    date.value = state.date;
    step.max = [...now.written].length;
    step.value = state.step + 1;
    head.value = state.head;
    weights.forEach((weight, place) => {
      const box = source.children[place];
      heat(box, weight);
      box.lastChild.textContent = weight < 0.005 ? "" : String(Math.round(100 * weight));
      box.classList.toggle("lf-most", place === most);
    });
    source.setAttribute("aria-label", `What is read: ${letters.map((letter, place) => `${visible(letter)} ${Math.round(100 * weights[place])}`).join(", ")} hundredths`);
    [...written.children].forEach((button, i) => {
      button.classList.toggle("lf-gone", i === state.step);
      button.classList.toggle("lf-unseen", i > state.step);
      if (i === state.step) button.setAttribute("aria-current", "step"); else button.removeAttribute("aria-current");
    });
    caption.textContent = `What comes after “${[...now.written].slice(0, state.step).join("")}”`;
    scale.textContent = `a full bar is ${format(full)}`;
    rows.forEach(({ name, cell, bar }, i) => {
      name.textContent = visible(next[i]);
      name.classList.toggle("lf-chosen", next[i] === character);
      cell.textContent = format(probabilities[i], 3);
      bar.style.width = `${Math.min(100, (100 * probabilities[i]) / full)}%`;
    });
    publish({ ...state, text: now.text, written: now.written, weights, next, probabilities, most },
      `Step ${state.step + 1} writes “${visible(character)}” (${format(probabilities[0], 3)}) and reads “${visible(letters[most])}”, letter ${most + 1} of “${now.text}”, most: ${format(weights[most])} ${who}.`);
  }
  render();
}
