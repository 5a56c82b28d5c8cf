// Letters that may come next, each with a bar as long as it is likely: what several figures of a model share.
import { bar, format, html, rowHead, table, times } from "./common.mjs";

/** `show(caption, letters, chosen)` fills the table with pairs of a letter and its probability; a full bar stands for `full`. */
export function letterBars({ count, heads = [], colour, barFirst = false }) {
  const rows = times(count, () => {
    const [head, number, drawn] = [rowHead(), html("td"), bar(colour)];
    const cells = [number, html("td", { class: "lf-bar-cell" }, drawn)];
    return { head, number, drawn, node: html("tr", {}, head, barFirst ? cells.reverse() : cells) };
  });
  const node = table("", heads, rows.map((row) => row.node));
  function show(caption, letters, chosen, full = 1) {
    node.caption.textContent = caption;
    rows.forEach((row, i) => {
      row.node.hidden = i >= letters.length;
      if (row.node.hidden) return;
      const [letter, probability] = letters[i];
      row.head.textContent = letter;
      row.head.classList.toggle("lf-chosen", i === chosen);
      row.number.textContent = format(probability, 3);
      row.drawn.style.width = `${Math.min(100, (100 * probability) / full)}%`;
    });
  }
  return { node, show };
}
