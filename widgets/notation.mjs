// One small self-attention, written in the two conventions of the literature (the appendix on notation): tokens as rows or columns.
import { flag, place, setting } from "./address.mjs";
import {
  checkbox, choice, format, frame, html, matmul, matrixTable, note, panel, scaled, softmax, title, total, transpose, wideNote,
} from "./common.mjs";
import { formula, matrixFormula, typeset } from "./formula.mjs";

const TOKENS = ["tea", "is", "hot"];
const X = [[1, 1], [2, 0], [-1, 1]]; // one row per token: N = 3, D = 2
const W_Q = [[-1, 1], [1, 0]];
const W_K = [[1, 0], [1, 1]];

/** Rows are tokens: scores[n][m] compares query n with key m, and the softmax runs along each row. */
function rowConvention(wrongAxis) {
  const scores = scaled(matmul(matmul(X, W_Q), transpose(matmul(X, W_K))), 1 / Math.sqrt(2));
  const weights = wrongAxis ? transpose(transpose(scores).map((row) => softmax(row))) : scores.map((row) => softmax(row));
  return { x: X, scores, weights, output: matmul(weights, X) };
}

/** Columns are tokens: scores[m][n] compares key m with query n, and the softmax runs down each column. */
function columnConvention(wrongAxis) {
  const x = transpose(X);
  const [queries, keys] = [matmul(transpose(W_Q), x), matmul(transpose(W_K), x)];
  const scores = scaled(matmul(transpose(keys), queries), 1 / Math.sqrt(2));
  const weights = wrongAxis ? scores.map((row) => softmax(row)) : transpose(transpose(scores).map((row) => softmax(row)));
  return { x, scores, weights, output: matmul(x, weights) };
}

const VIEWS = {
  rows: {
    title: "Tokens are rows: $X$ is $N × D$", compute: rowConvention, rowwise: true,
    names: { x: "$X$", scores: "$S = Q K^{𝖳} / √2$", weights: "$A$ = softmax of each row", output: "$Y = A X$" },
    wrong: "$A$ = softmax of each column (slip)", index: "$S[n, m]$, $A[n, m]$: query $n$, key $m$", corner: "query \\ key",
  },
  columns: {
    title: "Tokens are columns: $X$ is $D × N$", compute: columnConvention, rowwise: false,
    names: { x: "$X$", scores: "$S = K^{𝖳} Q / √2$", weights: "$A$ = softmax of each column", output: "$Y = X A$" },
    wrong: "$A$ = softmax of each row (slip)", index: "$S[m, n]$, $A[m, n]$: key $m$, query $n$", corner: "key \\ query",
  },
};

/** The four matrices of one convention; `update` fills them and marks what belongs to the chosen query. */
function convention(view, onpoint) {
  const features = ["1", "2"];
  const [tall, wide] = [[TOKENS, features], [features, TOKENS]];
  const [rows, columns] = view.rowwise ? tall : wide;
  const { names } = view;
  const tables = {
    x: matrixTable({ caption: typeset(names.x), rows, columns, digits: 0, limit: 2 }),
    scores: matrixTable({ caption: typeset(names.scores), rows: TOKENS, columns: TOKENS, limit: 4, corner: view.corner }),
    weights: matrixTable({ caption: typeset(names.weights), rows: TOKENS, columns: TOKENS, sums: true, corner: view.corner }),
    output: matrixTable({ caption: typeset(names.output), rows, columns, limit: 2 }),
  };
  // The mouse over any number points out the query that it belongs to.
  for (const { cells, heads, tops } of Object.values(tables)) {
    cells.forEach((row, i) => row.forEach((cell, j) => cell.addEventListener("pointerenter", () => onpoint(view.rowwise ? i : j))));
    (view.rowwise ? heads : tops).forEach((name, i) => name.addEventListener("pointerenter", () => onpoint(i)));
  }
  const node = panel(title(...typeset(view.title)), note(...typeset(view.index)), Object.values(tables).map(({ table }) => html("div", { class: "lf-table" }, table)));

  function update(numbers, chosen, wrongAxis) {
    tables.weights.table.caption.replaceChildren(...typeset(wrongAxis ? view.wrong : names.weights));
    for (const [name, { cells, heads, tops, update: write }] of Object.entries(tables)) {
      write(numbers[name]);
      cells.forEach((row, i) => row.forEach((cell, j) => cell.classList.toggle("lf-chosen", (view.rowwise ? i : j) === chosen)));
      (view.rowwise ? heads : tops).forEach((head, i) => head.classList.toggle("lf-chosen", i === chosen));
    }
    // The sums that ought to be one are those over the keys of each query.
    const { right, below } = tables.weights;
    for (const cell of view.rowwise ? right : below) {
      cell.classList.toggle("lf-one", cell.textContent === "1.00");
      cell.classList.toggle("lf-not-one", cell.textContent !== "1.00");
    }
  }
  return { node, update };
}

export function mount(element) {
  const start = { shown: "both", wrongAxis: false, chosen: 2 };
  const { stage, publish, set, bind, addressed } = frame(element, { label: "one self-attention in two conventions", start, draw });
  const query = choice({ legend: "Query token", options: TOKENS.map((token, i) => [i, token]) });
  query.labels.forEach((label, i) => label.addEventListener("pointerenter", () => set({ chosen: i })));
  bind({ shown: choice({ legend: "Convention", options: [["rows", "tokens as rows"], ["columns", "tokens as columns"], ["both", "both"]] }),
    chosen: query, wrongAxis: checkbox({ label: "slip: softmax over the wrong axis" }) });

  const panels = Object.entries(VIEWS).map(([name, view]) => [name, view, convention(view, (chosen) => set({ chosen }))]);
  stage.append(...panels.map(([, , { node }]) => node), wideNote(
    ...typeset("Toy numbers, chosen by hand: queries $X W^{(q)}$ and keys $X W^{(k)}$ in the row convention, with $W^{(q)}$ = "), matrixFormula(W_Q), " and ",
    ...typeset("$W^{(k)}$ = "), matrixFormula(W_K), "; their transposes on the left of ", formula("X"), " in the column convention; the values are the tokens themselves. ",
    "Framed: everything that belongs to the query token."));

  function draw({ shown, chosen, wrongAxis }) {
    const numbers = {};
    for (const [name, view, { node, update }] of panels) {
      numbers[name] = view.compute(wrongAxis);
      update(numbers[name], chosen, wrongAxis);
      node.hidden = shown !== "both" && shown !== name;
    }
    const weights = numbers.rows.weights[chosen];
    const list = weights.map((value, m) => `${format(value)} ${TOKENS[m]}`).join(" + ");
    publish({ shown, wrongAxis, chosen, queryWeight: W_Q, keyWeight: W_K, ...numbers },
      `Query “${TOKENS[chosen]}”: ${list}; the weights sum to ${format(total(weights))}${wrongAxis ? ": no average" : " in both conventions"}.`);
  }
  set(start);
  addressed({ chosen: place(TOKENS.length), wrongAxis: null, slip: setting("wrongAxis", flag) });
}
