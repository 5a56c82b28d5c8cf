"""Conversations as one text: the template that comes with a model, filled in where it can do no harm."""

from collections.abc import Mapping, Sequence
from typing import Any

ROLES = ("system", "user", "assistant")
MOST = 10_000  # rounds that a template may ask for in all
HINT = "pip install jinja2"
# What filling in a template that does not fit may raise.
FAULTS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)


def conversation_text(
    template: str, messages: Sequence[Mapping[str, str]], *, answer: bool = True, begin: str = "", end: str = ""
) -> str:
    r"""Return a conversation as the text that a model was trained on.

    A template is a small program in Jinja. It runs in the sandbox of `jinja2`, where it reaches neither files nor
    Python, and may go round at most 10,000 times.

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
        return _sandbox().from_string(template).render(messages=list(messages), **given)
    except (jinja2.TemplateError, *FAULTS) as error:
        raise ValueError(
            f"The template of the conversation cannot be filled in: {error}. Is it that of this model, and do the "
            "messages take turns?"
        ) from error


def _sandbox():
    """Where a template reaches neither files nor Python, and makes nothing very long."""
    from jinja2.exceptions import SecurityError, TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Sandbox(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["*", "**"])

        def call_binop(self, context, operator, left, right) -> Any:
            if operator == "**" or not all(isinstance(each, int | float) for each in (left, right)):
                raise SecurityError(f"{operator} of {type(left).__name__}")
            return left * right

    rounds = 0

    def counted(*bounds) -> range:
        nonlocal rounds
        found = range(*bounds)
        rounds += len(found) + 1
        if rounds > MOST:
            raise SecurityError(f"more than {MOST:,} rounds")
        return found

    def refused(message) -> None:
        raise TemplateError(f"it says: {message}")

    sandbox = Sandbox(trim_blocks=True, lstrip_blocks=True)
    sandbox.globals |= {"range": counted, "raise_exception": refused}
    return sandbox


def _check(messages) -> None:
    """Raise unless these are messages, each with a role and a content."""
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or not {"role", "content"} <= message.keys():
            raise TypeError(f'messages[{place}] is {message!r}; expected {{"role": "user", "content": "…"}}.')
        if message["role"] not in ROLES:
            raise ValueError(f"messages[{place}] has the role {message['role']!r}; expected one of {', '.join(ROLES)}.")
        if not isinstance(message["content"], str):
            raise TypeError(f"messages[{place}] has the content {message['content']!r}; expected a string.")
