// How much each letter of a text surprised a language model (chapter 06), and what it had expected in its place.
// `surprise.json` holds numbers of the book's own model; tools/models/surprise_figure.py writes it.
import { choice, format, frame, html, slider } from "./common.mjs";

const WIDEST = 6; // nats at which a letter has the full colour

/** A letter for the eye. */
const visible = (letter) => ({ " ": "␣", "\n": "↵" })[letter] ?? letter;
const mean = (numbers) => numbers.reduce((sum, value) => sum + value, 0) / numbers.length;

export async function mount(element) {
  const { texts } = await (await fetch(new URL("surprise.json", import.meta.url))).json();
  const start = { text: 0, place: 8 };
  let state = { ...start };
  const set = (change) => { state = { ...state, ...change }; render(); };
  const { controls, stage, publish } = frame(element, { label: "Live figure: a language model's surprise at each letter of a text", reset: () => set(start) });
  const which = choice({ legend: "Text", onchange: (value) => set({ text: Number(value), place: start.place }),
    options: texts.map(({ text }, i) => [i, `“${text.split(" ").slice(0, 3).join(" ")} …”`]) });
  const place = slider({ label: "Letter", min: 1, max: 2, show: (value) => `${value + 1} of ${texts[state.text].text.length}`,
    oninput: (value) => set({ place: value }) });
  which.node.classList.add("lf-wide");
  controls.append(which.node, place.node);

  const letters = html("div", { class: "lf-letters lf-text lf-wide", "aria-hidden": "true" });
  const caption = html("caption");
  const lines = texts[0].expected[0].map(() => {
    const [head, number, bar] = [html("th", { scope: "row" }), html("td"), html("span", { class: "lf-bar", style: "color: var(--lf-hue-1)" })];
    return { head, number, bar, row: html("tr", {}, head, number, html("td", { class: "lf-bar-cell" }, bar)) };
  });
  const heads = ["letter", "probability", ""].map((words) => (words ? html("th", { scope: "col" }, words) : html("td")));
  stage.append(letters, html("div", { class: "lf-wide lf-table" }, html("table", {}, caption, html("thead", {}, html("tr", {}, heads)),
    html("tbody", {}, lines.map(({ row }) => row)))),
    html("p", { class: "lf-note lf-wide" }, "The deeper the colour of a letter, the more it surprised the model, which had read what stands before it. The first letter is " +
      "given. In the table: what the model found likeliest at the framed place; what did come is bold and red. ␣ is a space."));

  function render() {
    const { text, surprises, expected } = texts[state.text];
    const came = text[state.place];
    which.value = state.text;
    place.max = text.length - 1;
    place.value = state.place;
    letters.replaceChildren(...[...text].map((letter, i) => {
      const node = html("span", { class: `lf-read${i === state.place ? " lf-most" : ""}`, onclick: () => i > 0 && set({ place: i }) }, html("b", {}, visible(letter)));
      node.style.setProperty("--share", `${i === 0 ? 0 : Math.round(100 * Math.min(1, surprises[i - 1] / WIDEST))}%`);
      return node;
    }));
    caption.textContent = `After “${text.slice(Math.max(0, state.place - 16), state.place)}” the model expected`;
    lines.forEach(({ head, number, bar }, i) => {
      const [letter, probability] = expected[state.place - 1][i];
      head.textContent = visible(letter);
      head.classList.toggle("lf-chosen", letter === came);
      number.textContent = format(probability, 3);
      bar.style.width = `${100 * probability}%`;
    });
    publish({ ...state, words: text, came, surprise: surprises[state.place - 1], mean: mean(surprises), expected: expected[state.place - 1] },
      `“${visible(came)}” came: a surprise of ${format(surprises[state.place - 1], 2)} nats. The mean over this text is ${format(mean(surprises), 2)}.`);
  }
  render();
}
