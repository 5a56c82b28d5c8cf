// Byte-pair encoding of a text that the reader types (chapter on tokens): its merges one by one, learned from the text itself or
// from the Python reference; other vocabularies beside it; and what other languages pay. `vocabularies.json` is what
// lab/figures/tokens.py learned from the reference; SmolLM2's comes with the site, where there is one.
import { whole } from "./address.mjs";
import {
  bar, bindTo, button, checkbox, choice, clamp, factList, format, frame, html, playButton, rowHead, slider, stored, table, textField, title,
  total, wide, wideNote,
} from "./common.mjs";
import { rowsOf } from "./engine/arrays.mjs";
import { readSafetensors } from "./engine/safetensors.mjs";
import { applying, bytesOf, idsOf, learn, piecesOf, piecesWithDigits, readable } from "./merges.mjs";

const START = "low lower lowest newer newest wider widest";
const MOST = 200; // merges on the slider at most
const SIZES = [512, 1000, 2048, 4096]; // of vocabularies learned from the reference; the chapter's has 1,000 with its special token
const FIRST = { text: START, view: "merges", source: "text", applied: 4, gpt2: false, kind: "1000" };
const VOCABULARIES = [...["bytes", "characters", "words"].map((kind) => [kind, kind]),
  ...SIZES.map((size) => [String(size), `byte pairs, ${size.toLocaleString("en")}`]), ["smollm2", "SmolLM2"]];

const chip = (words, style = "") => html("span", { class: `lf-chip ${style}` }, words);

/** How the vocabularies cut a text: tokens in pieces, each with its words and whether it is known. */
function cuts({ characters, words, manual, published }, text) {
  const [known, frequent] = [new Set(characters), new Set(words)];
  const named = (name) => (token) => ({ words: readable(bytesOf(token)), unknown: !name.has(token) });
  const { bytes, steps, merges } = manual(text);
  const byteTokens = (ids) => ids.map((id) => ({ id, words: readable(bytes[id]) }));
  const pieces = piecesOf(text);
  const cut = {
    bytes: { size: 256, pieces: pieces.map((piece) => byteTokens(idsOf(piece))) },
    characters: { size: known.size + 1, pieces: pieces.map((piece) => [...piece].map(named(known))) },
    words: { size: frequent.size + 1, pieces: pieces.map((piece) => [named(frequent)(piece)]) },
  };
  for (const size of SIZES) cut[size] = { size, pieces: steps[merges.filter(({ number }) => number <= size - 256).length].map(byteTokens) };
  if (published) cut.smollm2 = published(text);
  for (const each of Object.values(cut)) {
    each.tokens = each.pieces.flat().length;
    each.unknown = each.pieces.flat().filter(({ unknown }) => unknown).length;
  }
  return cut;
}

/** A table of bars; `show(rows)` fills it: of each row the cells, the bar's share of 1, what stands over it, and whether it is chosen. */
function bars(caption, columns) {
  const node = table(caption, [columns[0], "", ...columns.slice(1)], [], { class: "lf-shares" });
  const show = (rows) => node.tBodies[0].replaceChildren(...rows.map(({ cells: [name, ...cells], share, over = "", chosen }) =>
    html("tr", { class: chosen ? "lf-said" : null }, rowHead(name),
      html("td", { class: "lf-bar-cell" }, over, bar(`var(--lf-hue-1); width: ${100 * share}%`)),
      cells.map((cell) => html("td", {}, String(cell))))));
  return { node, show };
}

/** The replay of merges: a list of chips, and of the merges so far. */
function replay() {
  const facts = factList(["bytes", "tokens", "vocabulary", "next merge"]);
  const learned = html("ol", { class: "lf-chips lf-scroll", "aria-label": "Merges so far", tabindex: 0 });
  const node = wide(title("Merges so far, and how often each pair occurred then"), learned);
  function show(model, applied, count, next, word) {
    learned.replaceChildren(...model.merges.slice(0, applied).map(({ pair: [left, right], times, number }) =>
      html("li", {}, `${number}. `, chip(word(left)), " + ", chip(word(right)), ` (${times}×)`)));
    learned.hidden = applied === 0;
    facts.show([...Object.values(count), next]);
  }
  return { list: wide(facts.node), node, show };
}

/** A text as chips, of which those are marked that a merge made, that come next, or that just came. */
function chipsOf(pieces, best, made, word) {
  return pieces.map((piece) => {
    const isNext = piece.map(() => false);
    for (let n = 0; best && n + 1 < piece.length; n++) {
      if (piece[n] === best.pair[0] && piece[n + 1] === best.pair[1]) isNext[n] = isNext[++n] = true;
    }
    return html("li", { class: "lf-word" }, piece.map((token, n) =>
      chip(word(token), `${token > 255 ? "lf-merged" : ""} ${isNext[n] ? "lf-next" : ""} ${token === made ? "lf-born" : ""}`)));
  });
}

/** What the Python reference taught, and lists of countries cut by it; null if it cannot be had. */
const fetchVocabularies = () => stored("vocabularies.json").then(({ merges, languages, ...rest }) => {
  return { ...rest, manual: applying(merges), languages };
}, () => null);

/** A function that cuts a text as SmolLM2 does; null if its merges cannot be had, as in a notebook. */
async function fetchPublished() {
  try {
    const response = await fetch(new URL("../models/smollm2_tokens.safetensors", import.meta.url));
    if (!response.ok) return null;
    const { tensors, metadata } = readSafetensors(await response.arrayBuffer());
    const [apply, lacking] = [applying(rowsOf(tensors.get("merges")), piecesWithDigits), new Set(tensors.get("lacking").data)];
    return (text) => {
      const { bytes, steps } = apply(text);
      const token = (id) => ({ id, words: readable(bytes[id]), unknown: lacking.has(id) });
      return { size: Number(metadata.vocab_size), pieces: steps.at(-1).map((piece) => piece.map(token)) };
    };
  } catch {
    return null;
  }
}

function build({ controls, stage }, { set, step, play: playOn }) {
  const field = textField({ label: "Text", maxlength: 300 });
  const view = choice({ legend: "Show",
    options: [["merges", "one merge after the other"], ["vocabularies", "other vocabularies"], ["languages", "other languages"]] });
  const source = choice({ legend: "Merges learned from", onchange: (value) => set({ source: value, applied: 0 }),
    options: [["text", "this text"], ["reference", "the Python reference"]] });
  const merges = slider({ label: "Merges", min: 0, max: 1, show: (value) => `${value} of ${merges?.input.max ?? 0}`,
    onchange: (applied) => set({ applied }) });
  const [back, forward, play] = [button("Undo one", () => step(-1)), button("Merge one", () => step(1)), playButton(playOn)];
  const gpt2 = checkbox({ label: "spell tokens as GPT-2's files do" });
  const vocabulary = choice({ legend: "Vocabulary", options: VOCABULARIES });
  const bound = bindTo(set, { text: field, view, source, gpt2, kind: vocabulary });
  const replaying = [source.node, merges.node, play.node, back, forward, gpt2.node];
  controls.append(field.node, view.node, ...replaying, vocabulary.node);
  const [log, head, said] = [replay(), title(), wideNote()];
  const chips = html("ul", { class: "lf-chips", "aria-label": "The text as tokens, one item for each piece" });
  const kinds = bars("Tokens of the text in each vocabulary", ["vocabulary", "size", "tokens", "unknown"]);
  const tongues = bars("Tokens of the same list of countries", ["language", "tokens", "per letter", "English = 1"]);
  const cut = wide(head, chips);
  stage.append(log.list, kinds.node, tongues.node, cut, log.node, said);
  const of = { merges: [...replaying, log.list, log.node], vocabularies: [kinds.node], languages: [tongues.node] };
  return { bound, view, source, merges, back, forward, play, vocabulary, log, head, chips, cut, said, kinds, tongues, of };
}

const NOTES = {
  gpt2: "In GPT-2's files each of the 256 bytes has a visible letter of its own: Ġ is the space, and a character outside ASCII shows as the " +
    "letters of its bytes.",
  merges: "␣ is a space; a token that holds only a part of a character is shown by its bytes in hexadecimal. Framed in blue: made by a merge. " +
    "Filled in red: the pair that is merged next; among equally frequent pairs, the one with the smaller token numbers.",
  vocabularies: "Bytes need no text. The others were made of the Python reference: its characters; its 999 most frequent words, numbers " +
    "and signs, with the space before them; its first merges. SmolLM2's is that of the model in the chapter on chatting, and takes each digit alone. " +
    "Filled in red: unknown to a model.",
  languages: "The same five countries, as Unicode's CLDR lists them; all but SmolLM2's were learned from English. " +
    "Press a language to see how its list is cut.",
};

/** The figure: its settings, the merges and the cuts of its text, and how each of its three views shows them. */
class Encoding {
  constructor(element, stored) {
    Object.assign(this, { stored, state: {} });
    const { publish, addressed, ...places } = frame(element, { label: "byte-pair encoding, one merge at a time",
      reset: () => { this.stop(); this.set(FIRST); } });
    this.publish = publish;
    this.parts = build(places, { set: (change) => this.set(change), step: (by) => this.set({ applied: this.state.applied + by }),
      play: () => this.play() });
    this.set(FIRST);
    const { kinds: { text, ...others } } = this.parts.bound;
    addressed({ text, applied: whole(0, MOST), ...(stored && others) }, { now: () => this.state, go: (wanted) => { this.stop(); this.set(wanted); } });
  }

  /** SmolLM2's vocabulary, once, when it is first of use. */
  addPublished() {
    this.asked ??= fetchPublished().then((published) => {
      if (!published) return;
      Object.assign(this, { stored: { ...this.stored, published }, cuttings: null, listed: null });
      this.set({});
    });
  }

  /** Of what vocabulary the cut is shown. */
  get kind() { return this.state.kind in this.cuttings ? this.state.kind : FIRST.kind; }
  get isDone() { return this.state.applied === this.model.merges.length; }
  stop() { this.parts.play.run(false); }

  /** One more merge; at the end, from the beginning. */
  play() {
    this.set({ applied: this.isDone ? 0 : this.state.applied + 1 });
    if (this.state.view !== "merges" || this.isDone) this.stop();
  }

  set(change) {
    const [before, stored] = [this.state, this.stored];
    const state = { ...before, ...change };
    const isNew = state.text !== before.text;
    if (isNew || state.source !== before.source) this.model = state.source === "text" ? learn(state.text, MOST) : stored.manual(state.text);
    if (stored && state.view !== "merges") this.addPublished();
    if (stored && (isNew || !this.cuttings)) this.cuttings = cuts(stored, state.text);
    state.applied = clamp(state.applied, 0, this.model.merges.length);
    this.state = state;
    const { bound, view, source, vocabulary, cut, said, of } = this.parts;
    bound.show(state);
    for (const [name, nodes] of Object.entries(of)) for (const node of nodes) node.hidden = name !== state.view;
    vocabulary.node.hidden = state.view === "merges";
    vocabulary.labels.at(-1).hidden = !stored?.published;
    cut.hidden = state.view === "languages";
    view.node.hidden = !stored;
    source.node.hidden ||= !stored;
    said.textContent = NOTES[state.view === "merges" && state.gpt2 ? "gpt2" : state.view];
    const [numbers, sentence] = this[state.view]();
    this.publish({ ...state, ...numbers }, state.text === "" && state.view !== "languages" ? "Type a text." : sentence);
  }

  merges() {
    const { state: { text, applied, gpt2, source }, model, parts: { merges, back, forward, log, head, chips } } = this;
    const [pieces, best, last] = [model.steps[applied], model.merges[applied] ?? model.next, model.merges[applied - 1]];
    const word = (token) => (gpt2 ? model.spelled[token] : readable(model.bytes[token]));
    merges.max = model.merges.length;
    merges.value = applied;
    // A button that has the focus must keep it, so it is switched off for assistive technology and in looks only.
    back.setAttribute("aria-disabled", applied === 0);
    forward.setAttribute("aria-disabled", this.isDone);
    head.textContent = "The text as tokens";
    chips.replaceChildren(...chipsOf(pieces, best, last && 255 + last.number, word));
    const count = { bytes: bytesOf(text).length, tokens: pieces.flat().length, vocabulary: 256 + (last?.number ?? 0) };
    const none = source === "text" ? "none: every piece is one token" : "none: no other fits";
    const next = best ? `${word(best.pair[0])} + ${word(best.pair[1])} (${best.times}×)` : none;
    log.show(model, applied, count, next, word);
    const names = (pair) => pair.map((token) => model.spelled[token]);
    const shown = model.merges.slice(0, applied);
    return [{ ...count, merges: shown.map(({ pair }) => names(pair)), counts: shown.map(({ times }) => times), ids: pieces.flat(),
      spelled: names(pieces.flat()), next: best ? { pair: names(best.pair), count: best.times } : null },
    `After ${applied} merges: ${count.tokens} tokens for ${count.bytes} bytes. Next merge: ${next}.`];
  }

  vocabularies() {
    const { cuttings, kind, parts: { kinds, head, chips } } = this;
    const most = Math.max(1, ...Object.values(cuttings).map(({ tokens }) => tokens));
    kinds.show(VOCABULARIES.filter(([key]) => key in cuttings).map(([key, name]) => {
      const { size, tokens, unknown } = cuttings[key];
      return { cells: [name.split(",")[0], size.toLocaleString("en"), tokens, unknown], share: tokens / most, chosen: key === kind };
    }));
    const { pieces, tokens, unknown } = cuttings[kind];
    const name = Object.fromEntries(VOCABULARIES)[kind];
    head.textContent = `The text as ${name}`;
    chips.replaceChildren(...pieces.map((piece) => html("li", { class: "lf-word" },
      piece.map((token) => chip(token.words, token.unknown ? "lf-next" : token.id > 255 ? "lf-merged" : "")))));
    const counts = Object.fromEntries(Object.entries(cuttings).map(([key, { pieces: _, ...numbers }]) => [key, numbers]));
    return [{ cut: counts, ids: pieces.flat().map(({ id }) => id) }, `As ${name}: ${tokens} tokens, ${unknown} of them unknown.`];
  }

  languages() {
    this.listed ??= this.stored.languages.map((language) => ({ ...language, cut: cuts(this.stored, language.text) }));
    const rows = this.listed.map(({ cut, ...language }) => ({ ...language, letters: [...language.text].length, ...cut[this.kind] }));
    const dearest = rows.reduce((a, b) => (b.tokens > a.tokens ? b : a));
    const choose = (name, text) => button(name, () => this.set({ text, view: "vocabularies" }));
    this.parts.tongues.show(rows.map(({ code, name, text, letters, tokens }) => ({
      share: tokens / dearest.tokens, over: html("span", { lang: code, dir: "auto" }, text),
      cells: [choose(name, text), tokens, format(tokens / letters), format(tokens / rows[0].tokens, 1)] })));
    const unknown = total(rows.map((row) => row.unknown));
    return [{ languages: rows.map(({ code, tokens, unknown, letters }) => ({ code, tokens, unknown, letters })) },
      `${dearest.name} pays most: ${dearest.tokens} tokens, where English pays ${rows[0].tokens}.` +
      `${unknown ? ` Unknown, in all languages: ${unknown}.` : ""}`];
  }
}

export async function mount(element) { new Encoding(element, await fetchVocabularies()); }
