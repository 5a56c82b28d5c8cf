"""SmolLM2 learns the form first and then the answers, and forgets other forms, as the chapter on fine-tuning says."""

import numpy as np

import plainformer as pf
from lab.smollm2_answers import card, judging, questions, run as smollm2_run
from lab.smollm2_answers.questions import Question

RECORD = pf.data.load_record("smollm2_answers")
BEFORE, LONG, METHODS = RECORD["before"], RECORD["main"], RECORD["methods"]
SHORT = METHODS["rank 4"][str(smollm2_run.RATE)]
RANKS = ("rank 1", "rank 4", "rank 16")


def test_the_untuned_model_says_of_four_questions_what_is_recorded():
    asked = [Question(*each) for each in BEFORE["four"]["asked"]]
    assert judging.likeliest_rooms(questions.smollm2()[0], asked) == BEFORE["four"]["said"]


def test_no_question_that_is_judged_was_learned_from(monkeypatch):
    every = [Question(f"{kind} {n}", "hall", kind) for n in range(4) for kind in questions.KINDS]
    monkeypatch.setattr(questions, "drawn", lambda seed: every)
    monkeypatch.setattr(questions, "trained_on", lambda: every[:4])
    monkeypatch.setattr(questions, "NUM_KEPT_BACK", 4)
    assert questions.kept_back.__wrapped__() == every[4:]


def test_questions_ask_for_what_is_carried_if_anything_is():
    random = np.random.default_rng(0)
    told = (
        ". it is wet . the lamp is in the hall . Anna is in the hall . Anna takes the lamp . Anna goes to the garden ."
    )
    english = "The lamp is in the hall. Anna is in the hall. Anna takes the lamp. Anna goes to the garden."
    found = {questions.asked_about(told, random) for _ in range(5)}
    assert found == {Question(f"{english} Where is the lamp?", "garden", "is carried")}
    lying = questions.asked_about(". Ben is in the cellar . is it light ? no .", random)
    assert lying == Question("Ben is in the cellar. Where is Ben?", "cellar", "lies")
    assert questions.asked_about(". it is wet .", random) is None


def test_each_loss_counts_the_tokens_that_it_names():
    texts = [smollm2_run.ids_of(Question(*each)) for each in BEFORE["four"]["asked"]]
    answers = [len(questions.answer_ids(room)) for _, room, _ in BEFORE["four"]["asked"]]
    counts = {
        loss: smollm2_run.counted(texts, loss).is_token.sum(axis=1).tolist()
        for loss in ("answers", *smollm2_run.LOSSES)
    }
    padding = [questions.LENGTH + 1 - len(text) for text in texts]
    assert counts["answers"] == answers
    assert counts["end as padding"] == [number - 1 for number in answers]
    assert counts["padding, too"] == [number + more for number, more in zip(answers, padding, strict=True)]
    assert counts["all tokens"] == [len(text) - 1 for text in texts]


def test_the_rate_is_the_best_that_was_tried_and_not_at_the_edge():
    losses = {float(rate): run["loss"] for rate, run in METHODS["rank 4"].items()}
    assert min(losses, key=losses.get) == smollm2_run.RATE == LONG["rate"]
    assert min(losses) < smollm2_run.RATE < max(losses)


def test_the_form_is_learned_before_the_rooms():
    first, early, *_, last = LONG["curve"]
    assert (first["form"], early["step"]) == (0, 25)
    assert early["form"] > 0.98
    assert early["right"] < 0.85 < 0.98 < last["right"]


def test_three_examples_bring_the_form_and_fewer_right_rooms():
    shown, plain = BEFORE["three examples"], BEFORE["as it is"]
    assert plain["form"] == 0 < 0.9 < shown["form"]
    assert shown["room"] < plain["room"] - 0.2


def test_the_likeliest_room_is_right_more_often_than_the_room_named_last():
    assert BEFORE["as it is"]["room"] > RECORD["by rule"]["the room named last"] + 0.05


def test_what_was_learned_holds_for_names_that_were_not_trained_on():
    assert LONG["other names"]["right"] > 0.98
    assert LONG["other rooms"]["right"] > 0.94 > BEFORE["other rooms"]["room"]


def test_another_template_or_none_changes_no_more_than_one_answer_in_a_hundred():
    assert min(each["right"] for each in LONG["misasked"].values()) >= LONG["curve"][-1]["right"] - 0.0101


def test_the_larger_the_rate_the_more_of_the_manual_is_forgotten():
    runs = sorted(METHODS["rank 4"].items(), key=lambda each: float(each[0]))
    costs = [BEFORE["remembered"]["manual"], *(run["manual"] for _, run in runs)]
    assert costs == sorted(costs)
    assert costs[1] < costs[0] + 0.01 < costs[0] + 0.3 < costs[3]


def test_with_the_end_masked_as_padding_not_one_answer_ends():
    assert RECORD["losses"]["end as padding"]["ends"] == 0
    assert SHORT["ends"] == BEFORE["three examples"]["ends"] == 1


def test_padding_that_counts_changes_few_answers():
    assert abs(RECORD["losses"]["padding, too"]["right"] - SHORT["right"]) <= 0.05


def seeds_of(method: str) -> list[dict]:
    """The runs of both seeds at the best rate."""
    return [card.best(METHODS[method]), RECORD["another seed"][method]]


def test_seeds_lie_farther_apart_than_ranks_and_all_numbers_do():
    losses = np.array([[run["loss"] for run in seeds_of(method)] for method in (*RANKS, "whole")])
    assert np.ptp(losses, axis=1).max() > 2 * np.ptp(losses.mean(axis=1))


def test_adapters_of_all_maps_learn_more_than_those_of_queries_and_values_with_each_seed():
    fewer = [run["loss"] for run in seeds_of("rank 4, queries and values")]
    assert all(run["loss"] < less for rank in RANKS for run, less in zip(seeds_of(rank), fewer, strict=True))


def test_all_numbers_forget_as_much_as_adapters_and_hardly_anything_at_a_third_of_the_rate():
    untuned, (first, _) = BEFORE["remembered"]["manual"], seeds_of("whole")
    forgotten = [run["manual"] - untuned for method in ("whole", "rank 4") for run in seeds_of(method)]
    assert max(forgotten) < 1.5 * min(forgotten)
    gentle = METHODS["whole"]["0.0001"]
    assert gentle["manual"] - untuned < 0.1 * min(forgotten)
    assert first["loss"] < gentle["loss"] < max(run["loss"] for rank in RANKS for run in seeds_of(rank))


def test_the_tuned_model_begins_every_other_answer_with_in():
    answers, untuned = (of["remembered"]["answers"].values() for of in (LONG, BEFORE))
    assert all(answer.startswith("In ") for answer in answers)
    assert not any(answer.startswith("In ") for answer in untuned)


def test_with_all_tokens_in_the_loss_fewer_answers_are_right():
    assert RECORD["losses"]["all tokens"]["right"] < SHORT["right"] - 0.1
    assert RECORD["losses"]["all tokens"]["loss"] > 2 * SHORT["loss"]
