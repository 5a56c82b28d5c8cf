"""Write what the landing page shows of the book's own models: a text, some dates and a digit.

`make models` runs it, after the training. It makes `models/outcomes.md`, which `index.md` includes, and a picture.
"""

import warnings
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
from train_decoder import BATCH_SIZE, DECODER, ROOT, TRAINING, VOCABULARY
from train_vision import bright

import plainformer as pf
from plainformer.models.stored import load_pretrained

NUMBERS = ROOT / "models" / "outcomes.md"
PICTURE = ROOT / "assets" / "digit.svg"
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
    prompt = VOCABULARY.encode(PROMPT)
    (found,) = pf.generate(model, [prompt], LENGTH, temperature=0.7, key=jax.random.key(0))
    return VOCABULARY.decode([*prompt, *found.tokens]).replace("<other>", "◦").rstrip()


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
    found = pf.translate(model, [vocabulary.encode(text) for text in SHOWN_DATES])
    return {text: vocabulary.decode(ids) for text, ids in zip(SHOWN_DATES, found, strict=True)}


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


def draw(image: np.ndarray, looks: np.ndarray, path: Path = PICTURE) -> None:
    """Draw the digit, and beside it the digit with the weights over its patches."""
    with plt.rc_context({"svg.hashsalt": "plainformer", "figure.facecolor": "white"}):
        figure, axes = plt.subplots(1, 2, figsize=(4, 2), layout="constrained")
        for ax in axes:
            ax.imshow(image, cmap="gray_r", extent=(0, 1, 1, 0))
            ax.axis("off")
        over = axes[1].imshow(looks, cmap="Oranges", alpha=0.65, extent=(0, 1, 1, 0), vmin=0)
        figure.colorbar(over, ax=axes[1], shrink=0.8, label="weight")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def page(texts: dict[str, str], dates: dict[str, str], says: int) -> str:
    """The three outcomes, for the landing page."""
    blocks = "\n\n".join(f"{name}\n\n````text\n{text}\n````" for name, text in texts.items())
    rows = "\n".join(f"| {text} | `{date}` |" for text, date in dates.items())
    return f"""<!-- Made by tools/models/outcomes_figure.py from the stored models. -->
:::::{{grid}} 1 1 2 2
:gutter: 3

::::{{grid-item-card}} A language model that learns to write
:columns: 12

{blocks}
::::

::::{{grid-item-card}} A model that reads dates in seventeen languages
| it reads | it writes |
|---|---|
{rows}
::::

::::{{grid-item-card}} A model that names digits, and where it looks
```{{image}} assets/{PICTURE.name}
:alt: A handwritten digit of 8 by 8 pixels, and the same digit with a tint over each patch, as deep as its weight.
```

It says: {says}.
::::
:::::
"""


def write(path: Path = NUMBERS) -> None:
    """Write the page's part, and the picture."""
    image, _, says, looks = digit()
    draw(image, looks)
    models = {
        "At first:": pf.Decoder(DECODER, key=jax.random.key(0)),
        f"After {EARLY} steps of training:": early_model(),
        f"After {TRAINING.num_steps:,}:": load_pretrained("decoder")[0],
    }
    path.write_text(page({name: written(model) for name, model in models.items()}, dates(), says), encoding="utf-8")


if __name__ == "__main__":
    write()
