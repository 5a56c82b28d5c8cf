// What the figures of the decoder share (chapters 06 and 07): a field for the reader's own text, with texts to begin
// with, and what a model of a limited context reads of it.
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
    strangers.length ? `It does not know ${some}${strangers.length > 4 ? " and others" : ""}, and reads ◦.` : "",
  ];
  return { ids: ids.slice(cut), cut, tokens: ids.slice(cut).map((id) => visible(tokenizer.tokens[id])), note: notes.filter(Boolean).join(" ") };
}

/** A field for the reader's text and buttons with texts to begin with; `choose(text)` gets what is typed or pressed. */
export function ownText({ label, texts, choose }) {
  const field = textField({ label, oninput: choose });
  return {
    nodes: [field.node, examples({ label: "Texts to begin with", texts, onchoose: choose })],
    set value(text) { if (field.input.value !== text) field.input.value = text; },
  };
}
