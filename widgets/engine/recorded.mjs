// What a model once answered, in a file that a tool of the book wrote: it can be drawn before the model is fetched.
import { matrix, range } from "./arrays.mjs";
import { readSafetensors } from "./safetensors.mjs";
import { tokenizerOf } from "./tokenizer.mjs";

/** An array in floats: whole numbers times a step, in as many matrices as it has heads. */
function inMatrices({ data, shape }, step) {
  const [rows, columns] = shape.slice(-2);
  const parts = range(shape.length === 3 ? shape[0] : 1).map((h) =>
    matrix(rows, columns, Float32Array.from(data.subarray(h * rows * columns, (h + 1) * rows * columns), (number) => number * step)));
  return shape.length === 3 ? parts : parts[0];
}

/** The text that was read, its block that is known from the inside, all arrays, and how the model reads texts. */
export async function readRecorded(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`The first answer could not be fetched (status ${response.status}). Reload the page.`);
  const { tensors, config, tokenizer, metadata } = readSafetensors(await response.arrayBuffer());
  const { text, block, steps } = JSON.parse(metadata.recorded);
  const arrays = Object.fromEntries([...tensors].map(([name, tensor]) => [name, inMatrices(tensor, steps[name])]));
  return { text, block, arrays, config, tokenizer: tokenizerOf(tokenizer) };
}
