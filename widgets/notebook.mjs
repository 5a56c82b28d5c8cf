// Shows a live figure in a notebook (anywidget). There is no server to ask for modules: they come as texts, and each is
// given an address of its own once those that it names have one.

// As `from "./x.mjs"` and `import("./x.mjs")`, or, for a worker, `new URL("./x.mjs", import.meta.url)`.
const NAMED = /(from |import\()"(\.[^"]+\.mjs)"|new URL\("(\.[^"]+\.mjs)", import\.meta\.url\)/g;

// Addresses by their texts, shared by all figures of a notebook: they have one engine, and one worker, between them.
const shared = (globalThis.plainformerModules ??= new Map());
let views = 0;

/** A function that gives each module its address, by its path. */
export function addresses(modules) {
  return function addressOf(path) {
    const text = modules[path].replace(NAMED, (_, word, imported, named) => {
      const address = addressOf(new URL(imported ?? named, `file:///${path}`).pathname.slice(1));
      return imported ? `${word}"${address}"` : `"${address}"`;
    });
    if (!shared.has(text)) shared.set(text, URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    return shared.get(text);
  };
}

export default {
  async render({ model, el }) {
    const stage = document.createElement("div");
    el.append(stage);
    const [addressOf, name] = [addresses(model.get("modules")), `${model.get("name")}-${++views}`];
    try {
      const { mount } = await import(addressOf(`${model.get("figure")}.mjs`));
      const file = model.get("file"); // a DataView
      const bytes = file?.byteLength && file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength);
      await mount(stage, { ...model.get("values"), ...(bytes && { name, bytes }) });
    } catch (error) {
      stage.textContent = error.message; // a figure says itself what it can mend
    }
    // Called when the figure leaves the notebook, as when its cell is run again.
    return () => import(addressOf("engine/client.mjs")).then(({ release }) => release(name)).catch(() => {});
  },
};
