// Models fetched once each, and their answers: what the worker does, or the page itself where there are no workers.
import { modelOf } from "./models.mjs";
import { checkSeal, readSafetensors } from "./safetensors.mjs";

const models = new Map();

async function download(address, onprogress) {
  let response;
  try {
    response = await fetch(address);
  } catch {
    throw new Error("The model could not be fetched: there is no connection. Try again.");
  }
  if (!response.ok) throw new Error(`The model could not be fetched (status ${response.status}). Try again, or reload the page.`);
  const total = Number(response.headers.get("content-length"));
  const [parts, reader] = [[], response.body.getReader()];
  let loaded = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    onprogress(loaded += part.value.length, total);
  }
  return new Blob(parts).arrayBuffer();
}

/** A model from an address, or from the bytes of its file. */
async function load(source, onprogress) {
  const file = readSafetensors(typeof source === "string" ? await download(source, onprogress) : source);
  await checkSeal(file);
  const model = modelOf(file);
  return { model, config: file.config, tokenizer: file.tokenizer };
}

/** What the model of that name returns for `method(...inputs)`; for the method "load", its configuration and tokenizer. */
export async function answer({ name, method, inputs }, onprogress = () => {}) {
  if (method === "load") {
    if (!models.has(name)) models.set(name, await load(inputs[0], onprogress));
    const { config, tokenizer } = models.get(name);
    return { config, tokenizer };
  }
  return models.get(name).model[method](...inputs);
}
