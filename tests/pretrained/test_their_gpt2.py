"""The folder that `transformers` wrote (`tests/parity/make_their_gpt2.py`), by the script of README.md."""

import re
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import plainformer as pf

FOLDER = Path(__file__).with_name("their_gpt2")
README = Path(__file__).parents[2] / "README.md"


def script() -> str:
    """The block of the README that opens a model of `transformers`."""
    (found,) = re.findall(r"```python\n((?:(?!```).)*their_gpt2.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    return found


def test_the_script_of_the_readme_opens_writes_draws_trains_saves_and_opens_again(tmp_path, monkeypatch, capsys):
    shutil.copytree(FOLDER, tmp_path / "their_gpt2")
    (tmp_path / "my.txt").write_text(pf.data.python_reference()[:20_000], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(script(), names := {})
    plt.close("all")
    before, after = capsys.readouterr().out.splitlines()
    assert min(len(before), len(after)) > 40
    assert Path("heads.svg").stat().st_size > 10_000
    assert Path("adapters.safetensors").stat().st_size < 30_000
    losses = [line["loss"] for line in names["metrics"]]
    assert len(losses) == 50
    assert np.mean(losses[-10:]) < np.mean(losses[:10])
    np.testing.assert_allclose(names["model"](names["ids"]), names["adapted"](names["ids"]), rtol=1e-4, atol=1e-4)
    assert len(script().splitlines()) <= 30


def test_what_it_writes_are_sentences_of_the_little_world():
    model, tokenizer = pf.open_model(FOLDER)
    (story,) = pf.data.stories(1, seed=5)
    begun = story[:60].rpartition(" ")[0]
    found = pf.generate(model, begun, 12, tokenizer=tokenizer, temperature=0.0).text
    words = set(" ".join(pf.data.stories(100)).split())
    assert len(found.split()) >= 6
    assert set(found.split()[:-1]) <= words
