// What helps in reading: cards over links to terms, equations and citations, and boxes that scroll from the keyboard.

const LINKS = ['[href*="#term-"]', '[href*="#equation-"]', '[href*="bibliography.html#"]'].map((part) => `a.reference${part}`).join();
const SCROLLS = "div.highlight pre, div.math, table.docutils, table.table, figure.drawing, .cell_output";
const pages = new Map();
let card, link, timer, touched = false;

// --- cards ---------------------------------------------------------------------------------------------------------

/** The page that a link leads to: this one, or one that is fetched once. */
function page(url) {
  const address = url.href.split("#")[0];
  if (address === location.href.split("#")[0]) return document;
  if (!pages.has(address)) {
    pages.set(address, fetch(address).then((reply) => (reply.ok ? reply.text() : Promise.reject(reply)))
      .then((text) => new DOMParser().parseFromString(text, "text/html")));
    pages.get(address).catch(() => pages.delete(address)); // the next link asks again
  }
  return pages.get(address);
}

/** A copy of what a link leads to: an equation, an entry of the bibliography, a term with its meaning. */
async function content(url) {
  const id = decodeURIComponent(url.hash.slice(1));
  const target = (await page(url)).getElementById(id);
  if (!target) return null;
  const parts = target.localName === "dt" ? [target, target.nextElementSibling] : [target];
  const copy = document.createElement("div");
  copy.append(...parts.map((part) => document.importNode(part, true)));
  copy.querySelectorAll(".headerlink, .eqno, .label, .backrefs").forEach((part) => part.remove());
  for (const part of copy.querySelectorAll("[id], [tabindex]")) {
    part.removeAttribute("id");
    part.removeAttribute("tabindex");
  }
  for (const part of copy.querySelectorAll("a")) part.replaceWith(...part.childNodes); // a card is read, not worked
  return copy;
}

/** Below the link or, where there is no room, above it; never over the edge. */
function place() {
  const line = link.getClientRects()[0], width = document.documentElement.clientWidth;
  card.style.left = `${scrollX + Math.max(8, Math.min(line.left, width - card.offsetWidth - 8))}px`;
  const below = line.bottom + card.offsetHeight + 8 < innerHeight || line.top < card.offsetHeight + 8;
  card.style.top = `${scrollY + (below ? line.bottom + 4 : line.top - card.offsetHeight - 4)}px`;
}

function close() {
  clearTimeout(timer);
  link?.removeAttribute("aria-describedby");
  card?.remove();
  card = link = undefined;
}

async function open(wanted) {
  if (link === wanted) return;
  close();
  link = wanted;
  const found = await content(new URL(wanted.href)).catch(() => null); // from a folder nothing can be fetched
  if (!found || link !== wanted) return;
  wanted.removeAttribute("title");
  card = Object.assign(found, { className: "card-over", id: "card-over", role: "tooltip" });
  document.querySelector(".bd-article").append(card);
  wanted.setAttribute("aria-describedby", card.id);
  place();
}

const wanted = (event) => event.target.closest?.(".bd-article") && event.target.closest(LINKS);

/** Soon, unless the pointer has gone on. */
function soon(action, wait) {
  clearTimeout(timer);
  timer = setTimeout(action, wait);
}

addEventListener("pointerdown", (event) => {
  touched = event.pointerType !== "mouse";
  if (touched && !wanted(event)) close();
});
addEventListener("pointerover", (event) => {
  if (event.pointerType !== "mouse") return;
  const over = wanted(event);
  if (over && !card?.contains(over)) soon(() => open(over), 150);
  else if (card?.contains(event.target)) clearTimeout(timer);
  else if ((link || timer) && !link?.matches(":focus-visible")) soon(close, 250);
});
addEventListener("focusin", (event) => {
  const over = wanted(event);
  if (over && over.matches(":focus-visible")) open(over);
  else close();
});
addEventListener("keydown", (event) => event.key === "Escape" && close());
// A finger's first tap opens the card, its second follows the link.
addEventListener("click", (event) => {
  const over = wanted(event);
  if (!over || !touched || link === over) return;
  event.preventDefault();
  open(over);
}, true);

// --- boxes that scroll ----------------------------------------------------------------------------------------------

/** Reached by the Tab key, and with a shadow at the edge, as long as there is more than is seen. */
function mark(box) {
  const more = box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "visible";
  if (more === box.classList.contains("scrolls")) return;
  box.classList.toggle("scrolls", more);
  if (more) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}

const whenIdle = window.requestIdleCallback ?? ((work) => setTimeout(() => work({ timeRemaining: () => 10 })));

/** All of them, a few at a time: each has to be laid out, and a page lays out first what is in sight. */
function markAll() {
  const boxes = [...document.querySelectorAll(SCROLLS)];
  whenIdle(function some(deadline) {
    do mark(boxes.shift() ?? document.body);
    while (boxes.length && deadline.timeRemaining() > 4);
    if (boxes.length) whenIdle(some);
  });
}

/** How wide a plot is by itself; on a phone the style keeps its letters legible. */
function measure(picture) {
  if (picture.naturalWidth) picture.style.setProperty("--natural", `${picture.naturalWidth}px`);
}

for (const picture of document.querySelectorAll(".cell_output img")) {
  measure(picture);
  picture.addEventListener("load", () => measure(picture));
}
// What can be seen on a folded cell is what it is called.
for (const fold of document.querySelectorAll("details.hide > summary")) fold.removeAttribute("aria-label");
// A picture that nobody has scrolled to yet is to be printed as well.
addEventListener("beforeprint", () => document.querySelectorAll("img[loading]").forEach((one) => { one.loading = "eager"; }));
markAll();
for (const event of ["load", "resize"]) addEventListener(event, markAll);
document.addEventListener("toggle", markAll, true);
