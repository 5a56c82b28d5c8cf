"""The slides of a chapter have its question, goals, equations, figures and exercises, and no solution."""

import pytest
from bs4 import BeautifulSoup

from tools import make_slides

PAGE = """<html><head><title>Two</title><link rel="stylesheet" href="../_static/a.css"></head><body>
<article class="bd-article"><section id="two"><h1>2. Two<a class="headerlink" href="#two">#</a></h1>
<p>Who looks at whom?</p>
<figure><figcaption>The machine.</figcaption></figure>
<details><div class="sd-summary-content">You will weigh.</div></details>
<section id="first"><h2>2.1. First</h2><p>Take two words. See <a href="03_three.html#there">there</a>.</p>
<p>Not on a slide.</p>
<figure id="fig-live"><div class="live-figure"><img src="../_images/live.png" loading="lazy"><noscript>x</noscript>
</div>
<figcaption>It moves.</figcaption></figure></section>
<section id="second"><h2>2.2. Second</h2><p>Not on a slide either.</p>
<div class="math" id="equation-eq-a">A</div><div class="math" id="equation-eq-b">B</div>
<div class="math" id="equation-eq-c">C</div><div class="math" id="equation-eq-d">D</div></section>
<section id="exercises"><h2>2.3. Exercises</h2><div class="exercise">Weigh three.</div>
<div class="solution">One, two.</div></section>
<section id="summary"><h2>2.4. Summary</h2><p>We weighed.</p></section></section></article></body></html>"""


@pytest.fixture
def slides(tmp_path, monkeypatch):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "02_two.html").write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(make_slides, "SITE", tmp_path)
    return BeautifulSoup(make_slides.deck("chapters/02_two"), "html.parser").select("section.slide")


def test_slides_are_the_chapter_in_its_order(slides):
    assert [part.get_text(" ", strip=True) for part in slides] == [
        "2. Two Who looks at whom?",
        "2. Two The machine.",
        "What you will be able to do You will weigh.",
        "2.1. First Take two words. See there .",
        "2.1. First It moves.",
        "2.2. Second A B",
        "2.2. Second C D",
        "2.3. Exercises Weigh three.",
    ]


def test_links_and_pictures_lead_to_the_site(slides):
    assert [link["href"] for part in slides for link in part.select("a")] == [
        "../html/chapters/03_three.html#there",
        "../html/chapters/02_two.html#fig-live",
    ]
    (picture,) = (picture for part in slides for picture in part.select("img"))
    assert (picture["src"], picture["loading"]) == ("../html/_images/live.png", "eager")


def test_missing_chapter_is_named(capsys):
    assert make_slides.main("no-such-chapter") == 1
    assert "no-such-chapter" in capsys.readouterr().err
