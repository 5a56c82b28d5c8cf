"""Templates of conversations: filled in as they are meant, and harmless where they are not."""

import pytest

from plainformer.tokens.conversations import conversation_text

LETTERS = "{% set s = 'abcdefghijklmnopqrstuvwxyz' %}"
DOUBLED = "{{% set ns = namespace(x=s) %}}{{% for i in range(40) %}}{{% set ns.x = {} %}}{{% endfor %}}"
ASKED = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]


def test_a_template_is_filled_in():
    template = (
        "{{ bos_token }}{% for m in messages %}\n{{ m['role'] }}: {{ m.content | trim }}{{ eos_token }}{% endfor %}"
    )
    template += "{% if add_generation_prompt %}{{ '\\n' }}assistant:{% endif %}"
    text = conversation_text(template, ASKED, begin="<s>", end="</s>")
    assert text == "<s>system: s</s>user: u</s>\nassistant:"
    assert conversation_text(template, ASKED[1:], answer=False) == "user: u"
    template = "{% for m in messages %}{{ m.content.replace('s', 't') + ('' if loop.last else ', ') }}{% endfor %}"
    template += "{% for i in range(9000) %}{% endfor %}{{ ['a', 'b'] | join('-') ~ 1 }}{{ {'a': '<é'} | tojson }}"
    assert conversation_text(template, ASKED) == 't, ua-b1{"a": "<é"}'
    # Letters are counted as they are made: of these replacements, none is.
    template = LETTERS + "{% set t = s.replace('', s).replace('', s) %}{{ t.replace('', t, 0) == t }}"
    assert conversation_text(template, ASKED) == "True"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% include '/etc/passwd' %}", "no loader"),
        ("{{ messages.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe|not safely callable"),
        ("{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}", "more than 10,000 rounds"),
        ("{{ 'a' * 999999999 }}", "str"),
        ("{{ 9 ** 9 ** 9 }}", r"\*\*"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
        ("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(20) }}", "10,000 rounds"),
        (
            LETTERS + "{% for a in s %}{% for b in s %}{% for c in s %}{% endfor %}{% endfor %}{% endfor %}",
            "10,000 rounds",
        ),
        (LETTERS + DOUBLED.format("ns.x ~ ns.x"), "10,000,000 letters"),
        (LETTERS + DOUBLED.format("ns.x + ns.x"), "10,000,000 letters"),
        (LETTERS + DOUBLED.format("ns.x.replace('', s)"), "10,000,000 letters"),
        (LETTERS + DOUBLED.format("[ns.x, ns.x] | join"), "10,000,000 letters"),
        (
            LETTERS + "{% set t = s.replace('', s).replace('', s) %}{% for i in range(999) %}{{ t }}{% endfor %}",
            "10,000,000 letters",
        ),
        ("{% set s = 9 %}" + DOUBLED.format("ns.x * ns.x"), r"\* of int"),
        ("{{ '%3000000000d' % 1 }}", "% of str"),
        ("{{ 'x' | center(3000000000) }}", "center"),
        ("{{ 'x'.ljust(3000000000) }}", "ljust|unsafe|not safely callable"),
        ("{{ lipsum(n=1000000) }}", "lipsum"),
        ("{{ messages[0].content.none() }}", "none"),
        ("{% for", "Expected an expression|unexpected"),
        ("{{ raise_exception('roles must take turns') }}", "it says: roles must take turns"),
    ],
)
def test_a_template_that_would_do_harm_or_fails_is_refused(template, message):
    with pytest.raises(ValueError, match=f"(?i)cannot be filled in: .*({message})"):
        conversation_text(template, ASKED)


@pytest.mark.parametrize(
    ("messages", "kind"),
    [(["hi"], TypeError), ([{"role": "user"}], TypeError), ([{"role": "me", "content": ""}], ValueError)],
)
def test_what_is_no_message_is_refused(unchecked, messages, kind):
    with pytest.raises(kind, match=r"messages\[0\]"):
        conversation_text("", messages)
