// A vocabulary of characters or of words, as `pf.Vocabulary`: special tokens first, then the others by their code points.
// Or byte pairs, as `pf.BytePairEncoder`.
import { GPT2_PATTERN, applying } from "../merges.mjs";

export class Vocabulary {
  constructor({ tokens, special, unknown, separator = "" }) {
    this.tokens = [...special, ...tokens];
    this.special = Object.fromEntries(special.map((name, id) => [name, id]));
    this.unknown = unknown;
    this.separator = separator;
    this.unit = separator ? "word" : "letter";
    this.ids = new Map(tokens.map((token, i) => [token, special.length + i]));
  }

  /** The characters of a text, or its words; white space between words may be of any length. */
  split(text) { return this.separator ? text.split(/\s+/).filter(Boolean) : [...text]; }

  /** The id of each token; one that the vocabulary has not becomes the unknown token, or is left out if there is none. */
  encode(text) {
    return this.split(text).map((token) => this.ids.get(token) ?? this.special[this.unknown]).filter((id) => id !== undefined);
  }

  decode(ids) {
    return ids.map((id) => this.tokens[id]).join(this.separator);
  }

  /** The tokens of a text that the vocabulary has not, each once. */
  strangers(text) {
    return [...new Set(this.split(text).filter((token) => !this.ids.has(token)))];
  }
}

/** Byte pairs with GPT-2's pieces. They can spell every text, so that no token is strange to them. */
export class BytePairs {
  constructor({ vocabulary, merges, pattern, special }) {
    if (pattern !== GPT2_PATTERN || special.length) throw new Error("The page reads byte pairs with GPT-2's pieces and no special tokens.");
    this.apply = applying(merges.map((pair) => pair.map((token) => vocabulary[token])));
    this.bytes = this.apply("").bytes;
    this.tokens = this.bytes.map((_, id) => this.decode([id]));
    Object.assign(this, { special: {}, unknown: null, separator: "", unit: "token" });
  }

  encode(text) { return this.apply(text).steps.at(-1).flat(); }
  decode(ids) { return new TextDecoder().decode(new Uint8Array(ids.flatMap((id) => this.bytes[id]))); }
  strangers() { return []; }
}

/** Atoms, bonds and brackets of reactions, as `pf.pretrained.SmilesTokenizer`, with a start and an end. */
export class Smiles {
  constructor({ smiles }) {
    this.tokens = smiles;
    this.ids = new Map(smiles.map((token, id) => [token, id]));
    this.special = Object.fromEntries(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map((name) => [name, this.ids.get(name)]));
    Object.assign(this, { unknown: "[UNK]", separator: "", unit: "token" });
  }

  split(text) { return text.match(/\[[^\]]+\]|Br|Cl|>>|%\d\d|./gu) ?? []; }
  encode(text) {
    const inside = this.split(text).map((token) => this.ids.get(token) ?? this.special["[UNK]"]);
    return [this.special["[CLS]"], ...inside, this.special["[SEP]"]];
  }
  decode(ids) { return ids.map((id) => this.tokens[id]).join(""); }
  strangers(text) { return [...new Set(this.split(text).filter((token) => !this.ids.has(token)))]; }
}

/** The tokenizer in a model's file; null if there is none. */
export const tokenizerOf = (parts) => parts && ("smiles" in parts ? new Smiles(parts) : "merges" in parts ? new BytePairs(parts) : new Vocabulary(parts));
