"""The slides of a chapter fit a screen of 1280 by 720, and the space bar goes from one to the next."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "make_slides.py"
SPEC = importlib.util.spec_from_file_location("make_slides", SCRIPT)
make_slides = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_slides)

SIZES = """() => [...document.querySelectorAll('.slide')].map((slide) =>
    [slide.querySelector('h1, h2').innerText, slide.scrollHeight, slide.scrollWidth,
     getComputedStyle(slide).fontSize])"""


@pytest.fixture(scope="module", params=["blocks", "efficiency"])
def deck(request, browser, tmp_path_factory):
    """The deck of a chapter with a tall picture and tall equations, beside the built site."""
    folder = tmp_path_factory.mktemp("decks")
    (folder / "html").symlink_to(make_slides.SITE.resolve())
    (folder / "slides").mkdir()
    file = folder / "slides" / f"{request.param}.html"
    file.write_text(make_slides.deck(f"chapters/{request.param}"), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(file.as_uri())
    page.evaluate("document.fonts.ready.then(() => true)")
    yield page
    page.close()


def test_every_slide_fits_and_the_space_bar_goes_on(deck):
    for media in ("print", "screen"):
        deck.emulate_media(media=media)
        sizes = deck.evaluate(SIZES)
        assert len(sizes) > 15
        assert [told for told in sizes if told[1] > 720 or told[2] > 1280 or told[3] != "22px"] == []
    assert deck.locator("img").evaluate_all("all => all.filter((each) => !each.naturalWidth).length") == 0
    deck.keyboard.press("Space")
    deck.wait_for_function("scrollY === innerHeight")
    deck.keyboard.press("Shift+Space")
    deck.wait_for_function("scrollY === 0")
