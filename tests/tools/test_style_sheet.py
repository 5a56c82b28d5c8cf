"""One style sheet, in order, without what no page can use, and the same when it is made again."""

from pathlib import Path

from book_weight.style_sheet import blocks, common_sheets, link_once, linked, prune, read, write_sheet


def test_blocks_keep_braces_in_their_places():
    sheet = '@import "a.css"; .a{content:"}"} @media print{.b{c:d}.e{f:g}} .h{i:url("data:;(x)")}'
    assert list(blocks(sheet)) == [
        ('@import "a.css";', ""),
        (".a", 'content:"}"'),
        ("@media print", ".b{c:d}.e{f:g}"),
        (".h", 'i:url("data:;(x)")'),
    ]


def test_prune_drops_what_asks_for_unknown_classes():
    names = {"a"}
    assert prune(".a{x:y}.b{x:y}", names) == ".a{x:y}"
    assert prune(".a .b,.a p,p{x:y}", names) == ".a p,p{x:y}"
    assert prune("@media print{.b{x:y}}", names) == ""
    assert prune("@font-face{src:url(b)}", names) == "@font-face{src:url(b)}"


def test_prune_keeps_what_can_match_without_a_class():
    for rule in ("p:not(.b){x:y}", ":is(.a, .b){x:y}", "p:is(.b, :not(.c)) q{x:y}", ".bs-popover-top{x:y}"):
        assert prune(rule, {"a"}) == rule


def test_read_takes_imports_along_and_moves_addresses(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "base.css").write_text('@charset "utf-8"; p{a:b}', encoding="utf-8")
    (tmp_path / "in/one.css").write_text(
        '/* a "note */@import "../base.css"; i{x:url(../f.woff2)}b{x:url("data:x")}', encoding="utf-8"
    )
    assert read([tmp_path / "own", tmp_path], "in/one.css").split() == [
        "p{a:b}",
        'i{x:url("f.woff2")}b{x:url("data:x")}',
    ]


def test_finish_links_once_and_leaves_what_it_made(tmp_path: Path):
    (tmp_path / "_static").mkdir()
    (tmp_path / "sub").mkdir()
    for name in ("one", "two", "some"):
        (tmp_path / f"_static/{name}.css").write_text(f".{name}{{x:y}}.no{{x:y}}", encoding="utf-8")
    link = '<link rel="stylesheet" href="{}_static/{}.css?v=1" />\n'
    head = link.format("", "one") + link.format("", "two")
    (tmp_path / "page.html").write_text(f'{head}<p class="one two some">', encoding="utf-8")
    head = "".join(link.format("../", name) for name in ("one", "some", "two"))
    (tmp_path / "sub/page.html").write_text(f"{head}<p>", encoding="utf-8")

    pages = {file: file.read_text("utf-8") for file in tmp_path.rglob("*.html")}
    sheets = common_sheets(pages.values())
    digest = write_sheet(list(pages.values()), sheets, tmp_path / "own", tmp_path / "_static")
    assert (tmp_path / "_static/site.css").read_text("utf-8") == ".one{x:y}\n.two{x:y}"
    page = link_once(pages[tmp_path / "sub/page.html"], sheets, digest)
    assert page.count("<link") == 2
    assert page.index("../_static/site.css?v=") < page.index("../_static/some.css")
    assert linked(page) == ["one.css", "two.css", "some.css"]
    assert link_once(page, sheets, digest) == page
