// The machine on the landing page: its first answer is drawn from a file, before any model is fetched. A model comes when
// the reader presses for it or for another one, or types.
import { oneOf } from "./address.mjs";
import { button, choice, html } from "./common.mjs";
import { loadModel } from "./engine/client.mjs";
import { readRecorded } from "./engine/recorded.mjs";
import { megabytes, modelsOf } from "./engine/start.mjs";
import { LABEL, Machine } from "./machine.mjs";

const NAMES = { stories: "stories", shakespeare: "Shakespeare" };
const HEAD = 3; // the one that reads from the question to the place

/** A model that is fetched once, when it is first wanted; `show(words, share)` hears how far it has come. */
function source({ name, address, bytes }, show) {
  let coming = null;
  const self = { has: false, get };
  async function load() {
    const size = megabytes(bytes);
    show(`0.0 of ${size} MB`, 0);
    try {
      const model = await loadModel(name, address, (loaded) => show(`${megabytes(loaded)} of ${size} MB`, loaded / bytes));
      self.has = true;
      show("", null);
      return model;
    } catch (error) {
      coming = null; // whoever asks next tries again
      show(error.message, null);
      throw error;
    }
  }
  function get() { return (coming ??= load()); }
  return self;
}

/** The model of a source, which answers one text from what was recorded and is fetched for every other one. */
function withFirstAnswer({ text, block, arrays, config, tokenizer }, from) {
  const first = tokenizer.encode(text).join();
  const ask = async (method, name, ids) => (ids.join() === first && !from.has ? arrays : (await from.get()).ask(method, name, ids));
  return { config, tokenizer, ask, opening: { text, block, head: HEAD } };
}

/** Controls that fetch: a button for the model that is there, a choice of models, and how far one has come. */
function fetching(models, { run, change }) {
  const bar = html("progress", { max: 1, hidden: true, "aria-label": "How much of the model has arrived" });
  const said = html("span", { class: "lf-note", role: "status" });
  const size = ({ bytes }) => `${megabytes(bytes)} MB`;
  const press = button(`Your own text (${size(models[0])})`, run);
  const which = choice({ legend: "Model", onchange: change,
    options: models.map((model, i) => [model.name, i ? `${NAMES[model.name]} (${size(model)})` : NAMES[model.name]]) });
  function show(words, share) {
    said.textContent = words;
    bar.hidden = share === null;
    if (share !== null) bar.value = share;
  }
  return { node: html("div", { class: "lf-fetch" }, press, which.node, bar, said), press, which, show };
}

export async function mount(element) {
  const models = modelsOf(element);
  const recorded = await readRecorded(new URL("stage.safetensors", import.meta.url).href);
  const controls = fetching(models, { run: () => begin(true), change });
  const sources = models.map((model) => source(model, (...told) => controls.show(...told)));
  const first = withFirstAnswer(recorded, sources[0]);
  element.classList.add("lf-on-stage");
  const machine = new Machine(element, first, { label: LABEL, name: models[0].name,
    shut: `To look inside it, press “${controls.press.textContent}”.` });
  const field = machine.text.node.querySelector("textarea");
  machine.text.node.after(controls.node);
  field.addEventListener("pointerdown", () => begin(false));
  show();

  function show() {
    controls.which.value = machine.state.model;
    controls.press.hidden = sources[0].has || machine.state.model !== models[0].name;
  }

  /** Fetch the model that is there, for a text of the reader's; what was typed meanwhile it reads first. */
  async function begin(isPressed) {
    if (isPressed) field.focus();
    if (controls.press.hidden) return;
    await sources[0].get().then(() => machine.text.type({}), () => {}); // what went wrong has been said
    show();
  }

  async function change(name) {
    const place = models.findIndex((model) => model.name === name);
    try {
      machine.use(place ? await sources[place].get() : first, name);
    } catch { /* what went wrong has been said */ }
    show();
  }
  /** Before a link is followed: its model, and the inside of another block, which was not recorded. */
  async function ready({ model, text, block }) {
    const isOther = model !== machine.state.model;
    if (isOther) await change(model);
    else if (model === models[0].name && block !== recorded.block) await sources[0].get().catch(() => {}); // it has been said
    show();
    return { model: machine.state.model, ...(isOther && text === recorded.text && { text: machine.start.text }) };
  }

  const { node } = machine.machine;
  node.classList.add("lf-arrives"); // its arrays come one after the other
  setTimeout(() => node.classList.remove("lf-arrives"), 5000);
  await machine.shown();
  await machine.addressed({ model: oneOf(models.map(({ name }) => name)) }, ready);
}
