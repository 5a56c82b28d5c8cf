"""Labelled texts from the reader's own tables, and labels as numbers."""

import jax.numpy as jnp
import pytest

from plainformer.data.labelled import classification_batch, label_ids, load_labelled


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_load_labelled_reads_commas_and_tabs(tmp_path):
    commas = write(tmp_path / "texts.csv", '"Paris, je t\'aime",fr\n"say ""no""\nnow", en\r\n\n  \nhallo,de\n')
    assert load_labelled(commas) == [("Paris, je t'aime", "fr"), ('say "no"\nnow', "en"), ("hallo", "de")]
    tabs = write(tmp_path / "texts.TSV", '"Paris", je t\'aime\tfr\r\n5" wide\ten\n')
    assert load_labelled(str(tabs)) == [('"Paris", je t\'aime', "fr"), ('5" wide', "en")]
    long = "x" * 140_000  # beyond the limit of the library that reads tables
    assert load_labelled(write(tmp_path / "long.csv", f'"{long}",en\n')) == [(long, "en")]


def test_load_labelled_reads_a_header(tmp_path):
    assert load_labelled(write(tmp_path / "a.csv", "Text, Label\nhallo,de\n")) == [("hallo", "de")]
    assert load_labelled(write(tmp_path / "b.tsv", "label\ttext\nde\thallo\n")) == [("hallo", "de")]
    assert load_labelled(write(tmp_path / "c.csv", "hallo,de\ntext,label\n")) == [("hallo", "de"), ("text", "label")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'id,stars,review\n1,5,"good, and ""new"""\n2,1,bad\n'),
        ("a.csv", 'review;id;stars\n"good, and ""new""";1;5\n"bad";2;1\n'),
        ("a.csv", '\ufeff"stars";"review"\n"5";"good, and ""new"""\n\n"1";"bad"\n'),
        ("a.tsv", 'id\tstars\treview\n1\t5\tgood, and "new"\n2\t1\tbad\n'),
        ("a.jsonl", '{"id": 1, "stars": 5, "review": "good, and \\"new\\""}\n\n{"stars": 1, "review": "bad"}\n'),
    ],
)
def test_load_labelled_reads_named_columns(tmp_path, name, content):
    found = load_labelled(write(tmp_path / name, content), text="review", label="stars")
    assert found == [('good, and "new"', "5"), ("bad", "1")]


def test_classification_batch_cuts_and_pads():
    batch = classification_batch([[5, 6, 7], [8]], jnp.asarray([1, 0]), length=2)
    assert batch.inputs.tolist() == [[5, 6], [8, 0]]
    assert batch.is_token.tolist() == [[True, True], [True, False]]
    assert batch.labels.tolist() == [1, 0]
    with pytest.raises(ValueError, match="2 texts and 1 labels"):
        classification_batch([[5], [6]], [0])
    with pytest.raises(TypeError, match=r"labels holds 'good'; expected .*label_ids"):
        classification_batch([[5]], ["good"])


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
        ("a.txt", b"hallo\tde\n", r"a.txt ends in none of .csv, .tsv and .jsonl"),
        ("a.csv", b"", r"a.csv is empty"),
        ("a.csv", b"hallo,de\nhallo, du,de\n", r"a.csv, line 2, has 3 columns"),
        ("a.tsv", b"hallo\tde\n\nhallo de\n", r"a.tsv, line 3, has 1 column"),
        ("a.csv", b"hallo,\n", r"a.csv, line 1 has no label"),
        ("a.csv", b'x,y\n"hallo,de\n', r"a.csv, line 2"),
        ("a.csv", b"x,y\ncaf\xe9,fr\n", r"a.csv is not UTF-8"),
    ],
)
def test_load_labelled_bad_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_labelled(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "id;words;stars\n", r"has the columns \['id', 'words', 'stars'\]; expected 'review' and 'stars'"),
        ("a.csv", "", r"has the columns \[\]"),
        ("a.csv", "review,stars\ngood,5,6\n", r"line 2, has 3 columns; expected 2"),
        ("a.csv", "review,stars,review\n", r"holds 'review' twice"),
        ("a.jsonl", '{"review": "good"}\n', r"line 1, has the keys \['review'\]"),
        ("a.jsonl", '\n{"review": 3, "stars": 5}\n', r"line 2, has 3 and 5; expected a string"),
        ("a.jsonl", '["good", 5]\n', r"line 1 holds a list"),
    ],
)
def test_load_labelled_bad_columns(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message):
        load_labelled(write(tmp_path / name, content), text="review", label="stars")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: label_ids(["de", "xx"], ["de", "fr", "pl"]),
            ValueError,
            r"^label 'xx', labels\[1\], was not among the",
        ),
        (lambda: label_ids([]), ValueError, r"^labels is empty"),
        (lambda: label_ids(["de", ""]), ValueError, r"^labels holds an empty name"),
        (lambda: label_ids(["de"], ["de", "de"]), ValueError, r"^names holds 'de' twice"),
    ],
)
def test_label_ids_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
