// Draw each live figure of this page when the reader comes near it. Until then, and if its module fails, the
// fallback that the page was written with stays in sight.

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
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      bring(target).catch((error) => console.error(`live figure ${target.dataset.widget}:`, error));
    }
  },
  { rootMargin: "600px" },
);

document.querySelectorAll(".live-figure").forEach((figure) => near.observe(figure));
