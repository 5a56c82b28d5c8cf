// Patching (chapter on looking inside): what one box of the stored decoder holds in one story is carried into its run on another, which
// differs in one word; a map of all boxes shows how far each turns the answer.
import { place, setting } from "./address.mjs";
import {
  checkbox, format, frame, gauge, html, note, panel, picker, rowHead, softmax, table, times, title, whenThemeChanges,
} from "./common.mjs";
import { largest, matrix } from "./engine/arrays.mjs";
import { start as startModel } from "./engine/start.mjs";
import { heatMap } from "./heat.mjs";

const LABEL = "which box brings an answer about";
/** Stories with a gap, and the two words that may stand in it. */
const PAIRS = [
  { name: "where Anna goes", story: ". it is wet . Anna is in the hall . the lamp is in the hall . Anna takes the lamp . Anna goes to the _ . where is the lamp ?",
    fill: ["kitchen", "garden"] },
  { name: "who takes the lamp", story: ". Anna is in the cellar . Clara is in the cellar . the lamp is in the cellar . _ takes the lamp . " +
    "Anna goes to the garden . Clara goes to the hall . where is the lamp ?", fill: ["Anna", "Clara"] },
  { name: "where the lamp is", story: ". it is wet . Anna is in the hall . the lamp is in the _ . Anna goes to the garden . where is the lamp ?",
    fill: ["kitchen", "cellar"] },
  { name: "the weather", story: ". it is _ . Anna is in the hall . Ben is in the kitchen . Anna goes to the garden . Anna wears", fill: ["wet", "cold"] },
  { name: "a switch", story: ". Anna is in the hall . the left switch is _ . the right switch is up . Anna goes to the garden . is it light ?", fill: ["down", "up"] },
];
const START = { pair: 0, back: false, place: 3, token: 0 };

/** The places that are patched, in the order of the computation, by the names of the package, and their names here. */
function placesOf(layers) {
  const ofBlock = (block) => [
    [`stack.blocks.${block}.attention.output`, `heads ${block}`, `what the heads of block ${block} add`],
    [`stack.blocks.${block}.feed_forward.output`, `network ${block}`, `what the network of block ${block} adds`],
    [`stack.blocks.${block}.output`, `stream ${block + 1}`, `the stream after block ${block}`],
  ];
  return [["stack.input", "stream 0", "the stream before block 0"], ...times(layers, ofBlock).flat()];
}

/** A pair as the model reads it: the ids of both stories, the words from the one that differs on, and where that is. */
function read({ pair, back }, { tokenizer }) {
  const { story, fill } = PAIRS[pair];
  const [ours, theirs] = (back ? [...fill].reverse() : fill).map((word) => tokenizer.encode(story.replace("_", word)));
  const first = ours.findIndex((id, n) => id !== theirs[n]);
  return { key: `${pair}${back}`, ours, theirs, first, words: ours.slice(first).map((id) => tokenizer.tokens[id]) };
}

export async function mount(element, given = null) {
  const model = await startModel(element, { label: LABEL, given });
  const places = placesOf(model.config.stack.num_layers);
  const { tokens } = model.tokenizer;
  const known = new Map(); // what was computed of each pair, place by place
  let now = read(START, model);
  const figure = frame(element, { label: LABEL, start: START, draw });
  figure.bind({
    pair: picker({ label: "What differs", options: PAIRS.map(({ name }, i) => [i, name]), onchange: (pair) => figure.set({ pair: Number(pair), token: 0 }) }),
    back: checkbox({ label: "the other way round" }),
  });
  const story = html("p", { class: "lf-note lf-wide" });
  const map = heatMap({ label: "Boxes by place and word; arrow keys lead on", onpick: (place, token) => figure.set({ place, token }) });
  const head = title();
  const cells = times(2, () => times(3, () => gauge("background: var(--lf-hue-1)", false)));
  const names = times(2, () => rowHead());
  const chances = table("Probability of the answer", ["", "this story", "patched", "the other"],
    cells.map((row, i) => [names[i], ...row.map(({ node }) => node)]));
  figure.stage.append(story, panel(note("Columns are the words from the one that differs on; rows the places, in the order of the computation."), map.node,
    note("Effect of carrying one row over: purple turns the answer to that of the other story, deepest at 1; olive moves it the other way.")),
  panel(head, chances));
  whenThemeChanges(() => figure.set({}));

  /** Compute the map of a pair, place by place, unless another pair is chosen meanwhile. */
  async function explore(pair) {
    const found = { rows: [], ends: null, error: "" };
    known.set(pair.key, found);
    try {
      found.ends = [await model.ask("next", pair.ours), await model.ask("next", pair.theirs)];
      for (const [place] of places) {
        if (now.key !== pair.key) { known.delete(pair.key); return; }
        found.rows.push(await model.ask("patches", pair.ours, pair.theirs, place, pair.first));
        figure.set({});
      }
    } catch ({ message }) {
      found.error = message;
      figure.set({});
    }
  }

  function draw(settings) {
    now = read(settings, model);
    if (!known.has(now.key)) explore(now);
    const { rows, ends, error } = known.get(now.key);
    const token = Math.min(settings.token, now.words.length - 1);
    const [line, other] = [now.ours, now.theirs].map((ids) => ids.map((id) => tokens[id]).join(" "));
    const missing = error || "The model reads.";
    if (!ends) return figure.publish({ ...settings, token, busy: !error }, missing);
    const answers = ends.map(largest);
    const margin = (logits) => logits[answers[0]] - logits[answers[1]];
    const [before, after] = ends.map(margin);
    const isTurned = answers[0] !== answers[1];
    const effectOf = (logits) => (isTurned ? (margin(logits) - before) / (after - before) : 0);
    const effects = rows.map((row) => row.map(effectOf));
    const all = matrix(places.length, now.words.length);
    effects.forEach((row, i) => all.data.set(row, i * all.columns));
    story.textContent = `${line.replace(/^\. /, "")} — in the other story “${tokens[now.theirs[now.first]]}” for “${now.words[0]}”.`;
    map.draw({ matrix: all, limit: 1, rows: places.map(([, name]) => name), columns: now.words, chosen: [settings.place, token], pitch: 22, tallest: 300 });
    const isKnown = settings.place < rows.length;
    const runs = [ends[0], isKnown ? rows[settings.place][token] : ends[0], ends[1]].map((logits) => softmax(Array.from(logits)));
    answers.forEach((answer, i) => {
      names[i].textContent = tokens[answer];
      cells[i].forEach((cell, run) => cell.show(runs[run][answer], 1));
    });
    const [, , what] = places[settings.place];
    const effect = isKnown ? effects[settings.place][token] : null;
    head.textContent = `${what}, at “${now.words[token]}”`;
    const state = { ...settings, token, read: now.ours, other: now.theirs, first: now.first, answers, before, after, effects,
      chances: answers.map((answer) => runs.map((run) => run[answer])), busy: rows.length < places.length && !error };
    if (!isTurned) return figure.publish(state, `The model says “${tokens[answers[0]]}” after both stories: there is nothing to turn.`);
    return figure.publish(state, error || (isKnown
      ? `With ${what} at “${now.words[token]}” from the other story the effect is ${format(effect)}; “${tokens[answers[1]]}” then has ${format(runs[1][answers[1]])}.`
      : "The model reads."));
  }
  figure.set({});
  figure.addressed({ pair: place(PAIRS.length), place: place(places.length), word: setting("token", place(model.config.context_len)) });
}
