"""The live figure of a model that answers shows what was recorded of each block."""

import json
from pathlib import Path

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {"chatting": [("Read after block", "Home"), ("Question", "ArrowDown")]}

ASKED = json.loads((Path(__file__).parents[2] / "widgets" / "chatting.json").read_text("utf-8"))["asked"]


def test_chatting_shows_the_tokens_after_each_block(shared_figures):
    figure = shared_figures("chatting")
    for key, block in (("Home", 0), ("ArrowRight", 1), ("End", len(ASKED[0]["after"]) - 1)):
        figure.press(figure.control("Read after block"), key)
        row = ASKED[0]["after"][block]
        assert figure.state["said"] == [token for token, _ in row]
        assert figure.state["chances"] == [chance for _, chance in row]
        right = sum(token == said for (token, _), said in zip(row, ASKED[0]["answer"], strict=True))
        assert f"{right} of {len(row)} tokens" in figure.summary
        assert figure.root.locator(".lf-most").count() == right
