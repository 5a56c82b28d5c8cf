// A vocabulary of characters, as `pf.Vocabulary`: special tokens first, then the others in the order of their code points.

export class Vocabulary {
  constructor({ tokens, special, unknown }) {
    this.tokens = [...special, ...tokens];
    this.special = Object.fromEntries(special.map((name, id) => [name, id]));
    this.unknown = unknown;
    this.ids = new Map(tokens.map((token, i) => [token, special.length + i]));
  }

  /** The id of each character; one that the vocabulary has not becomes the unknown token, or is left out if there is none. */
  encode(text) {
    return [...text].map((character) => this.ids.get(character) ?? this.special[this.unknown]).filter((id) => id !== undefined);
  }

  decode(ids) {
    return ids.map((id) => this.tokens[id]).join("");
  }

  /** The characters of a text that the vocabulary has not, each once. */
  strangers(text) {
    return [...new Set([...text].filter((character) => !this.ids.has(character)))];
  }
}
