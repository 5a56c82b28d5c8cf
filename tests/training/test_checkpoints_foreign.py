"""Checkpoints in a folder where other things lie: these are not taken for checkpoints, and stay as they are."""

import pytest
from test_checkpoints import single

from plainformer.training.checkpoints import list_checkpoints, load_checkpoint, save_checkpoint


def foreign(directory):
    """Folders that are no checkpoints, each with something of the user's in it, but for one; and their names."""
    names = ["0", "007", "2024", "9", "9x"]
    for name in names:
        (directory / name).mkdir()
        (directory / name / "mine.txt").write_text("mine")
    (directory / "9" / "mine.txt").unlink()
    return names


def test_what_is_no_checkpoint_is_neither_listed_nor_deleted(tmp_path):
    names = foreign(tmp_path)
    for step in (5, 7, 8):
        save_checkpoint(tmp_path, step, single(step), {}, keep=1)
    assert list_checkpoints(tmp_path) == [8]
    assert load_checkpoint(tmp_path, single(0))[2] == 8
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([*names, "8"])
    assert [(tmp_path / name / "mine.txt").read_text() for name in names if name != "9"] == ["mine"] * 4
    with pytest.raises(FileExistsError, match=r"There is a file or folder .*/9 already; delete it, or use another"):
        save_checkpoint(tmp_path, 9, single(9), {})
