"""What the book must explain is explained: in `explained.json` each topic has a label, and some a phrase of its page.

Whoever moves an explanation gives its topic the new label, or the new phrase. Nothing is taken off the list to make
room.
"""

import json
import re

from book import ROOT

TOPICS = json.loads((ROOT / "tests" / "explained.json").read_text("utf-8"))
FILES = [*ROOT.glob("chapters/*.md"), *ROOT.glob("appendix/*.md"), ROOT / "index.md"]
LABEL = re.compile(r"^(?:\(([\w-]+)\)=|:(?:label|name): +([\w-]+)| +name: +([\w-]+))$", re.MULTILINE)


def pages_by_label() -> dict[str, str]:
    """For each label the page that defines it, with single spaces in place of all white space."""
    texts = [file.read_text("utf-8") for file in sorted(FILES)]
    return {"".join(found): " ".join(text.split()) for text in texts for found in LABEL.findall(text)}


PAGES = pages_by_label()


def test_every_topic_has_its_label():
    assert len(TOPICS) >= 365, "topics were taken off the list"
    lost = [f"{topic}: no {label}" for topic, (label, *_) in TOPICS.items() if label not in PAGES]
    assert not lost, "no longer explained where it was\n" + "\n".join(lost)


def test_every_topic_keeps_its_phrase():
    lost = [
        f"{topic}: on the page of {label} no longer stands {phrase!r}"
        for topic, (label, *phrases) in TOPICS.items()
        for phrase in phrases
        if phrase not in PAGES.get(label, "")
    ]
    assert not lost, "no longer explained in these words\n" + "\n".join(lost)
