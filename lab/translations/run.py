"""Let the encoder–decoders of dates translate all that was held out; write down where they are wrong, with a card.

Nothing is trained. `record.json` holds every text that differs from what is expected, by its place in its part.
"""

from collections.abc import Sequence

import numpy as np

import plainformer as pf
from lab.records import percent
from lab.seq2seq.run import NAMES, Pair, translated

NEEDS = ("seq2seq", "numbers")


def wrong(model, vocabulary: pf.Vocabulary, pairs: Sequence[Pair]) -> dict[str, str]:
    """The translations that are not as expected, by the place of their pair."""
    texts = translated(model, vocabulary, pairs)
    return {str(n): text for n, (text, pair) in enumerate(zip(texts, pairs, strict=True)) if text != pair.target}


def results() -> dict:
    """The mistakes of the three models of dates, and of the model of numbers."""
    dates, numbers = pf.data.date_splits()._asdict(), pf.data.number_splits()._asdict()
    found: dict[str, dict] = {}
    for names, parts in ((NAMES, dates), (["numbers"], numbers)):
        for name in names:
            model, vocabulary = pf.load_pretrained(name)
            found[name] = {part: wrong(model, vocabulary, pairs) for part, pairs in parts.items() if part != "training"}
            print(name, {part: len(each) for part, each in found[name].items()}, flush=True)
    return {"sizes": {part: len(pairs) for part, pairs in (dates | numbers).items() if part != "training"}} | found


def table(found: dict) -> str:
    """A line of the card for each model and part."""
    lines = ["| model | part | texts | exact match |", "|---|---|---|---|"]
    for name in (*NAMES, "numbers"):
        for part, mistakes in found[name].items():
            size = found["sizes"][part]
            lines.append(f"| `{name}` | {part.replace('_', ' ')} | {size:,} | {1 - len(mistakes) / size:.2%} |")
    return "\n".join(lines)


def facts(found: dict) -> dict[str, str]:
    """What chapters say of dates: per cent right, of each seed and in the mean."""
    texts: dict[str, str] = {}
    for part in ("held_out_years", "held_out_language"):
        wrong = [len(found[name][part]) / found["sizes"][part] for name in NAMES]
        texts[f"{part}.seeds"] = ", ".join(percent(1 - each, 1) for each in wrong)
        texts[f"{part}.mean"] = percent(1 - np.mean(wrong), 1)
    return texts


def card(found: dict) -> str:
    """What was done, and what came out."""
    mean = 1 - np.mean([len(found[name]["held_out_years"]) / found["sizes"]["held_out_years"] for name in NAMES])
    return f"""# What the encoder–decoders of dates write

All translations, by greedy search, of what was held out, by the models that are stored. Nothing was trained. Those that
are wrong stand in `record.json`, each by the place of its pair in its part; all others are as expected.

- **Data.** `plainformer.data.date_splits()` and `plainformer.data.number_splits()`;
  see `lab/seq2seq` and `lab/numbers`.
- **Models.** `seq2seq`, `seq2seq_1`, `seq2seq_2`, of seeds 0 to 2, and `numbers`, of seed 0, each with its vocabulary.
- **Result.** On held-out years {mean:.2%} in the mean of the three:

{table(found)}

- **Limits.** Other versions of Babel and num2words have other texts, and then other places. All settings stand in
  `lab/translations/run.py`; `make models` translates anew.
- **Licence.** The texts that the models wrote are under Apache-2.0, as the code.
"""
