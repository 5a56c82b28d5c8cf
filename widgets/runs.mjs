// Training runs of the chapter on depth, replayed: twelve blocks, pre- and post-norm, with and without warm-up. `runs.json` holds the
// losses that were recorded (lab/blocks/record.json); lab/figures/runs.py writes it.
import { oneOf } from "./address.mjs";
import { chart } from "./chart.mjs";
import { button, checkbox, choice, format, frame, isCalm, mean, note, slider, stored, times, wide } from "./common.mjs";

const LENGTH = 8000; // milliseconds that a whole run takes
const KINDS = [
  { name: "pre", label: "pre-norm", colour: "var(--lf-hue-1)", placement: "pre", isSmall: false },
  { name: "post", label: "post-norm", colour: "var(--lf-hue-2)", placement: "post", isSmall: false, dash: "7 3" },
  { name: "small", label: "post-norm, smaller last matrices", short: "smaller", colour: "var(--lf-hue-3)", placement: "post", isSmall: true,
    dash: "2 3" },
];
const START = { step: 200, rate: 0.003, warmup: 0, seed: "all", pre: true, post: true, small: false, playing: false };
const COUNTED = { 1: "single bytes", 2: "pairs" }; // what the n-gram models know, whose losses are marked
const [LOW, HIGH, STEPS] = [2, 6.2, 1000];

/** The curves of the settings, as far as they have come: a kind's name at the end of its first. */
function curvesOf({ runs, perPoint }, state) {
  const shown = [];
  for (const kind of KINDS.filter(({ name }) => state[name])) {
    const wanted = { ...state, ...kind };
    const run = runs.find((one) => ["placement", "isSmall", "rate", "warmup"].every((name) => one[name] === wanted[name]));
    const seeds = (run?.curves ?? []).map((curve, seed) => ({ seed, losses: curve.slice(0, state.step / perPoint) }));
    shown.push({ ...kind, isRecorded: Boolean(run), seeds: seeds.filter(({ seed }) => state.seed === "all" || seed === state.seed),
      validation: run?.validation ?? null });
  }
  return shown;
}

/** A button that plays and stops, and moves `step` on with the clock; who wants little motion gets leaps. */
function player(get, set) {
  let [begun, from] = [0, 0];
  function tick(now) {
    const { playing, step } = get();
    if (!playing) return;
    const grain = isCalm() ? 100 : 10;
    const next = Math.min(STEPS, from + grain * Math.floor(((now - begun) / LENGTH) * (STEPS / grain)));
    if (next !== step) set({ step: next, playing: next < STEPS });
    requestAnimationFrame(tick);
  }
  return () => {
    if (get().playing) return set({ playing: false });
    from = get().step === STEPS ? 10 : get().step;
    begun = performance.now();
    set({ playing: true, step: from });
    requestAnimationFrame(tick);
  };
}

/** What is to be read off: each kind's loss at the step, and, at the end, on the text that was held out. */
function sentence(shown, { step, seed }) {
  const said = shown.map(({ label, isRecorded, seeds, validation }) => {
    if (!isRecorded) return `${label} was recorded at 0.003 without warm-up only`;
    const last = mean(seeds.map(({ losses }) => losses.at(-1)));
    const held = step === STEPS ? `, held out ${format(mean(seeds.map((one) => validation[one.seed])))}` : "";
    return `${label} ${format(last)}${held}`;
  });
  return said.length ? `Step ${step}${seed === "all" ? ", mean of the seeds" : ""}: ${said.join("; ")} nats.` : "Choose a wiring.";
}

export async function mount(element) {
  const record = await stored("runs.json");
  const figure = frame(element, { label: "recorded training runs, replayed", start: START, draw });
  const { controls, stage, set, bind } = figure;
  const play = button("Play", player(() => figure.settings, set));
  const step = slider({ label: "Up to step", min: 10, max: STEPS, step: 10, onchange: (value) => set({ step: value, playing: false }) });
  bind({
    ...Object.fromEntries(KINDS.map(({ name, label }) => [name, checkbox({ label })])),
    rate: choice({ legend: "Learning rate", options: [[0.001, "0.001"], [0.003, "0.003"]] }),
    warmup: choice({ legend: "Warm-up", options: [[0, "none"], [200, "200 steps"]] }),
    seed: choice({ legend: "Seed", options: [["all", "all"], [0, "0"], [1, "1"], [2, "2"]] }),
  });
  controls.append(play, step.node);
  const drawing = chart();
  drawing.node.style.maxWidth = "30rem";
  stage.append(wide(drawing.node, note(
    "The loss while training, in nats per byte, every point the mean of ten steps; a curve for each seed. " +
    "The level lines: models that only count how often " +
    "single bytes, or pairs of bytes, occur. A warm-up lets the learning rate rise from zero in a straight line.")));

  const levels = Object.entries(COUNTED).map(([n, name]) =>
    ({ name, colour: "var(--lf-soft)", dash: "1 3", points: [0, STEPS].map((at) => [at, record.counted[n]]) }));

  function draw(state) {
    const shown = curvesOf(record, state);
    step.value = state.step;
    play.textContent = state.playing ? "Pause" : state.step === STEPS ? "Play again" : "Play";
    const points = (losses) => losses.map((loss, i) => [(i + 0.5) * record.perPoint, Math.min(HIGH, loss)]);
    drawing.draw({ label: "Loss over the steps of training", x: { low: 0, high: STEPS, ticks: [0, 250, 500, 750, 1000], show: String, name: "step" },
      y: { low: LOW, high: HIGH, ticks: [2, 3, 4, 5, 6], show: String },
      curves: [...levels, ...shown.flatMap(({ label, short = label, colour, dash, seeds }) =>
        seeds.map(({ losses }, i) => ({ name: i ? "" : short, colour, dash, strong: i === 0, points: points(losses) })))],
      here: { at: state.step, name: String(state.step) } });
    figure.publish({ ...state, losses: Object.fromEntries(shown.map(({ name, seeds }) => [name, seeds.map(({ losses }) => losses)])) },
      sentence(shown, state));
  }
  set(START);
  figure.addressed({ step: oneOf(times(STEPS / 10, (i) => 10 * (i + 1))) });
}
