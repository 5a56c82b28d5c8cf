// Draw each live figure of this page when the reader comes near it. Until then, and if its module fails, the
// fallback that the page was written with stays in sight.
import { whenAddressed } from "./address.mjs";

async function bring(figure) {
  const stage = document.createElement("div");
  stage.className = "live-figure-stage";
  const { mount } = await import(new URL(`./${figure.dataset.widget}.mjs`, import.meta.url));
  figure.append(stage);
  // A figure that runs a model waits for its button to be pressed; its still picture is as good as the button.
  let pressed = null;
  stage.addEventListener("click", (event) => { if (event.target.closest(".lf-start")) pressed = event; });
  figure.querySelector(".live-figure-fallback").addEventListener("click", () => stage.querySelector(".lf-start")?.click());
  try {
    await mount(stage);
  } catch (error) {
    stage.remove();
    figure.classList.add("live-figure-failed");
    throw error;
  }
  // The fallback's words remain for screen readers; the style sheet hides them from sight.
  figure.classList.add("live-figure-mounted");
  if (pressed) begin(figure, pressed);
}

/** The figure has taken the picture's place: show it from its top, and leave a reader without a mouse inside it. */
function begin(figure, { isTrusted, detail }) {
  if (figure.getBoundingClientRect().top < 0) figure.scrollIntoView();
  if (isTrusted && detail === 0) figure.querySelector(".live-figure-stage :is(input, textarea, button)")?.focus({ preventScroll: true });
}

const near = new IntersectionObserver(
  (entries) => entries.filter(({ isIntersecting }) => isIntersecting).forEach(({ target }) => bringOnce(target)),
  { rootMargin: "600px" },
);
const brought = new Set();

function bringOnce(figure) {
  near.unobserve(figure);
  if (brought.has(figure)) return;
  brought.add(figure);
  bring(figure).catch((error) => console.error(`live figure ${figure.dataset.widget}:`, error));
}

/** Have a look at a figure, unless half of it, or half a screen, is seen already. */
function lookAt(figure) {
  const { top, bottom, height } = figure.getBoundingClientRect();
  const seen = Math.min(bottom, innerHeight) - Math.max(top, 0);
  if (seen < Math.min(height, innerHeight) / 2) figure.scrollIntoView();
}

/** A fragment that sets a figure (address.mjs) brings it at once. Sections on the way may yet turn out higher or lower, and so may it itself. */
function follow(fragment) {
  const name = /^#([\w-]+)\?/.exec(fragment)?.[1];
  const figure = document.getElementById(name)?.querySelector(".live-figure");
  if (!figure) return;
  bringOnce(figure);
  const watch = new ResizeObserver(() => lookAt(figure));
  for (const node of [document.body, figure]) watch.observe(node);
  const leave = () => watch.disconnect(); // who scrolls is not fetched back
  for (const act of ["wheel", "touchmove", "pointerdown", "keydown"]) addEventListener(act, leave, { once: true, passive: true });
  setTimeout(leave, 5000);
}

document.querySelectorAll(".live-figure").forEach((figure) => near.observe(figure));
whenAddressed(follow);
