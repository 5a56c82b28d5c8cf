"""Exercise `conversation`: messages as one text, behind which an answer is to follow."""

import numpy as np

from plainformer.exercises.model import Case, Exercise, Mistake

START, END, NEWLINE = 1, 2, 198
NAMES = {"system": [9690], "user": [4093], "assistant": [520, 9531]}


def _begun(role):
    return [START, *role, NEWLINE]


def conversation(
    roles,
    texts,
    names,
    *,
    take=list,
    who=lambda role, names: names[role],
    begin=_begun,
    close=lambda: [END, NEWLINE],
    next_role=lambda role: "assistant",
    invite=_begun,
):
    """Return the ids of the conversation, as far as the model reads it before it answers."""
    turns = take(zip(roles, texts, strict=True))
    ids = [token for role, text in turns for token in (*begin(who(role, names)), *text, *close())]
    return np.array([*ids, *invite(names[next_role(turns[-1][0])])], int)


MISTAKES = [
    Mistake(
        "nothing says that the assistant is to speak: your text ends with the last message",
        "The model continues the text. Who would be the next to speak, if the text does not say it?",
        invite=lambda role: [],
    ),
    Mistake(
        "your text ends where the one who has just spoken would speak again",
        "Whose words are the model to write: those of whoever asked, or an answer?",
        next_role=lambda role: role,
    ),
    Mistake(
        "the turn of the assistant is closed before it has said anything",
        "Who is to write the token that ends an answer?",
        invite=[lambda role: [*_begun(role), END], lambda role: [*_begun(role), END, NEWLINE]],
    ),
    Mistake(
        "messages are not closed",
        "How does the model learn where an answer ends, if no message of its texts had an end?",
        close=[lambda: [], lambda: [NEWLINE]],
    ),
    Mistake(
        "the line break behind the token that ends a message is missing",
        "What stands behind <|im_end|> in the text that the chapter prints?",
        close=lambda: [END],
    ),
    Mistake(
        "the line break behind the role is missing",
        "What stands between the name of the one who speaks and the message?",
        {"begin": lambda role: [START, *role], "invite": lambda role: [START, *role]},
        {"begin": lambda role: [START, *role]},
        {"invite": lambda role: [START, *role]},
    ),
    Mistake(
        "nothing says who speaks",
        "How should the model tell a question from its own answer, if both look alike?",
        begin=[lambda role: [START], lambda role: [START, NEWLINE], lambda role: []],
    ),
    Mistake(
        "every message is said by the user",
        "Some of the messages are earlier answers of the model. Which of your inputs says so?",
        who=lambda role, names: names["user"],
    ),
    Mistake(
        "only the last message is read",
        "What would the model know of the first question when the second is 'And of Italy?'?",
        take=lambda turns: list(turns)[-1:],
    ),
]

_RNG = np.random.default_rng(23)


def _case(name, roles, lengths, is_edge=False):
    texts = [_RNG.integers(300, 40_000, length).tolist() for length in lengths]
    return Case(name, {"roles": roles, "texts": texts, "names": NAMES}, is_edge)


EXERCISE = Exercise(
    conversation,
    MISTAKES,
    cases=[
        _case("two questions", ["user", "assistant", "user"], [4, 3, 5]),
        _case("three questions", ["user", "assistant", "user", "assistant", "user"], [2, 6, 3, 1, 4]),
        _case("an empty message", ["user", "assistant", "user"], [3, 0, 2], is_edge=True),
        _case("one question behind a system message", ["system", "user"], [7, 3], is_edge=True),
    ],
    examples=[{"roles": ["user", "assistant", "user"], "texts": [[301], [302], [303, 304]], "names": NAMES}],
    result="(number of tokens,)",
    tried_on="messages by {roles}",
    is_exact=True,
)
