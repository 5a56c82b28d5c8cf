"""Models that others have published, as configurations of the package, with the numbers that they name."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax

from plainformer.attention.latent import LatentConfig
from plainformer.blocks.experts import ExpertsConfig
from plainformer.checks import Positive, checked
from plainformer.models.accounting import count_parameters
from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder, DecoderConfig

Make = Callable[[], DecoderConfig]


class Published(NamedTuple):
    """A model that others have published.

    Args:
        make: what makes its configuration, when that is asked for, so that the package is imported quickly.
        year: when it was published.
        source: the report of it, by its key in the book's bibliography.
        parameters: how many it has, in the digits that are published.
        lacks: what of it changes no count, and stands in no field of the configuration.
    """

    make: Make
    year: int
    source: str
    parameters: str
    lacks: str = ""

    @property
    def config(self) -> DecoderConfig:
        """Its sizes and choices, for a `Decoder`."""
        return self.make()


def _decoder(vocab_size: int, context_len: int, tied: bool, fields: dict[str, Any]) -> DecoderConfig:
    experts, latent = fields.get("experts"), fields.get("latent")
    parts: dict[str, Any] = {
        "experts": experts and ExpertsConfig(**experts),
        "latent": latent and LatentConfig(**latent),
    }
    return DecoderConfig(vocab_size, context_len, StackConfig(**fields | parts), tied_embedding=tied)


def _gpt2(d_model: int, num_layers: int, num_heads: int) -> Make:
    sizes = {"d_model": d_model, "num_layers": num_layers, "num_heads": num_heads}
    return functools.partial(_decoder, 50_257, 1024, True, {**sizes, "activation": "gelu_tanh"})


def _like_llama(vocab_size: int, context_len: int, *, tied: bool = False, **fields: Any) -> Make:
    """What makes a decoder with what all have in common that came after Llama."""
    common: dict[str, Any] = {"norm": "rms", "activation": "swiglu", "use_bias": False, "position_scheme": "rotary"}
    return functools.partial(_decoder, vocab_size, context_len, tied, common | fields)


def _sizes(d_model: int, num_layers: int, num_heads: int, num_kv_heads: int | None, d_k: int, d_ff: int) -> dict:
    heads = {"num_heads": num_heads, "num_kv_heads": num_kv_heads, "d_k": d_k, "d_v": d_k}
    return {"d_model": d_model, "num_layers": num_layers, "d_ff": d_ff, **heads}


def _gpt_oss(num_layers: int, num_experts: int, parameters: str) -> Published:
    make = _like_llama(
        201_088,
        131_072,
        experts={"num_experts": num_experts, "per_token": 4, "width": 2880},
        window=128,
        pattern=("window", "full"),
        sinks=True,
        rope_theta=150_000.0,
        **_sizes(2880, num_layers, 64, 8, 64, 2880) | {"use_bias": True},
    )
    lacks = "biases of the experts; limits on what enters their gates; YaRN"
    return Published(make, 2025, "openai2025", parameters, lacks)


_LLAMA3: dict[str, Any] = {"rope_theta": 500_000.0}
_QWEN3: dict[str, Any] = {"qk_norm": True, "norm_eps": 1e-6, "rope_theta": 1e6}
_OLMO2: dict[str, Any] = {"norm_placement": "output", "qk_norm": True, "qk_norm_over": "row"}
_OLMO2 |= {"norm_eps": 1e-6, "rope_theta": 500_000.0}
_GEMMA3: dict[str, Any] = {"norm_placement": "sandwich", "qk_norm": True, "activation": "geglu_tanh"}
_GEMMA3 |= {"norm_eps": 1e-6, "rope_theta": 1e6, "pattern": (*5 * ("window",), "full")}
_DEEPSEEK: dict[str, Any] = {"num_experts": 256, "per_token": 8, "width": 2048, "shared": 1, "dense_layers": 3}
_DEEPSEEK |= {"scores": "sigmoid", "scale": 2.5, "moved_bias": True, "groups": 8, "chosen_groups": 4}
_TWO_BASES = "the root of d_model that multiplies embeddings; blocks with a window turn by a base of 10,000"

PUBLISHED: dict[str, Published] = {
    "GPT-2 small": Published(_gpt2(768, 12, 12), 2019, "radford2019", "124M"),
    "GPT-2 medium": Published(_gpt2(1024, 24, 16), 2019, "radford2019", "355M"),
    "GPT-2 large": Published(_gpt2(1280, 36, 20), 2019, "radford2019", "774M"),
    "GPT-2 XL": Published(_gpt2(1600, 48, 25), 2019, "radford2019", "1558M"),
    "Mistral 7B": Published(
        _like_llama(32_000, 32_768, window=4096, **_sizes(4096, 32, 32, 8, 128, 14_336)),
        2023,
        "jiang2023",
        "7241732096",
    ),
    "Mixtral 8x7B": Published(
        _like_llama(
            32_000,
            32_768,
            experts={"num_experts": 8, "per_token": 2, "width": 14_336},
            rope_theta=1e6,
            **_sizes(4096, 32, 32, 8, 128, 14_336),
        ),
        2024,
        "jiang2024",
        "46702792704",
    ),
    "Llama 3 8B": Published(
        _like_llama(128_256, 8192, **_sizes(4096, 32, 32, 8, 128, 14_336), **_LLAMA3),
        2024,
        "grattafiori2024",
        "8030261248",
    ),
    "Llama 3 70B": Published(
        _like_llama(128_256, 8192, **_sizes(8192, 80, 64, 8, 128, 28_672), **_LLAMA3),
        2024,
        "grattafiori2024",
        "70553706496",
    ),
    "OLMo 2 7B": Published(
        _like_llama(100_352, 4096, **_sizes(4096, 32, 32, None, 128, 11_008), **_OLMO2),
        2024,
        "olmo2024",
        "7298617344",
    ),
    "DeepSeek-V3": Published(
        _like_llama(
            129_280,
            163_840,
            latent={"width": 512, "rotary_width": 64, "query_width": 1536},
            experts=_DEEPSEEK,
            norm_eps=1e-6,
            **_sizes(7168, 61, 128, None, 192, 18_432) | {"d_v": 128},
        ),
        2024,
        "deepseek2024v3",
        "671B",
        "pairs of rotary columns side by side, and YaRN; a block that predicts one token further, for training",
    ),
    "SmolLM2 135M": Published(
        _like_llama(49_152, 8192, tied=True, rope_theta=1e5, **_sizes(576, 30, 9, 3, 64, 1536)),
        2025,
        "allal2025",
        "134515008",
    ),
    "Gemma 3 1B": Published(
        _like_llama(262_144, 32_768, tied=True, window=512, **_sizes(1152, 26, 4, 1, 256, 6912), **_GEMMA3),
        2025,
        "gemma2025",
        "999885952",
        _TWO_BASES,
    ),
    "Gemma 3 4B": Published(
        _like_llama(262_144, 131_072, tied=True, window=1024, **_sizes(2560, 34, 8, 4, 256, 10_240), **_GEMMA3),
        2025,
        "gemma2025",
        "3880099328",
        f"{_TWO_BASES}; the encoder of images",
    ),
    "Qwen3 0.6B": Published(
        _like_llama(151_936, 40_960, tied=True, **_sizes(1024, 28, 16, 8, 128, 3072), **_QWEN3),
        2025,
        "yang2025qwen3",
        "596049920",
    ),
    "Qwen3 8B": Published(
        _like_llama(151_936, 40_960, **_sizes(4096, 36, 32, 8, 128, 12_288), **_QWEN3),
        2025,
        "yang2025qwen3",
        "8190735360",
    ),
    "Qwen3 30B-A3B": Published(
        _like_llama(
            151_936,
            40_960,
            experts={"num_experts": 128, "per_token": 8, "width": 768},
            **_sizes(2048, 48, 32, 4, 128, 6144),
            **_QWEN3,
        ),
        2025,
        "yang2025qwen3",
        "30532122624",
    ),
    "gpt-oss 20b": _gpt_oss(24, 32, "20914757184"),
    "gpt-oss 120b": _gpt_oss(36, 128, "116829156672"),
}


@checked
def block_parameters(
    d_model: Positive, num_heads: Positive, num_kv_heads: Positive, d_k: Positive, d_ff: Positive
) -> int:
    r"""Count the learned numbers of a block as most models since Llama have it.

    Implements `eq-modern-block-parameters`. Heads of keys and of values are equally wide, the network has a gate, there
    are two norms and no bias.

    Example:
        Of the 8 billion numbers of Llama 3 8B, 32 blocks hold seven.

        >>> 32 * pf.models.block_parameters(4096, num_heads=32, num_kv_heads=8, d_k=128, d_ff=14336)
        6979584000
    """
    attention = 2 * d_model * num_heads * d_k + 2 * d_model * num_kv_heads * d_k
    network = 3 * d_model * d_ff
    return attention + network + 2 * d_model


@checked
def planned_parameters(config: DecoderConfig) -> int:
    r"""Count the learned numbers of the decoder that a configuration makes, without their memory.

    Implements `eq-blocks-parameters` for shapes alone.

    Example:
        >>> pf.models.planned_parameters(pf.models.PUBLISHED["GPT-2 small"].config)
        124439808
    """
    return count_parameters(eqx.filter_eval_shape(Decoder, config, key=jax.random.key(0)))


# What `shrunk` divides, by the name of the field.
_WIDTHS = ("d_model", "d_k", "d_v", "d_ff", "width", "rotary_width", "query_width", "window")


@checked
def shrunk(config: DecoderConfig, width: Positive = 4, depth: Positive = 6) -> DecoderConfig:
    r"""Return a smaller configuration with the same choices, by default about a hundredth of its learned numbers.

    All widths, windows and the context are divided by `width`, and so is the number of blocks by `depth`, down to one
    block of each kind. The vocabulary is divided by both, so that the table of embeddings shrinks as blocks do. Heads
    and experts stay as many as they are.

    Raises:
        ValueError: if a width is not a multiple of `width`.

    Example:
        >>> small = pf.models.shrunk(pf.models.PUBLISHED["SmolLM2 135M"].config)
        >>> small.stack.d_model, small.stack.num_layers, pf.models.planned_parameters(small)
        (144, 5, 1402416)
    """
    stack = _divided(config.stack, width)
    turn = len(stack.pattern or (None,)) + (0 if stack.experts is None else stack.experts.dense_layers)
    stack = dataclasses.replace(stack, num_layers=max(turn, stack.num_layers // depth))
    vocab_size, context_len = max(1, config.vocab_size // (width * depth)), max(1, config.context_len // width)
    return dataclasses.replace(config, stack=stack, vocab_size=vocab_size, context_len=context_len)


def _divided(config, divisor: int):
    """A configuration with its widths divided, and so those of the configurations within it."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            found[field.name] = _divided(value, divisor)
        elif field.name in _WIDTHS and value is not None:
            if value % divisor:
                raise ValueError(f"{field.name} is {value}, which {divisor} does not divide; expected a divisor of it.")
            found[field.name] = value // divisor
    return dataclasses.replace(config, **found)
