"""Answers to the exercises of the chapter `encoder` as readers would write them, right ones and wrong ones."""

import math

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy, log_softmax, softmax
from readers_answers_decoder import picked, surprise

import plainformer as pf


def hidden(may=None, share=None, fates=None, ids=None, note=None, only_selected=True):
    """The rule of a reader who goes through the text token by token, rightly unless said otherwise."""

    def mask_tokens(tokens, is_token, select, fate, draw, vocab_size):
        corrupted, is_selected = [], []
        for n, token in enumerate(map(int, tokens)):
            allowed = bool(is_token[n]) and token >= 3 if may is None else may(token, bool(is_token[n]))
            chosen = allowed and (float(select[n]) < 0.15 if share is None else share(float(select[n])))
            lot, id_for = float(fate[n]), ids or (lambda lot, number, size: 3 + int(number * (size - 3)))
            kind = fates(lot) if fates else "mask" if lot < 0.8 else "other" if lot < 0.9 else "same"
            result = {"mask": 2, "other": id_for(lot, float(draw[n]), vocab_size), "same": token}[kind]
            corrupted.append(result if chosen or not only_selected else token)
            is_selected.append(chosen if note is None else note(token, corrupted[-1]))
        return np.array(corrupted), np.array(is_selected)

    return mask_tokens


def select_decides_all(tokens, is_token, select, fate, draw, vocab_size):
    """As if one key had been used for two draws."""
    return hidden()(tokens, is_token, select, select, draw, vocab_size)


MASKING = [
    (hidden(may=lambda token, is_token: is_token), "special tokens are hidden"),
    (hidden(may=lambda token, is_token: token > 2), "padding is hidden"),
    (hidden(may=lambda token, is_token: True), "from everything"),
    (hidden(share=lambda number: number > 0.15), "85 % of the tokens"),
    (hidden(fates=lambda lot: "mask"), "every selected token becomes the mask"),
    (select_decides_all, "every selected token becomes the mask"),
    (hidden(fates=lambda lot: "mask" if lot < 0.8 else "other"), "no selected token stays"),
    (hidden(fates=lambda lot: "mask" if lot < 0.8 else "same"), "no selected token is replaced"),
    (hidden(fates=lambda lot: "other" if lot < 0.8 else "mask" if lot < 0.9 else "same"), "are swapped"),
    (hidden(fates=lambda lot: "mask" if lot < 0.1 else "other" if lot < 0.9 else "same"), "are swapped"),
    (hidden(ids=lambda lot, number, size: 3 + int(lot * (size - 3))), "decides twice"),
    (hidden(ids=lambda lot, number, size: int(number * size)), "from all tokens"),
    (hidden(ids=lambda lot, number, size: 3 + int(number * size)), "beyond the vocabulary"),
    (hidden(only_selected=False), "tokens that are not selected"),
    (hidden(note=lambda token, became: token != became), "only where a token was changed"),
    (hidden(note=lambda token, became: became == 2), "only where the mask stands"),
]


def mean_over(choose):
    """The mean surprise over the tokens that `choose` leaves, by a reader who stays with plain numbers."""

    def loss(logits, targets, is_selected):
        chosen = [each for each, yes in zip(surprise(logits, targets), choose(is_selected), strict=True) if yes]
        return sum(chosen) / max(len(chosen), 1)

    return loss


def right_loss(logits, targets, is_selected):
    return mean_over(lambda is_selected: is_selected)(logits, targets, is_selected)


def kept(logits, targets, is_selected):
    """The surprises of the selected tokens, zeros elsewhere."""
    return np.where(is_selected, surprise(logits, targets), 0)


def shifted(choose):
    return lambda logits, targets, yes: right_loss(logits[:-1], targets[1:], choose(yes))


def of_selected(numbers, is_selected):
    """Their mean."""
    numbers = numbers[is_selected]
    return numbers.sum() / max(numbers.size, 1)


def with_probabilities(function, axis=-1):
    """The loss from what `function` makes of the softmax, taken at the targets."""
    return lambda logits, targets, yes: of_selected(picked(function(softmax(logits, axis)), targets), yes)


def surprise_without_care(logits, targets, is_selected):
    exponentials = np.exp(logits)
    return of_selected(-np.log(picked(exponentials / exponentials.sum(axis=1, keepdims=True), targets)), is_selected)


MASKED_LOSS = [
    (lambda logits, targets, yes: surprise(logits, targets).mean(), "over all tokens"),
    (mean_over(lambda is_selected: ~is_selected), "mean over the tokens that were not selected"),
    (
        lambda logits, targets, yes: np.mean(surprise(logits, targets), where=~yes),
        "mean over the tokens that were not selected",
    ),
    (lambda logits, targets, yes: kept(logits, targets, yes).mean(), "divide by the number of all tokens"),
    (
        lambda logits, targets, yes: kept(logits, targets, yes).sum() / (~yes).sum(),
        "divide by the number of tokens that were not",
    ),
    (lambda logits, targets, yes: kept(logits, targets, yes).sum(), "add the surprises up"),
    (lambda logits, targets, yes: kept(logits, targets, yes).sum() / yes.sum(), "divide by zero"),
    (lambda logits, targets, yes: surprise(logits * yes[:, None], targets).mean(), "clear the logits"),
    (shifted(lambda is_selected: is_selected[1:]), "as for a decoder"),
    (shifted(lambda is_selected: is_selected[:-1]), "as for a decoder"),
    (lambda *given: right_loss(*given) / math.log(2), "in bits"),
    (lambda *given: right_loss(*given) / math.log(10), "base 10"),
    (lambda *given: -right_loss(*given), "sign is missing"),
    (lambda *given: math.exp(right_loss(*given)), "perplexity"),
    (lambda logits, targets, yes: of_selected(-np.log(picked(logits, targets)), yes), "softmax is missing"),
    (lambda logits, targets, yes: of_selected(-picked(logits, targets), yes), "softmax is missing"),
    (with_probabilities(lambda probabilities: -probabilities), "logarithm is missing"),
    (with_probabilities(lambda probabilities: -np.log(probabilities), 0), "over the tokens of the text"),
    (with_probabilities(lambda probabilities: -np.log(probabilities), None), "over the whole table"),
    (surprise_without_care, "overflow"),
    (
        lambda logits, targets, yes: of_selected(np.log(np.exp(logits).sum(1)) - picked(logits, targets), yes),
        "overflow",
    ),
    (
        lambda logits, targets, yes: of_selected(-log_softmax(logits)[:, targets].mean(axis=1), yes),
        "columns of all targets",
    ),
    (lambda logits, targets, yes: of_selected(-log_softmax(logits).max(axis=1), yes), "targets play no part"),
]


def each_text(pool):
    """Texts pooled by a reader who takes one at a time."""
    return lambda rows, is_token: np.stack([pool(text, yes) for text, yes in zip(rows, is_token, strict=True)])


pooled = each_text(lambda rows, is_token: rows[is_token].mean(axis=0))


def column(is_token):
    return is_token[:, :, None]


MEAN_POOL = [
    (lambda rows, is_token: rows.mean(axis=1), "padding counts"),
    (lambda rows, is_token: np.where(is_token[:, :, None], rows, 0).mean(axis=1), "divide by the number of all rows"),
    (lambda rows, is_token: rows.sum(axis=1) / column(is_token).sum(axis=1), "padding is still in the sum"),
    (lambda rows, is_token: (rows * column(is_token)).sum(axis=1) / column(is_token).sum(axis=1), "by 0"),
    (each_text(lambda rows, is_token: rows[~is_token].sum(axis=0) / (~is_token).sum()), "of the padding"),
    (lambda rows, is_token: np.where(is_token[:, :, None], rows, 0).sum(axis=1), "add the rows up"),
    (
        lambda rows, is_token: np.where(is_token[:, :, None], rows, 0).sum(axis=1) / is_token.sum(),
        "in all texts together",
    ),
    (lambda rows, is_token: rows.mean(axis=2), "over the columns"),
    (lambda rows, is_token: rows.mean(axis=0), "over the texts"),
    (lambda rows, is_token: rows[:, 0], "the first row"),
    (lambda rows, is_token: rows.max(axis=1), "largest number"),
    (each_text(lambda rows, is_token: rows[is_token].max(axis=0)), "largest number"),
]


def mask_in_jax(tokens, is_token, select, fate, draw, vocab_size):
    chosen = is_token & (tokens >= 3) & (select < 0.15)
    other = 3 + jnp.floor(draw * (vocab_size - 3)).astype(int)
    changed = jnp.where(fate < 0.8, 2, jnp.where(fate < 0.9, other, tokens))
    return jnp.where(chosen, changed, tokens), chosen


RIGHT = [
    ("mask_tokens", in_numpy(hidden())),
    ("mask_tokens", in_jax(mask_in_jax, static_argnums=5)),
    ("masked_token_loss", in_numpy(right_loss)),
    ("masked_token_loss", in_jax(pf.cross_entropy)),
    ("mean_pool", in_numpy(pooled)),
    ("mean_pool", in_jax(pf.mean_pool)),
]
WRONG = [
    *(("mask_tokens", in_numpy(function), words) for function, words in MASKING),
    *(("masked_token_loss", in_numpy(function), words) for function, words in MASKED_LOSS),
    *(("mean_pool", in_numpy(function), words) for function, words in MEAN_POOL),
]
