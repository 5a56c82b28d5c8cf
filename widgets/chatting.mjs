// Answers of SmolLM2, a model that others have trained (chapter on chatting), and what its stream says of them after each block.
// `chatting.json` holds them; lab/figures/chatting.py writes it.
import { format, frame, html, note, picker, slider, stored, tint, visible, wide } from "./common.mjs";

/** One token of a row: the deeper the colour, the more the model is sure of it. */
function tile([token, chance], isRight) {
  const node = html("span", { class: `lf-read${isRight ? " lf-most" : ""}`, title: chance === null ? null : format(chance) },
    html("b", {}, [...token].map(visible).join("")));
  tint(node, chance ?? 0);
  return node;
}

/** In a notebook, `asked` holds texts of the reader's; each has `chances` of its tokens, too. */
export async function mount(element, given = null) {
  const { asked } = given ?? await stored("chatting.json");
  const last = asked[0].after.length - 1;
  const first = { question: 0, block: last };
  const { stage, bind, set, publish, addressed } = frame(element, { label: "what a model says after each block", start: first, draw });
  bind({
    question: picker({ label: given ? "Text" : "Question", options: asked.map(({ question }, n) => [n, question]),
      onchange: (question) => set({ question: Number(question) }) }),
    block: slider({ label: "Read after block", min: 0, max: last, show: String }),
  });
  const written = html("div", { class: "lf-letters lf-text lf-wide" });
  const said = html("div", { class: "lf-letters lf-text lf-wide" });
  stage.append(wide(note(given ? "The text, each token the deeper in colour the likelier it was to the model:" : "What the model answers:"), written),
    wide(note("What it would say at each of these places if it ended after the chosen block. " +
      `Framed: the token that ${given ? "stands there" : "it did write"}. ` +
      "The deeper the colour, the surer it is. ␣ is a space."), said));

  function draw(state) {
    const { answer, after, chances = [] } = asked[state.question];
    const row = after[state.block];
    const right = row.map(([token], n) => token === answer[n]);
    written.replaceChildren(...answer.map((token, n) => tile([token, chances[n] ?? null], false)));
    said.replaceChildren(...row.map((pair, n) => tile(pair, right[n])));
    const found = answer.map((_, n) => after.findIndex((each, block) => after.slice(block).every((later) => later[n][0] === answer[n])));
    publish({ ...state, answer, said: row.map(([token]) => token), chances: row.map(([, chance]) => chance), found },
      `After block ${state.block}, ${right.filter(Boolean).length} of ${answer.length} tokens are those of the answer.`);
  }
  set(first);
  addressed();
}
