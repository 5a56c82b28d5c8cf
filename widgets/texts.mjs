// A reader's own text: fields to type it into, texts to begin with, and what a model reads of it.
import { setting } from "./address.mjs";
import { button, frame, html, textField, visible as plainly } from "./common.mjs";
import { newest } from "./engine/client.mjs";

/** Texts to start from, as buttons with their names. */
export function examples({ label, texts, name = String, onchoose }) {
  const buttons = texts.map((text) => button(name(text), () => onchoose(text), { class: "lf-button lf-small" }));
  return html("div", { class: "lf-examples lf-wide", role: "group", "aria-label": label }, buttons);
}

/**
 * A text as a model is to read it: at most so many letters, their ids, and which of them are `strange` to its vocabulary.
 * If that has no token for strange ones, as a reader's own may not, they are left out, except a `gap` that will be hidden.
 */
export function firstLetters(text, tokenizer, most, gap = "") {
  const isRead = (letter) => tokenizer.unknown !== null || letter === gap || tokenizer.ids.has(letter);
  const all = [...text.normalize("NFC")];
  const typed = all.filter(isRead);
  const letters = typed.slice(0, most);
  const strange = letters.map((letter) => !tokenizer.ids.has(letter));
  const left = all.filter((letter) => !isRead(letter));
  return { text, letters, strange, left, cut: typed.length > most,
    ids: letters.map((letter) => tokenizer.encode(letter)[0]) };
}

/** What of a text the model cannot read, in words. */
export function complaint({ letters, strange, left, cut }) {
  const strangers = [...new Set([...letters.filter((_, n) => strange[n]), ...left])].slice(0, 5).join("");
  return (strangers && ` The vocabulary lacks “${strangers}”: ${left.length ? "that is left out" : "the model reads <other> there"}.`) +
    (cut ? ` Only the first ${letters.length} characters are read.` : "");
}

/**
 * What a model reads of a text: the `ids` of at most `most` tokens, the last ones; `letters`, each token for the eye; and
 * `said`, words for the reader if the text was changed. A model that learned with a start token gets one.
 */
export function lastTokens({ tokenizer, config }, text, most) {
  const start = "<start>" in tokenizer.special ? [tokenizer.special["<start>"]] : [];
  const room = Math.min(most, config.context_len) - start.length;
  const known = tokenizer.encode(text);
  const ids = [...start, ...known.slice(-room)];
  const strangers = tokenizer.strangers(text).length;
  const others = tokenizer.special[tokenizer.unknown] === undefined ? "left out" : "read as □, the token for all others";
  const [part, one] = tokenizer.separator ? ["word", "word"] : ["character", "letter"];
  const said = [
    strangers ? `${strangers === 1 ? `One ${part} is` : `${strangers} ${part}s are`} not in the model's vocabulary and ${others}.` : "",
    known.length > room ? `Of ${known.length} ${one}s the last ${room} are read.` : "",
    ids.length ? "" : `There is nothing to read yet: type a ${one}.`,
  ].filter(Boolean).join(" ");
  return { ids, said, letters: ids.map((id) => letterOf(tokenizer, id)) };
}

/** A token of a vocabulary for the eye: special ones have signs of their own. */
export function letterOf(tokenizer, id) {
  const token = tokenizer.tokens[id];
  if (!Object.hasOwn(tokenizer.special, token)) return plainly(token);
  return token === "<start>" ? "⊢" : token === tokenizer.unknown ? "□" : token;
}

/**
 * A field whose text a model reads: `read(text)` says what of it, and what `ask(ids)` answers goes to `show(answer, read)`.
 * `type(change)` puts other settings, with a text, in place of those of the figure, by `settings(change)`; `again(first)`
 * goes back to the first, whose answer is remembered. As long as a text is not answered, or is empty, `publishes()` says so in
 * place of the numbers that are still seen, and tells that it did.
 */
export function typing({ stage, publish }, { settings, typed, read, ask, show }) {
  let [first, waiting] = [null, null];
  const field = textField({ label: "Your text", tag: "textarea", onchange: (text) => type({ text, ...typed }) });
  const compute = newest(({ ids }) => ask(ids), (answer, text) => {
    if (text.text !== settings().text) return; // meanwhile it was reset
    first ??= [answer, text];
    answered(answer, text);
  }, ({ message }) => {
    waiting = { busy: false, said: message };
    publish({ ...settings(), error: message }, message);
  });
  function type(change) {
    const state = settings(change);
    field.value = state.text;
    const text = { ...read(state.text), text: state.text };
    const isEmpty = text.ids.length === 0;
    stage.classList.toggle("lf-stale", isEmpty);
    // Without a text the figure keeps its height, whatever it says.
    stage.parentElement.style.minHeight = isEmpty ? `${stage.parentElement.offsetHeight}px` : "";
    waiting = { busy: !isEmpty, said: text.said };
    publishes();
    return isEmpty ? null : compute(text);
  }
  function answered(...answer) {
    waiting = null;
    show(...answer);
  }
  function publishes() {
    if (waiting) publish({ ...settings(), busy: waiting.busy }, waiting.said);
    return waiting !== null;
  }
  function again(start) {
    const asked = type(start);
    if (first?.[1].text === start.text) answered(...first);
    return asked;
  }
  return { node: field.node, kind: field.kind, type, again, publishes };
}

/** A token for the eye; ◦ stands for every sign that the vocabulary has not. */
export const visible = (token) => (token === "<other>" ? "◦" : [...token].map(plainly).join(""));

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
    strangers.length ? `It does not know ${some}${strangers.length > 4 ? " and others" : ""}, and ${
      tokenizer.unknown === null ? "leaves that out" : "reads ◦"}.` : "",
  ];
  return { ids: ids.slice(cut), cut, tokens: ids.slice(cut).map((id) => visible(tokenizer.tokens[id])), note: notes.filter(Boolean).join(" ") };
}

const shorten = (text) => (text.length > 26 ? `${text.slice(0, 24).trimEnd()} …` : text);

/** A field for the reader's text and buttons with texts to begin with; `choose(text)` gets what is typed or pressed. */
export function ownText({ label, texts, choose }) {
  const field = textField({ label, onchange: choose });
  return {
    kind: field.kind, nodes: [field.node, examples({ label: "Texts to begin with", texts, name: shorten, onchoose: choose })],
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
export function readingFigure(element, model, { label, texts, start, draw, least = 1, ...asked }) {
  const reading = reader(model, asked, () => figure.set({}));
  function choose(text, again) {
    const answered = reading.read(text, again);
    figure.set(again ? start : { text });
    return answered;
  }
  const field = ownText({ label: "Text", texts, choose: (text) => choose(text) });
  const figure = frame(element, { label, start, reset: () => choose(start.text, true), draw: (settings) => {
    field.value = settings.text;
    figure.stage.classList.toggle("lf-stale", reading.text.ids.length < least);
    draw({ ...settings, ...reading.state });
  } });
  figure.controls.append(...field.nodes);
  /** Have it read the first text, or that of a link; `place` is the kind of the letter that is looked at. */
  async function begin(place) {
    await choose(start.text, true);
    await figure.addressed({ text: field.kind, letter: setting("place", place) }, { go: (wanted) => {
      const answered = reading.read(wanted.text, wanted.text === start.text);
      figure.set(wanted);
      return answered;
    } });
  }
  return { ...figure, reading, begin };
}
