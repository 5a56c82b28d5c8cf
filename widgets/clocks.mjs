// Pairs of columns as the hands of clocks (chapter 05): one hand for the query's position, one for the key's.
import { format, html, stroke, svg } from "./common.mjs";

/** One hand and its tip: of n, thick, or of m, thin and dashed, so that each can be seen behind or before the other. */
export function hand(name, long = 44) {
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
export function clock(i) {
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
