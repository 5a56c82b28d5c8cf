"""Let small drafts guess for the stored decoder, and the decoder itself in fewer bytes; write how often it was asked.

No weights are kept: the counts are the result. `record.json` holds them, and what fewer bytes cost the decoder.
"""

import sys

import jax
import numpy as np

import plainformer as pf
from lab.records import ends
from plainformer.generation import speculative_generate
from plainformer.models.low_precision import in_few_bytes

NEEDS = ("decoder",)
STACK = pf.StackConfig(d_model=32, num_layers=1, num_heads=2)
STEPS, SEEDS = (120, 500, 2000), (0, 1, 2)
SEQ_LEN, BATCH_SIZE, LEARNING_RATE = 128, 16, 1e-2
START, LENGTH, NUM_TEXTS = 20, 100, 40  # letters given, letters written, texts
NUM_DRAFTED = (1, 2, 4, 8)


def trained(training: list[int], vocab_size: int, num_steps: int, seed: int) -> tuple[pf.Decoder, list[float]]:
    """A draft, and its losses at the first five steps."""
    settings = pf.TrainingConfig(num_steps=num_steps, learning_rate=LEARNING_RATE, seed=seed)
    batches = pf.data.random_windows(training, seq_len=SEQ_LEN, batch_size=BATCH_SIZE, seed=seed)
    model = pf.Decoder(pf.DecoderConfig(vocab_size, 128, stack=STACK), key=jax.random.key(seed))
    draft, metrics = pf.fit(model, pf.training.next_token_loss, batches, settings, progress=False)
    return draft, [round(each["loss"], 4) for each in metrics[:5]]


def beginnings(text: list[int]) -> list[list[int]]:
    """Pieces of the held-out text, from anywhere."""
    starts = np.random.default_rng(0).integers(len(text) - START, size=NUM_TEXTS)
    return [text[start : start + START] for start in starts]


def asked(decoder, draft, prompts: list[list[int]], numbers=NUM_DRAFTED) -> dict:
    """How often the decoder was asked for each text, by the number drafted; and its mean surprise at a letter."""
    calls: dict[str, list[int]] = {}
    surprises: list[float] = []
    for num in numbers:
        texts = speculative_generate(decoder, draft, prompts, LENGTH, num_drafted=num, key=jax.random.key(num))
        calls[str(num)] = [text.num_calls for text in texts]
        surprises.append(-float(np.mean([text.log_probs for text in texts])))
    return {"calls": calls, "surprise": round(float(np.mean(surprises)), 4)}


def results() -> dict:
    """All counts and losses."""
    decoder, vocabulary = pf.load_pretrained("decoder")
    training, validation = (vocabulary.encode(part) for part in pf.data.python_reference_splits())
    held_out, prompts = pf.data.consecutive_windows(validation, 128), beginnings(validation)
    in_bytes = {"float32": decoder} | {name: in_few_bytes(decoder, name) for name in ("bfloat16", "int8")}
    losses = {name: round(pf.training.corpus_loss(each, held_out), 6) for name, each in in_bytes.items()}
    runs = []
    for num_steps in STEPS:
        for seed in SEEDS:
            draft, first = trained(training, len(vocabulary), num_steps, seed)
            loss = round(pf.training.corpus_loss(draft, held_out), 4)
            of_draft = {"num_steps": num_steps, "seed": seed, "first": first, "loss": loss}
            runs.append(of_draft | asked(decoder, draft, prompts))
            print(num_steps, seed, loss, flush=True)
    itself = {"loss": losses["int8"]} | asked(decoder, in_bytes["int8"], prompts)
    alone = [text for n in NUM_DRAFTED for text in pf.generate(decoder, prompts, LENGTH, key=jax.random.key(n))]
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "losses": losses,
        "runs": runs,
        "itself": itself,
        "alone": round(-float(np.mean([text.log_probs for text in alone])), 4),
    }


def letters_per_call(runs: list[dict], num_drafted: int) -> float:
    """How many letters a call of the decoder gave, over all texts of some drafts."""
    return LENGTH / float(np.mean([run["calls"][str(num_drafted)] for run in runs]))


def runs_of(found: dict, num_steps: int) -> list[dict]:
    """The drafts of all seeds that were trained for so many steps."""
    return [run for run in found["runs"] if run["num_steps"] == num_steps]


def table(found: dict) -> str:
    """A line for each kind of draft: its loss, letters per call of the decoder, and how surprising the texts are."""
    titles = " | ".join(f"{n} drafted" for n in NUM_DRAFTED)
    lines = [f"| draft | loss | {titles} | surprise |", "|---" * (3 + len(NUM_DRAFTED)) + "|"]
    drafts = {f"{num_steps:,} steps": runs_of(found, num_steps) for num_steps in STEPS}
    for name, runs in {**drafts, "the decoder itself, in int8": [found["itself"]]}.items():
        counts = [letters_per_call(runs, n) for n in NUM_DRAFTED]
        cells = [np.mean([run["loss"] for run in runs]), *counts, np.mean([run["surprise"] for run in runs])]
        lines.append(f"| {name} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")
    return "\n".join(lines)


def facts(found: dict) -> dict[str, str]:
    """Letters per call, by steps of the draft and letters drafted; surprise at a letter; the decoder's own loss."""
    ways = {str(num_steps): runs_of(found, num_steps) for num_steps in STEPS} | {"itself": [found["itself"]]}
    texts = {"loss": f"{found['losses']['float32']:.2f}", "surprise.alone": f"{found['alone']:.2f}"}
    texts |= ends("surprise", [float(np.mean([run["surprise"] for run in runs])) for runs in ways.values()])
    for name, runs in ways.items():
        texts |= {f"letters.{name}.{num}": f"{letters_per_call(runs, num):.2f}" for num in NUM_DRAFTED}
    return texts


def card(found: dict) -> str:
    """What was done, and what came out."""
    losses = found["losses"]
    more = ", ".join(f"{losses[name] - losses['float32']:+.5f} with {name}" for name in ("bfloat16", "int8"))
    return f"""# Drafts that a large model checks

How often the stored decoder is asked when a small model guesses for it, and what fewer bytes cost it. No weights are
kept: the numbers are the result, and stand in `record.json`.

- **Data.** `plainformer.data.python_reference_splits()` of Python {found["python"]}, one token per character, with the
  decoder's vocabulary.
- **Models.** The decoder is `decoder.safetensors`; see `lab/decoder`. A draft has {STACK.num_layers} block,
  {STACK.d_model} wide, with {STACK.num_heads} heads.
- **Training.** {", ".join(f"{n:,}" for n in STEPS)} steps of {BATCH_SIZE} windows of {SEQ_LEN}, seeds 0 to 2 for
  weights and batches; AdamW, learning rate up to {LEARNING_RATE:g}. All settings stand in
  `lab/drafts/run.py`; `make models` trains them again.
- **Writing.** {LENGTH} letters after each of {NUM_TEXTS} pieces of {START} letters of the held-out text
  (`default_rng(0)`), at temperature 1.
- **Result.** Loss on the held-out text in nats per character, mean of the seeds; letters per call of the decoder, over
  all texts and seeds, by the number of letters drafted at a time, n: at most n + 1; the decoder's mean surprise at a
  letter of these texts, in nats. In what it writes alone it is {found["alone"]:.2f}.

{table(found)}

- **Fewer bytes.** The decoder's loss on the whole held-out text is {losses["float32"]:.4f} nats per character in
  float32, and changes by {more}.
- **Limits.** One decoder, one size of draft, one text; nothing was tuned. Calls were counted, not seconds. What is
  drawn depends on the last digits of the logits; on other versions of Python the text differs a little.
- **Licence.** The numbers are under Apache-2.0, as the code; the text is part of CPython and has its licence.
"""
