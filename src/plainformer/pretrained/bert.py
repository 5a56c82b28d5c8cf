"""BERT (Devlin et al., 2019) and its kin, by the names of Hugging Face: RoBERTa, DistilBERT, ALBERT."""

from functools import partial
from typing import Any

from plainformer.models.config import StackConfig
from plainformer.models.encoder import Encoder, EncoderConfig
from plainformer.models.pretraining import ClassifierConfig, EncoderClassifier, MaskedLanguageModel
from plainformer.pretrained.family import OF_BERT, Family, Head, in_blocks, labels, sizes_of, their_sizes
from plainformer.pretrained.names import SAME, Later, Line, array, dense, norm

OURS = "attention.query attention.key attention.value attention.output feed_forward.up feed_forward.down"
NORMS = "attention_norm feed_forward_norm"
# Where each family has the linear maps and the norms of a block, in the order of ours.
BERT = (
    "encoder.layer.{}.",
    "attention.self.query attention.self.key attention.self.value attention.output.dense "
    "intermediate.dense output.dense",
    "attention.output.LayerNorm output.LayerNorm",
)
DISTILBERT = (
    "transformer.layer.{}.",
    "attention.q_lin attention.k_lin attention.v_lin attention.out_lin ffn.lin1 ffn.lin2",
    "sa_layer_norm output_layer_norm",
)
ALBERT = (  # one block for all
    "encoder.albert_layer_groups.0.albert_layers.0.",
    "attention.query attention.key attention.value attention.dense ffn ffn_output",
    "attention.LayerNorm full_layer_layer_norm",
)


def _body(prefix: str, layout: tuple[str, str, str], first_row: int = 0, ours: str = "encoder.") -> list[Line]:
    """The lines of an encoder; the rows of its table of positions begin at `first_row`."""
    block, maps, norms = layout
    positions = Later(first_row) if first_row else SAME
    lines = [
        array(f"{prefix}embeddings.word_embeddings.weight", f"{ours}embedding.weight"),
        array(f"{prefix}embeddings.position_embeddings.weight", f"{ours}stack.scheme.table", positions),
        array(f"{prefix}embeddings.token_type_embeddings.weight", f"{ours}segment_embedding.weight"),
        norm(f"{prefix}embeddings.LayerNorm", f"{ours}embedding_norm"),
        dense(f"{prefix}encoder.embedding_hidden_mapping_in", f"{ours}embedding_map"),
    ]
    pairs = [(dense, maps, OURS), (norm, norms, NORMS)]
    for kind, theirs, names in pairs:
        for their_name, name in zip(theirs.split(), names.split(), strict=True):
            lines.append(kind(prefix + block + their_name, ours + in_blocks(name)))
    return lines


def _guessing(transform: str, head_norm: str, bias: str) -> list[Line]:
    """The lines of a head that guesses hidden tokens."""
    return [dense(transform, "head"), norm(head_norm, "head_norm"), array(bias, "output_bias")]


def _read(theirs: dict, first_row: int = 0) -> EncoderConfig:
    """Our configuration."""
    return EncoderConfig(
        context_len=theirs["max_position_embeddings"] - first_row,
        vocab_size=theirs["vocab_size"],
        stack=StackConfig(**sizes_of(theirs, OF_BERT), norm_placement="post"),
        num_segments=theirs.get("type_vocab_size", 0),
        embedding_norm=True,
        embedding_width=theirs.get("embedding_size"),
    )


def _write(model: Any, first_row: int = 0) -> dict:
    """Theirs."""
    ours = model.config
    found = {
        "vocab_size": ours.vocab_size,
        "max_position_embeddings": ours.context_len + first_row,
        **their_sizes(ours.stack, OF_BERT),
        "type_vocab_size": ours.num_segments,
    }
    return found if ours.embedding_width is None else found | {"embedding_size": ours.embedding_width}


def _read_classifier(theirs: dict, first_row: int = 0) -> ClassifierConfig:
    """Our configuration of a classifier."""
    num_classes = len(theirs.get("id2label") or range(2))
    return ClassifierConfig(encoder=_read(theirs, first_row), num_classes=num_classes, pooler=True)


def _write_classifier(model: EncoderClassifier, first_row: int = 0) -> dict:
    """Theirs."""
    return _write(model.encoder, first_row) | labels(model.config.num_classes)


def _family(
    name: str, layout: tuple[str, str, str], guess: list[Line], judge: list[Line], first_row: int = 0, **options
) -> Family:
    """A family whose classes begin with `name`, by the layout of a block and the lines of two heads."""
    model_type = name.lower()
    inside, alone = (_body(f"{model_type}.", layout, first_row, ours) for ours in ("encoder.", ""))
    read, write = partial(_read, first_row=first_row), partial(_write, first_row=first_row)
    guessing_head = Head(MaskedLanguageModel, read, write, lambda theirs: [*inside, *guess])
    heads = {
        f"{name}ForMaskedLM": guessing_head,
        f"{name}ForPreTraining": guessing_head,
        f"{name}Model": Head(Encoder, read, write, lambda theirs: alone),
    }
    if judge:
        heads[f"{name}ForSequenceClassification"] = Head(
            EncoderClassifier,
            partial(_read_classifier, first_row=first_row),
            partial(_write_classifier, first_row=first_row),
            lambda theirs: [*inside, *judge],
        )
    fixed = {"position_embedding_type": "absolute", "is_decoder": False, "tie_word_embeddings": True}
    return Family(
        model_type,
        heads,
        defaults={"layer_norm_eps": 1e-12, "hidden_act": "gelu"} | options.pop("defaults", {}),
        fixed=fixed | options.pop("fixed", {}),
        prefix=f"{model_type}.",
        **options,
    )


TABLE = "embeddings.word_embeddings.weight"
HEAD = "cls.predictions"
FAMILIES = (
    _family(
        "Bert",
        BERT,
        _guessing(f"{HEAD}.transform.dense", f"{HEAD}.transform.LayerNorm", f"{HEAD}.bias"),
        [dense("bert.pooler.dense", "pooler"), dense("classifier", "output")],
        extras=("bert.embeddings.position_ids", "bert.pooler.*", "cls.seq_relationship.*"),
        twins={f"{HEAD}.decoder.weight": f"bert.{TABLE}", f"{HEAD}.decoder.bias": f"{HEAD}.bias"},
        renamed={".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"},
    ),
    _family(
        "Roberta",
        BERT,
        _guessing("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
        [dense("classifier.dense", "pooler"), dense("classifier.out_proj", "output")],
        first_row=2,  # the two before it are for padding
        fixed={"pad_token_id": 1, "hidden_act": "gelu"},
        extras=("roberta.embeddings.position_ids", "roberta.pooler.*"),
        twins={"lm_head.decoder.weight": f"roberta.{TABLE}", "lm_head.decoder.bias": "lm_head.bias"},
    ),
    _family(
        "DistilBert",
        DISTILBERT,
        _guessing("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
        [],
        fixed={"layer_norm_eps": 1e-12, "type_vocab_size": 0},
        spelling={
            "dim": "hidden_size",
            "n_layers": "num_hidden_layers",
            "n_heads": "num_attention_heads",
            "hidden_dim": "intermediate_size",
            "activation": "hidden_act",
        },
        twins={"vocab_projector.weight": f"distilbert.{TABLE}"},
    ),
    _family(
        "Albert",
        ALBERT,
        _guessing("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
        [dense("albert.pooler", "pooler"), dense("classifier", "output")],
        defaults={"embedding_size": 128, "hidden_act": "gelu_new"},
        fixed={"num_hidden_groups": 1, "inner_group_num": 1},
        extras=("albert.embeddings.position_ids", "albert.pooler.*", "sop_classifier.*"),
        twins={"predictions.decoder.weight": f"albert.{TABLE}", "predictions.decoder.bias": "predictions.bias"},
    ),
)
