"""What a family of models is: how its configuration reads, and its table of names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from plainformer.models.config import StackConfig
from plainformer.pretrained.names import Line

# Hugging Face's names of activations, and ours.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
    "quick_gelu": "quick_gelu",
    "relu2": "squared_relu",
}
GATED = {"silu": "swiglu", "gelu": "geglu", "gelu_tanh": "geglu_tanh"}


@dataclass(frozen=True)
class Head:
    """One of the models of a family.

    Args:
        model_class: our class.
        read_config: our configuration of a complete one of theirs.
        write_config: theirs, of a model of ours.
        lines: the table of names, for a complete configuration of theirs.
    """

    model_class: type
    read_config: Callable[[dict], Any]
    write_config: Callable[[Any], dict]
    lines: Callable[[dict], Sequence[Line]]


@dataclass(frozen=True)
class Family:
    """Models with one `model_type` of Hugging Face.

    Args:
        model_type: its name there.
        heads: by the name of its class there, such as `"GPT2LMHeadModel"`.
        defaults: what their configuration means where it says nothing.
        fixed: what must stand in it, since nothing else is read here; a tuple has several values.
        spelling: fields of their configuration that have another name in the rest of this module's file.
        prefix: what their names of tensors begin with, which some files leave out.
        extras: patterns of names of tensors which a model does not need.
        twins: tensors that may be stored twice, and the name of the one that each must be equal to.
        renamed: endings of names in old files, and what they are called now.
    """

    model_type: str
    heads: dict[str, Head]
    defaults: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    spelling: dict[str, str] = field(default_factory=dict)
    prefix: str = ""
    extras: tuple[str, ...] = ()
    twins: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)

    def head_of(self, config: dict) -> Head:
        """The model that a configuration names; the first of the family if it names none."""
        (name, *_) = config.get("architectures") or self.heads
        if name not in self.heads:
            raise ValueError(f"it is a {name}; expected {' or '.join(self.heads)}")
        return self.heads[name]

    def complete(self, config: dict) -> dict:
        """The configuration with its defaults; `ValueError` if it asks for what is not read."""
        config = self.defaults | {self.spelling.get(name, name): value for name, value in config.items()}
        for name, expected in self.fixed.items():
            allowed = expected if isinstance(expected, tuple) else (expected,)
            if (found := config.get(name, allowed[0])) not in allowed:
                raise ValueError(f"{name} is {found!r}; expected {' or '.join(map(repr, allowed))}, and nothing else")
        return config


# What the fields of a stack are called by the configurations of two lines of models.
OF_GPT = {
    "d_model": "n_embd",
    "num_layers": "n_layer",
    "num_heads": "n_head",
    "d_ff": "n_inner",
    "norm_eps": "layer_norm_epsilon",
    "activation": "activation_function",
}
OF_BERT = {
    "d_model": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "norm_eps": "layer_norm_eps",
    "activation": "hidden_act",
}


def sizes_of(theirs: dict, names: dict[str, str], *, gated: bool = False) -> dict[str, Any]:
    """The fields of our stack that their configuration has under these names."""
    found = {ours: theirs[name] for ours, name in names.items()}
    return found | {"activation": activation_of(theirs, names["activation"], gated=gated)}


def their_sizes(stack: StackConfig, names: dict[str, str]) -> dict[str, Any]:
    """The same fields of a stack, as they call them."""
    ours = vars(stack) | {"d_ff": stack.inner_width, "activation": their_activation(stack.activation)}
    return {name: ours[field] for field, name in names.items()}


def activation_of(config: dict, name: str, *, gated: bool = False) -> str:
    """Our name of an activation; `ValueError` for one that we do not have."""
    found = ACTIVATIONS.get(config[name])
    if found is None or (gated and found not in GATED):
        known = [theirs for theirs, ours in ACTIVATIONS.items() if not gated or ours in GATED]
        raise ValueError(f"{name} is {config[name]!r}; expected one of {', '.join(known)}")
    return GATED[found] if gated else found


def their_activation(ours: str) -> str:
    """Hugging Face's name of an activation of ours, gated or not."""
    plain = {gate: name for name, gate in GATED.items()}.get(ours, ours)
    return next(theirs for theirs, name in ACTIVATIONS.items() if name == plain)


def in_blocks(names: str) -> str:
    """Names of parts of a block, as they stand in a stack."""
    return " ".join(f"stack.blocks.{{}}.{name}" for name in names.split())


def labels(num_classes: int) -> dict:
    """Names of classes, as their configurations have them."""
    numbers = range(num_classes)
    return {"id2label": {str(n): f"LABEL_{n}" for n in numbers}, "label2id": {f"LABEL_{n}": n for n in numbers}}
