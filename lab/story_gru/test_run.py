"""The decoder of stories is asked in one way wherever it is asked, and is ahead where chapters say so."""

import plainformer as pf

record = pf.data.load_record


def decoders() -> list[dict]:
    return record("story_gru")["told and doubted"]["decoder"]


def test_what_is_asked_here_agrees_with_what_other_runs_asked():
    assert decoders()[0]["by doubt"] == record("story_labels")["without labels"]["decoder"]
    assert [each["possible"] for each in decoders()] == [
        each["possible"] for each in record("staircase")["rows"]["decoder"]
    ]


def test_each_decoder_judges_stories_better_than_the_encoder_without_labels():
    assert min(each["by doubt"] for each in decoders()) > record("story_labels")["without labels"]["encoder"]
