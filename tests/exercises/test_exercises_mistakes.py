"""Right answers pass, and the mistakes that the exercises know are made by readers and named.

The answers in `readers_answers_*` are written as readers would, not with the exercises' own steps.
"""

import re
from functools import partial

import numpy as np
import pytest
import readers_answers_blocks
import readers_answers_decoder
import readers_answers_dynamics
import readers_answers_efficiency
import readers_answers_encoder
import readers_answers_multi_head
import readers_answers_notation
import readers_answers_positions
import readers_answers_relations
import readers_answers_self_attention
import readers_answers_seq2seq
import readers_answers_tokens
import readers_answers_vision
from exercise_checks import complaint, in_float64

from plainformer.exercises import check
from plainformer.exercises.registry import exercise_modules, load_exercise
from plainformer.exercises.runner import as_argument

READERS = [
    readers_answers_notation,
    readers_answers_tokens,
    readers_answers_relations,
    readers_answers_self_attention,
    readers_answers_multi_head,
    readers_answers_blocks,
    readers_answers_positions,
    readers_answers_decoder,
    readers_answers_encoder,
    readers_answers_seq2seq,
    readers_answers_vision,
    readers_answers_efficiency,
    readers_answers_dynamics,
]
RIGHT = [answer for reader in READERS for answer in reader.RIGHT]
WRONG = [answer for reader in READERS for answer in reader.WRONG]

# What the first case has to tell apart, and what is said of a right answer.
TRIED_ON = {
    "alibi": (2, "4 checks on 4 heads, 5 tokens"),
    "attend": (4, "7 checks on 5 queries, 7 keys"),
    "attend_columns": (4, "3 checks on queries (3, 5), keys (3, 7)"),
    "beam_step": (3, "5 checks on 3 beams, a vocabulary of 5, width 2"),
    "cayley": (1, "4 checks on scores (5, 5)"),
    "class_token": (4, "4 checks on patches (3, 5, 4), a table (6, 4)"),
    "cross_attention": (5, "5 checks on a target (4, 6), a source (7, 6)"),
    "cross_entropy": (2, "4 checks on 5 tokens, a vocabulary of 7"),
    "cut_patches": (5, "5 checks on images such as (6, 12, 5), patches of 2 x 3 pixels"),
    "encode": (0, "6 checks on texts such as 'banana nana bananana'"),
    "feed_forward": (3, "3 checks on 5 tokens, 8 hidden"),
    "gather_messages": (2, "4 checks on values (5, 3), a graph (5, 5)"),
    "gradient_step": (3, "4 checks on 5 logits, 7 targets"),
    "kernel_smooth": (5, "4 checks on queries (3, 2), keys (5, 2), values (5, 4)"),
    "label_smoothing": (3, "4 checks on 5 tokens, a vocabulary of 7, epsilon 0.1"),
    "layer_norm": (3, "5 checks on 5 tokens, 4 features"),
    "linear_columns": (3, "6 checks on tokens (3, 5), stored matrix (4, 3)"),
    "mask_tokens": (2, "5 checks on 15 tokens, a vocabulary of 17"),
    "masked_token_loss": (2, "5 checks on 8 tokens, a vocabulary of 6"),
    "merge_softmax": (3, "4 checks on out (5, 3) and (5, 3), largest (5, 1) and (5, 1), total (5, 1) and (5, 1)"),
    "mean_pool": (3, "5 checks on 3 texts, 6 rows each, of width 4"),
    "multi_head": (5, "4 checks on 5 tokens, 3 heads"),
    "next_token_loss": (2, "4 checks on 6 tokens, a vocabulary of 7"),
    "pairs": (2, "5 checks on 23 ids, rows of 4"),
    "pre_norm_block": (2, "4 checks on 5 tokens, 4 features"),
    "rollout": (3, "4 checks on 3 layers of 2 heads, 5 tokens"),
    "rotary": (2, "5 checks on 5 rows, 4 columns"),
    "scores": (3, "3 checks on 5 queries, 7 keys"),
    "shift": (2, "6 checks on 3 positions, 4 columns"),
    "sinusoid": (2, "5 checks on 5 positions, 4 columns"),
    "speculative_outcome": (1, "3 checks on probs (3,), draft_probs (3,)"),
    "split_heads": (3, "4 checks on 5 tokens, 6 heads"),
    "teacher_forcing": (4, "5 checks on a target of 5 tokens, a row of 9"),
    "temperature": (2, "5 checks on 6 tokens, temperature 0.5"),
    "top_p": (2, "5 checks on 6 tokens, p = 0.72"),
    "triangular_step": (2, "3 checks on rows (5, 4), matrix (4, 4)"),
    "weights": (3, "7 checks on 5 queries, 7 keys"),
    "windows": (3, "5 checks on 23 numbers, windows of 6"),
}
# These know all mistakes of another exercise, made by readers there, and their own.
BUILT_ON = {"weights": "scores", "attend": "weights", "multi_head": "attend"}

each_exercise = pytest.mark.parametrize("name", exercise_modules())


@pytest.mark.parametrize(("name", "function"), RIGHT)
def test_check_passes_right_answers(name, function, capsys):
    check(name, function)
    assert capsys.readouterr().out == f"{name}: passed {TRIED_ON[name][1]}\n"


@pytest.mark.parametrize(("name", "function", "words"), WRONG)
def test_check_names_the_readers_mistake(name, function, words):
    first = complaint(name, function).splitlines()[0]
    assert re.search(words, first)
    assert "; and " not in first


@each_exercise
def test_no_two_mistakes_are_confused(name):
    """Each variant of a mistake is called by its own name, and not by that of another that looks alike."""
    exercise = load_exercise(name)
    for mistake, steps in ((each, variant) for each in exercise.mistakes for variant in each.variants):
        found = complaint(name, in_float64(partial(exercise.answer, **steps)))
        assert found.startswith(f"{name}: {mistake.diagnosis}.\nWith\n")
        assert found.endswith(f"\n{mistake.hint}")
        assert mistake.hint.endswith("?")


@each_exercise
def test_every_mistake_is_made_by_a_reader_here(name):
    """A wrong answer is an exercise, a function, and words that only one mistake's message has."""
    mistakes = [mistake.diagnosis for mistake in load_exercise(name).mistakes]
    made = [[says for says in mistakes if re.search(words, says)] for where, _, words in WRONG if where == name]
    assert all(len(says) == 1 for says in made)
    known = {mistake.diagnosis for mistake in load_exercise(BUILT_ON[name]).mistakes} if name in BUILT_ON else set()
    assert {says for (says,) in made} | known >= set(mistakes)


@each_exercise
def test_results_of_mistakes_differ(name):
    """On the inputs together, the results of any two mistakes differ, and each from the right one."""
    exercise = load_exercise(name)
    mistakes = [("right", [{}]), *((mistake.diagnosis, mistake.variants) for mistake in exercise.mistakes)]
    results = [(says, results_of(exercise, steps)) for says, variants in mistakes for steps in variants]
    for i, (says, one) in enumerate(results):
        for says_too, other in results[i + 1 :]:
            if says != says_too:
                assert not all(is_same(exercise, a, b) for a, b in zip(one, other, strict=True)), (says, says_too)


def results_of(exercise, steps):
    results = []
    for case in exercise.cases:
        try:
            with np.errstate(all="ignore"):
                results.append(exercise.answer(**case.inputs, **steps))
        except (ValueError, LookupError):
            results.append(None)
    return results


def is_same(exercise, one, other):
    if one is None or other is None:
        return one is other
    return exercise.is_same(one, other)


@each_exercise
def test_examples_say_what_a_right_answer_returns(name):
    """The last right answer of each exercise is the package's, where it has one."""
    exercise = load_exercise(name)
    for inputs in exercise.examples:
        found = dict(RIGHT)[name](*(as_argument(value) for value in inputs.values()))
        found = np.stack(found) if isinstance(found, tuple) and exercise.parts else found
        np.testing.assert_allclose(found, exercise.answer(**inputs), rtol=1e-5, atol=1e-5)


@each_exercise
def test_inputs_tell_sizes_apart(name):
    """What two axes share, a mistake may hide behind: no two sizes or numbers of the first case are alike."""
    inputs = load_exercise(name).cases[0].inputs.values()
    sizes = {
        size for value in inputs for size in np.shape(value) or ([value] if isinstance(value, int | float) else [])
    }
    assert len(sizes) == TRIED_ON[name][0]
