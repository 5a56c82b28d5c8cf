// A model that writes on from a prompt (chapter on generation): the rules of choosing a token, as in the package, and the loop.
import { parkMiller, softmax, times, total } from "./common.mjs";
import { newest } from "./engine/client.mjs";
import { readOf } from "./texts.mjs";

const MOST = 600; // tokens that are written in all
const SETTLED = 5; // tokens after which a rate can be told

const descending = (numbers) => [...numbers].sort((a, b) => b - a);

/** What the package computes in `next_token_probabilities`; also what the temperature alone makes, and who stays. */
function distribution(logits, { temperature, topK, topP, minP }) {
  const largest = Math.max(...logits);
  if (temperature === 0) {
    const kept = logits.map((logit) => logit === largest);
    const probabilities = kept.map((stays) => stays / total(kept));
    return { tempered: probabilities, kept, probabilities };
  }
  const scaled = logits.map((logit) => (logit - largest) / temperature);
  const smallest = descending(scaled)[topK - 1];
  let kept = scaled.map((logit) => logit >= smallest); // what ties with the last stays, too
  const ranked = descending(softmax(scaled, kept));
  let before = 0; // the probability of all that are likelier: below topP, the token is needed
  let needed = 0;
  while (needed < ranked.length && before < topP) before += ranked[needed++];
  const least = descending(scaled)[needed - 1];
  const share = Math.log(minP); // of the likeliest, whose scaled logit is 0
  kept = kept.map((stays, token) => stays && scaled[token] >= least && scaled[token] >= share);
  return { tempered: softmax(scaled), kept, probabilities: softmax(scaled, kept) };
}

/** Number `n` between 0 and 1 of a seed, without the generator's first. */
const randomNumber = (seed, n) => times(n + 2, parkMiller(seed)).at(-1);

/** The token at which the probabilities, added up one after the other, pass a number between 0 and 1. */
function tokenAt(probabilities, number) {
  let left = number;
  const token = probabilities.findIndex((probability) => (left -= probability) < 0);
  return token >= 0 ? token : probabilities.findLastIndex((probability) => probability > 0); // rounding left a crumb
}

/**
 * A text in the making. `settings` hold the prompt, how tokens are chosen and what was written, each token with its
 * probability in the model; `read` is what the model reads of that, `found` what it says comes next, once it is known;
 * `started` waits for the first answer.
 * `hear(ids, answer)` is told every answer, of which it has seen the first `seen(ids)` rows; `changed` all else.
 */
export class Writing {
  constructor(model, initial, { seen, hear, changed }) {
    Object.assign(this, { model, initial, changed, first: null, problem: "" });
    this.think = newest((ids) => model.ask("nextWithCache", ids, seen(ids)), (answer, ids) => {
      hear(ids, answer);
      this.found = { ids, logits: answer.logits, known: answer.known };
      this.first ??= this.found;
      if (this.running) this.goOn();
      else if (this.waiting.length) this.write(this.waiting.shift());
      changed();
    }, (error) => {
      Object.assign(this, { running: false, problem: error.message });
      changed();
    });
    this.reset();
    this.started = this.thought;
  }

  /** Back to the beginning, with empty caches; what the model says there is remembered. */
  reset() {
    this.model.ask("forget").catch(() => {}); // what goes wrong is said with the answer that follows
    this.begin(this.initial);
    this.found = this.first;
  }

  /** Another text, or another seed: what was written goes, and these tokens are written, one after the other. */
  begin(settings, tokens = []) {
    this.waiting = [...tokens];
    this.change({ ...this.settings, ...settings, written: [] });
  }
  append(tokens) { this.change({ ...this.settings, written: [...this.settings.written, ...tokens] }); }

  change(settings, running = false) {
    Object.assign(this, { settings, running, problem: "", rate: running ? this.rate : null });
    const ids = [...this.model.tokenizer.encode(settings.prompt), ...settings.written.map(({ token }) => token)];
    this.read = readOf(ids, settings.prompt, this.model);
    if (this.read.ids.length) this.thought = this.think(this.read.ids);
  }

  /** Whether the model's last answer is about this very text; whether there is also room to write. */
  get isKnown() { return this.found?.ids.join() === this.read.ids.join(); }
  get isFull() { return this.settings.written.length >= MOST; }
  get shaped() { return { ...distribution(this.found.logits, this.settings), model: softmax(this.found.logits) }; }

  /** Write a token, by default one that is drawn. */
  write(token = null, running = false) {
    if (!this.isKnown || this.isFull) return;
    const { settings: { seed, written }, shaped } = this;
    const next = token ?? tokenAt(shaped.probabilities, randomNumber(seed, written.length));
    this.change({ ...this.settings, written: [...written, { token: next, probability: shaped.model[next] }] }, running);
  }

  /** Write as fast as the model reads, until there is no more room or `stop` is called. */
  run() {
    Object.assign(this, { running: this.isKnown, since: performance.now(), count: 0 });
    if (this.running) this.goOn();
  }
  stop() { this.running = false; }
  goOn() {
    if (this.count > SETTLED) this.rate = (1000 * this.count) / (performance.now() - this.since);
    this.running = !this.isFull;
    this.count++;
    this.write(null, this.running);
  }
}
