"""Keys and values that are expanded give what the absorbed form gives."""

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.latent import run as latent_run


def test_expanded_keys_and_values_give_what_the_absorbed_form_gives():
    stack = pf.StackConfig(**latent_run.WRITING, **latent_run.KINDS["latent"], position_scheme="rotary")
    model = pf.Decoder(pf.DecoderConfig(11, 9, stack), key=jax.random.key(0))
    expanded, tokens = latent_run.with_expanded(model), jnp.arange(6)
    found = expanded.logits(expanded.extend(tokens, expanded.make_cache())[0])
    np.testing.assert_allclose(found, expanded(tokens), rtol=1e-4, atol=1e-4)
