"""Make the folder `tests/pretrained/their_gpt2` with PyTorch and `transformers`: a small GPT-2 that tells stories.

`make_their_gpt2.py FOLDER` takes a minute.
"""

import sys
from pathlib import Path

import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import plainformer as pf

LENGTH, BATCH_SIZE, NUM_STEPS = 48, 24, 1000


def trained_tokenizer(texts: list[str]) -> tokenizers.Tokenizer:
    """Byte pairs, as GPT-2 has them."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=360, initial_alphabet=alphabet, show_progress=False))
    return made


def trained_model(ids: torch.Tensor, vocab_size: int) -> GPT2LMHeadModel:
    """Two blocks, after some training on windows of a text."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=vocab_size, n_positions=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(NUM_STEPS):
        starts = torch.randint(len(ids) - LENGTH, (BATCH_SIZE, 1))
        windows = ids[starts + torch.arange(LENGTH)]
        optimiser.zero_grad()
        model(windows, labels=windows).loss.backward()
        optimiser.step()
    return model.eval()


def make(folder: Path) -> None:
    """Write `config.json`, `model.safetensors` in half precision and the tokenizer's files."""
    texts = pf.data.stories(400)
    tokenizer = trained_tokenizer(texts)
    ids = torch.tensor(tokenizer.encode(" ".join(texts)).ids)
    model = trained_model(ids, tokenizer.get_vocab_size())
    model.half().save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
