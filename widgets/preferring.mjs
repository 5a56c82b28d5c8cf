// Preferring (chapter on fine-tuning): what a teller writes after its tuning, by the price of a nat of distance from what it was.
// `preferring.json` holds the recorded runs (lab/preferring/record.json); lab/figures/preferring.py writes it.
import { chart } from "./chart.mjs";
import { choice, format, frame, html, note, panel, slider, stored, title, wide } from "./common.mjs";

const START = { beta: 0.3, times: 1 };
const LEASHES = [0, 1, 3, 10, 50]; // marked on the axis, which grows with the logarithm of the leash, plus 1
const percent = (share) => `${format(100 * share, 0)} %`;
const across = (leash) => Math.log(1 + leash);
const point = ({ leash, reward }) => [across(leash), reward];

/** A text, its sentences one after the other; those that cannot be are struck out. */
function told({ prompt, sentences }) {
  const parts = sentences.map(([text, isPossible]) => [" ", html(isPossible ? "span" : "s", { class: isPossible ? null : "lf-impossible" }, text)]);
  return html("p", { class: "lf-told" }, html("b", {}, prompt), ...parts);
}

export async function mount(element) {
  const record = await stored("preferring.json");
  const betas = record.tuned.map(({ beta }) => beta);
  const figure = frame(element, { label: "what is written after tuning by preferences", start: START, draw });
  const { stage, bind, set, publish, addressed } = figure;
  bind({
    beta: slider({ label: "Price of a nat, β", values: betas, show: String }),
    times: choice({ legend: "Steps", options: [1, 5].map((times) => [times, String(times * record.steps)]) }),
  });
  const drawing = chart();
  drawing.node.style.maxWidth = "30rem";
  const texts = panel();
  stage.append(wide(drawing.node, note("How often Anna is named in 24 words, by the distance from the teller that was not tuned, in nats per text. "
    + "Dotted: the bound, the most that any model can have.")), texts);
  const most = Math.max(...record.tuned.concat(record.longer).map(({ leash }) => leash), 1);
  const high = Math.max(...record.tuned.concat(record.longer).map(({ reward }) => reward), 1);

  function draw(state) {
    const runs = state.times === 5 ? record.longer : record.tuned;
    const run = runs.find(({ beta }) => beta === state.beta);
    const x = { low: 0, high: across(most), ticks: LEASHES.map(across), show: (place) => String(Math.round(Math.exp(place) - 1)),
      name: "leash, nats per text" };
    const y = { low: 0, high: Math.ceil(high), ticks: [...Array(Math.ceil(high) + 1).keys()], show: String };
    drawing.draw({ label: "Reward by leash", x, y, curves: [
      { name: "bound", colour: "var(--lf-soft)", dash: "1 3", left: true, points: record.frontier.map(point) },
      { name: "best of n", colour: "var(--lf-hue-2)", dots: true, left: true, points: record.bestOf.map(point) },
      { name: "tuned", colour: "var(--lf-hue-1)", strong: true, dots: true, points: [...runs].sort((a, b) => a.leash - b.leash).map(point),
        mark: run && point(run) },
    ] });
    texts.replaceChildren(title(run ? "The first three texts it wrote, by seed 0" : "Not recorded"), ...(run ? run.texts.map(told) : []));
    publish({ ...state, run: run ?? null }, run
      ? `β = ${run.beta}: Anna is named ${format(run.reward)} times, ${format(run.leash)} nats from the teller, ${percent(run.possible)} of the texts are possible.`
      : `With five times the steps β = ${record.longer.map(({ beta }) => beta).join(" and ")} were recorded.`);
  }
  set(START);
  addressed();
}
