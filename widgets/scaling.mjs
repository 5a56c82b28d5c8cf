// Scaling (chapter on scaling laws): the best size of a model for a given work, and the loss that is foretold of any other size.
// `scaling.json` holds the law of the recorded trainings, and laws of draws of them; lab/figures/scaling_laws.py writes it.
import { chart, powerOfTen, threeFigures } from "./chart.mjs";
import { format, frame, html, note, panel, slider, stored, title, wide } from "./common.mjs";

const START = { work: 13, size: 5.25 }; // logarithms to base 10
const steps = (low, high, by) => Array.from({ length: Math.round((high - low) / by) + 1 }, (_, i) => Number((low + i * by).toFixed(2)));
const WORKS = steps(11.5, 14.5, 0.25), SIZES = steps(3.5, 7, 0.25);
const CURVE = steps(3.5, 7, 0.05);

/** The loss that a law gives, and the size with the lowest for a work of six operations for each number and token. */
const lossOf = ([floor, a, p, b, q], size, tokens) => floor + a * size ** -p + b * tokens ** -q;
const bestOf = ([, a, p, b, q], work) => ((p * a) / (q * b)) ** (1 / (p + q)) * (work / 6) ** (q / (p + q));

/** Where nine of ten lie. */
function between(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  return [at(0.05), at(0.95)];
}

export async function mount(element) {
  const { law, draws } = await stored("scaling.json");
  const { stage, bind, set, publish, addressed } = frame(element, { label: "the best size for a given work", start: START, draw });
  const tens = (label, values) => slider({ label, values, show: (place) => threeFigures(10 ** place) });
  bind({ work: tens("Work, operations", WORKS), size: tens("Numbers of the model", SIZES) });
  const drawing = chart();
  drawing.node.style.maxWidth = "30rem";
  const found = panel();
  stage.append(wide(drawing.node, note("Foretold nats per word above the floor, by size, all with the same work. Dotted: laws of draws of the trainings.")), found);

  function draw(state) {
    const work = 10 ** state.work, size = 10 ** state.size, floor = law[0];
    const above = (each, at) => lossOf(each, at, work / (6 * at)) - floor;
    const points = (each) => CURVE.map((place) => [place, above(each, 10 ** place)]).filter(([, value]) => value < 0.4);
    const best = bestOf(law, work), range = between(draws.map((each) => bestOf(each, work)));
    const loss = lossOf(law, size, work / (6 * size)), margin = between(draws.map((each) => lossOf(each, size, work / (6 * size))));
    const mark = above(law, size) < 0.4 ? [state.size, above(law, size)] : null;
    drawing.draw({
      label: "Loss by size",
      x: { low: 3.5, high: 7, ticks: [4, 5, 6, 7], show: powerOfTen, name: "numbers" },
      y: { low: 0, high: 0.4, ticks: [0, 0.1, 0.2, 0.3, 0.4], show: (value) => format(value, 1) },
      curves: [...draws.slice(0, 12).map((each) => ({ colour: "var(--lf-soft)", dash: "1 3", points: points(each) })),
        { name: "law", colour: "var(--lf-hue-1)", strong: true, points: points(law), mark }],
    });
    const line = (name, value, [low, high], show) => html("p", {}, `${name}: ${show(value)} (${show(low)} to ${show(high)})`);
    found.replaceChildren(title("Foretold, and where nine of ten draws lie"),
      line("Best size", best, range, threeFigures),
      line("Loss of this size", loss, margin, (nats) => format(nats, 3)),
      html("p", {}, `It reads ${threeFigures(work / (6 * size))} words.`));
    publish({ ...state, best, range, loss, margin }, `Work ${threeFigures(work)}: best size ${threeFigures(best)}. A model of ${threeFigures(size)} numbers is foretold ${format(loss, 3)} nats per word.`);
  }
  set(START);
  addressed();
}
