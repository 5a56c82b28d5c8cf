// Rows of letters that can be pointed at, and curves between them: what the figures of chapters 08 and 09 share.
import { button, html, mean, placeAfter, svg } from "./common.mjs";

/**
 * A text as a model is to read it: at most so many letters, their ids, and which of them are `strange` to its vocabulary.
 * If that has no token for strange ones, as a reader's own may not, they are left out, except a `gap` that will be hidden.
 */
export function reading(text, tokenizer, most, { ending = "", gap = "" } = {}) {
  const isRead = (letter) => tokenizer.unknown !== null || letter === gap || tokenizer.ids.has(letter);
  const all = [...text.normalize("NFC")];
  const typed = all.filter(isRead);
  const letters = [...typed, ...ending].slice(0, most);
  const strange = letters.map((letter) => !tokenizer.ids.has(letter));
  const left = all.filter((letter) => !isRead(letter));
  return { text, letters, strange, left, own: Math.min(typed.length, most), cut: typed.length > most, ids: letters.map((letter) => tokenizer.encode(letter)[0]) };
}

/** What of a text the model cannot read, in words. */
export function complaint({ letters, strange, left, cut }) {
  const strangers = [...new Set([...letters.filter((_, n) => strange[n]), ...left])].slice(0, 5).join("");
  return (strangers && ` The vocabulary lacks “${strangers}”: ${left.length ? "that is left out" : "the model reads <other> there"}.`) + (cut ? ` Only the first ${letters.length} characters are read.` : "");
}

/** Texts to start from, as buttons with their names. */
export function examples({ label, texts, name = String, onchoose }) {
  const buttons = texts.map((text) => button(name(text), () => onchoose(text), { class: "lf-button lf-small" }));
  return html("div", { class: "lf-examples lf-wide", role: "group", "aria-label": label }, buttons);
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
    const tile = html("button", { type: "button", onclick: choose, onpointerenter: (event) => { if (event.pointerType === "mouse") onhover?.(place(tile)); },
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
