"""The vision transformer (Dosovitskiy et al., 2021), by the names of Hugging Face."""

from dataclasses import dataclass

from plainformer.models.config import StackConfig
from plainformer.models.vision import ViT, ViTConfig
from plainformer.pretrained.family import OF_BERT, Family, Head, in_blocks, labels, sizes_of, their_sizes
from plainformer.pretrained.names import SAME, First, Line, array, dense, norm


@dataclass(frozen=True)
class Kernel:
    """The kernel of a convolution, channels first, as the matrix that embeds a patch, row of pixels by row."""

    sides: tuple[int, int]

    def read(self, tensor, shapes):
        """Write the pixels of a patch one after the other."""
        return [tensor.transpose(2, 3, 1, 0).reshape(-1, tensor.shape[0])]

    def write(self, arrays):
        """Fold them into a square again."""
        return arrays[0].reshape(*self.sides, -1, arrays[0].shape[1]).transpose(3, 2, 0, 1)


def _lines(theirs: dict) -> list[Line]:
    """The table of names."""
    block, patches = "vit.encoder.layer.{}", "vit.embeddings.patch_embeddings.projection"
    return [
        Line(patches, "encoder.embedding", [(".weight", ".weight", Kernel(_sides(theirs))), (".bias", ".bias", SAME)]),
        array("vit.embeddings.cls_token", "encoder.class_token", First(2)),
        array("vit.embeddings.position_embeddings", "encoder.stack.scheme.table", First(1)),
        norm(f"{block}.layernorm_before", _inside("attention_norm")),
        dense(f"{block}.attention.attention.query", _inside("attention.query")),
        dense(f"{block}.attention.attention.key", _inside("attention.key")),
        dense(f"{block}.attention.attention.value", _inside("attention.value")),
        dense(f"{block}.attention.output.dense", _inside("attention.output")),
        norm(f"{block}.layernorm_after", _inside("feed_forward_norm")),
        dense(f"{block}.intermediate.dense", _inside("feed_forward.up")),
        dense(f"{block}.output.dense", _inside("feed_forward.down")),
        norm("vit.layernorm", "encoder.stack.final_norm"),
        dense("classifier", "output"),
    ]


def _inside(name: str) -> str:
    return f"encoder.{in_blocks(name)}"


def _sides(theirs: dict) -> tuple[int, int]:
    """Height and width of a patch."""
    size = theirs["patch_size"]
    return (size, size) if isinstance(size, int) else tuple(size)


def _read(theirs: dict) -> ViTConfig:
    """Our configuration."""
    return ViTConfig(
        image_size=theirs["image_size"],
        patch_size=theirs["patch_size"],
        num_classes=len(theirs.get("id2label") or range(2)),
        channels=theirs["num_channels"],
        stack=StackConfig(**sizes_of(theirs, OF_BERT)),
    )


def _write(model: ViT) -> dict:
    """Theirs."""
    ours = model.config
    return {
        "image_size": ours.image_size,
        "patch_size": ours.patch_size,
        "num_channels": ours.channels,
        **their_sizes(ours.stack, OF_BERT),
        **labels(ours.num_classes),
    }


FAMILY = Family(
    "vit",
    {"ViTForImageClassification": Head(ViT, _read, _write, _lines)},
    defaults={"layer_norm_eps": 1e-12, "hidden_act": "gelu", "num_channels": 3},
    fixed={"qkv_bias": True},
    prefix="vit.",
    extras=("vit.pooler.*",),
)
