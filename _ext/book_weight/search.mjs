// The search: sections, glossary terms and entries of the reference, as one types. It weighs a word by how rare it is,
// and counts it most in a title; knows what else a thing is called, and what a word with one wrong letter was to be; and
// finds nothing that is not in `search.json`. First comes what has the query as its title, then the section that a term of
// the glossary leads to, then the entry of the reference, then all the rest.

// Other names of one thing. British spelling, plurals and hyphens are seen to below.
const NAMES = [
  ["kv", "k v", "key value"],
  ["kv cache", "key value cache", "cache"],
  ["rope", "rotary"],
  ["bpe", "byte pair encoding", "byte pair"],
  ["ln", "layernorm", "layer norm", "layer normalisation"],
  ["rms norm", "rmsnorm"],
  ["bn", "batchnorm", "batch norm", "batch normalisation"],
  ["mha", "multi head attention", "multi head"],
  ["gqa", "grouped query attention", "groups of heads", "grouped query"],
  ["mqa", "multi query attention", "multi query"],
  ["ffn", "mlp", "feed forward network", "feed forward"],
  ["sqrt", "root", "square root", "√"],
  ["pe", "positional encoding", "position encoding", "positions"],
  ["sinusoidal", "sinusoid"],
  ["lm", "language model"],
  ["vit", "vision transformer"],
  ["seq2seq", "encoder decoder", "sequence to sequence"],
  ["cls", "class token"],
  ["mlm", "masked language model", "masked language modelling"],
  ["nucleus", "top p"],
  ["rnn", "recurrent network", "recurrent networks"],
  ["skip connection", "residual", "residual connection"],
  ["colour", "color"],
  ["warm up", "warmup"],
  ["learning rate schedule", "learning rate warmup", "learning rate decay"],
  ["flashattention", "flash attention"],
  ["backpropagation", "backprop", "back propagation"],
  ["parameter", "parameter count", "number parameters"],
  ["lora", "low rank adaptation"],
  ["expert", "mixture experts", "moe"],
  ["direct preference optimisation", "dpo"],
  ["supervised fine tuning", "sft"],
  ["kullback leibler divergence", "kl divergence", "kl"],
  ["fine tuning", "finetuning"],
  ["pre training", "pretraining"],
  ["pre norm", "prenorm"],
  ["post norm", "postnorm"],
  ["roll out", "rollout"],
  ["tied embedding", "weight tying"],
].map((names) => names.map((name) => name.split(" ")));

const NAMED = new Set(NAMES.flat(2).map(stem)); // words that need not stand in the book
const IDLE = new Set("a an and are as at be by do does for from how in is it its of on pf that the this to what when which why with".split(" "));
const NUMBER = /^[\dA-Z]+(\.\d+)*\.\s/; // of a section
const tells = (word) => !IDLE.has(word);
const ROOT = document.documentElement.dataset.content_root ?? "./";
const SHOWN = { dialog: 8, page: 40 };

// --- Words ----------------------------------------------------------------------------------------------------

function stem(word) {
  const british = word.replace(/iz(e[drs]?|ing|ation|ations|er|ers)$/, "is$1").replace(/eling$/, "elling");
  if (/^(.*[^su])s$/.test(british) && british.length > 3) return british.slice(0, -1);
  return british;
}

export function split(text) {
  const plain = text.normalize("NFKC").toLowerCase().replace(/['’]s\b/g, "");
  return (plain.match(/√|[\p{L}\p{N}]+/gu) ?? []).map(stem);
}

// Every way of asking the same: where some words name a thing, its other names in their place.
export function readings(words) {
  const found = [words];
  for (const names of NAMES) {
    const stems = names.map((name) => name.map(stem));
    for (const name of [...stems].sort((a, b) => b.length - a.length)) {
      const start = words.findIndex((_, i) => name.every((word, j) => words[i + j] === word));
      if (start < 0) continue;
      for (const other of stems) {
        if (other !== name) found.push([...words.slice(0, start), ...other, ...words.slice(start + name.length)]);
      }
      break;
    }
  }
  return found;
}

// Whether one letter too many, too few, another, or two neighbours the wrong way round make one word of the other.
export function near(one, other) {
  let [start, end] = [0, 0];
  while (start < one.length && one[start] === other[start]) start += 1;
  const most = Math.min(one.length, other.length) - start;
  while (end < most && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  const [from, to] = [one.slice(start, one.length - end), other.slice(start, other.length - end)];
  return Math.max(from.length, to.length) === 1 || (from.length === 2 && from === to[1] + to[0] && to.length === 2);
}

// A word that the book has not, and that has at least four letters: the commonest word that is near it.
function mended({ spread, words }, word, unfinished) {
  if (word.length < 4 || spread.has(word) || NAMED.has(word)) return word;
  if (unfinished && words.some((other) => other.startsWith(word))) return word;
  const close = words.filter((other) => Math.abs(other.length - word.length) < 2 && near(word, other));
  return close.reduce((best, other) => (spread.get(other) > (spread.get(best) ?? 0) ? other : best), word);
}

// --- The index ------------------------------------------------------------------------------------------------

const FIRST = 1e4; // more than any score
// How much a section on a page is worth beside an entry of the glossary, and of the reference.
const WORTH = [[/glossary/, 0.8], [/api/, 0.55], [/bibliography|equations|engine/, 0.5]];

export function prepare(pages) {
  const explained = new Map(); // by the address of a section: the terms of the glossary that lead to it
  for (const [, title, , where] of pages.flatMap(([, , entries]) => entries)) {
    if (where) explained.set(where, [...(explained.get(where) ?? []), split(title).join(" ")]);
  }
  const sections = pages.flatMap(([address, page, entries]) =>
    entries.map(([anchor, title, text], place) => ({
      address: place || /glossary|api/.test(address) ? `${address}#${anchor}` : address,
      page,
      title,
      text,
      heading: new Set(split(title)),
      above: new Set(split(page)),
      counts: count(split(text)),
      run: ` ${split(`${title} ${text}`).join(" ")} `,
      name: ` ${split(title.replace(NUMBER, "")).join(" ")} `,
      gist: split(title.replace(NUMBER, "")).filter(tells).join(" "),
      explains: explained.get(`${address}#${anchor}`) ?? [],
      named: /api/.test(address),
      worth: WORTH.find(([name]) => name.test(address))?.[1] ?? 1,
    })),
  );
  const spread = new Map(); // in how many sections each word occurs
  for (const { heading, counts } of sections) {
    for (const word of new Set([...heading, ...counts.keys()])) spread.set(word, (spread.get(word) ?? 0) + 1);
  }
  return { sections, spread, words: [...spread.keys()] };
}

function count(words) {
  const counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

export function search(index, query) {
  const typed = split(query);
  const asked = typed.map((word, i) => mended(index, word, i === typed.length - 1));
  const telling = asked.filter(tells);
  const best = new Map();
  readings(telling.length ? telling : asked).forEach((words, reading) => {
    for (const [section, score] of ranked(index, words)) {
      const value = score * (reading ? 0.9 : 1);
      if (value > (best.get(section)?.value ?? 0)) best.set(section, { section, value, words });
    }
  });
  const found = [...best.values()].sort((a, b) => b.value - a.value);
  return { found, meant: asked.some((word, i) => word !== typed[i]) ? asked.join(" ") : "" };
}

function ranked({ sections, spread, words: known }, words) {
  // The last word may be unfinished: those that it begins are meant as well.
  const last = words.at(-1) ?? "";
  const choices = words.map((word, i) => {
    const longer = i === words.length - 1 && last.length > 2 ? known.filter((other) => other.startsWith(last)) : [];
    return [...new Set([...(spread.has(word) ? [word] : []), ...longer])];
  });
  const rare = (word) => Math.log(1 + sections.length / spread.get(word));
  const phrase = ` ${words.join(" ")} `;
  return sections.flatMap((section) => {
    let [score, met] = [0, 0];
    choices.forEach((choice, i) => {
      const values = choice.map((word) => {
        const told = section.counts.get(word) ?? 0;
        const weight = (section.heading.has(word) ? 4 : 0) + (section.above.has(word) ? 0.5 : 0) + (2 * told) / (told + 2);
        return told || section.heading.has(word) ? rare(word) * weight * (word === words[i] ? 1 : 0.6) : 0;
      });
      const value = Math.max(0, ...values);
      score += value;
      met += value > 0;
    });
    const explains = section.explains.includes(words.join(" "));
    if (!met && !explains) return [];
    if (section.name.includes(phrase)) score *= 1.6;
    else if (words.length > 1 && section.run.includes(phrase)) score *= 1.5;
    const titled = section.gist === words.join(" ");
    const rank = titled && !section.named ? 3 : explains ? 2 : titled ? 1 : 0;
    return [[section, rank * FIRST + score * section.worth * (met / words.length) ** 2]];
  });
}

// --- What is shown --------------------------------------------------------------------------------------------

const escape = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

function excerpt({ section, words }) {
  const parts = section.text.split(/(?<=[.?!:;])\s/);
  const hits = (part) => words.filter((word) => split(part).some((other) => other.startsWith(word))).length;
  const start = parts.reduce((best, part, i) => (hits(part) > hits(parts[best]) ? i : best), 0);
  const text = parts.slice(start).join(" ");
  const short = text.length > 170 ? `${text.slice(0, 170).replace(/\s\S*$/, "")} …` : text;
  return short.replace(/[\p{L}\p{N}]+|[&<>"]/gu, (shown) =>
    words.some((word) => stem(shown.toLowerCase()).startsWith(word)) ? `<mark>${shown}</mark>` : escape(shown),
  );
}

function item(result) {
  const { address, page, title } = result.section;
  const where = title === page ? "" : `<span class="search-page">${escape(page)}</span>`;
  return `<li><a href="${ROOT}${escape(address)}"><span class="search-title">${escape(title)}</span>${where}</a>
    <p>${excerpt(result)}</p></li>`;
}

function show(box, index, query, most) {
  const { found, meant } = query.trim() ? search(index, query) : { found: [], meant: "" };
  const number = found.length === 1 ? "1 section" : `${found.length} sections`;
  const first = found.length > most ? `${number}, the first ${most}:` : found.length ? `${number}:` : "";
  const status = box.querySelector("[role=status]");
  status.textContent = query.trim() ? first || "Nothing was found." : "";
  if (meant) status.prepend("Showing results for ", Object.assign(document.createElement("em"), { textContent: meant }), ". ");
  box.querySelector("ul").innerHTML = found.slice(0, most).map(item).join("");
}

let index = null;
const load = () => (index ??= fetch(new URL("search.json", import.meta.url)).then(async (answer) => {
  if (!answer.ok) throw Error(`search.json: status ${answer.status}`);
  return prepare(await answer.json());
}).catch((error) => {
  index = null; // what is typed next asks again
  throw error;
}));

// Make a search field answer as one types: the dialog's below it, the search page's in the page.
export function attend(form) {
  if (form.dataset.attended) return;
  form.dataset.attended = "yes";
  const [field, dialog] = [form.querySelector("input"), form.closest("dialog")];
  const box = document.querySelector(dialog ? "#search-found" : "#search-results") ?? document.createElement("div");
  box.id = dialog ? "search-found" : "search-results";
  box.innerHTML = '<p role="status"></p><ul class="search"></ul>';
  form.after(box);
  const answer = () =>
    load().then(
      (ready) => show(box, ready, field.value, dialog ? SHOWN.dialog : SHOWN.page),
      () => (box.querySelector("[role=status]").textContent = "The search could not be loaded; try again later."),
    );
  if (!dialog) field.value ||= new URLSearchParams(location.search).get("q") ?? "";
  field.addEventListener("input", answer);
  for (const part of dialog ? [dialog] : [form, box]) part.addEventListener("keydown", (event) => walk(event, field, box));
  // A link to a place on the page itself would leave the dialog open.
  box.addEventListener("click", (event) => event.target.closest("a") && dialog?.close());
  answer();
}

// Arrow keys lead through the results and back to the field.
function walk(event, field, box) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const stops = [field, ...box.querySelectorAll("a")];
  const here = stops.indexOf(document.activeElement);
  stops[Math.max(0, Math.min(stops.length - 1, here + step))]?.focus();
  event.preventDefault();
}
