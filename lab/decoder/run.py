"""Train the decoder on the Python reference, beside two models that count."""

import sys

import jax

import plainformer as pf
from lab.records import BUILD, LAB

# The line break and the printable characters of ASCII; all others are one token.
VOCABULARY = pf.Vocabulary.from_characters(
    "\n" + "".join(map(chr, range(32, 127))), special=["<other>"], unknown="<other>"
)
DECODER = pf.DecoderConfig(
    vocab_size=len(VOCABULARY),
    context_len=128,
    stack=pf.StackConfig(
        d_model=128,
        num_layers=4,
        num_heads=4,
        d_ff=344,
        norm="rms",
        activation="swiglu",
        position_scheme="rotary",
        use_bias=False,
        dropout_rate=0.05,
    ),
)
TRAINING = pf.TrainingConfig(num_steps=1600, learning_rate=3e-3, warmup_steps=100, min_lr_ratio=0.02)
BATCH_SIZE = 16


def results() -> dict:
    """Train the decoder, count beside it, and return the losses."""
    training, validation = (VOCABULARY.encode(text) for text in pf.data.python_reference_splits())
    windows = pf.data.consecutive_windows(validation, DECODER.context_len)
    model, metrics = pf.fit(
        pf.Decoder(DECODER, key=jax.random.key(0)),
        pf.training.next_token_loss,
        pf.data.random_windows(training, DECODER.context_len, BATCH_SIZE),
        TRAINING,
        evaluate=lambda model: pf.training.corpus_loss(model, windows),
        directory=BUILD / "decoder",
    )
    pf.save_model(LAB / "decoder" / "decoder.safetensors", model, VOCABULARY)
    five_gram = pf.training.NgramModel(training, 5, DECODER.vocab_size)
    ten_gram = pf.training.NgramModel(training, 10, DECODER.vocab_size, discount=None)
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "characters": [len(training), len(validation)],
        "parameters": pf.count_parameters(model),
        "loss": round(metrics[-1]["validation_loss"], 4),
        "counted": {"5-gram": round(five_gram.loss(validation), 4), "10-gram": round(ten_gram.loss(validation), 4)},
    }


def facts(found: dict) -> dict[str, str]:
    """What the chapter says of counting: nats per character."""
    return {name: f"{loss:.2f}" for name, loss in found["counted"].items()}


def card(found: dict) -> str:
    """What was done, and what came out."""
    python, (learning, held_out) = found["python"], found["characters"]
    five_gram, ten_gram = found["counted"].values()
    return f"""# The decoder of the Python reference

A character-level language model of the Python reference, small enough to run anywhere. It writes plausible lines of
documentation and knows nothing: use it to study decoding, not to learn Python.

- **Data.** `plainformer.data.python_reference_splits()` of Python {python}: {learning:,} characters to train on,
  {held_out:,} held out (whole topics; no paragraph is in both). One token per printable ASCII character, one for
  all others: the vocabulary is in the file, too.
- **Model.** `decoder.json`, {found["parameters"]:,} parameters.
- **Training.** {TRAINING.num_steps:,} steps of {BATCH_SIZE} windows of {DECODER.context_len} tokens, seed 0 for
  weights, batches and dropout; AdamW, learning rate up to {TRAINING.learning_rate:g}. All settings stand in
  `lab/decoder/run.py`; `make models` trains it again.
- **Result.** Validation loss {found["loss"]:.3f} nats per character. A smoothed 5-gram model,
  counted on the same text, has {five_gram:.3f} on the same characters, and a 10-gram model with modified Kneser–Ney
  smoothing {ten_gram:.3f}: on so short a text, counting is ahead. On other versions of Python the text differs a
  little, and so do all three.
- **Licence.** The weights are Apache-2.0, as the code; the text is part of CPython and has its licence.
"""
