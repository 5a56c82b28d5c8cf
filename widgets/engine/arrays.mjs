// Matrices as the book writes them: rows are tokens. The numbers lie row by row in `data`, in float32 as in JAX.

export const range = (length, start = 0) => Array.from({ length }, (_, i) => start + i);
export const mean = (numbers) => numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
export const largest = (numbers) => numbers.indexOf(Math.max(...numbers));

export const matrix = (rows, columns, data = new Float32Array(rows * columns)) => ({ rows, columns, data });
export const row = ({ columns, data }, n) => data.subarray(n * columns, (n + 1) * columns);
export const rowsOf = (x) => range(x.rows).map((n) => Array.from(row(x, n)));
export const slice = (x, start, stop = x.rows) => matrix(stop - start, x.columns, x.data.slice(start * x.columns, stop * x.columns));
export const map = (x, change) => matrix(x.rows, x.columns, x.data.map(change));

/** Two matrices, number by number. */
export const zip = (x, y, join) => map(x, (value, i) => join(value, y.data[i]));
export const add = (x, y) => zip(x, y, (a, b) => a + b);

/** One matrix below the other. */
export function stack(x, y) {
  const out = matrix(x.rows + y.rows, x.columns);
  out.data.set(x.data);
  out.data.set(y.data, x.data.length);
  return out;
}

/** The rows with these numbers, in this order. */
export function rowsAt(table, numbers) {
  const out = matrix(numbers.length, table.columns);
  numbers.forEach((number, n) => {
    if (!Number.isInteger(number) || number < 0 || number >= table.rows) {
      throw new Error(`There is no row ${number}; expected 0 to ${table.rows - 1}.`);
    }
    row(out, n).set(row(table, number));
  });
  return out;
}

/** The columns from `start` on, `width` of them. */
export function columns(x, start, width) {
  const out = matrix(x.rows, width);
  for (let n = 0; n < x.rows; n++) row(out, n).set(row(x, n).subarray(start, start + width));
  return out;
}

export function transpose(x) {
  const out = matrix(x.columns, x.rows);
  for (let n = 0; n < x.rows; n++) for (let j = 0; j < x.columns; j++) out.data[j * x.rows + n] = x.data[n * x.columns + j];
  return out;
}

/** Add x W to `to`, for one row x; four rows of W at a time, so that each number of the result is fetched once for the four; from row i of W on. */
function addRow(x, to, { rows: d, columns: wide, data: w }, i = 0) {
  for (; i + 3 < d; i += 4) {
    const [a, b, c, e] = [x[i], x[i + 1], x[i + 2], x[i + 3]];
    const [first, second, third, fourth] = [i * wide, (i + 1) * wide, (i + 2) * wide, (i + 3) * wide];
    for (let j = 0; j < wide; j++) to[j] += a * w[first + j] + b * w[second + j] + c * w[third + j] + e * w[fourth + j];
  }
  for (; i < d; i++) for (let j = 0; j < wide; j++) to[j] += x[i] * w[i * wide + j];
}

/** As `addRow`, for four rows of X from row n on, so that each number of W is fetched once for the four. */
function addFourRows(x, out, n, weight) {
  const { rows: d, columns: wide, data: w } = weight;
  const [x1, x2, x3, x4] = range(4, n).map((m) => row(x, m));
  const [to1, to2, to3, to4] = range(4, n).map((m) => row(out, m));
  let i = 0;
  for (; i + 3 < d; i += 4) {
    const [a1, a2, a3, a4] = [x1[i], x1[i + 1], x1[i + 2], x1[i + 3]];
    const [b1, b2, b3, b4] = [x2[i], x2[i + 1], x2[i + 2], x2[i + 3]];
    const [c1, c2, c3, c4] = [x3[i], x3[i + 1], x3[i + 2], x3[i + 3]];
    const [e1, e2, e3, e4] = [x4[i], x4[i + 1], x4[i + 2], x4[i + 3]];
    const [first, second, third, fourth] = [i * wide, (i + 1) * wide, (i + 2) * wide, (i + 3) * wide];
    for (let j = 0; j < wide; j++) {
      const w1 = w[first + j], w2 = w[second + j], w3 = w[third + j], w4 = w[fourth + j];
      to1[j] += a1 * w1 + a2 * w2 + a3 * w3 + a4 * w4;
      to2[j] += b1 * w1 + b2 * w2 + b3 * w3 + b4 * w4;
      to3[j] += c1 * w1 + c2 * w2 + c3 * w3 + c4 * w4;
      to4[j] += e1 * w1 + e2 * w2 + e3 * w3 + e4 * w4;
    }
  }
  for (const m of range(4, n)) addRow(row(x, m), row(out, m), weight, i);
}

/** X W, or X W + b. */
export function linear(x, weight, bias = null) {
  if (x.columns !== weight.rows) throw new Error(`A row has ${x.columns} numbers; expected ${weight.rows}, one for each row of the matrix.`);
  const out = matrix(x.rows, weight.columns);
  if (bias) for (let n = 0; n < x.rows; n++) row(out, n).set(bias);
  let n = 0;
  for (; n + 3 < x.rows; n += 4) addFourRows(x, out, n, weight);
  for (; n < x.rows; n++) addRow(row(x, n), row(out, n), weight);
  return out;
}

/** The softmax of each row. Where `mask(n, m)` is false the weight is zero; a row that is all hidden is all zeros. */
export function softmax(scores, mask = () => true) {
  const out = matrix(scores.rows, scores.columns);
  for (let n = 0; n < scores.rows; n++) {
    const [from, to] = [row(scores, n), row(out, n)];
    let largest = -Infinity;
    for (let m = 0; m < from.length; m++) if (mask(n, m) && from[m] > largest) largest = from[m];
    let total = 0;
    for (let m = 0; m < from.length; m++) if (mask(n, m)) total += to[m] = Math.exp(from[m] - largest);
    for (let m = 0; m < from.length; m++) to[m] = total ? to[m] / total : 0;
  }
  return out;
}
