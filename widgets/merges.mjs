// Byte-pair encoding (chapter on tokens), by the rules of `learn_merges`, `apply_merges` and `pre_tokenise` in the package; the
// browser tests hold the two against each other.

// GPT-2's pieces, as the package spells them.
export const GPT2_PATTERN = String.raw`'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
// The same for the browser: an English ending; letters, digits or signs after at most one space; white space.
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

export const bytesOf = (text) => [...new TextEncoder().encode(text)];
export const piecesOf = (text) => text.match(PIECES) ?? [];
/** The same, and each digit alone, as SmolLM2 has it. */
export const piecesWithDigits = (text) => text.split(/(\p{N})/u).flatMap(piecesOf);
export const idsOf = (text) => bytesOf(text).map((byte) => ID_OF_BYTE.get(byte));

/** The bytes of each token by id, and how GPT-2's files spell it; `add(pair)` makes one more of two. */
function tokenTable(merges = []) {
  const table = { bytes: ALPHABET.map(([byte]) => [byte]), spelled: ALPHABET.map(([, character]) => character) };
  table.add = ([left, right]) => { for (const list of [table.bytes, table.spelled]) list.push(list[left].concat(list[right])); };
  merges.forEach(table.add);
  return table;
}

/** Each pair of neighbours in the pieces, and how often it occurs. */
function countPairs(pieces) {
  const counts = new Map();
  for (const piece of pieces) {
    for (let n = 0; n + 1 < piece.length; n++) {
      const name = `${piece[n]},${piece[n + 1]}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return [...counts].map(([name, times]) => ({ name, pair: name.split(",").map(Number), times }));
}

/** The most frequent pair; among equals the one with the smaller left id, then the smaller right id. */
const bestPair = (pieces) => countPairs(pieces).sort((p, q) => q.times - p.times || p.pair[0] - q.pair[0] || p.pair[1] - q.pair[1])[0];

function mergePair(piece, [left, right], id) {
  const merged = [];
  for (let n = 0; n < piece.length; n++) {
    const found = piece[n] === left && piece[n + 1] === right;
    merged.push(found ? id : piece[n]);
    if (found) n++;
  }
  return merged;
}

/** Merge what `next(pieces)` names, each time with the number of its merge, until nothing is left; steps[k] is the text after k merges. */
function steps(pieces, next, most = Infinity) {
  const found = { steps: [pieces.map(idsOf)], merges: [] };
  for (let best; found.merges.length < most && (best = next(found.steps.at(-1)));) {
    found.steps.push(found.steps.at(-1).map((piece) => mergePair(piece, best.pair, 255 + best.number)));
    found.merges.push(best);
  }
  return found;
}

/** Learn merges from a text, up to `most`; `next` is the one that would come then. */
export function learn(text, most) {
  const table = tokenTable();
  let number = 0;
  const next = (pieces) => {
    const best = bestPair(pieces);
    if (best) table.add(best.pair);
    return best && { ...best, number: ++number };
  };
  const learned = steps(piecesOf(text), next, most);
  return { ...table, ...learned, next: bestPair(learned.steps.at(-1)) };
}

/** A function that applies to a text, cut into pieces, those of a list of merges that fit, the earliest learned first. */
export function applying(merges, pieces = piecesOf) {
  const [table, numbers] = [tokenTable(merges), new Map(merges.map((pair, n) => [pair.join(), n + 1]))];
  const next = (pieces) => countPairs(pieces).reduce((best, { name, pair, times }) => {
    const number = numbers.get(name);
    return number < (best?.number ?? Infinity) ? { pair, times, number } : best;
  }, null);
  return (text) => ({ ...table, ...steps(pieces(text), next), next: null });
}

/** A token for the eye: its characters with ␣ for a space, or its bytes in hexadecimal if it cuts a character. */
export function readable(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
  } catch {
    text = "\0";
  }
  if (!/[\p{C}\p{Zl}\p{Zp}]|^\p{M}/u.test(text)) return text.replace(/\p{Zs}/gu, "␣");
  return bytes.map((byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join("·");
}
