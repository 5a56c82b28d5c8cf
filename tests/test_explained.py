"""What the book must explain is explained: in `explained.json` each topic has the label of its place.

Whoever moves an explanation gives its topic the new label. Nothing is taken off the list to make room.
"""

import json
import re

from book import ROOT

TOPICS = json.loads((ROOT / "tests" / "explained.json").read_text("utf-8"))
FILES = [*ROOT.glob("chapters/*.md"), *ROOT.glob("appendix/*.md"), ROOT / "index.md"]
LABEL = re.compile(r"^(?:\(([\w-]+)\)=|:(?:label|name): +([\w-]+)| +name: +([\w-]+))$", re.MULTILINE)


def test_every_topic_has_its_label():
    assert len(TOPICS) >= 365, "topics were taken off the list"
    labels = {"".join(found) for file in FILES for found in LABEL.findall(file.read_text("utf-8"))}
    lost = [f"{topic}: no {label}" for topic, label in TOPICS.items() if label not in labels]
    assert not lost, "no longer explained where it was\n" + "\n".join(lost)
