// What the figures of the decoder share (chapters 06 and 07): a field for the reader's own text, with texts to begin
// with, and what a model of a limited context reads of it.
import { newest } from "./engine/client.mjs";
import { examples, textField, visible as plainly } from "./letters.mjs";

/** A token for the eye; ◦ stands for every sign that the vocabulary has not. */
export const visible = (token) => (token === "<other>" ? "◦" : plainly(token));
export const mean = (numbers) => numbers.reduce((sum, value) => sum + value, 0) / numbers.length;

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
  const field = textField({ label, oninput: choose });
  return {
    nodes: [field.node, examples({ label: "Texts to begin with", texts, name: shorten, onchoose: choose })],
    set value(text) { if (field.input.value !== text) field.input.value = text; },
  };
}

/**
 * What a model makes of a text, as the text changes: `read(text)` has it answered by a method of the model, of which
 * `digest(answer, ids)` makes what a figure shows; `again(text)` is back at the first text, whose answer is remembered.
 */
export function reader(model, method, digest, changed) {
  const now = { text: null, known: null, problem: "" };
  let first = null;
  const isCurrent = (ids) => ids?.join() === now.text.ids.join();
  const think = newest((ids) => model.ask(method, ids), (answer, ids) => {
    const known = { ids, ...digest(answer, ids) };
    first ??= known;
    if (!isCurrent(ids)) return; // a text was left before its answer came
    Object.assign(now, { known, problem: "" });
    changed();
  }, (error) => { now.problem = error.message; changed(); });
  return {
    read(text) {
      now.text = readOf(model.tokenizer.encode(text), text, model);
      return now.text.ids.length ? think(now.text.ids) : null;
    },
    again(text) {
      if (!first) return this.read(text);
      Object.assign(now, { text: readOf(model.tokenizer.encode(text), text, model), known: first, problem: "" });
      return null;
    },
    /** The text as it is read, and what the model says of it, or null as long as it has not. */
    get text() { return now.text; },
    get known() { return isCurrent(now.known?.ids) ? now.known : null; },
    get problem() { return now.problem; },
    /** What every figure that reads tells of it. */
    get state() { return { read: now.text.ids, cut: now.text.cut, isKnown: Boolean(this.known), busy: !this.known && !now.problem && now.text.ids.length > 0 }; },
  };
}
