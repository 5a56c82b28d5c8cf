"""One style sheet, in order, without what no page can use, and the same when it is made again."""

from pathlib import Path

import pytest
from book_weight.icons import FONTS, write_icons
from book_weight.style_sheet import SHEET, common_sheets, link_once, linked, names, write_sheet
from fontTools.ttLib import TTFont


def sheet_of(folder: Path, used: set[str], **sheets: str) -> str:
    """What becomes of these sheets, named without their ending; a `__` is a slash."""
    files = [name.replace("__", "/") + ".css" for name in sheets]
    for file, text in zip(files, sheets.values(), strict=True):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    write_sheet([file for file in files if "part" not in file], used, folder)
    return (folder / SHEET).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("sheet", "kept"),
    [
        (".a{x:y}.b{x:y}", ".a{x:y}"),
        (".a .b{x:y}p .a{x:y}", "p .a{x:y}"),
        ("@media print{.b{x:y}}", ""),
        ("@keyframes b{to{left:0}}.a{animation:b}", "@keyframes b{to{left:0}}.a{animation:b}"),
        ('.a:before{content:".b}"}', '.a:before{content:".b}"}'),
    ],
)
def test_rules_for_unknown_classes_go(tmp_path, sheet, kept):
    assert sheet_of(tmp_path, {"a"}, one=sheet) == kept


@pytest.mark.parametrize(
    "rule", ["p:not(.b){x:y}", ":is(.a,.b){x:y}", "p:is(.b,:not(.c)) q{x:y}", ".bs-popover-top{x:y}", ".b,.a{x:y}"]
)
def test_rules_that_can_match_without_a_class_stay(tmp_path, rule):
    assert sheet_of(tmp_path, {"a"}, one=rule) == rule


def test_sheets_keep_their_order_their_imports_and_their_addresses(tmp_path):
    made = sheet_of(
        tmp_path,
        set(),
        two='@import "in/part.css"; i{x:url(f.woff2)}',
        in__part='/* a "note */ p{x:url(../f.woff2)}',
        one='b{x:url("data:x")}',
    )
    assert made == "p{x:url(f.woff2)}i{x:url(f.woff2)}b{x:url(data:x)}"


def test_names_are_classes_ids_and_words_of_scripts():
    assert names(['<p class="a b" id="c">'], ["x.className = `d-${e}`"]) >= {"a", "b", "c", "d-", "e"}


def test_link_is_made_once_and_stays():
    link = '<link rel="stylesheet" href="{}_static/{}.css?v=1" />\n'
    pages = [
        link.format("", "one") + link.format("", "two") + "<p>",
        "".join(link.format("../", name) for name in ("one", "some", "two")) + "<p>",
    ]
    sheets = common_sheets(pages)
    assert sheets == ["one.css", "two.css"]
    page = link_once(pages[1], sheets, "abc")
    assert page.count("<link") == 2
    assert page.index("../_static/site.css?v=abc") < page.index("../_static/some.css")
    assert linked(page) == ["one.css", "two.css", "some.css"]
    assert link_once(page, sheets, "abc") == page


def test_icons_are_those_that_the_sheet_shows(tmp_path):
    (tmp_path / FONTS).mkdir(parents=True)
    sheet_of(tmp_path, {"fa-x"}, one='.fa-x:before{content:"\\f002"}.fa-y:before{content:"\\f00d"}')
    write_icons(tmp_path)
    assert set(TTFont(tmp_path / FONTS / "fa-solid-900.woff2").getBestCmap()) == {0xF002}
