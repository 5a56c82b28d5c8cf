"""One training step of the vision transformer: ours against `transformers`' ViT, eager and compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F
import transformers

import plainformer as pf
from benchmarks.hardware import use_all_cores
from benchmarks.report import Section, Settings
from benchmarks.steps import against, our_training, torch_training

SMALL = pf.StackConfig(d_model=64, num_layers=3, num_heads=4)
LARGE = pf.StackConfig(d_model=384, num_layers=6, num_heads=6)
# The chapter's model on its digits, and a larger one on pictures like those of CIFAR-10; with the size of a batch.
CONFIGS = {
    "3 × 64": (pf.ViTConfig(image_size=8, patch_size=2, num_classes=10, stack=SMALL), 64),
    "6 × 384": (pf.ViTConfig(image_size=32, patch_size=4, num_classes=10, channels=3, stack=LARGE), 16),
}
CALLS = {"3 × 64": 20, "6 × 384": 2}


def new_images(config: pf.ViTConfig, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise, and a label for each."""
    random = np.random.default_rng(0)
    images = random.uniform(size=(batch_size, *config.image_size, config.channels)).astype(np.float32)
    return images, random.integers(config.num_classes, size=batch_size)


def new_vit(config: pf.ViTConfig) -> transformers.ViTForImageClassification:
    """The same model, as `transformers` has it."""
    return transformers.ViTForImageClassification(
        transformers.ViTConfig(
            image_size=config.image_size[0],
            patch_size=config.patch_size[0],
            num_channels=config.channels,
            hidden_size=config.stack.d_model,
            num_hidden_layers=config.stack.num_layers,
            num_attention_heads=config.stack.num_heads,
            intermediate_size=4 * config.stack.d_model,
            hidden_act="gelu",
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            num_labels=config.num_classes,
        )
    )


def steps(config: pf.ViTConfig, batch_size: int) -> dict:
    """The three variants by name, not yet run."""
    images, labels = new_images(config, batch_size)
    model = pf.ViT(config, key=jax.random.key(0))
    ours = pf.data.LabelledBatch(jnp.asarray(images), jnp.asarray(labels, jnp.int32))
    runs = {"Plainformer": our_training(model, pf.classification_loss, ours)[0]}
    tensors = torch.tensor(np.moveaxis(images, -1, 1)), torch.tensor(labels)
    for compiled in (False, True):
        torch.manual_seed(0)
        theirs = new_vit(config)

        def loss_of(images, labels, theirs=theirs):
            return F.cross_entropy(theirs(images).logits, labels)

        name = f"transformers, {'compiled' if compiled else 'eager'}"
        runs[name] = torch_training(theirs, loss_of, tensors, compiled)
    return runs


def vit(settings: Settings) -> Section:
    use_all_cores()
    parts, goals = [], []
    for label, (config, batch_size) in CONFIGS.items():
        height, width = config.image_size
        patches = config.grid[0] * config.grid[1]
        title = f"{label}, images of {height} × {width} × {config.channels} in {patches} patches, batch {batch_size}"
        part, goal = against(f"ViT step {label}", title, steps(config, batch_size), settings.rounds, CALLS[label])
        parts.append(part)
        goals.append(goal)
    return Section("Training step of the vision transformer", "\n\n".join(parts), goals)
