// A vocabulary of characters or of words, as `pf.Vocabulary`: special tokens first, then the others by their code points.

export class Vocabulary {
  constructor({ tokens, special, unknown, separator = "" }) {
    this.tokens = [...special, ...tokens];
    this.special = Object.fromEntries(special.map((name, id) => [name, id]));
    this.unknown = unknown;
    this.separator = separator;
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
