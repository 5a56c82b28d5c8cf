"""Training by PyTorch's `nn.Transformer`, eager, as one would write it there; its weights then write in our model."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

import plainformer as pf
from benchmarks.multi30k import LABEL_SMOOTHING, Corpus, Found, batches_of, new_training, write
from benchmarks.steps import torch_optimiser
from benchmarks.torch_seq2seq import TorchSeq2Seq, with_weights_of


def tensors_of(batch) -> tuple[torch.Tensor, ...]:
    """Sources and where they are padding, inputs, and targets, -100 where they are padding."""
    source, is_source, inputs, targets, is_target = (torch.tensor(np.asarray(array)) for array in batch)
    return source.long(), ~is_source, inputs.long(), torch.where(is_target, targets, -100).long()


def train_and_write(corpus: Corpus, num_steps: int, seed: int) -> Found:
    """The same as for ours."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    batch_at, training = batches_of(corpus, seed), new_training("PyTorch", num_steps, seed)
    batches = [tensors_of(batch_at(step)) for step in range(num_steps)]
    rates = np.asarray(pf.training.learning_rate_schedule(training)(jnp.arange(num_steps))).tolist()
    start = time.process_time()
    model = TorchSeq2Seq(corpus.config)
    train(model, batches, rates, training)
    seconds = time.process_time() - start
    model.eval()
    ours = with_weights_of(model, pf.Seq2Seq(corpus.config, key=jax.random.key(0)))
    sources, is_padding, inputs, _ = batches[0]
    with torch.inference_mode():
        expected = model(sources, is_padding, inputs).numpy()
    source, is_source, inputs, _, is_target = batch_at(0)
    np.testing.assert_allclose(ours(source, inputs, is_source)[is_target], expected[np.asarray(is_target)], atol=1e-3)
    return write(ours, corpus, seconds)


def train(model: TorchSeq2Seq, batches: list, rates: list[float], training: pf.TrainingConfig) -> None:
    """A step on each batch, at its learning rate."""
    optimiser = torch_optimiser(model, training)
    model.train()
    for (*inputs, targets), rate in zip(batches, rates, strict=True):
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad(set_to_none=True)
        logits = model(*inputs)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), label_smoothing=LABEL_SMOOTHING)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm)
        optimiser.step()
        loss.item()  # as ours is read, too
