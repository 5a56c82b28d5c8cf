// The layers of the book, by the names and in the order of `plainformer`: attention, norms, token-wise networks, blocks.
import { add, columns, linear, map, matrix, mean, range, row, rowsAt, slice, softmax, stack, transpose, zip } from "./arrays.mjs";

/** The tensors whose names begin with a path such as `stack.blocks.0.`, and who wants to see what happens there. */
export class Weights {
  constructor(tensors, path = "", spy = {}) { Object.assign(this, { tensors, path, spy }); }
  at(name) { return new Weights(this.tensors, `${this.path}${name}.`, this.spy); }
  has(name) { return this.tensors.has(this.path + name); }
  find(name) { return this.tensors.get(this.path + name) ?? null; }
  get(name) {
    if (!this.has(name)) throw new Error(`The model's file has no ${this.path}${name}: it does not fit its configuration.`);
    return this.find(name);
  }
}

/**
 * A part of a model. `see` shows a value to whoever is looking on, by its place in the model, and gives it back, or what
 * `replace` of the onlooker makes of it.
 */
class Module {
  constructor(weights) { this.path = weights.path; this.spy = weights.spy; }
  see(name, value) {
    const place = this.path + name;
    const found = this.spy.replace?.get(place)?.(value) ?? value;
    this.spy.look?.(place, found);
    return found;
  }
}

export class Linear extends Module {
  constructor(weights) {
    super(weights);
    this.weight = weights.get("weight");
    this.bias = weights.find("bias")?.data;
  }
  call(x) { return linear(x, this.weight, this.bias); }
}

/** Normalise each row by `change(row)`, then scale and shift every column. */
class Norm extends Module {
  constructor(weights, eps) {
    super(weights);
    this.scale = weights.get("scale").data;
    this.bias = weights.find("bias")?.data;
    this.eps = eps;
  }
  call(x) {
    const out = matrix(x.rows, x.columns);
    for (let n = 0; n < x.rows; n++) {
      const [normalised, to] = [this.normalise(row(x, n)), row(out, n)];
      for (let i = 0; i < to.length; i++) to[i] = this.scale[i] * normalised[i] + (this.bias ? this.bias[i] : 0);
    }
    return this.see("output", out);
  }
}

class LayerNorm extends Norm {
  normalise(token) {
    const centre = mean(token);
    const variance = token.reduce((sum, value) => sum + (value - centre) ** 2, 0) / token.length;
    const deviation = Math.sqrt(variance + this.eps);
    return token.map((value) => (value - centre) / deviation);
  }
}

class RMSNorm extends Norm {
  normalise(token) {
    const meanSquare = token.reduce((sum, value) => sum + value ** 2, 0) / token.length;
    const size = Math.sqrt(meanSquare + this.eps);
    return token.map((value) => value / size);
  }
}

/** The error function, to within 1.5e-7 (Abramowitz and Stegun, 1964, formula 7.1.26). */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592].reduce((sum, a) => sum * t + a, 0);
  return Math.sign(x) * (1 - series * t * Math.exp(-x * x));
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const ACTIVATIONS = {
  relu: (x) => Math.max(x, 0),
  gelu: (x) => (x * (1 + erf(x / Math.SQRT2))) / 2,
  gelu_tanh: (x) => (x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))) / 2,
  silu: (x) => x * sigmoid(x),
  quick_gelu: (x) => x * sigmoid(1.702 * x),
  squared_relu: (x) => Math.max(x, 0) ** 2,
};
const GATES = { swiglu: "silu", geglu: "gelu", geglu_tanh: "gelu_tanh" };

/** The activation of a configuration; of a network with a gate, that of the gate. */
export const activationOf = ({ activation }) => ACTIVATIONS[GATES[activation] ?? activation];

class FeedForward extends Module {
  constructor(weights, config) {
    super(weights);
    this.up = new Linear(weights.at("up"));
    this.down = new Linear(weights.at("down"));
    this.activation = activationOf(config);
  }
  call(x) { return this.see("output", this.down.call(this.see("hidden", map(this.up.call(x), this.activation)))); }
}

class SwiGLU extends FeedForward {
  constructor(weights, config) {
    super(weights, config);
    this.gate = new Linear(weights.at("gate"));
  }
  call(x) {
    const gate = map(this.gate.call(x), this.activation);
    return this.see("output", this.down.call(this.see("hidden", zip(gate, this.up.call(x), (g, u) => g * u))));
  }
}

/** Turn each row by its position: column i and column i + d_k / 2 are a pair, one hand of a clock. */
export function rotatePairs(rows, positions, base) {
  const [out, half] = [matrix(rows.rows, rows.columns), rows.columns / 2];
  const slowness = Array.from({ length: half }, (_, i) => base ** (i / half));
  for (let n = 0; n < rows.rows; n++) {
    const [from, to] = [row(rows, n), row(out, n)];
    for (let i = 0; i < half; i++) {
      const angle = positions[n] / slowness[i];
      const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
      to[i] = from[i] * cosine - from[i + half] * sine;
      to[i + half] = from[i] * sine + from[i + half] * cosine;
    }
  }
  return out;
}

/** How steeply the scores of each head fall with the distance, as `alibi_slopes` of the package has it. */
function alibiSlopes(numHeads) {
  const below = 2 ** Math.floor(Math.log2(numHeads));
  const slopes = (count, step) => range(count / step).map((i) => 2 ** ((-8 * (step * i + 1)) / count));
  return [...slopes(below, 1), ...slopes(2 * below, 2)].slice(0, numHeads);
}

/** The code of each position: sine and cosine of the angle of each clock, in turn. */
export function sinusoidalPositions(positions, dModel, base = 10000) {
  const out = matrix(positions.length, dModel);
  positions.forEach((position, n) => {
    for (let i = 0; i < dModel; i += 2) {
      const angle = position / base ** (i / dModel);
      row(out, n).set([Math.sin(angle), Math.cos(angle)], i);
    }
  });
  return out;
}

const splitHeads = (x, numHeads) => {
  const width = x.columns / numHeads;
  return range(numHeads).map((h) => columns(x, h * width, width));
};

export function mergeHeads(heads) {
  const [{ rows, columns: width }] = heads;
  const out = matrix(rows, width * heads.length);
  heads.forEach((head, h) => { for (let n = 0; n < rows; n++) row(out, n).set(row(head, n), h * width); });
  return out;
}

/** Query n of a text may attend to position m; `first` is the position of the first query. */
export const causalMask = (first = 0) => (n, m) => m <= first + n;

class MultiHeadAttention extends Module {
  constructor(weights, { num_heads: numHeads, num_kv_heads: numKvHeads, rope_theta: base, position_scheme: scheme }) {
    super(weights);
    for (const name of ["query", "key", "value", "output"]) this[name] = new Linear(weights.at(name));
    Object.assign(this, { numHeads, numKvHeads: numKvHeads ?? numHeads, base, rotary: scheme === "rotary",
      slopes: scheme === "alibi" ? alibiSlopes(numHeads) : null });
  }

  /** Queries or keys of each head, turned by their positions if the model's positions are rotary. */
  heads(map, x, numHeads, positions) {
    const heads = splitHeads(map.call(x), numHeads);
    return this.rotary && positions ? heads.map((head) => rotatePairs(head, positions, this.base)) : heads;
  }

  /** Attend from the rows of `x`, at `positions`, to those of a context, or to all that the cache holds and to `x`. */
  call(x, { mask, context = null, cache = null, positions = null }) {
    const queries = this.see("queries", this.heads(this.query, x, this.numHeads, positions));
    const { keys, values } = this.keysAndValues(context ?? x, positions, cache);
    const shared = (h) => Math.floor((h * this.numKvHeads) / this.numHeads); // a group of queries shares one head of keys
    const scores = this.see("scores", queries.map((query, h) => this.scores(query, keys[shared(h)], h, positions)));
    const weights = this.see("weights", scores.map((table) => softmax(table, mask)));
    const heads = this.see("heads", weights.map((table, h) => linear(table, values[shared(h)])));
    return this.see("output", this.output.call(mergeHeads(heads)));
  }

  /** The scores of one head; with linear biases every step of distance costs the same. */
  scores(query, keys, h, positions) {
    const scores = map(linear(query, transpose(keys)), (product) => product / Math.sqrt(query.columns));
    if (this.slopes && positions) positions.forEach((n, i) => {
      const scored = row(scores, i);
      for (let m = 0; m < scored.length; m++) scored[m] -= this.slopes[h] * Math.abs(n - m);
    });
    return scores;
  }

  /** The context's, kept in the cache once they are made; or those in the cache with those of further tokens. */
  keysAndValues(x, positions, cache) {
    if (cache?.whole) return cache;
    const keys = this.see("keys", this.heads(this.key, x, this.numKvHeads, positions));
    const values = this.see("values", this.heads(this.value, x, this.numKvHeads));
    const made = { keys, values };
    return cache ? cache.append(made) : made;
  }
}

/** The keys and values of one layer, of all tokens read so far; of a context, they are `whole` after the first time. */
export class KeyValueCache {
  constructor({ ofContext = false } = {}) { Object.assign(this, { keys: [], values: [], whole: false, ofContext }); }
  get length() { return this.keys.length ? this.keys[0].rows : 0; }
  append({ keys, values }) {
    const join = (old, added) => (old.length ? old.map((head, h) => stack(head, added[h])) : added);
    this.keys = join(this.keys, keys);
    this.values = join(this.values, values);
    this.whole = this.ofContext;
    return this;
  }
  /** Forget all but the first `length` tokens. */
  rewind(length) {
    for (const part of ["keys", "values"]) this[part] = length ? this[part].map((head) => slice(head, 0, length)) : [];
  }
}

const preNorm = (x, norm, sublayer) => add(x, sublayer(norm.call(x)));
const postNorm = (x, norm, sublayer) => norm.call(add(x, sublayer(x)));

export const makeNorm = (weights, { norm, norm_eps: eps }) => new (norm === "rms" ? RMSNorm : LayerNorm)(weights, eps);

class Block extends Module {
  constructor(weights, config) {
    super(weights);
    this.attentionNorm = makeNorm(weights.at("attention_norm"), config);
    this.attention = new MultiHeadAttention(weights.at("attention"), config);
    if (weights.has("cross_norm.scale")) {
      this.crossNorm = makeNorm(weights.at("cross_norm"), config);
      this.crossAttention = new MultiHeadAttention(weights.at("cross_attention"), config);
    }
    this.feedForwardNorm = makeNorm(weights.at("feed_forward_norm"), config);
    this.feedForward = new (config.activation in GATES ? SwiGLU : FeedForward)(weights.at("feed_forward"), config);
    this.add = config.norm_placement === "pre" ? preNorm : postNorm;
  }

  call(x, { mask, positions, cache = null, context = null, contextCache = null }) {
    x = this.add(x, this.attentionNorm, (rows) => this.attention.call(rows, { mask, positions, cache }));
    x = this.see("after_attention", x);
    if (this.crossNorm) {
      x = this.add(x, this.crossNorm, (rows) => this.crossAttention.call(rows, { context, cache: contextCache }));
      x = this.see("after_cross_attention", x);
    }
    return this.see("output", this.add(x, this.feedForwardNorm, (rows) => this.feedForward.call(rows)));
  }
}

/** Blocks one after the other, and a norm at the end. */
export class Stack extends Module {
  constructor(weights, config) {
    super(weights);
    this.blocks = range(config.num_layers).map((i) => new Block(weights.at(`blocks.${i}`), config));
    this.finalNorm = config.norm_placement === "pre" ? makeNorm(weights.at("final_norm"), config) : null;
    this.table = weights.find("scheme.table");
    this.scheme = config.position_scheme;
  }

  /**
   * Tokens with what the positions add to them: a learned row, or a code, beside which vectors of a vocabulary are
   * multiplied by a factor. Rotary positions act in the attention.
   */
  addPositions(x, positions, factor = Math.sqrt(x.columns)) {
    if (this.table) return add(x, rowsAt(this.table, positions));
    if (this.scheme !== "sinusoidal") return x;
    return add(map(x, (value) => value * factor), sinusoidalPositions(positions, x.columns));
  }

  /** What enters the first block and what leaves each; of the caches there is one for each block. */
  residualStream(x, { caches = [], contextCaches = [], ...options } = {}) {
    const stream = [this.see("input", x)];
    this.blocks.forEach((block, i) => stream.push(block.call(stream[i], { ...options, cache: caches[i], contextCache: contextCaches[i] })));
    stream.push(this.see("output", stream.pop()));
    return stream;
  }

  normalise(x) { return this.finalNorm ? this.finalNorm.call(x) : x; }
}
