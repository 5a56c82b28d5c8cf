"""Labelled texts from the reader's own tables, and labels as numbers."""

import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.data.labelled import label_ids, load_labelled


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_load_labelled_reads_commas_and_tabs(tmp_path):
    commas = write(tmp_path / "texts.csv", '"Paris, je t\'aime",fr\n"say ""no""\nnow", en\r\n\n  \nhallo,de\n')
    assert load_labelled(commas) == [("Paris, je t'aime", "fr"), ('say "no"\nnow', "en"), ("hallo", "de")]
    tabs = write(tmp_path / "texts.TSV", '"Paris", je t\'aime\tfr\r\n5" wide\ten\n')
    assert load_labelled(str(tabs)) == [('"Paris", je t\'aime', "fr"), ('5" wide', "en")]


def test_load_labelled_reads_a_header(tmp_path):
    assert load_labelled(write(tmp_path / "a.csv", "Text, Label\nhallo,de\n")) == [("hallo", "de")]
    assert load_labelled(write(tmp_path / "b.tsv", "label\ttext\nde\thallo\n")) == [("hallo", "de")]
    assert load_labelled(write(tmp_path / "c.csv", "hallo,de\ntext,label\n")) == [("hallo", "de"), ("text", "label")]


@pytest.mark.usefixtures("unchecked")
def test_label_ids_take_an_array_of_numpy():
    ids, names = label_ids(np.array(["fr", "de", "fr"]))
    assert (ids.tolist(), names) == ([1, 0, 1], ["de", "fr"])


def test_label_ids_number_labels_in_sorted_order():
    ids, names = label_ids(["fr", "de", "fr", "pl"])
    assert ids.tolist() == [1, 0, 1, 2]
    assert ids.dtype == jnp.int32
    assert names == ["de", "fr", "pl"]
    # Another data set, in which one of them does not occur, has the same numbers.
    ids, again = label_ids(("pl", "fr"), names)
    assert ids.tolist() == [2, 1]
    assert again == names


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"hallo\tde\n", r"a.txt ends neither in .csv nor in .tsv"),
        ("a.csv", b"", r"a.csv is empty; expected rows of a text and its label"),
        ("a.csv", b"\n\n", r"a.csv is empty; expected rows"),
        ("a.tsv", b"text\tlabel\n", r"a.tsv is empty; expected rows"),
        ("a.csv", b"hallo,de\nhallo, du,de\n", r"a.csv, line 2, has 3 columns; expected 2, .* one comma between"),
        ("a.tsv", b"hallo\tde\n\nhallo de\n", r"a.tsv, line 3, has 1 column; expected 2, .* one tab between"),
        ("a.csv", b'"ha\nllo",de\nx\n', r"a.csv, line 3, has 1 column"),
        ("a.csv", b"hallo,\n", r"a.csv, line 1 has no label; expected both"),
        ("a.tsv", b"x\ty\n \tde\n", r"a.tsv, line 2 has no text; expected both"),
        ("a.csv", b'x,y\n"hallo,de\n', r"a.csv, line 2: .*Is a quotation mark missing\?"),
        ("a.csv", b"x,y\ncaf\xe9,fr\n", r"a.csv is not UTF-8: byte 7 \(0xe9\)"),
    ],
)
def test_load_labelled_bad_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_labelled(tmp_path / name)


def test_load_labelled_without_a_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^There is no file .*none.csv"):
        load_labelled(tmp_path / "none.csv")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: label_ids(["de", "xx"], ["de", "fr", "pl"]),
            ValueError,
            r"^label 'xx', labels\[1\], was not among the 3 labels of the training data: 'de', 'fr', 'pl'\. Leave it",
        ),
        (lambda: label_ids(["x"], [f"{n}" for n in range(21)]), ValueError, r"'18', '19', …\. Leave it out"),
        (lambda: label_ids([]), ValueError, r"^labels is empty; expected one label for each example"),
        (lambda: label_ids(["de", ""]), ValueError, r"^labels holds an empty name"),
        (lambda: label_ids(["de", 3]), TypeError, r"^labels holds 3; expected names, each a string"),
        (lambda: label_ids("de"), TypeError, r"^labels is the string 'de'"),
        (lambda: label_ids({"de", "fr"}), TypeError, r"^labels is a set, whose order differs"),
        (lambda: label_ids(["de"], "de"), TypeError, r"^names is the string 'de'"),
        (lambda: label_ids(["de"], ["de", "de"]), ValueError, r"^names holds 'de' twice; expected each once"),
    ],
)
def test_label_ids_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
