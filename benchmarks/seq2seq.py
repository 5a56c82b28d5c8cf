"""The encoder–decoder: training steps against PyTorch's `nn.Transformer`, writing against `transformers`' Marian."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

import plainformer as pf
from benchmarks.hardware import use_all_cores
from benchmarks.report import Goal, Section, Settings, say, table
from benchmarks.steps import against, our_training, torch_training
from benchmarks.timing import in_turn, milliseconds, ratios
from benchmarks.torch_seq2seq import TorchSeq2Seq, marian
from benchmarks.weights import noisy


def new_config(*sizes: int, **blocks) -> pf.Seq2SeqConfig:
    """Vocabulary, longest target and longest source; and the blocks of both halves."""
    stack = pf.StackConfig(num_heads=4, **blocks)
    return pf.Seq2SeqConfig(*sizes, start_token=0, stop_token=1, encoder=stack, decoder=stack)


# The size of the chapter's translator of dates, and a larger one; with the number of pairs in a batch.
TRAINED = {
    "2 + 2 × 64": (new_config(95, 11, 40, d_model=64, num_layers=2), 64),
    "4 + 4 × 256": (new_config(4000, 48, 48, d_model=256, num_layers=4), 16),
}
CALLS = {"2 + 2 × 64": 10, "4 + 4 × 256": 3}
WRITER = new_config(4000, 256, 256, d_model=256, num_layers=4, norm_placement="post")
NEW_TOKENS = 64
# How many sources at once, and how long they are; several are of unequal length, the longest as long as this.
SOURCES = [(1, 16), (1, 64), (1, 256), (16, 64)]


def new_pairs(config: pf.Seq2SeqConfig, num_pairs: int):
    """A padded batch; sources and targets of a half to all of the length that fits."""
    random = np.random.default_rng(0)

    def text(longest):
        return random.integers(2, config.vocab_size, random.integers(longest // 2, longest + 1)).tolist()

    pairs = [(text(config.source_len), text(config.context_len - 1)) for _ in range(num_pairs)]
    return pf.translation_batch(pairs, config, source_len=config.source_len, target_len=config.context_len)


def steps(config: pf.Seq2SeqConfig, num_pairs: int) -> dict:
    """The three variants by name, not yet run."""
    batch = new_pairs(config, num_pairs)
    runs = {"Plainformer": our_training(pf.Seq2Seq(config, key=jax.random.key(0)), pf.translation_loss, batch)[0]}
    source, is_source, inputs, targets, is_target = (torch.tensor(np.asarray(array)) for array in batch)
    targets = torch.where(is_target, targets, -100).long()
    for compiled in (False, True):
        torch.manual_seed(0)
        theirs = TorchSeq2Seq(config)

        def loss_of(source, is_padding, inputs, targets, theirs=theirs):
            return F.cross_entropy(theirs(source, is_padding, inputs).flatten(0, 1), targets.flatten())

        tensors = (source.long(), ~is_source, inputs.long(), targets)
        name = f"PyTorch, {'compiled' if compiled else 'eager'}"
        runs[name] = torch_training(theirs, loss_of, tensors, compiled)
    return runs


def new_writer() -> pf.Seq2Seq:
    model = noisy(pf.Seq2Seq(WRITER, key=jax.random.key(0)))
    table = model.stack.scheme.table
    # Large positions, or it would write one token all the time.
    return eqx.tree_at(
        lambda model: model.stack.scheme.table, model, 2 * jax.random.normal(jax.random.key(2), table.shape)
    )


def writers(model: pf.Seq2Seq, theirs, num_sources: int, source_len: int) -> dict:
    """Functions that read the same sources and write targets greedily, ours and theirs, and return their tokens."""
    random = np.random.default_rng(0)
    lengths = np.linspace(source_len, source_len // 2, num_sources).astype(int)
    ids, is_token = pf.data.pad_texts([random.integers(2, WRITER.vocab_size, length).tolist() for length in lengths])
    sources = None if num_sources == 1 else is_token
    their_ids, their_mask = torch.tensor(np.asarray(ids)).long(), torch.tensor(np.asarray(is_token)).long()
    start = [[WRITER.start_token]] * num_sources

    def ours():
        found = pf.generate(model.condition_on(jnp.asarray(ids), sources), start, NEW_TOKENS, temperature=0)
        return [each.tokens for each in found]

    def marians():
        with torch.inference_mode():
            found = theirs.generate(
                their_ids, attention_mask=their_mask, max_new_tokens=NEW_TOKENS, do_sample=False, num_beams=1
            )
        return found[:, 1:].tolist()

    return {"Plainformer": ours, "Marian": marians}


def writing(settings: Settings) -> tuple[str, list[Goal]]:
    model = new_writer()
    theirs = marian(model)
    rows, goals, lines = [], [], []
    for num_sources, source_len in SOURCES:
        label = f"{num_sources} × {source_len}"
        say(f"writing, {label} tokens of source")
        runs = writers(model, theirs, num_sources, source_len)
        ours, marians = (run() for run in runs.values())
        same = sum(mine == other for mine, other in zip(ours, marians, strict=True))
        lines.append(
            f"{label}: {same} of {num_sources} texts the same, {len({*ours[0]})} different tokens in the first."
        )
        times = in_turn(runs, settings.rounds)
        ms = [milliseconds([second / NEW_TOKENS for second in times[name]], 2) for name in runs]
        ratio = ratios(times["Marian"], times["Plainformer"])
        rows.append([label, *ms, ratio.show(2)])
        goals.append(Goal(f"Translation of {label} tokens: share of Marian's speed", ratio.middle, "at least", 1))
    note = (
        f"Greedy, with a cache, {NEW_TOKENS} tokens for each source, reading it included; 4 + 4 blocks, 256 wide, "
        f"vocabulary {WRITER.vocab_size:,}, the same weights. Sources × tokens of the longest; several are of unequal "
        "length."
    )
    head = ["sources", "ours, ms per step", "Marian, ms per step", "Marian / ours"]
    return "\n\n".join(["### Writing against Marian", note, table(head, rows), "\n".join(lines)]), goals


def seq2seq(settings: Settings) -> Section:
    use_all_cores()
    parts, goals = [], []
    for label, (config, num_pairs) in TRAINED.items():
        title = (
            f"{label}, sources of {config.source_len}, targets of {config.context_len} tokens, "
            f"vocabulary {config.vocab_size:,}, batch {num_pairs}"
        )
        part, goal = against(f"Seq2seq step {label}", title, steps(config, num_pairs), settings.rounds, CALLS[label])
        parts.append(part)
        goals.append(goal)
    part, of_writing = writing(settings)
    return Section("The encoder–decoder", "\n\n".join([*parts, part]), [*goals, *of_writing])
