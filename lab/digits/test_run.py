"""What the encoder of an image and a word makes of half of its input."""

import numpy as np

import plainformer as pf
from lab.digits import run as digits_run


def test_with_either_part_hidden_it_is_hardly_better_than_always_the_same_answer():
    found = pf.data.load_record("digits")
    right, answered = digits_run.right_about_words(found), found["image and word"]
    same = max(np.bincount(right)) / len(right)
    both, *hidden = (digits_run.share(answered[part], right) for part in ("both", "image hidden", "word hidden"))
    assert max(hidden) < same + 0.01 < same + 0.3 < both
