// A head learns to look things up (chapter on self-attention): the page trains the model, and shows what changes while it does.
import { list, oneOf, setting, whole } from "./address.mjs";
import { chart, ticksBetween } from "./chart.mjs";
import {
  bindTo, button, checkbox, clamp, counted, format, frame, heat, html, isCalm, largest, note, onArrows, panel, rowHead, slider, stroke, svg, table,
  times, title, uniqueId, wideNote, words,
} from "./common.mjs";
import { newLearner } from "./engine/client.mjs";
import { typeset } from "./formula.mjs";

const LETTERS = [..."ABCDEFGHIJKLMNOP"];
const RATES = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1];
const WIDTHS = [1, 2, 3, 4, 8, 16, 32];
const STOPS = [250, 2000]; // the chapter's run, and that of its last exercise
const TESTS = 2000; // fresh examples
const TURNS = 40; // other learning rates on the way, of which a link tells
const percent = (share) => `${format(100 * share, 1)} %`;
const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));

/** The next step at which all the tests are made: every tenth as far as the chapter goes, then every fiftieth. */
function testAfter(step) {
  const often = step < STOPS[0] ? 10 : 50;
  return step + often - (step % often);
}

/** The step to show next: 40 a second at first, later every fifth. Who wants no motion sees those with a test. */
function lookAfter(step, milliseconds) {
  if (isCalm()) return testAfter(step);
  return step + (step < STOPS[0] ? clamp(Math.round(milliseconds / 25), 1, 5) : 5);
}

/** Two charts that grow with every look: loss and share of right answers, of attention and of equal weights. */
function curves() {
  const [loss, accuracy] = [chart(), chart()];
  const titles = [title(), title()];
  const nodes = [loss, accuracy].map(({ node }, i) => panel(titles[i], node));
  let points = [];
  function draw({ step, losses, accuracies }) {
    const wide = STOPS.find((stop) => step <= stop);
    const x = { low: 0, high: wide, ticks: ticksBetween(0, wide, 6, [50, 500]), show: String, name: "step" };
    const lines = (of) => [
      { name: "best bet", colour: "var(--lf-soft)", dash: "4 3", points: [[0, of(points[0])[2]], [wide, of(points[0])[2]]] },
      { name: "equal weights", colour: "var(--lf-hue-2)", points: points.map((point) => [point.step, of(point)[1]]) },
      { name: "attention", colour: "var(--lf-hue-1)", strong: true, points: points.map((point) => [point.step, of(point)[0]]) }];
    const high = Math.max(2.6, ...points.flatMap((point) => point.losses));
    loss.draw({ label: `Loss after ${step} steps: attention ${format(losses[0], 3)}, equal weights ${format(losses[1], 3)}`, x,
      y: { low: 0, high: 1.04 * high, ticks: ticksBetween(0, high, 6, [0.5, 1, 2, 5, 10, 20]), show: (value) => format(value, high < 3 ? 1 : 0) },
      curves: lines((point) => point.losses) });
    accuracy.draw({ label: `Right answers after ${step} steps: attention ${percent(accuracies[0])}, equal weights ${percent(accuracies[1])}`, x,
      y: { low: 0, high: 1.02, ticks: [0, 0.25, 0.5, 0.75, 1], show: (value) => `${100 * value}%` },
      curves: lines((point) => point.accuracies) });
  }
  function add(look) {
    titles[0].textContent = `Loss, in nats, after ${look.step} steps`;
    if (!look.losses) return;
    titles[1].textContent = `Right answers: ${percent(look.accuracies[0])}`;
    points = look.step ? [...points, look] : [look];
    draw(look);
  }
  return { nodes, add };
}

/** Change the words of a node only if they are others: a page as long as a chapter is slow to lay out. */
function write(node, text) { if (node.textContent !== text) node.textContent = text; }

/** Six examples, a row each: the pairs and how much of each is read, the question's own share, and the answer. */
function examplesTable() {
  const rows = times(6, () => ({ head: rowHead(), answer: html("td"), cells: times(9, () => html("td", { class: "lf-cell" }, html("b"), " ")) }));
  const node = table("Where the question looks, in %", ["asked", ..."12345678", "?", "says"],
    rows.map(({ head, cells, answer }) => [head, ...cells, answer]), { class: "lf-tight" });
  function update({ examples: { names, numbers, place, answer: wanted }, weights, answers }) {
    rows.forEach(({ head, cells, answer }, n) => {
      head.textContent = `${LETTERS[names[n][place[n]]]}?`;
      cells.forEach((cell, m) => {
        write(cell.firstChild, m < 8 ? LETTERS[names[n][m]] + numbers[n][m] : "?");
        write(cell.lastChild, format(100 * weights[n][m], 0));
        cell.classList.toggle("lf-chosen", m === place[n]);
        heat(cell, weights[n][m]);
      });
      const isRight = answers[n] === wanted[n];
      answer.className = isRight ? "lf-sum lf-one" : "lf-sum lf-not-one";
      answer.textContent = `${answers[n]} ${isRight ? "✓" : "✗"}`;
    });
  }
  return { node, update };
}

/** Sixteen names against sixteen: each query's weights, if all names stood there. A pointer or the arrow keys read one off. */
function namesMap() {
  const [side, left, top] = [18, 40, 38];
  const place = (i, start) => start + side * i;
  const square = (i, j) => svg("rect", { x: place(j, left), y: place(i, top), width: side, height: side, class: "lf-share" });
  const rects = LETTERS.map((_, i) => LETTERS.map((_, j) => square(i, j)));
  const cursor = svg("rect", { width: side, height: side, class: "lf-cursor" });
  const node = svg("svg", { viewBox: "0 0 346 334", role: "img", tabindex: 0 },
    stroke("lf-frame", `M${left} ${top}h${16 * side}v${16 * side}h${-16 * side}z`), rects.flat(),
    words("key of", left + 8 * side, 14), words("query of", 14, top + 8 * side, { transform: `rotate(-90 14 ${top + 8 * side})` }),
    LETTERS.flatMap((letter, i) => [words(letter, place(i, left) + side / 2, 32), words(letter, 30, place(i, top) + 14)]), cursor);
  const readout = note();
  let [at, matches] = [[0, 0], null];
  function say() {
    cursor.setAttribute("x", place(at[1], left));
    cursor.setAttribute("y", place(at[0], top));
    readout.textContent = `Query of ${LETTERS[at[0]]}, key of ${LETTERS[at[1]]}: weight ${format(matches[at[0]][at[1]], 3)}`;
  }
  function move(i, j) { at = [clamp(i, 0, 15), clamp(j, 0, 15)]; say(); }
  node.addEventListener("pointermove", ({ clientX, clientY }) => {
    const box = node.getBoundingClientRect();
    const scale = 346 / box.width;
    move(Math.floor(((clientY - box.top) * scale - top) / side), Math.floor(((clientX - box.left) * scale - left) / side));
  });
  onArrows(node, (down, right) => move(at[0] + down, at[1] + right));
  function update(look) {
    matches = look.matches;
    rects.forEach((row, i) => row.forEach((rect, j) => rect.setAttribute("fill-opacity", matches[i][j].toFixed(3))));
    node.setAttribute("aria-label", `Sixteen names against sixteen: ${matched(look)} of 16 look for themselves. Arrow keys read off a weight.`);
    say();
  }
  return { node: panel(title("Does each name look for itself?"), node, readout), update };
}

/** How many names have their best score with themselves. */
const matched = ({ matches }) => matches.filter((row, i) => largest(row) === i).length;

function sentence({ step, target, accuracies, ready, dK }) {
  const [attention, equal, bet] = accuracies.map(percent);
  if (!ready) return "A new model is drawn.";
  if (step < target) return "The head learns. Its numbers are read out when it rests.";
  if (step === 0) return [...typeset(`Nothing is learned yet: with $d_{k} = ${dK}$ `), `attention has ${attention} of 2,000 fresh examples right, equal weights ${equal}.`];
  return `After ${counted(step, "step")} attention has ${attention} of 2,000 fresh examples right, equal weights ${equal}; ` +
    `a bet on the commonest number gets ${bet} on average.`;
}

/** A model and how far it is to learn. Each look at it goes to `show`, and trouble to `fail`; the work is the worker's. */
function learning(show, fail) {
  const id = uniqueId("recall");
  const firsts = new Map(); // the first look at each new model: a Reset need not wait for it
  let [learner, step, count, isBusy] = [null, 0, 0, false];
  const goal = { target: 0, rate: 0, past: [] }; // `past`: until which step it is to learn at which other rate
  let past = []; // until which step it learned at which rate
  /** A new model, which knows nothing; tells at once if it was seen before. */
  function renew(options) {
    const [mine, key] = [++count, JSON.stringify(options)];
    [learner, step, past] = [null, 0, []];
    Object.assign(goal, { target: 0, past: [] });
    const make = async () => {
      const made = await newLearner(id, { ...options, tests: TESTS });
      const first = firsts.get(key) ?? await made.ask("look", true);
      if (mine !== count) return; // another was wanted meanwhile
      if (!firsts.has(key)) show(first);
      firsts.set(key, first);
      learner = made;
      run();
    };
    if (firsts.has(key)) show(firsts.get(key));
    return { isKnown: firsts.has(key), made: make().catch(fail) };
  }

  /** Learn until the step that is aimed at, one look a frame: the page, and its buttons, stay free in between. */
  async function run() {
    if (isBusy) return;
    isBusy = true;
    let before = performance.now();
    while (learner && step < goal.target) {
      const [mine, { target }, now] = [count, goal, performance.now()];
      const [turn, rate] = goal.past.find(([until]) => until > step) ?? [target, goal.rate];
      const next = Math.min(target, turn, lookAfter(step, now - before), testAfter(step));
      before = now;
      const asked = learner.ask("advance", next - step, rate, next === target || next === testAfter(step));
      const look = await asked.catch((error) => { goal.target = step; fail(error); });
      if (look && mine === count) {
        step = next;
        past = [...past.filter((each, i) => i < past.length - 1 || each[1] !== rate), [step, rate]];
        show(look);
      }
      await nextFrame();
    }
    isBusy = false;
  }
  function aim(target, rate, past = goal.past) {
    Object.assign(goal, { target, rate, past });
    run();
  }
  return { renew, aim, get past() { return past; } };
}

/** The buttons and sliders: `on.aim(step)`, `on.rate(value)`, and `on.renew({ dK: 3 })` for what begins anew; `on.now()` is where it is. */
function settings(on) {
  const one = button("One step", () => on.aim(on.now().step + 1));
  const train = button("Train", () => {
    const { step, target } = on.now();
    // A pause lasts from the next test on, so that the numbers shown belong together.
    on.aim(target > step ? testAfter(step) : STOPS.find((stop) => stop > step));
  });
  const rate = slider({ label: "Learning rate", values: RATES, onchange: (value) => on.rate(value) });
  const bound = bindTo(on.renew, { scaled: checkbox({ label: typeset("scores divided by $√{d_{k}}$") }), rate,
    dK: slider({ label: typeset("Width of keys $d_{k}$"), values: WIDTHS }), seed: slider({ label: "Seed", max: 9 }) });
  function update({ step, target, ...state }) {
    const stop = STOPS.find((each) => each > step);
    train.textContent = target > step ? "Pause" : step === 0 ? `Train ${stop} steps` : stop ? `Go on to ${stop}` : "Trained";
    for (const each of [train, one]) each.setAttribute("aria-disabled", !stop);
    bound.show(state);
  }
  return { nodes: [train, one, ...bound.nodes], kinds: bound.kinds, update };
}

/** The charts, the examples and the names, on the stage; `show(seen, look)` fills them. */
function pictures(stage) {
  const [lines, examples, names] = [curves(), examplesTable(), namesMap()];
  stage.append(...lines.nodes, html("div", { class: "lf-panel lf-table" }, examples.node), names.node,
    wideNote("Outlined: the pair that holds the name asked for. Best bet: what is possible, on average, " +
      "without knowing which number belongs to which name. Another learning rate counts from the next step; all else begins anew."));
  return (seen, look) => {
    lines.add(seen);
    examples.update(look);
    names.update(look);
  };
}

export async function mount(element) {
  const start = { seed: 0, dK: 32, scaled: true, rate: 0.005, target: 0, ready: true, error: null };
  let [state, look] = [start, null];
  const { controls, stage, publish, addressed } = frame(element, { label: "a head learns to look things up", reset: () => renew(start) });
  const fill = pictures(stage);
  const model = learning(show, (error) => {
    if (!look) throw error; // then the picture stays
    state = { ...state, target: look.step, error: error.message };
    render();
  });
  const buttons = settings({ aim, now: () => ({ ...state, ...look }), renew: (change) => renew({ ...state, ...change }),
    rate: (rate) => { state = { ...state, rate }; aim(state.target); } });
  controls.append(...buttons.nodes);

  function renew(settings) {
    state = { ...settings, target: 0, error: null, ready: true };
    const { isKnown, made } = model.renew({ seed: state.seed, dK: state.dK, scaled: state.scaled });
    if (!isKnown) { state.ready = false; if (look) render(); }
    return made;
  }
  function aim(target, past) {
    if (!(target <= STOPS[1])) return;
    state = { ...state, target };
    model.aim(target, state.rate, past);
    render();
  }
  function show(seen) {
    look = { ...look, ...seen };
    state.ready = true;
    fill(seen, look);
    render(Boolean(seen.losses));
  }
  function render(isNews = true) {
    const shown = { ...state, ...look, found: matched(look), busy: !state.ready || look.step < state.target };
    buttons.update(shown);
    if (isNews) publish(shown, state.error ?? sentence(shown));
  }
  await renew(start);
  const { dK, ...kinds } = buttons.kinds;
  await addressed({ ...kinds, width: setting("dK", dK), steps: whole(0, STOPS[1]), turns: list(whole(1, STOPS[1]), TURNS), rates: list(oneOf(RATES), TURNS) },
    { now, go });

  /** The settings, the steps that were taken, and where on the way the rate was another than now. */
  function now() {
    const past = model.past.at(-1)?.[1] === state.rate ? model.past.slice(0, -1) : model.past;
    return { ...state, steps: look.step, turns: past.map(([until]) => until), rates: past.map(([, rate]) => rate) };
  }
  async function go({ steps, turns, rates, ...wanted }) {
    const made = renew(wanted);
    if (turns.length === rates.length) aim(steps, turns.map((until, i) => [until, rates[i]])); // it begins once the model is made
    await made;
  }
}
