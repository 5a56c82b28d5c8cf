"""Names of numbers by what learns which parts of a name go with which pixels, from the same pairs as the towers.

A name is cut into groups of letters. A regression on pixels, with a Gaussian kernel, says of each group how probably
the name has it, and of some names the likeliest is taken: its groups are there and the others are not.
"""

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

LEAST = 1e-3  # no probability is nearer to 0 or to 1
NUM_IMAGES, RIDGE = 1000, 1e-3  # images that others are compared with; weight of squared coefficients


class PartsOfNames:
    """Which of some names belongs to an image, by the groups of letters of names.

    Args:
        longest: letters of a group, at most; groups do not cross the ends of names.
        gamma: how fast the kernel falls with the squared distance of two images.
    """

    def __init__(self, longest: int, gamma: float):
        self.cutter = CountVectorizer(analyzer="char_wb", ngram_range=(1, longest), binary=True)
        kernel = Nystroem(gamma=gamma, n_components=NUM_IMAGES, random_state=0)
        self.regression = make_pipeline(kernel, Ridge(RIDGE))

    def fit(self, images: np.ndarray, names: list[str]):
        """Learn from images and their names."""
        groups = self.cutter.fit_transform(names).toarray()
        self.regression.fit(images.reshape(len(images), -1), groups)
        return self

    def named(self, images: np.ndarray, names: list[str]) -> np.ndarray:
        """The place of the likeliest of some names for each image."""
        chances = np.clip(self.regression.predict(images.reshape(len(images), -1)), LEAST, 1 - LEAST)
        has = self.cutter.transform(names).toarray()
        return (np.log(chances) @ has.T + np.log(1 - chances) @ (1 - has).T).argmax(axis=1)
