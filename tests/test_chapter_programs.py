"""Programs that a chapter shows and the book does not run, for want of their data: here on a few pairs."""

import json
import re
from functools import partial

import numpy as np
from book import ROOT

import plainformer as pf
from plainformer.data.parallel import ParallelSplits

SEQ2SEQ = (ROOT / "chapters" / "seq2seq.md").read_text(encoding="utf-8")


def test_the_program_for_captions_learns_to_translate(monkeypatch, capsys):
    """The chapter on encoder–decoders: Multi30k has to be downloaded."""
    (program,) = re.findall(r"^def learn_captions.*?(?=^```)", SEQ2SEQ, flags=re.DOTALL | re.MULTILINE)
    (calls,) = re.findall(r"(?<=\{code-cell\} ipython3\n)(?:# .*\n)+(?=```)", SEQ2SEQ)
    texts = [("ein Hund", "a dog"), ("eine Katze", "a cat"), ("der Hund und die Katze", "the dog and the cat")]
    pairs = [(f"{german} auf der Wiese", f"{english} on the meadow") for german, english in texts]
    monkeypatch.setattr(pf.data, "multi30k", lambda source, target: ParallelSplits(pairs, [], pairs[:2]))
    space = {}
    exec("import functools\nimport jax\nimport plainformer as pf\n" + program, space)
    space["learn_captions"] = partial(space["learn_captions"], vocab_size=300, num_steps=60, progress=False)
    exec(calls.replace("# ", ""), space)
    assert space["found"] == [english for _, english in pairs[:2]]
    assert space["translator"].config.decoder.d_model == 192
    assert float(capsys.readouterr().out) > 99.9


def test_what_the_chapter_says_of_the_short_training_on_captions_was_recorded():
    recorded = json.loads((ROOT / "benchmarks" / "multi30k.json").read_text(encoding="utf-8"))

    def shown(bleu):
        return f"{np.mean(bleu):.1f} ({', '.join(f'{each:.1f}' for each in bleu)})"

    for who, name in {"Plainformer": "ours", "PyTorch": "`nn.Transformer`"}.items():
        bleu = recorded["bleu"][who]
        assert f"| {name} | {shown(bleu['greedy'])} | {shown(bleu['beam'])} |" in SEQ2SEQ
    ours, theirs = (np.mean(recorded["bleu"][who]["beam"]) for who in ("Plainformer", "PyTorch"))
    assert ours >= 30
    assert abs(ours - theirs) < 1


def test_what_chapters_draw_of_10_grams_and_of_names_was_recorded():
    chapter, relations = (
        (ROOT / "chapters" / f"{name}.md").read_text(encoding="utf-8") for name in ("real_text", "relations")
    )
    names, counted = pf.data.load_record("things_decoder")["names"], pf.data.load_record("decoder")["counted"]
    for variable, name in (("by_decoder", "decoder, seed 0"), ("by_counting", "10-gram")):
        assert f"{variable} = [{', '.join(f'{nats:.2f}' for nats in names[name])}]" in relations
    assert f'"10-gram, modified": {counted["10-gram"]:.3f},' in chapter
