"""Right calls of what no example calls with all its arrays, by name: a method's has its object as `self`."""

import csv
import dataclasses
import json
import types
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gguf_written import write_gguf
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray
from tiny_run import CONFIG, Line, batch_at, squared_error
from toy_models import drawn

import plainformer as pf
from plainformer.attention.efficiency import start_rows
from plainformer.pretrained.gguf_files import byte_pairs
from plainformer.tokens.hugging_face import HuggingFaceTokenizer

KEY = jax.random.key(0)
SEQ, SOURCE_SEQ, D_MODEL, HEADS, VOCAB = 5, 7, 12, 3, 11
STACK = pf.StackConfig(d_model=D_MODEL, num_layers=1, num_heads=HEADS, d_ff=10, position_scheme="rotary")
NUMBERS = np.random.default_rng(12)
IDS = jnp.asarray([3, 1, 4, 1, 5])
SOURCE = jnp.asarray([2, 6, 5, 3, 5, 8, 9])
TARGET = jnp.asarray([9, 1, 4, 1, 5])
PLACES = jnp.arange(SEQ)
ALL = jnp.ones(SEQ, bool)
CAUSAL = pf.causal_mask(SEQ)
TEXT = "to be or not to be"
MESH = jax.make_mesh((1,), ("model",))


def rows(*shape):
    return jnp.asarray(NUMBERS.random(shape), jnp.float32)


def weights(*shape):
    """Rows of equal weights."""
    return jnp.full(shape, 1 / shape[-1])


# --- what an unannotated parameter may be


def is_ids(value) -> bool:
    """Token ids that may be in a vocabulary, as a list or an array."""
    whole = isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)
    return whole or (hasattr(value, "dtype") and str(value.dtype).startswith("int") and value.ndim == 1)


def is_module(value) -> bool:
    return isinstance(value, eqx.Module)


def is_a_tree(value) -> bool:
    """Anything with an array in it, or with room for one."""
    leaves = jax.tree.leaves(value)
    return any(hasattr(leaf, "dtype") for leaf in leaves) or (not leaves and value is not None)


def is_laid_out(value) -> bool:
    """An array of JAX with rows, which lie on devices."""
    return isinstance(value, jax.Array) and value.ndim in (1, 2) and value.size > 0


def is_anything(value) -> bool:
    return True


def is_nothing(value) -> bool:
    return value is None


def has_no_such(value) -> bool:
    """Whatever it is, none of the pool is what a model returned."""
    return False


def are_numbers(value) -> bool:
    """A finite number, or an array of them."""
    try:
        return bool(np.isfinite(np.asarray(value, float)).all())
    except (TypeError, ValueError):
        return False


def are_above_0(value) -> bool:
    """The same, all above 0."""
    return are_numbers(value) and bool((np.asarray(value, float) > 0).all())


INTEGERS, BOOLEANS = Integer[Array, "*batch seq"], Bool[Array, "*batch seq"] | None


def is_list_of_ids(value) -> bool:
    """Whether these are texts as lists of ids, at least one."""
    return isinstance(value, list) and len(value) > 0 and all(map(is_ids, value))


UNANNOTATED: dict[str, Any] = {
    "x": Float[Array, "*batch seq d_model"],
    "mask": Bool[Array, "*batch seq seq"] | pf.attention.Mask | None,
    "ids": is_ids,
    "tokens": is_ids,
    "module": is_a_tree,
    "batch": is_a_tree,
    "array": is_laid_out,
    "plans": has_no_such,
    "inputs": INTEGERS,
    "is_token": BOOLEANS,
    "is_source": Bool[Array, "*batch source_seq"] | None,
    "segments": INTEGERS | None,
    "source": Integer[Array, "*batch source_seq"],
    "target": Integer[Array, "*batch target_seq"],
    "compiled": has_no_such,
    "model": is_module,
    "optimiser": is_nothing,
    "tokenizer": is_nothing,
    **dict.fromkeys(["texts", "prompts", "chosen", "rejected"], is_list_of_ids),
    "documents": has_no_such,  # two ids at least
    **dict.fromkeys(["one", "other"], lambda value: isinstance(value, set)),
    "shingles": has_no_such,
    **dict.fromkeys(["held_out", "training"], lambda value: isinstance(value, list) and value == ["text"]),
    "key": PRNGKeyArray | None,
    "like": is_anything,
    "tree": is_anything,
    "state": is_anything,
    "static": is_anything,
    "weights": has_no_such,
    "ax": is_nothing,
    "dtype": is_anything,
    "logits": has_no_such,
    "metrics": lambda value: isinstance(value, str),
    "targets": has_no_such,
    "predictions": has_no_such,
    **dict.fromkeys(["num_parameters", "num_tokens", "losses", "work"], are_above_0),
    "residuals": are_numbers,
}


# --- the calls, room by room


def of_tokens(folder: Path) -> dict[str, dict]:
    vocabulary = pf.Vocabulary.from_characters(TEXT, special=["<stop>"])
    encoder = pf.BytePairEncoder.train(TEXT, 260, special=["<stop>"])
    parts = json.loads(encoder.to_json())
    vocabulary.save(folder / "vocabulary.json")
    encoder.save(folder / "bpe.json")
    encoder.save_hugging_face(folder / "tokenizer.json")
    (folder / "vocab.json").write_text(json.dumps(parts["vocabulary"]), "utf-8")
    (folder / "merges.txt").write_text("\n".join(" ".join(pair) for pair in parts["merges"]), "utf-8")
    names = {"special": ["<stop>"], "unknown": "<stop>"}
    return {
        "Vocabulary.from_words": {"text": TEXT, **names},
        "Vocabulary.from_characters": {"text": TEXT, **names},
        "Vocabulary.save": {"self": vocabulary, "path": folder / "tokens.json"},
        "Vocabulary.decode_stream": {"self": vocabulary, "ids": [1, 2]},
        "Vocabulary.load": {"path": folder / "vocabulary.json"},
        "BytePairEncoder.encode_stream": {"self": encoder, "texts": ["be"], "allowed_special": ["<stop>"]},
        "BytePairEncoder.encode_bytes": {"self": encoder, "data": b"be"},
        "BytePairEncoder.to_json": {"self": encoder},
        "BytePairEncoder.save": {"self": encoder, "path": folder / "tokens.json"},
        "BytePairEncoder.save_hugging_face": {"self": encoder, "path": folder / "tokens.json"},
        "BytePairEncoder.load": {"path": folder / "bpe.json"},
        "BytePairEncoder.from_hugging_face": {"path": folder / "tokenizer.json"},
        "BytePairEncoder.from_gpt2": {
            "vocab_path": folder / "vocab.json",
            "merges_path": folder / "merges.txt",
            "special": ["<stop>"],
        },
        "next_token_pairs": {"ids": [1, 2], "start": 9, "end": 4},
        "patches_to_image": {"patches": rows(4, 18), "patch_size": (2, 3), "height": 4, "width": 6},
    }


def of_attention(_) -> dict[str, dict]:
    queries, keys, values = rows(SEQ, D_MODEL), rows(SOURCE_SEQ, D_MODEL), rows(SOURCE_SEQ, 8)
    mask, bias = jnp.ones((SEQ, SOURCE_SEQ), bool), rows(SEQ, SOURCE_SEQ)
    scored = {"queries": queries, "keys": keys, "bias": bias}
    one, several = pf.SelfAttention(D_MODEL, 4, 6, key=KEY), pf.MultiHeadAttention(D_MODEL, HEADS, key=KEY)
    x, context = rows(SEQ, D_MODEL), rows(SOURCE_SEQ, D_MODEL)
    per_head = {f"{name}_weights": rows(HEADS, D_MODEL, 4) for name in ("query", "key", "value")}
    heads = {"x": x, **per_head, "output_weights": rows(HEADS, 4, D_MODEL), "mask": CAUSAL}
    cache, read = several.make_cache(9), several.cache_context(context)
    asked = {"self": several, "x": x, "mask": mask, "context": context}
    kept = {"self": cache, "positions": PLACES}
    return {
        "attention.quantise_groups": {"numbers": rows(SEQ, 4), "bits": 4},
        "window_weights": {"seq_len": SEQ, "radius": 1},
        "shared_projection_scores": {"x": x, "projection": rows(D_MODEL, 4)},
        "scaled_scores": scored,
        "softmax": {"scores": bias, "mask": mask},
        "attention_weights": {**scored, "mask": mask},
        "attend": {**scored, "values": values, "mask": mask},
        "hard_attention": {"queries": queries, "keys": keys, "values": values},
        "SelfAttention": {"d_model": D_MODEL, "d_k": 4, "key": KEY},
        "SelfAttention.__call__": {"self": one, "x": x, "mask": CAUSAL},
        "SelfAttention.attention_weights": {"self": one, "x": x, "mask": CAUSAL},
        "multi_head_concat": heads,
        "multi_head_sum": heads,
        "MultiHeadAttention.__call__": asked,
        "MultiHeadAttention.attention_weights": asked,
        "MultiHeadAttention.extend": {"self": several, "x": x, "cache": cache, "positions": PLACES},
        "MultiHeadAttention.cache_context": {"self": several, "context": context},
        "MultiHeadAttention.attend_cached": {"self": several, "x": x, "cache": read, "positions": PLACES},
        "attention_rollout": {"weights": weights(2, HEADS, SEQ, SEQ)},
        "class_attention": {"weights": weights(SOURCE_SEQ, SOURCE_SEQ), "grid": (2, 3)},
        **of_costs(),
        "attention.cache.KeyValueCache": {"num_kv_heads": HEADS, "capacity": 9, "d_k": 4, "d_v": 4},
        "attention.cache.KeyValueCache.append": {**kept, "keys": rows(HEADS, SEQ, 4), "values": rows(HEADS, SEQ, 4)},
        "attention.cache.KeyValueCache.mask": kept,
        "attention.cache.KeyValueCache.read": {"self": cache},
        "attention.cache.KeyValueCache.select": {"self": several.make_cache(9, batch=(2,)), "rows": jnp.asarray([1])},
        "attention.cache.KeyValueCache.with_room": {"self": cache, "seq": SEQ},
    }


def of_costs() -> dict[str, dict]:
    read = {"queries": rows(SEQ, 4), "keys": rows(SEQ, 4), "values": rows(SEQ, 3)}
    of_heads = {name: each[None] for name, each in read.items()} | {"sinks": rows(1)}
    started = start_rows(read["queries"], 3)
    return {
        "attention.Mask": {"is_token": ALL, "causal": True, "allowed": CAUSAL},
        "attention.Softmax": {"sinks": rows(HEADS)},
        "attention.softmax_with_sink": {"scores": rows(HEADS, SEQ, SEQ), "sinks": rows(HEADS), "mask": CAUSAL},
        "attention.Blockwise": {"block_size": 2, "sinks": rows(HEADS)},
        "attention.blockwise_attention": {**of_heads, "mask": CAUSAL, "scale": 0.5, "scheme": pf.NoPositions()},
        "attention.online_softmax_step": {"rows": started, "scores": rows(SEQ, 2), "values": rows(2, 3)},
        "attention.linear_step": {"state": rows(4, 4), "query": rows(4), "key": rows(4), "value": rows(3)},
        **of_forgetting(read),
        **of_short_vectors(),
    }


def of_short_vectors() -> dict[str, dict]:
    latent = pf.attention.LatentConfig(width=6, rotary_width=2)
    sizes = {"d_model": D_MODEL, "num_heads": HEADS, "latent": latent, "d_k": 5, "d_v": 4, "key": KEY}
    layer, x = pf.attention.LatentAttention(**sizes), rows(SEQ, D_MODEL)
    kept = {"latents": rows(SOURCE_SEQ, 6), "rotary_keys": rows(SOURCE_SEQ, 2), "key_up": rows(HEADS, 6, 3)}
    seen = {"self": layer, "x": x, "mask": CAUSAL}
    return {
        "attention.absorbed_scores": {"queries": rows(HEADS, SEQ, 5), **kept},
        "attention.LatentAttention.__call__": seen,
        "attention.LatentAttention.attention_weights": seen,
        "attention.LatentAttention.extend": {
            **{"self": layer, "x": x, "cache": layer.make_cache(9)},
            "positions": PLACES,
        },
    }


def of_forgetting(read: dict) -> dict[str, dict]:
    x, layer = rows(SEQ, D_MODEL), pf.attention.GatedLinearAttention(D_MODEL, HEADS, key=KEY)
    step, factors = {"query": rows(4), "key": rows(4), "value": rows(3)}, jnp.zeros(SEQ)
    return {
        "attention.gated_linear_step": {"state": rows(4, 3), **step, "log_factor": jnp.zeros(())},
        "attention.gated_linear_weights": {"queries": read["queries"], "keys": read["keys"], "log_factors": factors},
        "attention.gated_linear_attention": {**read, "log_factors": factors, "state": rows(4, 3), "block_size": 2},
        "attention.GatedLinearAttention.extend": {"self": layer, "x": x, "state": layer.start(), "positions": PLACES},
        **of_correcting(read, step),
    }


def of_correcting(read: dict, step: dict) -> dict[str, dict]:
    x, layer = rows(SEQ, D_MODEL), pf.attention.GatedDeltaNet(D_MODEL, HEADS, key=KEY)
    gates, of_token = {"betas": jnp.ones(SEQ), "log_factors": jnp.zeros(SEQ)}, {"beta": jnp.ones(())}
    seen = {"self": layer, "x": x, "mask": None}
    return {
        "attention.delta_step": {"state": rows(4, 3), **step, **of_token, "log_factor": jnp.zeros(())},
        "attention.delta_weights": {"queries": read["queries"], "keys": read["keys"], **gates},
        "attention.delta_rule": {**read, **gates, "state": rows(4, 3), "block_size": 2},
        "attention.GatedDeltaNet.attention_weights": seen,
        "attention.GatedDeltaNet.extend": {"self": layer, "x": x, "cache": layer.make_cache(9), "positions": PLACES},
    }


def of_blocks(_) -> dict[str, dict]:
    x, context = rows(SEQ, D_MODEL), rows(SOURCE_SEQ, D_MODEL)
    norm, network = pf.LayerNorm(D_MODEL), pf.FeedForward(D_MODEL, 10, key=KEY)
    block = pf.make_block(STACK, key=KEY)
    reader = pf.make_block(STACK, cross_attention=True, key=KEY)
    added = {"x": x, "norm": norm, "sublayer": network}
    parts = ("attention_norm", "attention", "feed_forward_norm", "feed_forward")
    seen = {"self": block, "x": x, "mask": CAUSAL}
    look = {"self": reader, "x": x, "mask": CAUSAL, "context": context, "context_mask": None}
    cache = block.attention.make_cache(9)
    return {
        "SwiGLU": {"d_model": D_MODEL, "d_ff": 10, "key": KEY},
        "SwiGLU.__call__": {"self": pf.SwiGLU(D_MODEL, 10, key=KEY), "x": x},
        "dropout": {"x": x, "rate": 0.1, "key": KEY},
        **of_experts(x),
        "pre_norm": added,
        "post_norm": added,
        "blocks.output_norm": added,
        "blocks.sandwich_norm": {**added, "after": norm},
        "Block": {part: getattr(block, part) for part in parts},
        "blocks.blocks.CrossBlock.__call__": look,
        "Block.attention_weights": seen,
        "Block.extend": {"self": block, "x": x, "cache": cache, "positions": PLACES},
    }


def of_experts(x) -> dict[str, dict]:
    config, chosen = pf.blocks.ExpertsConfig(num_experts=4, per_token=2, width=6), jnp.zeros((SEQ, 2), int)

    def network(width, *, key):
        return pf.SwiGLU(D_MODEL, width, key=key)

    experts = pf.blocks.Experts(D_MODEL, config, network, key=KEY)
    routed = {"x": x, "gates": rows(SEQ, 2), "chosen": chosen, "networks": experts.networks}
    return {
        "blocks.route": {"weights": weights(SEQ, 4), "per_token": 2, "choice_bias": rows(4)},
        "blocks.mixture": {**routed, "kept": jnp.ones((SEQ, 2), bool)},
        "training.move_bias": {"optimiser": pf.training.make_optimiser(CONFIG), "rate": 0.001},
        "models.active_parameters": {"module": experts},
    }


def of_positions(_) -> dict[str, dict]:
    x, both = rows(SEQ, D_MODEL), {"q_positions": PLACES, "kv_positions": jnp.arange(SOURCE_SEQ)}
    learned, sinusoidal = pf.LearnedPositions(9, D_MODEL, key=KEY), pf.SinusoidalPositions(D_MODEL)
    relative = pf.RelativePositions(HEADS, num_buckets=8, max_distance=16, key=KEY)
    return {
        "shift_matrix": {"offset": 3, "d_model": D_MODEL},
        "SinusoidalPositions": {"d_model": D_MODEL},
        "SinusoidalPositions.embed": {"self": sinusoidal, "x": x, "positions": PLACES},
        "LearnedPositions.embed": {"self": learned, "x": x, "positions": PLACES},
        "positions.RotaryScaling": {"factor": 8.0},
        "positions.LinearScaling": {"factor": 8.0},
        "positions.NtkScaling": {"factor": 8.0},
        "positions.YarnScaling": {"factor": 8.0, "attention_factor": 1.2},
        "RotaryPositions.rotate": {"self": pf.RotaryPositions(), "rows": x, "positions": PLACES},
        "relative_buckets": {"offsets": jnp.arange(6).reshape(2, 3), "num_buckets": 8, "max_distance": 16},
        "RelativePositions": {"num_heads": HEADS, "num_buckets": 8, "max_distance": 16, "key": KEY},
        "RelativePositions.bias": {"self": relative, **both},
        "alibi_slopes": {"num_heads": HEADS},
        "AlibiPositions": {"num_heads": HEADS},
        "AlibiPositions.bias": {"self": pf.AlibiPositions(HEADS), **both},
        "sinusoidal_positions_2d": {"grid_height": 2, "grid_width": 3, "d_model": D_MODEL},
    }


TEXTS = {"vocab_size": VOCAB, "context_len": 9, "stack": STACK}
PAIRS = {"source_len": 7, "start_token": 9, "stop_token": 4, "encoder": STACK, "decoder": STACK}
DECODER = drawn(pf.Decoder, pf.DecoderConfig(**TEXTS))
LETTERS = pf.Vocabulary(map(chr, range(97, 97 + VOCAB)))
ENCODER_CONFIG = pf.EncoderConfig(**TEXTS, num_segments=2)
SEQ2SEQ_CONFIG = pf.Seq2SeqConfig(VOCAB, 9, **PAIRS)
SEQ2SEQ = drawn(pf.Seq2Seq, SEQ2SEQ_CONFIG)
MASKED = drawn(pf.MaskedLanguageModel, ENCODER_CONFIG)
CLASSIFIER_CONFIG = pf.ClassifierConfig(encoder=ENCODER_CONFIG, num_classes=4)
CLASSIFIER = drawn(pf.EncoderClassifier, CLASSIFIER_CONFIG)
VIT_CONFIG = pf.ViTConfig(image_size=(4, 6), patch_size=(2, 3), num_classes=4, channels=3, stack=STACK)


def of_models(_) -> dict[str, dict]:
    x, image = rows(SEQ, D_MODEL), rows(4, 6, 3)
    vit, conditioned = drawn(pf.ViT, VIT_CONFIG), SEQ2SEQ.condition_on(SOURCE)
    read = {"inputs": IDS, "is_token": ALL, "segments": jnp.zeros(SEQ, int)}
    pair = {"self": SEQ2SEQ, "source": SOURCE, "target": TARGET, "is_source": jnp.ones(7, bool)}
    source = {name: pair[name] for name in ("self", "source", "is_source")}
    cached = {"self": DECODER, "tokens": IDS, "cache": DECODER.make_cache(), "positions": PLACES}
    targets = {"tokens": TARGET[None], "positions": PLACES[None]}
    return {
        "Decoder.__call__": {"self": DECODER, "tokens": IDS, "documents": IDS * 0, "key": KEY},
        "Decoder.residual_stream": {"self": DECODER, "tokens": IDS, "key": KEY},
        "Decoder.attention_weights": {"self": DECODER, "tokens": IDS},
        "Decoder.extend": cached,
        **_of_heads("Encoder", (encoder := drawn(pf.Encoder, ENCODER_CONFIG)), read),
        "Encoder.embed": {"self": encoder, **read},
        "MaskedLanguageModel": {"config": ENCODER_CONFIG, "key": KEY},
        **_of_heads("MaskedLanguageModel", MASKED, read),
        "MaskedLanguageModel.logits": {"self": MASKED, "x": x},
        "ClassifierConfig": {"encoder": ENCODER_CONFIG, "num_classes": 4},
        "EncoderClassifier": {"config": CLASSIFIER_CONFIG, "key": KEY},
        **_of_heads("EncoderClassifier", CLASSIFIER, read),
        "EncoderClassifier.logits": {"self": CLASSIFIER, "x": x, "is_token": ALL, "key": KEY},
        "Seq2Seq.__call__": {**pair, "key": KEY},
        "Seq2Seq.residual_stream": {**pair, "key": KEY},
        "Seq2Seq.attention_weights": pair,
        "Seq2Seq.cross_attention_weights": pair,
        "Seq2Seq.encode": {**source, "key": KEY},
        "Seq2Seq.condition_on": source,
        "models.seq2seq.ConditionedSeq2Seq.make_cache": {"self": conditioned, "capacity": 9},
        "models.seq2seq.ConditionedSeq2Seq.extend": {
            "self": conditioned,
            "cache": conditioned.make_cache(batch=(1,)),
            **targets,
        },
        "models.seq2seq.ConditionedSeq2Seq.logits": {"self": conditioned, "x": x},
        "ViT.__call__": {"self": vit, "images": image, "key": KEY},
        "ViT.residual_stream": {"self": vit, "images": image, "key": KEY},
        "ViT.attention_weights": {"self": vit, "images": image},
        "models.vision.patch_kernel": {"embedding": vit.encoder.embedding, "patch_size": (2, 3), "channels": 3},
        "mask_tokens": {
            **{"tokens": IDS, "is_maskable": ALL, "mask_token": 1, "vocab_size": VOCAB, "first_ordinary": 2},
            "key": KEY,
        },
        "mean_pool": {"rows": x, "is_token": ALL},
        "masked_token_loss": {"model": MASKED, "batch": pf.data.MaskedBatch(IDS, IDS, ALL, ALL, IDS * 0), "key": KEY},
        "classification_loss": {
            "model": CLASSIFIER,
            "batch": pf.data.LabelledBatch(IDS[None], IDS[:1] * 0, None, IDS[None] * 0),
            "key": KEY,
        },
    }


def _of_heads(name: str, model, read: dict) -> dict[str, dict]:
    """The methods that all models on an encoder have."""
    return {
        f"{name}.__call__": {"self": model, **read, "key": KEY},
        f"{name}.residual_stream": {"self": model, **read, "key": KEY},
        f"{name}.attention_weights": {"self": model, **read},
    }


def _page_tables():
    """Tables with a text of two tokens."""
    tables = pf.generation.PageTables(num_pages=5, page_size=2)
    tables.begin(0, [1, 2])
    return tables


def _server():
    """A server with nothing to write."""
    return pf.generation.Server(DECODER, places=2, page_size=4, key=KEY)


def _talkative():
    """A tokenizer of as many tokens as the decoder has, with a template of conversations."""
    tokens = [chr(97 + number) for number in range(VOCAB - 1)]
    content = byte_pairs([*tokens, "<end>"], [], [1] * (VOCAB - 1) + [3], "gpt-2", None)
    return HuggingFaceTokenizer(content, "{{ messages[0].content }}", end="<end>")


def of_generation(_) -> dict[str, dict]:
    pairs = [([2, 7, 1], [5, 3]), ([6, 10], [8, 8, 2])]
    batch = pf.translation_batch(pairs, SEQ2SEQ_CONFIG)
    return {
        "generate": {"model": DECODER, "prompts": [[1, 2]], "max_new_tokens": 2, "key": KEY},
        "generation.sequence_log_probs": {"model": DECODER, "tokens": [1, 2]},
        "beam_search": {"model": DECODER, "prompts": [1, 2], "max_new_tokens": 2, "beam_width": 2},
        "generation.speculative_generate": {
            **{"model": DECODER, "draft": DECODER, "prompts": [1, 2], "max_new_tokens": 2},
            "key": KEY,
        },
        "generation.accept_drafted": {
            **{"drafted": IDS[:2], "draft_probs": weights(2, VOCAB), "probs": weights(3, VOCAB)},
            "key": KEY,
        },
        "translation_batch": {"pairs": pairs, "config": SEQ2SEQ_CONFIG},
        "translation_loss": {"model": SEQ2SEQ, "batch": batch, "key": KEY},
        "translate": {"model": SEQ2SEQ, "sources": [[2, 7, 1]], "max_new_tokens": 2},
        "generation.place_in_pages": {
            **{"tables": jnp.asarray([4, 2]), "positions": jnp.asarray([0, 1, 2]), "page_size": 2},
        },
        "generation.Server": {"model": DECODER, "places": 2, "page_size": 4, "num_pages": 3, "key": KEY},
        "generation.exact_match": {"found": ["a", "b"], "expected": ["a", "c"]},
        **of_writing_today(),
    }


def of_writing_today() -> dict[str, dict]:
    """Penalties, patterns, and choices among texts."""
    allowed = pf.generation.AllowedTexts(jnp.zeros((2, VOCAB), jnp.int32))
    return {
        "generation.AllowedTexts.__call__": {
            **{"self": allowed, "logits": rows(VOCAB), "prompt": IDS[:2], "written": IDS},
        },
        "generation.read_answers": {"model": DECODER, "prompt": [1, 2], "answers": [[3], [2, 1]]},
    }


def of_data(folder: Path) -> dict[str, dict]:
    (folder / "text.txt").write_text(TEXT, "utf-8")
    with open(folder / "labelled.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text", "label"], ["to be", "verb"]])
    pf.data.write_tokens(folder / "ids.npy", range(9), VOCAB)
    cut = {"tokens": list(range(9)), "seq_len": 3}
    return {
        "data.length_buckets": {"examples": [[1], [2, 3]], "num_buckets": 2},
        "data.date_pairs": {"languages": ["en"], "years": [1999], "num_dates": 2},
        "data.date_splits": {"num_training": 17, "num_held_out": 17},
        "data.label_ids": {"labels": ["a", "b"], "names": ["a", "b"]},
        "data.docstring_splits": {"packages": ["optax", "equinox"]},
        "data.load_labelled": {"path": folder / "labelled.csv"},
        "data.name_splits": {"languages": ["en"]},
        "data.names_by_language": {"languages": ["en"]},
        "data.thing_splits": {"languages": ["en", "de"]},
        "data.crossings": {"digits": pf.data.digits().test, "num_images": 3},
        "data.word_surprises": {"story": ". it is wet ."},
        "data.number_words": {"numbers": [1, 2]},
        "data.number_splits": {"num_training": 10, "num_held_out": 5},
        "data.keep_short": {"pairs": [([1], [2])], "source_len": 2, "target_len": 2},
        "data.load_parallel": {"source": folder / "text.txt", "target": folder / "text.txt"},
        "data.multi30k": {},
        "data.load_text": {"path": folder / "text.txt"},
        "data.stream_text": {"path": folder / "text.txt"},
        "data.split_text": {"text": TEXT},
        "data.open_tokens": {"path": folder / "ids.npy"},
        "data.write_tokens": {"path": folder / "written.npy", "ids": [1, 2], "vocab_size": VOCAB},
        "data.stream_windows": {**cut, "batch_size": 2},
    }


def of_training(folder: Path) -> dict[str, dict]:
    windows = pf.data.consecutive_windows(list(range(9)), 3)
    batch = pf.data.Windows(windows.inputs, windows.targets)
    saved = {"state": Line(), "metadata": {}, "step": 1}
    pf.training.save_checkpoint(folder / "run", **saved)
    pf.training.save_checkpoint(folder / "evaluated", 1, (Line(),), {"metrics": [{"step": 1, "validation_loss": 0.5}]})
    pf.save_model(folder / "decoder.safetensors", DECODER)
    config = pf.TrainingConfig(num_steps=1)
    law = pf.training.PowerLaw(0.5, 9.0, 0.5, 60.0, 0.4)
    sizes, read = map(np.ravel, np.meshgrid([1e4, 1e5], [1e5, 1e6, 1e7]))
    runs = {"num_parameters": sizes, "num_tokens": read, "losses": pf.training.power_law_loss(sizes, read, law)}
    ngrams = pf.training.NgramModel(list(range(9)), 2, VOCAB)
    loop = {"model": Line(), "loss_function": squared_error, "batches": batch_at, "config": config}
    text = {"texts": ["the cat"], "references": ["the cat"]}
    return {
        "fit": {**loop, "progress": False},
        "save_model": {"path": folder / "saved.safetensors", "model": DECODER},
        "load_model": {"path": folder / "decoder.safetensors", "model_class": pf.Decoder},
        "training.next_token_loss": {"model": DECODER, "batch": batch, "key": KEY},
        "training.bits_per_character": {"model": DECODER, "text": "abc", "tokenizer": LETTERS},
        "training.training_work": {"num_parameters": 1e4, "num_tokens": 1e6},
        "training.best_size": {"work": 1e12, "law": law},
        "training.huber": {"residuals": [0.1]},
        "training.fit_power_law": runs,
        "training.bootstrap_power_laws": {**runs, "num_draws": 2},
        "training.NgramModel": {"tokens": list(range(9)), "order": 2, "vocab_size": VOCAB},
        "training.NgramModel.probability": {"self": ngrams, "token": 1, "context": (1,)},
        "training.NgramModel.loss": {"self": ngrams, "tokens": [1, 2]},
        "training.corpus_loss": {"model": DECODER, "windows": windows},
        "training.corpus_chrf": text,
        "training.with_decay": {"schedule": lambda step: 0.01, "num_steps": 9, "decay_steps": 3},
        "training.muon": {"learning_rate": 0.01, "others": pf.training.make_optimiser(CONFIG)},
        "training.compile_step": {
            "model": Line(),
            "loss_function": squared_error,
            "batch": batch_at(0),
            "config": CONFIG,
        },
        "training.save_checkpoint": {**saved, "directory": folder / "another_run"},
        "training.list_checkpoints": {"directory": folder / "run"},
        "training.load_best": {"directory": folder / "evaluated", "model": Line()},
        "training.load_metadata": {"path": folder / "decoder.safetensors"},
        "training.load_checkpoint": {"directory": folder / "run", "like": Line(), "step": 1},
        "training.least_tokens": {"num_devices": 8, "flops_per_second": 1e15, "bytes_per_second": 5e10},
        "training.least_width": {"num_devices": 8, "flops_per_second": 1e15, "bytes_per_second": 5e10},
        "training.log_to_tensorboard": {"directory": folder / "log"},
    }


def of_adapters(folder: Path) -> dict[str, dict]:
    adapted = pf.models.add_adapters(DECODER, 1, key=KEY)
    pf.models.save_adapters(folder / "adapters.safetensors", adapted)
    layer = pf.Linear(D_MODEL, 3, key=KEY)
    return {
        "models.AdaptedLinear": {"layer": layer, "rank": 2, "scale": 1.0, "key": KEY},
        "models.AdaptedLinear.__call__": {
            "self": pf.models.AdaptedLinear(layer, 2, 1.0, key=KEY),
            "x": rows(SEQ, D_MODEL),
        },
        "models.add_adapters": {"model": DECODER, "rank": 2, "key": KEY},
        "models.is_adapter": {"place": "head.adapter_in"},
        "models.merge_adapters": {"model": adapted},
        "models.save_adapters": {"path": folder / "again.safetensors", "model": adapted},
        "models.load_adapters": {"path": folder / "adapters.safetensors", "model": adapted},
    }


def of_planning(_) -> dict[str, dict]:
    speeds = {"flops": 1e12, "memory": 1e9, "memory_bandwidth": 1e9, "link_bandwidth": 1e9, "network_bandwidth": 1e9}
    return {
        "models.Hardware": {**speeds, "node_size": 8},
        "models.this_machine": {"memory": 1e9, "size": 8},
    }


def of_inside(_) -> dict[str, dict]:
    _, seen = pf.look(DECODER, IDS)
    return {
        "models.heads_at": {"seen": seen, "heads": [(0, 1)]},
        "models.mean_run": {"seen": pf.look(DECODER, IDS[None])[1]},
        "models.effect": {"patched": rows(2), "before": rows(2), "source": rows(2) + 1},
        "models.induction_scores": {"weights": weights(2, 4, 4), "period": 2},
        "models.probe_accuracy": {"rows": rows(6, 2), "labels": jnp.arange(6) % 2, "num_to_learn": 4},
        "models.control_labels": {"kinds": IDS, "num_labels": 3},
    }


def of_tuning(folder: Path) -> dict[str, dict]:
    pair = {"prompts": [[1]], "chosen": [[2, 3]], "rejected": [[4]]}
    batch, log_probs = pf.models.preferences(DECODER, **pair), rows(3, 2)
    return {
        "models.answer_windows": {"texts": [[1, 2, 3], [2, 4]], "answer_token": 2, "length": 3},
        "models.continuation_windows": {"prompts": [[1], [2]], "texts": [[2, 3], [4]], "length": 3},
        "models.log_probability": {"model": DECODER, "windows": batch.chosen},
        "models.leash": {"model": DECODER, "reference": DECODER, "windows": batch.chosen},
        "models.preferences": {"reference": DECODER, **pair, "length": 5},
        "models.preference_surprise": {"log_probs": log_probs, "reference": -log_probs, "beta": 0.5},
        "models.preference_loss": {"model": DECODER, "batch": batch, "key": KEY, "beta": 0.5},
        "models.add_tokens": {"model": DECODER, "num_tokens": 2, "key": KEY},
    }


def of_pretrained(folder: Path) -> dict[str, dict]:
    decoder = pf.Decoder(pf.DecoderConfig(VOCAB, 9, dataclasses.replace(STACK, position_scheme="learned")), key=KEY)
    pf.to_hugging_face(folder / "gpt2", decoder, "gpt2")
    write_gguf(folder / "a.gguf", decoder, tensors={"a": np.ones(4, np.float32)})
    return {
        "pretrained.read_gguf": {"path": folder / "a.gguf"},
        "open_model": {"path": folder / "gpt2"},
        "to_hugging_face": {"folder": folder / "again", "model": decoder, "model_type": "gpt2"},
        "pretrained.packaged_folder": {"package": "rxnmapper"},
        "pretrained.read_numbered": {"text": "[CH3:1][OH:2]>>[CH2:1]=[O:2]"},
        "pretrained.atom_places": {"tokens": ["C", "O", ">>", "C"]},
        "pretrained.map_atoms": {"weights": weights(4, 4), "tokens": ["C", "O", ">>", "C"]},
        "pretrained.SmilesTokenizer": {"tokens": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "C", ">>"]},
    }


def of_plots(_) -> dict[str, dict]:
    looked = {"weights": weights(3, 3), "rows": ["a", "b", "c"], "columns": ["a", "b", "c"]}
    vocabulary = pf.Vocabulary.from_characters("abc")
    return {
        "plots.head_grid": {**looked, "weights": weights(2, 3, 3)},
        "plots.attention_arcs": {"weights": weights(3, 3), "tokens": ["a", "b", "c"]},
        "plots.logit_lens": {"logits": rows(2, 3, 3), "ids": [0, 1, 2], "tokenizer": vocabulary},
        "plots.loss_curve": {"metrics": [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}], "columns": ["loss"]},
        "plots.confusion_matrix": {"targets": [0, 1], "predictions": [1, 1], "names": ["a", "b"]},
        "exercises.check": {"name": "linear_columns", "function": lambda x, weight, bias: weight @ x + bias[:, None]},
    }


def all_right_calls(folder: Path) -> dict[str, dict]:
    """Every right call; what they read is written into the folder."""
    rooms = (
        of_tokens,
        of_attention,
        of_blocks,
        of_positions,
        of_models,
        of_adapters,
        of_inside,
        of_planning,
        of_tuning,
        of_pretrained,
        of_generation,
    )
    rooms += (of_data, of_training, of_plots)
    return {name: call for room in rooms for name, call in room(folder).items()}


def stand_in_for_tensorboard() -> types.SimpleNamespace:
    """What `log_to_tensorboard` imports, which need not be installed."""
    return types.SimpleNamespace(Writer=lambda directory: None)
