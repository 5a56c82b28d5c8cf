"""Train language models of Tiny Shakespeare on byte pairs, of several sizes; write the best of them with its card.

The text is downloaded once by `pf.data.tiny_shakespeare()`. The losses of all sizes, beside those of counting, and what
the best model writes stand in `record.json`.
"""

from functools import cache

import plainformer as pf
from lab.language_models import BATCH_SIZE, LENGTH, Size, Text, counted, nats_per_character, trained, written
from lab.records import BUILD, LAB

KEPT = BUILD / "shakespeare"
VOCAB_SIZE, SHOWN, PROMPT = 512, 600, "ROMEO:\n"
ORDERS = {"characters": (2, 3, 5, 7, 8, 10), "byte pairs": (2, 3, 4, 5, 6)}
SIZES = {"small": Size(64, 0.0, 4000, 2e-3), "middle": Size(128, 0.1, 4000), "large": Size(256, 0.3, 3000)}
LARGER = {"0.4": Size(384, 0.4, 3000), "0.5": Size(384, 0.5, 3000)}  # tried with two rates of dropout


@cache
def text() -> Text:
    """Both parts, and a tokenizer learned from the first."""
    return Text.in_byte_pairs(pf.data.tiny_shakespeare(), VOCAB_SIZE)


def results() -> dict:
    """Train all sizes, and measure what the record holds; store the largest in 8 bits."""
    plays = text()
    found = {name: trained(size, plays, KEPT / name) for name, size in SIZES.items()}
    models = {name: model for name, (model, _) in found.items()}
    pf.save_model(LAB / "shakespeare" / "shakespeare.safetensors", models["large"], plays.tokenizer, stored_in="int8")
    stored, _ = pf.load_model(LAB / "shakespeare" / "shakespeare.safetensors", pf.Decoder, tokenizer=True)
    shown = plays.parts[1][:SHOWN]
    return {
        "tokens": [len(ids) for ids in plays.ids],
        "sizes": {name: one for name, (_, one) in found.items()},
        "larger": {rate: trained(size, plays, KEPT / f"larger_{rate}")[1] for rate, size in LARGER.items()},
        "counted": counted(plays, ORDERS),
        "stored loss": round(nats_per_character(stored, plays.ids[1], len(plays.parts[1])), 4),
        "real": shown,
        "real loss": round(nats_per_character(stored, plays.tokenizer.encode(shown), len(shown)), 4),
        "written": {
            "unchanged": written(stored, plays.tokenizer, PROMPT),
            "top_p 0.9": written(stored, plays.tokenizer, PROMPT, top_p=0.9),
            "greedy": written(stored, plays.tokenizer, PROMPT, temperature=0.0),
        },
        "written by": {name: written(models[name], plays.tokenizer, PROMPT, top_p=0.9) for name in ("small", "middle")},
    }


def table(found: dict) -> str:
    """A line of the card for each size."""
    head = ["", "width", "parameters", "dropout", "steps", "rate", "nats per character", "in training", "minutes"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, one in found["sizes"].items():
        size, (step, loss) = SIZES[name], one["curve"][-1]
        cells = [size.width, f"{one['parameters']:,}", size.dropout_rate, f"{step:,}", f"{size.learning_rate:g}"]
        cells += [f"{loss:.3f}", f"{one['training loss']:.3f}", f"{one['minutes']:g}"]
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def quoted(text: str) -> str:
    """A text as it is, in a block of its own."""
    return f"```text\n{text.strip()}\n```"


def by_counting(found: dict) -> str:
    """Nats per character of n-gram models."""
    of_kinds = [
        f"of {kind} " + ", ".join(f"{loss:.3f} (order {order})" for order, loss in losses.items())
        for kind, losses in found["counted"].items()
    ]
    return "; ".join(of_kinds)


def facts(found: dict) -> dict[str, str]:
    """What chapters say: how far each size is ahead of the best count, the loss of each larger model, and millions."""
    count = min(loss for losses in found["counted"].values() for loss in losses.values())
    larger = {f"larger.{rate}": one for rate, one in found["larger"].items()}
    texts = {f"{name}.ahead": f"{count - one['curve'][-1][1]:.2f}" for name, one in found["sizes"].items()}
    texts |= {f"{name}.loss": f"{one['curve'][-1][1]:.2f}" for name, one in larger.items()}
    texts |= {f"{name}.millions": f"{one['parameters'] / 1e6:.1f}" for name, one in (found["sizes"] | larger).items()}
    return texts


def card(found: dict) -> str:
    """What was done, and what came out."""
    samples = "\n\n".join(f"*{name}*\n\n{quoted(text)}" for name, text in found["written"].items())
    smaller = "\n\n".join(f"*{name}, top_p 0.9*\n\n{quoted(text)}" for name, text in found["written by"].items())
    larger = found["larger"]
    ends = {rate: one["curve"][-1][1] for rate, one in larger.items()}
    return f"""# Shakespeare by byte pairs

Language models of Tiny Shakespeare, of several sizes; the largest is stored in `shakespeare.safetensors`, in 8 bits.

- **Data.** `plainformer.data.tiny_shakespeare()`: 1,003,854 characters to learn from, the last 111,540 to judge by. One
  tokenizer of {VOCAB_SIZE} byte pairs, learned from the first part, is in the file.
- **Models.** Four blocks with heads of 32 columns: RMS norm, SwiGLU, rotary, no biases, tied output.
- **Training.** Batches of {BATCH_SIZE} windows of {LENGTH} tokens, some 250 characters; AdamW, weight decay 0.1, the
  rate falling to a fiftieth along a cosine, seed 0. All settings stand in `lab/shakespeare/run.py`; `make
  models ONLY=shakespeare` trains them again.
- **Result.** Nats per character of the whole validation part, each token with at least {LENGTH // 2} before it; the
  mean of the last hundred batches in training, dropout at work; minutes on one or two processors,
  beside other work.

{table(found)}

  Stored in 8 bits the largest has {found["stored loss"]:.3f}. n-gram models with modified Kneser–Ney smoothing:
  {by_counting(found)}.
- **Knobs turned.** With a dropout of 0.2 and 5,000 steps planned, the large one had 1.460 after 2,000 steps and 1.474
  after 3,000. A model of width 384, {larger["0.4"]["parameters"]:,} parameters, has {ends["0.4"]:.3f} after 3,000 steps
  with a dropout of 0.4 and {ends["0.5"]:.3f} with 0.5, on a GPU in TF32. Judged by windows side by side, as
  {{ref}}`sec-real-text` does elsewhere, the losses are 0.01 to 0.02 higher.
- **Published.** nanoGPT's recipe, 10.7 million parameters on single characters, is reported with 1.47 on random windows
  of the same part.
- **What the largest writes** behind `ROMEO:`, unedited, with the first seed:

{samples}

- **What the smaller ones write:**

{smaller}

- **Limits.** One text, one seed of each size. It imitates the manner of these plays and says nothing.
- **Licence.** The weights are Apache-2.0, as the code; Shakespeare is in the public domain.
"""
