// Gradient descent on three logits (the primer): the mean surprise at what came, one step after the other.
import { whole } from "./address.mjs";
import { chart, ticksBetween } from "./chart.mjs";
import { button, counted, format, frame, heat, html, note, panel, rowHead, slider, softmax, table } from "./common.mjs";

const WORDS = ["lamp", "ball", "box"];
const SHARES = [5 / 8, 2 / 8, 1 / 8];
const RATES = [0.25, 0.5, 1, 2, 4, 6, 8, 16];
const MOST = 40; // steps in the chart
const SMALLEST = -SHARES.reduce((sum, share) => sum + share * Math.log(share), 0);

/** Mean surprise and its gradient at these logits. */
function surprise(logits) {
  const probabilities = softmax(logits);
  const loss = -SHARES.reduce((sum, share, w) => sum + share * Math.log(probabilities[w]), 0);
  return { probabilities, loss, gradient: probabilities.map((probability, w) => probability - SHARES[w]) };
}

/** The logits after a number of steps from zero, and the loss before each step and after the last. */
function descend(rate, steps) {
  let logits = SHARES.map(() => 0);
  const losses = [surprise(logits).loss];
  for (let step = 0; step < steps; step++) {
    const { gradient } = surprise(logits);
    logits = logits.map((logit, w) => logit - rate * gradient[w]);
    losses.push(surprise(logits).loss);
  }
  return { logits, losses };
}

export function mount(element) {
  const start = { rate: 1, steps: 0 };
  const figure = frame(element, { label: "gradient descent on three logits", start, draw });
  const { set } = figure;
  const rate = slider({ label: "Learning rate", values: RATES, onchange: (value) => set({ rate: value, steps: 0 }) });
  const go = (number) => { if (figure.settings.steps < MOST) set({ steps: Math.min(MOST, figure.settings.steps + number) }); };
  const buttons = [button("One step", () => go(1)), button("Ten steps", () => go(10))];
  figure.controls.append(rate.node, ...buttons);
  const columns = ["came", "logit", "probability", "gradient"];
  const cells = WORDS.map(() => columns.map((name) => html("td", { class: name === "gradient" ? "lf-cell" : null })));
  const numbers = table("", ["word", ...columns], WORDS.map((name, w) => [rowHead(name), cells[w]]));
  const drawing = chart();
  figure.stage.append(html("div", { class: "lf-panel lf-table", style: "flex-basis: 21rem" }, numbers,
    note("“gradient”: probability minus share. A step subtracts the learning rate times the gradient from each logit. " +
      "Another learning rate begins anew.")), panel(drawing.node));

  function draw(state) {
    const { logits, losses } = descend(state.rate, state.steps);
    const { probabilities, gradient, loss } = surprise(logits);
    const steps = counted(state.steps, "step");
    rate.value = state.rate;
    for (const each of buttons) each.setAttribute("aria-disabled", state.steps === MOST);
    numbers.caption.textContent = `After ${steps}, loss ${format(loss, 3)} nats`;
    cells.forEach((row, w) => {
      [SHARES[w], logits[w], probabilities[w], gradient[w]].forEach((value, i) => { row[i].textContent = format(value, 3); });
      heat(row[3], gradient[w]);
    });
    const high = Math.max(1.2, ...losses) * 1.05;
    drawing.draw({ label: `The loss after each of ${state.steps} steps, beside the smallest there is, ${format(SMALLEST)}`,
      x: { low: 0, high: MOST, ticks: [0, 10, 20, 30, 40], show: String, name: "step" },
      y: { low: high > 2 ? 0 : 0.8, high, show: (value) => format(value, high > 2 ? 0 : 1), name: "loss",
        ticks: high > 2 ? ticksBetween(0, high, 6) : [0.8, 0.9, 1, 1.1, 1.2].filter((value) => value < high) },
      curves: [{ name: "smallest", colour: "var(--lf-soft)", dash: "4 3", points: [[0, SMALLEST], [MOST, SMALLEST]] },
        { name: "", colour: "var(--lf-hue-1)", strong: true, dots: true, points: losses.map((value, step) => [step, value]) }] });
    figure.publish({ ...state, logits, probabilities, gradient, losses },
      `${steps} at a learning rate of ${state.rate}: the loss is ${format(loss, 3)} nats` +
      `${loss > losses[0] ? ", more than at the start" : loss - SMALLEST < 0.005 ? ", hardly above the smallest there is" : ""}.`);
  }
  set(start);
  figure.addressed({ rate: rate.kind, steps: whole(0, MOST) });
}
