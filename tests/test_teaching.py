"""The plan of the course: its minutes add up, and what it names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "appendix/teaching.md").read_text("utf-8")
CHAPTERS = "".join(file.read_text("utf-8") for file in (ROOT / "chapters").glob("*.md"))
JAX = (ROOT / "appendix/jax.md").read_text("utf-8")
LESSONS = re.findall(r"^### (Lesson \d+: .*?\?)\n(.*?)(?=^##)", PAGE, re.M | re.S)


def minutes(lesson: str) -> list[int]:
    return [int(number) for number in re.findall(r"^\|.*\| (\d+) \|$", lesson, re.M)]


def exercises(text: str) -> set[str]:
    return set(re.findall(r"\{ref\}`(ex-[\w-]+)`", text))


def test_there_are_ten_lessons():
    assert [title.split(":")[0] for title, _ in LESSONS] == [f"Lesson {number}" for number in range(1, 11)]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson[0].split(":")[0])
def test_lesson_is_whole_and_takes_ninety_minutes(lesson):
    _, text = lesson
    assert sum(minutes(text)) == 90, f"{minutes(text)} are {sum(minutes(text))} minutes"
    assert re.search(r"^Question: .+\?", text, re.M | re.S)
    wrong = text.split("Often wrong:")[1].split("At home:")
    assert exercises(wrong[0]), "names no exercise in which the mistake is seen"
    assert exercises(wrong[0]) <= exercises(text.split("Often wrong:")[0]), "a mistake of an exercise not in the lesson"
    assert exercises(wrong[1]), "leaves nothing to do at home"


def test_whatever_is_linked_is_in_the_chapters():
    labels = set(re.findall(r"^\((sec-[\w-]+)\)=$|^:(?:label|name): ([\w-]+)$", CHAPTERS + JAX, re.M))
    known = {name for pair in labels for name in pair if name}
    linked = set(re.findall(r"\{(?:ref|numref)\}`([\w-]+)`", PAGE))
    assert len(linked) > 60
    assert linked <= known, f"these lead nowhere: {sorted(linked - known)}"


def test_short_course_names_lessons_that_there_are():
    short = re.search(r"Give lessons ([\d, and]+)\.", PAGE)
    assert [int(number) for number in re.findall(r"\d+", short[1])] == [1, 3, 5, 6, 9]
