// What figures share in which a reader types a text for a model: the field, what the model reads, its tokens in a row.
import { html, placeAfter, textField, uniqueId, visible } from "./common.mjs";
import { newest } from "./engine/client.mjs";

/**
 * What a model reads of a text: the `ids` of at most `most` tokens, the last ones; `letters`, each token for the eye; and
 * `said`, words for the reader if the text was changed. A model that learned with a start token gets one.
 */
export function reading({ tokenizer, config }, text, most) {
  const start = "<start>" in tokenizer.special ? [tokenizer.special["<start>"]] : [];
  const room = Math.min(most, config.context_len) - start.length;
  const known = tokenizer.encode(text).filter((id) => id !== undefined);
  const ids = [...start, ...known.slice(-room)];
  const strangers = tokenizer.strangers(text).length;
  const others = tokenizer.special[tokenizer.unknown] === undefined ? "left out" : "read as □, the token for all others";
  const said = [
    strangers ? `${strangers === 1 ? "One character is" : `${strangers} characters are`} not in the model's vocabulary and ${others}.` : "",
    known.length > room ? `Of ${known.length} letters the last ${room} are read.` : "",
    ids.length ? "" : "There is nothing to read yet: type a letter.",
  ].filter(Boolean).join(" ");
  return { ids, said, letters: ids.map((id) => letterOf(tokenizer, id)) };
}

/** A token of a vocabulary for the eye: special ones have signs of their own. */
export function letterOf(tokenizer, id) {
  const token = tokenizer.tokens[id];
  if (!Object.hasOwn(tokenizer.special, token)) return visible(token);
  return token === "<start>" ? "⊢" : token === tokenizer.unknown ? "□" : token;
}

/** The tokens of a text in a row, one of them chosen by pointer, touch or arrow keys. */
export function strip({ label, onchoose }) {
  const prefix = uniqueId("letter");
  const node = html("div", { class: "lf-strip", role: "listbox", tabindex: 0, "aria-label": label });
  let chosen = 0;
  const choose = (n) => { if (n >= 0 && n < node.children.length && n !== chosen) onchoose(n); };
  node.addEventListener("keydown", (event) => {
    const key = { ArrowUp: "ArrowLeft", ArrowDown: "ArrowRight" }[event.key] ?? event.key;
    const to = placeAfter(key, chosen, node.children.length);
    if (to === undefined) return;
    event.preventDefault();
    choose(to);
  });
  const follow = (event) => {
    const under = node.getRootNode().elementFromPoint(event.clientX, event.clientY);
    choose([...node.children].findIndex((option) => option.contains(under)));
  };
  node.addEventListener("pointerdown", follow);
  node.addEventListener("pointermove", (event) => { if (event.buttons) follow(event); });
  function show(letters, now, share = () => 0) {
    chosen = now;
    while (node.children.length > letters.length) node.lastChild.remove();
    letters.forEach((letter, n) => {
      const option = node.children[n] ?? node.appendChild(html("span", { role: "option", id: `${prefix}-${n}` }));
      if (option.textContent !== letter) option.textContent = letter;
      option.setAttribute("aria-selected", n === now);
      option.style.setProperty("--share", `${Math.round(100 * share(n))}%`);
    });
    node.setAttribute("aria-activedescendant", `${prefix}-${now}`);
  }
  return { node, show };
}

/**
 * A field whose text a model reads: `read(text)` says what of it, and what `ask(ids)` answers goes to `show(answer, read)`.
 * `type(change)` puts other settings, with a text, in place of those of the figure, by `settings(change)`; `again(first)`
 * goes back to the first, whose answer is remembered.
 */
export function typing({ stage, publish }, { settings, typed, read, ask, show }) {
  let first = null;
  const field = textField({ label: "Your text", tag: "textarea", onchange: (text) => type({ text, ...typed }) });
  const compute = newest(({ ids }) => ask(ids), (answer, text) => {
    if (text.text !== settings().text) return; // meanwhile it was reset
    first ??= [answer, text];
    show(answer, text);
  }, ({ message }) => publish({ ...settings(), error: message }, message));
  function type(change) {
    const state = settings(change);
    field.value = state.text;
    const text = { ...read(state.text), text: state.text };
    const isEmpty = text.ids.length === 0;
    stage.classList.toggle("lf-stale", isEmpty);
    publish({ ...state, busy: !isEmpty }, text.said);
    return isEmpty ? null : compute(text);
  }
  function again(start) {
    const asked = type(start);
    if (first) show(...first);
    return asked;
  }
  return { node: field.node, type, again };
}
