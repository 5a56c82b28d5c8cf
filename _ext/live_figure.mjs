// Draw each live figure of this page when the reader comes near it. Until then, and if its module fails, the
// fallback that the page was written with stays in sight.

async function bring(figure) {
  const stage = document.createElement("div");
  stage.className = "live-figure-stage";
  const { mount } = await import(new URL(`./${figure.dataset.widget}.mjs`, import.meta.url));
  figure.append(stage);
  try {
    await mount(stage);
  } catch (error) {
    stage.remove();
    throw error;
  }
  // The fallback's words remain for screen readers; the style sheet hides them from sight.
  figure.classList.add("live-figure-mounted");
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
