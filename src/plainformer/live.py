"""The book's live figures for models and arrays of your own, in a notebook; they need the package anywidget."""

import importlib.util
import uuid
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from plainformer.checks import Positive, PositiveFloat, checked
from plainformer.generation.prompts import Prompt, Prompts, check_tokenizer, read_prompts
from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder
from plainformer.models.inside import lens
from plainformer.models.pretraining import MaskedLanguageModel
from plainformer.models.seq2seq import Seq2Seq
from plainformer.models.vision import ViT
from plainformer.tokens.vocabulary import Vocabulary
from plainformer.training.saving import model_bytes

DecoderFigure = Literal["writing", "machine", "heads", "lens", "surprise"]
MOST_WEIGHTS = 2_000_000  # they are sent as text, about twenty bytes for each
FOLDER = Path(__file__).with_name("widgets")
# What the page's engine computes of a configuration; with other values of these fields it does not.
RUNS: dict[str, tuple] = {
    "attention": ("direct", "blockwise"),
    "parallel": (False,),
    "norm_placement": ("pre", "post"),
    "qk_norm": (False,),
    "qk_norm_over": ("head",),
    "latent": (None,),
    "experts": (None,),
    "sinks": (False,),
    "position_scheme": ("learned", "sinusoidal", "sinusoidal_2d", "rotary", "none"),
    "rotary_fraction": (1.0,),
    "rope_scaling": (None,),
    "embedding_width": (None,),
    "window": (None,),
    "pattern": (None,),
    "embedding_norm": (False,),
    "num_segments": (0,),
    "source_vocab_size": (None,),
}


@checked
def decoder(model: Decoder, tokenizer: Vocabulary, figure: DecoderFigure = "writing"):
    r"""Show a decoder at work in a notebook, on texts that are typed into the figure.

    Args:
        model: a decoder that reads characters.
        tokenizer: the vocabulary of characters that it learned with.
        figure: `"writing"` (chapter on generation), or of the chapter on the decoder `"machine"`, every step from the
            text to the next letter, `"heads"`, every head's attention, `"lens"`, what the stream says at each depth,
            `"surprise"`.

    Returns:
        A widget, which Jupyter, JupyterLab, VS Code and Colab show as it stands at the end of a cell.

    Raises:
        ModuleNotFoundError: if anywidget is not installed.
        ValueError: for a model that the page cannot run.
    """
    stems = {"writing": "sampling", "heads": "decoder_heads"}
    return _of_model(stems.get(figure, figure), model, tokenizer)


@checked
def encoder(model: MaskedLanguageModel, tokenizer: Vocabulary):
    """Show what an encoder believes of hidden letters; arguments, result and errors as of `decoder`."""
    if "<mask>" not in tokenizer.special:
        raise ValueError(f"tokenizer has the special tokens {list(tokenizer.special)}; expected '<mask>' among them.")
    return _of_model("masking", model, tokenizer)


@checked
def seq2seq(model: Seq2Seq, tokenizer: Vocabulary):
    """Show an encoder–decoder translate, and what it reads; arguments, result and errors as of `decoder`.

    The tokenizer is that of sources and targets.
    """
    return _of_model("translation", model, tokenizer)


@checked
def vit(model: ViT, ink: PositiveFloat = 2.0):
    """Show what a vision transformer makes of a drawn image; result and errors as of `decoder`.

    Images of 8 x 8 pixels are made as those of scikit-learn are; on any others one draws as they are.

    Args:
        model: a model that reads grey images, in which paper is 0.
        ink: what a pixel is that is all ink: 2, as the book's models have learned it, or, for a model that was trained
            on images from 0 to 1, 1.
    """
    if model.config.channels != 1:
        raise ValueError(f"The model reads images with channels={model.config.channels}; expected grey ones, of 1.")
    return _of_model("patches", model, None, ink=ink)


@checked
def attention(weights: Float[Array | np.ndarray, "*layers heads q_seq kv_seq"], tokens: list[str] | str | None = None):
    r"""Show attention weights of your own: every head as a heat map, and one of them large, with arcs.

    Result and errors as of `decoder`.

    Args:
        weights: attention weights with an axis of heads, and perhaps one of layers before it, such as
            `model.attention_weights(tokens)` returns.
        tokens: the tokens' texts, a list or, for characters, a string.
    """
    if weights.ndim not in (3, 4) or weights.shape[-2] != weights.shape[-1]:
        expected = "(layers, heads, seq, seq) or (heads, seq, seq)"
        raise ValueError(f"weights has shape {weights.shape}; expected {expected}.")
    if not 0 < weights.size <= MOST_WEIGHTS:
        expected = f"1 to {MOST_WEIGHTS:,}: fewer layers or heads, or a shorter text"
        raise ValueError(f"weights has {weights.size:,} numbers; expected {expected}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("weights has numbers that are negative, infinite or NaN; expected what a softmax gives.")
    seq = weights.shape[-1]
    names = [str(n) for n in range(seq)] if tokens is None else list(tokens)
    if len(names) != seq:
        raise ValueError(f"There are {len(names)} tokens and weights of {seq}; expected one text for each.")
    shown = np.asarray(weights, np.float32).reshape(-1, *weights.shape[-3:])
    return _widget("decoder_heads", values={"weights": shown.tolist(), "tokens": names})


@checked
def predictions(model: Decoder, tokenizer, texts: Prompt | Prompts, *, start: Positive = 1):
    r"""Show what a decoder would say in the place of each token of a text, if it ended after any of its blocks.

    All is computed here, and not in the page, so models of any size and tokenizers of any kind are shown. Result as of
    `decoder`; what is shown stands in its `values["asked"]`. Implements `eq-inside-lens`.

    Args:
        model: a decoder.
        tokenizer: its own.
        texts: a text, as letters or as ids, or a list of them, among which the reader chooses.
        start: the first token that is shown; the model reads those before it.

    Raises:
        ModuleNotFoundError: if anywidget is not installed.
        ValueError: for a text that has no token behind `start`, or one of more tokens than the model reads.
    """
    check_tokenizer(tokenizer, model.config.vocab_size)
    read, _ = read_prompts(texts, model.config.vocab_size, tokenizer, "texts")
    for place, ids in enumerate(read):
        if not start < len(ids) <= model.config.context_len:
            expected = f"more than start={start}, and {model.config.context_len} at most"
            raise ValueError(f"texts[{place}] has {len(ids)} tokens; expected {expected}.")
    return _widget("chatting", values={"asked": [by_depth(model, tokenizer, ids, start) for ids in read]})


def by_depth(model: Decoder, tokenizer, ids: list[int], start: int) -> dict[str, Any]:
    """A text, its tokens from `start` on with their chances, and after each block the likeliest in place of each."""
    size = min(-len(ids) // 32 * -32, model.config.context_len)  # texts of like length share a program
    best, chances, own = (
        np.asarray(each)[..., start - 1 : len(ids) - 1]
        for each in _likeliest(model, jnp.asarray([*ids, *[0] * (size - len(ids))]))
    )
    after = [
        [[tokenizer.decode([i]), round(chance, 3)] for i, chance in zip(*pair, strict=True)]
        for pair in zip(best.tolist(), chances.tolist(), strict=True)
    ]
    shown = [tokenizer.decode([i]) for i in ids[start:]]
    return {"question": tokenizer.decode(ids), "answer": shown, "chances": own.round(3).tolist(), "after": after}


@eqx.filter_jit
def _likeliest(
    model: Decoder, ids: Int[Array, " seq"]
) -> tuple[Int[Array, "depth seq"], Float[Array, "depth seq"], Float[Array, " seq"]]:
    """After each block the likeliest token behind each and its chance; and, at the end, the chance of the one there."""
    said = [jax.nn.softmax(logits) for logits in lens(model, ids)]
    best, chances = (jnp.stack([getattr(each, how)(axis=-1) for each in said]) for how in ("argmax", "max"))
    return best, chances, jnp.take_along_axis(said[-1], jnp.roll(ids, -1)[:, None], axis=-1)[:, 0]


def _of_model(figure: str, model, tokenizer: Vocabulary | None, **values):
    """The widget of a figure that runs a model, with what else the figure has to know."""
    if tokenizer is not None and tokenizer.separator:
        raise ValueError(f"tokenizer has separator={tokenizer.separator!r}; expected one of characters.")
    vocab_size = getattr(model.config, "vocab_size", None)
    if tokenizer is not None and len(tokenizer) != vocab_size:
        expected = f"{vocab_size}, as many as the model has learned"
        raise ValueError(f"tokenizer has {len(tokenizer)} tokens; expected {expected}.")
    dtypes = {str(leaf.dtype) for leaf in jax.tree.leaves(model) if hasattr(leaf, "dtype")}
    if dtypes != {"float32"}:
        hint = 'jax.tree.map(lambda x: x.astype("float32"), model)'
        raise ValueError(f"The model's numbers are {', '.join(sorted(dtypes))}; expected float32 alone: try {hint}.")
    _check_runs(model.config)
    return _widget(figure, file=model_bytes(model, tokenizer), values=values)


def _check_runs(config) -> None:
    """Raise `ValueError` if the page would compute something else than the package."""
    for name, value in vars(config).items():
        if isinstance(value, StackConfig) or hasattr(value, "stack"):
            _check_runs(value)
        elif value not in RUNS.get(name, (value,)):
            runs = ", ".join(repr(each) for each in RUNS[name])
            raise ValueError(f"The model has {name}={value!r}, which live figures do not compute; expected {runs}.")


def _widget(figure: str, *, file: bytes = b"", values: dict[str, Any] | None = None):
    """A figure of the book as a widget, with all that it needs from the folder of the figures."""
    if importlib.util.find_spec("anywidget") is None:
        raise ModuleNotFoundError("Live figures in a notebook need anywidget: %pip install anywidget")
    import anywidget
    import traitlets

    class LiveFigure(anywidget.AnyWidget):
        _esm = FOLDER / "notebook.mjs"
        _css = FOLDER / "widgets.css"
        modules = traitlets.Dict().tag(sync=True)
        figure = traitlets.Unicode().tag(sync=True)
        name = traitlets.Unicode().tag(sync=True)
        file = traitlets.Bytes().tag(sync=True)
        values = traitlets.Dict(allow_none=True).tag(sync=True)

    paths = sorted(path for path in FOLDER.rglob("*.mjs") if path.name != "notebook.mjs")
    modules = {path.relative_to(FOLDER).as_posix(): path.read_text("utf-8") for path in paths}
    return LiveFigure(modules=modules, figure=figure, name=uuid.uuid4().hex, file=file, values=values)
