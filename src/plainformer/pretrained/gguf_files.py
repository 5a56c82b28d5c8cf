"""GGUF, the one file in which llama.cpp has a whole model: read as a configuration and tensors of Hugging Face's names.

Many of its matrices are kept in few bits: groups of 32 numbers, each a small whole number times a scale of the group.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from plainformer.checks import checked
from plainformer.data.files import Name, as_path
from plainformer.pretrained.names import Interleaved
from plainformer.tokens.hugging_face import HuggingFaceTokenizer

HINT = "pip install gguf"
# What Hugging Face calls a field, and what GGUF does, behind the name of its architecture.
FIELDS = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "intermediate_size": "feed_forward_length",
    "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
    "vocab_size": "vocab_size",
}
SCALING = {
    "rope_type": "rope.scaling.type",
    "factor": "rope.scaling.factor",
    "original_max_position_embeddings": "rope.scaling.original_context_length",
}
WIDTHS = ("rope.dimension_count", "attention.value_length")  # which must be that of a head
IGNORED = ("rope.scaling.finetuned",)
# The same of tensors; those of a block stand behind `blk.0.` there and `model.layers.0.` here.
NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# Architectures, and whether their queries and keys have the two numbers of a rotary pair side by side.
PAIRED = {"llama": True, "qwen2": False, "qwen3": False}


def _named(method: Callable) -> Callable:
    """A method that raises `ValueError` with the file's name, whatever is wrong with its fields."""

    @functools.wraps(method)
    def read(self):
        try:
            return method(self)
        except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
            if str(self.path) in str(error):
                raise
            what = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            raise ValueError(f"{self.path} has no {method.__name__} that can be read: {what}") from error

    return read


class GgufFile:
    """A GGUF file: its `config`, in Hugging Face's names, its `tensors` and its `tokenizer`.

    Raises:
        ImportError: if `gguf` is not installed.
        ValueError: if the file is damaged or none, or holds a model that is not read here.
    """

    def __init__(self, path: Path):
        self.path, self._reader = path, read_gguf(path)
        self._fields: dict[str, Any] = self._reader.fields
        self._architecture = self._field("general.architecture")
        if self._architecture not in PAIRED:
            known = ", ".join(PAIRED)
            raise ValueError(f"{path} is a model of the architecture {self._architecture!r}; expected one of {known}.")

    def _field(self, name: str, otherwise=None):
        return self._fields[name].contents() if name in self._fields else otherwise

    @property
    @_named
    def config(self) -> dict[str, Any]:
        """Its fields, as they would stand in `config.json`."""
        kind, prefix = self._architecture, f"{self._architecture}."
        own = {name.removeprefix(prefix): self._field(name) for name in self._fields if name.startswith(prefix)}
        names = {each.name for each in self._reader.tensors}
        found = {theirs: own[name] for theirs, name in FIELDS.items() if name in own}
        scaling = {theirs: own[name] for theirs, name in SCALING.items() if name in own}
        if "factor" in scaling:
            scaling = {"rope_type": "linear"} | scaling  # as llama.cpp has it
        if left := set(own) - {*FIELDS.values(), *SCALING.values(), *WIDTHS, *IGNORED}:
            raise ValueError(f"{self.path} has a field {prefix}{min(left)}, which is not read here.")
        width = found.get("head_dim") or found["hidden_size"] // found["num_attention_heads"]
        if wrong := [name for name in WIDTHS if own.get(name, width) != width]:
            raise ValueError(f"{self.path} has {prefix}{wrong[0]}={own[wrong[0]]}; expected {width}, a head's width.")
        return {
            "model_type": kind,
            "vocab_size": len(self._fields["tokenizer.ggml.tokens"].data),
            "tie_word_embeddings": "output.weight" not in names,
            "attention_bias": "blk.0.attn_q.bias" in names,
            **found,
            **({"rope_scaling": scaling} if scaling.get("rope_type", "none") != "none" else {}),
        }

    @property
    @_named
    def tensors(self) -> Mapping[str, np.ndarray]:
        """Its tensors by Hugging Face's names, each unpacked as it is asked for."""
        turned = {}
        if PAIRED[self._architecture]:
            prefix = f"{self._architecture}.attention."
            heads = self._field(f"{prefix}head_count")
            turned = {"attn_q": heads, "attn_k": self._field(f"{prefix}head_count_kv", heads)}
        return _Tensors({_their_name(each.name): each for each in self._reader.tensors}, turned, self.path)

    @property
    @_named
    def tokenizer(self) -> HuggingFaceTokenizer:
        """Its tokenizer, of pairs of bytes, with the template of a conversation and the token that ends an answer."""
        tokens, end = self._field("tokenizer.ggml.tokens"), self._field("tokenizer.ggml.eos_token_id")
        kind, cut = self._field("tokenizer.ggml.model"), self._field("tokenizer.ggml.pre", "gpt-2")
        if kind != "gpt2":
            raise ValueError(f"{self.path} has a tokenizer of the kind {kind!r}; expected 'gpt2'. {WITHOUT}")
        first = self._field("tokenizer.ggml.bos_token_id")
        begins = first if self._field("tokenizer.ggml.add_bos_token", cut == WHOLE_WORDS) else None
        types = self._field("tokenizer.ggml.token_type", [1] * len(tokens))
        made = byte_pairs(tokens, self._field("tokenizer.ggml.merges", []), types, cut, begins)
        begin, end = (None if each is None else tokens[int(each)] for each in (first, end))
        return HuggingFaceTokenizer(made, self._field("tokenizer.chat_template"), begin, end)


WITHOUT = "Without the tokenizer: tokenizer=False."
WHOLE_WORDS = "llama-bpe"  # a word that is a token is not cut, and a text begins with a token of its own
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# How a text is cut into words before pairs are joined, by llama.cpp's names: by a pattern, or as GPT-2 does.
PATTERNS = {
    "gpt-2": None,
    "smollm": r"\p{N}",  # each digit alone, and then as GPT-2
    "llama-bpe": WORDS.replace("DIGITS", r"\p{N}{1,3}"),
    "qwen2": WORDS.replace("DIGITS", r"\p{N}"),
}


def byte_pairs(tokens: list[str], merges: list[str], types: list[int], cut: str, begins: int | None) -> str:
    """The content of a `tokenizer.json`: byte pairs within words that are `cut` as the model's name of it says.

    Args:
        tokens: in the order of their ids.
        merges: the two parts of each pair, with a blank between.
        types: of each token, 3 for one that is special and 4 for one that is never cut; others are ordinary.
        cut: one of `PATTERNS`.
        begins: the id of a token that is put before every text, or `None`.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors

    if cut not in PATTERNS:
        known = ", ".join(map(repr, PATTERNS))
        raise ValueError(f"the tokenizer cuts words as {cut!r}; expected one of {known}. {WITHOUT}")
    ids = {token: number for number, token in enumerate(tokens)}
    pairs = [(first, second) for first, _, second in (merge.partition(" ") for merge in merges)]
    if strange := [pair for pair in pairs if not {*pair, "".join(pair)} <= ids.keys()]:
        raise ValueError(f"the tokenizer joins {strange[0]}, which makes none of its tokens. {WITHOUT}")
    made = Tokenizer(models.BPE(ids, pairs, ignore_merges=cut == WHOLE_WORDS))
    pattern = PATTERNS[cut]
    in_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=cut in ("gpt-2", "smollm"))
    made.pre_tokenizer = in_bytes
    if pattern is not None:
        made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), in_bytes])
    made.decoder = decoders.ByteLevel()
    of_kind = {kind: [each for each, its in zip(tokens, types, strict=True) if its == kind] for kind in (3, 4)}
    made.add_special_tokens(of_kind[3])
    made.add_tokens([AddedToken(token, normalized=False) for token in of_kind[4]])
    if begins is not None:
        start = tokens[begins]
        made.post_processor = processors.TemplateProcessing(single=f"{start} $A", special_tokens=[(start, begins)])
    return made.to_str()


class _Tensors(Mapping[str, np.ndarray]):
    """Tensors that are unpacked as they are asked for, so that no more than one of them is there twice."""

    def __init__(self, packed: dict[str, Any], turned: dict[str, int], path: Path):
        self._packed, self._turned, self._path = packed, turned, path

    def __getitem__(self, name: str) -> np.ndarray:
        import gguf

        packed = self._packed[name]
        try:
            numbers = gguf.quants.dequantize(packed.data, packed.tensor_type)
        except NotImplementedError as error:
            kind = packed.tensor_type.name
            raise ValueError(f"{packed.name} in {self._path} is stored as {kind}, which is not read here.") from error
        heads = self._turned.get(packed.name.split(".")[-2])
        return numbers if heads is None else in_halves(numbers, heads)

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def in_halves(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows of heads, in which the two of a rotary pair lie side by side, as they are where they lie half a head apart.

    Implements `eq-chatting-pairs`.

    Args:
        rows: the matrix of queries or keys by its outputs, `(heads * d_k, d_model)`, or its bias.
        heads: how many heads there are.
    """
    width = len(rows) // heads
    return rows.reshape(heads, width, -1)[:, Interleaved(width, width).order].reshape(rows.shape)


def _their_name(name: str) -> str:
    """Hugging Face's name of a tensor; one that it does not have stays."""
    *place, part, suffix = name.split(".")
    if len(place) == 2 and part in BLOCK_NAMES:
        return f"model.layers.{place[1]}.{BLOCK_NAMES[part]}.{suffix}"
    return f"{NAMES[part]}.{suffix}" if part in NAMES and not place else name


@checked
def read_gguf(path: Name):
    """Read a GGUF file by the library `gguf`: its `fields`, and its `tensors` as they are packed.

    It is the library's own reader, which sees the file as a plain array: NumPy's mapped ones are slow to cut.

    Raises:
        ImportError: if `gguf` is not installed.
        ValueError: if the file is damaged, or no GGUF file.
    """
    path = as_path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        import gguf
    except ImportError as error:
        raise ImportError(f"A GGUF file needs the library gguf: {HINT}") from error

    class Reader(gguf.GGUFReader):
        @property
        def data(self):
            return self._plain

        @data.setter
        def data(self, mapped):
            self._plain = np.asarray(mapped)

        def _get(self, offset, dtype, count=1, override_order=None):
            if offset + np.dtype(dtype).itemsize * int(count) > len(self._plain):
                raise IndexError(
                    "it is cut short"
                )  # NumPy would return less, and a list of 2**40 nothings take for ever
            return super()._get(offset, dtype, count, override_order)

    try:
        return Reader(path)
    except (ValueError, IndexError, KeyError, OverflowError, RecursionError, OSError) as error:
        raise ValueError(f"{path} is damaged, or no GGUF file: {error}. Get it again.") from error
