"""The translators of captions: how their data is read and judged, and that card and chapter say what was recorded."""

import gzip
from pathlib import Path

import captions
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import train_translator

import plainformer as pf
from plainformer.data.parallel import ParallelSplits

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = " ".join((ROOT / "chapters" / "10_seq2seq.md").read_text(encoding="utf-8").split())
PAIRS = [
    ("ein Hund läuft schnell", "a dog runs fast"),
    ("eine Katze schläft gern", "a cat likes sleeping"),
    ("ein Hund schläft gern", "a dog likes sleeping"),
]


@pytest.fixture(scope="module")
def recorded() -> dict:
    return pf.data.load_record("translator")


@pytest.fixture
def few(tmp_path, monkeypatch) -> captions.Captions:
    """Three pairs, in tokens of single bytes, and a folder of their own for what is kept."""
    monkeypatch.setattr(captions, "KEPT", tmp_path)
    return captions.Captions(ParallelSplits(PAIRS, PAIRS[:2], PAIRS), vocab_size=258)


def test_captions_are_read_from_the_folder_that_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTI30K", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"There is no .*train\.de\.gz and no .*train\.en\.gz; expected train"):
        captions.read_captions()
    for part, pairs in zip(captions.PARTS, (PAIRS, PAIRS[:1], PAIRS[1:]), strict=True):
        for place, language in enumerate(("de", "en")):
            text = "".join(f"{pair[place]} \n" for pair in pairs)
            (tmp_path / f"{part}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    assert captions.read_captions() == ParallelSplits(PAIRS, PAIRS[:1], PAIRS[1:])


def test_without_captions_nothing_is_trained_or_written(tmp_path, monkeypatch, capsys):
    def download(*languages):
        raise OSError("no network")

    monkeypatch.delenv("MULTI30K", raising=False)
    monkeypatch.setattr(pf.data, "multi30k", download)
    monkeypatch.setattr(train_translator, "write_record", lambda *given: pytest.fail("wrote a record"))
    train_translator.train()
    assert "skipped, for want of captions; MULTI30K may name their folder. no network" in capsys.readouterr().out


def test_a_decoder_reads_pairs_as_one_text_of_which_the_target_counts(few):
    (source, target), start, stop = [([7, 8, 9], [5, 6]), few.start, few.stop]
    batch = train_translator.arrays_for_one([(source, target), ([4], [3, 2])], few)
    assert batch.inputs.tolist() == [[7, 8, 9, start, 5, 6], [4, start, 3, 2, stop, 0]]
    assert batch.targets[0].tolist() == [8, 9, start, 5, 6, stop]
    assert batch.is_token.astype(int).tolist() == [[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 0, 0]]


def test_both_losses_are_means_over_the_same_tokens(few):
    uniform = jnp.log(jnp.ones(258) / 258)
    pairs = few.buckets["training"][0]
    one = train_translator.loss_of_one(
        lambda inputs, key=None: jnp.broadcast_to(uniform, (*inputs.shape, 258)),
        train_translator.arrays_for_one(pairs, few),
    )
    assert one == pytest.approx(np.log(258), rel=1e-5)
    counts = [train_translator.arrays_for_one(pairs, few).counts, train_translator.arrays_for_both(pairs, few).counts]
    assert counts[0].sum() == counts[1].sum()


def test_the_rate_rises_then_falls_with_the_root():
    rates = [float(captions.rate_at(step, 0.003)) for step in (0, 499, 999, 3999)]
    assert rates == pytest.approx([3e-6, 0.0015, 0.003, 0.0015])


def test_passes_are_averaged(few):
    models = [eqx.nn.Linear(2, 3, key=jax.random.key(seed)) for seed in range(3)]
    for done, model in enumerate(models, start=1):
        memory = pf.training.make_optimiser(pf.TrainingConfig(num_steps=2, warmup_steps=1)).init(model)
        pf.training.save_checkpoint(captions.KEPT / "some", done * few.steps_a_pass, (model, memory), {})
    mean = captions.averaged("some", models[0], few, last=3, num=2)
    np.testing.assert_allclose(mean.weight, (models[1].weight + models[2].weight) / 2, rtol=1e-6)
    np.testing.assert_allclose(mean.bias, (models[1].bias + models[2].bias) / 2, rtol=1e-6)


def test_sentences_are_sorted_by_their_rarest_word(few):
    assert [few.rarest(text) for text in ("Ein Hund schläft.", "eine Katze", "ein Pferd")] == [2, 1, 0]
    assert few.unseen("Ein Pferd, ein Hund.") == ["pferd"]
    found = captions.by_rarity([english for _, english in PAIRS], few)
    assert found == {"one seen 1 to 9 times": [3, 100.0, 4.0]}


def test_what_is_kept_is_not_measured_again(few):
    assert captions.kept("once", lambda: {"BLEU": 1.5}) == {"BLEU": 1.5}
    assert captions.kept("once", lambda: pytest.fail("measured again")) == {"BLEU": 1.5}


def test_weights_are_joined_word_by_word():
    tokenizer = pf.BytePairEncoder.train("ab ab ab", 260, special=captions.SPECIAL)
    source, target = tokenizer.encode("ab xab ab"), tokenizer.encode("ab yab")
    assert [tokenizer.decode([each]) for each in target] == ["ab", " ", "y", "ab"]
    weights = np.zeros((2, 5, len(source)))  # two heads; the last of five rows writes the stop token
    weights[:, [0, 1, 2, 3], [0, 3, 1, 4]] = 1
    found = captions.between_words(weights, source, target, tokenizer)
    assert (found["source"], found["target"]) == (["ab", "xab", "ab"], ["ab", "yab"])
    np.testing.assert_allclose(found["weights"], [[1, 0, 0], [0, 2 / 3, 1 / 3]], atol=1e-3)


@pytest.mark.parametrize("width", [None, 2])
def test_both_kinds_write_a_text_for_each_source_in_its_place(few, width):
    sizes = pf.StackConfig(d_model=8, num_layers=1, num_heads=2, position_scheme="rotary")
    sources = [german for german, _ in PAIRS]
    one = pf.Decoder(pf.DecoderConfig(258, 130, stack=sizes), key=jax.random.key(0))
    config = pf.Seq2SeqConfig(258, 80, 80, few.start, few.stop, encoder=sizes, decoder=sizes)
    for model in (one, pf.Seq2Seq(config, key=jax.random.key(0))):
        texts = train_translator.translations(model, sources, few, width)
        for source, text in zip(sources, texts, strict=True):
            assert train_translator.translations(model, [source], few, width) == [text]


def test_the_card_says_what_was_recorded(recorded):
    assert train_translator.card(recorded) == (ROOT / "models" / "translator.md").read_text(encoding="utf-8")
    for name, passes in train_translator.PASSES.items():
        assert [n for n, *_ in recorded[name]["curve"]] == list(range(1, passes + 1))


def test_the_translator_translates(recorded):
    both = recorded["both"]
    assert both["test"]["beam"]["cased"] >= 36
    assert 3e6 < both["parameters"] < 6e6
    assert both["test"]["beam"]["cased"] > both["test"]["greedy"]["cased"]
    assert both["chosen"] == train_translator.best(both["averaged"])
    losses = [loss for *_, loss in both["curve"]]
    assert losses[-1] == min(losses)
    assert losses[-5] - losses[-1] < 0.04  # nearly at its end


def test_the_chapter_says_of_the_long_training_what_was_recorded(recorded):
    both, luck = recorded["both"], recorded["bootstrap"]
    bleu = {n: f"{each['BLEU']:.1f}" for n, each in both["passes"].items()}
    assert f"After twenty passes BLEU is {bleu['20']}, after thirty-six {bleu['36']}" in CHAPTER
    assert both["passes"]["36"]["BLEU"] - both["passes"]["32"]["BLEU"] == pytest.approx(0.1, abs=0.05)
    assert (both["passes"]["28"]["loss"] - both["passes"]["36"]["loss"]) / 8 == pytest.approx(0.005, abs=0.001)
    assert f"and {both['parameters']:,} numbers." in CHAPTER
    beam, greedy, last = (
        one[search]["cased"]
        for one, search in ((both["test"], "beam"), (both["test"], "greedy"), (both["test, last pass alone"], "beam"))
    )
    assert f"The mean is worth {beam - last:.1f} points to the beam, and the beam {beam - greedy:.1f} to the" in CHAPTER
    assert f"gives p = {luck['last pass']['p']} for the mean" in CHAPTER
    assert f"varies by ± {luck['both']['half']:.1f} in 95 of 100 draws" in CHAPTER
    assert f"Ours has {both['test']['beam']['lower case']:.1f} without capitals." in CHAPTER
    assert f"reach a BLEU of {beam:.1f} with a beam of 4" in CHAPTER
    of = {name: f"{score:.1f}" for name, score in recorded["searches"].items()}
    assert f"beam of 4 {of['beam of 4']}, of 8 {of['beam of 8']}, of 4 without length normalisation " in CHAPTER
    assert f"without length normalisation {of['beam of 4, sum of logarithms']};" in CHAPTER
    assert f"validation part: greedy {bleu['36']}," in CHAPTER
    assert f"{both['minutes']:.0f} minutes on one processor" in CHAPTER
    assert f"{len(both['curve'])} passes of {-(-29_000 // captions.BATCH_SIZE)} steps of 128 pairs" in CHAPTER


def test_the_chapter_says_of_counting_what_was_recorded(recorded):
    counted = recorded["counted"]["phrases"]["test"]
    ahead, luck = recorded["both"]["test"]["beam"]["cased"] - counted, recorded["bootstrap"]["counted"]
    assert f"On the test it has a BLEU of {counted:.1f}" in CHAPTER
    assert f"{ahead:.1f} points ahead after an hour, p = {luck['p']}," in CHAPTER


def test_the_chapter_says_of_map_and_mistakes_what_was_recorded(recorded):
    seen = recorded["map"]
    read = {
        word: seen["source"][int(np.argmax(row))] for word, row in zip(seen["target"], seen["weights"], strict=True)
    }
    assert (read["holding"], read["bowl"], read["kitchen."]) == ("hält.", "Schale", "Küche")
    assert " ".join(seen["target"]) == "A woman holding a bowl of food in a kitchen."
    (number, new, long), _, (_, known, short) = recorded["by rarity"].values()
    assert 0.23 < number / 1000 < 0.27
    assert f"There BLEU is {known - new:.0f} points lower" in CHAPTER
    assert f"{long:.0f} words against {short:.0f}" in CHAPTER
    exact = sum(each["written"] == each["reference"] for each in recorded["samples"])
    assert exact == 1
    assert "One is right to the last word" in CHAPTER
    words = [word for each in recorded["samples"] for word in each["new"]]
    assert words == ["anstarrt", "coffee-shop", "erfrischung", "gerahmter", "gesellschaftliches"]
    assert "*anstarrt*, *Coffee-Shop*, *Erfrischung*, *gerahmter* and *gesellschaftliches*" in CHAPTER
    for mistake in ("having a discussion", "fresh table", "live event"):
        assert any(mistake in each["written"] for each in recorded["samples"])


def test_the_chapter_says_of_one_stack_what_was_recorded(recorded):
    both, alone = recorded["both"], recorded["alone"]
    short = len(alone["curve"])
    assert f"{alone['parameters']:,} parameters, as one text" in CHAPTER
    assert alone["operations"] / both["operations"] == pytest.approx(2, abs=0.05)
    assert short == 7
    assert "We stopped after seven passes, while it was still improving fast" in CHAPTER
    assert alone["curve"][-2][2] - alone["curve"][-1][2] > 0.1
    behind = both["test, as long as alone"]["beam"]["cased"] - alone["test"]["beam"]["cased"]
    assert f"is {behind:.1f} points behind by a beam, p = {recorded['bootstrap']['alone']['p']}." in CHAPTER
    ahead, late = both["passes"]["12"]["BLEU"], max(one["BLEU"] for one in alone["averaged"].values())
    assert f"already after twelve it has {ahead:.1f} on the validation part against {late:.1f}" in CHAPTER
    losses = [loss for *_, loss in both["curve"]]
    for n in range(2, short):  # less than one pass behind, from the third on
        assert losses[n] < alone["curve"][n][2] < losses[n - 1]
