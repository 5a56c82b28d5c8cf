// Letters to point at: rows of them, curves between them, and tables of those that a model finds likely.
import { bar, format, html, mean, placeAfter, rowHead, svg, table, times, tint, uniqueId } from "./common.mjs";

/** The tokens of a text in a row, one of them chosen by pointer, touch or arrow keys. */
export function strip({ label, onchoose }) {
  const prefix = uniqueId("letter");
  const node = html("div", { class: "lf-strip", role: "listbox", tabindex: 0, "aria-label": label });
  let chosen = 0;
  const choose = (n) => { if (n >= 0 && n < node.children.length && n !== chosen) onchoose(n); };
  node.addEventListener("keydown", (event) => {
    const key = { ArrowUp: "ArrowLeft", ArrowDown: "ArrowRight" }[event.key] ?? event.key;
    const to = placeAfter(key, chosen, node.children.length);
    if (to === undefined) return;
    event.preventDefault();
    choose(to);
  });
  const follow = (event) => {
    const under = node.getRootNode().elementFromPoint(event.clientX, event.clientY);
    choose([...node.children].findIndex((option) => option.contains(under)));
  };
  node.addEventListener("pointerdown", follow);
  node.addEventListener("pointermove", (event) => { if (event.buttons) follow(event); });
  function show(letters, now, share = () => 0) {
    chosen = now;
    while (node.children.length > letters.length) node.lastChild.remove();
    letters.forEach((letter, n) => {
      const option = node.children[n] ?? node.appendChild(html("span", { role: "option", id: `${prefix}-${n}` }));
      if (option.textContent !== letter) option.textContent = letter;
      option.setAttribute("aria-selected", n === now);
      tint(option, share(n));
    });
    node.setAttribute("aria-activedescendant", `${prefix}-${now}`);
  }
  return { node, show };
}

/** Bars in the foot of a letter, for probabilities. */
function chart(tile, bars) {
  const foot = tile.lastChild;
  while (foot.children.length > bars.length) foot.lastChild.remove();
  while (foot.children.length < bars.length) foot.append(html("i"));
  bars.forEach((value, i) => { foot.children[i].style.height = `${Math.round(100 * value)}%`; });
}

/** A letter as it stands in its row: its sign, how much it is read, in hundredths, and bars that say how likely it is. */
function dress(tile, { text, name, kind = "", share = 0, bars = [] }) {
  const hundredths = Math.round(100 * share);
  tile.firstChild.textContent = text;
  tile.className = `lf-letter ${kind}${text.length > 2 ? " lf-long" : ""}`;
  tile.dataset.share = hundredths || "";
  tile.style.setProperty("--share", `${hundredths}%`);
  if (name) tile.setAttribute("aria-label", name);
  chart(tile, bars);
}

/**
 * A row of letters, one stop of the Tab key; the arrow keys lead on. `onchoose(n, withOthers)` is called for a letter
 * that is pressed, and where `follows()` says so for each that an arrow key leads to; without it, one can only look.
 */
export function letterRow({ label, onchoose = null, follows = () => true, onhover = null }) {
  const node = html("div", { class: "lf-letters lf-wide", role: onchoose ? "group" : "img", "aria-label": label });
  const made = () => [html("b"), html("span", { class: "lf-likely" })];
  const place = (tile) => [...node.children].indexOf(tile);

  function pressable() {
    const choose = (event) => onchoose(place(tile), event.shiftKey || event.ctrlKey || event.metaKey);
    const tile = html("button", { type: "button", onclick: choose,
      onpointerenter: (event) => { if (event.pointerType === "mouse") onhover?.(place(tile)); },
      onfocus: () => { for (const other of node.children) other.tabIndex = other === tile ? 0 : -1; },
      onkeydown: (event) => {
        const to = placeAfter(event.key, place(tile), node.children.length);
        if (!node.children[to]) return;
        event.preventDefault();
        node.children[to].focus();
        if (follows()) onchoose(to, false);
      } }, made());
    return tile;
  }

  /** Letters stay where they are while others come and go, so that none loses the focus. */
  function update(letters, current = 0) {
    while (node.children.length > letters.length) node.lastChild.remove();
    while (node.children.length < letters.length) node.append(onchoose ? pressable() : html("span", {}, made()));
    letters.forEach((letter, n) => {
      const tile = node.children[n];
      dress(tile, letter);
      if (!onchoose) return;
      if (!node.contains(document.activeElement)) tile.tabIndex = n === current ? 0 : -1;
      if (n === current) tile.setAttribute("aria-current", "true"); else tile.removeAttribute("aria-current");
    });
    if (![...node.children].some((tile) => tile.tabIndex === 0) && node.firstChild) node.firstChild.tabIndex = 0;
  }
  return { node, update, bars: (each) => [...node.children].forEach((tile, n) => chart(tile, each[n] ?? [])) };
}

/**
 * Curves over what a box holds. `draw(list)` shows `{ from, to, share, faint }`, each from one element to another, the
 * thicker the larger its share: over their heads, or, if `across`, from the top of one to the foot of the other.
 */
export function curves(box, { across = false } = {}) {
  const canvas = svg("svg", { class: "lf-curves", "aria-hidden": "true" });
  box.classList.add("lf-joined");
  box.prepend(canvas);
  let drawn = [];

  function path({ from, to }) {
    const [origin, start, end] = [canvas, from, to].map((node) => node.getBoundingClientRect());
    const [x, X] = [start, end].map((place) => place.left + place.width / 2 - origin.left);
    const [y, Y] = [start.top - origin.top, (across ? end.bottom : end.top) - origin.top];
    const middle = (y + Y) / 2;
    const lift = Math.min(32, 8 + Math.abs(X - x) / 5);
    return across ? `M${x} ${y}C${x} ${middle} ${X} ${middle} ${X} ${Y}` : `M${x} ${y}C${x} ${y - lift} ${X} ${Y - lift} ${X} ${Y}`;
  }
  function show() {
    canvas.replaceChildren(...drawn.map((curve) => svg("path", { d: path(curve), class: curve.faint ? "lf-faint" : null,
      "stroke-width": (0.6 + 7 * curve.share).toFixed(2), "stroke-opacity": curve.faint ? null : (0.3 + 0.7 * curve.share).toFixed(2) })));
  }
  new ResizeObserver(show).observe(box);
  return { draw: (list) => { drawn = list; show(); } };
}

/** Rows of weights: of one head, counted from 1, or, with 0, the mean of all. */
export function readBy(rows, head) {
  const chosen = head === 0 ? rows : [rows[head - 1]];
  return Array.from(chosen[0], (_, m) => mean(chosen.map((row) => row[m])));
}

/** What a full bar may stand for: the least that holds all of these probabilities. */
export const fullBar = (probabilities) => [0.25, 0.5, 0.75].find((limit) => limit >= Math.max(...probabilities)) ?? 1;

/** What the slider of heads calls them, and the sentence. */
export const headName = (head, numHeads) => (head === 0 ? "mean of all" : `block ${Math.ceil(head / numHeads)}, head ${((head - 1) % numHeads) + 1}`);

/**
 * A table of letters, each with a bar: `show(caption, letters, chosen, full)` fills it with pairs of a letter and its
 * probability; a full bar stands for `full`.
 */
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
