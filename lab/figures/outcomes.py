"""Write what the landing page shows of the book's own models: a text, some dates and a digit.

`make models` runs it, after the training. It makes `drawings/outcomes.json`, from which `drawings/landing.py` draws.
"""

import json
import warnings
from pathlib import Path

import jax
import numpy as np

import plainformer as pf
from lab.decoder.run import BATCH_SIZE, DECODER, TRAINING, VOCABULARY
from lab.records import ROOT
from lab.vision.run import bright
from plainformer.models.stored import load_pretrained

NUMBERS = ROOT / "drawings" / "outcomes.json"
PROMPT, LENGTH, EARLY = "The ", 160, 100
SHOWN_DATES = [
    "Freitag, 26. Juni 1936",
    "1963. november 10.",
    "26 Şubat 1921 Cumartesi",
    "maanantai 21. syyskuuta 2026",
]
DIGIT = 3  # among the test images


def written(model: pf.Decoder) -> str:
    """How the model goes on after the prompt."""
    found = pf.generate(model, PROMPT, LENGTH, temperature=0.7, tokenizer=VOCABULARY, key=jax.random.key(0))
    return f"{PROMPT}{found.text}".replace("<other>", "◦").rstrip()


def early_model() -> pf.Decoder:
    """The stored decoder as it was after its first steps."""
    training, _ = (VOCABULARY.encode(text) for text in pf.data.python_reference_splits())
    batches = pf.data.random_windows(training, DECODER.context_len, BATCH_SIZE)
    start = pf.Decoder(DECODER, key=jax.random.key(0))
    first = (batches(step) for step in range(EARLY))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There were batches for 100 steps only")  # that is meant
        return pf.fit(start, pf.training.next_token_loss, first, TRAINING, progress=False).model


def dates() -> dict[str, str]:
    """What the stored encoder-decoder makes of some dates."""
    model, vocabulary = load_pretrained("seq2seq")
    found = pf.translate(model, SHOWN_DATES, tokenizer=vocabulary)
    return {text: each.text or "" for text, each in zip(SHOWN_DATES, found, strict=True)}


def digit() -> tuple[np.ndarray, int, int, np.ndarray]:
    """An image, what it is, what the stored vision transformer says, and where its class token looks."""
    model, _ = load_pretrained("vision")
    test = pf.data.digits().test
    image = bright(test.images[DIGIT])
    looks = model.attention_weights(image)[-1].mean(axis=0)[0, 1:].reshape(model.config.grid)
    return (
        np.asarray(test.images[DIGIT][..., 0]),
        int(test.labels[DIGIT]),
        int(model(image).argmax()),
        np.asarray(looks),
    )


def write(path: Path = NUMBERS) -> None:
    """Write what the pictures show."""
    image, label, says, looks = digit()
    models = {
        "untrained": pf.Decoder(DECODER, key=jax.random.key(0)),
        f"after {EARLY} steps": early_model(),
        f"after {TRAINING.num_steps:,} steps": load_pretrained("decoder")[0],
    }
    numbers = {
        "texts": {name: written(model) for name, model in models.items()},
        "dates": dates(),
        "digit": {
            "pixels": np.rint(16 * image).astype(int).tolist(),
            "label": label,
            "says": says,
            "weights": np.round(looks, 3).tolist(),
        },
    }
    path.write_text(json.dumps(numbers, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
