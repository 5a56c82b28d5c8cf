"""Answers to the exercise on latent attention of the chapter `modern` as readers would write them."""

import numpy as np
from exercise_checks import in_jax, in_numpy

import plainformer as pf


def scores_by(root=None, cut=None, head=None, with_shared=True, finish=None):
    """The scores of a reader who makes one head after the other, and takes some step otherwise."""

    def scores(queries, latents, rotary_keys, key_up):
        own, d_k = key_up.shape[2], queries.shape[2]
        found = []
        for number, rows in enumerate(queries):
            mine, shared = (cut or (lambda rows, own: (rows[:, :own], rows[:, own:])))(rows, own)
            lowered = mine @ key_up[number if head is None else head].T
            table = lowered @ latents.T + (shared @ rotary_keys.T if with_shared else 0)
            found.append(table / np.sqrt(d_k if root is None else root(own, latents.shape[1])))
        return (finish or (lambda table: table))(np.array(found))

    return scores


def weights(table):
    powers = np.exp(table)
    return powers / powers.sum(axis=2)[..., None]


SCORES = [
    (scores_by(root=lambda own, width: 1), "not scaled"),
    (scores_by(root=lambda own, width: width), "width of a short vector"),
    (scores_by(root=lambda own, width: own), "own columns alone"),
    (scores_by(with_shared=False), "shared columns are missing"),
    (scores_by(cut=lambda rows, own: (rows[:, -own:], rows[:, :-own])), "first columns"),
    (scores_by(head=0), "matrix of the first head"),
    (scores_by(finish=weights), "after a softmax"),
    (scores_by(finish=lambda table: np.transpose(table, (0, 2, 1))), "transposed"),
]


def by_package(queries, latents, rotary_keys, key_up):
    return pf.attention.absorbed_scores(queries, latents, rotary_keys, key_up) / queries.shape[-1] ** 0.5


RIGHT = [("absorbed", in_numpy(scores_by())), ("absorbed", in_jax(by_package))]
WRONG = [("absorbed", in_numpy(function), words) for function, words in SCORES]
