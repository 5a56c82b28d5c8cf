"""The exercises of chapter 07: tokens hidden by the rule, a loss over the hidden ones, one vector for a text."""

import numpy as np

from plainformer.exercises import encoder_mistakes as known, loss_mistakes as loss
from plainformer.exercises.exercise import Case, Exercise


def _mask_tokens(
    tokens,
    is_token,
    select,
    fate,
    draw,
    vocab_size,
    *,
    may=known.ordinary_tokens,
    is_low=lambda select: select < 0.15,
    split=known.eighty_ten_ten,
    number=lambda fate, draw: draw,
    to_ids=known.among_ordinary,
    change=lambda chosen, changed, tokens: np.where(chosen, changed, tokens),
    note=lambda chosen, corrupted, tokens: chosen,
):
    chosen = may(tokens, is_token) & is_low(select)
    becomes_mask, becomes_other = split(fate)
    other = to_ids(number(fate, draw), vocab_size)
    changed = np.where(becomes_mask, known.MASK, np.where(becomes_other, other, tokens))
    corrupted = change(chosen, changed, tokens)
    return np.stack([corrupted, note(chosen, corrupted, tokens)])


def _masked_token_loss(
    logits,
    targets,
    is_selected,
    *,
    align=lambda logits, targets, is_selected: (logits, targets, is_selected),
    clear=lambda logits, is_selected: logits,
    log_probs=loss.log_softmax,
    pick=loss.of_each_row,
    average=known.over_selected,
    finish=lambda surprise: surprise,
):
    logits, targets, is_selected = align(logits, targets, is_selected)
    surprises = -pick(log_probs(clear(logits, is_selected)), targets)
    return np.asarray(finish(average(surprises, is_selected)))


def _mean_pool(rows, is_token, *, clear=known.cleared, add=lambda rows: rows.sum(axis=1), count=known.tokens_of_each):
    return add(clear(rows, is_token)) / count(is_token)


def _masking_cases() -> list[Case]:
    rng = np.random.default_rng(2018)

    def case(name, seq, vocab_size, num_padding, is_edge=False, select=None, fate=None):
        tokens = rng.integers(known.FIRST_ORDINARY, vocab_size, seq)
        tokens[[0, seq // 2]] = 0, 1
        low = rng.random(seq) < 0.7
        low[[0, seq // 2, -1]] = True  # special tokens and padding would be selected, if they might
        numbers = np.where(low, rng.uniform(0.01, 0.14, seq), rng.uniform(0.2, 0.99, seq))
        fates = rng.permutation(np.resize([0.85, 0.95, 0.3, 0.82, 0.92, 0.7, 0.05], seq))
        inputs = {
            "tokens": tokens,
            "is_token": np.arange(seq) < seq - num_padding,
            "select": numbers.round(2) if select is None else np.full(seq, select),
            "fate": fates if fate is None else np.full(seq, fate),
            "draw": rng.uniform(0.01, 0.99, seq).round(2),
            "vocab_size": vocab_size,
        }
        return Case(name, inputs, is_edge)

    return [
        case("15 tokens", 15, 17, 3),
        case("another text", 19, 22, 2),
        case("a text with much padding", 16, 14, 6),
        case("a text of which no token is selected", 9, 17, 2, is_edge=True, select=0.5),
        case("a text of which all selected tokens stay", 8, 14, 1, is_edge=True, select=0.1, fate=0.95),
    ]


def _masking_examples() -> list[dict]:
    return [
        {
            "tokens": np.array([0, 5, 3, 6, 4, 5]),
            "is_token": np.array([True, True, True, True, True, False]),
            "select": np.array([0.1, 0.12, 0.07, 0.05, 0.6, 0.02]),
            "fate": np.array([0.2, 0.5, 0.85, 0.95, 0.82, 0.1]),
            "draw": np.array([0.5, 0.9, 0.6, 0.2, 0.8, 0.4]),
            "vocab_size": 7,
        }
    ]


def _loss_cases() -> list[Case]:
    rng = np.random.default_rng(15)

    def case(name, seq, vocab_size, selected, is_edge=False, change=lambda logits: logits):
        logits = (2 * rng.normal(size=(seq, vocab_size))).round(1)
        is_selected = np.isin(np.arange(seq), selected)
        targets = rng.integers(0, vocab_size, seq)
        return Case(name, {"logits": change(logits), "targets": targets, "is_selected": is_selected}, is_edge)

    return [
        case("8 tokens, of which 3 are selected", 8, 6, [1, 2, 5]),
        case("logits above 0", 5, 3, [0, 3], change=lambda logits: np.abs(logits) + 0.5),
        case("logits near 1000", 4, 7, [1, 2], True, change=lambda logits: 1000 + (2 * logits).round() / 2),
        case("a text of which no token is selected", 4, 5, [], is_edge=True),
        case("a text of which all tokens are selected", 3, 4, [0, 1, 2], is_edge=True),
    ]


def _loss_examples() -> list[dict]:
    logits, targets = np.array([[2.0, 1, 4], [1, 3, 1], [0.5, 2, 5], [3, 0, 1]]), np.array([2, 0, 1, 0])
    is_selected = np.array([False, True, True, False])
    return [
        {"logits": logits[:3], "targets": targets[:3], "is_selected": is_selected[:3]},
        {"logits": logits, "targets": targets, "is_selected": np.array([False, True, False, False])},
        {"logits": 1000 + logits[:3], "targets": targets[:3], "is_selected": is_selected[:3]},
        {"logits": logits[:2], "targets": targets[:2], "is_selected": np.array([False, False])},
    ]


def _pool_cases() -> list[Case]:
    rng = np.random.default_rng(2019)

    def case(name, lengths, seq, d_model, is_edge=False, padding=None):
        rows = rng.normal(size=(len(lengths), seq, d_model)).round(2)
        is_token = np.arange(seq) < np.array(lengths)[:, None]
        if padding is not None:
            rows[~is_token] = padding
        return Case(name, {"rows": rows, "is_token": is_token}, is_edge)

    return [
        case("three texts of unequal length", [5, 2, 3], 6, 4),
        case("two texts", [3, 5], 7, 5),
        case("as many texts as features", [1, 4, 2], 5, 3),
        case("padding that holds infinity", [3, 1], 4, 3, is_edge=True, padding=np.inf),
        case("texts without padding", [3, 3, 3, 3], 3, 2, is_edge=True),
    ]


def _pool_examples() -> list[dict]:
    rows = np.array([[[1.0, 8.0], [3, 2], [9, 5]], [[4, 6], [2, 0], [6, 3]]])
    is_token = np.array([[True, True, False], [True, True, True]])
    spoilt = np.where(is_token[:, :, None], rows, np.inf)
    return [{"rows": rows, "is_token": is_token}, {"rows": spoilt, "is_token": is_token}]


EXERCISES = {
    "mask_tokens": Exercise(
        _mask_tokens,
        known.MASKING,
        _masking_cases,
        _masking_examples,
        "(seq,)",
        "{tokens[0]} tokens, a vocabulary of {vocab_size}",
        parts=("corrupted", "is_selected"),
    ),
    "masked_token_loss": Exercise(
        _masked_token_loss,
        known.MASKED_LOSS,
        _loss_cases,
        _loss_examples,
        "()",
        "{logits[0]} tokens, a vocabulary of {logits[1]}",
    ),
    "mean_pool": Exercise(
        _mean_pool,
        known.MEAN_POOL,
        _pool_cases,
        _pool_examples,
        "(num_texts, d_model)",
        "{rows[0]} texts, {rows[1]} rows each, of width {rows[2]}",
    ),
}
