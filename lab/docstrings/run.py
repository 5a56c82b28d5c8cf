"""Train language models of docstrings on byte pairs, of several sizes and on parts of the text; write their card.

The text is that of packages which are installed beside the book. The losses of all models, beside those of counting,
and what they write stand in `record.json`; the small one is stored in 8 bits.
"""

import dataclasses
import math
from functools import cache

import numpy as np

import plainformer as pf
from lab.language_models import BATCH_SIZE, LENGTH, Size, Text, counted, nats_per_character, passes, trained, written
from lab.records import BUILD, LAB, kept

KEPT = BUILD / "docstrings"
VOCAB_SIZE, SHOWN, PROMPT = 1024, 600, "Return the "
SIZES = {
    "small": Size(64, 0.0, 8000, 2e-3),
    "middle": Size(128, 0.0, 6000),
    "large": Size(256, 0.0, 5000, judged_every=1250),
    "largest": Size(384, 0.0, 4000, judged_every=1000),
}
# One in so many of the text's characters, for the middle size; on a short text more is dropped, for fewer steps.
SHARES = {100: Size(128, 0.3, 1000), 10: Size(128, 0.1, 1500, judged_every=500)}
ORDERS = {"characters": (6, 8), "byte pairs": (3, 4, 5, 6)}
STRETCH = 50_000  # characters


@cache
def text() -> Text:
    """Both parts of all docstrings, and a tokenizer learned from the first."""
    return Text.in_byte_pairs(pf.data.docstring_splits(), VOCAB_SIZE)


def share_of(whole: Text, one_in: int) -> Text:
    """A text whose first part is cut to one in so many of its characters, taken in stretches from everywhere."""
    first, step = whole.parts[0], STRETCH * one_in
    short = "".join(first[start : start + STRETCH] for start in range(0, len(first), step))
    return dataclasses.replace(whole, parts=(short, whole.parts[1]), ids=(whole.tokenizer.encode(short), whole.ids[1]))


def least(curve: list) -> float:
    """The lowest validation loss on the way."""
    return min(loss for _, loss in curve)


def by_counting(one_in: int) -> dict[str, dict[str, float]]:
    """Nats per character of n-gram models which have counted one in so many characters."""
    return kept(KEPT / f"counted_{one_in}.json", lambda: counted(share_of(text(), one_in), ORDERS))


def of_text(one_in: int, size: Size) -> dict:
    """The middle size and counting, on one in so many characters."""
    short = share_of(text(), one_in)
    _, found = trained(size, short, KEPT / f"middle_{one_in}")
    return {"characters": len(short.parts[0]), "loss": least(found["curve"])} | found


def results() -> dict:
    """Train everything, and measure what the record holds; store the small size in 8 bits."""
    whole = text()
    models = {name: trained(size, whole, KEPT / name) for name, size in SIZES.items()}
    pf.save_model(LAB / "docstrings" / "docstrings.safetensors", models["small"][0], whole.tokenizer, stored_in="int8")
    stored, _ = pf.load_model(LAB / "docstrings" / "docstrings.safetensors", pf.Decoder, tokenizer=True)
    shown = whole.parts[1][:SHOWN]
    return {
        "characters": [len(part) for part in whole.parts],
        "bytes": [len(part.encode()) for part in whole.parts],
        "tokens": [len(ids) for ids in whole.ids],
        "sizes": {name: {"loss": least(one["curve"])} | one for name, (_, one) in models.items()},
        "shares": {str(one_in): of_text(one_in, size) for one_in, size in SHARES.items()},
        "counted": {str(one_in): by_counting(one_in) for one_in in (*SHARES, 1)},
        "stored loss": round(nats_per_character(stored, whole.ids[1], len(whole.parts[1])), 4),
        "real": shown,
        "real loss": round(nats_per_character(stored, whole.tokenizer.encode(shown), len(shown)), 4),
        "written by": {name: written(model, whole.tokenizer, PROMPT, top_p=0.9) for name, (model, _) in models.items()},
    }


def bits_per_byte(loss: float, found: dict) -> float:
    """Nats per character in other units; nearly all characters of this text are one byte."""
    return loss / math.log(2) * found["characters"][1] / found["bytes"][1]


def best_count(found: dict, one_in: int) -> float:
    """The least nats per character of all that count, on one in so many characters."""
    return min(loss for losses in found["counted"][str(one_in)].values() for loss in losses.values())


def size_table(found: dict) -> str:
    """A line of the card for each size, on the whole text."""
    lines = ["| | width | parameters | steps | rate | nats per character | in training | minutes |", "|---" * 8 + "|"]
    for name, size in SIZES.items():
        one = found["sizes"][name]
        cells = [name, size.width, f"{one['parameters']:,}", f"{size.num_steps:,}", f"{size.learning_rate:g}"]
        cells += [f"{one['loss']:.3f}", f"{one['training loss']:.3f}", f"{one['minutes']:g}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def share_table(found: dict) -> str:
    """A line of the card for each part of the text: the middle size, and counting."""
    orders = [f"{kind}, {order}" for kind, each in ORDERS.items() for order in each]
    head = ["characters", "steps", "dropout", "middle size", *orders]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for one_in in (*SHARES, 1):
        size = SHARES.get(one_in, SIZES["middle"])
        one = found["shares"].get(str(one_in), found["sizes"]["middle"] | {"characters": found["characters"][0]})
        counts = [loss for losses in found["counted"][str(one_in)].values() for loss in losses.values()]
        cells = [f"{one['characters']:,}", f"{size.num_steps:,}", f"{size.dropout_rate:g}"]
        lines.append(f"| {' | '.join([*cells, *(f'{loss:.3f}' for loss in (one['loss'], *counts))])} |")
    return "\n".join(lines)


def crossings(found: dict) -> dict[str, float]:
    """At how many numbers, and for the middle size at how many characters, a transformer is level with the best count.

    The losses are drawn straight over the logarithm between the recorded ones; of the characters, between the two
    shares, since with the whole text the middle size is no farther ahead.
    """
    sizes, shares = found["sizes"].values(), {int(one_in): one for one_in, one in found["shares"].items()}
    of_size = [(one["parameters"], best_count(found, 1) - one["loss"]) for one in sizes]
    of_share = [(one["characters"], best_count(found, one_in) - one["loss"]) for one_in, one in shares.items()]
    found_at = {}
    for name, pairs in {"numbers": of_size, "characters": of_share}.items():
        places, ahead = zip(*pairs, strict=True)
        found_at[name] = float(np.exp(np.interp(0, ahead, np.log(places))))
    return found_at


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: how far sizes and shares are ahead of the best count, and what else it says of them."""
    sizes, shares, count = found["sizes"], found["shares"], best_count(found, 1)
    texts = {f"{name}.ahead": f"{count - one['loss']:.2f}" for name, one in sizes.items()}
    texts |= {f"{name}.passes": f"{passes(size, found['tokens'][0]):.1f}" for name, size in SIZES.items()}
    texts["small.behind"] = f"{sizes['small']['loss'] - count:.2f}"
    texts["largest.ahead.bits"] = f"{bits_per_byte(count - sizes['largest']['loss'], found):.1f}"
    level = crossings(found)
    texts["crossing.millions"] = f"{level['numbers'] / 1e6:.1f}"
    texts["crossing.characters"] = f"{level['characters'] / 1e6:.1f}"
    texts["middle.millions"] = f"{sizes['middle']['parameters'] / 1e6:.1f}"
    for one_in, one in shares.items():
        texts[f"share.{one_in}.ahead"] = f"{best_count(found, int(one_in)) - one['loss']:.2f}"
        texts[f"share.{one_in}.training"] = f"{one['training loss']:.2f}"
    return texts


def card(found: dict) -> str:
    """What was done, and what came out."""
    learning, held_out = found["characters"]
    best, count = (min(one["loss"] for one in found["sizes"].values()), best_count(found, 1))
    samples = "\n\n".join(f"*{name}*\n\n```text\n{text.strip()}\n```" for name, text in found["written by"].items())
    return f"""# Docstrings by byte pairs

Language models of the docstrings of JAX, Matplotlib, NumPy, SciPy and scikit-learn, of several sizes and on parts of
the text; the small size is stored in `docstrings.safetensors`, in 8 bits.

- **Data.** `plainformer.data.docstring_splits()` with the versions in `requirements.txt`: {learning:,} characters to
  learn from and {held_out:,} to judge by, whole files, no paragraph twice. Other versions have other docstrings. One
  tokenizer of {VOCAB_SIZE:,} byte pairs, learned from the first part, is in the file and serves all models.
- **Models.** Four blocks with heads of 32 columns: RMS norm, SwiGLU, rotary, no biases, tied output.
- **Training.** Batches of {BATCH_SIZE} windows of {LENGTH} tokens; AdamW, weight decay 0.1, the rate falling to a
  fiftieth along a cosine, seed 0. All settings stand in `lab/docstrings/run.py`; `make models
  ONLY=docstrings` trains them again.
- **Result.** Nats per character of the whole validation part, each token with at least {LENGTH // 2} before it, the
  lowest on the way; the mean of the last hundred batches in training; minutes on one processor, beside other work.

{size_table(found)}

  The best has {bits_per_byte(best, found):.3f} bits per byte, the best count {bits_per_byte(count, found):.3f}. Stored
  in 8 bits the small size has {found["stored loss"]:.3f} nats.
- **Parts of the text.** Stretches of {STRETCH:,} characters from everywhere; behind the comma, the order of n-gram
  models with modified Kneser–Ney smoothing:

{share_table(found)}

- **Limits.** One seed of each. The larger two are still improving when their training ends. On the shorter parts the
  dropout was set beforehand, at the middle size's rate.
- **What they write** behind `{PROMPT.strip()}`, unedited, with the first seed and top_p 0.9:

{samples}

- **Licence.** The weights are Apache-2.0, as the code; these packages have licences of the BSD and Apache kind.
"""
