"""Languages told by a linear map alone: of the mean of what an encoder gives, which stays as it is, or of its table."""

import equinox as eqx
import jax
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import plainformer as pf
from lab.encoder.run import ENCODER

STRENGTHS = [0.3, 1, 3, 10, 30, 100]  # C of logistic regression, chosen on parts of what is learned from
WAYS = ("frozen encoder", "frozen table", "frozen, untrained encoder")

_rows = eqx.filter_jit(lambda encoder, ids, is_token: encoder(ids, is_token)[:, ENCODER.use_class_token :])


def means(way: str, encoder: pf.Encoder, seed: int, names) -> np.ndarray:
    """A vector for each name, `(names, d_model)`: the mean over its letters."""
    if way == "frozen table":
        rows = encoder.embedding.weight[names.ids]
    else:
        reader = encoder if way == "frozen encoder" else pf.Encoder(ENCODER, key=jax.random.key(seed))
        rows = _rows(reader, names.ids, names.is_token)
    return np.asarray(pf.mean_pool(rows, names.is_token))


def right_by(way: str, encoder: pf.Encoder, seed: int, learning, rows: np.ndarray, test) -> np.ndarray:
    """Which names of the test a linear map of the means tells rightly, after the labels of some rows."""
    known, asked = means(way, encoder, seed, learning)[rows], means(way, encoder, seed, test)
    map_of = GridSearchCV(LogisticRegression(max_iter=2000), {"C": STRENGTHS}, cv=3)
    return map_of.fit(known, learning.labels[rows]).predict(asked) == test.labels
