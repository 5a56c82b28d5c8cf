// Formulas inside figures, as MathML: browsers draw them, and screen readers read them, without a library. What they are
// written in looks as they do: `S_{h} = Q_{h} K_{h}^{T} / √{d_{k}}`; letters side by side are one word, as in `softmax`.

const MATHML = "http://www.w3.org/1998/Math/MathML";
const PARTS = /\p{L}+|\d+(?:\.\d+)?|\S/gu;

function node(tag, ...children) {
  const made = document.createElementNS(MATHML, tag);
  made.append(...children);
  return made;
}

const leafOf = (part) => node(/^\p{L}|^…/u.test(part) ? "mi" : /^\d/.test(part) ? "mn" : "mo", part);
const rowOf = (nodes) => (nodes.length === 1 ? nodes[0] : node("mrow", ...nodes));

/** A base with what stands below and above it, where there is anything. */
function scripted(base, below, above) {
  if (below && above) return node("msubsup", base, below, above);
  if (below) return node("msub", base, below);
  return above ? node("msup", base, above) : base;
}

/** A formula as a node; `{…}` holds together, `√{…}` is a root, `_` lowers and `^` raises what follows, `′` is raised. */
export function formula(source) {
  const parts = source.match(PARTS);
  let at = 0;
  function row() {
    const found = [];
    while (at < parts.length && parts[at] !== "}") found.push(term());
    at++; // the brace
    return rowOf(found);
  }
  function atom() {
    const part = parts[at++];
    if (part === "{") return row();
    return part === "√" ? node("msqrt", atom()) : leafOf(part);
  }
  function term() {
    const [base, found] = [atom(), {}];
    while (["_", "^", "′"].includes(parts[at])) {
      const sign = parts[at++];
      found[sign === "_" ? "below" : "above"] = sign === "′" ? leafOf("′") : atom();
    }
    return scripted(base, found.below, found.above);
  }
  return mathOf(source.replace(/[{}]/g, ""), row());
}

/** What is read where a formula cannot be, as in the value of a slider, is its `alttext`. */
function mathOf(alttext, inside) {
  const math = node("math", inside);
  math.setAttribute("alttext", alttext);
  return math;
}

/** A matrix of numbers in brackets. */
export function matrixFormula(rows) {
  const cells = (row) => row.map((value) => node("mtd", ...(value < 0 ? [leafOf("−")] : []), leafOf(String(Math.abs(value)))));
  const table = node("mtable", ...rows.map((row) => node("mtr", ...cells(row))));
  return mathOf(rows.map((row) => row.join(" ")).join("; "), node("mrow", leafOf("("), table, leafOf(")")));
}

/** A line of words in which what stands between two `$` is a formula: a list of strings and nodes. */
export const typeset = (words) => words.split("$").map((part, i) => (i % 2 ? formula(part) : part));
