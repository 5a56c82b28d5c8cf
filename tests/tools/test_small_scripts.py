"""Scripts are made small without changing what they do."""

import pytest
from py_mini_racer import MiniRacer

minify = pytest.importorskip("minify", reason="there is none for this machine's processor")
# A declaration needs the one before it, named inside braces, and a function that stands below; a string looks like
# a comment.
SCRIPT = """
// What is made small.
function figure(settings) {
  const start = { rows: [1, 2, 3], words: "// \\u2028 `${1}`" };
  const { rows, words } = framed({ start, read });
  const doubled = rows.map((row) => row * 2); /* and kept */
  const pattern = /[/]\\/ "/g;
  function read(name) { return `${name}: ${doubled?.length ?? 0}`; }
  return [words, doubled, read("rows"), pattern.source, settings];
}
function framed({ start, read }) { return { ...start, read }; }
JSON.stringify(figure({ a: 1 }));
"""


def test_a_small_script_does_the_same():
    small = minify.string("application/javascript", SCRIPT)
    assert len(small) < 0.7 * len(SCRIPT)
    assert MiniRacer().eval(small) == MiniRacer().eval(SCRIPT)


def test_a_script_with_a_fault_is_refused():
    with pytest.raises(minify.MinifyError, match="unexpected"):
        minify.string("application/javascript", "const text = ;")
