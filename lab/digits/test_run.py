"""What the encoder of an image and a word makes of half of its input, and what is named after 289 digits."""

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import plainformer as pf
from lab.digits import few, run as digits_run
from lab.vision.run import moved_copies


def test_with_either_part_hidden_it_is_hardly_better_than_always_the_same_answer():
    found = pf.data.load_record("digits")
    right, answered = digits_run.right_about_words(found), found["image and word"]
    same = max(np.bincount(right)) / len(right)
    both, *hidden = (digits_run.share(answered[part], right) for part in ("both", "image hidden", "word hidden"))
    assert max(hidden) < same + 0.01 < same + 0.3 < both


def few_moved(name: str) -> list[float]:
    """The shares that one of those with 289 moved digits names, a number for each seed."""
    labels = pf.data.digits().test.labels
    return [
        digits_run.share(each, labels) for each in pf.data.load_record("digits")[digits_run.OF_FEW][name]["answers"]
    ]


def test_with_289_moved_digits_the_convolutional_network_is_ahead_of_the_transformer_and_this_of_the_machines():
    ours, machines = few_moved("vision transformer"), ("support-vector machine", "nearest neighbours")
    assert len(ours) == len(few_moved("convolutional network")) == 3
    assert min(few_moved("convolutional network")) > max(ours)
    assert min(ours) > max(few_moved(name)[0] for name in machines)


def test_the_rates_with_289_digits_lie_inside_the_grid():
    found = pf.data.load_record("digits")[digits_run.OF_FEW]
    for name in few.NETWORKS:
        rates = found[name]["rates"]
        assert list(map(float, rates)) == list(few.RATES)
        assert rates[f"{found[name]['rate']:g}"] == max(rates.values())
        assert few.RATES[0] < found[name]["rate"] < few.RATES[-1]


def test_the_nearest_neighbour_with_moved_copies_answers_as_recorded():
    training, test = pf.data.digits()
    recorded = pf.data.load_record("digits")[digits_run.OF_FEW]["nearest neighbours"]
    setting = recorded["setting"]
    copies = moved_copies(few.few(training), few.MOVES[setting["moves"]])
    machine = KNeighborsClassifier(setting["neighbours"], weights="distance")
    found = machine.fit(few.flat(copies), np.asarray(copies.labels)).predict(few.flat(test))
    assert "".join(map(str, found.tolist())) == recorded["answers"][0]
