"""The live figure of the chemist's model: its maps are those of Python, and odd reactions are answered in words."""

import numpy as np
import pytest

import plainformer as pf
from plainformer.pretrained import SmilesTokenizer, atom_places, map_atoms, packaged_folder

# What every test over all figures changes: controls with keys (`test_widgets.py`).
CHANGES = {"chemist": [("Block", "ArrowLeft"), ("Head", "ArrowRight")]}

# Type a reaction, choose a block and a head, and give the state once the model has computed.
SHOW = """async ([text, layer, head]) => {
    const root = document.querySelector('[data-widget=chemist] .lf');
    const state = () => JSON.parse(root.dataset.state);
    const change = (node, value) => { node.value = value; node.dispatchEvent(new Event('input', { bubbles: true })); };
    change(root.querySelector('input[type=text]'), text);
    while (state().text !== text || state().busy) await nextFrame();
    root.querySelectorAll('input[type=range]').forEach((slider, i) => change(slider, [layer, head][i]));
    return state();
}"""


@pytest.fixture(scope="module")
def chemist():
    folder = packaged_folder("rxnmapper")
    return pf.open_model(folder, tokenizer=False)[0], SmilesTokenizer.in_folder(folder)


def test_maps_are_those_of_python(shared_figures, chemist):
    model, tokenizer = chemist
    figure = shared_figures("chemist")
    for text, layer, head in [
        ("CC(=O)O.OCC>>CC(=O)OCC", 10, 5),
        ("Clc1ccccc1.[Na+].[OH-]>>Oc1ccccc1", 0, 7),
    ]:
        ids = np.asarray(tokenizer.encode(text))
        weights = model.attention_weights(ids, None, np.zeros_like(ids))[layer, head]
        tokens = ["[CLS]", *tokenizer.split(text), "[SEP]"]
        behind = atom_places(tokens)[1]
        wanted = np.asarray(map_atoms(weights, tokens))
        state = figure.page.evaluate(SHOW, [text, layer, head])
        assert state["map"] == [[n, int(m)] for n, m in zip(behind, wanted, strict=True)]
        np.testing.assert_allclose(state["weights"], np.asarray(weights)[behind, wanted], atol=1e-4)


def test_no_token_stands_on_another_and_all_are_seen(shared_figures):
    """The reaction of the beginning has ions, whose names are wide."""
    figure = shared_figures("chemist")
    figure.page.evaluate(SHOW, ["CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F", 10, 5])
    rows = figure.root.evaluate("""root => [...root.querySelectorAll('.lf-side')].map((row) =>
        [...row.children].map((node) => node.getBoundingClientRect()).map(({ left, right }) => [left, right]))""")
    left, right = figure.root.locator(".lf-wide-scroll").first.evaluate(
        "node => [node.getBoundingClientRect().left, node.getBoundingClientRect().right]"
    )
    assert [len(row) for row in rows] == [38, 15]
    for row in map(np.array, rows):
        assert (row[1:, 0] > row[:-1, 1] - 0.5).all()
        assert left <= row[0, 0] < row[-1, 1] <= right


SAID = {"CCO": "one >>", "C>>O>>C": "one >>", ">>C": "no atom on one side", "C" * 200 + ">>C": "at most 120"}


def test_what_is_no_reaction_is_said(shared_figures):
    page = shared_figures("chemist").page
    for text, said in SAID.items():
        assert said in page.evaluate(SHOW, [text, 10, 5])["problem"]
    state = page.evaluate(SHOW, ["CC>>CN", 10, 5])  # an element that was not put in
    assert [place for _, place in state["map"]][1] == -1
