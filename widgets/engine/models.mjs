// The four models of the book, by the names of `plainformer`: Decoder, MaskedLanguageModel (an encoder), Seq2Seq, ViT.
import { add, largest, linear, map, matrix, range, row, rowsAt, slice, stack, transpose, zip } from "./arrays.mjs";
import { KeyValueCache, Linear, Stack, Weights, activationOf, causalMask, makeNorm, mergeHeads, sinusoidalPositions } from "./layers.mjs";
import { tokenizerOf } from "./tokenizer.mjs";

function checkLength(what, length, most) {
  if (length < 1 || length > most) throw new Error(`${what} has ${length} tokens; expected 1 to ${most}.`);
}

/** The matrix that makes logits, and its bias or null: the embedding's table, transposed, if there is none of its own. */
function outputOf(weights, table) {
  if (!weights.has("output.weight")) return [transpose(table), null];
  const { weight, bias } = new Linear(weights.at("output"));
  return [weight, bias];
}

class Model {
  constructor({ tensors, config, tokenizer }) {
    this.weights = new Weights(tensors);
    this.config = config;
    this.tokenizer = tokenizerOf(tokenizer);
  }

  /** All that the parts of the model show while it computes `method(...inputs)`, by place; `returned` is what it returns. */
  intermediates(method, ...inputs) {
    const found = {};
    this.weights.spy.look = (place, value) => { found[place] = value; };
    try {
      found.returned = this[method](...inputs);
    } finally {
      delete this.weights.spy.look;
    }
    return found;
  }

  /** What `method(...inputs)` returns if functions by place make something else of what is computed there. */
  replaced(replace, method, ...inputs) {
    this.weights.spy.replace = new Map(Object.entries(replace));
    try {
      return this[method](...inputs);
    } finally {
      delete this.weights.spy.replace;
    }
  }

  /** Learned numbers by the name that they have in the model's file. */
  parameter(name) { return this.weights.get(name); }

  /** Logits, of what leaves the last block. */
  call(...inputs) { return this.logits(this.residualStream(...inputs).at(-1)); }

  /** The attention weights, a matrix for each block and head, while the model computes its residual stream. */
  attentionWeights(...inputs) { return this.weightsOf("attention", inputs); }
  weightsOf(kind, inputs) {
    const seen = this.intermediates("residualStream", ...inputs);
    const { blocks } = this.stack ?? this.encoder.stack;
    return blocks.map((block) => seen[`${block[kind].path}weights`]);
  }
}

/** The mean of the products of the numbers of two rows, for each pair of rows; and the root mean square of each row. */
const meanProducts = (x, y) => range(x.rows).map((n) => {
  const other = row(y, n);
  return row(x, n).reduce((sum, value, i) => sum + value * other[i], 0) / x.columns;
});
const sizes = (x) => meanProducts(x, x).map(Math.sqrt);

/** Caches of a model that reads from left to right: texts that begin alike are read once. */
class Reading {
  constructor(blocks) { Object.assign(this, { caches: blocks.map(() => new KeyValueCache()), ids: [], known: 0, stream: null }); }
  /** Read a text, of which the beginning may be known; `run(ids, first, caches)` gives the residual stream of the rest. */
  read(ids, run) {
    let known = 0;
    while (known < Math.min(ids.length, this.ids.length) && ids[known] === this.ids[known]) known++;
    this.known = known;
    if (known < ids.length || known < this.ids.length) {
      for (const cache of this.caches) cache.rewind(known);
      const kept = known ? this.stream.map((x) => slice(x, 0, known)) : null;
      [this.ids, this.stream] = [ids.slice(0, known), kept]; // should what follows fail
      if (known < ids.length) {
        const added = run(ids.slice(known), known, this.caches);
        [this.ids, this.stream] = [[...ids], kept ? kept.map((x, depth) => stack(x, added[depth])) : added];
      }
    }
    return this.stream;
  }
}

/** A model that reads from left to right, and says after every token what comes next. */
class LeftToRight extends Model {
  /** Logits of the next token, after every token of a text. */
  logits(x) { return linear(this.stack.normalise(x), ...this.output); }
  lastLogits(x) { return Array.from(this.logits(slice(x, x.rows - 1)).data); }

  /** The stream of tokens that follow `first` others, which the caches hold. */
  read(ids, first = 0, options = {}) {
    checkLength(this.what, first + ids.length, this.config.context_len);
    const positions = range(ids.length, first);
    const x = this.stack.addPositions(rowsAt(this.embedding, ids), positions);
    return this.stack.residualStream(x, { mask: causalMask(first), positions, ...options });
  }
}

class Decoder extends LeftToRight {
  what = "A text";
  constructor(file) {
    super(file);
    this.embedding = this.weights.get("embedding.weight");
    this.output = outputOf(this.weights, this.embedding);
    this.stack = new Stack(this.weights.at("stack"), this.config.stack);
    this.forget();
  }

  residualStream(ids) { return this.read(ids); }

  /** As `call`, with a cache: of a text that begins like the one before only the rest is read. */
  extend(ids) { return this.logits(this.extended(ids).at(-1)); }
  extended(ids) {
    checkLength("A text", ids.length, this.config.context_len);
    return this.reading.read(ids, (rest, first, caches) => this.read(rest, first, { caches }));
  }

  /** As the last row of `extend`: logits of what comes after the text. */
  next(ids) { return this.lastLogits(this.extended(ids).at(-1)); }

  /**
   * As `next`, with what the caches did for it: how many tokens were `known`, and of each block the keys and values, a
   * row for each token, all heads side by side, without those rows at the beginning that were known and `seen` before.
   */
  nextWithCache(ids, seen = 0) {
    const logits = this.next(ids);
    const { known, caches } = this.reading;
    const first = Math.min(known, seen);
    const held = (heads) => mergeHeads(heads.map((head) => slice(head, first)));
    return { logits, known, first, blocks: caches.map(({ keys, values }) => ({ keys: held(keys), values: held(values) })) };
  }

  /**
   * What the stream says at each depth (the logit lens): the logits that it would make at the end; and of each token the
   * root mean square of its row, also after the norm that reads it next, that of what the block above added, and the
   * cosine with the row before that.
   */
  lens(ids) {
    const stream = this.extended(ids);
    const norms = this.stack.finalNorm && [...this.stack.blocks.map((block) => block.attentionNorm), this.stack.finalNorm];
    return stream.map((x, depth) => {
      const before = stream[Math.max(0, depth - 1)];
      const [size, old, inner] = [sizes(x), sizes(before), meanProducts(x, before)];
      return { logits: this.logits(x), size, normed: norms ? sizes(norms[depth].call(x)) : size,
        added: sizes(zip(x, before, (a, b) => a - b)), cosine: inner.map((product, n) => product / (size[n] * old[n])) };
    });
  }

  /**
   * Patching, as `pf.models.patch`: logits of what comes after a text of which, at one place in the model, the row of one
   * token is that of another text. A list of logits, for each token from `first` on in turn.
   */
  patches(ours, theirs, place, first) {
    if (ours.length !== theirs.length) throw new Error(`The texts have ${ours.length} and ${theirs.length} tokens; expected as many.`);
    const there = this.intermediates("residualStream", theirs)[place];
    if (!there?.data) throw new Error(`There are no rows at ${place}; expected a place such as stack.blocks.0.output.`);
    return range(ours.length - first, first).map((n) => {
      const takenOver = (x) => { const mixed = slice(x, 0); row(mixed, n).set(row(there, n)); return mixed; };
      return this.lastLogits(this.replaced({ [place]: takenOver }, "residualStream", ours).at(-1));
    });
  }

  /** Empty the caches, so that the next text is read from its beginning. */
  forget() { this.reading = new Reading(this.stack.blocks); }
}

/** The encoder under a model: it reads token ids, or rows of numbers, with a learned row in front if it has one. */
class Encoder {
  constructor(weights, config, grid = null) {
    this.embedding = grid ? new Linear(weights.at("embedding")) : weights.get("embedding.weight");
    this.classToken = weights.find("class_token");
    this.segments = weights.find("segment_embedding.weight");
    this.embeddingNorm = weights.has("embedding_norm.scale") ? makeNorm(weights.at("embedding_norm"), config) : null;
    this.embeddingMap = weights.has("embedding_map.weight") ? new Linear(weights.at("embedding_map")) : null;
    this.stack = new Stack(weights.at("stack"), config);
    this.codes = grid && config.position_scheme === "sinusoidal_2d" && sinusoidalPositions2d(...grid, config.d_model);
  }

  residualStream(inputs) {
    let x = this.embedding instanceof Linear ? this.embedding.call(inputs) : rowsAt(this.embedding, inputs);
    if (this.segments) x = add(x, rowsAt(this.segments, inputs.map(() => 0))); // all tokens are of the first kind
    if (this.codes) x = add(x, this.codes); // the class token has no place in the grid
    if (this.classToken) x = stack(this.classToken, x);
    const positions = range(x.rows);
    const factor = this.embedding instanceof Linear ? 1 : undefined; // patches are large enough as they are
    x = this.stack.addPositions(x, positions, factor);
    if (this.embeddingNorm) x = this.embeddingNorm.call(x);
    return this.stack.residualStream(this.embeddingMap ? this.embeddingMap.call(x) : x, { positions });
  }
}

/** A file in which one block stands for all, as in ALBERT: its tensors by the names of the other blocks, too. */
function withEveryBlock(file) {
  const [first, tensors] = ["encoder.stack.blocks.0.", new Map(file.tensors)];
  if (tensors.has("encoder.stack.blocks.1.attention_norm.scale")) return file;
  for (const [name, tensor] of file.tensors) {
    if (!name.startsWith(first)) continue;
    for (const i of range(file.config.stack.num_layers)) tensors.set(name.replace(first, `encoder.stack.blocks.${i}.`), tensor);
  }
  return { ...file, tensors };
}

class MaskedLanguageModel extends Model {
  constructor(file) {
    super(withEveryBlock(file));
    const sizes = this.config.stack;
    this.encoder = new Encoder(this.weights.at("encoder"), sizes);
    this.head = new Linear(this.weights.at("head"));
    this.headNorm = makeNorm(this.weights.at("head_norm"), sizes);
    this.output = transpose(this.encoder.embedding);
    this.outputBias = this.weights.find("output_bias")?.data;
  }

  residualStream(ids) {
    checkLength("A text", ids.length, this.config.context_len);
    return this.encoder.residualStream(ids);
  }

  /** Logits, at every token of a text, of what it was before some were hidden. */
  logits(x) {
    x = this.encoder.stack.normalise(x);
    x = this.config.use_class_token ? slice(x, 1) : x;
    return linear(this.headNorm.call(map(this.head.call(x), activationOf(this.config.stack))), this.output, this.outputBias);
  }
}

class Seq2Seq extends LeftToRight {
  what = "A target";
  constructor(file) {
    super(file);
    this.encoder = new Encoder(this.weights.at("encoder"), this.config.encoder);
    this.embedding = this.encoder.embedding;
    this.output = outputOf(this.weights, this.embedding);
    this.stack = new Stack(this.weights.at("stack"), this.config.decoder);
    this.conditioned = {};
  }

  encode(source) {
    checkLength("A source", source.length, this.config.source_len);
    return this.encoder.stack.normalise(this.encoder.residualStream(source).at(-1));
  }

  /** Of a target, which begins with the start token. */
  residualStream(source, target) { return this.read(target, 0, { context: this.encode(source) }); }
  crossAttentionWeights(...inputs) { return this.weightsOf("crossAttention", inputs); }

  /** As the last row of `call`; a source is read once, and so is the beginning of a target. */
  next(source, target) {
    if (source.join() !== this.conditioned.source?.join()) {
      const contextCaches = this.stack.blocks.map(() => new KeyValueCache({ ofContext: true }));
      this.conditioned = { source: [...source], context: this.encode(source), contextCaches, reading: new Reading(this.stack.blocks) };
    }
    const { context, contextCaches, reading } = this.conditioned;
    return this.lastLogits(reading.read(target, (rest, first, caches) => this.read(rest, first, { context, contextCaches, caches })).at(-1));
  }

  /**
   * Greedy search, as `translate` of the package: the ids that are written, with the stop token; the logits of each
   * step; and the weights of cross-attention, of each block and head a matrix with a row for each step.
   */
  translate(source) {
    const { start_token: start, stop_token: stop, context_len: most } = this.config;
    const [written, logits] = [[], []];
    const heads = this.stack.blocks.flatMap(({ crossAttention: { path, numHeads } }) =>
      range(numHeads).map((h) => ({ place: `${path}weights`, h, rows: [] })));
    this.conditioned = {}; // read it anew, so that each step shows its weights
    while (written.length < most && written.at(-1) !== stop) {
      const seen = this.intermediates("next", source, [start, ...written]);
      logits.push(seen.returned);
      written.push(largest(seen.returned));
      for (const { place, h, rows } of heads) rows.push(seen[place][h]);
    }
    return { written, logits, heads: heads.map(({ rows }) => rows.reduce(stack)) };
  }
}

/** A grid's codes: half of the columns say the row of a patch, half its column. */
function sinusoidalPositions2d(height, width, dModel) {
  const places = range(height * width);
  const codes = [places.map((n) => Math.floor(n / width)), places.map((n) => n % width)];
  return mergeHeads(codes.map((coordinates) => sinusoidalPositions(coordinates, dModel / 2)));
}

class ViT extends Model {
  constructor(file) {
    super(file);
    const { image_size: [height, width], patch_size: [high, wide], stack: sizes } = this.config;
    this.encoder = new Encoder(this.weights.at("encoder"), sizes, [height / high, width / wide]);
    this.output = new Linear(this.weights.at("output"));
  }

  /** Cut an image, rows of pixels from 0 to 1, into patches in reading order, each a row of its pixels. */
  patches(image) {
    const { image_size: [height, width], patch_size: [high, wide] } = this.config;
    if (image.length !== height || image.some((pixels) => pixels.length !== width)) {
      throw new Error(`An image has ${image.length} x ${image[0]?.length} pixels; expected ${height} x ${width}.`);
    }
    const patches = [];
    for (let y = 0; y < height; y += high) {
      for (let x = 0; x < width; x += wide) patches.push(image.slice(y, y + high).flatMap((pixels) => pixels.slice(x, x + wide)));
    }
    return matrix(patches.length, high * wide, Float32Array.from(patches.flat()));
  }

  residualStream(image) { return this.encoder.residualStream(this.patches(image)); }

  /** A logit for each class, from the row of the class token or from the mean of the patches. */
  logits(x) {
    const rows = this.encoder.stack.normalise(x);
    const mean = () => linear(matrix(1, rows.rows, new Float32Array(rows.rows).fill(1 / rows.rows)), rows);
    return Array.from(this.output.call(this.config.pooling === "class" ? slice(rows, 0, 1) : mean()).data);
  }
}

const CLASSES = { Decoder, MaskedLanguageModel, Seq2Seq, ViT };

/** The model that a file of `save_model` holds. */
export function modelOf(file) {
  const name = file.metadata.model;
  if (!Object.hasOwn(CLASSES, name)) throw new Error(`The file holds the model ${name}; expected one of ${Object.keys(CLASSES).join(", ")}.`);
  return new CLASSES[name](file);
}
