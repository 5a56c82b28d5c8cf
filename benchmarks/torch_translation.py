"""Training and greedy writing by PyTorch's `nn.Transformer`, eager, as one would write them there."""

import time

import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

import plainformer as pf
from benchmarks.multi30k import LABEL_SMOOTHING, Corpus, Found, batches_of, new_training
from benchmarks.steps import torch_optimiser
from benchmarks.torch_seq2seq import TorchSeq2Seq


def tensors_of(batch) -> tuple[torch.Tensor, ...]:
    """Sources and where they are padding, inputs, and targets, -100 where they are padding."""
    source, is_source, inputs, targets, is_target = (torch.tensor(np.asarray(array)) for array in batch)
    return source.long(), ~is_source, inputs.long(), torch.where(is_target, targets, -100).long()


def train_and_write(corpus: Corpus, num_steps: int, seed: int, rounds: int) -> Found:
    """The same as for ours; nothing is compiled, so that writing is timed once."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    batch_at, training = batches_of(corpus, seed), new_training(num_steps, seed)
    batches = [tensors_of(batch_at(step)) for step in range(num_steps)]
    rates = np.asarray(pf.training.learning_rate_schedule(training)(jnp.arange(num_steps))).tolist()
    start = time.process_time()
    model = TorchSeq2Seq(corpus.config)
    train(model, batches, rates, training)
    seconds = time.process_time() - start
    held_out = tensors_of(corpus.batch(corpus.validation))
    model.eval()
    with torch.inference_mode():
        validation_loss = loss_of(model, *held_out).item()
        start = time.process_time()
        written = [
            text
            for first in range(0, len(corpus.sources), 64)
            for text in greedy(model, corpus, corpus.sources[first : first + 64])
        ]
        first = {"greedy": time.process_time() - start}
    return Found(seconds, validation_loss, {"greedy": written}, first, times={})


def loss_of(model, sources, is_padding, inputs, targets, label_smoothing: float = 0.0):
    logits = model(sources, is_padding, inputs)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), label_smoothing=label_smoothing)


def train(model: TorchSeq2Seq, batches: list, rates: list[float], training: pf.TrainingConfig) -> None:
    """A step on each batch, at its learning rate."""
    optimiser = torch_optimiser(model, training)
    model.train()
    for batch, rate in zip(batches, rates, strict=True):
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(model, *batch, label_smoothing=LABEL_SMOOTHING)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm)
        optimiser.step()
        loss.item()  # as ours is read, too


def greedy(model: TorchSeq2Seq, corpus: Corpus, sources: list[list[int]]) -> list[list[int]]:
    """The likeliest token at each step, without a cache, as `nn.Transformer` has none."""
    config = corpus.config
    ids, is_token = (torch.tensor(np.asarray(array)) for array in pf.data.pad_texts(sources))
    written = torch.full((len(sources), 1), config.start_token)
    while written.shape[1] <= config.context_len and not (written == config.stop_token).any(dim=1).all():
        newest = model(ids.long(), ~is_token, written)[:, -1].argmax(dim=1)
        written = torch.cat([written, newest[:, None]], dim=1)
    texts = [ids[1:] for ids in written.tolist()]
    return [ids[: ids.index(config.stop_token)] if config.stop_token in ids else ids for ids in texts]
