// Gradient descent on three logits (the primer): the mean surprise at what came, one step after the other.
import { chart, ticksBetween } from "./chart.mjs";
import { format, frame, heat, html, slider, softmax } from "./common.mjs";

const DISHES = ["bread", "soup", "rice"];
const SHARES = [5 / 8, 2 / 8, 1 / 8];
const RATES = [0.25, 0.5, 1, 2, 4, 6, 8, 16];
const MOST = 40; // steps in the chart
const SMALLEST = -SHARES.reduce((sum, share) => sum + share * Math.log(share), 0);

/** Mean surprise and its gradient at these logits. */
export function surprise(logits) {
  const probabilities = softmax(logits);
  const loss = -SHARES.reduce((sum, share, w) => sum + share * Math.log(probabilities[w]), 0);
  return { probabilities, loss, gradient: probabilities.map((probability, w) => probability - SHARES[w]) };
}

/** The logits after a number of steps from zero, and the loss before each step and after the last. */
export function descend(rate, steps) {
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
  let state = { ...start };
  const set = (change) => { state = { ...state, ...change }; render(); };
  const { controls, stage, publish } = frame(element, { label: "Live figure: gradient descent on three logits", reset: () => set(start) });
  const rate = slider({ label: "Learning rate", min: 0, max: RATES.length - 1, show: (place) => String(RATES[place]),
    oninput: (place) => set({ rate: RATES[place], steps: 0 }) });
  const go = (number) => { if (state.steps < MOST) set({ steps: Math.min(MOST, state.steps + number) }); };
  const button = (number, words) => html("button", { type: "button", class: "lf-button", onclick: () => go(number) }, words);
  const buttons = [button(1, "One step"), button(10, "Ten steps")];
  controls.append(rate.node, ...buttons);

  const rows = DISHES.map((name) => ({ head: html("th", { scope: "row" }, name),
    cells: ["came", "logit", "probability", "gradient"].map((_, i) => html("td", { class: i === 3 ? "lf-cell" : null })) }));
  const heads = ["dish", "came", "logit", "probability", "gradient"].map((name) => html("th", { scope: "col" }, name));
  const caption = html("caption");
  const table = html("table", {}, caption, html("thead", {}, html("tr", {}, heads)),
    html("tbody", {}, rows.map(({ head, cells }) => html("tr", {}, head, cells))));
  const drawing = chart();
  stage.append(html("div", { class: "lf-panel lf-table", style: "flex-basis: 21rem" }, table,
    html("p", { class: "lf-note" }, "“gradient”: probability minus share. A step subtracts the learning rate times the gradient from each logit. " +
      "Another learning rate begins anew.")), html("div", { class: "lf-panel" }, drawing.node));

  function render() {
    const { logits, losses } = descend(state.rate, state.steps);
    const { probabilities, gradient, loss } = surprise(logits);
    rate.value = RATES.indexOf(state.rate);
    for (const each of buttons) each.setAttribute("aria-disabled", state.steps === MOST);
    caption.textContent = `After ${state.steps} ${state.steps === 1 ? "step" : "steps"}, loss ${format(loss, 3)} nats`;
    rows.forEach(({ cells }, w) => {
      [SHARES[w], logits[w], probabilities[w], gradient[w]].forEach((value, i) => { cells[i].textContent = format(value, 3); });
      heat(cells[3], gradient[w]);
    });
    const high = Math.max(1.2, ...losses) * 1.05;
    drawing.draw({ label: `The loss after each of ${state.steps} steps, beside the smallest there is, ${format(SMALLEST)}`,
      x: { low: 0, high: MOST, ticks: [0, 10, 20, 30, 40], show: String, name: "step" },
      y: { low: high > 2 ? 0 : 0.8, high, show: (value) => format(value, high > 2 ? 0 : 1), name: "loss",
        ticks: high > 2 ? ticksBetween(0, high, 6) : [0.8, 0.9, 1, 1.1, 1.2].filter((value) => value < high) },
      curves: [{ name: "smallest", colour: "var(--lf-soft)", dash: "4 3", points: [[0, SMALLEST], [MOST, SMALLEST]] },
        { name: "", colour: "var(--lf-hue-1)", strong: true, dots: true, points: losses.map((value, step) => [step, value]) }] });
    publish({ ...state, logits, probabilities, gradient, losses },
      `${state.steps} ${state.steps === 1 ? "step" : "steps"} at a learning rate of ${state.rate}: the loss is ${format(loss, 3)} nats` +
      `${loss > losses[0] ? ", more than at the start" : loss - SMALLEST < 0.005 ? ", hardly above the smallest there is" : ""}.`);
  }
  render();
}
