// The next token's distribution (chapter 07): temperature, top-k and top-p act on real logits, and tokens are drawn.
// `sampling.json` holds the logits of the book's own model; tools/models/sampling_figure.py writes it.
import { choice, format, frame, html, slider, softmax } from "./common.mjs";

const SHOWN = 12; // tokens with a row of their own, the model's likeliest
const SEED = 2019;
const WIDEST = [0.25, 0.5, 1]; // what a full bar may stand for

const total = (numbers) => numbers.reduce((sum, value) => sum + value, 0);
const descending = (numbers) => [...numbers].sort((a, b) => b - a);

/** A token for the eye. */
const visible = (token) => ({ " ": "␣", "\n": "↵" })[token] ?? token;

/** What the package computes in `next_token_probabilities`; also what the temperature alone makes, and who stays. */
export function distribution(logits, temperature, topK, topP) {
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
  kept = kept.map((stays, token) => stays && scaled[token] >= least);
  return { tempered: softmax(scaled), kept, probabilities: softmax(scaled, kept) };
}

/** Draw tokens, always the same ones from the same distribution: Park and Miller's generator picks the place. */
export function drawTokens(probabilities, draws) {
  const modulus = 2 ** 31 - 1;
  const counts = probabilities.map(() => 0);
  let [state, last] = [SEED, null];
  for (let n = 0; n < draws; n++) {
    state = (48271 * state) % modulus;
    let left = state / modulus;
    last = probabilities.findIndex((probability) => (left -= probability) < 0);
    if (last < 0) last = probabilities.findLastIndex((probability) => probability > 0); // rounding left a crumb
    counts[last]++;
  }
  return { counts, last };
}

export async function mount(element) {
  const { vocabulary, prompts } = await (await fetch(new URL("sampling.json", import.meta.url))).json();
  const size = vocabulary.length;
  const widths = [...Array.from({ length: 12 }, (_, i) => i + 1), 15, 20, 30, 50].filter((k) => k < size).concat(size);
  const start = { prompt: 0, temperature: 1, topK: size, topP: 1, draws: 0 };

  let state = { ...start };
  const set = (change) => { state = { ...state, draws: 0, ...change }; render(); };
  const { controls, stage, publish } = frame(element, { label: "Live figure: the next token's distribution, reshaped and drawn from", reset: () => set(start) });
  const prompt = choice({ legend: "Prompt", onchange: (value) => set({ prompt: value }),
    options: prompts.map(({ text }, i) => [i, `“${text}”`]) });
  const temperature = slider({ label: "Temperature", min: 0, max: 2, step: 0.05, ticks: [1],
    show: (value) => `${format(value)}${value === 0 ? ", the likeliest token" : value === 1 ? ", as the model has it" : ""}`,
    oninput: (value) => set({ temperature: value }) });
  const topK = slider({ label: "Top-k", min: 0, max: widths.length - 1,
    show: (place) => (widths[place] === size ? `all ${size}` : String(widths[place])), oninput: (place) => set({ topK: widths[place] }) });
  const topP = slider({ label: "Top-p", min: 0.05, max: 1, step: 0.05, show: (value) => (value === 1 ? "1, all" : format(value)),
    oninput: (value) => set({ topP: value }) });
  const button = (draws, words) => html("button", { type: "button", class: "lf-button", onclick: () => set({ draws: state.draws + draws }) }, words);
  prompt.node.classList.add("lf-wide");
  controls.append(prompt.node, temperature.node, topK.node, topP.node, button(1, "Draw one"), button(100, "Draw 100"));

  const rows = Array.from({ length: SHOWN + 1 }, () => ({
    name: html("th", { scope: "row" }), cells: ["model", "now", "drawn"].map(() => html("td")),
    stay: html("span", { class: "lf-bar", style: "color: var(--lf-hue-1)" }), out: html("span", { class: "lf-bar lf-removed" }),
  }));
  const caption = html("caption");
  const scale = html("th", { scope: "col", style: "text-align: left; white-space: normal" });
  const head = ["token", "model", "now", "drawn"].map((name) => html("th", { scope: "col" }, name));
  const table = html("table", {}, caption, html("thead", {}, html("tr", {}, head, scale)),
    html("tbody", {}, rows.map(({ name, cells, stay, out }) => html("tr", {}, name, cells, html("td", { class: "lf-bar-cell" }, stay, out)))));
  stage.append(html("div", { class: "lf-wide lf-table" }, table),
    html("p", { class: "lf-note lf-wide" }, "“model”: the probability at temperature 1, nothing removed. “now”: what tokens are drawn from, with your " +
      "settings. Blue bars: what stays, renormalised. Hatched bars: what is removed, as likely as the temperature alone would make it. " +
      "“drawn”: how often, and the share of all draws. Whatever you change, the draws begin anew. ␣ is a space, ↵ a line break."));

  function render() {
    const { logits, text } = prompts[state.prompt];
    const model = softmax(logits);
    const { tempered, kept, probabilities } = distribution(logits, state.temperature, state.topK, state.topP);
    const { counts, last } = drawTokens(probabilities, state.draws);
    const order = logits.map((_, token) => token).sort((a, b) => logits[b] - logits[a]);
    const groups = [...order.slice(0, SHOWN).map((token) => [token]), order.slice(SHOWN)];
    const sumOf = (numbers, group) => total(group.map((token) => numbers[token]));
    const stays = groups.map((group) => sumOf(probabilities, group));
    const goes = groups.map((group) => sumOf(tempered, group.filter((token) => !kept[token])));
    const full = WIDEST.find((limit) => limit >= Math.max(...stays.map((value, i) => value + goes[i]))) ?? 1;

    prompt.value = state.prompt;
    temperature.value = state.temperature;
    topK.value = widths.indexOf(state.topK);
    topP.value = state.topP;
    caption.textContent = `What comes after “${text}”`;
    scale.textContent = `a full bar is ${format(full)}`;
    rows.forEach(({ name, cells, stay, out }, i) => {
      const drawn = sumOf(counts, groups[i]);
      const isOut = !groups[i].some((token) => kept[token]);
      name.textContent = i < SHOWN ? visible(vocabulary[groups[i][0]]) : `${groups[i].length} others`;
      const said = [format(sumOf(model, groups[i]), 3), isOut ? "out" : format(stays[i], 3), state.draws ? `${drawn}: ${format(drawn / state.draws)}` : "–"];
      said.forEach((words, j) => { cells[j].textContent = words; });
      name.classList.toggle("lf-chosen", last !== null && groups[i].includes(last));
      for (const [bar, value] of [[stay, stays[i]], [out, goes[i]]]) {
        bar.hidden = value === 0;
        bar.style.width = `${Math.min(100, (100 * value) / full)}%`;
      }
    });
    const number = total(kept);
    const best = `“${visible(vocabulary[order[0]])}”`;
    const drawn = state.draws ? ` ${state.draws} drawn; the last is “${visible(vocabulary[last])}”.` : "";
    publish({ ...state, text, logits, kept, probabilities, model, counts, last, shown: order.slice(0, SHOWN) },
      `${number} of ${size} tokens ${number === 1 ? "stays" : "stay"}; the likeliest, ${best}, has ${format(probabilities[order[0]], 3)}.${drawn}`);
  }
  render();
}
