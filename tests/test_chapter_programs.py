"""Programs that a chapter shows and the book does not run, for want of their data: here on a few pairs."""

import json
import re
from functools import partial

import numpy as np
from book import ROOT

import plainformer as pf
from plainformer.data.parallel import ParallelSplits

SEQ2SEQ = (ROOT / "chapters" / "10_seq2seq.md").read_text(encoding="utf-8")


def test_the_program_for_captions_learns_to_translate(monkeypatch, capsys):
    """Chapter 10: Multi30k has to be downloaded."""
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
    assert f"{recorded['parameters']:,} parameters" in SEQ2SEQ
    assert f"{recorded['steps']:,} steps of 64 pairs" in SEQ2SEQ
    ours, theirs = (np.mean(recorded["bleu"][who]["beam"]) for who in ("Plainformer", "PyTorch"))
    assert ours >= 30
    assert abs(ours - theirs) < 1


def test_what_chapters_07_and_13_draw_of_10_grams_and_of_names_is_on_the_cards():
    chapter, relations = (
        (ROOT / "chapters" / f"{name}.md").read_text(encoding="utf-8") for name in ("07_decoder", "13_relations")
    )
    card = (ROOT / "models" / "things_decoder.md").read_text(encoding="utf-8")
    for variable, name in (("by_decoder", "decoder, seed 0"), ("by_counting", "10-gram")):
        (row,) = re.findall(rf"^\| {name} \|(.*) \|$", card, flags=re.MULTILINE)
        assert f"{variable} = [{', '.join(row.replace('|', ' ').split())}]" in relations
    (loss,) = re.findall(
        r"modified Kneser–Ney\s+smoothing (\d\.\d+)", (ROOT / "models" / "decoder.md").read_text("utf-8")
    )
    assert f'"10-gram, modified": {loss},' in chapter


def test_what_chapter_08_says_of_trainings_that_it_does_not_run_is_on_their_cards():
    chapter = (ROOT / "chapters" / "09_encoder.md").read_text(encoding="utf-8")
    card = (ROOT / "models" / "encoder_lines.md").read_text(encoding="utf-8")
    found = {}
    for kind in ("lines of one language", "lines of all languages", "single names"):
        rows = re.findall(rf"^\| {kind}, seed \d \| \S+ \| \S+% \| (\S+)% \|$", card, flags=re.MULTILINE)
        assert len(rows) == 3
        found[kind] = np.mean(np.array(rows, float))
    one, many, single = found.values()
    sentence = f"language of {single:.1f} % after single names, of {one:.1f} and {many:.1f} % after lines"
    assert sentence in " ".join(chapter.split())
    card = (ROOT / "models" / "things_encoder.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*?) \| (\d\.\d+) \| (\S+)% \|", card, flags=re.MULTILINE)
    seeds = [(nats, share) for name, nats, share in rows if re.fullmatch(r"encoder, seed \d", name)]
    surprises, shares = ", ".join(nats for nats, _ in seeds), ", ".join(share for _, share in seeds)
    assert f"| encoder, three seeds | {surprises} | {shares} % |" in chapter
    named = {name: f"{nats} | {share} %" for name, nats, share in rows}
    assert f"| 6-gram of the name, with votes of the other names | {named['the same with votes']} |" in chapter
    assert f"| 6-gram of the name | {named['6-gram, the name alone']} |" in chapter
    assert f"| encoder, shown the name alone | {named['encoder, seed 0, the name alone']} |" in chapter
    card = (ROOT / "models" / "encoder.md").read_text(encoding="utf-8")
    slips = card[card.index("**Slips.**") :]
    found, guess, some, counted = (round(float(each)) for each in re.findall(r"(\d+\.\d)%", slips))
    assert f"the encoder finds {found} %; a guess would find {guess}." in " ".join(chapter.split())
    assert f"where it finds {counted} %, the encoder finds {some} " in " ".join(chapter.split())
