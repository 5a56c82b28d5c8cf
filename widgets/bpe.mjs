// Byte-pair encoding of a text that the reader types (chapter 01), one merge at a time. The rules are those of
// `learn_merges` and `pre_tokenise` in the package; the browser tests hold the two against each other.
import { checkbox, frame, html, slider, uniqueId } from "./common.mjs";

const START = "low lower lowest newer newest wider widest";
const MOST = 200; // merges on the slider at most

// GPT-2's pieces: an English ending; letters, digits or signs after at most one space; white space.
const PIECES = /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

/** The bytes in the order of their ids, and the visible character that GPT-2's files write for each. */
function byteAlphabet() {
  const between = (first, last) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
  const visible = [...between(0x21, 0x7e), ...between(0xa1, 0xac), ...between(0xae, 0xff)];
  const hidden = between(0, 255).filter((byte) => !visible.includes(byte));
  return [...visible.map((byte) => [byte, String.fromCodePoint(byte)]), ...hidden.map((byte, n) => [byte, String.fromCodePoint(256 + n)])];
}
const ALPHABET = byteAlphabet();
const ID_OF_BYTE = new Map(ALPHABET.map(([byte], id) => [byte, id]));

const toPieces = (text) => (text.match(PIECES) ?? []).map((piece) => [...new TextEncoder().encode(piece)].map((byte) => ID_OF_BYTE.get(byte)));

/** The most frequent pair; among equals the one with the smaller left id, then the smaller right id. */
function bestPair(pieces) {
  const counts = new Map();
  for (const piece of pieces) {
    for (let n = 0; n + 1 < piece.length; n++) {
      const name = `${piece[n]},${piece[n + 1]}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  const ranked = [...counts].map(([name, times]) => ({ pair: name.split(",").map(Number), times }));
  return ranked.sort((p, q) => q.times - p.times || p.pair[0] - q.pair[0] || p.pair[1] - q.pair[1])[0];
}

function mergePair(piece, [left, right], id) {
  const merged = [];
  for (let n = 0; n < piece.length; n++) {
    const found = piece[n] === left && piece[n + 1] === right;
    merged.push(found ? id : piece[n]);
    if (found) n++;
  }
  return merged;
}

/** Learn all merges (up to `most`) and remember the text after each: steps[k] is the text after k merges. */
export function learn(text, most = MOST) {
  const bytes = ALPHABET.map(([byte]) => [byte]); // the bytes of each token, by id
  const spelled = ALPHABET.map(([, character]) => character);
  const steps = [toPieces(text)];
  const merges = [];
  for (let best; merges.length < most && (best = bestPair(steps.at(-1)));) {
    const [left, right] = best.pair;
    steps.push(steps.at(-1).map((piece) => mergePair(piece, best.pair, bytes.length)));
    bytes.push([...bytes[left], ...bytes[right]]);
    spelled.push(spelled[left] + spelled[right]);
    merges.push(best);
  }
  return { bytes, spelled, steps, merges, next: bestPair(steps.at(-1)) };
}

/** A token for the eye: its characters with ␣ for a space, or its bytes in hexadecimal if it cuts a character. */
function readable(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
  } catch {
    text = "\0";
  }
  if (!/[\p{C}\p{Zl}\p{Zp}]|^\p{M}/u.test(text)) return text.replace(/\p{Zs}/gu, "␣");
  return bytes.map((byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join("·");
}

export function mount(element) {
  const start = { text: START, applied: 4, gpt2: false };
  let state = { ...start };
  let model = learn(state.text);
  function set(change) {
    state = { ...state, ...change };
    if ("text" in change) model = learn(state.text);
    state.applied = Math.max(0, Math.min(state.applied, model.merges.length));
    render();
  }
  const { controls, stage, publish } = frame(element, { label: "Live figure: byte-pair encoding, one merge at a time", reset: () => set(start) });

  const id = uniqueId("text");
  const input = html("input", { type: "text", id, maxlength: 300, autocomplete: "off", spellcheck: "false", oninput: () => set({ text: input.value }) });
  const merges = slider({ label: "Merges", min: 0, max: 1, show: (value) => `${value} of ${model.merges.length}`, oninput: (applied) => set({ applied }) });
  const step = (by, words) => html("button", { type: "button", class: "lf-button", onclick: () => set({ applied: state.applied + by }) }, words);
  const [back, forward] = [step(-1, "Undo one"), step(1, "Merge one")];
  const gpt2 = checkbox({ label: "spell tokens as GPT-2's files do", onchange: (on) => set({ gpt2: on }) });
  controls.append(html("div", { class: "lf-field" }, html("label", { for: id }, "Text"), input), merges.node, back, forward, gpt2.node);

  const facts = ["bytes", "tokens", "vocabulary", "next merge"].map((name) => [name, html("dd")]);
  const chips = html("ul", { class: "lf-chips", "aria-label": "The text as tokens, one item for each piece" });
  const learned = html("ol", { class: "lf-chips lf-scroll", "aria-label": "Merges so far", tabindex: 0 });
  const spelling = html("p", { class: "lf-note" });
  stage.append(
    html("dl", { class: "lf-facts lf-wide" }, facts.map(([name, value]) => html("div", {}, html("dt", {}, name), value))),
    html("div", { class: "lf-wide" }, html("p", { class: "lf-title" }, "The text as tokens"), chips),
    html("div", { class: "lf-wide" }, html("p", { class: "lf-title" }, "Merges so far, and how often each pair occurred then"), learned), spelling);

  function render() {
    const { text, applied } = state;
    const pieces = model.steps[applied];
    const best = model.merges[applied] ?? model.next;
    const show = (token) => (state.gpt2 ? model.spelled[token] : readable(model.bytes[token]));
    if (input.value !== text) input.value = text;
    merges.max = model.merges.length;
    merges.value = applied;
    gpt2.checked = state.gpt2;
    // A button that has the focus must keep it, so it is switched off for assistive technology and in looks only.
    for (const [button, off] of [[back, applied === 0], [forward, applied === model.merges.length]]) button.setAttribute("aria-disabled", off);

    chips.replaceChildren(...pieces.map((piece) => {
      const isNext = piece.map(() => false);
      for (let n = 0; best && n + 1 < piece.length; n++) {
        if (piece[n] === best.pair[0] && piece[n + 1] === best.pair[1]) isNext[n] = isNext[++n] = true;
      }
      return html("li", { class: "lf-word" }, piece.map((token, n) =>
        html("span", { class: `lf-chip${token > 255 ? " lf-merged" : ""}${isNext[n] ? " lf-next" : ""}` }, show(token))));
    }));
    learned.replaceChildren(...model.merges.slice(0, applied).map(({ pair: [left, right], times }, n) =>
      html("li", {}, `${n + 1}. `, html("span", { class: "lf-chip" }, show(left)), " + ", html("span", { class: "lf-chip" }, show(right)), ` (${times}×)`)));
    learned.hidden = applied === 0;
    const count = { bytes: new TextEncoder().encode(text).length, tokens: pieces.flat().length, vocabulary: 256 + applied };
    const next = best ? `${show(best.pair[0])} + ${show(best.pair[1])} (${best.times}×)` : "none: every piece is one token";
    for (const [name, value] of facts) value.textContent = name === "next merge" ? next : count[name];
    spelling.textContent = state.gpt2
      ? "In GPT-2's files each of the 256 bytes has a visible letter of its own: Ġ is the space, and a character outside ASCII shows as the letters of its bytes."
      : "␣ is a space; a token that holds only a part of a character is shown by its bytes in hexadecimal. Framed in blue: made by a merge. Filled in red: the pair that is merged next; among equally frequent pairs, the one with the smaller token numbers.";
    const names = ([left, right]) => [model.spelled[left], model.spelled[right]];
    publish({
      text, applied, ...count, merges: model.merges.slice(0, applied).map(({ pair }) => names(pair)), counts: model.merges.slice(0, applied).map(({ times }) => times),
      ids: pieces.flat(), spelled: pieces.flat().map((token) => model.spelled[token]), next: best ? { pair: names(best.pair), count: best.times } : null,
    }, text === "" ? "Type a text." : `After ${applied} merges: ${count.tokens} tokens for ${count.bytes} bytes. Next merge: ${next}.`);
  }
  render();
}
