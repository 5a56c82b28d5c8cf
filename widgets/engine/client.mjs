// What a figure needs of the engine: `loadModel` and then `model.ask("method", ...inputs)`, in a worker if there is one.
import { tokenizerOf } from "./tokenizer.mjs";

const waiting = new Map();
let count = 0;
let opened = null;

/** A function that answers requests: of a worker, or of this page where no worker can be started. */
function open() {
  opened ??= new Promise((resolve, reject) => {
    const here = () => import("./host.mjs").then(({ answer }) => resolve(answer), () => {
      opened = null; // whoever asks next tries again
      reject(new Error("What runs the model could not be fetched: there is no connection. Try again, or reload the page."));
    });
    const stopped = () => new Error("The model stopped. Reload the page to start it again.");
    let [worker, isAlive] = [null, true];
    try {
      worker = new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" });
    } catch {
      return here();
    }
    worker.addEventListener("error", () => { // an old browser has no modules in workers
      for (const { reject } of waiting.values()) reject(stopped());
      waiting.clear();
      isAlive = false;
      here();
    });
    worker.addEventListener("message", ({ data: { number, loaded, total, value, error } }) => {
      const asked = waiting.get(number);
      if (number === 0) return resolve(inWorker);
      if (loaded) return asked?.onprogress(loaded, total);
      waiting.delete(number);
      return error === undefined ? asked?.resolve(value) : asked?.reject(new Error(error));
    });
    const inWorker = (request, onprogress = () => {}) => new Promise((done, reject) => {
      if (!isAlive) return reject(stopped());
      waiting.set(++count, { resolve: done, reject, onprogress });
      worker.postMessage({ ...request, number: count });
    });
    worker.postMessage({ number: 0, method: "hello" });
  });
  return opened;
}

/** A model by its name, from an address or the bytes of its file: its configuration, its tokenizer, and its answers. */
export async function loadModel(name, source, onprogress = () => {}) {
  const answer = await open();
  const { config, tokenizer } = await answer({ name, method: "load", inputs: [source] }, onprogress);
  return { config, tokenizer: tokenizerOf(tokenizer), ask: (method, ...inputs) => answer({ name, method, inputs }) };
}

/** Give back the room that a model takes, which nobody will ask any more. */
export const release = async (name) => (await open())({ name, method: "release", inputs: [] });

/** A model that learns in the page (training.mjs), made by its options; one of that name that is there makes way for it. */
export async function newLearner(name, options) {
  const answer = await open();
  await answer({ name, method: "learn", inputs: [options] });
  return { ask: (method, ...inputs) => answer({ name, method, inputs }) };
}

/**
 * A function that has `work(...inputs)` done and shown by `show(result)`, and while that goes on remembers only the
 * newest of the further inputs: who types faster than the model computes sees every result that is not yet out of date.
 */
export function newest(work, show, fail = (error) => { throw error; }) {
  let [busy, next] = [false, null];
  return async (...inputs) => {
    next = inputs;
    if (busy) return;
    busy = true;
    try {
      while (next) {
        const now = next;
        next = null;
        try {
          const result = await work(...now);
          if (!next) show(result, ...now);
        } catch (error) {
          if (!next) fail(error);
        }
      }
    } finally {
      busy = false;
    }
  };
}

/**
 * A function that has `work(question)` done and shown by `show(answer)`, unless another question came meanwhile; `wait()`
 * hears that it takes a while. Answers are remembered by the `key` of their questions.
 */
export function remembering({ work, wait, show, fail }) {
  const answers = new Map();
  let asked;
  const find = newest(work, (answer, { key }) => {
    if (answers.size > 100) answers.clear();
    answers.set(key, answer);
    if (key === asked) show(answer);
  }, fail);
  return (question) => {
    asked = question.key;
    if (answers.has(asked)) return show(answers.get(asked));
    wait();
    return find(question);
  };
}
