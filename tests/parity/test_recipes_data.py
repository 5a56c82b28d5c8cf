"""Packed documents: the same logits as a Llama that is told where each begins by `position_ids`."""

import numpy as np
import torch
import transformers
from closeness import assert_close
from flat import decoder_config
from test_families import CONTEXT, KEY, MODERN, MODERN_THEIRS, SIZES, THEIRS, VOCAB, llamas, rope
from torch_parameters import redrawn

import plainformer as pf


def test_packed_documents_are_those_of_a_llama_with_positions_that_begin_anew():
    theirs = redrawn(
        transformers.LlamaForCausalLM(transformers.LlamaConfig(**THEIRS, **MODERN_THEIRS, rope_parameters=rope()))
    )
    fields = {**SIZES, **MODERN, "activation": "swiglu"}
    ours = pf.training.with_arrays(pf.Decoder(decoder_config(VOCAB, CONTEXT, **fields), key=KEY), llamas(theirs))
    random = np.random.default_rng(5)
    packed = pf.data.pack([random.integers(VOCAB, size=size) for size in (4, 3, 5)], window_len=CONTEXT, cut=True)
    row, documents = packed.inputs[:1], packed.documents[:1]
    positions = [[n - row_.index(number) for n, number in enumerate(row_)] for row_ in documents.tolist()]
    with torch.no_grad():
        expected = theirs(torch.tensor(np.array(row)), position_ids=torch.tensor(positions), use_cache=False).logits
    assert_close(ours(row, documents), expected.numpy())
    assert np.abs(np.asarray(ours(row)) - expected.numpy()).max() > 0.01
