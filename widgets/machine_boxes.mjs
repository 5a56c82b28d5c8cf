// The boxes of the figure `machine`: what each holds, by which rule, which line of `plainformer` computes it, and where the
// book explains it. What stands between two `$` of a rule is a formula (formula.mjs).

const inBlock = (name) => (found, block) => [found[`stack.blocks.${block}.${name}`]].flat();
const ofModel = (name) => (found) => [found[name]];

const NORMS = {
  rms: { rule: "each row divided by the root of its mean square, then scaled: $γ ⊙ x_{n} / √{mean x_{n}^{2} + ε}$",
    code: "return self.scale * (rows * jax.lax.rsqrt(mean_square + self.eps)).astype(x.dtype)" },
  layer: { rule: "each row shifted to mean 0 and stretched to variance 1, then scaled and shifted: $γ ⊙ standardise(x_{n}) + β$",
    code: "scaled = self.scale * standardise(x, self.eps)" },
};
const aNorm = (key, label, name, values, rule, tells) => ({ key, label, name, kind: "norm", tells: () => tells, values, axes: ["seq", "d_model"],
  rule: (config) => `${rule}: ${NORMS[config.norm].rule}`, file: "blocks/layers.py", code: (config) => NORMS[config.norm].code,
  link: ["blocks.html#sec-blocks-norm", "Keeping the numbers in range"] });

const turned = (config) => (config.position_scheme === "rotary" ? ", each row turned by its position" : "");
const projected = (key, letter, code, tells) => ({ key, label: key, name: key, kind: key, tells, values: inBlock(`attention.${key}`),
  axes: [key === "queries" ? "heads" : "kv_heads", "seq", key === "values" ? "d_v" : "d_k"],
  rule: (config) => `$${letter} = split(X W^{(${key[0]})})$${key === "values" ? "" : turned(config)}`, file: "attention/multi_head.py",
  code: () => code,
  link: ["self_attention.html#sec-self-attention-qkv", "Queries, keys, values"] });

const isPre = (config) => config.norm_placement === "pre";
const added = (key, name, place, what, code, tells) => ({ key, label: "+", name, kind: "stream", tells: () => tells, values: inBlock(place), axes: ["seq", "d_model"],
  rule: (config) => (isPre(config) ? `${what}: what the stream was, plus what was made of its norm` : "the norm of the sum: $Norm(X + f(X))$"),
  file: "blocks/blocks.py", code: (config) => (isPre(config) ? code : "return norm(x + sublayer(x))"),
  link: ["blocks.html#sec-blocks-block", "The block"] });

const gated = (config) => /glu/.test(config.activation);
const NETWORK = { gated: 'return self.down(see("hidden", ACTIVATIONS[self.activation](self.gate(x)) * self.up(x)))',
  plain: 'return self.down(see("hidden", ACTIVATIONS[self.activation](self.up(x))))' };
const networkCode = (config) => NETWORK[gated(config) ? "gated" : "plain"];
const networkLink = (config) => (gated(config) ? ["blocks.html#equation-eq-blocks-swiglu", "A gate"]
  : ["blocks.html#sec-blocks-feed-forward", "A network for every token"]);

const BEFORE = [
  { key: "ids", tells: (unit) => `Each ${unit} is a number.`, label: "ids", name: "ids", kind: "plain", values: ofModel("ids"), axes: ["seq"],
    rule: () => "$s_{n}$ is the number of token $n$ in the vocabulary", file: "tokens/vocabulary.py",
    code: () => "number = self._ids.get(token, unknown)",
    link: ["tokens.html#equation-eq-tokens-vocabulary", "Words and their numbers"] },
  { key: "embedding", tells: () => "The number picks a row of numbers.", label: "embedding", name: "embedding", kind: "weights", values: ofModel("stack.input"), axes: ["seq", "d_model"],
    rule: ({ position_scheme: scheme }) =>
      `$X^{(0)}$: row $s_{n}$ of the table $E$${/learned|sinusoidal/.test(scheme) ? ", with a row for position $n$" : ""}`,
    file: "models/decoder.py", code: () => "x = add_positions(self.embedding(tokens), self.stack.scheme, positions)",
    link: ["tokens.html#equation-eq-tokens-look-up", "From ids to rows"] },
];

const INSIDE = [
  aNorm("norm1", "norm", "norm before attention", inBlock("attention_norm.output"), "$X$, normalised", "Every row is brought to one size."),
  projected("queries", "Q", "queries = self.query_norm(split_heads(self.query(x), self.num_heads))",
    (unit) => `Queries: what each ${unit} looks for.`),
  projected("keys", "K", "keys = self.key_norm(split_heads(self.key(context), self.num_kv_heads))",
    (unit) => `Keys: what each ${unit} can be found by.`),
  projected("values", "V", 'return see("values", split_heads(self.value(context), self.num_kv_heads))',
    (unit) => `Values: what each ${unit} has to give.`),
  { key: "scores", tells: () => "Each query meets each key: a score.", label: "scores", name: "scores", kind: "plain", values: inBlock("attention.scores"), axes: ["heads", "seq", "seq"],
    rule: ({ position_scheme: scheme }) => `$S_{h} = Q_{h} K_{h}^{𝖳} / √{d_{k}}${scheme === "alibi" ? " − m_{h} {|n − m|}$, less with every step of distance" : "$"}, here before the mask`, file: "attention/self_attention.py",
    code: () => "scores = dot_product_scores(queries * jnp.asarray(scale, queries.dtype), keys)",
    link: ["self_attention.html#sec-self-attention-scale", "Why divide by the root of $d_{k}$"] },
  { key: "weights", tells: () => "Softmax turns the scores into shares of 1.", label: "weights", name: "weights", kind: "plain", values: inBlock("attention.weights"), limit: 1, axes: ["heads", "seq", "seq"],
    rule: () => "$A_{h} = softmax(S_{h})$ along each row; what comes later is hidden, its weight 0", file: "attention/self_attention.py",
    code: () => "weights = softmax(scaled_scores(queries, keys, scale=scale, bias=bias), mask)",
    link: ["self_attention.html#equation-eq-self-attention-weights", "Attention"] },
  { key: "heads", tells: (unit) => `Each ${unit} takes its share of the values.`, label: "averages", name: "averages of the values", kind: "values", values: inBlock("attention.heads"),
    axes: ["heads", "seq", "d_v"],
    rule: () => "$Y_{h} = A_{h} V_{h}$: for each token an average of the values that it reads", file: "attention/self_attention.py",
    code: () => "return weighted_average(weights, values)",
    link: ["self_attention.html#equation-eq-self-attention-attend", "Attention"] },
  { key: "attention", tells: () => "All heads are mixed into one row.", label: "output", name: "output of attention", kind: "weights", values: inBlock("attention.output"), axes: ["seq", "d_model"],
    rule: () => "$merge(Y_{1}, …, Y_{H}) W^{(o)}$: the heads side by side, mixed; this will be added", file: "attention/multi_head.py",
    code: () => "return self.output(merge_heads(heads))", link: ["multi_head.html#sec-multi-head-layout", "All heads in one product"] },
  added("add1", "+ attention, added to the stream", "after_attention", "$X′ = X + MultiHead(Norm(X))$",
    'x = see("after_attention", self._add(x, "attention", attended, attention_key))', "The output is added to the stream."),
  aNorm("norm2", "norm", "norm before the network", inBlock("feed_forward_norm.output"), "$X′$, normalised", "Every row is brought to one size again."),
  { key: "hidden", tells: (unit) => `Each ${unit} by itself: a wider row is made.`, label: "hidden", name: "hidden layer", kind: "weights", values: inBlock("feed_forward.hidden"), axes: ["seq", "d_ff"],
    rule: ({ activation: name, use_bias: biased }) => (gated({ activation: name })
      ? `$${name === "swiglu" ? "silu" : "gelu"}(x_{n} W_{g}) ⊙ x_{n} W_{1}$: one map says how much of the other passes`
      : `$${name.replaceAll("_", " ")}(x_{n} W_{1}${biased ? " + b_{1}" : ""})$, each token by itself`), file: "blocks/layers.py", code: networkCode, link: networkLink },
  { key: "network", tells: () => "The wide row is drawn together again.", label: "output", name: "output of the network", kind: "weights", values: inBlock("feed_forward.output"), axes: ["seq", "d_model"],
    rule: () => "the hidden row times $W_{2}$; this will be added", file: "blocks/layers.py", code: networkCode, link: networkLink },
  added("add2", "+ network, added to the stream", "output", "$X′ + FFN(Norm(X′))$",
    'return self._add(x, "feed_forward", made, key)', "This output is added to the stream, too."),
];

/** A block that is shut: what leaves it. */
const SHUT = { key: "block", kind: "weights", values: inBlock("output"), axes: ["seq", "d_model"],
  rule: () => "$X^{(ℓ)} = Block_{ℓ}(X^{(ℓ−1)})$: what the stream holds when it leaves this block", file: "models/depth.py",
  code: () => "x = named(name, block)(x, mask, scheme=scheme, key=key, **reading)", link: ["blocks.html#sec-blocks-block", "The block"] };

const AFTER = [
  aNorm("final", "final norm", "final norm", ofModel("stack.final_norm.output"), "$X^{(L)}$, normalised", "Every row is brought to one size, a last time."),
  { key: "logits", tells: (unit) => `Every ${unit} that it knows gets a number.`, label: "logits", name: "logits", kind: "weights", values: ofModel("returned"), axes: ["seq", "vocab_size"],
    rule: (config) => (config.tied_embedding ? "$o = Norm(X^{(L)}) E^{𝖳}$: each row compared with the row of every token"
      : `$o = Norm(X^{(L)}) W${config.output_bias ? " + b" : ""}$: a number for every token`), file: "models/decoder.py",
    code: () => "return by_table(x, self.embedding.weight) if self.output is None else self.output(x)",
    link: ["decoder.html#equation-eq-decoder-model", "The model"] },
  { key: "probabilities", tells: () => "Softmax turns the numbers into probabilities:", label: "softmax", name: "softmax", kind: "marked", values: ofModel("probabilities"), limit: 1, axes: ["seq", "vocab_size"],
    rule: () => "$p(w | s_{0}, …, s_{n}) = softmax(o_{n})_{w}$: what comes next?", file: "generation/sampling.py",
    code: () => "return jax.nn.softmax(adjusted(at_least_float32(logits), min(temperature, FLOAT32_MAX), top_k, top_p, min_p))",
    link: ["generation.html#equation-eq-generation-temperature", "Temperature"] },
];

/** What is said of a block that is shut, the first of them at more length. */
function tellsOf(block, open, layers) {
  const isFirst = block === (open === 0 ? 1 : 0);
  const all = `All ${layers} blocks do the same, each with numbers of its own`;
  return () => (isFirst ? `${all}${block < open ? `. Look into block ${open + 1}` : ""}.` : `Block ${block + 1} does the same once more.`);
}

/** The boxes of a model in the order in which it computes, with block `open` from the inside. */
export function boxesOf({ num_layers: layers, ...config }, open) {
  const isThere = ({ kind }) => kind !== "norm" || isPre(config); // with post-norm the sums hold the norms
  const blocks = Array.from({ length: layers }, (_, block) => (block === open ? INSIDE.filter(isThere).map((box) => ({ ...box, block }))
    : [{ ...SHUT, key: `block${block}`, label: `block ${block + 1}`, name: `block ${block + 1}`, block, tells: tellsOf(block, open, layers) }]));
  return [...BEFORE, ...blocks.flat(), ...AFTER.filter(isThere)];
}
