"""Which heads of SmolLM2 copy and are needed, and where a fact is read, come out again as recorded."""

import numpy as np
import pytest

import plainformer as pf
from lab.smollm2_inside.copying import BEST, COPY, DRAWN, TELLS_BEFORE, best_heads, halves, twice
from lab.smollm2_inside.fact import ASKED, CAPITALS, COUNTRY, LAST, STREAM, UNRELATED, Moved, turned_in
from lab.smollm2_inside.model import opened
from plainformer.models import heads_at, patch, silence


@pytest.fixture(scope="module")
def copying() -> dict:
    return pf.data.load_record("smollm2_inside")["copying"]


@pytest.fixture(scope="module")
def fact() -> dict:
    return pf.data.load_record("smollm2_inside")["fact"]


def test_prompts_differ_in_one_token_and_capitals_begin_with_tokens_of_their_own():
    tokenizer = opened()[1]
    prompts = np.array([tokenizer.encode(ASKED.format(country)) for country in CAPITALS])
    assert (prompts != prompts[0]).any(axis=0).tolist() == [False] * COUNTRY + [True, False]
    assert prompts.shape[1] == len(tokenizer.encode(UNRELATED)) == LAST + 1
    assert {len(tokenizer.encode(f" {capital}")) for capital in CAPITALS.values()} == {1}
    assert len(set(CAPITALS.values())) == len(CAPITALS) == 10


def test_a_silent_head_costs_what_is_recorded(copying):
    ids, model = twice(0), opened()[0]
    _, seen = pf.look(model, ids)
    for block, head in (TELLS_BEFORE, COPY[1]):
        again = halves(silence(model, ids, places=heads_at(seen, [(block, head)])), ids)[1]
        cost = again - copying["again by text"][0]
        assert cost == pytest.approx(copying["costs by text"][0][block][head], abs=0.02)


def test_a_fact_moves_as_recorded(fact):
    """One pair of those that were recorded, at two depths and both tokens."""
    moved = Moved(stride=len(CAPITALS) ** 2)
    assert len(moved.ours) == 1
    source = moved.run("the other")
    for depth, at, is_turned in ((2, COUNTRY, True), (28, COUNTRY, False), (2, LAST, False), (28, LAST, True)):
        token = {COUNTRY: "country", LAST: "last"}[at]
        logits = patch(moved.model, moved.ours, places={STREAM[depth]: np.s_[..., at, :]}, source=source)
        assert (moved.named(logits)[1] == 1) == is_turned
        share = turned_in(fact[f"the other, {token}"])[depth]
        assert (share > 0.5) == is_turned


def test_one_of_the_four_heads_that_copy_is_needed_most(copying):
    costs, four = np.array(copying["costs"]), best_heads(np.array(copying["scores"]), BEST)
    assert four[0] == (18, 6)
    assert set(four[1:]) == {(17, 3), (17, 4), (17, 5)}
    assert costs[18, 6] > 2 > 1 > max(costs[head] for head in four[1:])


def test_by_the_mean_only_two_heads_are_missed_much_and_one_of_them_copies_nothing(copying):
    """What 1.3 and 0.5 cost by zeros is not missed by their means: they cost more than any head that copies."""
    costs, scores, before = (np.array(copying[name]) for name in ("costs", "scores", "before"))
    by_mean = {tuple(each["head"]): each["again"] - copying["again"] for each in copying["by the mean"]}
    assert {head for head, cost in by_mean.items() if cost > 1} == {TELLS_BEFORE, COPY[1]}
    without_score = [head for head in best_heads(costs, 3) if scores[head] < 0.02]
    assert without_score == [TELLS_BEFORE, (1, 3), (0, 5)]
    assert min(costs[head] for head in without_score) > costs[COPY[1]] > 2
    assert max(by_mean[head] for head in without_score[1:]) < 0.5
    assert before[TELLS_BEFORE] > 0.8


def test_head_16_0_tells_18_6_by_its_keys(copying):
    paths, again = copying["paths"], copying["again"]
    assert paths["18.6 keys"] > again + 3
    assert max(paths["18.6 queries"], paths["18.6 values"]) < again + 1


def test_one_block_carries_the_fact_from_the_country_to_the_last_token(fact):
    country, last = (
        np.array([each["effect"][0] for each in fact[f"the other, {name}"]]) for name in ("country", "last")
    )
    after = fact["block"] + 1
    assert min(country[:after]) > 0.9 > 0.1 > max(np.abs(country[after:]))
    assert max(np.abs(last[:after])) < 0.2 < 0.9 < min(last[after:])
    *others, most = sorted(each[0] for each in fact["heads of the block"])
    assert most > 0.8 > 0.2 > max(others)


def test_an_unrelated_prompt_breaks_the_answer_and_turns_none(fact):
    unrelated = fact["unrelated, last"]
    assert max(turned_in(unrelated)) == 0
    assert unrelated[-1]["named"] == [0, 0]
    assert max(each["effect"][0] for each in unrelated) > 0.3


def test_random_tokens_cost_less_the_second_time(copying):
    assert copying["once"] > 12 > 4 > copying["again"]
    assert len(twice(0)) == 2 * DRAWN + 1
