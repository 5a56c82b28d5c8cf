"""Conversations as one text: the template that comes with a model, filled in where it can do no harm."""

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

ROLES = ("system", "user", "assistant")
MOST, LONGEST = 10_000, 10_000_000  # rounds and calls that a template may make in all, and letters
HINT = "pip install jinja2"
# What filling in a template that does not fit may raise.
FAULTS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError)
# What templates use of Jinja's filters, and of the methods of a string.
FILTERS = [
    "abs",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "forceescape",
    "int",
    "items",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "sort",
    "string",
    "sum",
    "title",
    "trim",
    "unique",
    "upper",
]
METHODS = [
    "capitalize",
    "count",
    "endswith",
    "find",
    "index",
    "isalnum",
    "isalpha",
    "isdigit",
    "islower",
    "isspace",
    "isupper",
    "lower",
    "lstrip",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "title",
    "upper",
]


def conversation_text(
    template: str, messages: Sequence[Mapping[str, str]], *, answer: bool = True, begin: str = "", end: str = ""
) -> str:
    r"""Return a conversation as the text that a model was trained on.

    A template is a small program in Jinja. It runs in the sandbox of `jinja2`, where it reaches neither files nor
    Python. It may go round and call at most 10,000 times, and make at most 10,000,000 letters.

    Args:
        template: as it comes with a tokenizer.
        messages: each with a `role`, `"system"`, `"user"` or `"assistant"`, and a `content`.
        answer: whether the text ends where the model shall answer.
        begin, end: the special tokens that the template calls `bos_token` and `eos_token`.

    Raises:
        ImportError: if `jinja2` is not installed.
        TypeError, ValueError: if a message is none, or the template refuses it, fails or goes on for ever.
    """
    _check(messages)
    given = {"add_generation_prompt": answer, "bos_token": begin, "eos_token": end}
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(f"A template of conversations needs the library jinja2: {HINT}") from error
    try:
        return _filled_in(template, messages=list(messages), **given)
    except (jinja2.TemplateError, *FAULTS) as error:
        raise ValueError(
            f"The template of the conversation cannot be filled in: {error}. Is it that of this model, and do the "
            "messages take turns?"
        ) from error


def _filled_in(template: str, **given) -> str:
    """The text of a template whose loops and joined strings are counted."""
    from jinja2 import Template, nodes
    from jinja2.visitor import NodeTransformer

    def counted(name: str, argument) -> nodes.Call:
        return nodes.Call(nodes.EnvironmentAttribute(name), [argument], [], None, None)

    class Counting(NodeTransformer):
        def visit_For(self, node):
            self.generic_visit(node)
            node.iter = counted("rounds", node.iter)
            return node

        def visit_Concat(self, node):
            self.generic_visit(node)
            return counted("joined", nodes.List(node.nodes))

    sandbox = _sandbox()
    code = sandbox.compile(Counting().visit(sandbox.parse(template)))
    return Template.from_code(sandbox, code, sandbox.make_globals(None)).render(**given)


class _Budget:
    """What a template may still do."""

    def __init__(self):
        self.steps, self.letters = MOST, LONGEST

    def step(self, number: int = 1) -> None:
        from jinja2.exceptions import SecurityError

        self.steps -= number
        if self.steps < 0:
            raise SecurityError(f"more than {MOST:,} rounds")

    def made(self, letters: int) -> None:
        from jinja2.exceptions import SecurityError

        self.letters -= letters
        if self.letters < 0:
            raise SecurityError(f"more than {LONGEST:,} letters")

    def counting(self, function: Callable) -> Callable:
        """The function, each of whose calls is a step and makes so many letters."""

        @functools.wraps(function)
        def call(*args, **kwargs):
            self.step()
            found = function(*args, **kwargs)
            self.made(len(found) if isinstance(found, str) else 0)
            return found

        return call

    def rounds(self, items: Iterable) -> Iterator:
        for item in items:
            self.step()
            yield item

    def range(self, *bounds) -> range:
        found = range(*bounds)
        self.step(len(found) if len(found) > MOST else 0)  # its rounds are counted as they are gone
        return found

    def shown(self, value) -> str:
        self.made(len(text := str(value)))
        return text

    def join(self, parts: Iterable, between: str = "") -> str:
        words = [str(part) for part in parts]
        self.made(sum(map(len, words)) + len(between) * len(words))
        return between.join(words)

    def replace(self, text: str, old: str, new: str, count: int = -1) -> str:
        times = text.count(old)
        self.made(len(text) + len(new) * (times if count < 0 else min(count, times)))
        return text.replace(old, new, count)


def _sandbox():
    """Where a template reaches neither files nor Python, and makes nothing very long."""
    from jinja2.exceptions import TemplateError

    def refused(message) -> None:
        raise TemplateError(f"it says: {message}")

    def as_json(value, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent and min(indent, 16))

    budget = _Budget()
    sandbox = _counting_sandbox(budget)(trim_blocks=True, lstrip_blocks=True, finalize=budget.shown)
    own = {"join": budget.join, "replace": budget.replace, "tojson": budget.counting(as_json)}
    sandbox.filters = {name: budget.counting(sandbox.filters[name]) for name in FILTERS} | own
    known = {name: sandbox.globals[name] for name in ("dict", "namespace")}
    sandbox.globals = known | {"range": budget.range, "raise_exception": refused}
    return sandbox


def _counting_sandbox(budget: _Budget) -> type:
    """The sandbox of `jinja2`, in which operators, calls and methods of strings spend a budget."""
    from jinja2.exceptions import SecurityError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Sandbox(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["*", "**", "+", "%"])
        rounds, joined = staticmethod(budget.rounds), staticmethod(budget.join)

        def call_binop(self, context, operator, left, right) -> Any:
            numbers = all(isinstance(each, int | float) and abs(each) < 2**64 for each in (left, right))
            if operator == "+" and not numbers:
                budget.made(len(left) + len(right))
            elif operator == "**" or not numbers:
                raise SecurityError(f"{operator} of {type(left).__name__}")
            return super().call_binop(context, operator, left, right)

        def call(self, context, function, /, *args, **kwargs) -> Any:
            text = getattr(function, "__self__", None)
            if isinstance(text, str) and function.__name__ == "replace":
                return budget.replace(text, *args)  # Jinja's own keywords say in which loop it stands
            budget.step()
            found = super().call(context, function, *args, **kwargs)
            budget.made(len(found) if isinstance(found, str) else 0)
            return found

        def is_safe_attribute(self, thing, name, value) -> bool:
            return super().is_safe_attribute(thing, name, value) and (not isinstance(thing, str) or name in METHODS)

    return Sandbox


def _check(messages) -> None:
    """Raise unless these are messages, each with a role and a content."""
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or not {"role", "content"} <= message.keys():
            raise TypeError(f'messages[{place}] is {message!r}; expected {{"role": "user", "content": "…"}}.')
        if message["role"] not in ROLES:
            raise ValueError(f"messages[{place}] has the role {message['role']!r}; expected one of {', '.join(ROLES)}.")
        if not isinstance(message["content"], str):
            raise TypeError(f"messages[{place}] has the content {message['content']!r}; expected a string.")
