"""What the readers of data sets say to bad input."""

import pytest

from plainformer.data.parallel import label_ids, load_labelled, load_parallel, pad_texts


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pad_texts([]), ValueError, r"^texts is empty; expected at least one list of token ids"),
        (lambda: pad_texts([[1], []]), ValueError, r"^texts\[1\] is empty; expected at least one token"),
        (
            lambda: pad_texts([[1], [1, 2, 3], [1, 2, 3, 4]], 2),
            ValueError,
            r"^texts\[1\] has 3 tokens; expected at most 2.*length=4, which holds all texts",
        ),
        (lambda: pad_texts([[1]], 0), ValueError, r"^length is 0; expected at least 1"),
        (lambda: pad_texts([[1]], 2.0), TypeError, r"^length is 2.0; expected a whole number"),
        (lambda: pad_texts([[1], [2, -3]]), ValueError, r"^texts\[1\]: ids\[1\] is -3; expected 0 to"),
        (lambda: pad_texts([1, 2]), ValueError, r"^texts\[0\]: ids has shape \(\); expected \(seq,\)"),
        (lambda: pad_texts([[1.5]]), TypeError, r"^texts\[0\]: ids are float64; expected whole numbers"),
        (lambda: pad_texts(["abc"]), TypeError, r"^texts\[0\]: ids is a string.*Encode it first"),
        (lambda: pad_texts("abc"), TypeError, r"^texts is a string; expected a list of texts"),
        (lambda: pad_texts(3), TypeError, r"^texts is 3; expected a list of texts"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_pad_texts_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\nb\nc\n", b"x\ny\n", r"source has 3 lines and .*target has 2; expected as many in both.*cut short\?$"),
        (b"a\n\nc\n", b"x\ny\nz\n", r"source, line 2 is blank; expected one sentence a line"),
        (b"a\nb\n", b" \t\r\ny\n", r"target, line 1 is blank; expected one sentence a line"),
        (b"", b"x\n", r"source is empty, or holds white space only"),
        (b"x\n", b"\n \n", r"target is empty, or holds white space only"),
        (b"a\n", b"caf\xe9\n", r"target is not UTF-8: byte 3 \(0xe9\)"),
        (b"\xff\xfea\x00", b"x\n", r"source is not UTF-8: byte 0 \(0xff\).*UTF-16"),
    ],
)
def test_load_parallel_bad_files(tmp_path, source, target, message):
    paths = [tmp_path / "source", tmp_path / "target"]
    for path, content in zip(paths, (source, target), strict=True):
        path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_parallel(*paths)


def test_load_parallel_without_a_file(tmp_path):
    (tmp_path / "source").write_text("a\n")
    with pytest.raises(FileNotFoundError, match=r"^There is no file .*target\. Looked in"):
        load_parallel(tmp_path / "source", tmp_path / "target")
    with pytest.raises(IsADirectoryError, match=r"is a folder; expected a file"):
        load_parallel(tmp_path, tmp_path / "source")


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
        (lambda: label_ids(["de"], ["de", "de"]), ValueError, r"^names holds a label twice"),
    ],
)
def test_label_ids_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
