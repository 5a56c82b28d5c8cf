"""Let stored models write in today's ways, within patterns, and several times; a narrow one is trained to compare.

No weights are kept: `record.json` holds what was counted. What was written is judged by the little world, which
knows whether a sentence is possible, and by the calendar.
"""

import datetime
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab import growing
from lab.growing import BATCH_SIZE, LENGTH, VOCABULARY, Row
from lab.records import BUILD, kept, percent
from plainformer.generation import best_of, majority, penalise_counts, penalise_repetition, read_answers

NEEDS = ("staircase", "date_decoder", "seq2seq", "shakespeare", "things_decoder")
BUILD = BUILD / "writing_today"
KEYS = (0, 1, 2)
NUM_STORIES, BEGINNING, WRITTEN = 100, 30, 96  # stories continued, words that they begin with at most, words written
NUM_ASKED, LATE, LONGEST = 100, 110, 14  # stories of which one sentence is written, after how many words, and its words
NARROW = Row(d_model=32, num_heads=4, num_layers=4, scheme="alibi", learning_rate=0.003, num_steps=600)
NUM_DATES, NUM_QUESTIONS, NUMBERS = 200, 80, (1, 2, 4, 8)
BEAMS = (8,)
DATE = (
    r"(19|20)\d\d-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))"
    r"|(19(0[48]|[2468][048]|[13579][26])|20([02468][048]|[13579][26]))-02-29"
)


def repetition(logits, prompt, written, penalty):
    """The logits, less of what stands in the prompt or was written."""
    return penalise_repetition(logits, jnp.concatenate([prompt, written]), penalty)


def counts(logits, prompt, written, **penalties):
    """The logits, less of what was written."""
    return penalise_counts(logits, written, **penalties)


def settings() -> dict[str, dict[str, dict]]:
    """What is tried of each way of writing."""
    return {
        "greedy": {"": {"temperature": 0}},
        "temperature": {f"{T:g}": {"temperature": T} for T in (0.3, 0.5, 0.7, 1.0, 1.5)},
        "top-k": {f"{k}": {"top_k": k} for k in (3, 8)},
        "top-p": {f"{p:g}": {"top_p": p} for p in (0.5, 0.8, 0.9, 0.95)},
        "min-p": {f"{p:g}": {"min_p": p} for p in (0.05, 0.1, 0.2, 0.4)},
        "top-p, T = 1.5": {f"{p:g}": {"top_p": p, "temperature": 1.5} for p in (0.5, 0.8, 0.9)},
        "min-p, T = 1.5": {f"{p:g}": {"min_p": p, "temperature": 1.5} for p in (0.1, 0.2, 0.4)},
        "repetition": {f"{r:g}": {"adjust": partial(repetition, penalty=r)} for r in (1.02, 1.1)},
        "presence": {f"{a:g}": {"adjust": partial(counts, presence=a)} for a in (0.2,)},
        "frequency": {f"{a:g}": {"adjust": partial(counts, frequency=a)} for a in (0.05, 0.2)},
        "greedy, repetition": {
            f"{r:g}": {"adjust": partial(repetition, penalty=r), "temperature": 0} for r in (1.02, 1.1)
        },
        "greedy, frequency": {
            f"{a:g}": {"adjust": partial(counts, frequency=a), "temperature": 0} for a in (0.05, 0.2)
        },
    }


IN_NARROW = ("greedy", "temperature", "top-p", "min-p", "greedy, repetition")


# --- stories


@cache
def narrow():
    """A model of half the width that was trained for 600 steps."""
    told = growing.encoded(pf.data.stories(3000, LENGTH + 1, seed=7))

    def batch_at(step):
        drawn = told[np.random.default_rng([7, step]).integers(len(told), size=BATCH_SIZE)]
        return pf.data.Windows(jnp.asarray(drawn[:, :-1]), jnp.asarray(drawn[:, 1:]))

    model, training = growing.make(NARROW, 7), growing.training_of(NARROW, 7)
    loss = pf.training.next_token_loss
    trained, _ = pf.fit(model, loss, batch_at, training, directory=BUILD / "narrow", progress=False)
    return trained


@cache
def beginnings(number: int = NUM_STORIES, words: int = BEGINNING) -> tuple[list[str], list[str]]:
    """Beginnings of stories that nobody learned from, up to a full stop, and the stories."""
    stories = pf.data.stories(number, LENGTH + 1, seed=2000)
    cut = [" ".join(story.split()[:words]) for story in stories]
    return [text[: text.rindex(".") + 1] for text in cut], stories


def judged(prompts: list[str], stories: list[str]) -> dict[str, float]:
    """Of the whole sentences behind the beginnings: the share that is possible, that stood in the story before, and the
    number of different ones as a share of all."""
    possible, again, written = [], [], []
    for prompt, story in zip(prompts, stories, strict=True):
        said = pf.data.possible_sentences(story)
        known = len(pf.data.possible_sentences(prompt))
        whole = [(text, fits) for text, fits in said[known:] if text.endswith(".")]
        for place, (text, fits) in enumerate(whole):
            possible.append(fits)
            again.append(text in [each for each, _ in said[: known + place]])
            written.append(text)
    found = {"possible": possible, "again": again}
    return {name: round(float(np.mean(each)), 4) for name, each in found.items()} | {
        "different": round(len(set(written)) / len(written), 4),
        "sentences": len(written),
    }


def continued(model, choice: dict[str, Any]) -> list[dict]:
    """What is counted of the stories that a model writes, for each random key."""
    prompts, _ = beginnings()
    found = []
    for key in KEYS[:1] if choice.get("temperature") == 0 else KEYS:
        options: dict[str, Any] = {"key": jax.random.key(key), "tokenizer": VOCABULARY} | choice
        texts = pf.generate(model, prompts, WRITTEN, **options)
        found.append(judged(prompts, [f"{prompt} {text.text}" for prompt, text in zip(prompts, texts, strict=True)]))
    return found


def at_all_settings(model, choices: dict[str, dict]) -> dict[str, list[dict]]:
    """What is counted of one way of writing at each of its settings."""
    return {setting: continued(model, choice) for setting, choice in choices.items()}


def ways() -> dict:
    """What is counted of each way of writing at each setting, for both models, and of the stories as they are told."""
    models = {"stored": pf.load_pretrained("stories")[0], "narrow": narrow()}
    found: dict = {"told": judged(*beginnings())} | {name: {} for name in models}
    for name, model in models.items():
        for way, choices in settings().items():
            if name == "stored" or way in IN_NARROW:
                file = BUILD / f"ways-{name}-{way}.json"
                found[name][way] = kept(file, partial(at_all_settings, model, choices))
    return found


def next_sentences() -> dict:
    """Of the sentences that are chosen among n: the share that is possible, and their mean length in words."""
    return {"stored": sentences_of(pf.load_pretrained("stories")[0]), "narrow": sentences_of(narrow())}


def sentences_of(model) -> dict:
    """The same for one model."""
    prompts, _ = beginnings(NUM_ASKED, LATE)
    options: dict[str, Any] = {"tokenizer": VOCABULARY, "stop_tokens": VOCABULARY.encode(".")}
    found: dict = {}

    def note(way: str, number: int, chosen: list):
        texts = [each.text for each in chosen]
        fits = [is_possible(prompt, text) for prompt, text in zip(prompts, texts, strict=True)]
        words = [len(text.split()) for text in texts]
        found.setdefault(way, {}).setdefault(str(number), []).append(
            [round(float(np.mean(fits)), 4), round(float(np.mean(words)), 3)]
        )

    for key in KEYS:
        drawn = pf.generate(model, prompts * NUMBERS[-1], LONGEST, key=jax.random.key(key), **options)
        for number in NUMBERS:
            samples = [drawn[place :: len(prompts)][:number] for place in range(len(prompts))]
            for per in ("text", "token", "character"):
                note(f"per {per}", number, [best_of(each, per=per) for each in samples])
            note("majority", number, [majority(each) for each in samples])
            note("checker", number, list(map(first_possible, prompts, samples)))
    note("greedy", 1, pf.generate(model, prompts, LONGEST, temperature=0, **options))
    for width in BEAMS:
        beams = pf.beam_search(model, prompts, LONGEST, beam_width=width, **options)
        note("beam", width, [beam[0] for beam in beams])
        sums = pf.beam_search(model, prompts, LONGEST, beam_width=width, length_power=0, **options)
        note("beam, sum", width, [beam[0] for beam in sums])
    return found


@cache
def is_possible(beginning: str, text: str) -> bool:
    """Whether a sentence, without its full stop, is possible behind a beginning."""
    return bool(text) and pf.data.possible_sentences(f"{beginning} {text} .")[-1][1]


def first_possible(beginning: str, samples):
    """The first sample that the little world allows, or else the first."""
    return next((sample for sample in samples if is_possible(beginning, sample.text)), samples[0])


# --- dates


@cache
def date_writers() -> dict:
    """What writes dates for some pairs: a function of the pairs and of options, for each model and kind of options."""
    decoder, vocabulary = pf.load_pretrained("date_decoder")
    model, letters = pf.load_pretrained("seq2seq")
    answer, stop = vocabulary.special["<answer>"], vocabulary.special["<stop>"]

    def decode(pairs, beam_width=None, **options):
        prompts = [[*vocabulary.encode(pair.source), answer] for pair in pairs]
        options |= {"stop_tokens": [stop], "tokenizer": vocabulary}
        if beam_width is None:
            return pf.generate(decoder, prompts, 11, **options)
        return [beam[0] for beam in pf.beam_search(decoder, prompts, 11, beam_width=beam_width, **options)]

    def translate(pairs, **options):
        sources = [pair.source for pair in pairs]
        return pf.translate(model, sources, 11, tokenizer=letters, batch_size=NUM_DATES, **options)

    return {
        "decoder": (decode, pf.generation.allowed_texts(DATE, vocabulary, stop)),
        "encoder and decoder": (translate, pf.generation.allowed_texts(DATE, letters, model.config.stop_token)),
    }


@cache
def held_out() -> dict:
    """Dates of years, and in languages, that nobody learned from."""
    splits = pf.data.date_splits(num_training=1000, num_held_out=NUM_DATES)
    return {"years": splits.held_out_years, "languages": splits.held_out_language}


def is_date(text: str) -> bool:
    """Whether the calendar has such a day."""
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def shares_of(texts, pairs) -> list[float]:
    """The share of texts that are dates, and of those that are the right one."""
    found = (
        [is_date(text.text) for text in texts],
        [text.text == p.target for text, p in zip(texts, pairs, strict=True)],
    )
    return [round(float(np.mean(each)), 4) for each in found]


def within_pattern() -> dict:
    """Dates, free and within the pattern: the share that is a date, and the share that is right, for each key."""
    found: dict = {}
    for model, (write, dates) in date_writers().items():
        for part, pairs in held_out().items():
            for temperature in (0.0, 1.0, 1.5):
                for name, adjust in {"free": None, "within the pattern": dates}.items():
                    keys = [None] if temperature == 0 else map(jax.random.key, KEYS)
                    options = {"temperature": temperature, "adjust": adjust}
                    rows = [shares_of(write(pairs, key=key, **options), pairs) for key in keys]
                    found.setdefault(model, {}).setdefault(part, {}).setdefault(f"{temperature:g}", {})[name] = rows
    return found


def right_dates() -> dict:
    """The share of right dates when one of n samples is chosen, for each key; greedy search and beams beside it."""
    found: dict = {}
    for model, (write, _) in date_writers().items():
        for part, pairs in held_out().items():
            here = found.setdefault(model, {}).setdefault(part, {})
            here["greedy"] = shares_of(write(pairs, temperature=0), pairs)[1]
            here["beam"] = {str(width): shares_of(write(pairs, beam_width=width), pairs)[1] for width in BEAMS}
            for key in KEYS:
                drawn = write(pairs * NUMBERS[-1], temperature=1.0, key=jax.random.key(key))
                for number in NUMBERS:
                    samples = [drawn[place :: len(pairs)][:number] for place in range(len(pairs))]
                    for name, choose in {"likeliest": best_of, "majority": majority}.items():
                        share = shares_of(list(map(choose, samples)), pairs)[1]
                        here.setdefault(name, {}).setdefault(str(number), []).append(share)
    return found


# --- given answers


def plays_questions(seed: int):
    """Beginnings of held-out plays, with what follows and three pieces from elsewhere, of 4 to 16 tokens each."""
    _, byte_pairs = pf.load_pretrained("shakespeare")
    ids, rng = byte_pairs.encode(pf.data.tiny_shakespeare()[1]), np.random.default_rng(seed)
    for _ in range(NUM_QUESTIONS):
        starts, lengths = rng.integers(24, len(ids) - 16, size=4), rng.integers(4, 17, size=4)
        begin = ids[starts[0] - 24 : starts[0]]
        yield begin, [ids[start : start + length] for start, length in zip(starts, lengths, strict=True)]


def things_questions(seed: int):
    """Some names of a thing held out, with one more of its names and three names of other things."""
    _, vocabulary = pf.load_pretrained("things_decoder")
    lists, rng = (
        [names for names in pf.data.thing_splits().test.values() if len(names) > 3],
        np.random.default_rng(seed),
    )
    for _ in range(NUM_QUESTIONS):
        first, *others = rng.choice(len(lists), size=4, replace=False)
        *known, right = (lists[first][place] for place in rng.permutation(len(lists[first]))[:3])
        wrong = [lists[other][rng.integers(len(lists[other]))] for other in others]
        answers = [vocabulary.encode(name)[:24] for name in (right, *wrong)]
        yield vocabulary.encode(", ".join(known) + ", ")[-40:], answers


def chosen_answers() -> dict:
    """Of each normalisation: the share of right choices, and how long the choices are beside the right ones."""
    found: dict = {}
    for name, questions in {"shakespeare": plays_questions, "things_decoder": things_questions}.items():
        model, tokenizer = pf.load_pretrained(name)
        for seed in KEYS:
            read = [asked(model, tokenizer, *question) for question in questions(seed)]
            for per in ("text", "token", "character"):
                chosen = [best_of(answers, per=per) for answers in read]
                right = np.mean([one is answers[0] for one, answers in zip(chosen, read, strict=True)])
                length = np.mean([len(one.text or "") for one in chosen])
                row = [round(float(right), 4), round(float(length), 2)]
                found.setdefault(name, {}).setdefault(per, []).append(row)
            length = np.mean([len(answers[0].text) for answers in read])
            found[name].setdefault("right", []).append(round(float(length), 2))
    return found


def asked(model, tokenizer, begin, answers):
    """The answers as the model reads them, with their texts."""
    read = read_answers(model, begin, answers)
    return [each._replace(text=tokenizer.decode(each.tokens)) for each in read]


# --- the record


PARTS = {
    "ways": ways,
    "sentences": next_sentences,
    "pattern": within_pattern,
    "dates": right_dates,
    "choice": chosen_answers,
}


def results() -> dict:
    """All that was counted; each part is kept under `build`, so that what was stopped goes on."""
    return {name: kept(BUILD / f"{name}.json", find) for name, find in PARTS.items()}


def means(rows: list[dict]) -> dict[str, float]:
    """The mean of each number over the random keys."""
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def best_settings(recorded: dict, model: str = "stored") -> dict[str, str]:
    """Of each way of writing the setting with the largest share of possible sentences, among those whose texts hold at
    least nine tenths as many different sentences as the told stories; where there is none, that with the most."""
    least, found = 0.9 * recorded["ways"]["told"]["different"], {}
    for way, choices in recorded["ways"][model].items():
        each = {setting: means(rows) for setting, rows in choices.items()}
        rich = {setting: row for setting, row in each.items() if row["different"] >= least}
        rank = "possible" if rich else "different"
        found[way] = max(rich or each, key=lambda setting: (rich or each)[setting][rank])
    return found


def table(recorded: dict, model: str) -> str:
    """A line of the card for each way of writing at its best setting."""
    told = recorded["ways"]["told"]
    lines = ["| way | best setting | possible | said before | different |", "|---|---|---|---|---|"]
    lines.append(f"| told | | {100 * told['possible']:.1f} % | {100 * told['again']:.1f} % | {told['different']:.4f} |")
    for way, setting in best_settings(recorded, model).items():
        rows = recorded["ways"][model][way][setting]
        cells = [spread([100 * row[name] for row in rows], " %") for name in ("possible", "again")]
        different = np.mean([row["different"] for row in rows])
        lines.append(f"| {way} | {setting} | {' | '.join(cells)} | {different:.4f} |")
    return "\n".join(lines)


def all_settings(recorded: dict, model: str) -> str:
    """Every setting that was tried: the share that is possible, said before, different."""
    lines = ["| way | setting: possible, said before, different |", "|---|---|"]
    for way, choices in recorded["ways"][model].items():
        cells = []
        for setting, rows in choices.items():
            row = means(rows)
            shares = f"{100 * row['possible']:.1f} %, {100 * row['again']:.1f} %, {row['different']:.4f}"
            cells.append(f"{setting}: {shares}" if setting else shares)
        lines.append(f"| {way} | {'; '.join(cells)} |")
    return "\n".join(lines)


def spread(numbers: list[float], unit: str = "") -> str:
    """A mean with its standard deviation over the keys, if there are several."""
    after = f" ± {np.std(numbers, ddof=1):.1f}" if len(numbers) > 1 else ""
    return f"{np.mean(numbers):.1f}{after}{unit}"


def by_number(rows: dict[str, dict], cell) -> str:
    """A line of the card for each way of choosing, a column for each number of samples."""
    lines = [f"| | {' | '.join(map(str, NUMBERS))} |", "|---" * (1 + len(NUMBERS)) + "|"]
    for name, row in rows.items():
        cells = [cell(row[str(number)]) if str(number) in row else "" for number in NUMBERS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def sentences_table(found: dict) -> str:
    """Possible sentences among n samples, and their length."""

    def cell(rows):
        return f"{spread([100 * share for share, _ in rows], ' %')}, {np.mean([words for _, words in rows]):.2f}"

    return by_number(found, cell)


def dates_table(found: dict) -> str:
    """Right dates among n samples."""
    rows = {name: found[name] for name in ("likeliest", "majority")}
    rows |= {"beam": {width: [share] for width, share in found["beam"].items()}, "greedy": {"1": [found["greedy"]]}}
    return by_number(rows, lambda shares: spread([100 * share for share in shares], " %"))


def pattern_table(found: dict) -> str:
    """Dates, free and within the pattern."""
    lines = ["| model | part | T | free: a date | right | within: a date | right |", "|---" * 7 + "|"]
    for model, parts in found.items():
        for part, temperatures in parts.items():
            for temperature, kinds in temperatures.items():
                rows = [kinds[name] for name in ("free", "within the pattern")]
                cells = [f"{100 * share:.1f} %" for row in rows for share in np.mean(row, axis=0)]
                lines.append(f"| {model} | {part} | {temperature} | {' | '.join(cells)} |")
    return "\n".join(lines)


def choice_table(found: dict) -> str:
    """Right choices among given answers, and how long they are."""
    lines = ["| model | right answers | per text | per token | per character |", "|---" * 5 + "|"]
    for model, rows in found.items():
        cells = [
            f"{spread([100 * share for share, _ in rows[per]], ' %')}, {np.mean([n for _, n in rows[per]]):.1f}"
            for per in ("text", "token", "character")
        ]
        lines.append(f"| {model} | {np.mean(rows['right']):.1f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def ways_of(found: dict) -> str:
    """What the card says of the ways of writing: the best setting of each, and all that were tried."""
    return f"""*Stored*

{table(found, "stored")}

*Narrow*

{table(found, "narrow")}

- **Knobs turned.** All settings of the stored model, then of the narrow one:

{all_settings(found, "stored")}

{all_settings(found, "narrow")}"""


def counts_of(found: dict) -> str:
    """What the card says of choosing, of patterns and of given answers."""
    sentences = "\n\n".join(f"*{name}*\n\n{sentences_table(rows)}" for name, rows in found["sentences"].items())
    dates = "\n\n".join(
        f"*{model}, held-out {part}*\n\n{dates_table(rows)}"
        for model, parts in found["dates"].items()
        for part, rows in parts.items()
    )
    return f"""- **One sentence of n.** {NUM_ASKED} stories are cut to at most {LATE} words; of n sentences drawn
  at T = 1 one is chosen. Per cent that are possible, and words of the chosen sentence. The checker takes the first
  possible one. *Beam* divides by tokens, *beam, sum* does not.

{sentences}

- **One date of n.** {NUM_DATES} dates of each kind that were held out; n answers are drawn at T = 1. Per cent right.

{dates}

- **Within a pattern.** The same dates, mean of the keys; the pattern is that of all days from 1900 to 2099 (`DATE`).

{pattern_table(found["pattern"])}

- **Given answers.** {NUM_QUESTIONS} questions for each of three seeds: four pieces of plays of 4 to 16 tokens, one of
  which follows; four names, one of which is of the same thing. Per cent right, and letters of the chosen answer.

{choice_table(found["choice"])}"""


def facts(found: dict) -> dict[str, str]:
    """What the chapter says, in per cent: of stories, of sentences and dates that are chosen, and of given answers."""
    texts = {"told.again": percent(found["ways"]["told"]["again"])}
    for model in ("stored", "narrow"):
        best = best_settings(found, model)
        for way, choices in found["ways"][model].items():
            shares = {setting: means(rows) for setting, rows in choices.items()}
            texts[f"{model}.{way}.best"] = percent(shares[best[way]]["possible"])
            for setting, row in shares.items():
                place = f"{model}.{way}.{setting}".rstrip(".")
                texts |= {f"{place}.{what}": percent(row[what]) for what in ("possible", "again")}
    half = means(found["ways"]["stored"]["temperature"]["0.5"])["possible"]
    texts["stored.temperature.0.5.possible.one_digit"] = percent(half, 1)
    for way, by_count in found["sentences"]["narrow"].items():
        for number, rows in by_count.items():
            texts[f"sentences.{way}.{number}"] = percent(float(np.mean(rows, axis=0)[0]))
    return texts | of_dates(found) | of_given_answers(found["choice"])


def of_dates(found: dict) -> dict[str, str]:
    """Per cent of right dates of the decoder, if one of n is chosen; of no dates and right ones, within a pattern."""
    chosen, texts = found["dates"]["decoder"]["years"], {}
    for way in ("likeliest", "majority"):
        for number, shares in chosen[way].items():
            texts[f"dates.{way}.{number}"] = percent(float(np.mean(shares)), 1)
            texts[f"dates.{way}.{number}.spread"] = percent(float(np.std(shares, ddof=1)), 1)
    texts["dates.greedy"] = percent(chosen["greedy"], 1)
    texts["dates.drawn"] = percent(float(np.mean(chosen["likeliest"]["1"])))
    for kind, temperatures in found["pattern"]["decoder"].items():
        for temperature, ways_ in temperatures.items():
            for way, rows in ways_.items():
                dates, right = np.mean(rows, axis=0)
                place = f"pattern.{kind}.{temperature}.{way}"
                texts |= {f"{place}.no_date": percent(1 - dates), f"{place}.right": percent(right)}
    return texts


def of_given_answers(choice: dict) -> dict[str, str]:
    """Of each normalisation: per cent of right choices, with their spread, and the letters of a choice."""
    texts: dict[str, str] = {}
    for model, rows in choice.items():
        for per in ("text", "token", "character"):
            shares, lengths = np.transpose(rows[per])
            place = f"choice.{model}.{per}"
            texts |= {place: percent(shares.mean()), f"{place}.spread": percent(float(np.std(shares, ddof=1)))}
            texts[f"{place}.letters"] = f"{lengths.mean():.1f}"
        texts[f"choice.{model}.right.letters"] = f"{np.mean(rows['right']):.1f}"
    return texts


def card(found: dict) -> str:
    """What was done, and what came out."""
    return f"""# Penalties, patterns and choices: writing today

What stored models write with min-p and penalties, within a pattern, and when the best of several is kept. No weights
are kept; all that was counted stands in `record.json`.

- **Models.** *Stored*: `stories.safetensors`, 4,000 steps at width 64. *Narrow*: width {NARROW.d_model},
  {NARROW.num_heads} heads, {NARROW.num_layers} blocks, {NARROW.num_steps} steps on stories of its own, seed 7. Dates:
  `date_decoder.safetensors` and `seq2seq.safetensors`. Given answers: `shakespeare.safetensors` and
  `things_decoder.safetensors`.
- **Ways of writing.** {NUM_STORIES} stories (seed 2000) are cut to at most {BEGINNING} words, at a full stop, and
  continued by {WRITTEN} words; whole sentences are judged. *Possible*: the little world allows the sentence where it
  stands, taking impossible ones before it as not said. *Said before*: the same sentence stood in the story.
  *Different*: different sentences, as a share of all that one key wrote. Random keys 0, 1 and 2; ± is the standard
  deviation over them. The best setting is the one with most possible sentences among those with at least nine tenths
  as many different ones as the told stories, or else the one with most different ones.

{ways_of(found)}

{counts_of(found)}

- **Limits.** Small models, one stored seed of each; three random keys. All keys share the beginnings, dates and
  sentences, so that the spread over keys leaves out what other ones would change. All settings stand in
  `lab/writing_today/run.py`; `make models` does it again.
- **Licence.** Numbers are under Apache-2.0, as the code.
"""
