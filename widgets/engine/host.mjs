// Models fetched once each, and their answers: what the worker does, or the page itself where there are no workers.
import { modelOf } from "./models.mjs";
import { checkSeal, inFloats, readSafetensors } from "./safetensors.mjs";

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
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      parts.push(part.value);
      onprogress(loaded += part.value.length, total);
    }
  } catch {
    throw new Error(`The connection broke off after ${loaded} bytes of the model. Try again.`);
  }
  return new Blob(parts).arrayBuffer();
}

/** Where an earlier visit may have kept files; null where the browser keeps none. */
async function openShelf() {
  try {
    return await caches.open("plainformer");
  } catch {
    return null;
  }
}

/** Keep a file for the next visit, in place of older versions of it; if the storage is full, do without. */
async function keep(shelf, address, bytes) {
  try {
    await shelf?.delete(address, { ignoreSearch: true });
    await shelf?.put(address, new Response(bytes));
  } catch { /* it is fetched again next time */ }
}

async function modelFrom(bytes) {
  const file = readSafetensors(bytes);
  await checkSeal(file);
  return { model: modelOf({ ...file, tensors: inFloats(file.tensors) }), config: file.config, tokenizer: file.tokenizer };
}

/** A model from an address, or from the bytes of its file. */
async function load(source, onprogress) {
  if (typeof source !== "string") return modelFrom(source);
  const shelf = await openShelf();
  const kept = await shelf?.match(source).catch(() => null);
  if (kept) {
    try {
      return await modelFrom(await kept.arrayBuffer());
    } catch { /* what was kept is damaged: fetch it anew */ }
  }
  const bytes = await download(source, onprogress);
  const loaded = await modelFrom(bytes);
  await keep(shelf, source, bytes);
  return loaded;
}

/**
 * What the model of that name returns for `method(...inputs)`; for "load", its configuration and tokenizer; for "learn",
 * nothing: there is a new one then, which has learned nothing yet; for "release", nothing: there is none any more.
 */
export async function answer({ name, method, inputs }, onprogress = () => {}) {
  if (method === "learn") {
    const { Recall } = await import("./training.mjs");
    models.set(name, { model: new Recall(...inputs) });
    return null;
  }
  if (method === "load") {
    if (!models.has(name)) {
      models.set(name, load(inputs[0], onprogress)); // at once: another figure that wants it waits for the same file
      models.get(name).catch(() => models.delete(name));
    }
    const { config, tokenizer } = await models.get(name);
    return { config, tokenizer };
  }
  if (method === "release") return void models.delete(name);
  if (!models.has(name)) throw new Error(`There is no model ${name} any more. Reload the page, or run the cell again.`);
  return (await models.get(name)).model[method](...inputs);
}
