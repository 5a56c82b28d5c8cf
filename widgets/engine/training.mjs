// A model that learns in the page: the look-up task of the chapter on self-attention, its model, the gradient of its loss by hand, and Adam.
import { add, largest, linear, map, matrix, mean, range, row, rowsAt, rowsOf, slice, softmax, stack, transpose } from "./arrays.mjs";

export const [NAMES, NUMBERS, PAIRS, WIDTH, BATCH] = [16, 10, 8, 32, 64];
const SEQ = PAIRS + 1; // the pairs, then the question

/** Random numbers from 0 to 1, the same for the same seed (splitmix32). */
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

const whole = (random, stop) => Math.floor(random() * stop);

/** Pairs (names and numbers, 8 per row), the place of the pair asked for, and the right answer. */
export function draw(random, count) {
  const [names, numbers, place] = [[], [], []];
  for (let n = 0; n < count; n++) {
    const shuffled = range(NAMES);
    for (let i = 0; i < PAIRS; i++) {
      const j = i + whole(random, NAMES - i);
      [shuffled[i], shuffled[j]] = [shuffled[j], shuffled[i]];
    }
    names.push(shuffled.slice(0, PAIRS));
    numbers.push(range(PAIRS).map(() => whole(random, NUMBERS)));
    place.push(whole(random, PAIRS));
  }
  return { names, numbers, place, answer: numbers.map((row, n) => row[place[n]]) };
}

/** A new model's numbers: tables of variance 1, maps of variance 2 / (rows + columns), a read-out of variance 1 / 32. */
export function newParams(random, dK = WIDTH) {
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const drawn = (rows, columns, variance) => map(matrix(rows, columns), () => Math.sqrt(variance) * normal());
  const glorot = (rows, columns) => drawn(rows, columns, 2 / (rows + columns));
  return {
    nameTable: drawn(NAMES, WIDTH, 1), numberTable: drawn(NUMBERS, WIDTH, 1),
    queryWeight: glorot(WIDTH, dK), keyWeight: glorot(WIDTH, dK), valueWeight: glorot(WIDTH, WIDTH),
    readout: drawn(WIDTH, NUMBERS, 1 / WIDTH),
  };
}

/**
 * The names' rows, the numbers', and one of zeros; and which two of them each token is the sum of: a pair is a name and
 * a number, the question a name only. A map of a sum is the sum of the maps: so the 27 rows are mapped, not the tokens.
 */
function tableOf({ nameTable, numberTable }, { names, numbers, place }) {
  const asked = names.map((row, n) => row[place[n]]);
  const [first, second] = [[], []];
  names.forEach((row, n) => {
    row.forEach((name, m) => { first.push(name); second.push(NAMES + numbers[n][m]); });
    first.push(asked[n]);
    second.push(NAMES + NUMBERS);
  });
  return { table: stack(stack(nameTable, numberTable), matrix(1, WIDTH)), asked, first, second };
}

/** All steps to the logits, of the question's row only. A scale of 0 makes all weights equal. */
export function forward(params, batch, scale) {
  const { table, asked, first, second } = tableOf(params, batch);
  const mapped = (weight) => linear(table, weight);
  const sums = (rows) => sumsOfRows(rows, first, second);
  const queries = rowsAt(mapped(params.queryWeight), asked);
  const [keys, values] = [sums(mapped(params.keyWeight)), sums(mapped(params.valueWeight))];
  const weights = softmax(map(compare(queries, keys), (score) => scale * score));
  const outputs = combine(weights, values);
  return { table, asked, first, second, queries, keys, values, weights, outputs, logits: linear(outputs, params.readout) };
}

/** Row `first[k]` of a table plus row `second[k]`, for each k. */
function sumsOfRows({ columns, data }, first, second) {
  const out = matrix(first.length, columns);
  const sums = out.data;
  for (let k = 0; k < first.length; k++) {
    const [to, one, other] = [k * columns, first[k] * columns, second[k] * columns];
    for (let i = 0; i < columns; i++) sums[to + i] = data[one + i] + data[other + i];
  }
  return out;
}

/** The dot product of row n of `x` with each of the nine rows of `y` that belong to example n. */
function compare(x, y) {
  const [out, width, one, nine] = [matrix(x.rows, SEQ), x.columns, x.data, y.data];
  for (let k = 0; k < y.rows; k++) {
    const [from, to] = [Math.floor(k / SEQ) * width, k * width];
    let sum = 0;
    for (let i = 0; i < width; i++) sum += one[from + i] * nine[to + i];
    out.data[k] = sum;
  }
  return out;
}

/** The sum of the nine rows of `y` that belong to example n, each times its entry in row n of `weights`. */
function combine(weights, y) {
  const out = matrix(weights.rows, y.columns);
  const [width, sums, nine] = [y.columns, out.data, y.data];
  for (let k = 0; k < y.rows; k++) {
    const [to, from, weight] = [Math.floor(k / SEQ) * width, k * width, weights.data[k]];
    for (let i = 0; i < width; i++) sums[to + i] += weight * nine[from + i];
  }
  return out;
}

/** Row n of `x` nine times over, each time times an entry of row n of `weights`: the way back through `combine`. */
function spread(weights, x) {
  const out = matrix(weights.rows * SEQ, x.columns);
  const [width, nine, one] = [x.columns, out.data, x.data];
  for (let k = 0; k < out.rows; k++) {
    const [from, to, weight] = [Math.floor(k / SEQ) * width, k * width, weights.data[k]];
    for (let i = 0; i < width; i++) nine[to + i] = weight * one[from + i];
  }
  return out;
}

/** The mean surprise at the answers, in nats, and its slopes by the logits: probability minus what came. */
function crossEntropy(logits, answer) {
  const dLogits = softmax(logits);
  let loss = 0;
  answer.forEach((right, n) => {
    const [scores, slopes] = [row(logits, n), row(dLogits, n)];
    const largest = Math.max(...scores);
    loss += largest - scores[right] + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - largest), 0));
    slopes[right] -= 1;
  });
  return { loss: loss / logits.rows, dLogits: map(dLogits, (slope) => slope / logits.rows) };
}

/** The way back through a softmax, row by row: a (g - the mean of g under the weights a). */
function throughSoftmax(weights, dWeights) {
  const out = matrix(weights.rows, weights.columns);
  for (let n = 0; n < out.rows; n++) {
    const [a, g] = [row(weights, n), row(dWeights, n)];
    const mean = a.reduce((sum, share, m) => sum + share * g[m], 0);
    row(out, n).set(a.map((share, m) => share * (g[m] - mean)));
  }
  return out;
}

/** The way back through `rowsAt`: what came of row `ids[k]` goes to it, added up. */
function throughRows(ids, slopes, out) {
  const [width, sums, parts] = [out.columns, out.data, slopes.data];
  for (let k = 0; k < ids.length; k++) {
    const [from, to] = [k * width, ids[k] * width];
    for (let i = 0; i < width; i++) sums[to + i] += parts[from + i];
  }
  return out;
}

/**
 * The loss of a batch and its slopes by every number of the model: the chain rule, from the last step to the first.
 * `dX` are the slopes by X. Where Y = X W, dW = X^T dY and dX = dY W^T.
 */
export function lossAndGradient(params, batch, scale) {
  const { table, asked, first, second, queries, keys, values, weights, outputs, logits } = forward(params, batch, scale);
  const { loss, dLogits } = crossEntropy(logits, batch.answer);
  const dOutputs = linear(dLogits, transpose(params.readout));
  const dValues = spread(weights, dOutputs);
  const dScores = map(throughSoftmax(weights, compare(dOutputs, values)), (slope) => scale * slope);
  const [dQueries, dKeys] = [combine(dScores, keys), spread(dScores, queries)];
  const ofTable = (slopes) => throughRows(second, slopes, throughRows(first, slopes, matrix(table.rows, slopes.columns)));
  const [dKeyRows, dValueRows] = [ofTable(dKeys), ofTable(dValues)];
  const dQueryRows = throughRows(asked, dQueries, matrix(table.rows, queries.columns));
  const back = (rows, weight) => linear(rows, transpose(weight));
  const dTable = add(add(back(dQueryRows, params.queryWeight), back(dKeyRows, params.keyWeight)), back(dValueRows, params.valueWeight));
  const byWeight = (x, slopes) => linear(transpose(x), slopes);
  return { loss, gradient: {
    nameTable: slice(dTable, 0, NAMES), numberTable: slice(dTable, NAMES, NAMES + NUMBERS),
    queryWeight: byWeight(table, dQueryRows), keyWeight: byWeight(table, dKeyRows), valueWeight: byWeight(table, dValueRows),
    readout: byWeight(outputs, dLogits),
  } };
}

/** Adam (Kingma and Ba, 2015) with the constants of optax: it changes the parameters where they are. */
export class Adam {
  constructor(params) {
    this.steps = 0;
    const zeros = () => Object.fromEntries(Object.entries(params).map(([name, { rows, columns }]) => [name, matrix(rows, columns)]));
    [this.means, this.squares] = [zeros(), zeros()];
  }
  step(params, gradient, rate) {
    this.steps++;
    const [ofMeans, ofSquares] = [1 - 0.9 ** this.steps, 1 - 0.999 ** this.steps];
    for (const [name, { data }] of Object.entries(params)) {
      const [slopes, means, squares] = [gradient[name].data, this.means[name].data, this.squares[name].data];
      for (let i = 0; i < data.length; i++) {
        means[i] = 0.9 * means[i] + 0.1 * slopes[i];
        squares[i] = 0.999 * squares[i] + 0.001 * slopes[i] ** 2;
        data[i] -= (rate * means[i] / ofMeans) / (Math.sqrt(squares[i] / ofSquares) + 1e-8);
      }
    }
  }
}

/** What a bet on the commonest of the eight numbers gets right, and the smallest loss of any that only counts them. */
export function countingBet({ numbers }) {
  const shares = numbers.map((row) => range(NUMBERS).map((number) => row.filter((each) => each === number).length / PAIRS));
  return { accuracy: mean(shares.map((row) => Math.max(...row))),
    loss: mean(shares.map((row) => -row.reduce((sum, share) => sum + share * Math.log(share || 1), 0))) };
}

/** How well a model does on a batch: its loss, its share of right answers, the answers, and where the questions looked. */
export function judge(params, batch, scale) {
  const { weights, logits } = forward(params, batch, scale);
  const answers = rowsOf(logits).map(largest);
  const right = answers.filter((answer, n) => answer === batch.answer[n]).length;
  return { loss: crossEntropy(logits, batch.answer).loss, accuracy: right / answers.length, answers, weights: rowsOf(weights) };
}

/** The model of the chapter on self-attention while it learns, beside one whose weights are held equal: the same start, the same batches. */
export class Recall {
  constructor({ seed, dK, scaled, tests }) {
    this.random = generator(seed);
    const params = newParams(this.random, dK);
    this.learners = [scaled ? 1 / Math.sqrt(dK) : 1, 0].map((scale) => {
      const own = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, map(value, (number) => number)]));
      return { scale, params: own, adam: new Adam(own) };
    });
    this.tests = draw(generator(1000 + seed), tests);
    this.examples = Object.fromEntries(Object.entries(this.tests).map(([name, values]) => [name, values.slice(0, 6)]));
  }

  /** Learn from so many fresh batches, and look at what was learned. */
  advance(steps, rate, isTested) {
    for (let step = 0; step < steps; step++) {
      const batch = draw(this.random, BATCH);
      for (const { scale, params, adam } of this.learners) adam.step(params, lossAndGradient(params, batch, scale).gradient, rate);
    }
    return this.look(isTested);
  }

  /** Attention and answers on six examples, where each name would look among all, and if asked for all the tests. */
  look(isTested) {
    const [{ params, scale, adam }] = this.learners;
    const { answers, weights } = judge(params, this.examples, scale);
    const scores = linear(linear(params.nameTable, params.queryWeight), transpose(linear(params.nameTable, params.keyWeight)));
    const matches = rowsOf(softmax(map(scores, (score) => scale * score)));
    return { step: adam.steps, examples: this.examples, answers, weights, matches, ...(isTested && this.test()) };
  }

  /** Loss and share of right answers of attention, of equal weights, and of betting by counts, on all the tests. */
  test() {
    const all = [...this.learners.map(({ params, scale }) => judge(params, this.tests, scale)), countingBet(this.tests)];
    return { losses: all.map(({ loss }) => loss), accuracies: all.map(({ accuracy }) => accuracy) };
  }
}
