// Every head of a model as a small heat map of its weights, of which one is chosen.
import { html, onArrows, times } from "./common.mjs";
import { paint, palette } from "./heat.mjs";

/** All heads as small heat maps, a row for each block, or whatever `part` they are of; one is chosen by pointer or arrow keys. */
export function gridOfHeads(onchoose, part = "block") {
  const node = html("div", { class: "lf-heads", role: "radiogroup", "aria-label": `Every ${part} and head` });
  let [cells, place] = [[], [0, 0]];
  onArrows(node, (down, right) => {
    const [layer, head] = [place[0] + down, place[1] + right];
    const next = cells[layer]?.[head];
    if (!next) return;
    onchoose(layer, head);
    next.focus();
  });
  function build(layers, heads) {
    cells = times(layers, (l) => times(heads, (h) => html("div", { role: "radio", class: "lf-head-map",
      "aria-label": `${part} ${l + 1}, head ${h + 1}`, onclick: () => onchoose(l, h) }, html("canvas", { "aria-hidden": "true" }))));
    const tops = times(heads, (h) => html("span", { "aria-hidden": "true" }, `${h + 1}`));
    node.style.setProperty("--heads", heads);
    node.replaceChildren(html("span", { "aria-hidden": "true" }, "head"), ...tops, ...cells.flatMap((row, l) => [html("span", { "aria-hidden": "true" }, `${part} ${l + 1}`), ...row]));
  }
  /** Paint all heads anew, or only mark the chosen one. */
  function show(weights, [layer, head], anew) {
    if (cells.length !== weights.length || cells[0]?.length !== weights[0].length) build(weights.length, weights[0].length);
    place = [layer, head];
    const colours = anew && palette(node);
    cells.forEach((row, l) => row.forEach((cell, h) => {
      const isChosen = l === layer && h === head;
      cell.setAttribute("aria-checked", isChosen);
      cell.tabIndex = isChosen ? 0 : -1;
      if (anew) paint(cell.firstChild, weights[l][h], 1, colours);
    }));
  }
  return { node, show };
}
