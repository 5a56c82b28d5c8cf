"""Cards of recorded runs: where a page names a run it leads to the card, and the list has every card there is."""

import re

import toy_site

LIST = "# Runs\n\n```{card-index}\n```\n"


def card(title: str) -> str:
    return f"---\norphan: true\n---\n\n# {title}\n\nSee `lab/one`.\n"


def links(root, page: str) -> list[str]:
    html = (root / "_build" / page).read_text("utf-8")
    return re.findall(r'class="reference internal" href="([^"]*(?:one|two)\.html)"', html)


def test_a_run_leads_to_its_card_and_a_new_card_is_listed(tmp_path):
    toy = "# Toy\n\n`lab/one`, `lab/none`.\n\n```{toctree}\nappendix/recorded_runs\n```\n"
    pages = {"index.md": toy, "appendix/recorded_runs.md": LIST, "appendix/cards/one.md": card("First")}
    toy_site.write(tmp_path, pages)
    _, said = toy_site.build(tmp_path)
    assert said == ""
    assert links(tmp_path, "index.html") == ["appendix/cards/one.html"]
    assert links(tmp_path, "appendix/cards/one.html") == []
    assert set(links(tmp_path, "appendix/recorded_runs.html")) == {"cards/one.html"}
    toy_site.write(tmp_path, {"appendix/cards/two.md": card("Second")})
    toy_site.build(tmp_path)
    assert set(links(tmp_path, "appendix/recorded_runs.html")) == {"cards/one.html", "cards/two.html"}
