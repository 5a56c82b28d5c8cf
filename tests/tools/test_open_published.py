"""The script that opens published models, with small ones in their place, since tests have no network."""

import json

import jax

import plainformer as pf
from tools import open_published


def test_every_model_is_measured_and_written_down(tmp_path, monkeypatch):
    tokenizer = pf.Vocabulary.from_characters("abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    stack = pf.StackConfig(d_model=8, num_layers=1, num_heads=2)
    decoder = pf.Decoder(pf.DecoderConfig(len(tokenizer), 64, stack), key=jax.random.key(0))
    asked = []
    monkeypatch.setattr(pf, "open_model", lambda name: (asked.append(name), (decoder, tokenizer))[1])
    monkeypatch.setattr(pf.data, "python_reference", lambda: "the cat saw a bird " * 9)
    open_published.main(tmp_path / "out")
    found = json.loads((tmp_path / "out" / "published.json").read_text(encoding="utf-8"))
    assert tuple(asked) == open_published.NAMES == tuple(each["name"] for each in found)
    assert {each["tokens"] for each in found} == {64}
    assert all(3 < each["nats per token"] < 6 for each in found)  # nothing is learned: about ln 53
    assert (tmp_path / "out" / "published.md").read_text(encoding="utf-8") == open_published.card(found)
