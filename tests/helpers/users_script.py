"""What a user does in a notebook, in forty lines: python users_script.py FOLDER train|write."""

import itertools
import sys
from pathlib import Path

import jax
import optax

import plainformer as pf

folder, task = Path(sys.argv[1]), sys.argv[2]
text = "the cat sat on the mat; the dog sat on the log; the hen sat in the den. " * 40

if task == "train":
    bpe = pf.BytePairEncoder.train(text, 280, special=["<end>"])
    tokens = bpe.encode(text)
    stack = pf.StackConfig(d_model=32, num_layers=2, num_heads=2, position_scheme="rotary")
    model = pf.Decoder(pf.DecoderConfig(len(bpe), 16, stack=stack), key=jax.random.key(0))
    batch_at, losses = pf.data.random_windows(tokens, 16, 8), []
    held_out = pf.data.consecutive_windows(tokens[:200], 16)
    options = {
        "optimiser": optax.chain(optax.clip_by_global_norm(1.0), optax.lion(1e-3)),
        "evaluate": lambda model: {"validation_loss": pf.training.corpus_loss(model, held_out)},
        "callbacks": [lambda metrics, step: losses.append(metrics["loss"])],
        "directory": folder / "run",
    }
    for num_steps in (20, 60):  # the second one goes on where the first has ended
        batches = (batch_at(step) for step in itertools.count())
        config = pf.TrainingConfig(num_steps, checkpoint_every=20)
        model, metrics = pf.fit(model, pf.training.next_token_loss, batches, config, **options)
    assert len(losses) == len(metrics) == 60
    print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}, validation {metrics[-1]['validation_loss']:.2f}")
    pf.save_model(folder / "model.safetensors", model, tokenizer=bpe)
else:
    model, bpe = pf.load_model(folder / "model.safetensors", pf.Decoder, tokenizer=True)
    stream = pf.generate(model, "the cat", 40, temperature=0, tokenizer=bpe, stream=True)
    for text in bpe.decode_stream(stream):
        print(text, end="", flush=True)
    print()
