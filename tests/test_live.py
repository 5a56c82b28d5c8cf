"""Live figures in notebooks: what they refuse, and what they say. What they show is tested in a browser."""

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest

import plainformer as pf
from plainformer import live

ROOT = Path(__file__).parents[1]
LETTERS = pf.Vocabulary("abc", special=["<mask>"])
KEY = jax.random.key(0)


def decoder(**stack):
    return pf.Decoder(pf.DecoderConfig(4, 8, stack=pf.StackConfig(d_model=8, num_layers=1, **stack)), key=KEY)


@pytest.fixture
def no_anywidget(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


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
        (lambda: live.vit(coloured()), "channels=3"),
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


def in_16_bits(model):
    return jax.tree.map(lambda x: x.astype("bfloat16"), model)


def masked():
    return pf.MaskedLanguageModel(
        pf.EncoderConfig(vocab_size=4, context_len=8, stack=pf.StackConfig(d_model=8)), key=KEY
    )


def coloured():
    stack = pf.StackConfig(d_model=8)
    return pf.ViT(pf.ViTConfig(image_size=4, patch_size=2, num_classes=2, channels=3, stack=stack), key=KEY)


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
