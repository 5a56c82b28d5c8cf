"""Live figures in notebooks: what they refuse, and what they say. What they show is tested in a browser."""

import importlib.util
import re
import shutil
import subprocess
import sys
import types
import zipfile
from importlib.machinery import ModuleSpec
from pathlib import Path

import jax
import numpy as np
import pytest
import traitlets
from toy_models import drawn

import plainformer as pf
from plainformer import live

ROOT = Path(__file__).parents[1]
LETTERS = pf.Vocabulary("abc", special=["<mask>"])
KEY = jax.random.key(0)


def decoder(context_len=8, **stack):
    return pf.Decoder(pf.DecoderConfig(4, context_len, stack=pf.StackConfig(d_model=8, num_layers=1, **stack)), key=KEY)


@pytest.fixture
def no_anywidget(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.fixture
def anywidget(monkeypatch):
    """A stand-in for the package: a widget keeps what would be sent."""
    module = types.ModuleType("anywidget")
    module.__spec__ = ModuleSpec("anywidget", None)
    module.AnyWidget = type("AnyWidget", (traitlets.HasTraits,), {})
    monkeypatch.setitem(sys.modules, "anywidget", module)


def test_without_anywidget_it_says_what_to_install(no_anywidget):
    with pytest.raises(ModuleNotFoundError, match="%pip install anywidget"):
        pf.live.decoder(decoder(), LETTERS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: live.decoder(decoder(window=3), LETTERS), "window=3"),
        (lambda: live.decoder(decoder(), pf.Vocabulary(["a", "b"], separator=" ")), "expected one of characters"),
        (lambda: live.decoder(decoder(), pf.Vocabulary("ab")), "tokenizer has 2 tokens"),
        (lambda: live.decoder(in_16_bits(decoder()), LETTERS), "numbers are bfloat16"),
        (lambda: live.encoder(masked(), pf.Vocabulary("abcd")), "expected '<mask>' among them"),
        (lambda: live.vit(vit(channels=3)), "channels=3"),
        (
            lambda: live.predictions(decoder(), LETTERS, ["ab", "a"]),
            r"texts\[1\] has 1 tokens; expected more than start=1",
        ),
        (lambda: live.predictions(decoder(), LETTERS, "abcabcabc"), "has 9 tokens"),
        (lambda: live.predictions(decoder(), pf.Vocabulary("ab"), "ab"), "tokenizer has 2 tokens"),
        (lambda: live.attention(np.zeros((2, 3, 4), np.float32)), r"shape \(2, 3, 4\)"),
        (lambda: live.attention(np.zeros((1, 0, 0), np.float32)), "weights has 0 numbers"),
        (lambda: live.attention(np.full((1, 2, 2), np.nan, np.float32)), "negative, infinite or NaN"),
    ],
)
def test_what_cannot_be_shown_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_predictions_are_those_of_the_lens():
    model, text = decoder(), "abcab"
    ids = np.asarray(LETTERS.encode(text))
    shown = live.by_depth(model, LETTERS, ids.tolist(), 2)
    said = [np.asarray(jax.nn.softmax(logits))[1:-1] for logits in pf.models.lens(model, ids)]
    assert shown["answer"] == list(text[2:])
    np.testing.assert_allclose(shown["chances"], said[-1][np.arange(3), ids[2:]], atol=1e-3)
    for rows, pairs in zip(said, shown["after"], strict=True):
        assert [token for token, _ in pairs] == [LETTERS.tokens[i] for i in rows.argmax(axis=-1)]
        np.testing.assert_allclose([chance for _, chance in pairs], rows.max(axis=-1), atol=1e-3)


def test_texts_of_like_length_share_a_program():
    model, before = decoder(context_len=40), live._likeliest._cached._cache_size()
    for length, programs in ((3, 1), (20, 1), (40, 2)):
        live.by_depth(model, LETTERS, [0] * length, 1)
        assert live._likeliest._cached._cache_size() == before + programs


def in_16_bits(model):
    return jax.tree.map(lambda x: x.astype("bfloat16"), model)


def masked():
    return pf.MaskedLanguageModel(
        pf.EncoderConfig(vocab_size=4, context_len=8, stack=pf.StackConfig(d_model=8)), key=KEY
    )


def seq2seq():
    stack = pf.StackConfig(d_model=8, num_layers=1)
    return drawn(pf.Seq2Seq, pf.Seq2SeqConfig(4, 8, 8, 0, 1, encoder=stack, decoder=stack))


def vit(channels=1):
    stack = pf.StackConfig(d_model=8, num_layers=1)
    return drawn(pf.ViT, pf.ViTConfig(image_size=4, patch_size=2, num_classes=2, channels=channels, stack=stack))


@pytest.mark.usefixtures("anywidget")
@pytest.mark.parametrize(
    "make",
    [
        lambda: live.decoder(decoder(), LETTERS),
        lambda: live.encoder(masked(), LETTERS),
        lambda: live.seq2seq(seq2seq(), LETTERS),
        lambda: live.vit(vit()),
        lambda: live.predictions(decoder(), LETTERS, "abcab"),
    ],
)
def test_a_widget_sends_what_the_page_asks_for(make):
    widget = make()
    asked = re.findall(r'model\.get\("(\w+)"\)', widget._esm.read_text("utf-8"))
    assert set(asked) == set(widget.traits(sync=True))
    assert f"{widget.figure}.mjs" in widget.modules
    assert widget._css.is_file()


@pytest.mark.usefixtures("anywidget")
def test_images_are_drawn_with_the_ink_of_the_books_models():
    assert live.vit(vit()).values == {"ink": 2}


@pytest.mark.usefixtures("anywidget")
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 3), (4, 2, 3, 3)])
def test_attention_is_shown_as_layers_of_heads_up_to_the_most_that_may_be_sent(shape, monkeypatch):
    weights = np.tril(np.random.default_rng(0).uniform(0.1, 1, shape)).astype(np.float32)  # the future gets nothing
    monkeypatch.setattr(live, "MOST_WEIGHTS", weights.size)
    np.testing.assert_array_equal(live.attention(weights).values["weights"], weights.reshape(-1, *shape[-3:]))
    monkeypatch.setattr(live, "MOST_WEIGHTS", weights.size - 1)
    with pytest.raises(ValueError, match="fewer layers or heads, or a shorter text"):
        live.attention(weights)


def test_every_field_of_a_configuration_is_run_or_refused():
    """A new field of StackConfig must be thought of here: the page computes it, or refuses what it cannot."""
    computed = {"d_model", "num_layers", "num_heads", "num_kv_heads", "d_k", "d_v", "d_ff", "norm", "norm_eps"}
    computed |= {"activation", "rope_theta", "num_buckets", "max_distance", "dropout_rate", "use_bias"}
    assert set(pf.StackConfig.__dataclass_fields__) == computed | (set(live.RUNS) & set(vars(pf.StackConfig())))


def test_the_package_takes_its_figures_along(tmp_path):
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for folder in ("widgets", "src/plainformer"):
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True)
    make = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*make, "--wheel-dir", str(tmp_path / "made"), str(tmp_path)], check=True)
    (wheel,) = (tmp_path / "made").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"plainformer/widgets/notebook.mjs", "plainformer/widgets/engine/layers.mjs"} <= names
