"""What a language model has to beat: counting how often tokens followed the last few (chapter on the decoder)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Annotated

import numpy as np

from plainformer.checks import Number, Positive, checked
from plainformer.data.lists import check_list, check_token_ids

Discount = Annotated[float, Number(lambda discount: 0 < discount < 1, "above 0 and below 1")]


def estimated_discounts(counts: Iterable[int]) -> tuple[float, ...]:
    r"""Return what to take from counts of one, of two, and of three or more.

    Implements `eq-real-text-modified-discounts`; Chen and Goodman (1999), equation 26. Where no n-gram occurs once, or
    twice, three or four times, the formula has nothing to go by, and all three are 0.75.
    """
    num = Counter(counts)
    if not all(num[count] for count in (1, 2, 3, 4)):
        return (0.75,) * 3
    share = num[1] / (num[1] + 2 * num[2])
    return tuple(max(count - (count + 1) * share * num[count + 1] / num[count], 0.0) for count in (1, 2, 3))


class NgramModel:
    r"""A smoothed n-gram model: the next token given the last `order - 1`, from counts.

    Implements `eq-real-text-kneser-ney`; Kneser and Ney (1995), in the interpolated form of Chen and Goodman (1999),
    section 3.

    Args:
        tokens: the ids of the text to count in, at least `order` of them.
        order: 1 for a unigram model, which looks at nothing; 2 for a bigram model, which looks at one token; and so on.
        discount: what is taken from every count and given to tokens never seen there; `None` for the modified form of
            Chen and Goodman, in which counts of one, two, and three or more have discounts of their own at each length,
            estimated from the text: `eq-real-text-modified-discounts`.
    """

    @checked
    def __init__(self, tokens, order: Positive, vocab_size: Positive, *, discount: Discount | None = 0.75):
        ids = check_token_ids(tokens, vocab_size, "tokens")
        if len(ids) < order:
            raise ValueError(f"The text has {len(ids)} tokens; expected at least order={order}.")
        self.order, self.vocab_size = order, vocab_size
        # For the longest n-grams, how often each occurs; for shorter ones, how many different tokens came before it.
        self.counts = {order: Counter(zip(*(ids[start:] for start in range(order)), strict=False))}
        for length in range(order - 1, 0, -1):
            self.counts[length] = Counter(ngram[1:] for ngram in self.counts[length + 1])
        # By length, the discount of an n-gram that occurs once, of one that occurs twice, and of all others.
        self.discounts = {
            length: estimated_discounts(counts.values()) if discount is None else (discount,) * 3
            for length, counts in self.counts.items()
        }
        self.totals: Counter = Counter()
        self.taken: dict[tuple[int, ...], float] = defaultdict(float)
        for length, counts in self.counts.items():
            for ngram, count in counts.items():
                self.totals[ngram[:-1]] += count
                self.taken[ngram[:-1]] += self._discount(length, count)

    def _discount(self, length: int, count: int) -> float:
        return self.discounts[length][min(count, 3) - 1] if count else 0.0

    def probability(self, token: int, context: Sequence[int]) -> float:
        """Return the probability of `token` after `context`, of which the last `order - 1` tokens count."""
        check_list("context", context, "token ids")
        [token] = check_token_ids([token], self.vocab_size, "token")
        context = check_token_ids(context, self.vocab_size, "context")
        return self._probability(token, tuple(context))

    def _probability(self, token: int, context: tuple[int, ...]) -> float:
        context = context[-(self.order - 1) :] if self.order > 1 else ()
        probability = 1 / self.vocab_size
        for length in range(len(context) + 1):
            history = context[len(context) - length :]
            total = self.totals[history]
            if not total:
                break  # never seen, and so nothing longer has been
            count = self.counts[length + 1][(*history, token)]
            kept = max(count - self._discount(length + 1, count), 0)
            probability = (kept + self.taken[history] * probability) / total
        return probability

    def loss(self, tokens) -> float:
        r"""Return the mean surprise at every token of a text but the first, in nats, as `corpus_loss` does."""
        ids = check_token_ids(tokens, self.vocab_size, "tokens")
        if len(ids) < 2:
            raise ValueError(f"The text has {len(ids)} tokens; expected at least 2, a token and the next one.")
        window = self.order - 1
        contexts = (tuple(ids[max(end - window, 0) : end]) for end in range(1, len(ids)))
        return -float(np.mean([np.log(self._probability(*pair)) for pair in zip(ids[1:], contexts, strict=True)]))
