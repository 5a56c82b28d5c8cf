"""The mistakes in a pre-norm block that the exercises know by name."""

from collections.abc import Callable

from plainformer.exercises.exercise import Mistake


def _in_each(says: str, asks: str, sublayer: Callable) -> list[Mistake]:
    """A fault of both sublayers, of the first alone, of the second alone; `sublayer(x, f, norm)` has it."""

    def first(x, f):
        return sublayer(x, f.attention, f.attention_norm)

    def second(x, y, f):
        return sublayer(y, f.feed_forward, f.feed_forward_norm)

    return [
        Mistake("first", f"in both sublayers {says}", asks, {"first": first, "second": second}),
        Mistake("first", f"in the attention sublayer {says}", asks, first),
        Mistake("second", f"in the feed-forward sublayer {says}", asks, second),
    ]


BLOCK = [
    *_in_each(
        "you normalise after the skip, norm(x + f(x)): that is post-norm",
        "If both sublayers return zeros, x should pass the block unchanged. Does it pass yours?",
        lambda x, f, norm: norm(x + f(x)),
    ),
    *_in_each(
        "the skip carries the normalised rows, norm(x) + f(norm(x))",
        "If both sublayers return zeros, x should pass the block unchanged. Does it pass yours?",
        lambda x, f, norm: norm(x) + f(norm(x)),
    ),
    *_in_each(
        "there is no skip: you return f(norm(x))",
        "A sublayer says what to change. What is its output added to?",
        lambda x, f, norm: f(norm(x)),
    ),
    *_in_each(
        "you normalise what the sublayer returns, x + norm(f(x)), not what it reads",
        "Which rows grow from block to block, and should the sublayer see them as they are?",
        lambda x, f, norm: x + norm(f(x)),
    ),
    *_in_each(
        "there is no norm: you return x + f(x)",
        "Which argument have you not used?",
        lambda x, f, norm: x + f(x),
    ),
    *_in_each(
        "you normalise twice, what the sublayer reads and then the sum",
        "If both sublayers return zeros, x should pass the block unchanged. Does it pass yours?",
        lambda x, f, norm: norm(x + f(norm(x))),
    ),
    Mistake(
        "second",
        "your feed-forward sublayer reads x, not the sum that attention has changed",
        "When the feed-forward runs, attention has already spoken. Through which variable does it hear?",
        lambda x, y, f: y + f.feed_forward(f.feed_forward_norm(x)),
        lambda x, y, f: y + f.feed_forward(f.attention_norm(x)),
    ),
    Mistake(
        "second",
        "your second skip carries x, so what attention added gets no further than the feed-forward",
        "The second sublayer changes what the first has made. To what should its output be added?",
        lambda x, y, f: x + f.feed_forward(f.feed_forward_norm(y)),
    ),
    Mistake(
        "second",
        "one skip spans both sublayers: x is added only once, at the end",
        "How many sublayers are there, and how many sums?",
        {
            "first": lambda x, f: f.attention(f.attention_norm(x)),
            "second": lambda x, y, f: x + f.feed_forward(f.feed_forward_norm(y)),
        },
    ),
    Mistake(
        "second",
        "what attention returns is never used",
        "Could one token learn of another in your block?",
        lambda x, y, f: x + f.feed_forward(f.feed_forward_norm(x)),
    ),
    Mistake(
        "second",
        "your feed-forward plays no part",
        "What follows the attention sublayer?",
        lambda x, y, f: y,
    ),
    Mistake(
        "second",
        "both of your sublayers are attention",
        "Which argument have you not used?",
        lambda x, y, f: y + f.attention(f.feed_forward_norm(y)),
    ),
    Mistake(
        "first",
        "the sublayers are in the wrong order: your feed-forward comes before attention",
        "Tokens first gather from one another, then each works alone. Which function does the gathering?",
        {
            "first": lambda x, f: x + f.feed_forward(f.feed_forward_norm(x)),
            "second": lambda x, y, f: y + f.attention(f.attention_norm(y)),
        },
        {
            "first": lambda x, f: x + f.feed_forward(f.attention_norm(x)),
            "second": lambda x, y, f: y + f.attention(f.feed_forward_norm(y)),
        },
    ),
    Mistake(
        "norms",
        "you use the first norm twice",
        "Each sublayer has a norm with its own scale and bias. Which argument have you not used?",
        lambda attention_norm, feed_forward_norm: (attention_norm, attention_norm),
    ),
    Mistake(
        "norms",
        "you use the second norm twice",
        "Each sublayer has a norm with its own scale and bias. Which argument have you not used?",
        lambda attention_norm, feed_forward_norm: (feed_forward_norm, feed_forward_norm),
    ),
    Mistake(
        "norms",
        "the two norms are swapped",
        "Which sublayer does attention_norm prepare the rows for?",
        lambda attention_norm, feed_forward_norm: (feed_forward_norm, attention_norm),
    ),
]
