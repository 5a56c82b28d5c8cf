// One decoder trained by several recipes (chapter on recipes): the learning rate of every step, and the losses that were recorded.
// `recipes.json` holds them (lab/recipes_training/record.json); lab/figures/recipes.py writes it.
import { chart, ticksBetween } from "./chart.mjs";
import { choice, format, frame, mean, note, panel, slider, stored, times } from "./common.mjs";

const OPTIMISERS = [["adamw", "AdamW"], ["muon", "Muon"]];
const SCHEDULES = [["cosine", "cosine"], ["constant", "constant"], ["wsd", "constant, then a fall"], ["inverse_sqrt", "inverse square root"],
  ["free", "constant, weights averaged"]];
const START = { optimiser: "adamw", schedule: "cosine", fall: 100 };

/** The learning rate after `done` steps, as a share of the largest: the package's `learning_rate_schedule`. */
export function rateAt({ steps, warmup, left }, { schedule, fall }, done) {
  if (done <= warmup) return (done + 1) / (warmup + 1);
  if (schedule === "cosine") return left + ((1 - left) / 2) * (1 + Math.cos((Math.PI * (done - warmup)) / (steps - warmup)));
  if (schedule === "inverse_sqrt") return Math.sqrt((warmup + 1) / (done + 1));
  if (schedule === "wsd") return 1 - (1 - left) * Math.max(0, (done - (steps - fall)) / fall);
  return 1;
}

const nameOf = (options, wanted) => options.find(([value]) => value === wanted)[1];

export async function mount(element) {
  const record = await stored("recipes.json");
  const { steps, every, falls, runs } = record;
  const { stage, bind, set, publish, addressed } = frame(element, { label: "recipes of training", start: START, draw });
  const fall = slider({ label: "Steps of the fall", values: falls });
  bind({ optimiser: choice({ legend: "Optimiser", options: OPTIMISERS }), schedule: choice({ legend: "Learning rate", options: SCHEDULES }), fall });
  const [rates, losses] = [chart(), chart()];
  for (const { node } of [rates, losses]) node.style.maxWidth = "24rem";
  const says = note("");
  stage.append(panel(rates.node), panel(losses.node, says));
  const plain = runs.find(({ optimiser, schedule }) => optimiser === "adamw" && schedule === "cosine");
  const all = runs.flatMap(({ curves }) => curves.flatMap((curve) => curve.slice(1)));
  const [low, high] = [Math.min(...all), Math.max(...all)], margin = (high - low) / 15;
  const x = { low: 0, high: steps, ticks: times(5, (i) => (i * steps) / 4), show: String, name: "step" };
  const meanOf = ({ curves }) => curves[0].map((_, i) => [every * (i + 1), 100 * mean(curves.map((curve) => curve[i]))]).slice(1);

  function draw(state) {
    const [isFalling, isMuon] = [state.schedule === "wsd", state.optimiser === "muon"];
    fall.input.disabled = !isFalling;
    const run = runs.find((each) => each.optimiser === state.optimiser && each.schedule === state.schedule && each.fall === (isFalling ? state.fall : 0));
    const missing = isMuon ? "Muon was recorded with the cosine alone." : `The losses were recorded with a fall of ${falls[1]} steps alone.`;
    const largest = run?.rate ?? plain.rate;
    const along = times(steps / 5 + 1, (i) => [5 * i, 100 * rateAt(record, state, 5 * i)]);
    rates.draw({ label: `The learning rate over the steps: ${nameOf(SCHEDULES, state.schedule)}`, x,
      y: { low: 0, high: 105, ticks: [0, 25, 50, 75, 100], show: (value) => format((largest * value) / 100, 4) },
      curves: [{ name: "rate", colour: "var(--lf-hue-1)", strong: true, points: along }] });
    const shown = run && run !== plain ? [{ name: isMuon ? "Muon" : "chosen", colour: "var(--lf-hue-1)", strong: true, points: meanOf(run) }] : [];
    losses.draw({ label: "Nats per word above the lowest loss, over the steps", x,
      y: { low: 100 * (low - margin), high: 100 * (high + margin), ticks: ticksBetween(100 * low, 100 * high, 6), show: (value) => format(value / 100, 2) },
      curves: [{ name: isMuon ? "AdamW" : "cosine", colour: "var(--lf-hue-2)", dash: "6 3", strong: run === plain, points: meanOf(plain) }, ...shown] });
    const seeds = run ? `${run.curves.length === 1 ? "One seed" : `The mean of ${run.curves.length} seeds`}, ` : "";
    says.textContent = run ? `${seeds}at the best rate of those tried, ${run.rate}: nats per word above the lowest loss, on stories kept back.`
      : missing;
    publish({ ...state, rate: run?.rate ?? null, above: run?.above ?? null, rates: along.map(([, share]) => (share * largest) / 100) },
      run ? `${nameOf(OPTIMISERS, state.optimiser)}, ${nameOf(SCHEDULES, state.schedule)}${isFalling ? ` in ${state.fall} steps` : ""}: ${format(mean(run.above), 3)} nats above the lowest loss at the end; AdamW with a cosine ${format(mean(plain.above), 3)}.`
        : missing);
  }
  set(START);
  addressed();
}
