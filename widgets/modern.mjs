// The block from 2017 to today (chapter on modern models), one change at a time: how it looks, what it costs, what it lost in training.
// `modern.json` holds the machines of lab/walk/record.json; lab/figures/modern.py writes it.
import { place, setting } from "./address.mjs";
import { chart, ticksBetween } from "./chart.mjs";
import { factList, format, frame, mean, note, panel, slider, stored, stroke, svg, words } from "./common.mjs";

const START = { machine: 0 };
const BYTES = 4; // of a number
const NETWORKS = { relu: "ReLU", gelu: "GELU", swiglu: "SwiGLU" };
const counted = (number) => number.toLocaleString("en");

/** The learned numbers of each part of a machine; its matrices, which cost operations; and the bytes of its cache. */
function costsOf(shared, machine) {
  const { d_model: width, num_layers: layers, num_heads: heads, vocab_size: vocabulary, context_len: length } = shared;
  const [groups, bias] = [machine.num_kv_heads ?? heads, machine.use_bias ? 1 : 0];
  const columns = width / heads;
  const maps = 2 * width * (heads + groups) * columns + (machine.activation === "swiglu" ? 3 : 2) * width * machine.d_ff;
  const norm = width * (machine.norm === "layer" ? 1 + bias : 1);
  const attention = bias * ((heads + 2 * groups) * columns + width) + (machine.qk_norm ? 2 * columns : 0) + (machine.sinks ? heads : 0);
  const network = machine.activation === "swiglu" ? 0 : bias * (machine.d_ff + width);
  const table = vocabulary * width;
  const parameters = layers * (maps + attention + network + 2 * norm)
    + (machine.norm_placement === "post" ? 0 : norm) + (machine.tied ? 1 : 2) * table;
  const operations = 2 * (layers * (maps + 2 * width * length) + table); // of reading one word, in a text of full length
  const perWord = groups * 2 * columns * BYTES;
  const near = machine.window === null ? 0 : layers / 2; // every other block
  const looked = perWord * ((layers - near) * length + near * (machine.window ?? 0));
  return { parameters, operations, cache: layers * perWord * length, looked };
}

/** The boxes from top to bottom: what stands in each, and the changes that touch it. */
function boxesOf({ num_heads: heads }, machine) {
  const norm = { kind: "norm", label: machine.norm === "rms" ? "RMS norm" : "layer norm", by: ["norm", "norm_placement"] };
  const plus = { kind: "plus", label: "+", by: ["norm_placement"] };
  const groups = machine.num_kv_heads ?? heads;
  const turned = machine.position_scheme === "rotary" ? "positions turn Q and K" : "";
  const attention = { kind: "part", label: "attention", by: ["position_scheme", "qk_norm", "num_kv_heads", "window", "pattern", "sinks", "use_bias"],
    details: [`${heads} heads${groups === heads ? "" : `, ${groups} of keys and values`}`, [turned, machine.qk_norm ? "norm of Q, K" : ""].filter(Boolean).join(", "),
      [machine.window ? `window of ${machine.window} in turn` : "", machine.sinks ? "sinks" : ""].filter(Boolean).join(", ")] };
  const network = { kind: "part", label: "network", by: ["activation", "d_ff", "use_bias"],
    details: [`${NETWORKS[machine.activation]}, ${machine.d_ff} wide`, machine.use_bias ? "maps have biases" : "no biases"] };
  const isPost = machine.norm_placement === "post";
  const leaves = (box) => ({ ...box, leaves: true }); // the stream goes past from here to the next sum
  const inside = isPost ? [leaves(attention), plus, norm, leaves(network), plus, norm]
    : [leaves(norm), attention, plus, leaves(norm), network, plus];
  return [
    { kind: "part", label: "embedding", by: ["position_scheme"], details: [machine.position_scheme === "sinusoidal" ? "plus a code of the position" : "of the word alone"] },
    ...inside,
    ...(isPost ? [] : [norm]),
    { kind: "part", label: "output", by: ["tied_embedding"], details: [machine.tied ? "the embedding's table" : "a matrix of its own"] },
  ];
}

const [WIDTH, LEFT, SIDE, GAP, LINE] = [300, 40, 232, 12, 16];
const heightOf = ({ kind, details = [] }) => ({ norm: 26, plus: 22, part: 28 + LINE * details.filter(Boolean).length }[kind]);

/** The column of boxes, joined by arrows, and the way past each sublayer. */
function block() {
  const node = svg("svg", { role: "img", style: "width: 100%; max-width: 21rem" });
  const middle = LEFT + SIDE / 2;
  function draw(boxes, changed, label) {
    let top = 6;
    const placed = boxes.map((box) => { const at = { ...box, top, bottom: top + heightOf(box) }; top = at.bottom + GAP; return at; });
    const isNew = ({ by }) => by.some((field) => changed.includes(field));
    const drawn = placed.map((box) => {
      const kind = isNew(box) ? "lf-part lf-new" : "lf-part";
      if (box.kind === "plus") return [svg("circle", { class: kind, cx: middle, cy: (box.top + box.bottom) / 2, r: 11 }), words("+", middle, box.bottom - 6)];
      const details = (box.details ?? []).filter(Boolean);
      return [svg("rect", { class: kind, x: LEFT, y: box.top, width: SIDE, height: box.bottom - box.top, rx: 5 }),
        words(box.label, middle, box.top + 18, { "font-weight": 700 }), ...details.map((each, i) => words(each, middle, box.top + 18 + LINE * (i + 1)))];
    });
    const joints = placed.slice(1).map((box) => stroke("lf-frame", `M${middle} ${box.top - GAP}V${box.top}`));
    const pluses = placed.filter(({ kind }) => kind === "plus");
    const leaving = placed.filter(({ leaves }) => leaves);
    const past = pluses.map((plus, i) => stroke("lf-frame", `M${middle} ${leaving[i].top - GAP / 2}H${LEFT - 16}V${(plus.top + plus.bottom) / 2}H${middle - 11}`));
    node.setAttribute("viewBox", `0 0 ${WIDTH} ${top}`);
    node.setAttribute("aria-label", label);
    node.replaceChildren(...past, ...joints, ...drawn.flat());
  }
  return { node, draw };
}

export async function mount(element) {
  const { machines, ...shared } = await stored("modern.json");
  const { stage, bind, set, publish, addressed } = frame(element, { label: "the block from 2017 to today", start: START, draw });
  const named = (at) => `${machines[at].year}, ${machines[at].name}`;
  bind({ machine: slider({ label: "Change", values: machines.map((_, at) => at), show: named }) });
  const [drawing, losses] = [block(), chart()];
  losses.node.style.maxWidth = "26rem";
  const facts = factList(["learned numbers", "operations for a word", "cache of a text, bytes", "of it looked at, bytes", "nats above the lowest"]);
  const says = note("");
  stage.append(panel(drawing.node, says),
    panel(facts.node, losses.node, note(`A text has ${shared.context_len} words, and all machines are ${shared.d_model} wide. Dots: seeds.`)));
  const all = machines.flatMap((each) => each.losses);

  function draw({ machine: at }) {
    const machine = machines[at], costs = costsOf(shared, machine), boxes = boxesOf(shared, machine);
    drawing.draw(boxes, machine.changed, `A block of ${machine.year}: ${boxes.map(({ label, details = [] }) => [label, ...details].filter(Boolean).join(", ")).join("; ")}.`);
    const nats = `${format(mean(machine.losses), 3)} (${format(Math.min(...machine.losses), 3)} to ${format(Math.max(...machine.losses), 3)})`;
    says.textContent = `Marked: what this change touches. The year is that of ${machine.of.replace(/\.$/, "")}.`;
    facts.show([...[costs.parameters, costs.operations, costs.cache, costs.looked].map(counted), nats]);
    const [worst, least] = [Math.max(...all), Math.min(...all)], margin = (worst - least) / 9;
    losses.draw({ label: "Loss by change",
      x: { low: 0, high: machines.length - 1, ticks: [0, machines.length - 1], show: (place) => String(machines[place].year), name: "changes" },
      y: { low: 100 * (least - margin), high: 100 * (worst + margin), ticks: ticksBetween(100 * least, 100 * worst, 6), show: (value) => format(value / 100, 2) },
      curves: [{ colour: "var(--lf-hue-1)", strong: true, points: machines.map((each, i) => [i, 100 * mean(each.losses)]), mark: [at, 100 * mean(machine.losses)] },
        ...[0, 1, 2].map((seed) => ({ colour: "var(--lf-soft)", dash: "0 9", dots: true, points: machines.map((each, i) => [i, 100 * each.losses[seed]]) }))] });
    publish({ machine: at, name: machine.name, year: machine.year, ...costs, loss: mean(machine.losses), boxes: boxes.map(({ label, by }) => [label, by.some((field) => machine.changed.includes(field))]) },
      `${machine.year}, ${machine.name}: ${counted(costs.parameters)} numbers, ${counted(costs.cache)} bytes of cache, nats above the lowest loss: ${nats}.`);
  }
  set(START);
  addressed({ machine: null, change: setting("machine", place(machines.length)) });
}
