"""Write the numbers of the live figure `translation`: which letters of a date the book's own model reads, and when.

`make models` runs it, after the training. The model translates each date by greedy search; the figure shows the
weights of its cross-attention, and takes their mean in the reader's browser.
"""

import json
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from train_seq2seq import ROOT

import plainformer as pf
from plainformer.models.stored import load_pretrained

NUMBERS = ROOT / "widgets" / "translation.json"
# Dates of held-out years, with the year in front, at the end and in the middle; Spanish is held out, too.
DATES = {
    "25. října 2032": "Czech",
    "November 27, 2032": "English",
    "maanantai 21. syyskuuta 2026": "Finnish",
    "samedi 25 novembre 1989": "French",
    "Freitag, 26. Juni 1936": "German",
    "1963. november 10.": "Hungarian",
    "26 Şubat 1921 Cumartesi": "Turkish",
    "16 de enero de 1989": "Spanish, not in training",
}
LIKELIEST = 5  # characters shown of each step
STOP = "■"


def readings(model: pf.Seq2Seq, vocabulary: pf.Vocabulary, text: str) -> tuple[list[int], np.ndarray, np.ndarray]:
    """What the model writes, the stop token included; the weights, `(heads, steps, source)`; and the probabilities of
    all tokens at each step, `(steps, vocab_size)`."""
    # All texts are padded to one length: one program for all.
    source, is_source = pf.data.pad_texts([vocabulary.encode(text)], model.config.source_len)
    start, stop = model.config.start_token, model.config.stop_token
    given = model.condition_on(source, is_source)
    (found,) = pf.generate(given, [[start]], model.config.context_len, temperature=0.0, stop_tokens=[stop])
    pair = source[0], jnp.asarray([start, *found.tokens[:-1]]), is_source[0]
    weights = np.asarray(eqx.filter_jit(model.cross_attention_weights)(*pair), np.float64)[..., : len(text)]
    probabilities = np.asarray(jax.nn.softmax(eqx.filter_jit(model)(*pair)), np.float64)
    return found.tokens, weights.reshape(-1, *weights.shape[2:]), probabilities


def translation_numbers(model: pf.Seq2Seq, vocabulary: pf.Vocabulary) -> dict:
    """For each date what is written, the weights in thousandths, and the likeliest characters of each step."""

    def visible(token: int) -> str:
        return STOP if token == model.config.stop_token else vocabulary.decode([token])

    dates = []
    for text, language in DATES.items():
        tokens, weights, probabilities = readings(model, vocabulary, text)
        likeliest = np.argsort(-probabilities, axis=1)[:, :LIKELIEST]
        dates.append(
            {
                "text": text,
                "language": language,
                "written": "".join(map(visible, tokens)),
                "weights": np.round(1000 * weights).astype(int).tolist(),
                "next": [
                    {"letters": [visible(int(token)) for token in row], "probabilities": np.round(numbers, 4).tolist()}
                    for row, numbers in zip(
                        likeliest, np.take_along_axis(probabilities, likeliest, axis=1), strict=True
                    )
                ],
            }
        )
    layers, heads = model.config.decoder.num_layers, model.config.decoder.num_heads
    names = [f"block {layer + 1}, head {head + 1}" for layer in range(layers) for head in range(heads)]
    return {"heads": names, "dates": dates}


def write(path: Path = NUMBERS) -> None:
    """Write the numbers of the stored model."""
    numbers = translation_numbers(*load_pretrained("seq2seq"))
    path.write_text(json.dumps(numbers, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
