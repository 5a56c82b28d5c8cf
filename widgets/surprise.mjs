// How much each letter of the reader's own text surprises the book's own decoder (chapter 06), and what it had expected.
import { format, frame, html, slider, softmax } from "./common.mjs";
import { start } from "./engine/start.mjs";
import { rowOf } from "./letters.mjs";
import { mean, ownText, reader, visible } from "./texts.mjs";

const LABEL = "Live figure: a language model's surprise at each letter of your own text";
// Of the kind that the model has learned from; plain English about something else; the same words in another order; and
// a passage that comes twice.
const TEXTS = [
  "If the object is a sequence, the method returns the number of its items.",
  "The cat sat on the wall and looked at the moon over the old town.",
  "Town moon the wall over cat the looked old on and the sat the at.",
  "Zofia paid 734 zloty. Zofia paid 734 zloty. Zofia paid 734 zloty.",
];
const START = { text: TEXTS[0], place: 8 };
const SHOWN = 5; // letters that were expected
const WIDEST = 6; // nats at which a letter has the full colour

/** What the model expected after each letter, and how much it was surprised by what came. */
function judge(logits, ids) {
  const expected = ids.slice(1).map((_, n) => softmax(Array.from(rowOf(logits, n))));
  return { expected, surprises: expected.map((probabilities, n) => -Math.log(probabilities[ids[n + 1]])) };
}

/** A table of the letters that were expected at a place. */
function expectations() {
  const lines = Array.from({ length: SHOWN }, () => {
    const [head, number, bar] = [html("th", { scope: "row" }), html("td"), html("span", { class: "lf-bar", style: "color: var(--lf-hue-1)" })];
    return { head, number, bar, row: html("tr", {}, head, number, html("td", { class: "lf-bar-cell" }, bar)) };
  });
  const caption = html("caption");
  const heads = ["letter", "probability", ""].map((words) => (words ? html("th", { scope: "col" }, words) : html("td")));
  const node = html("div", { class: "lf-wide lf-table" }, html("table", {}, caption, html("thead", {}, html("tr", {}, heads)),
    html("tbody", {}, lines.map(({ row }) => row))));
  function show(before, probabilities, came, tokens) {
    const likeliest = probabilities.map((_, token) => token).sort((a, b) => probabilities[b] - probabilities[a]).slice(0, SHOWN);
    caption.textContent = `After “${before}” the model expected`;
    lines.forEach(({ row, head, number, bar }, i) => {
      const token = likeliest[i];
      row.hidden = token === undefined;
      if (row.hidden) return;
      head.textContent = visible(tokens[token]);
      head.classList.toggle("lf-chosen", token === came);
      number.textContent = format(probabilities[token], 3);
      bar.style.width = `${100 * probabilities[token]}%`;
    });
    return likeliest;
  }
  return { node, show };
}

/** The letters of a text, coloured by surprise; a press chooses one. */
function colouredLetters(choose) {
  const node = html("div", { class: "lf-letters lf-text lf-wide", "aria-hidden": "true" });
  function show(letters, surprises, place) {
    node.replaceChildren(...letters.map((letter, i) => {
      const tile = html("span", { class: `lf-read${i === place ? " lf-most" : ""}`, title: i ? `${format(surprises[i - 1])} nats` : null,
        onclick: () => i > 0 && choose(i) }, html("b", {}, letter));
      tile.style.setProperty("--share", `${i === 0 ? 0 : Math.round(100 * Math.min(1, surprises[i - 1] / WIDEST))}%`);
      return tile;
    }));
  }
  return { node, show };
}

const NOTE = "The deeper the colour of a letter, the more it surprised the model, which had read what stands before it. The first letter is given. In the table: " +
  "what the model found likeliest at the framed place; what did come is bold and red. ␣ is a space, ◦ any sign that the model does not know.";

export async function mount(element, given = null) {
  const model = await start(element, { label: LABEL, given });
  const { tokens } = model.tokenizer;
  const reading = reader(model, "extend", judge, () => render());
  let state = { ...START };
  function set(change) {
    state = { ...state, ...change };
    const asked = "text" in change ? reading.read(state.text) : null;
    render();
    return asked;
  }
  const reset = () => { state = { ...START }; reading.again(state.text); render(); };
  const { controls, stage, publish } = frame(element, { label: LABEL, reset });
  const field = ownText({ label: "Text", texts: TEXTS, choose: (text) => set({ text }) });
  const place = slider({ label: "Letter", min: 1, max: 2, show: (value) => `${value + 1} of ${reading.text.ids.length}`,
    oninput: (value) => set({ place: value }) });
  const [coloured, table] = [colouredLetters((n) => set({ place: n })), expectations()];
  controls.append(...field.nodes, place.node);
  stage.append(coloured.node, table.node, html("p", { class: "lf-note lf-wide" }, NOTE));

  function render() {
    const { text: { ids, tokens: letters, note }, known, problem } = reading;
    const now = { ...state, ...reading.state };
    field.value = state.text;
    if (ids.length < 2) return publish(now, "Type at least two letters: the model is asked what follows the first.");
    if (!known) return publish(now, problem || "The model reads.");
    const { surprises, expected } = known;
    const n = Math.min(state.place, ids.length - 1);
    const came = ids[n];
    place.max = ids.length - 1;
    place.value = n;
    coloured.show(letters, surprises, n);
    const likeliest = table.show(letters.slice(Math.max(0, n - 16), n).join(""), expected[n - 1], came, tokens);
    publish({ ...now, place: n, came, surprises, mean: mean(surprises), likeliest, probabilities: expected[n - 1] },
      [`“${visible(tokens[came])}” came: a surprise of ${format(surprises[n - 1])} nats. The mean over this text is ${format(mean(surprises))}.`, note]
        .filter(Boolean).join(" "));
  }
  await set(START);
}
