"""Time one forward and backward pass of `pf.MultiHeadAttention` against Equinox's, in turn, in one process.

Run it as `python benchmarks/multi_head.py [repetitions]`. Ratios above 1 mean that Plainformer is faster.
"""

import sys

import equinox as eqx
import jax
from timing import compare, forward_and_gradient, one_below_the_other, one_by_one

import plainformer as pf

BATCH, SEQ_LEN, D_MODEL, NUM_HEADS = 8, 256, 384, 6


def main(repetitions: int = 25):
    ours_key, theirs_key, x_key, cotangent_key = jax.random.split(jax.random.key(0), 4)
    x = jax.random.normal(x_key, (BATCH, SEQ_LEN, D_MODEL))
    cotangent = jax.random.normal(cotangent_key, x.shape)
    ours = pf.MultiHeadAttention(D_MODEL, NUM_HEADS, key=ours_key)
    # Equinox keeps non-arrays among its leaves, which jax.jit refuses; they are put aside here.
    theirs, static = eqx.partition(eqx.nn.MultiheadAttention(NUM_HEADS, D_MODEL, key=theirs_key), eqx.is_array)

    def call_theirs(arrays, rows):
        return eqx.combine(arrays, static)(rows, rows, rows)

    runs = {
        "plainformer": (forward_and_gradient(one_below_the_other(type(ours).__call__)), ours, x, cotangent),
        "equinox": (forward_and_gradient(one_by_one(call_theirs)), theirs, x, cotangent),
    }
    compare(runs, f"batch {BATCH}, {SEQ_LEN} tokens, d_model {D_MODEL}, {NUM_HEADS} heads", repetitions)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
