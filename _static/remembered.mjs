// What the book remembers of a reader, shown: ticks, the place where the reading stopped, and a button that deletes it all.

import { forget, memory, remember, root } from "./memory.mjs";

const page = location.href.split(/[?#]/)[0].slice(root.length);
const isChapter = page.startsWith("chapters/");

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// --- ticks ---------------------------------------------------------------------------------------------------------

function box(kind, id, field) {
  field.addEventListener("change", () => remember((all) => {
    if (field.checked) all[kind][id] = 1;
    else delete all[kind][id];
  }));
  return () => { field.checked = Boolean(memory()[kind][id]); };
}

const boxes = [...document.querySelectorAll(".answer-done input")].map((field) => box("done", field.closest(".exercise").id, field));
if (isChapter) {
  const field = element("input", { type: "checkbox" });
  boxes.push(box("read", page, field));
  document.querySelector(".bd-article").append(element("p", { className: "chapter-read" }, element("label", {}, field, " I have read this chapter")));
}

// --- the sidebar, and the landing page --------------------------------------------------------------------------------

const sidebar = document.querySelector(".sidebar-primary-items__start");
const goOn = element("a", { className: "go-on" });
const kept = element("div", { className: "kept" },
  element("p", {}, "Your ticks, your answers and the place where you stopped are kept in this browser and sent nowhere."),
  element("button", { type: "button", onclick: forget }, "Delete all of it"));
const { last } = memory();
// Nothing moves while one reads: the link says where the reading stopped before this page was opened.
const isKnown = typeof last?.path === "string" && last.path.startsWith("chapters/") && last.path.split("#")[0] !== page;
if (isKnown) sidebar?.querySelector("nav")?.before(Object.assign(goOn, { href: root + last.path, textContent: `Go on at ${last.title}` }));
const start = isKnown && document.querySelector(".start a"); // of the landing page
const first = start && { href: start.href, text: start.textContent };
if (start) {
  start.href = goOn.href;
  start.firstElementChild.textContent = goOn.textContent;
}

function show() {
  const { isEmpty, read } = memory();
  for (const update of boxes) update();
  for (const link of sidebar?.querySelectorAll("nav a") ?? []) {
    link.classList.toggle("read", link.href.split("#")[0].slice(root.length) in read);
  }
  if (!isEmpty) return sidebar?.append(kept);
  kept.remove();
  goOn.remove();
  if (start) {
    start.href = first.href;
    start.firstElementChild.textContent = first.text;
  }
}

// --- the place where the reading stopped --------------------------------------------------------------------------------

/** The section that crosses the middle of the window; what only its own heading says of it. */
function place() {
  const sections = [...document.querySelectorAll(".bd-article > section, .bd-article > section > section")];
  const here = sections.findLast((one) => one.getBoundingClientRect().top < innerHeight / 2) ?? sections[0];
  const heading = here.querySelector("h1, h2").cloneNode(true);
  heading.querySelector(".headerlink")?.remove();
  const title = heading.textContent.trim().replace(/^([\w.]+)\.\s+/, "$1 ");
  remember((all) => { all.last = { path: `${page}#${here.id}`, title }; });
}

if (isChapter) {
  let moved = false, timer; // a page that opens may scroll by itself, which is no reading
  for (const event of ["wheel", "touchmove", "keydown", "pointerdown"]) addEventListener(event, () => { moved = true; }, { passive: true, once: true });
  addEventListener("scroll", () => {
    clearTimeout(timer);
    if (moved) timer = setTimeout(place, 400);
  }, { passive: true });
}

addEventListener("remembered", show);
addEventListener("storage", show); // another window of the book
show();
