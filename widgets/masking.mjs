// Hidden letters (chapter on the encoder): what the stored encoder, run in the page, believes that they are, from both sides and
// from the left alone. From the left means that every letter after the hole is hidden, too.
import { list, place } from "./address.mjs";
import {
  checkbox, format, frame, html, largest, mean, note, ranked, rowHead, slider, softmax, table, textField, times, total, visible, wideNote,
} from "./common.mjs";
import { row as rowOf } from "./engine/arrays.mjs";
import { newest, remembering } from "./engine/client.mjs";
import { start } from "./engine/start.mjs";
import { curves, fullBar, headName, letterRow, readBy } from "./letters.mjs";
import { complaint, examples, firstLetters } from "./texts.mjs";

const [SHOWN, EACH] = [8, 3]; // letters with a row of their own, and how many of them are the likeliest of either view
const MOST = 64; // letters that a link can name
const PAUSE = 250; // so long, in milliseconds, the reader must rest before every letter is hidden by itself
const NAMES = ["Tschechisch", "arabiska", "Mikronezja", "Thailandia", "North Korea", "Afri_a"];
const OPENING = { text: NAMES[0], holes: [5], asked: 5, several: false, head: 0 };
const LABEL = "hidden letters of a name, guessed from both sides and from the left alone";
const quoted = (token) => `“${visible(token)}”`;

/** A name as the model is to read it; `blank` where the reader typed a gap. */
function lineOf(text, tokenizer, most) {
  const line = firstLetters(text, tokenizer, most, "_");
  const blank = line.letters.map((letter, n) => letter === "_" && line.strange[n]);
  return { ...line, blank, strange: line.strange.map((isStrange, n) => isStrange && !blank[n]), known: [] };
}

/** Which letter is asked about, and which are hidden. */
function questionOf(line, { holes, asked: wish }) {
  const asked = Math.min(wish, line.letters.length - 1);
  const hidden = line.letters.map((_, n) => n).filter((n) => n === asked || line.blank[n] || holes.includes(n));
  return { line, asked, hidden, key: [line.text, asked, hidden].join("\n") };
}

/** Which tokens get a row: the right one, the likeliest of either distribution, then of both; ordered as seen from both sides. */
function rowsOf(both, left, right) {
  const [ofBoth, ofLeft, ofEither] = [both, left, both.map((value, i) => Math.max(value, left[i]))].map(ranked);
  const chosen = new Set([...(right === null ? [] : [right]), ...ofBoth.slice(0, EACH), ...ofLeft.slice(0, EACH), ...ofEither]);
  return [...chosen].slice(0, SHOWN).sort((a, b) => both[b] - both[a]);
}

/** Bars back to back: leftwards what each letter has from the left, rightwards what it has from both sides. */
function beliefs() {
  const rows = times(SHOWN + 1, () => ({
    head: rowHead(), numbers: [html("td"), html("td")],
    bars: ["lf-bar lf-removed", "lf-bar lf-blue"].map((kind) => html("span", { class: kind })),
  }));
  const lines = rows.map(({ head, numbers, bars }) => html("tr", {}, html("td", { class: "lf-bar-cell lf-mirrored" }, bars[0]),
    numbers[0], head, numbers[1], html("td", { class: "lf-bar-cell" }, bars[1])));
  const top = (words, kind) => html("th", { scope: "colgroup", colspan: 2, class: kind }, words);
  const node = table("", [top("left alone", "lf-mirrored"), "letter", top("both sides", "lf-bar-cell")], lines, { class: "lf-beliefs" });

  /** `shown` are texts of tokens, `kinds` their probabilities from the left and from both sides; all others come last. */
  function update(shown, right, kinds) {
    const full = fullBar(kinds.flat());
    node.caption.textContent = `What stands in the hole? A full bar is ${format(full)}`;
    rows.forEach(({ head, numbers, bars }, i) => {
      lines[i].hidden = i > shown.length;
      if (i > shown.length) return;
      head.textContent = i < shown.length ? visible(shown[i]) : "others";
      head.classList.toggle("lf-chosen", i === right);
      kinds.forEach((values, j) => {
        numbers[j].textContent = format(values[i], 3);
        bars[j].style.width = `${Math.min(100, (100 * values[i]) / full)}%`;
      });
    });
  }
  return { node: html("div", { class: "lf-wide lf-table" }, node), update };
}

/** The model as the figure asks it: what it believes of one hole, and where it looks from there. */
function asker({ ask, tokenizer, config }) {
  const mask = tokenizer.special["<mask>"];
  const hide = (ids, isHidden) => ids.map((id, n) => (isHidden(n) ? mask : id));
  const likely = (logits, n) => softmax(Array.from(rowOf(logits, n)));
  const beforeHole = ({ ids }, hidden, n) => hide(ids, (m) => hidden.includes(m) || m >= n);
  const aroundHole = ({ ids }, hidden) => hide(ids, (m) => hidden.includes(m));
  async function look(question) {
    const { line, hidden, asked } = question;
    const left = likely(await ask("call", beforeHole(line, hidden, asked)), asked);
    const seen = await ask("intermediates", "call", aroundHole(line, hidden));
    const places = Object.keys(seen).filter((place) => place.endsWith("attention.weights")); // block by block
    return { ...question, left, both: likely(seen.returned, asked),
      heads: places.flatMap((place) => seen[place].map((head) => rowOf(head, asked + Number(config.use_class_token)))) };
  }
  /** What the right letter at place `n` has from the left and from both sides, if it is hidden; nothing if there is none. */
  async function surprise(line, n) {
    if (line.blank[n] || line.strange[n]) return null;
    const hidden = [n, ...line.letters.keys()].filter((m) => m === n || line.blank[m]);
    const found = [await ask("call", beforeHole(line, hidden, n)), await ask("call", aroundHole(line, hidden))];
    return found.map((logits) => likely(logits, n)[line.ids[n]]);
  }
  return { look, surprise };
}

/** The letters as they stand in their row: hidden or not, how much each is read, and how likely each was by itself. */
function tilesOf({ line, hidden, asked }, read) {
  return line.letters.map((letter, n) => {
    const isHidden = hidden.includes(n);
    const sign = line.strange[n] ? "<other>" : visible(letter);
    const kinds = { "lf-gone": n === asked, "lf-hole": isHidden, "lf-unseen": n > asked };
    const name = n === asked ? `Letter ${n + 1} is hidden` : isHidden ? `Ask at letter ${n + 1}, which is hidden` : `Hide letter ${n + 1}, ${sign}`;
    return { name, text: isHidden ? "□" : sign, kind: Object.keys(kinds).filter((kind) => kinds[kind]).join(" "), share: read[n],
      bars: line.known[n] ?? [] };
  });
}

/** What the figure says of the hole that is asked about. */
function sentenceOf({ line, asked, both, left }, { tokens }) {
  const guess = (numbers) => `${quoted(tokens[largest(numbers)])} (${format(Math.max(...numbers), 3)})`;
  const has = (numbers) => format(numbers[line.ids[asked]], 3);
  const letter = `Letter ${asked + 1} is ${quoted(line.letters[asked])}`;
  const of = line.blank[asked] ? "" : line.strange[asked] ? `${letter}, which the model cannot write. `
    : `${letter}: it has ${has(both)} seen from both sides, ${has(left)} from the left alone. `;
  return `${of}From both sides the model would write ${guess(both)}, from the left ${guess(left)}.${complaint(line)}`;
}

/** What hiding each letter by itself has shown, in the mean. */
function lesson({ known, letters }) {
  if (known.length < letters.length) return "Hiding each letter by itself …";
  const asked = known.filter(Boolean);
  if (!asked.length) return "";
  const [left, both] = [0, 1].map((kind) => mean(asked.map((values) => values[kind])));
  const better = asked.filter((values) => values[1] > values[0]).length;
  return `Each letter hidden by itself: the right one has ${format(both)} in the mean from both sides, ${format(left)} from the left alone; ` +
    `it is likelier from both at ${better} of ${asked.length}.`;
}

/** The parts of the figure: a field and examples, the letters with curves over them, and the beliefs. */
function build({ controls, stage }, { heads, names, edit, tell, choose, follows }) {
  const field = textField({ label: "Name", onchange: (text) => edit(text) });
  const several = checkbox({ label: "several holes", onchange: (value) => tell({ several: value }) });
  const head = slider({ label: "Head", min: 0, max: heads.length - 1, show: (value) => heads[value], onchange: (value) => tell({ head: value }) });
  const row = letterRow({ label: "The letters; choose the one to hide", onchoose: choose, follows });
  const token = letterRow({ label: "The class token" });
  const box = html("div", { class: "lf-wide lf-arched" }, token.node, row.node);
  const [said, sides] = [wideNote(), beliefs()];
  const offers = examples({ label: "Names to start from", texts: names, onchoose: (text) => edit(text, OPENING.asked) });
  field.node.append(note("Type _ for a letter that you do not know."));
  controls.append(field.node, ...(names.length ? [offers] : []), several.node, head.node);
  stage.append(wideNote("Above each letter: how much it is read from the hole □, in hundredths; “class” is the class token. Dashed: hidden " +
    "from the left, too."), box,
  wideNote("Below: how likely the right letter is if it alone is hidden, hatched from the left alone, blue from both sides."), said, sides.node);
  return { field, several, head, row, token, box, said, sides, arcs: curves(box) };
}

/** Draw an answer of the model: the letters, the curves from the hole, the beliefs. Returns what a test may want to see. */
function draw({ row, token, sides, arcs }, answer, { head, hasClass, tokens }) {
  const { line, asked, both, left, heads } = answer;
  const read = readBy(heads, head);
  const first = Number(hasClass);
  token.update(hasClass ? [{ text: "class", share: read[0] }] : []);
  row.update(tilesOf(answer, read.slice(first)), asked);
  const tiles = [...token.node.children, ...row.node.children];
  const curves = read.map((share, m) => ({ from: tiles[asked + first], to: tiles[m], share }));
  arcs.draw(curves.filter(({ share, to, from }) => share >= 0.02 && to !== from));
  const right = line.blank[asked] || line.strange[asked] ? null : line.ids[asked];
  const chosen = rowsOf(both, left, right);
  const kinds = [left, both].map((numbers) => { const some = chosen.map((i) => numbers[i]); return [...some, Math.max(0, 1 - total(some))]; });
  sides.update(chosen.map((i) => tokens[i]), chosen.indexOf(right), kinds);
  return { read, shown: chosen.map((i) => tokens[i]), both: kinds[1], left: kinds[0], right: right === null ? null : tokens[right] };
}

/** The figure: its settings, the hole that is asked about, and what is done with them. */
class Hiding {
  constructor(element, model) {
    const { tokenizer, config: { context_len: most, use_class_token: hasClass, stack: { num_layers: layers, num_heads: numHeads } } } = model;
    const { look, surprise } = asker(model);
    const heads = times(layers * numHeads + 1, (head) => headName(head, numHeads));
    const opening = tokenizer.strangers(OPENING.text).length ? { ...OPENING, text: "" } : OPENING;
    Object.assign(this, { element, tokenizer, hasClass, surprise, state: opening, said: "", lines: new Map(),
      lineOf: (text) => lineOf(text, tokenizer, most) });
    const figure = frame(element, { label: LABEL, reset: () => this.tell(opening) });
    const names = NAMES.filter((name) => !tokenizer.strangers(name.replace("_", "")).length); // a reader's vocabulary may lack them
    Object.assign(this, { publish: figure.publish, addressed: figure.addressed });
    this.parts = build(figure, { heads, names, edit: (text, hole) => this.edit(text, hole), choose: (n, withOthers) => this.choose(n, withOthers),
      tell: (change) => this.tell(change), follows: () => !this.state.several });
    this.ask = remembering({ work: look, show: (answer) => this.show(answer), fail: ({ message }) => this.say({ error: message }, message),
      wait: () => this.publish({ ...this.state, busy: true }, this.said) });
    // Should the model stop, the reader's next question says so.
    this.survey = newest((line) => this.hideEach(line), () => {}, () => {});
  }

  /** Have links set it. */
  follow() {
    const { field, several, head } = this.parts;
    return this.addressed({ text: field.kind, holes: list(place(MOST), MOST), asked: place(MOST), several: several.kind, head: head.kind },
      { now: () => this.state, go: ({ several: many, ...wanted }) => { this.state.several = many; return this.tell(wanted); } });
  }

  /** A text as it is read, which is found out once. */
  read(text) { return this.lines.get(text) ?? this.lines.set(text, this.lineOf(text)).get(text); }
  say(found, sentence) { this.publish({ ...this.state, ...found }, this.said = sentence); }

  /** Another text, with its own hole; or else the holes stay where they are, unless there is a gap to ask about. */
  edit(text, hole = null) {
    const gap = this.read(text).blank.indexOf(true);
    const asked = gap < 0 ? hole : gap;
    this.tell(asked === null ? { text } : { text, asked, holes: [asked] });
  }

  /** A letter is pressed: it is hidden, alone or with others; that which is asked about can be shown again. */
  choose(n, withOthers) {
    const { hidden, asked, line } = this.question;
    const others = this.state.several || withOthers ? hidden.filter((m) => m !== n) : [];
    const isShownAgain = n === asked && others.length > 0 && !line.blank[n];
    this.tell(isShownAgain ? { holes: others, asked: others[0] } : { holes: [...others, n], asked: n });
  }

  tell(change) {
    const state = this.state = { ...this.state, ...change };
    const { element, parts: { box, sides, field, several, head }, lines } = this;
    if (change.several === false) state.holes = [state.asked];
    if (lines.size > 200) lines.clear();
    const question = this.question = questionOf(this.read(state.text), state);
    if (change.text !== undefined) delete element.dataset.survey;
    [field.value, several.value, head.value] = [state.text, state.several, state.head];
    const isEmpty = question.line.letters.length === 0;
    for (const node of [box, sides.node]) node.classList.toggle("lf-stale", isEmpty);
    return isEmpty ? this.say({}, "There is no letter to hide yet: type a name.") : this.ask(question);
  }

  show(answer) {
    const { line, asked, hidden } = answer;
    const { read: weights, ...found } = draw(this.parts, answer, { head: this.state.head, hasClass: this.hasClass, tokens: this.tokenizer.tokens });
    this.say({ ...found, asked, hidden, letters: line.letters, weights }, sentenceOf(answer, this.tokenizer));
    clearTimeout(this.pause);
    this.pause = setTimeout(() => this.survey(line), PAUSE);
  }

  /** Hide each letter by itself, one after the other, for as long as the text stays as it is. */
  async hideEach(line) {
    const { element, parts: { said, row } } = this;
    const isAsked = () => line === this.question.line;
    for (let n = line.known.length; n < line.letters.length && isAsked(); n++) {
      said.textContent = lesson(line);
      line.known[n] = await this.surprise(line, n);
      if (isAsked()) row.bars(line.known);
    }
    if (!isAsked()) return;
    said.textContent = lesson(line);
    element.dataset.survey = JSON.stringify(line.known);
  }
}

export async function mount(element, given = null) {
  const figure = new Hiding(element, await start(element, { label: LABEL, given }));
  await figure.tell(figure.state);
  await figure.follow();
}
