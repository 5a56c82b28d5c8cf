// How much each letter of the reader's own text surprises the book's own decoder (chapter on the decoder), and what it had expected.
import { place as placeKind } from "./address.mjs";
import { format, html, mean, ranked, slider, softmax, tint, note, wideNote } from "./common.mjs";
import { rowsOf } from "./engine/arrays.mjs";
import { start } from "./engine/start.mjs";
import { letterBars } from "./letters.mjs";
import { readingFigure, visible } from "./texts.mjs";

const LABEL = "a language model's surprise at each letter of your own text";
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
  const expected = rowsOf(logits).slice(0, -1).map((row) => softmax(row));
  return { expected, surprises: expected.map((probabilities, n) => -Math.log(probabilities[ids[n + 1]])) };
}

/** The letters of a text, coloured by surprise; a press chooses one. */
function colouredLetters(choose) {
  const node = html("div", { class: "lf-letters lf-text lf-wide", "aria-hidden": "true" });
  function show(letters, surprises, place) {
    node.replaceChildren(...letters.map((letter, i) => {
      const tile = html("span", { class: `lf-read${i === place ? " lf-most" : ""}`, title: i ? `${format(surprises[i - 1])} nats` : null,
        onclick: () => i > 0 && choose(i) }, html("b", {}, letter));
      tint(tile, i && surprises[i - 1] / WIDEST);
      return tile;
    }));
  }
  return { node, show };
}

export async function mount(element, given = null) {
  const model = await start(element, { label: LABEL, given });
  const { tokens } = model.tokenizer;
  const { controls, stage, publish, set, reading, begin } = readingFigure(element, model,
    { label: LABEL, texts: TEXTS, start: START, method: "extend", least: 2, digest: judge, draw });
  const place = slider({ label: "Letter", min: 1, max: 2, show: (value) => `${value + 1} of ${reading.text.ids.length}`,
    onchange: (value) => set({ place: value }) });
  const coloured = colouredLetters((n) => set({ place: n }));
  const table = letterBars({ count: SHOWN, heads: ["letter", "probability", ""] });
  controls.append(place.node);
  stage.append(wideNote("The deeper the colour of a letter, the more it surprised the model, which had read what stands before it. " +
    "␣ is a space, ◦ any sign that it does not know."), coloured.node,
  html("div", { class: "lf-wide lf-table" }, table.node, note("Bold and red: what did come at the framed place.")));

  function draw(now) {
    const { text: { ids, tokens: letters, note }, known, problem } = reading;
    if (ids.length < 2) return publish(now, "Type at least two letters: the model is asked what follows the first.");
    if (!known) return publish(now, problem || "The model reads.");
    const { surprises, expected } = known;
    const n = Math.min(now.place, ids.length - 1);
    const [came, probabilities] = [ids[n], expected[n - 1]];
    place.max = ids.length - 1;
    place.value = n;
    coloured.show(letters, surprises, n);
    const likeliest = ranked(probabilities).slice(0, SHOWN);
    table.show(`After “${letters.slice(Math.max(0, n - 16), n).join("")}” the model expected`,
      likeliest.map((token) => [visible(tokens[token]), probabilities[token]]), likeliest.indexOf(came));
    return publish({ ...now, place: n, came, surprises, mean: mean(surprises), likeliest, probabilities },
      `“${visible(tokens[came])}” came: a surprise of ${format(surprises[n - 1])} nats. ` +
      `The mean over this text is ${format(mean(surprises))}. ${note}`.trim());
  }
  await begin(placeKind(model.config.context_len, 2));
}
