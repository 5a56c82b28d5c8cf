// What every page of the book does by itself: it gives a formula's TeX to whoever copies it, opens a folded box whose
// title is a link, lets keys scroll what is wider than the page, and fetches the search when a reader turns to it.

// --- Formulas -------------------------------------------------------------------------------------------------

document.addEventListener("copy", (event) => {
  const selection = getSelection();
  if (selection.isCollapsed || !selection.rangeCount) return;
  const range = selection.getRangeAt(0);
  // Of a formula that is touched, the whole.
  for (const [edge, move] of [["startContainer", "setStartBefore"], ["endContainer", "setEndAfter"]]) {
    const formula = (range[edge].parentElement ?? range[edge]).closest?.("math");
    if (formula) range[move](formula);
  }
  const copied = document.createElement("div");
  copied.append(range.cloneContents());
  if (!copied.querySelector("math")) return;
  const shown = copied.innerHTML;
  for (const formula of copied.querySelectorAll("math")) {
    const sign = formula.getAttribute("display") === "block" ? "$$" : "$";
    formula.replaceWith(`${sign}${formula.getAttribute("alttext")}${sign}`);
  }
  copied.querySelectorAll(".eqno, .headerlink, .equation-row").forEach((node) => node.remove());
  document.body.append(copied); // only what is in the page has lines
  event.clipboardData.setData("text/plain", copied.innerText);
  event.clipboardData.setData("text/html", shown);
  copied.remove();
  event.preventDefault();
});

// --- Titles of folded boxes -----------------------------------------------------------------------------------

// Where a title holds a link or a formula, the theme's script looks for its button in vain.
document.addEventListener(
  "click",
  (event) => {
    const title = event.target.closest?.(".admonition-title");
    const button = title?.querySelector(".toggle-button");
    if (!button || event.target === title || button.contains(event.target)) return;
    event.stopPropagation();
    const link = event.target.closest("a");
    if (!link || button.classList.contains("toggle-button-hidden")) button.click();
  },
  true,
);

// --- Boxes that scroll ----------------------------------------------------------------------------------------

// What is wider than its box is reached with the Tab key, so that arrow keys can scroll it. Sections are laid out when
// the reader comes near, and measured then.
const BOXES = "pre, .cell_output > .output, .output_area, .pst-scrollable-table-container";

function measure(part) {
  for (const box of part.querySelectorAll(BOXES)) {
    box.tabIndex = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight ? 0 : -1;
  }
}

document.addEventListener("contentvisibilityautostatechange", ({ target, skipped }) => skipped || measure(target), true);
const article = document.querySelector("article.bd-article");
if (article && !("oncontentvisibilityautostatechange" in article)) (window.requestIdleCallback ?? setTimeout)(() => measure(article));

// --- Search ---------------------------------------------------------------------------------------------------

const form = (event) => event.target.closest?.("form.bd-search");

document.addEventListener("focusin", async (event) => {
  if (form(event)) (await import("./search.mjs")).attend(form(event));
});
// The search page has its words in its address.
for (const found of document.querySelectorAll("main form.bd-search")) (await import("./search.mjs")).attend(found);
