// Before a model is fetched the reader is asked, and sees how far it has come; what went wrong is said, with a way on.
import { isOf, nameOf, whenAddressed } from "../address.mjs";
import { button, frame, html } from "../common.mjs";
import { loadModel } from "./client.mjs";

export const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

/** The models that the page names for a figure, the first for its beginning: name, bytes and address of each. */
export function modelsOf(element) {
  const { model, bytes, version = "" } = element.closest(".live-figure").dataset;
  const [sizes, versions] = [bytes, version].map((words) => words.split(" "));
  return model.split(" ").map((name, i) => ({ name, bytes: Number(sizes[i]),
    address: new URL(`../../models/${name}.safetensors?${versions[i]}`, import.meta.url).href }));
}

/**
 * The model of a figure, once the reader wants it: presses the button, or follows a link to a state of the figure. The page says which (`data-model`, `data-bytes`); a notebook hands
 * over the bytes, as `given`, and needs not be asked. Until it is there, the still picture stays above the button.
 */
export async function start(element, { label, given = null }) {
  if (given) return loadModel(given.name, given.bytes);
  const [{ name, bytes, address }] = modelsOf(element);
  const { controls, publish } = frame(element, { label });
  const bar = html("progress", { max: bytes, value: 0, "aria-label": "How much of the model has arrived", hidden: true });
  const run = button(`Run the model here (${megabytes(bytes)} MB)`, null, { class: "lf-button lf-start" });
  controls.append(run, bar);
  publish({ started: false }, "Every number will be computed in this page, by the book's own trained model.");
  const model = new Promise((resolve) => run.addEventListener("click", async () => {
    run.disabled = true;
    bar.hidden = false;
    publish({ started: false }, `The model is on its way, ${megabytes(bytes)} MB.`);
    try {
      resolve(await loadModel(name, address, (loaded) => {
        bar.value = loaded;
        publish({ started: false, loaded }, `${megabytes(loaded)} of ${megabytes(bytes)} MB`);
      }));
    } catch (error) {
      run.disabled = false;
      run.textContent = "Try again";
      bar.hidden = true;
      publish({ started: false, error: error.message }, error.message);
    }
  }));
  whenAddressed((fragment) => { if (run.isConnected && isOf(fragment, nameOf(element))) run.click(); });
  return model;
}
