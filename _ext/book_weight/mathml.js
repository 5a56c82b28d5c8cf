// Write a formula as MathML that browsers draw themselves. MathJax reads the TeX. What it knows of TeX's rules of
// spacing, of alphabets and of columns is written out, since browsers have rules of their own there, or none.

const { mathjax } = MathJax._.mathjax;
const { TeX } = MathJax._.input.tex_ts;
MathJax._.handlers.html_ts.RegisterHTMLHandler(MathJax._.adaptors.liteAdaptor.liteAdaptor());

const tex = new TeX({
  packages: ["base", "ams", "boldsymbol", "cases", "mathtools"],
  formatError(_, error) {
    throw error;
  },
});
const reader = mathjax.document("", { InputJax: tex });

function mathml(source, display) {
  try {
    const root = reader.convert(source, { display, end: 20 }); // 20: read, but do not typeset
    root.setTeXclass(null);
    spaceOut(root);
    return { markup: write(root, source) };
  } catch (error) {
    return { error: error.message };
  }
}

// --- Spaces ---------------------------------------------------------------------------------------------------

const WIDTHS = { thinmathspace: "0.167em", mediummathspace: "0.222em", thickmathspace: "0.278em" };

// The operator whose attributes say how much room a part of a formula has around it: itself, or that within.
const operator = (node) => (node?.isEmbellished ? node.coreMO() : null);

// Give each gap that TeX would leave to the operator beside it; where there is none, an empty box keeps it open.
function spaceOut(node) {
  const parts = children(node).filter((part) => !part.isKind("text"));
  parts.forEach((part, position) => {
    const width = WIDTHS[part.texSpacing()];
    const [own, before] = [operator(part), operator(parts[position - 1])];
    if (width && own) own.left = width;
    else if (width && before) before.right = width;
    else if (width) part.gap = width;
    spaceOut(part);
  });
}

// --- Letters --------------------------------------------------------------------------------------------------

// Where Unicode's mathematical A, a and 0 stand, and the letters that had a place before.
const ALPHABETS = {
  "-tex-calligraphic": [0x1d49c, 0x1d4b6, 0, "BℬEℰFℱHℋIℐLℒMℳRℛeℯgℊoℴ"],
  bold: [0x1d400, 0x1d41a, 0x1d7ce],
  "bold-italic": [0x1d468, 0x1d482],
  "double-struck": [0x1d538, 0x1d552, 0x1d7d8, "CℂHℍNℕPℙQℚRℝZℤ"],
  fraktur: [0x1d504, 0x1d51e, 0, "CℭHℌIℑRℜZℨ"],
  italic: [0x1d434, 0x1d44e, 0, "hℎ"],
  monospace: [0x1d670, 0x1d68a, 0x1d7f6],
  "sans-serif": [0x1d5a0, 0x1d5ba, 0x1d7e2],
};

// The accents of the keyboard stand low and wide in a font; these are made to stand above a letter.
const ACCENTS = { "^": "ˆ", "~": "˜", "¯": "ˉ" };

function letter(sign, [capitals, small, digits, older = ""]) {
  const position = older.indexOf(sign);
  if (position >= 0 && position % 2 === 0) return older[position + 1];
  const [start, first] = /[A-Z]/.test(sign) ? [capitals, "A"] : /[a-z]/.test(sign) ? [small, "a"] : [digits, "0"];
  if (!/[A-Za-z0-9]/.test(sign) || !start) throw Error(`There is no ${sign} in this alphabet`);
  return String.fromCodePoint(start + sign.charCodeAt(0) - first.charCodeAt(0));
}

function text(node) {
  const variant = node.parent.attributes.getExplicit("mathvariant");
  const alphabet = ALPHABETS[variant];
  if (variant && variant !== "normal" && !alphabet) throw Error(`There is no alphabet ${variant}`);
  const signs = [...node.getText()].map((sign) => (alphabet && sign.trim() ? letter(sign, alphabet) : sign));
  return escape(signs.map((sign) => (node.parent.isKind("mo") && ACCENTS[sign]) || sign).join(""));
}

// --- Elements -------------------------------------------------------------------------------------------------

const PLAIN = ["accent", "accentunder", "display", "displaystyle", "height", "linethickness", "largeop"];
const WRITTEN = [...PLAIN, "maxsize", "minsize", "movablelimits", "scriptlevel", "stretchy", "symmetric", "width"];

const children = (node) => (node.childNodes ?? []).filter(Boolean);
const escape = (signs) => signs.replace(/[&<>"]/g, (sign) => `&#${sign.codePointAt(0)};`);
const attribute = (name, value) => ` ${name}="${escape(String(value))}"`;

function write(node, source) {
  if (node.isKind("text")) return text(node);
  const inside = children(node).map((child) => write(child)).join("");
  if (node.isInferred) return inside;
  const gap = node.gap ? `<mspace width="${node.gap}"></mspace>` : "";
  const group = node.isKind("TeXAtom") || node.isKind("mrow");
  if (group && children(node).flatMap((child) => (child.isInferred ? children(child) : child)).length === 1) {
    return gap + inside;
  }
  const name = group ? "mrow" : node.kind;
  return `${gap}<${name}${attributes(node, source)}>${inside}</${name}>`;
}

function attributes(node, source) {
  const said = (name) => node.attributes.getExplicit(name);
  const all = WRITTEN.filter((name) => said(name) !== undefined).map((name) => attribute(name, said(name)));
  if (node.isKind("math")) all.push(attribute("alttext", source.trim()));
  if (node.isKind("mo")) all.push(attribute("lspace", node.left ?? 0), attribute("rspace", node.right ?? 0));
  // A single letter leans unless it is said to stand.
  const stands = node.isKind("mi") && said("mathvariant") === "normal" && [...node.getText()].length === 1;
  if (stands) all.push(' mathvariant="normal"');
  // What stands above as an accent keeps its size.
  const above = children(node)[node.over];
  if (above?.isEmbellished && above.coreMO().attributes.get("accent")) all.push(' accent="true"');
  if (node.isKind("mtd")) all.push(...cell(node));
  return all.join("");
}

// A cell of a table or of aligned equations: to which side its content stands, and how far it is from its neighbours.
function cell(node) {
  const [row, table] = [node.parent, node.parent.parent];
  const [down, across] = [table.childNodes.indexOf(row), row.childNodes.indexOf(node)];
  const entry = (name, position, otherwise) => {
    const all = String(table.attributes.getExplicit(name) ?? otherwise).split(" ");
    return all[Math.min(position, all.length - 1)];
  };
  const above = down ? entry("rowspacing", down - 1, "0.2em") : 0;
  const beside = across ? entry("columnspacing", across - 1, "1em") : 0;
  const line = across && entry("columnlines", across - 1, "none") === "solid" ? ";border-left:1px solid" : "";
  const side = entry("columnalign", across, "center");
  const style = attribute("style", `padding:${above} 0 0 ${beside}${line}`);
  return side === "center" ? [style] : [attribute("class", side), style];
}

0;
