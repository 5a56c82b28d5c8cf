"""Write the numbers of the live figure `masking`: what the book's own encoder takes hidden letters for.

`make models` runs it, after the training. Each letter of a few held-out names is hidden twice: alone, so that the model
sees all others, and with all letters after it, so that it sees those to the left only.
"""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from train_encoder import MASKING, ROOT, VOCABULARY

import plainformer as pf
from plainformer.models.stored import load_pretrained

NUMBERS = ROOT / "widgets" / "masking.json"
# Held-out names, in which now one side tells a letter and now the other.
NAMES = {
    "Tschechisch": "German",
    "arabiska": "Swedish",
    "Mikronezja": "Polish",
    "Thailandia": "Italian",
    "North Korea": "English",
}
LIKELIEST = 8  # of each of the two distributions


def guesses(model: pf.MaskedLanguageModel, text: str) -> tuple[np.ndarray, np.ndarray]:
    """For each letter the probabilities of all tokens in its place, seen from both sides, and from the left alone."""
    tokens = np.array(VOCABULARY.encode(text))
    alone = np.eye(len(tokens), dtype=bool)
    with_those_after = np.triu(np.ones_like(alone))

    def probabilities(is_hidden):
        hidden = jnp.asarray(np.where(is_hidden, MASKING["mask_token"], tokens[None, :]))
        logits = eqx.filter_jit(model)(hidden)[np.arange(len(tokens)), np.arange(len(tokens))]
        return np.asarray(jax.nn.softmax(logits), np.float64)

    return probabilities(alone), probabilities(with_those_after)


def masking_numbers(model: pf.MaskedLanguageModel) -> dict:
    """For each letter of each name the likeliest letters and the right one, with probabilities to four decimals."""
    names = []
    for text, language in NAMES.items():
        places = []
        for letter, both, left in zip(text, *guesses(model, text), strict=True):
            likeliest = [np.argsort(-row)[:LIKELIEST].tolist() for row in (both, left)]
            shown = sorted({*likeliest[0], *likeliest[1], *VOCABULARY.encode(letter)}, key=lambda token: -both[token])
            shown = [token for token in shown if token >= MASKING["first_ordinary"]]
            rounded = [[round(float(row[token]), 4) for token in shown] for row in (both, left)]
            places.append({"letters": VOCABULARY.decode(shown), "both": rounded[0], "left": rounded[1]})
        names.append({"text": text, "language": language, "places": places})
    return {"names": names}


def write(path: Path = NUMBERS) -> None:
    """Write the numbers of the stored model."""
    numbers = masking_numbers(load_pretrained("encoder")[0])
    path.write_text(json.dumps(numbers, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
