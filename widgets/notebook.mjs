// Shows a live figure in a notebook (anywidget). There is no server to ask for modules: they come as texts, and each is
// given an address of its own once those that it imports have one.

const IMPORT = /(from|import\()\s*"(\.[^"]+)"/g;

/** The address of each module by its path, for modules whose imports say where to look: "./x.mjs", "../x.mjs". */
export function addresses(modules) {
  const known = {};
  function addressOf(path) {
    known[path] ??= URL.createObjectURL(new Blob([modules[path].replace(IMPORT, (_, word, to) => {
      const target = new URL(to, `file:///${path}`).pathname.slice(1);
      return `${word} "${addressOf(target)}"`;
    })], { type: "text/javascript" }));
    return known[path];
  }
  return addressOf;
}

export default {
  async render({ model, el }) {
    const addressOf = addresses(model.get("modules"));
    const { mount } = await import(addressOf(`${model.get("figure")}.mjs`));
    const bytes = model.get("file");
    const file = bytes?.byteLength ? { name: model.get("name"), bytes: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) } : {};
    const stage = document.createElement("div");
    el.append(stage);
    try {
      await mount(stage, { ...model.get("values"), ...file });
    } catch (error) {
      stage.textContent = error.message; // a figure says itself what it can mend
    }
  },
};
