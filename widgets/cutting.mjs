// A matrix product cut over devices (chapter on several devices): who holds which numbers, and who sends what to whom, step by step.
import {
  capital, choice, counted, factList, frame, format, heat, html, matmul, note, panel, parkMiller, playButton, rowHead, slider, stroke, svg, table, times,
  total, words,
} from "./common.mjs";

const SIZE = 8; // rows and columns of each matrix
const BYTES = 4; // of a number
const CUTS = { rows: "rows of X", columns: "columns of W", summed: "the summed axis", gathered: "weights gathered" };
const START = { cut: "summed", devices: 4, device: 0, step: 2 };
const ALL = times(SIZE, (i) => i);
const draws = parkMiller(18);
const whole = () => times(SIZE, () => times(SIZE, () => Math.floor(5 * draws()) - 2));
const [X, W] = [whole(), whole()];

const after = (device, devices, by) => (((device + by) % devices) + devices) % devices;
const indices = (piece, devices) => times(SIZE / devices, (i) => (piece * SIZE) / devices + i);

/** What is done after another: each step has a name, and sends or does not. */
function program(cut, devices) {
  const around = (name) => times(devices - 1, () => name);
  return { rows: ["multiply"], columns: ["multiply", ...around("all-gather")],
    summed: ["multiply", ...around("reduce-scatter"), ...around("all-gather")], gathered: [...around("all-gather"), "multiply"] }[cut];
}

/** The pieces that a device has after so many rounds of an all-gather that it began with the piece `first`. */
const gathered = (first, rounds, devices) => times(rounds + 1, (i) => after(first, devices, -i));

/** The devices whose summands a device has in each piece, after so many rounds of a reduce-scatter. */
function summandsOf(device, rounds, devices) {
  return times(devices, (piece) => {
    const came = after(device - 1 - piece, devices, 0); // in which round the piece came here
    return came < rounds ? times(came + 2, (i) => after(device, devices, -i)) : [device];
  });
}

/** Which piece each device sends in a step, or null. */
function sendingOf({ cut, devices, step }) {
  const names = program(cut, devices);
  const name = names[step - 1];
  if (!name || name === "multiply") return null;
  const round = step - 1 - names.indexOf(name);
  const first = name === "all-gather" && cut === "summed" ? 1 : 0;
  return times(devices, (device) => after(device + first, devices, -round));
}

/** What a device holds after a step: rows and columns of X and W, and of Y the devices whose summands are in each number. */
function holdings({ cut, devices, step }, device) {
  const done = program(cut, devices).slice(0, step);
  const rounds = (name) => done.filter((each) => each === name).length;
  const own = indices(device, devices);
  const pieces = gathered(cut === "summed" ? after(device, devices, 1) : device, rounds("all-gather"), devices);
  const known = pieces.flatMap((piece) => indices(piece, devices));
  const x = { rows: cut === "rows" || cut === "gathered" ? own : ALL, columns: cut === "summed" ? own : ALL };
  const weight = { rows: { summed: own, gathered: known }[cut] ?? ALL, columns: cut === "columns" ? own : ALL };
  const everyone = times(devices, (i) => i);
  const reduced = summandsOf(device, rounds("reduce-scatter"), devices);
  const summands = (i, j) => {
    if (!done.includes("multiply")) return [];
    if (cut === "columns") return known.includes(j) ? everyone : [];
    if (cut !== "summed") return own.includes(i) ? everyone : [];
    return rounds("all-gather") && known.includes(i) ? everyone : reduced[Math.floor((i * devices) / SIZE)];
  };
  return { x, weight, summands: ALL.map((i) => ALL.map((j) => summands(i, j))) };
}

/** The product that each device adds up alone, if the summed axis is cut. */
const partial = (device, devices) => {
  const own = indices(device, devices);
  return matmul(X.map((line) => own.map((m) => line[m])), own.map((m) => W[m]));
};
function product({ devices }, summands) {
  const parts = times(devices, (device) => partial(device, devices));
  return summands.map((line, i) => line.map((from, j) => (from.length ? total(from.map((device) => parts[device][i][j])) : null)));
}

/** A matrix of which only some numbers are held. */
function grid(name) {
  const cells = ALL.map(() => ALL.map(() => html("td", { class: "lf-cell" })));
  const node = table(name, ["", ...ALL.map(String)], cells.map((line, i) => [rowHead(String(i)), line]), { class: "lf-tight" });
  function show(values, limit, moving = () => false, whole = () => true) {
    values.forEach((line, i) => line.forEach((value, j) => {
      const cell = cells[i][j];
      cell.textContent = value === null ? "" : format(value, 0);
      heat(cell, value ?? 0, limit);
      cell.classList.toggle("lf-absent", value === null);
      cell.classList.toggle("lf-partial", value !== null && !whole(i, j));
      cell.classList.toggle("lf-chosen", moving(i, j));
    }));
  }
  return { node, show };
}

const [WIDTH, MIDDLE, RADIUS, DOT] = [340, 130, 98, 21];
/** The ring of devices, of which one can be chosen by a tap, and above each of its arrows the piece that goes there. */
function ring(choose) {
  const node = svg("svg", { viewBox: `0 0 ${WIDTH} ${2 * MIDDLE}`, role: "img", style: "width: 100%; max-width: 24rem" });
  const at = (turn, radius = RADIUS) => [WIDTH / 2 + radius * 1.25 * Math.sin(2 * Math.PI * turn), MIDDLE - radius * Math.cos(2 * Math.PI * turn)];
  function arrow(device, devices, sends) {
    const [gap, kind] = [DOT / (6.4 * RADIUS) + 0.012, sends === null ? "lf-frame" : "lf-curve lf-strong"];
    const path = times(9, (i) => (device + (i / 8)) / devices + gap * (1 - i / 4)).map((turn) => at(turn));
    const [end, before] = [path.at(-1), path.at(-2)];
    const angle = (180 / Math.PI) * Math.atan2(end[1] - before[1], end[0] - before[0]);
    const [x, y] = at((device + 0.5) / devices, devices === 2 ? RADIUS * 0.72 : RADIUS * 1.2);
    return [stroke(kind, path.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join(""), { style: "color: var(--lf-hue-2)" }),
      sends === null ? [] : svg("path", { d: "M0 0L-9 4.5V-4.5Z", fill: "var(--lf-hue-2)", transform: `translate(${end}) rotate(${angle})` }),
      sends === null ? [] : words(String(sends), x, y + 5, { class: "lf-piece" })].flat();
  }
  function draw({ devices, device }, sending, label) {
    const arrows = times(devices, (each) => arrow(each, devices, sending && sending[each])).flat();
    const dots = times(devices, (each) => {
      const [x, y] = at(each / devices);
      const chosen = each === device;
      return svg("g", { onclick: () => choose(each), style: "cursor: pointer" },
        svg("circle", { cx: x, cy: y, r: DOT, class: chosen ? "lf-device lf-looked" : "lf-device" }), words(String(each), x, y + 5));
    });
    node.replaceChildren(...arrows, ...dots);
    node.setAttribute("aria-label", label);
  }
  return { node, draw };
}

const SAYS = {
  hold: "nothing is computed yet", multiply: "each device multiplies what it holds",
  "all-gather": "all-gather: each device sends a piece on, and keeps it", "reduce-scatter": "reduce-scatter: each device sends a piece on, to be added",
};

export function mount(element) {
  const figure = frame(element, { label: "a matrix product, cut over several devices", start: START, draw });
  const { controls, stage, set, bind } = figure;
  const step = slider({ label: "Step", max: 15, onchange: (value) => { play.run(false); set({ step: value }); } });
  const device = slider({ label: "Look at device", max: SIZE - 1, onchange: (value) => set({ device: value }) });
  const anew = (change) => { play.run(false); set({ step: 0, ...change }); };
  bind({ cut: choice({ legend: "Cut", options: Object.entries(CUTS), onchange: (cut) => anew({ cut }) }),
    devices: choice({ legend: "Devices", options: [2, 4, 8].map((count) => [count, String(count)]), onchange: (count) => anew({ devices: Number(count) }) }) });
  const play = playButton(() => {
    const { cut, devices, step: now } = figure.settings;
    if (now < program(cut, devices).length) set({ step: now + 1 }); else play.run(false);
  });
  controls.append(step.node, play.node, device.node);
  const drawing = ring((chosen) => set({ device: chosen }));
  const [x, weight, y] = ["X", "W", "Y = XW"].map(grid);
  const facts = factList(["it sends now", "has sent", "in the end", "all devices, in the end"]);
  stage.append(panel(drawing.node, facts.node, note("Numbers at the arrows: the piece that is sent. A tap on a device looks into it.")),
    html("div", { class: "lf-panel lf-grids" }, x.node, weight.node, y.node),
    note("Empty: this device does not hold the number. Striped: a sum that lacks summands. Framed: what it sends in this step."));

  function draw(state) {
    const names = program(state.cut, state.devices);
    if (state.device >= state.devices || state.step > names.length) {
      return set({ device: Math.min(state.device, state.devices - 1), step: Math.min(state.step, names.length) });
    }
    const [sending, held] = [sendingOf(state), holdings(state, state.device)];
    const before = holdings({ ...state, step: Math.max(0, state.step - 1) }, state.device);
    const name = names[state.step - 1] ?? "hold";
    const piece = (BYTES * SIZE ** 2) / state.devices;
    const sends = (upTo) => piece * names.slice(0, upTo).filter((each) => each !== "multiply").length;
    const isMoving = (i) => sending !== null && indices(sending[state.device], state.devices).includes(i);
    const masked = (values, { rows, columns }) => values.map((line, i) => line.map((value, j) => (rows.includes(i) && columns.includes(j) ? value : null)));
    const values = product(state, held.summands);
    [step.max, device.max] = [names.length, state.devices - 1];
    [step.value, device.value] = [state.step, state.device];
    x.show(masked(X, held.x), 3);
    weight.show(masked(W, held.weight), 3, (i) => state.cut === "gathered" && isMoving(i));
    y.show(values, 24, (i, j) => state.cut !== "gathered" && isMoving(state.cut === "columns" ? j : i) && before.summands[i][j].length > 0,
      (i, j) => held.summands[i][j].length === state.devices);
    const bytes = (count) => counted(count, "byte");
    const last = sends(names.length);
    facts.show([bytes(sending ? piece : 0), bytes(sends(state.step)), bytes(last), bytes(last * state.devices)]);
    const said = `Step ${state.step} of ${names.length}, ${state.devices} devices, cut: ${CUTS[state.cut]}. ${capital(SAYS[name])}`;
    const label = `A ring of ${state.devices} devices. ${SAYS[name]}.`;
    drawing.draw(state, sending, label);
    const counts = { held: [held.x, held.weight].map(({ rows, columns }) => rows.length * columns.length) };
    return figure.publish({ ...state, x: X, weight: W, product: values, summands: held.summands, sending, sent: sends(state.step), inTheEnd: last, ...counts },
      `${said}${sending ? `, ${bytes(piece)}` : ""}. Device ${state.device} has sent ${bytes(sends(state.step))} of ${last}.`);
  }
  set(START);
  figure.addressed({ step: step.kind, device: device.kind }, { go: anew });
}
