// Beam search in the page (chapter on generation), as `beam_search` of the package does it, and the tree that it looks at.
import { bindTo, button, clamp, counted, format, html, note, onArrows, ranked, slider, svg, total, wide, words } from "./common.mjs";
import { threeFigures } from "./chart.mjs";
import { visible } from "./texts.mjs";

const [ROW, MARGIN, RADIUS] = [28, 18, 11];

/** The logarithms of the softmax of logits. */
function logSoftmax(logits) {
  const largest = Math.max(...logits);
  const norm = largest + Math.log(total(logits.map((logit) => Math.exp(logit - largest))));
  return logits.map((logit) => logit - norm);
}

const byProbability = (texts) => [...texts].sort((a, b) => b.logProb - a.logProb);

/**
 * Every step of a beam search: the texts that extend one of the beam, each with its newest `token`, the place of its
 * `parent` in the step before, the `share` of the token after that, and `kept` if it is among the best. `next(ids)`
 * gives logits; of each text the likeliest tokens, as many as the beam holds, are enough to choose from.
 */
async function* beamSearch(prompt, width, depth, next) {
  let beam = [{ ids: prompt, logProb: 0, place: -1 }];
  for (let step = 0; step < depth; step++) {
    const longer = [];
    for (const text of beam) {
      const logProbs = logSoftmax(await next(text.ids));
      for (const token of ranked(logProbs).slice(0, width)) {
        const logProb = text.logProb + logProbs[token];
        longer.push({ ids: [...text.ids, token], token, parent: text.place, share: Math.exp(logProbs[token]), logProb, place: longer.length,
          kept: false });
      }
    }
    for (const text of byProbability(longer).slice(0, width)) text.kept = true;
    beam = longer.filter(({ kept }) => kept);
    yield longer;
  }
}

/** The texts on the way to one of a tree, from the first step on. */
function wayTo(steps, { step, place }) {
  const way = [];
  for (let at = place; step >= 0; step--) {
    way.unshift(steps[step][at]);
    at = steps[step][at].parent;
  }
  return way;
}

/** The likeliest texts of the last step, best first. */
const bestTexts = (steps) => byProbability(steps.at(-1).filter(({ kept }) => kept));
const bestOf = (steps) => ({ step: steps.length - 1, place: bestTexts(steps)[0].place });

/** Draw the tree into `node`: a column for each step, what is kept filled, lines as wide as a token is likely. */
function draw(node, { steps, depth, beams, chosen, tokens, width, choose }) {
  const height = ROW * Math.max(beams ** 2, 4);
  const isWide = width / depth > 75; // there is room for numbers
  const gap = (width - 2 * MARGIN - (isWide ? 22 : 0)) / depth;
  const x = (step) => MARGIN + gap * (step + 1);
  const y = (step, place) => (step < 0 ? height / 2 : ((place + 0.5) * height) / steps[step].length);
  const onWay = new Set(chosen ? wayTo(steps, chosen) : []);
  const isChosen = (text, step) => chosen?.step === step && chosen.place === text.place;
  const kind = (text, step) =>
    ["lf-node", text.kept && "lf-kept", onWay.has(text) && "lf-on", isChosen(text, step) && "lf-most"].filter(Boolean).join(" ");
  const lines = steps.map((texts, step) => texts.map((text, place) => {
    const [from, to, middle] = [y(step - 1, text.parent), y(step, place), x(step) - gap / 2];
    return svg("path", { class: kind(text, step).replace("lf-node", "lf-edge"), "stroke-width": 0.8 + 6 * text.share,
      d: `M${x(step - 1)} ${from}C${middle} ${from} ${middle} ${to} ${x(step)} ${to}` });
  }));
  const nodes = steps.map((texts, step) => texts.map((text, place) => svg("g", { class: kind(text, step), onclick: () => choose({ step, place }) },
    svg("rect", { x: x(step) - Math.max(14, gap / 2), y: y(step, place) - ROW / 2, width: Math.max(28, gap), height: ROW }),
    svg("circle", { cx: x(step), cy: y(step, place), r: RADIUS }),
    words(visible(tokens[text.token]), x(step), y(step, place) + 4.5),
    isWide && text.kept ? svg("text", { class: "lf-times", x: x(step) + RADIUS + 4, y: y(step, place) - 6 }, format(text.share)) : [])));
  node.setAttribute("viewBox", `0 0 ${width} ${height}`);
  node.replaceChildren(...lines.flat(), ...nodes.flat(), svg("circle", { class: "lf-root", cx: MARGIN, cy: height / 2, r: 5 }));
}

/** The place that an arrow key leads to, from `chosen`, in the tree. */
function moved(steps, { step, place }, down, right) {
  const texts = steps[step];
  if (down) return { step, place: clamp(place + down, 0, texts.length - 1) };
  if (right < 0) return step > 0 ? { step: step - 1, place: texts[place].parent } : null;
  const child = steps[step + 1]?.findIndex(({ parent }) => parent === place) ?? -1;
  return child >= 0 ? { step: step + 1, place: child } : null;
}

/** A search over a model's continuations of a text, as far as it has come, and that of greedy search beside it. */
class Search {
  constructor(model, changed) { Object.assign(this, { model, changed, name: "", steps: [], greedy: [], problem: "", turn: 0 }); }

  /** Search after these ids, if that has not been done; whatever else is being searched for is given up. */
  async find(ids, width, depth) {
    const name = [width, depth, ...ids].join();
    if (name === this.name) return;
    const turn = ++this.turn;
    Object.assign(this, { name, steps: [], greedy: [], problem: "" });
    const prompt = ids.slice(-(this.model.config.context_len - depth + 1));
    const next = (text) => this.model.ask("next", text);
    try {
      for (const [what, beam] of [["steps", width], ["greedy", 1]]) {
        for await (const texts of beamSearch(prompt, beam, depth, next)) {
          if (turn !== this.turn) return;
          this[what] = [...this[what], texts];
          this.changed();
        }
      }
    } catch (error) {
      this.problem = error.message;
      this.changed();
    }
  }
}

/** What a search has found, best first, a sentence about it, and whether it goes on; `spelt(texts)` are their letters. */
function told({ steps, greedy, problem }, { beams, depth }, chosen, spelt) {
  if (problem) return { state: null, sentence: problem, isBusy: false };
  if (!steps.length) return { state: null, sentence: "The search begins.", isBusy: true };
  const texts = bestTexts(steps);
  const said = (one, ways) => `“${spelt(wayTo(ways, { step: ways.length - 1, place: one.place }))}” with ${threeFigures(Math.exp(one.logProb))}`;
  const isDone = greedy.length === depth;
  const other = isDone ? greedy.at(-1)[0] : null;
  const plain = (one) => ({ tokens: one.ids.slice(-steps.length), logProb: one.logProb });
  return { state: { texts: texts.map(plain), greedy: other && plain(other), chosen, isDone }, isBusy: !isDone,
    sentence: `The best that ${beams} beams found after ${steps.length}: ${said(texts[0], steps)}.` +
      (isDone ? ` Greedy: ${said(other, greedy)}.` : "") };
}

/** The tree of a beam search with its controls: `set` changes the settings, `append` writes tokens, `changed` draws. */
export function beamView(model, { set, append, changed }) {
  const { tokens, unit } = model.tokenizer;
  let [chosen, isCurrent] = [null, false];
  const search = new Search(model, changed);
  const sizes = bindTo(set, { beams: slider({ label: "Beams", min: 2, max: 4, ticks: [2, 3, 4] }),
    depth: slider({ label: "Depth", min: 1, max: 8, show: (value) => counted(value, unit) }) });
  const tree = svg("svg", { "aria-hidden": "true" });
  const holder = html("div", { class: "lf-tree", tabindex: 0, role: "application",
    "aria-label": `The tree of the search; arrow keys go from ${unit} to ${unit}` }, tree);
  const way = html("p", { class: "lf-way" });
  const write = () => append(wayTo(search.steps, bestOf(search.steps)).map(({ token, share }) => ({ token, probability: share })));
  const take = button("Write the best", () => isCurrent && search.steps.length && write());
  const node = wide(html("div", { class: "lf-controls" }, sizes.nodes, take), holder, way,
    note(`A column for each step: every text of the beam with its likeliest next ${unit}s. Filled: kept, the likeliest as whole texts. Dashed: ` +
      `given up. The wider a line, the likelier the ${unit} after what stands before it. Choose a ${unit} to read its text and probability.`));
  const choose = (place) => { chosen = place; changed(); };
  onArrows(holder, (down, right) => {
    const place = search.steps.length && moved(search.steps, chosen ?? bestOf(search.steps), down, right);
    if (place) choose(place);
  });
  new ResizeObserver(() => { if (holder.clientWidth) changed(); }).observe(holder);

  const spelt = (texts) => texts.map(({ token }) => visible(tokens[token])).join("");
  function show(settings, ids, isLive) {
    sizes.show(settings);
    isCurrent = isLive && ids.length > 0; // or else what was found went on from another text
    if (!isCurrent) return;
    const before = search.name;
    search.find(ids, settings.beams, settings.depth);
    if (search.name !== before) chosen = null;
    const { steps } = search;
    const place = chosen ?? (steps.length ? bestOf(steps) : null);
    draw(tree, { steps, ...settings, chosen: place, tokens, choose, width: clamp(holder.clientWidth, 280, 900) });
    const texts = place ? wayTo(steps, place) : [];
    const product = texts.map(({ share }) => threeFigures(share)).join(" · ");
    way.textContent = texts.length ? `“${spelt(texts)}” has the probability ${threeFigures(Math.exp(texts.at(-1).logProb))} = ${product}` : "";
  }
  return { node, show, kinds: sizes.kinds, result: (settings) => told(search, settings, chosen, spelt) };
}
