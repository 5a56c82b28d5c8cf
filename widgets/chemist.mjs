// Which atom became which, as each head of a published model says (chapter on models of others), on the reader's own reaction.
import { place, setting } from "./address.mjs";
import { format, frame, html, slider, svg, table, textField, times, title, total, wide } from "./common.mjs";
import { row } from "./engine/arrays.mjs";
import { newest } from "./engine/client.mjs";
import { start as startModel } from "./engine/start.mjs";
import { examples } from "./texts.mjs";

const REACTIONS = {
  "a thioether": "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F",
  "an ester": "CC(=O)O.OCC>>CC(=O)OCC",
  "an amide": "O=C(O)c1ccccc1.NCc1ccccc1>>O=C(NCc1ccccc1)c1ccccc1",
  "a ring": "C=CC=C.O=C1C=CC(=O)O1>>O=C1OC(=O)C2CC=CCC12",
  "a rearrangement": "C=CCOc1ccccc1>>C=CCc1ccccc1O",
};
const MOST = 120; // tokens that are read
const START = { text: REACTIONS["a thioether"], layer: 10, head: 5 };
const LABEL = "which atom became which, by every head of a published model";
const ATOM = /^(\[[^\]]+\]|Br|Cl|[BCNOPSFIbcnops])$/;
const SPECIAL = /^\[(CLS|SEP|UNK|PAD|MASK)\]$/;

export const isAtom = (token) => ATOM.test(token) && !SPECIAL.test(token);
export function elementOf(token) {
  const found = /^\[?\d*(Br|Cl|[A-Z][a-z]?|[bcnops])/.exec(token);
  return found ? found[1][0].toUpperCase() + found[1].slice(1) : token;
}

/** Which tokens are atoms before the arrow, and behind it; or what is wrong with the reaction. */
export function sidesOf(tokens) {
  const arrows = tokens.filter((token) => token === ">>").length;
  if (arrows !== 1) return { problem: `A reaction has one >>, between what is put in and what comes out; this has ${arrows || "none"}.` };
  const [arrow, atoms] = [tokens.indexOf(">>"), times(tokens.length, (n) => n).filter((n) => isAtom(tokens[n]))];
  const [before, behind] = [atoms.filter((n) => n < arrow), atoms.filter((n) => n > arrow)];
  return before.length && behind.length ? { before, behind, arrow } : { problem: "There is no atom on one side of the >> yet." };
}

/** The atom put in of the same element that a row of weights has most of: its place and weight; null if there is none. */
function mostOf(weights, n, tokens, before) {
  const read = row(weights, n);
  const same = before.filter((m) => elementOf(tokens[m]) === elementOf(tokens[n]));
  const best = same.reduce((found, m) => (found === null || read[m] > read[found] ? m : found), null);
  return best === null ? null : { place: best, weight: read[best] };
}

/** Both sides of the reaction in two rows, with a line from each atom that comes out to the one that it was. */
function twoRows() {
  const lines = svg("g");
  const picture = svg("svg", { class: "lf-arcs", viewBox: "0 0 1000 100", preserveAspectRatio: "none", "aria-hidden": "true" }, lines);
  const [above, below] = times(2, () => html("div", { class: "lf-arc-names lf-side", "aria-hidden": "true" }));
  const plane = html("div", { class: "lf-sides" }, above, picture, below);
  function show(tokens, arrow, map) {
    const rows = [times(arrow - 1, (i) => i + 1), times(tokens.length - arrow - 2, (i) => arrow + 1 + i)];
    const room = (n) => tokens[n].length + 0.6; // in letters, since an ion is wider than a carbon
    const widths = rows.map((places) => total(places.map(room)));
    const at = (n) => {
      const side = n < arrow ? 0 : 1;
      return (total(rows[side].filter((m) => m < n).map(room)) + room(n) / 2) / widths[side];
    };
    plane.style.minWidth = `${0.52 * Math.max(...widths) + 2.4}rem`;
    [above, below].forEach((node, i) => node.replaceChildren(...rows[i].map((n) => {
      const mark = html("span", { class: isAtom(tokens[n]) ? "lf-chosen" : null }, tokens[n]);
      mark.style.left = `${100 * at(n)}%`;
      return mark;
    })));
    lines.replaceChildren(...map.filter(({ found }) => found).map(({ n, found }) => svg("path", { class: "lf-arc",
      d: `M${1000 * at(n)} 100L${1000 * at(found.place)} 0`, "stroke-width": 1 + 4 * found.weight, "stroke-opacity": 0.25 + 0.75 * found.weight })));
  }
  return { node: html("div", { class: "lf-wide-scroll lf-wide scrolls", tabindex: 0, role: "group", "aria-label": "The reaction, with a line for each atom" }, plane), show };
}

/** The reaction as chemists write a map: the atoms that come out are numbered, and so are those that they were. */
function withNumbers(tokens, map) {
  const numbers = tokens.map((_, n) => map.flatMap((each, i) => (each.n === n || each.found?.place === n ? [i + 1] : [])));
  return times(tokens.length - 2, (i) => i + 1).map((n) => (numbers[n].length
    ? html("span", {}, html("b", {}, tokens[n]), html("sub", {}, numbers[n].join(","))) : html("span", {}, tokens[n])));
}

export async function mount(element, given = null) {
  const model = await startModel(element, { label: LABEL, given });
  let now = null;
  const figure = frame(element, { label: LABEL, start: START, reset: () => choose(START), draw });
  const field = textField({ label: "Reaction", maxlength: 400, onchange: (text) => choose({ text }) });
  const tries = examples({ label: "Reactions to begin with", texts: Object.keys(REACTIONS), onchoose: (name) => choose({ text: REACTIONS[name] }) });
  const [heading, picture] = [title(), twoRows()];
  const rows = html("div", { class: "lf-table lf-wide-scroll", tabindex: 0, role: "group", "aria-label": "The map in numbers" });
  const numbered = html("p", { class: "lf-numbered" });
  figure.controls.append(field.node, tries);
  figure.bind({ layer: slider({ label: "Block", max: 11, show: (value) => String(value + 1) }),
    head: slider({ label: "Head", max: 7, show: (value) => String(value + 1) }) });
  figure.stage.append(wide(heading), picture.node, wide(numbered), wide(rows));

  const compute = newest((text) => model.ask("attentionWeights", model.tokenizer.encode(text)), (weights, text) => {
    if (text !== figure.settings.text) return;
    now = { ...readingOf(text), text, weights };
    figure.set({});
  }, ({ message }) => figure.publish({ ...figure.settings, error: message }, message));

  function readingOf(text) {
    const tokens = ["[CLS]", ...model.tokenizer.split(text), "[SEP]"];
    if (tokens.length > MOST) return { tokens, problem: `This reaction has ${tokens.length} tokens; at most ${MOST} are read.` };
    return { tokens, ...sidesOf(tokens) };
  }
  function choose(change) {
    figure.set(change);
    const { text } = figure.settings;
    const { problem } = readingOf(text);
    return problem ? null : compute(text);
  }

  function draw(settings) {
    const { text } = settings;
    field.value = text;
    const { problem } = readingOf(text);
    figure.stage.classList.toggle("lf-stale", Boolean(problem) || now?.text !== text);
    if (problem || now?.text !== text) return figure.publish({ ...settings, busy: !problem, problem }, problem ?? "");
    const [layer, head] = [Number(settings.layer), Number(settings.head)];
    const { tokens, before, behind, arrow, weights } = now;
    const count = (n) => (n < arrow ? before.indexOf(n) : behind.indexOf(n)) + 1;
    const map = behind.map((n) => ({ n, found: mostOf(weights[layer][head], n, tokens, before), strongest: strongest(n) }));
    function strongest(n) {
      const all = weights.flatMap((heads, l) => heads.map((each, h) => ({ l, h, ...mostOf(each, n, tokens, before) })));
      return all.reduce((best, each) => ((each.weight ?? 0) > (best.weight ?? 0) ? each : best));
    }
    heading.textContent = `Block ${layer + 1}, head ${head + 1}`;
    picture.show(tokens, arrow, map);
    numbered.replaceChildren(...withNumbers(tokens, map));
    rows.replaceChildren(table("Each atom that comes out", ["atom", "was", "weight", "strongest of all heads"], map.map(({ n, found, strongest: most }) => [
      html("th", { scope: "row" }, `${tokens[n]} ${count(n)}`),
        html("td", {}, found ? `${tokens[found.place]} ${count(found.place)}` : "no such element put in"),
        html("td", {}, found ? format(found.weight) : ""),
        html("td", {}, found ? `block ${most.l + 1}, head ${most.h + 1}: ${tokens[most.place]} ${count(most.place)} (${format(most.weight)})` : ""),
    ])));
    const strange = model.tokenizer.strangers(text);
    const said = strange.length ? ` The vocabulary lacks ${strange.slice(0, 4).join(", ")}.` : "";
    figure.publish({ ...settings, layer, head, busy: false, tokens, map: map.map(({ n, found }) => [n, found?.place ?? -1]),
      weights: map.map(({ found }) => found?.weight ?? 0) },
    `Block ${layer + 1}, head ${head + 1}: ${map.map(({ n, found }) => `${tokens[n]} ${count(n)} was ${found ? `${tokens[found.place]} ${count(found.place)}` : "nothing"}`).join(", ")}.${said}`);
  }
  await choose(START);
  await figure.addressed({ text: field.kind, layer: null, block: setting("layer", place(12)), head: place(8) }, { go: choose });
}
