// An encoder–decoder at work (chapter on encoder–decoders): what is typed, what the stored model writes for it, letter by letter, and
// which letters it reads for each. The page may name a second model; it is fetched once the reader asks for it.
import { oneOf, place, setting, whole } from "./address.mjs";
import { button, choice, clamp, format, frame, html, largest, ranked, slider, softmax, textField, visible, wide, wideNote } from "./common.mjs";
import { row as rowOf } from "./engine/arrays.mjs";
import { loadModel, remembering } from "./engine/client.mjs";
import { megabytes, modelsOf, start } from "./engine/start.mjs";
import { curves, fullBar, headName, letterBars, letterRow, readBy } from "./letters.mjs";
import { complaint, examples, firstLetters } from "./texts.mjs";

const LIKELIEST = 5; // letters of a step with a row of their own
const MOST = 200; // steps that a link can name
const STOP = "■";
// What the stored models are for: texts to start from, with what is right, and the step to begin with.
const TASKS = {
  seq2seq: { name: "dates", label: "Date", step: 6, texts: [["21 ene 2026", "2026-01-21"], ["16 de enero de 1989", "1989-01-16"],
    ["maanantai 21. syyskuuta 2026", "2026-09-21"], ["November 27, 2032", "2032-11-27"],
    ["1963. november 10.", "1963-11-10"], ["Freitag, 26. Juni 1936", "1936-06-26"], ["12. Oktober 1492", "1492-10-12"]] },
  numbers: { name: "German numbers", label: "Number in words", step: 0, texts: [["vierunddreißigtausendzwölf", "thirty-four thousand and twelve"],
    ["zweiundsiebzigtausenddreihundertachtzehn", "seventy-two thousand, three hundred and eighteen"],
    ["zweitausendfünfundvierzig", "two thousand and forty-five"],
    ["einhundertsiebentausendsiebzehn", "one hundred and seven thousand and seventeen"], ["zwölf", "twelve"]] },
};
const LABEL = "a text is translated letter by letter, and what is read for each letter";
const taskOf = (name) => TASKS[name] ?? { name, label: "Text", step: 0, texts: [[""]] };
const beginning = (name) => ({ task: name, text: taskOf(name).texts[0][0], step: taskOf(name).step, head: 0 });
const spelt = (signs) => signs.map((sign) => (sign === "␣" ? " " : sign)).join("");

/** Whether a text is the date of a day that there is. */
function isDay(text) {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? [];
  const date = new Date(Date.UTC(year, month - 1, day));
  return year !== undefined && date.getUTCMonth() === month - 1 && date.getUTCDate() === Number(day);
}

/** What can be said of a whole answer: whether it is right, where that is known, and how sure the model is of it. */
function verdict({ task, text, answer, ends, sure, all, signs }) {
  const doubt = sure.indexOf(Math.min(...sure));
  const known = TASKS[task]?.texts.find(([given]) => given === text)?.[1];
  const unknown = task === "seq2seq" && !isDay(answer) ? "; there is no such day" : "";
  const judged = known === undefined ? unknown : known === answer ? ", which is right" : `; right is “${known}”`;
  const words = `It writes “${answer}”${ends ? "" : ", and does not come to an end"}${judged}.`;
  return { words, judged: `${words} The whole has the probability ${format(all, 3)}; ` +
    `the model is least sure at step ${doubt + 1}, “${signs[doubt]}”: ${format(sure[doubt], 3)}.` };
}

/** The likeliest letters of a step, with bars. */
function likeliest() {
  const scale = html("th", { scope: "col", class: "lf-bar-cell" });
  const table = letterBars({ count: LIKELIEST, heads: ["next", "probability", scale] });
  function update(before, signs, numbers) {
    const full = fullBar(numbers);
    scale.textContent = `a full bar is ${format(full)}`;
    table.show(before ? `What comes after “${before}”` : "What comes first", signs.map((sign, i) => [sign, numbers[i]]), 0, full);
  }
  return { node: html("div", { class: "lf-wide lf-table" }, table.node), update };
}

/** Buttons that write letter by letter: `at()` says how far it has come, and `go(step)` takes it further. */
function writer({ at, last, go, onrun }) {
  let timer = null;
  const run = button("Write it", () => (timer ? pause() : begin()));
  const step = button("Next letter", () => { pause(); if (last() >= 0) go(Math.min(last(), at() + 1)); });
  function show(isRunning) {
    run.textContent = isRunning ? "Pause" : "Write it";
    onrun(isRunning);
  }
  function pause() {
    if (!timer) return;
    clearInterval(timer);
    timer = null;
    show(false);
  }
  function begin() {
    if (last() < 0) return;
    timer = setInterval(() => (at() < last() ? go(at() + 1) : pause()), Math.max(90, Math.min(400, 5000 / (last() + 1))));
    show(true);
    if (at() >= last()) go(0);
  }
  return { buttons: [run, step], pause };
}

/** The parts of the figure: controls, the two rows of letters with curves between them, what comes next. */
function build({ controls, stage }, { models, act, writing }) {
  const task = choice({ legend: "Model", onchange: act.switchTo, options: models.map(({ name, bytes }, i) =>
    [name, `${TASKS[name]?.name}${i ? ` (${megabytes(bytes)} MB)` : ""}`]) });
  const bar = html("progress", { "aria-label": "How much of the model has arrived", hidden: true });
  const field = textField({ label: "Text", onchange: act.edit });
  const offers = wide();
  const step = slider({ label: "Step", min: 1, max: 2, show: act.nameStep, onchange: (value) => act.go(value - 1) });
  const head = slider({ label: "Head", min: 0, max: 1, show: act.nameHead, onchange: act.chooseHead });
  const source = letterRow({ label: "What is read" });
  const written = letterRow({ label: "What is written; choose a step", onchoose: act.go, onhover: act.go });
  const box = html("div", { class: "lf-wide lf-bridge" }, source.node, written.node);
  const [judged, next] = [html("p", { class: "lf-wide" }), likeliest()];
  if (models.length > 1) controls.append(task.node, bar);
  controls.append(field.node, offers, ...writing.buttons, step.node, head.node);
  stage.append(wideNote("What is read: number and colour of a letter say how much, at this step, in hundredths. ␣ is a space."), box,
    wideNote("What is written: the bar in a letter is its probability. Curves lead from the red letter to what is read for it, " +
      "grey ones from the letters before. ■ is the stop token."), judged, next.node);
  return { task, bar, field, offers, step, head, source, written, box, judged, next, links: curves(box, { across: true }) };
}

/** Draw one step of an answer. Returns what a test may want to see. */
function draw(parts, { source, written, probabilities, heads, signs, sure }, { step, head, tokens }) {
  const weightsAt = (n) => readBy(heads.map((weights) => rowOf(weights, n)), head);
  const weights = weightsAt(step);
  const most = largest(weights);
  parts.source.update(source.letters.map((letter, n) => ({ text: source.strange[n] ? "<other>" : visible(letter), share: weights[n],
    kind: n === most ? "lf-most" : "" })));
  parts.source.node.setAttribute("aria-label",
    `What is read: ${source.letters.map((letter, n) => `${visible(letter)} ${Math.round(100 * weights[n])}`).join(", ")} hundredths`);
  parts.written.update(signs.map((sign, n) => ({ text: sign, name: `Step ${n + 1}, ${sign}`, bars: [sure[n]],
    kind: [n === step ? "lf-gone" : n > step ? "lf-unseen" : "", sure[n] < 0.5 ? "lf-doubt" : ""].join(" ") })), step);
  const [from, to] = [parts.written.node.children, parts.source.node.children];
  const links = (n, numbers, least) => numbers.map((share, m) => ({ from: from[n], to: to[m], share, faint: n !== step }))
    .filter(({ share }) => share >= least);
  parts.links.draw([...written.slice(0, step).flatMap((_, n) => links(n, weightsAt(n), 0.15)), ...links(step, weights, 0.03)]);
  const order = ranked(probabilities[step]).slice(0, LIKELIEST);
  const [next, numbers] = [order.map((token) => tokens(token)), order.map((token) => probabilities[step][token])];
  parts.next.update(spelt(signs.slice(0, step)), next, numbers);
  return { weights, most, next, probabilities: numbers };
}

/** What a model answers: what it writes, with the probabilities of each step, and what it reads for it. */
async function answerTo({ model: { ask, config, tokenizer }, source }) {
  const { written, logits, heads } = await ask("translate", source.ids);
  const sign = (token) => (token === config.stop_token ? STOP : visible(tokenizer.tokens[token]));
  const probabilities = logits.map((numbers) => softmax(numbers));
  return { written, heads, probabilities, source, sign, sure: probabilities.map((numbers) => Math.max(...numbers)), signs: written.map(sign) };
}

/** The figure: what is asked, what the models answered, and what is done with it. */
class Translating {
  constructor(element, models, first, given) {
    Object.assign(this, { models, given, loaded: new Map([[models[0].name, first]]) });
    this.state = beginning(models[0].name);
    this.writing = writer({ at: () => this.state.step, last: () => (this.answer?.written.length ?? 0) - 1,
      go: (step) => this.tell({ step }),
      onrun: (isRunning) => this.parts.box.classList.toggle("lf-running", isRunning) });
    const { publish, addressed, ...places } = frame(element, { label: LABEL, reset: () => this.stopAnd(beginning(models[0].name)) });
    Object.assign(this, { publish, addressed });
    this.parts = build(places, { models, writing: this.writing, act: {
      edit: this.edit = (text) => this.stopAnd({ text }),
      go: (step) => this.stopAnd({ step }),
      chooseHead: (head) => this.tell({ head }),
      nameStep: (value) => `${value} of ${this.answer?.written.length ?? 0}`,
      nameHead: (head) => this.nameHead(head),
      switchTo: (name) => { this.writing.pause(); this.switchTo(name); },
    } });
    this.ask = remembering({ work: answerTo, show: (answer) => this.show(answer), fail: (error) => this.fail(error),
      wait: () => this.publish({ ...this.state, busy: true }, this.said) });
  }

  say(found, sentence) { this.publish({ ...this.state, ...found }, this.said = sentence); }
  fail({ message }) { this.say({ error: message }, message); }
  stopAnd(change) { this.writing.pause(); this.tell(change); }
  nameHead(head) { return headName(head, this.loaded.get(this.state.task).config.decoder.num_heads); }

  /** Another model, which is fetched if it is not here yet; until then the figure stays as it is. */
  async switchTo(name) {
    const { bytes, address } = this.models.find((model) => model.name === name);
    const { bar, task } = this.parts;
    try {
      if (!this.loaded.has(name)) {
        Object.assign(bar, { max: bytes, value: 0, hidden: false });
        this.say({ busy: true }, `The model is on its way, ${megabytes(bytes)} MB.`);
        this.loaded.set(name, await loadModel(name, address, (come) => { bar.value = come; }));
      }
      if (task.value === name) this.tell(beginning(name)); // or else the reader has changed their mind
    } catch (error) {
      task.value = this.state.task;
      this.fail(error);
    } finally {
      bar.hidden = true;
    }
  }

  /** Have links set it, for which another model may have to come first. */
  follow() {
    const kinds = { model: setting("task", oneOf(this.models.map(({ name }) => name))), text: this.parts.field.kind, step: place(MOST), head: whole(0, MOST) };
    return this.addressed(kinds, { now: () => this.state, go: async (wanted) => {
      this.writing.pause();
      this.parts.task.value = wanted.task;
      if (!this.loaded.has(wanted.task)) await this.switchTo(wanted.task);
      if (this.loaded.has(wanted.task)) await this.tell(wanted);
    } });
  }

  tell(change) {
    this.state = { ...this.state, ...change };
    const { task, text } = this.state;
    const model = this.loaded.get(task);
    if (this.question?.text !== text || this.question.model !== model) {
      this.question = { text, model, source: firstLetters(text, model.tokenizer, model.config.source_len), key: `${task}\n${text}` };
      this.answer = null;
    }
    const { num_layers: layers, num_heads: heads } = model.config.decoder;
    this.state.head = clamp(this.state.head, 0, layers * heads);
    this.set(model.config.decoder);
    const { letters } = this.question.source;
    for (const node of [this.parts.box, this.parts.judged, this.parts.next.node]) node.classList.toggle("lf-stale", letters.length === 0);
    if (letters.length === 0) return this.say({}, "There is nothing to translate yet: type a text.");
    return this.ask(this.question);
  }

  /** Bring the controls to where the state is. */
  set({ num_layers: layers, num_heads: numHeads }) {
    const { state, parts: { offers, task, field, head } } = this;
    const { label, texts } = taskOf(state.task);
    if (this.offered !== state.task && !this.given) {
      offers.replaceChildren(examples({ label: "Texts to start from", texts: texts.map(([text]) => text), onchoose: this.edit }));
    }
    this.offered = state.task;
    field.name.textContent = label;
    head.max = layers * numHeads;
    [task.value, field.value, head.value] = [state.task, state.text, state.head];
  }

  show(found) {
    const { state, parts } = this;
    this.answer = found;
    const { source, written, signs, sure } = found;
    const step = state.step = Math.min(state.step, written.length - 1);
    parts.step.max = written.length;
    parts.step.value = step + 1;
    const { weights, most, ...next } = draw(parts, found, { step, head: state.head, tokens: found.sign });
    const ends = signs.at(-1) === STOP;
    const answer = spelt(ends ? signs.slice(0, -1) : signs);
    const all = sure.reduce((product, value) => product * value, 1);
    const { words, judged } = verdict({ ...state, answer, ends, sure, all, signs });
    parts.judged.textContent = judged;
    this.say({ ...next, weights, most, written, sure, all, letters: source.letters, answer },
      `Step ${step + 1} writes “${signs[step]}” (${format(sure[step], 3)}) and reads “${visible(source.letters[most])}”, ` +
      `letter ${most + 1}, most: ${format(weights[most])}, ${this.nameHead(state.head)}. ${words}${complaint(source)}`);
  }
}

export async function mount(element, given = null) {
  const models = given ? [{ name: "own" }] : modelsOf(element);
  const figure = new Translating(element, models, await start(element, { label: LABEL, given }), given);
  await figure.tell({});
  await figure.follow();
}
