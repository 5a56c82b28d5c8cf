// Writing with the book's own model (chapters on generation and serving): the next letter's distribution as temperature, top-k, top-p and
// min-p make it, letter by letter or at full speed; the tree of a beam search; and what the key–value caches hold meanwhile.
import { list, setting, whole } from "./address.mjs";
import { beamView } from "./beam.mjs";
import { cacheView } from "./caches.mjs";
import {
  bar, bindTo, button, checkbox, choice, columnHead, format, frame, html, note, ranked, rowHead, slider, times, tint, total, wide, wideNote,
} from "./common.mjs";
import { start } from "./engine/start.mjs";
import { ownText, visible } from "./texts.mjs";
import { Writing } from "./writing.mjs";

const LABEL = "the model writes on from your own prompt";
const TEXTS = { letter: ["You can ", "The object is a", "A string is ", "The for statem"],
  token: ["What is love", "My lord, I", "ROMEO:", "Enter the ghost"] };
const textsFor = ({ unit }) => TEXTS[unit] ?? TEXTS.letter;
const SHOWN = 12; // tokens with a row of their own, the likeliest
const WIDEST = [0.25, 0.5, 1]; // what a full bar may stand for
const NAMED = 400; // tokens that a link can name
const LONGEST = 800; // letters of the text that are shown
const DEEPEST = 6; // nats at which a letter has the full colour

/** The sliders of a distribution over `size` tokens. */
function settingsOf(size, set) {
  const widths = [...times(12, (i) => i + 1), 15, 20, 30, 50].filter((k) => k < size).concat(size);
  const bound = bindTo(set, {
    temperature: slider({ label: "Temperature", max: 2, step: 0.05, ticks: [1],
      show: (value) => `${format(value)}${value === 0 ? ", greedy" : value === 1 ? ", unchanged" : ""}` }),
    topK: slider({ label: "Top-k", values: widths, show: (k) => (k === size ? `all ${size}` : String(k)) }),
    topP: slider({ label: "Top-p", min: 0.05, max: 1, step: 0.05, show: (value) => (value === 1 ? "1, all" : format(value)) }),
    minP: slider({ label: "Min-p", max: 0.5, step: 0.05, show: (value) => (value === 0 ? "0, all" : format(value)) }),
  });
  const greedy = checkbox({ label: "greedy: always the likeliest", onchange: (on) => set({ temperature: on ? 0 : 1 }) });
  function show(settings) {
    bound.show(settings);
    greedy.value = settings.temperature === 0;
  }
  const [temperature, ...cuts] = bound.nodes;
  return { node: html("div", { class: "lf-controls" }, temperature, greedy.node, cuts), kinds: bound.kinds, show };
}

/** A row of the table of letters: the letter, which can be pressed, two numbers, and a bar. */
function letterRow(write) {
  const part = { token: null, others: html("span"), cells: [html("td"), html("td")], own: html("span", { class: "lf-own" }),
    pick: html("button", { type: "button", class: "lf-take", onclick: () => write(part.token) }),
    stay: bar(), out: html("span", { class: "lf-bar lf-removed" }) };
  part.row = html("tr", {}, rowHead(part.pick, part.others), part.cells,
    html("td", { class: "lf-bar-cell" }, html("div", { class: "lf-lane" }, part.stay, part.out, part.own)));
  return part;
}

/** The likeliest letters with their bars; `show` fills the table. Whichever is pressed is handed to `write`. */
function letterTable({ tokens, unit }, write) {
  const rows = times(Math.min(SHOWN, tokens.length) + 1, () => letterRow(write));
  const scale = html("th", { scope: "col", style: "text-align: left; white-space: normal" });
  const heads = [unit, "model", "now"].map((name) => columnHead(name));
  const node = html("div", { class: "lf-table" }, html("table", {}, html("thead", {}, html("tr", {}, heads, scale)),
    html("tbody", {}, rows.map(({ row }) => row))));

  function show({ model, tempered, kept, probabilities }, order) {
    const groups = [...order.slice(0, rows.length - 1).map((token) => [token]), order.slice(rows.length - 1)];
    const sums = (numbers, only = () => true) => groups.map((group) => total(group.filter(only).map((token) => numbers[token])));
    const [owns, stays, goes] = [sums(model), sums(probabilities), sums(tempered, (token) => !kept[token])];
    const full = WIDEST.find((limit) => limit >= Math.max(...owns, ...stays.map((value, i) => value + goes[i]))) ?? 1;
    scale.textContent = `a full bar is ${format(full)}`;
    groups.forEach((group, i) => {
      const { pick, others, cells, stay, out, own, row } = rows[i];
      const isOne = i < rows.length - 1;
      rows[i].token = group[0];
      [row.hidden, pick.hidden] = [group.length === 0, !isOne];
      pick.textContent = isOne ? visible(tokens[group[0]]) : "";
      others.textContent = isOne ? "" : `${group.length} others`;
      cells[0].textContent = format(owns[i], 3);
      cells[1].textContent = group.some((token) => kept[token]) ? format(stays[i], 3) : "out";
      for (const [part, value] of [[stay, stays[i]], [out, goes[i]]]) {
        part.hidden = value === 0;
        part.style.width = `${Math.min(100, (100 * value) / full)}%`;
      }
      own.style.left = `${Math.min(100, (100 * owns[i]) / full)}%`;
    });
  }
  return { node, show };
}

/** The text so far: what is cut off, the prompt, and what the model wrote, the deeper coloured the less likely it was. */
function page() {
  const node = html("div", { class: "lf-page lf-wide", tabindex: 0, role: "group", "aria-label": "The text so far" });
  function show({ prompt, written }, tokens, cut, anew) {
    const letters = [...[...prompt].map((letter) => [letter]), ...written.map(({ token, probability }) => [visible(tokens[token]), probability])];
    const first = Math.max(0, letters.length - LONGEST);
    node.replaceChildren(first ? "… " : "", ...letters.slice(first).map(([letter, probability], i) => {
      const n = first + i;
      const isWritten = probability !== undefined;
      const kinds = [n < cut && "lf-cut", isWritten && "lf-written", n >= anew && "lf-anew"].filter(Boolean).join(" ");
      const span = html("span", { class: kinds, title: isWritten ? `probability ${format(probability, 3)}` : null },
        letter.replaceAll("␣", " ").replaceAll("↵", "↵\n"));
      if (isWritten) tint(span, -Math.log(probability) / DEEPEST);
      return span;
    }), html("span", { class: "lf-caret" }));
    node.scrollTop = node.scrollHeight;
  }
  return { node, show };
}

const noteFor = (unit) => `Press a ${unit} to write it yourself. Solid bars: what a ${unit} is drawn from (“now”). Hatched: what is removed. ` +
  "Thin line: the model's own probability. ␣ is a space, ↵ a line break, ◦ any sign that the model does not know.";

/** What is said of the distribution, and of the last letter written. */
function sentence({ settings: { written }, rate, running }, { kept, probabilities }, order, { tokens, unit }) {
  const number = kept.filter(Boolean).length;
  const [best, last] = [`“${visible(tokens[order[0]])}”`, written.at(-1)];
  const speed = rate === null ? "" : `, ${Math.round(rate)} a second`;
  const had = () => `“${visible(tokens[last.token])}”, had ${format(last.probability, 3)} in the model`;
  const wrote = last ? ` ${written.length} written${speed}; the last, ${had()}.` : "";
  if (running) return `Writing: ${written.length} ${unit}s${speed}.`;
  return `${number} of ${kept.length} ${unit}s ${number === 1 ? "stays" : "stay"}; ` +
    `the likeliest, ${best}, has ${format(probabilities[order[0]], 3)}.${wrote}`;
}

/** What the figure says, once it `knows` something: of the next letter, of the search, or of the caches. */
function report({ read, settings: { view } }, knows) {
  if (!read.ids.length) return "Type at least one letter: the model needs something to go on from.";
  if (!knows) return "The model reads.";
  const { letter, beam = "Stop, and the search goes on from here.", held } = knows;
  if (view !== "cache") return view === "beam" ? beam : letter;
  return `${held.held} tokens are held in ${held.bytes.length} blocks; ${held.held - held.known} of them were read anew.`;
}

/** Controls and panels, and how to show them; `hands` are what the controls do. */
function build(element, model, { caches, beam }, { set, begin, reset, write, one, toggle, again }) {
  const { controls, stage, publish, addressed } = frame(element, { label: LABEL, reset });
  const { tokens, unit } = model.tokenizer;
  const prompt = ownText({ label: "Prompt", texts: textsFor(model.tokenizer), choose: (text) => begin({ prompt: text }) });
  const [run, seed] = [button("Run", toggle), button("", again)];
  const views = [["letter", `next ${unit}`], ["beam", "beam search"], ["cache", "the cache"]];
  const view = choice({ legend: "Show", options: views, onchange: (name) => set({ view: name }) });
  const [text, sliders, table] = [page(), settingsOf(tokens.length, set), letterTable(model.tokenizer, write)];
  const letter = wide(sliders.node, table.node, note(noteFor(unit)));
  const panels = { letter, beam: beam.node, cache: caches.node };
  controls.append(...prompt.nodes);
  const buttons = [button("Write one", one), run, button("Clear", () => begin({})), seed];
  stage.append(text.node, wideNote(`The deeper a ${unit}'s colour, the less likely it was.`), html("div", { class: "lf-row lf-wide" }, buttons), wide(view.node), ...Object.values(panels));

  function show({ settings, running, isKnown, read: { ids, cut } }, shaped, order, anew) {
    prompt.value = settings.prompt;
    view.value = settings.view;
    run.textContent = running ? "Stop" : "Run";
    seed.textContent = `Another seed (now ${settings.seed})`;
    for (const [name, node] of Object.entries(panels)) node.hidden = name !== settings.view;
    for (const node of [text.node, ...Object.values(panels)]) node.classList.toggle("lf-stale", ids.length === 0);
    text.show(settings, tokens, cut, settings.view === "cache" ? anew : Infinity);
    sliders.show(settings);
    if (shaped && settings.view === "letter") table.show(shaped, order);
    if (settings.view === "beam") beam.show(settings, ids, isKnown && !running);
    if (settings.view === "cache") caches.show();
  }
  return { show, publish, addressed, kinds: { prompt: prompt.kind, view: view.kind, ...sliders.kinds, ...beam.kinds } };
}

export async function mount(element, given = null) {
  const model = await start(element, { label: LABEL, given });
  const { tokens } = model.tokenizer;
  const initial = { prompt: textsFor(model.tokenizer)[0], temperature: 1, topK: tokens.length, topP: 0.9, minP: 0, seed: 1, view: "letter", beams: 2, depth: 8 };
  let isWaiting = false;
  /** Draw, at once or, while the model writes, when the browser has time for it. */
  function changed() {
    if (!writing.running) return render();
    if (!isWaiting) requestAnimationFrame(() => { isWaiting = false; render(); });
    isWaiting = true;
  }
  const doing = (action) => (...inputs) => { action(...inputs); changed(); };
  const set = doing((change) => Object.assign(writing.settings, change));
  const caches = cacheView(model.config);
  const beam = beamView(model, { set, append: doing((added) => writing.append(added)), changed });
  const writing = new Writing(model, initial, { ...caches, changed });
  const figure = build(element, model, { caches, beam }, {
    set, begin: doing((change) => writing.begin(change)), reset: doing(() => { caches.forget(); writing.reset(); }),
    write: doing((token) => writing.write(token)), one: doing(() => writing.write()),
    again: doing(() => writing.begin({ seed: writing.settings.seed + 1 })),
    toggle: doing(() => (writing.running ? writing.stop() : writing.run())),
  });

  function render() {
    const { settings, found, read, running, rate, problem, isKnown } = writing;
    const shaped = found && writing.shaped;
    const order = found && ranked(found.logits);
    figure.show(writing, shaped, order, read.cut + (isKnown ? found.known : caches.seen(read.ids)));
    const searched = settings.view === "beam" && isKnown ? beam.result(settings) : null;
    const held = settings.view === "cache" ? caches.result() : null;
    const said = problem || report(writing, shaped && { letter: sentence(writing, shaped, order, model.tokenizer), beam: searched?.sentence, held });
    figure.publish({ ...settings, ...found, ...shaped, running, rate, cut: read.cut, read: read.ids,
      busy: !problem && (isKnown ? Boolean(searched?.isBusy) && !running : read.ids.length > 0), isKnown,
      beam: searched?.state ?? null, caches: held, shown: order?.slice(0, SHOWN) }, [said, read.note].filter(Boolean).join(" "));
  }
  render();
  await writing.started;
  const written = list(whole(0, tokens.length - 1), NAMED);
  const { topK, topP, minP, ...kinds } = figure.kinds;
  figure.addressed({ ...kinds, "top-k": setting("topK", topK), "top-p": setting("topP", topP), "min-p": setting("minP", minP), seed: whole(1, 9999),
    written: { ...written, of: (settings) => settings.written.map(({ token }) => token), into: (ids) => ({ written: ids }) } },
  { now: () => writing.settings, go: doing(({ written: ids, ...settings }) => writing.begin(settings, ids)) });
}
