// What the figures of the decoder share (chapters 06 and 07): a field for the reader's own text, with texts to begin
// with, and what a model of a limited context reads of it.
import { frame, textField, visible as plainly } from "./common.mjs";
import { newest } from "./engine/client.mjs";
import { examples } from "./letters.mjs";

/** A token for the eye; ◦ stands for every sign that the vocabulary has not. */
export const visible = (token) => (token === "<other>" ? "◦" : plainly(token));

/** How many tokens of a text longer than the context are left out: a quarter of it at once, not one with each step. */
function leftOut(length, contextLen) {
  const step = Math.ceil(contextLen / 4);
  return step * Math.ceil(Math.max(0, length - contextLen) / step);
}

/** What a model reads of `ids`, which `text` is a part of: the ids, how many are cut off, the tokens, and a note. */
export function readOf(ids, text, { tokenizer, config: { context_len: contextLen } }) {
  const cut = leftOut(ids.length, contextLen);
  const strangers = tokenizer.strangers(text);
  const some = strangers.slice(0, 4).map((letter) => `“${letter}”`).join(", ");
  const notes = [
    cut ? `The model sees ${contextLen} tokens at most and reads the last ${ids.length - cut} of ${ids.length}.` : "",
    strangers.length ? `It does not know ${some}${strangers.length > 4 ? " and others" : ""}, and ${tokenizer.unknown === null ? "leaves that out" : "reads ◦"}.` : "",
  ];
  return { ids: ids.slice(cut), cut, tokens: ids.slice(cut).map((id) => visible(tokenizer.tokens[id])), note: notes.filter(Boolean).join(" ") };
}

const shorten = (text) => (text.length > 26 ? `${text.slice(0, 24).trimEnd()} …` : text);

/** A field for the reader's text and buttons with texts to begin with; `choose(text)` gets what is typed or pressed. */
export function ownText({ label, texts, choose }) {
  const field = textField({ label, onchange: choose });
  return {
    nodes: [field.node, examples({ label: "Texts to begin with", texts, name: shorten, onchoose: choose })],
    set value(text) { field.value = text; },
  };
}

/**
 * What a model makes of a text, as the text changes: `read(text)` has it answered by a method of the model, of which
 * `digest(answer, ids)` makes what a figure shows; if it is `again` the first text, its answer is remembered.
 */
function reader(model, { method, digest }, changed) {
  let [text, known, problem, first] = [null, null, "", null];
  const isCurrent = (ids) => ids?.join() === text.ids.join();
  const think = newest((ids) => model.ask(method, ids), (answer, ids) => {
    const found = { ids, ...digest(answer, ids) };
    first ??= found;
    if (!isCurrent(ids)) return; // a text was left before its answer came
    [known, problem] = [found, ""];
    changed();
  }, (error) => { problem = error.message; changed(); });
  return {
    read(words, again = false) {
      text = readOf(model.tokenizer.encode(words), words, model);
      if (again && first) [known, problem] = [first, ""];
      else if (text.ids.length) return think(text.ids);
      return null;
    },
    /** The text as it is read, and what the model says of it, or null as long as it has not. */
    get text() { return text; },
    get known() { return isCurrent(known?.ids) ? known : null; },
    get problem() { return problem; },
    /** What every figure that reads tells of it. */
    get state() { return { read: text.ids, cut: text.cut, isKnown: Boolean(this.known), busy: !this.known && !problem && text.ids.length > 0 }; },
  };
}

/** A figure in which a model reads a text, and `draw(settings)` shows what it says; `begin()` has it read the first. */
export function readingFigure(element, model, { label, texts, start, draw, ...asked }) {
  const reading = reader(model, asked, () => figure.set({}));
  function choose(text, again) {
    const answered = reading.read(text, again);
    figure.set(again ? start : { text });
    return answered;
  }
  const field = ownText({ label: "Text", texts, choose: (text) => choose(text) });
  const figure = frame(element, { label, start, reset: () => choose(start.text, true), draw: (settings) => {
    field.value = settings.text;
    draw({ ...settings, ...reading.state });
  } });
  figure.controls.append(...field.nodes);
  return { ...figure, reading, begin: () => choose(start.text, true) };
}
