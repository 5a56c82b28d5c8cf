// The residual stream by depth on the reader's own text (chapter on the decoder): what the book's own decoder would say if it
// stopped after 0, 1, … blocks (the logit lens), how large the stream is, and how much each block adds.
import { place as placeKind } from "./address.mjs";
import { bar, format, html, largest, mean, placeAfter, ranked, softmax, times, tint, title, wide, wideNote } from "./common.mjs";
import { rowsOf } from "./engine/arrays.mjs";
import { start } from "./engine/start.mjs";
import { readingFigure, visible } from "./texts.mjs";

const LABEL = "what the residual stream says at each depth";
const TEXTS = ["If the object is a sequence, the method returns", "The cat sat on the wall and looked at the moon.",
  "You can use the function to return a list of str"];
const START = { text: TEXTS[0], place: 10 };
const SHOWN = 5; // letters with a part of the bar of their own

/** What the stream says at each depth: the probabilities after each token, and how much those that came surprise. */
function sayings(depths, ids) {
  return { depths: depths.map(({ logits, ...sizes }) => {
    const probabilities = rowsOf(logits).map((row) => softmax(row));
    const surprises = ids.slice(1).map((came, n) => -Math.log(probabilities[n][came]));
    return { ...sizes, probabilities, surprise: surprises.length ? mean(surprises) : null };
  }) };
}

/** The letters of a text, each with what the stream says there at every depth below it; one stop of the Tab key. */
function letterColumns(depths, choose) {
  const numbers = times(depths, (depth) => html("i", {}, String(depth)));
  const heads = html("span", { class: "lf-pillar", "aria-hidden": "true" }, html("b"), numbers);
  const node = html("div", { class: "lf-lens lf-wide", role: "group", "aria-label": "Letters; arrow keys lead on" }, heads);
  const columns = [];

  function column(n) {
    const cells = times(depths, () => html("i"));
    const [letter, box] = [html("b"), html("button", { type: "button", class: "lf-pillar", onclick: () => choose(n),
      onkeydown: (event) => {
        const to = placeAfter(event.key, n, node.children.length - 1);
        if (!(to >= 0 && node.children[to + 1])) return;
        event.preventDefault();
        choose(to);
        columns[to].box.focus();
      } })];
    box.append(letter, ...cells);
    node.append(box);
    return { box, letter, cells };
  }
  function show(letters, said, ids, tokens, place) {
    while (columns.length < letters.length) columns.push(column(columns.length));
    while (columns.length > letters.length) columns.pop().box.remove();
    letters.forEach((letter, n) => {
      const { box, letter: head, cells } = columns[n];
      head.textContent = letter;
      box.tabIndex = n === place ? 0 : -1;
      box.setAttribute("aria-pressed", n === place);
      const guesses = said.map(({ probabilities }) => largest(probabilities[n]));
      box.setAttribute("aria-label", `${letter}: the depths say ${guesses.map((guess) => visible(tokens[guess])).join(", ")}`);
      guesses.forEach((guess, depth) => {
        cells[depth].textContent = visible(tokens[guess]);
        cells[depth].className = guess === ids[n + 1] ? "lf-comes" : "";
        tint(cells[depth], said[depth].probabilities[n][guess]);
      });
    });
  }
  return { node, show };
}

/** A bar of which each letter has a part as wide as it is likely; below it, how large the stream is. */
function depthRow(depth) {
  const parts = times(SHOWN, () => html("span"));
  const [size, normed] = ["stream", "norm"].map((kind) => bar(`var(--lf-${kind})`));
  const words = html("p");
  const dot = (kind) => html("span", { class: "lf-dot", style: `color: var(--lf-${kind})` });
  const name = depth === 0 ? "the table" : `block ${depth}`;
  const head = title();
  const node = html("div", { class: "lf-depth" }, head, html("div", { class: "lf-tops" }, parts), 
    html("div", { class: "lf-sizes" }, size, normed), words);

  function show({ probabilities, size: sizes, normed: norms, added, cosine, surprise }, place, came, tokens, full) {
    const row = probabilities[place];
    const likeliest = ranked(row).slice(0, SHOWN);
    parts.forEach((part, i) => {
      const token = likeliest[i];
      part.hidden = token === undefined;
      if (part.hidden) return;
      const letter = visible(tokens[token]);
      part.textContent = row[token] > 0.16 ? `${letter} ${format(row[token])}` : row[token] > 0.035 ? letter : "";
      part.title = `${letter} ${format(row[token], 3)}`;
      part.style.width = `${100 * row[token]}%`;
      part.classList.toggle("lf-comes", token === came);
    });
    size.style.width = `${(100 * sizes[place]) / full}%`;
    normed.style.width = `${(100 * norms[place]) / full}%`;
    words.replaceChildren(dot("stream"), `size ${format(sizes[place])} `, dot("norm"), `after the norm ${format(norms[place])}`,
      depth ? `; the block added ${format(added[place])}; cosine with the row above ${format(cosine[place])}` : " (root mean squares)");
    head.textContent = `${depth}, after ${name}${surprise === null ? "" : `: ${format(surprise)} nats`}`;
    const gained = depth ? { added: added[place], cosine: cosine[place] } : {};
    return { likeliest, shares: likeliest.map((token) => row[token]), size: sizes[place], normed: norms[place], ...gained, surprise };
  }
  return { node, show };
}

export async function mount(element, given = null) {
  const model = await start(element, { label: LABEL, given });
  const { tokens } = model.tokenizer;
  const depth = model.config.stack.num_layers + 1;
  const { stage, publish, set, reading, begin } = readingFigure(element, model,
    { label: LABEL, texts: TEXTS, start: START, method: "lens", digest: sayings, draw });
  const columns = letterColumns(depth, (place) => set({ place }));
  const rows = times(depth, depthRow);
  const head = html("p", { class: "lf-title lf-wide" });
  stage.append(wideNote("Below each letter: the one that the stream would name next, if the model ended after 0, 1, … blocks; " +
    "the deeper the colour, the surer. Underlined: the one that does come."), columns.node, head,
  wideNote("In each bar, the likeliest letters have parts as wide as they are likely; nats: the mean surprise at all letters of the text."),
  wide(rows.map(({ node }) => node)));

  function draw(now) {
    const { text: { ids, tokens: letters, note }, known, problem } = reading;
    if (!known) return publish(now, problem || (ids.length ? "The model reads." : "Type at least one letter."));
    const place = Math.min(now.place, ids.length - 1);
    const came = ids[place + 1];
    const full = Math.max(...known.depths.flatMap(({ size, normed }) => [...size, ...normed]));
    columns.show(letters, known.depths, ids, tokens, place);
    head.textContent = `After “${letters.slice(Math.max(0, place - 15), place + 1).join("")}”`;
    const depths = rows.map((row, i) => row.show(known.depths[i], place, came, tokens, full));
    const spoken = depths.map(({ likeliest: [best], shares: [share] }, i) => `${i} “${visible(tokens[best])}” ${format(share)}`).join(", ");
    const next = came === undefined ? "" : `“${visible(tokens[came])}” comes.`;
    return publish({ ...now, place, came: came ?? null, depths }, [`Depths say: ${spoken}.`, next, note].filter(Boolean).join(" "));
  }
  await begin(placeKind(model.config.context_len));
}
