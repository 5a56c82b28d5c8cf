// Four ways to tell attention where the tokens stand, for a query at n and a key at m (chapter 05).
import { choice, dot, format, frame, html, slider, svg } from "./common.mjs";
import { chart, threeFigures, ticksBetween } from "./chart.mjs";

const LAST = 63; // positions run from 0 to LAST
const WIDTH = 16; // of a code, a query, a key
const BASE = 10000;
const HEADS = 4;
const BUCKETS = 32;
const START = { scheme: "sinusoidal", n: 20, m: 12 };

const PAIRS = Array.from({ length: WIDTH / 2 }, (_, i) => i);
const RATES = PAIRS.map((i) => BASE ** ((-2 * i) / WIDTH)); // radians per position
const OFFSETS = Array.from({ length: 2 * LAST + 1 }, (_, i) => i - LAST); // n − m

// Random numbers, rounded to one decimal; the query is about the key with each pair turned back by five positions, so
// that the two fit best where the key stands five positions before the query.
const QUERY = [1.1, -1.2, 0.1, -1.1, 1.3, 0.8, -0.6, -0.3, 0.8, 0.4, -1.3, -0.8, 0.5, 0.1, -0.6, -0.8];
const KEY = [0.8, -0.4, 0.7, -0.8, 1.2, 0.8, -0.6, -0.3, -0.6, -1.3, -1.1, -0.8, 0.5, 0.1, -0.6, -0.8];

/** Columns 2i and 2i + 1: the sine and the cosine of the angle of pair i. */
const sinusoid = (position) => RATES.flatMap((rate) => [Math.sin(position * rate), Math.cos(position * rate)]);

/** Columns i and i + WIDTH / 2, turned together by the angle of pair i. */
function rotate(row, position) {
  const turned = PAIRS.map((i) => {
    const [sine, cosine] = [Math.sin(position * RATES[i]), Math.cos(position * RATES[i])];
    const [first, second] = [row[i], row[i + WIDTH / 2]];
    return [first * cosine - second * sine, first * sine + second * cosine];
  });
  return [...turned.map(([first]) => first), ...turned.map(([, second]) => second)];
}

const SLOPES = Array.from({ length: HEADS }, (_, h) => 2 ** ((-8 * (h + 1)) / HEADS));
const biases = (offset) => SLOPES.map((slope) => -slope * Math.abs(offset));

/** T5's bucket, two-way: half of them for keys after the query; up to distance 7 one each, then ever wider up to 128. */
function bucket(offset) {
  const [half, exact, distance] = [BUCKETS / 2, BUCKETS / 4, Math.abs(offset)];
  // The steps end at distances 8 · 16^(j/8): squared, that is 64 · 2^j, and no rounding moves them.
  const steps = [1, 2, 3, 4, 5, 6, 7].filter((j) => distance * distance >= exact * exact * 2 ** j).length;
  return (offset < 0 ? half : 0) + (distance < exact ? distance : exact + steps);
}

const CODES = {
  sinusoidal: {
    split: (row) => PAIRS.map((i) => [row[2 * i], row[2 * i + 1]]), rows: (n, m) => [sinusoid(n), sinusoid(m)],
    reach: 1, hands: ["code of n", "code of m"], clocks: "The two codes, pair by pair", score: "inner product of the two codes",
    note: "Each pair is a clock hand: the sine points right, the cosine up. Below it: what the pair adds to the inner product.",
  },
  rotary: {
    split: (row) => PAIRS.map((i) => [row[i], row[i + WIDTH / 2]]), rows: (n, m) => [rotate(QUERY, n), rotate(KEY, m)],
    reach: 1.65, hands: ["query, turned by n", "key, turned by m"], clocks: "The turned query and key, pair by pair",
    score: "turned query times turned key",
    note: "Pair i is columns i and i + 8, right and up, turned anticlockwise. Below it: what the pair adds to the product.",
  },
};
const LABELS = { sinusoidal: "sinusoidal", rotary: "rotary", alibi: "ALiBi", relative: "relative buckets" };

/** The numbers of a scheme that turns pairs: both rows, what each pair adds, the score now and at each offset. */
function compare({ rows, split }, n, m) {
  const both = rows(n, m);
  const [queries, keys] = both.map(split);
  const products = PAIRS.map((i) => dot(queries[i], keys[i]));
  const scoreAt = (offset) => { const [query, key] = rows(Math.max(offset, 0), Math.max(-offset, 0)); return dot(query, key); };
  return { rows: both, hands: [queries, keys], products, score: dot(...both), curve: OFFSETS.map(scoreAt) };
}

/** One hand and its tip: of n, thick, or of m, thin and dashed, so that each can be seen behind or before the other. */
const hand = (name) => [svg("path", { class: `lf-hand ${name}` }), svg("circle", { class: `lf-tip ${name}`, r: name === "lf-n" ? 5 : 3 })];
function point([line, tip], right, down) {
  line.setAttribute("d", `M0 0L${right} ${down}`);
  tip.setAttribute("cx", right);
  tip.setAttribute("cy", down);
}

/** A clock face with the hands of n and m, and a number below it. */
function clock(pair) {
  const hands = ["lf-n", "lf-m"].map(hand);
  const face = svg("svg", { viewBox: "-50 -50 100 100", role: "img" }, svg("circle", { class: "lf-face", r: 46 }),
    svg("path", { class: "lf-axis", d: "M-46 0H46M0 -46V46" }), hands.flat());
  const number = html("div");
  function show(points, reach, product, names) {
    points.forEach(([x, y], k) => point(hands[k], (44 * x) / reach, (-44 * y) / reach));
    const places = points.map(([x, y], k) => `${names[k]} at (${format(x)}, ${format(y)})`);
    face.setAttribute("aria-label", `Pair ${pair}: ${places.join("; ")}`);
    number.textContent = format(product);
  }
  return { node: html("div", {}, face, html("div", { class: "lf-note" }, `pair ${pair}`), number), show };
}

function swatch(name) {
  const parts = hand(name);
  point(parts, 24, 0);
  return svg("svg", { viewBox: "0 -6 30 12", "aria-hidden": "true" }, parts);
}

function facts(names) {
  const values = names.map(() => html("dd"));
  const node = html("dl", { class: "lf-facts lf-column" }, names.map((name, i) => html("div", {}, html("dt", {}, name), values[i])));
  return { node, show: (words) => words.forEach((word, i) => { values[i].textContent = word; }) };
}

/** A number of positions: rounded, with its thousands apart; a small one with one decimal. */
function period(value) {
  return value < 10 ? format(value, 1) : String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** A y axis that holds all values, with round ticks. */
function axis(values) {
  const [low, high] = [Math.min(0, Math.floor(Math.min(...values))), Math.max(0, Math.ceil(Math.max(...values)))];
  return { low, high, ticks: ticksBetween(low, high, 6, [1, 2, 4, 8, 16]), show: (value) => format(value, 0) };
}

export function mount(element) {
  let state = { ...START };
  const set = (change) => { state = { ...state, ...change }; render(); };
  const { controls, stage, publish } = frame(element, {
    label: "Live figure: four ways to tell attention the positions of query and key", reset: () => set(START),
  });
  const scheme = choice({ legend: "Scheme", options: Object.entries(LABELS), onchange: (value) => set({ scheme: value }) });
  const query = slider({ label: "Query at n", min: 0, max: LAST, oninput: (n) => set({ n }) });
  const key = slider({ label: "Key at m", min: 0, max: LAST, oninput: (m) => set({ m }) });
  const both = slider({ label: "Move both", min: 0, max: LAST, show: () => `${state.n} and ${state.m}`,
    oninput: (first) => { const step = first - Math.min(state.n, state.m); set({ n: state.n + step, m: state.m + step }); } });
  controls.append(scheme.node, query.node, key.node, both.node);

  const [clockTitle, clockNote, curveTitle] = [html("p", { class: "lf-title" }), html("p", { class: "lf-note" }), html("p", { class: "lf-title" })];
  const hands = ["lf-n", "lf-m"].map((name) => [swatch(name), html("span")]);
  const clocks = PAIRS.map(clock);
  const total = html("p", { class: "lf-total" });
  const clockView = html("div", {}, clockTitle, html("div", { class: "lf-key" }, hands.map((pair) => html("span", {}, pair))),
    html("div", { class: "lf-clocks" }, clocks.map(({ node }) => node)), total, clockNote);
  const cells = SLOPES.map(() => ["", "", ""].map(() => html("td")));
  const tops = ["slope", "bias", "e to the bias"].map((name) => html("th", { scope: "col" }, name));
  const alibiView = html("div", {}, html("table", {}, html("caption", {}, "What each head's score gets"),
    html("thead", {}, html("tr", {}, html("td"), tops)),
    html("tbody", {}, cells.map((row, h) => html("tr", {}, html("th", { scope: "row" }, `head ${h + 1}`), row)))),
    html("p", { class: "lf-note" }, "The bias is minus the slope times the distance of n and m. The weight, before the weights are made to " +
      "sum to 1, is thereby multiplied by e to the bias."));
  const bucketFacts = facts(["bucket", "offsets n − m that share it", "how many they are"]);
  const relativeView = html("div", {}, html("p", { class: "lf-title" }, "The bucket of this pair"), bucketFacts.node,
    html("p", { class: "lf-note" }, "Each head learns one bias for each of the 32 buckets: 0 to 15 for keys at or before the query, 16 to 31 " +
      "for keys after it. The figure shows which bucket is looked up; what stands in it is learned."));
  const curve = chart();
  const constancy = html("p", { class: "lf-note" }, "The dashed line marks the present offset. Move both, and nothing changes here.");
  const about = html("p", { class: "lf-note lf-wide" });
  stage.append(html("div", { class: "lf-panel" }, clockView, alibiView, relativeView),
    html("div", { class: "lf-panel" }, curveTitle, curve.node, constancy), about);

  const present = (values, offset) => [offset, values[offset + LAST]];
  const sign = (number) => format(number, 0);
  const plot = (label, y, curves, offset, name) => curve.draw({ label, y, curves,
    here: { at: offset, name: `offset ${sign(offset)}${name}` },
    x: { low: -LAST, high: LAST, ticks: [-60, -30, 0, 30, 60], show: sign, name: "offset n − m" } });
  const zip = (values) => OFFSETS.map((offset, i) => [offset, values[i]]);
  const hue = (i) => `var(--lf-hue-${i + 1})`;

  function showCodes(offset) {
    const way = CODES[state.scheme];
    const { rows, hands: points, products, score, curve: values } = compare(way, state.n, state.m);
    clockTitle.textContent = way.clocks;
    clockNote.textContent = way.note;
    curveTitle.textContent = `${way.score[0].toUpperCase()}${way.score.slice(1)}`;
    hands.forEach(([, words], k) => { words.textContent = way.hands[k]; });
    clocks.forEach(({ show }, i) => show([points[0][i], points[1][i]], way.reach, products[i], way.hands));
    total.textContent = `Sum over the pairs: ${format(score)}`;
    const rounds = RATES.map((rate) => period((2 * Math.PI) / rate)).join(", ");
    about.textContent = `Width 16, so eight pairs; base 10\u202f000. From pair to pair the hands turn slower: once round in ${rounds} positions.` +
      (state.scheme === "rotary" ? " The query and the key are fixed toy numbers, made to fit best at offset 5." : "");
    plot(`Curve: ${way.score} for offsets from −63 to 63; at offset ${sign(offset)} it is ${format(score)}.`, axis(values),
      [{ colour: hue(3), strong: true, points: zip(values), mark: present(values, offset) }], offset, `: ${format(score)}`);
    return [{ rows, products, score, curve: values, query: QUERY, key: KEY }, `the ${way.score} is ${format(score)}`];
  }

  function showAlibi(offset) {
    const [now, all] = [biases(offset), OFFSETS.map(biases)];
    const curves = SLOPES.map((_, h) => all.map((row) => row[h]));
    curveTitle.textContent = "Bias added to the scores";
    SLOPES.forEach((slope, h) => {
      [`1/${1 / slope}`, format(now[h], 3), threeFigures(Math.exp(now[h]))].forEach((words, j) => { cells[h][j].textContent = words; });
    });
    const list = now.map((bias) => format(bias, 3)).join(", ");
    about.textContent = "Four heads. Nothing is learned, added to the tokens or turned. Keys after the query count like those before it, " +
      "which are the only ones that the paper has.";
    plot(`Curves: the bias of four heads, highest at offset 0. At offset ${sign(offset)}: ${list}.`, axis(curves.flat()),
      curves.map((values, h) => ({ name: `head ${h + 1}`, colour: hue(h), points: zip(values), mark: present(values, offset) })), offset, "");
    return [{ slopes: SLOPES, bias: now, curves }, `the biases of heads 1 to 4 are ${list}`];
  }

  function showRelative(offset) {
    const [now, values] = [bucket(offset), OFFSETS.map(bucket)];
    const sharing = OFFSETS.filter((_, i) => values[i] === now);
    const range = [sharing[0], sharing.at(-1)].map(sign);
    curveTitle.textContent = "Bucket of each offset";
    bucketFacts.show([String(now), sharing.length === 1 ? range[0] : `${range[0]} to ${range[1]}`, String(sharing.length)]);
    about.textContent = "As in T5: 32 buckets, two-way, and all distances from 91 on in one. This figure's offsets reach to 63, so the last " +
      "two buckets of each side, 14 and 15, 30 and 31, stay empty. Bucket 16 stays empty always: offset 0 is in bucket 0.";
    const steps = OFFSETS.flatMap((value, i) => [null, [value - 0.5, values[i]], [value + 0.5, values[i]]]).slice(1);
    plot(`Steps: the bucket for offsets from −63 to 63; offset ${sign(offset)} lies in bucket ${now}.`,
      { low: 0, high: 32, ticks: [0, 8, 16, 24, 32], show: String },
      [{ colour: hue(3), strong: true, points: steps, mark: present(values, offset) }], offset, `: bucket ${now}`);
    return [{ bucket: now, buckets: values, sharing }, `the bucket is ${now}, shared by ${sharing.length} ${sharing.length === 1 ? "offset" : "offsets"}`];
  }

  function render() {
    const { n, m } = state;
    const offset = n - m;
    scheme.value = state.scheme;
    query.value = n;
    key.value = m;
    both.max = LAST - Math.abs(offset);
    both.value = Math.min(n, m);
    [clockView.hidden, alibiView.hidden, relativeView.hidden] = [!(state.scheme in CODES), state.scheme !== "alibi", state.scheme !== "relative"];
    const show = { sinusoidal: showCodes, rotary: showCodes, alibi: showAlibi, relative: showRelative }[state.scheme];
    const [numbers, words] = show(offset);
    const name = LABELS[state.scheme];
    publish({ ...state, offset, ...numbers },
      `${name[0].toUpperCase()}${name.slice(1)}: query at ${n}, key at ${m}, so the offset is ${sign(offset)}: ${words}.`);
  }
  render();
}

