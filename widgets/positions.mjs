// Four ways to tell attention where the tokens stand (chapter on positions): the reader's sentence, a query at n, a key at m.
import { place, setting, whole } from "./address.mjs";
import {
  bindTo, capital, choice, clamp, dot, format, frame, html, note, panel, playButton, slider, stroke, svg, textField, times, title, uniqueId, wideNote,
} from "./common.mjs";
import { chart, threeFigures, ticksBetween } from "./chart.mjs";
import { matrix, rowsOf } from "./engine/arrays.mjs";
import { rotatePairs, sinusoidalPositions } from "./engine/layers.mjs";

const LAST = 63; // where the first token may stand at most; the largest offset, since LAST + 1 tokens are shown
const WIDTH = 16; // of a code, a query, a key
const HEADS = 4;
const BUCKETS = 32;
const START = {
  scheme: "sinusoidal", text: "the cat that chased the dog that lived next door has come home", unit: "words",
  first: 12, chosen: 9, wanted: 5, power: 4,
};

const PAIRS = times(WIDTH / 2, (i) => i);
const OFFSETS = times(2 * LAST + 1, (i) => i - LAST); // n − m
const ratesOf = (base) => PAIRS.map((i) => base ** ((-2 * i) / WIDTH)); // radians per position

// Random numbers, rounded to one decimal; the query is about the key with each pair turned back by five positions, at base
// 10 000, so that the two fit best where the key stands five positions before the query.
const QUERY = [1.1, -1.2, 0.1, -1.1, 1.3, 0.8, -0.6, -0.3, 0.8, 0.4, -1.3, -0.8, 0.5, 0.1, -0.6, -0.8];
const KEY = [0.8, -0.4, 0.7, -0.8, 1.2, 0.8, -0.6, -0.3, -0.6, -1.3, -1.1, -0.8, 0.5, 0.1, -0.6, -0.8];

const SLOPES = times(HEADS, (h) => 2 ** ((-8 * (h + 1)) / HEADS));

/** T5's bucket, two-way: half of them for keys after the query; up to distance 7 one each, then ever wider up to 128. */
function bucket(offset) {
  const [half, exact, distance] = [BUCKETS / 2, BUCKETS / 4, Math.abs(offset)];
  // The steps end at distances 8 · 16^(j/8): squared, that is 64 · 2^j, and no rounding moves them.
  const steps = [1, 2, 3, 4, 5, 6, 7].filter((j) => distance * distance >= exact * exact * 2 ** j).length;
  return (offset < 0 ? half : 0) + (distance < exact ? distance : exact + steps);
}

const baseOf = (power) => Math.round(10 ** power);
/** A number of positions: rounded, with its thousands apart; a small one with one decimal. */
const grouped = (value) => (value < 10 ? format(value, 1) : String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f"));
const hue = (i) => `var(--lf-hue-${i + 1})`;
const sign = (number) => format(number, 0);

// What each scheme makes of positions: rows for queries and keys at each of them, whose products are the scores; or else what
// it gives to an offset, a number or one for each head.
const SCHEMES = {
  sinusoidal: {
    name: "sinusoidal", what: "inner product of the two codes", hands: ["code of n", "code of m"], reach: 1,
    rows: (positions, base) => { const codes = rowsOf(sinusoidalPositions(positions, WIDTH, base)); return [codes, codes]; },
    pair: (row, i) => [row[2 * i], row[2 * i + 1]],
    // Where a hand points, from the right and clockwise, as drawings count; not cut at a whole turn: it never springs back.
    angle: (i, position, rate) => position * rate - Math.PI / 2,
    note: "Each pair is a clock hand: the sine points right, the cosine up. Below it: what the pair adds.", about: "",
  },
  rotary: {
    name: "rotary", what: "turned query times turned key", hands: ["query, turned by n", "key, turned by m"], reach: 1.65,
    rows: (positions, base) => [QUERY, KEY].map((each) =>
      rowsOf(rotatePairs(matrix(positions.length, WIDTH, Float32Array.from(positions.flatMap(() => each))), positions, base))),
    pair: (row, i) => [row[i], row[i + WIDTH / 2]],
    angle: (i, position, rate, k) => -Math.atan2([QUERY, KEY][k][i + WIDTH / 2], [QUERY, KEY][k][i]) - position * rate,
    note: "Pair i is columns i and i + 8, right and up, turned anticlockwise. Below it: what the pair adds.",
    about: " All tokens have the same query and the same key, toy numbers, made to fit best at offset 5 with base 10\u202f000.",
  },
  alibi: {
    name: "ALiBi", what: "e to the bias of each head", given: (offset) => SLOPES.map((slope) => -slope * Math.abs(offset)),
    bars: (biases) => biases.map(Math.exp),
    lines: (biases) => biases.map((bias, h) => `head ${h + 1}: bias ${format(bias, 3)}, weight times ${threeFigures(Math.exp(bias))}`),
    about: "Four heads, with slopes of 1/4, 1/16, 1/64 and 1/256. Nothing is learned. A bar is the factor that the bias puts on a weight, before " +
      "the weights are made to sum to 1. Keys after the query, which the paper has not, count like those before it.",
  },
  relative: {
    name: "relative buckets", what: "bucket", given: (offset) => [bucket(offset)],
    lines: ([now]) => ["Each head learns one bias for each of 32 buckets: 0 to 15 for keys at or before the query, 16 to 31 for keys after it.",
      `Offsets in bucket ${now}: ${OFFSETS.filter((offset) => bucket(offset) === now).map(sign).join(", ")}.`],
    about: "As in T5; all distances from 91 on are in one bucket. Offsets up to 63 leave the last two buckets of each side empty, 14 and 15, " +
      "30 and 31. Bucket 16 stays empty always: offset 0 is in bucket 0.",
  },
};

/** What a scheme gives to each offset. */
function seriesOf({ rows, given }, base) {
  if (given) return OFFSETS.map(given);
  const [queries, keys] = rows(times(LAST + 1, (i) => i), base);
  return OFFSETS.map((offset) => [dot(queries[Math.max(offset, 0)], keys[Math.max(-offset, 0)])]);
}

/** The tokens of a text, as many as there is room for, and how many there are. */
function tokensOf(text, unit) {
  const letters = () => (Intl.Segmenter ? Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment) : [...text]);
  const all = unit === "words" ? text.split(/\s+/).filter(Boolean) : letters().map((letter) => (letter.trim() ? letter : "␣"));
  const short = (token) => (token.length > 24 ? `${token.slice(0, 24)}…` : token);
  return { tokens: all.slice(0, LAST + 1).map(short), count: all.length };
}

/** One hand and its tip: of n, thick, or of m, thin and dashed, so that each can be seen behind or before the other. */
function hand(name, long = 44) {
  const [line, tip] = [stroke(`lf-hand ${name}`), svg("circle", { class: `lf-tip ${name}`, r: name === "lf-n" ? 5 : 3 })];
  const node = svg("g", { class: "lf-turn" }, line, tip);
  function show(angle, length) {
    line.setAttribute("d", `M0 0H${long * length}`);
    tip.setAttribute("cx", long * length);
    node.style.transform = `rotate(${(angle * 180) / Math.PI}deg)`;
  }
  return { node, show };
}

/** A clock face with the hands of n and m, the angle between them, and a number below it. */
function clock(i) {
  const hands = ["lf-n", "lf-m"].map((name) => hand(name));
  const between = stroke("lf-turn lf-between");
  const face = svg("svg", { viewBox: "-50 -50 100 100", role: "img" }, svg("circle", { class: "lf-face", r: 46 }),
    stroke("lf-axis", "M-46 0H46M0 -46V46"), between, hands.map(({ node }) => node));
  const number = html("div");
  function show({ angle, pair, reach, hands: names }, rows, places, rate, product) {
    const [n, m] = rows.map((row, k) => {
      const at = pair(row, i);
      const turned = angle(i, places[k], rate, k);
      hands[k].show(turned, Math.hypot(...at) / reach);
      return { turned, words: `${names[k]} at (${format(at[0])}, ${format(at[1])})` };
    });
    const part = Math.atan2(Math.sin(n.turned - m.turned), Math.cos(n.turned - m.turned));
    between.setAttribute("d", `M0 0H20A20 20 0 0 ${part < 0 ? 0 : 1} ${20 * Math.cos(part)} ${20 * Math.sin(part)}Z`);
    between.style.transform = hands[1].node.style.transform;
    face.setAttribute("aria-label", `Pair ${i}: ${n.words}; ${m.words}`);
    number.textContent = format(product);
  }
  return { node: html("div", {}, face, html("div", { class: "lf-note" }, `pair ${i}`), number), show };
}

/** The clocks of a scheme that turns pairs, or a few lines about one that does not. */
function schemePanel() {
  const keys = ["lf-n", "lf-m"].map((name) => { const swatch = hand(name, 24); swatch.show(0, 1); return [swatch.node, html("span")]; });
  const [clocks, sum, lines] = [PAIRS.map(clock), html("p", { class: "lf-total" }), html("div")];
  const drawn = html("div", {}, html("div", { class: "lf-key" }, keys.map(([node, words]) =>
    html("span", {}, svg("svg", { viewBox: "0 -6 30 12", "aria-hidden": "true" }, node), words))),
  html("div", { class: "lf-clocks" }, clocks.map(({ node }) => node)), sum);
  const head = title();
  function show(scheme, places, base, now) {
    const rates = ratesOf(base);
    [drawn.hidden, head.textContent] = [!scheme.rows, scheme.rows ? "Pair by pair" : "At the present offset"];
    lines.replaceChildren(...(scheme.lines ? scheme.lines(now) : [scheme.note]).map((words) => note(words)));
    if (!scheme.rows) return {};
    const rows = scheme.rows(places, base).map((each, k) => each[k]);
    const products = PAIRS.map((i) => dot(scheme.pair(rows[0], i), scheme.pair(rows[1], i)));
    keys.forEach(([, words], k) => { words.textContent = scheme.hands[k]; });
    clocks.forEach((each, i) => each.show(scheme, rows, places, rates[i], products[i]));
    sum.textContent = `Sum over the pairs: ${format(dot(...rows))}`;
    return { rows, products, score: dot(...rows) };
  }
  return { node: panel(head, drawn, lines), show };
}

/** The tokens at their places, with bars for what the scheme gives to each; whoever chooses one, makes it the query. */
function strip(choose) {
  const [head, row, name] = [title(), html("div", { class: "lf-places" }), uniqueId("token")];
  const node = html("fieldset", { class: "lf-choice lf-wide", "aria-label": "Token that asks" }, head, row);
  let tiles = [];
  function build(tokens, heads) {
    tiles = tokens.map((token, i) => {
      const input = html("input", { type: "radio", name, onchange: () => choose(i) });
      const [place, value] = [html("span"), html("span")];
      const bars = times(heads, (h) => html("i", { style: `color: ${hue(heads > 1 ? h : 2)}` }));
      const tile = html("label", { class: "lf-tile" }, input, place, html("bdi", {}, token), html("span", { class: "lf-heights" }, bars), value);
      return { token, input, place, value, bars, node: tile };
    });
    row.classList.toggle("lf-many", tokens.length > 20);
    row.replaceChildren(...tiles.map((tile) => tile.node));
  }
  function show(words, tokens, values, digits, first, { query, key }) {
    head.textContent = words;
    const all = values.flat();
    const [low, high] = [Math.min(0, ...all), Math.max(0.01, ...all)];
    if (tiles.length !== tokens.length || tiles.some(({ token, bars }, i) => token !== tokens[i] || bars.length !== values[i].length)) {
      build(tokens, values[0]?.length);
    }
    tiles.forEach((tile, i) => {
      tile.input.checked = i === query;
      tile.node.classList.toggle("lf-asks", i === query);
      tile.node.classList.toggle("lf-asked", i === key);
      tile.place.textContent = first + i;
      tile.node.title = values[i].map((value) => format(value)).join(", ");
      tile.value.textContent = values[i].length > 1 ? "" : format(values[i][0], digits);
      tile.bars.forEach((bar, h) => {
        bar.style.bottom = `${(100 * (Math.min(0, values[i][h]) - low)) / (high - low)}%`;
        bar.style.height = `${(100 * Math.abs(values[i][h])) / (high - low)}%`;
      });
    });
  }
  return { node, show };
}

/** The controls, one of which moves the first token on by itself until it has nowhere to go. */
function settings(set, get) {
  const schemes = Object.entries(SCHEMES).map(([key, { name }]) => [key, name]);
  const scheme = choice({ legend: "Scheme", options: schemes });
  const first = slider({ label: "First token at", max: LAST, onchange: (value) => { player.run(false); set({ first: value }); } });
  const offset = slider({ label: "Offset n − m", min: -LAST, max: LAST, show: sign, onchange: (wanted) => set({ wanted }) });
  const base = slider({ label: "Base", min: 1, max: 6, step: 0.25, show: (power) => grouped(baseOf(power)) });
  const text = textField({ label: "Your sentence", maxlength: 400 });
  const unit = choice({ legend: "Tokens", options: [["words", "words"], ["letters", "letters"]] });
  const bound = bindTo(set, { scheme, first, power: base, text, unit });
  const player = playButton(() => {
    const next = get().first < LAST ? get().first + 1 : 0;
    if (next === LAST) player.run(false);
    set({ first: next });
  }, () => set({}));
  function show(state, at) {
    bound.show(state);
    offset.input.min = at.low;
    offset.max = at.query;
    offset.value = at.offset;
    base.node.hidden = !SCHEMES[state.scheme].rows;
  }
  text.node.append(unit.node);
  const nodes = [text.node, scheme.node, html("div", { class: "lf-run" }, first.node, player.node), offset.node, base.node];
  return { nodes, show, player, kinds: bound.kinds };
}

/** Draw what the scheme gives to every offset, and mark the present one. */
function plot(curve, isSteps, curves, offset) {
  const steps = (each) => OFFSETS.flatMap((at, i) => [null, [at - 0.5, each[i]], [at + 0.5, each[i]]]).slice(1);
  const points = isSteps ? steps : (each) => OFFSETS.map((at, i) => [at, each[i]]);
  const [low, high] = [Math.floor(Math.min(0, ...curves.flat())), isSteps ? BUCKETS : Math.ceil(Math.max(0, ...curves.flat()))];
  const now = curves.map((each) => format(each[offset + LAST])).join(", ");
  curve.draw({ label: `Curve for offsets from −63 to 63; at offset ${sign(offset)}: ${now}.`, here: { at: offset, name: `offset ${sign(offset)}` },
    x: { low: -LAST, high: LAST, ticks: [-60, -30, 0, 30, 60], show: sign, name: "offset n − m" },
    y: { low, high, ticks: ticksBetween(low, high, 6, [1, 2, 4, 8, 16]), show: sign },
    curves: curves.map((each, h) => ({ points: points(each), mark: [offset, each[offset + LAST]],
      ...(curves.length === 1 ? { colour: hue(2), strong: true } : { name: `head ${h + 1}`, colour: hue(h) }) })) });
}

/** Where the query and the key stand, as the text allows it. */
function places({ first, chosen, wanted }, count) {
  const last = Math.max(0, count - 1);
  const query = Math.min(chosen, last);
  const offset = clamp(wanted, query - last, query);
  return { query, key: query - offset, offset, n: first + query, m: first + query - offset, low: query - last };
}

/** What is seen, in a sentence; while the tokens run, one that stays true. */
function sentence({ name, what, rows }, { tokens, count }, { query, key, offset, n, m }, now, isRunning) {
  if (!tokens.length) return "There is no token: type something into “Your sentence”.";
  const said = rows ? `the ${what} is ${format(now[0])}` : now.length === 1 ? `the bucket is ${now[0]}`
    : `the biases of heads 1 to 4 are ${now.map((bias) => format(bias, 3)).join(", ")}`;
  if (isRunning) return `${capital(name)}: the tokens move on together. At offset ${sign(offset)} ${said}, wherever they stand.`;
  const rest = count > tokens.length ? ` Of ${count} tokens the first ${tokens.length} are shown.` : "";
  return `${capital(name)}: “${tokens[query]}” stands at ${n}, “${tokens[key]}” at ${m}, so the offset is ${sign(offset)}: ${said}.${rest}`;
}

export function mount(element) {
  const figure = frame(element, { label: "four ways to tell attention the positions of query and key", start: START, draw,
    reset: () => { knobs.player.run(false); set(START); } });
  const { controls, stage, publish, set } = figure;
  const knobs = settings(set, () => figure.settings);
  const [tiles, left, curve] = [strip((chosen) => set({ chosen })), schemePanel(), chart()];
  const [head, about] = [title(), wideNote()];
  controls.append(...knobs.nodes);
  stage.append(tiles.node, left.node, panel(head, curve.node,
    note("The dashed line marks the present offset. Let the tokens run: nothing changes here.")), about);

  function draw(state) {
    const [scheme, base, text] = [SCHEMES[state.scheme], baseOf(state.power), tokensOf(state.text, state.unit)];
    const at = places(state, text.tokens.length);
    const series = seriesOf(scheme, base);
    const [now, curves] = [series[at.offset + LAST], series[0].map((_, h) => series.map((each) => each[h]))];
    const bars = text.tokens.map((_, i) => series[at.query - i + LAST]).map(scheme.bars ?? ((values) => values));
    element.classList.toggle("lf-playing", knobs.player.isRunning);
    knobs.show(state, at);
    tiles.show(`Seen from “${text.tokens[at.query] ?? ""}”: ${scheme.what}`, text.tokens, bars, scheme.rows ? 1 : 0, state.first, at);
    const numbers = left.show(scheme, [at.n, at.m], base, now);
    head.textContent = { alibi: "Bias added to the scores", relative: "Bucket of each offset" }[state.scheme] ?? capital(scheme.what);
    plot(curve, state.scheme === "relative", curves, at.offset);
    const rounds = ratesOf(base).map((rate) => grouped((2 * Math.PI) / rate)).join(", ");
    about.textContent = `${scheme.rows ? `Width 16, so eight pairs, turning once round in ${rounds} positions.` : ""}${scheme.about}`;
    publish({ ...state, ...at, ...numbers, base, tokens: text.tokens, bars, now, curves, vectors: [QUERY, KEY] },
      sentence(scheme, text, at, now, knobs.player.isRunning));
  }
  set(START);
  figure.addressed({ ...knobs.kinds, chosen: place(LAST + 1), offset: setting("wanted", whole(-LAST, LAST)) },
    { go: (wanted) => { knobs.player.run(false); set(wanted); } });
}
