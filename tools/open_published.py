"""Open published models by name, and record how surprised each is by a page of English, and what it writes.

    python tools/open_published.py folder

It needs a network, `huggingface_hub` and `tokenizers`, and writes `published.json` and `published.md` into the folder.
"""

import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf

NAMES = ("openai-community/gpt2", "HuggingFaceTB/SmolLM2-135M", "Qwen/Qwen3-0.6B")
PROMPT, TOKENS = "The chemist opened the box and", 20


def measured(name: str, text: str) -> dict:
    """Sizes of a model, its mean surprise per token of a text, and what follows a prompt, drawn with seed 0."""
    start = time.perf_counter()
    decoder, tokenizer = pf.open_model(name)
    if tokenizer is None:
        raise ValueError(f"{name} has no tokenizer; expected one, as tokenizer.json.")
    seconds = time.perf_counter() - start
    ids = np.asarray(tokenizer.encode(text))[: min(512, decoder.config.context_len)]
    log_probs = jax.nn.log_softmax(decoder(jnp.asarray(ids[:-1])))
    surprise = -float(log_probs[jnp.arange(len(ids) - 1), ids[1:]].mean())
    written = pf.generate(decoder, tokenizer.encode(PROMPT), TOKENS, temperature=0.7, key=jax.random.key(0))
    return {
        "name": name,
        "numbers": pf.count_parameters(decoder),
        "seconds to open": round(seconds, 1),
        "tokens": len(ids),
        "nats per token": round(surprise, 3),
        "writes": tokenizer.decode(written.tokens),
    }


def card(found: list[dict]) -> str:
    """What was measured."""
    rows = "\n".join(f"| {each['name']} | {each['numbers']:,} | {each['nats per token']} |" for each in found)
    texts = "\n".join(f"- **{each['name']}**: {each['writes']!r}" for each in found)
    return f"""# Published models, opened

The first {found[0]["tokens"]} tokens, or fewer, of the Python reference, and {TOKENS} tokens after {PROMPT!r}, drawn at
temperature 0.7 with seed 0. Surprises per token are not comparable between vocabularies.

| model | numbers | nats per token |
|---|---|---|
{rows}

{texts}
"""


def main(folder: str) -> None:
    """Measure all, and write what came out with a card."""
    text = pf.data.python_reference()[:4000]
    found = [measured(name, text) for name in NAMES]
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / "published.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    (Path(folder) / "published.md").write_text(card(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
