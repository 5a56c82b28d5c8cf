"""The docstrings of installed packages, in two parts without a paragraph in common."""

import sys

import pytest

from plainformer.data.docstrings import docstring_splits


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of twenty files, in each a paragraph of its own and one that stands in all."""
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / f"docs_of_{tmp_path.name}"
    (folder / "tests").mkdir(parents=True)
    for number in range(20):
        told = f'"""File {number}.\n\nIn all of them."""\n\nclass A:\n    """Class {number}."""\n    x = "not told"\n'
        (folder / f"file_{number}.py").write_text(told, encoding="utf-8")
    (folder / "__init__.py").write_text('raise RuntimeError("this was imported")\n', encoding="utf-8")
    (folder / "old.py").write_text('"""Not told."""\nprint "a Python that is gone"\n', encoding="utf-8")
    (folder / "tests" / "test_a.py").write_text('"""Not told."""\n', encoding="utf-8")
    return folder


def paragraphs(text):
    return text.strip().split("\n\n")


def test_each_paragraph_is_in_one_part_once(package):
    training, validation = map(paragraphs, docstring_splits([package.name]))
    wanted = [f"{kind} {number}." for kind in ("File", "Class") for number in range(20)]
    assert sorted(training + validation) == sorted([*wanted, "In all of them."])
    assert "In all of them." in validation
    assert {f"Class{each[4:]}" for each in validation if each.startswith("File")} <= set(validation)  # whole files


def test_a_name_alone_and_nothing_is_imported(package):
    assert docstring_splits(package.name) == docstring_splits([package.name])
    assert package.name not in sys.modules


def test_packages_that_are_not_there_or_too_small_are_refused(package):
    for name in ("no_such_package", "json.decoder", "ast", ""):
        with pytest.raises(ModuleNotFoundError, match=r"no installed package"):
            docstring_splits([name])
    for path in package.glob("file_*.py"):
        path.unlink()
    with pytest.raises(ValueError, match=r"0 texts leave nothing to train on"):
        docstring_splits((package.name,))
